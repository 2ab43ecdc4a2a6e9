"""The Problem, which is the input of the solver, its checks, and the Step that a reduction takes from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Generic, TypeAlias, TypeVar

import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.graph import Indices, IntArray
from plumdp.model.language.property import as_objective
from plumdp.model.objective import Nature, Objective, is_objective
from plumdp.model.parametric import ParametricMDP
from plumdp.relaxation.interval_model import IntervalModel
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.solution import Solution

MDP = TypeVar("MDP", IntervalMDP, ParametricMDP)


@dataclass(frozen=True, eq=False)
class Problem(Generic[MDP]):
    """A model with unknown probabilities, an objective, and the policy whose value is asked, or None for the best."""

    mdp: MDP
    objective: Objective
    policy: npt.NDArray[Any] | None = None  # (n_states): choices; or, of a policy that draws, probabilities (n_choices)
    nature: Nature = "robust"
    start: Solution | None = None  # of a similar problem: it saves time, and is not trusted


@dataclass(frozen=True, eq=False)
class Step(Generic[MDP]):
    """A simpler problem, and how its solution is one of the problem that it was made of."""

    problem: Problem[MDP]
    state: Indices | slice | None = None  # (n_states): those that have the values of all states, if states are others
    is_complement: bool = False  # whether values are one minus those of the simpler problem
    policy: Callable[[IntArray], IntArray] | None = None  # from a policy of the simpler problem, if it is another one
    carry: Callable[[Any], Any] | None = None  # from another model of the same rows to one of the simpler problem


Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done, and how much there is to do."""


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
