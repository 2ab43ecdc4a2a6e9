"""The Problem and the Solution, which are input and output of the solver, and the Reduction that a reduction takes."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.graph import FloatArray, Indices, IntArray, read_only
from plumdp.model.objectives import Nature, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import html_table, number_of, one_line
from plumdp.relaxation.intervals import IntervalMDP

_TOGETHER = 2**15  # states that are looked at together, so that what is calculated of them stays in the cache


class SolverStatus(StrEnum):
    """The way in which the solver ended. The bounds hold in any case."""

    CONVERGED = "converged"
    OPEN = "open: some bounds are further apart than asked for; they hold all the same"
    INTERRUPTED = "interrupted: the bounds so far hold"


@dataclass(frozen=True, eq=False)
class Solution:
    """Certified values and a policy, where the value of state ``s`` lies between ``lower[s]`` and ``upper[s]``.

    The policy names one choice per state (its number in the graph). Followed forever, against the nature that was asked
    for, it attains ``lower`` if large values are better and ``upper`` if small ones are. For objectives with a number
    of steps it is the choice of the first step. ``status`` is "converged" where the bounds are as close as asked for in
    every state.
    """

    lower: FloatArray  # (n_states)
    upper: FloatArray  # (n_states)
    policy: IntArray  # (n_states)
    status: SolverStatus
    sweeps: int

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self.lower), "state"), number_of(self.sweeps, "sweep"), self.status)

    def _repr_html_(self) -> str:
        first = min(len(self.lower), 10)
        rows = [(s, f"{self.lower[s]:.6g}", f"{self.upper[s]:.6g}", self.policy[s]) for s in range(first)]
        more = f"<p>{first:,} of {number_of(len(self.lower), 'state')}; {html.escape(self.status)}</p>"
        return html_table(rows, ("state", "lower", "upper", "choice")) + more


def gap_of(low: FloatArray, high: FloatArray) -> float:
    """Return the largest distance of two bounds, relative for values above 1."""
    parts = [slice(start, start + _TOGETHER) for start in range(0, len(low), _TOGETHER)]
    return float(np.max([_gap_of_part(low[part], high[part]) for part in parts], initial=0.0))


def _gap_of_part(low: FloatArray, high: FloatArray) -> float:
    with np.errstate(invalid="ignore"):
        largest = float(((high - low) / np.maximum(1.0, np.abs(low))).max(initial=0.0))
        if np.isfinite(largest):
            return largest
        gap = np.where(low == high, 0.0, high - low)  # infinity minus infinity included
    scale = np.maximum(1.0, np.where(np.isfinite(low), np.abs(low), 1.0))
    return float((gap / scale).max(initial=0.0))


def status_at(solution: Solution, state: int, precision: float) -> SolverStatus:
    """Return the status of the solver for one state, which is converged if its own bounds are close enough."""
    of_state = slice(state, state + 1)
    is_close = gap_of(solution.lower[of_state], solution.upper[of_state]) <= precision
    return SolverStatus.CONVERGED if solution.status == SolverStatus.OPEN and is_close else solution.status


def solution_of(
    low: FloatArray, high: FloatArray, policy: IntArray, precision: float, sweeps: int, status: SolverStatus
) -> Solution:
    """Return a solution whose status says whether the bounds are as close as asked for."""
    if status == SolverStatus.CONVERGED and not gap_of(low, high) <= precision:
        status = SolverStatus.OPEN
    return Solution(read_only(low), read_only(high), read_only(policy), status, sweeps)


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
class Reduction(Generic[MDP]):
    """A simpler problem, and how its solution is one of the problem that it was made of."""

    problem: Problem[MDP]
    state: Indices | slice | None = None  # (n_states): those that have the values of all states, if states are others
    is_complement: bool = False  # whether values are one minus those of the simpler problem
    policy: Callable[[IntArray], IntArray] | None = None  # from a policy of the simpler problem, if it is another one
    carry: Callable[[Any], Any] | None = None  # from another model of the same rows to one of the simpler problem


def check_request(imdp: IntervalMDP, objective: Objective, precision: float) -> None:
    """Refuse objectives of another model, and a precision that is not a number above 0."""
    if not isinstance(precision, Real) or not precision > 0:
        raise ModelError(f"precision={precision!r}: it must be above 0")
    objective.check_size(imdp.graph)
