"""The Problem, which is the input of the solver, its checks, and the order in which reductions are applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

from plumdp.base.errors import ModelError
from plumdp.model.language.property import as_objective
from plumdp.model.objective import Nature, Objective, is_objective
from plumdp.model.parametric import ParametricMDP
from plumdp.relaxation.interval_model import IntervalModel
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.solution import Solution


@dataclass(frozen=True, eq=False)
class Problem:
    """An interval MDP, an objective, the side that nature is on, and perhaps the solution of a similar problem."""

    imdp: IntervalMDP
    objective: Objective
    nature: Nature
    start: Solution | None = None


Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done, and how much there is to do."""

Inverse: TypeAlias = Callable[[Solution], Solution]
"""From the solution of a reduced problem to that of the problem itself."""

Reduction: TypeAlias = Callable[[Problem], tuple[Problem, Inverse] | None]
"""Returns a simpler problem and the inverse, or None where it does not apply."""


def reduce_all(problem: Problem, reductions: Sequence[Reduction]) -> tuple[Problem, Inverse]:
    """Apply reductions until none applies, and return the problem that is left, and the inverse of all."""
    steps = (reduction(problem) for reduction in reductions)
    first = next((step for step in steps if step is not None), None)
    if first is None:
        return problem, lambda solution: solution
    simpler, invert = first
    rest, invert_rest = reduce_all(simpler, reductions)
    return rest, lambda solution: invert(invert_rest(solution))


def require_problem(
    function: str, model: IntervalMDP | IntervalModel, objective: Objective | str
) -> tuple[IntervalMDP, Objective]:
    """Return an interval MDP with an objective, or refuse anything else and say what to write instead."""
    if isinstance(model, IntervalModel):
        return model.mdp, as_objective(objective, model)
    if isinstance(model, ParametricMDP):
        raise ModelError(
            f"{function} takes an interval MDP, and this model has unknown parameters: write instantiate(model, point) "
            "for its probabilities at a point, or certify(model, counts, objective) for what data say"
        )
    if not isinstance(model, IntervalMDP):
        raise ModelError(
            f"{function} takes an interval MDP, such as instantiate(model, point), not {type(model).__name__}"
        )
    if isinstance(objective, str):
        raise ModelError(
            f"an interval MDP has no labels that a text could name: give {function} an IntervalModel, or the objective "
            "parse_property(text, model)"
        )
    if not is_objective(objective):
        raise ModelError(
            f"{function} takes an objective, such as parse_property(text, model), not {type(objective).__name__}"
        )
    return model, objective


def check_request(imdp: IntervalMDP, objective: Objective, precision: float) -> None:
    """Refuse objectives of another model, and a precision that is not a number above 0."""
    if not isinstance(precision, Real) or not precision > 0:
        raise ModelError(f"precision={precision!r}: it must be above 0")
    objective.check_size(imdp.graph)
