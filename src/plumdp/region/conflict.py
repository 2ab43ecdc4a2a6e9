"""Conflicts, returned instead of empty regions, with the intervals or fixed numbers that the data exclude."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.base.errors import EmptySpace
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, IntArray, read_only
from plumdp.model.space import ParameterSpace
from plumdp.model.text import one_line
from plumdp.region.half_spaces import Contradiction, HalfSpaces, excess
from plumdp.region.shapes import Region

_MISSED = 1e-9  # rows missed by less are taken as met
_ROWS_AT_ONCE = 50
_MAX_ROUNDS = 1000
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Conflict:
    """A proof that no point fits, since the data exclude every point of the space or a number that the model fixes.

    If intervals exclude each other, so that no point of the space meets them all, multipliers prove it.
    At every point of the space, the sum of ``multiplier * (value - bound)`` over the expressions is above zero, where
    the bound is the upper one for a positive multiplier and the lower one for a negative. At a point within all the
    intervals it could not be. Where a conflict is proved by cases (products of parameters, see ``lift``), no single sum
    proves it: multipliers and stretch are then not a number. If a fixed number alone is excluded, there are no
    expressions, multipliers and constraints, and the stretch is not a number.
    """

    expressions: tuple[int, ...]  # at most one more than there are parameters
    multipliers: FloatArray  # one for each of them
    constraints: tuple[str, ...]  # the same for people, with the parts of the space that matter
    stretch: float  # to have a point in common, all intervals must become this many times as wide, or more
    numbers: tuple[str, ...] = ()  # probabilities that the model fixes and the data exclude, in words
    findings: tuple[str, ...] = ()  # where model and data differ and what to try, in words, by tests of all rows
    is_over_time: bool = False  # whether rows changed, so that all data together say nothing about now
    is_of_memory: bool = False  # whether rows have no law at all, as they depend on what came before in a run

    def __repr__(self) -> str:
        return one_line(self, str(self))

    def __str__(self) -> str:
        first, then = (self.numbers, self.findings) if self.leaves_bounds else (self.findings, self.numbers)
        return "; ".join([*first, *then, *self._unfit()])

    @property
    def leaves_bounds(self) -> bool:
        """Whether bounds on the graph alone are claimed: not if rows changed or remember."""
        return not (self.is_over_time or self.is_of_memory)

    def _unfit(self) -> list[str]:
        """Return a description of the intervals that exclude each other, if any do."""
        wider = [f"all intervals would have to be {self.stretch:.3g} times as wide"] if self.stretch < np.inf else []
        return [f"no parameters fit {' and '.join(self.constraints)}", *wider] if self.constraints else []


NOTHING_FITS = Conflict((), read_only(np.zeros(0)), (), np.nan)
"""The conflict of a model that tests of all rows contradict, with nothing more said about it."""


def with_numbers(region: Region | Conflict, numbers: tuple[str, ...]) -> Conflict:
    """Return the conflict of fixed numbers that the data exclude, beside that of the parameters if there is one.

    >>> from plumdp import ParameterSpace
    >>> from plumdp.stages import build_region
    >>> region = build_region(ParameterSpace.unit("p"), [], [], [])
    >>> print(with_numbers(region, ("the model says 0.5, seen 99 of 99 times",)))
    the model says 0.5, seen 99 of 99 times
    """
    return replace(region if isinstance(region, Conflict) else NOTHING_FITS, numbers=numbers)


def explain(
    proof: Contradiction,
    half_spaces: HalfSpaces,
    space: ParameterSpace,
    table: ExpressionTable,
    lower: FloatArray,
    upper: FloatArray,
) -> Conflict:
    """Return the conflict of the intervals that need most stretching, given some rows that contradict each other."""
    proof = max((proof, *_least_stretch(proof, half_spaces)), key=lambda one: _stretch(one, half_spaces))
    used = np.flatnonzero(proof.multipliers > 0)
    used = used[np.argsort(half_spaces.expression[proof.rows[used]], kind="stable")]  # the space first
    rows, multipliers = proof.rows[used], proof.multipliers[used]
    expression = half_spaces.expression[rows]
    is_data = expression >= 0
    if not is_data.any():
        raise EmptySpace(f"the parameter space is empty: {'; '.join(space.describe())}")
    d, about = space.dimension, space.describe()
    words = [about[row % d if row < 2 * d else row - d] for row in rows[~is_data]]
    for f in expression[is_data]:
        is_half_line = lower[f] == 0 and upper[f] == np.inf
        words.append(f"{table.polynomials[f]} {'>= 0' if is_half_line else f'in [{lower[f]:.6g}, {upper[f]:.6g}]'}")
    return Conflict(
        tuple(expression[is_data].tolist()),
        read_only((half_spaces.side[rows] * multipliers)[is_data]),
        tuple(dict.fromkeys(words)),
        _stretch(proof, half_spaces),
    )


def _stretch(proof: Contradiction, half_spaces: HalfSpaces) -> float:
    """Return a factor by which all intervals must at least be stretched, about their middles, to void a proof.

    Stretched by 1 + t, the sum of multipliers times offsets grows by t times the sum of multipliers times half widths,
    and must grow by the excess of the proof.
    """
    beyond = excess(proof, half_spaces.rows, half_spaces.offsets)
    given = float(proof.multipliers @ half_spaces.half_width[proof.rows])
    if beyond <= 0:
        return 0.0  # no proof at all
    # rounded down, so that the factor is one that is needed at least
    return (1 + beyond / given) * (1 - 1e-12) if given > 0 else np.inf


def _least_stretch(proof: Contradiction, half_spaces: HalfSpaces) -> list[Contradiction]:
    """Return the multipliers of the least t for which intervals stretched by 1 + t have a point in common.

    There are none if no interval has a width or HiGHS fails.
    """
    d, unit = half_spaces.rows.shape[1], half_spaces.half_width.max(initial=0)
    if unit == 0:
        return []
    rows = np.hstack([half_spaces.rows, -half_spaces.half_width[:, None] / unit])
    first = np.union1d(np.arange(2 * d), proof.rows)
    estimate = estimate_multipliers(np.append(np.zeros(d), 1.0), rows, half_spaces.offsets, first)
    return [] if estimate is None else [Contradiction(estimate[0].astype(np.int32), estimate[1])]


def estimate_multipliers(
    objective: FloatArray, rows: FloatArray, offsets: FloatArray, first: IntArray
) -> tuple[IntArray, FloatArray] | None:
    """Return rows and multipliers that come close to proving the minimum of ``objective @ x``, or None.

    The minimum is over ``rows @ x <= offsets``. The solver gets the first rows, which must bound the objective, and
    then those that its point misses most until none is missed. It is None if HiGHS fails.
    """
    from scipy.optimize import linprog  # takes a fifth of the time of a small certificate to import

    given = first
    for _ in range(_MAX_ROUNDS):
        solution = linprog(
            objective, A_ub=rows[given], b_ub=offsets[given], bounds=(None, None), method="highs", options=_TOLERANCES
        )
        if solution.status != 0:
            return None
        missed = rows @ solution.x - offsets
        missed[given] = 0  # the solver meets them, up to its tolerance
        worst = np.argsort(-missed)[:_ROWS_AT_ONCE]
        worst = worst[missed[worst] > _MISSED]
        if not len(worst):
            return given, np.maximum(-solution.ineqlin.marginals, 0)
        given = np.append(given, worst)
    return None
