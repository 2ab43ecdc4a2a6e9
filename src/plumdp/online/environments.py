"""Makes environments that ``learn_online`` runs episodes in, from a model at a point or from Gymnasium."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.data import kernels
from plumdp.data.counts import CountArray
from plumdp.data.runs import Rng, RunPlan, make_plan, running_sums, split
from plumdp.data.simulators import gym_environment, is_gymnasium
from plumdp.model.graph import FloatArray, IntArray
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import Point
from plumdp.model.text import number_of, one_line
from plumdp.relaxation.intervals import IntervalMDP, instantiate
from plumdp.solver.evaluate import evaluate


class Environment(Protocol):
    """Something that runs episodes, numbered from 0, which may differ when they are run once more."""

    def run(self, weights: FloatArray, first: int, last: int, seen: CountArray) -> None:
        """Run the episodes from ``first`` up to ``last``, and add their steps to ``seen`` (n_transitions).

        ``weights`` (n_choices) is the policy.
        """

    def true_value(self, policy: IntArray, objective: Objective) -> float | None:
        """Return the true value of the policy (n_states), or None if it is not known."""


@dataclass(frozen=True, eq=False)
class Simulator:
    """A model at a point as an environment, in which an episode is always the same under the same policy."""

    plan: RunPlan
    truth: IntervalMDP

    def __repr__(self) -> str:
        return one_line(
            self, number_of(self.plan.graph.n_states, "state"), f"up to {self.plan.max_steps:,} steps a run"
        )

    def run(self, weights: FloatArray, first: int, last: int, seen: CountArray) -> None:
        """Run episodes side by side; see ``Environment``."""
        tables = self.plan.tables._replace(weights=running_sums(self.plan.graph.first_choice, weights))
        plan = replace(self.plan, tables=tables)
        for block in split(first, last, plan.block_size):
            for _, steps in plan.walk(block):
                kernels.count(steps, seen)

    def true_value(self, policy: IntArray, objective: Objective) -> float:
        """Return the value of the policy at the point; see ``Environment``."""
        solution, start = evaluate(self.truth, policy, objective), self.truth.graph.initial_state
        return float((solution.lower[start] + solution.upper[start]) / 2)


def simulator(
    model: ParametricMDP, point: Point, *, rng: Rng, max_steps: int, stop: npt.ArrayLike | None = None
) -> Simulator:
    """Return the model at a point as an environment for ``learn_online``.

    Parameters
    ----------
    model, point, rng, max_steps, stop
        As in ``simulate``.

    Returns
    -------
    Simulator
        The environment.

    Examples
    --------
    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> environment = simulator(study.model, study.true_point, rng=1, max_steps=26)
    >>> environment.plan.max_steps
    26
    """
    plan = make_plan(model, point, 1, rng, max_steps, "uniform", stop)
    return Simulator(plan, instantiate(model, point))


def as_environment(given: Any, model: ParametricMDP) -> Environment:
    """Return the given environment as one of this module; what is neither that nor of Gymnasium is refused."""
    if _is_environment(given):
        environment: Environment = given
        return environment
    if isinstance(given, str) or is_gymnasium(given):
        return gym_environment(model, given)
    raise DataError(
        "learn_online takes a Gymnasium environment, or one such as simulator(model, point, ...), "
        f"not {type(given).__name__}"
    )


def _is_environment(given: Any) -> bool:
    return not isinstance(given, type) and all(callable(getattr(given, name, None)) for name in ("run", "true_value"))
