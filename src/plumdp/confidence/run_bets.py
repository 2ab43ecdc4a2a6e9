"""Bounds on the mean of what whole runs earn, by bets whose sizes are renewed before each run.

Somebody bets that a mean is larger than m: after run i the capital is multiplied by 1 + λ (x - m), where x is what the
run earned, or less. If the size λ >= 0 was fixed before the run, its expectation is at most one for every mean up to m,
as long as the capital cannot become negative. So with a probability of at most the error it ever reaches 1 / error
(Ville), and if it does, m and all that is below is excluded, whichever law the runs have.

The sizes are those of Voráček and Orabona, "STaR-Bets" (2025): for what is still to be won, in the runs of a number
that was pre-specified. If the data end there, bounds are 1.1 to 1.2 times as wide as normal intervals, and if they end
elsewhere they hold as well. Renewed sizes depend on m, so that the capital need not fall as m grows. The page
"Bets on whole runs" says why cells that were fixed beforehand do without that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.compiled import compiled, compiled_leaf
from plumdp.base.error_budget import equal_parts
from plumdp.base.linear_algebra import last_that
from plumdp.base.rounding import UNIT, UP, FloatArray
from plumdp.data.returns import Range
from plumdp.model.graph import BoolArray

_CELLS = 8  # for each square root of a run
_MOST_CELLS = 1 << 14
_HALVINGS = 40  # of a cell
_ROUNDINGS = 32  # of each factor: five, of which three count seven times where most of the capital is lost
_MOST = 0.875  # of the capital that a run may lose
_CLOSEST = 1e-9  # to the least value that a mean is taken to be, so that no size is infinite
_LOST = 1e-250  # a capital below this is given up, so that no product underflows
_LARGEST = 2.0**60  # that a capital is aimed to grow by
_LOG_2 = 0.6931471805599453


def mean_ends(
    lower: FloatArray,
    upper: FloatArray,
    error: float,
    planned: float,
    reach: tuple[FloatArray, FloatArray] | None = None,
) -> Range:
    """Return bounds on the mean of numbers of [0, 1] in the order of their runs, each of which has half of the error.

    Number i lies between ``lower[i]`` and ``upper[i]``. ``planned`` is how many runs were pre-specified before there
    were any, never how many there are: who ends the data would choose the sizes by it. ``reach`` is what the lower ends
    are at least and the upper ones at most, known before their runs, if that is not 0 and 1.
    """
    side = equal_parts(error, 2)
    least, most = reach or (np.zeros(len(lower)), np.ones(len(lower)))
    mirrored = _lower_end(-upper, -most, side, planned, (-1.0, 0.0))
    return _lower_end(lower, least, side, planned, (0.0, 1.0)), -mirrored


def _lower_end(value: FloatArray, least: FloatArray, of_side: float, planned: float, within: Range) -> float:
    """Return a lower bound on a mean: the last number up to which bets exclude everything.

    Within a cell all means have the sizes of its upper end, so that there the capital falls as the mean grows.
    """
    goal = 1 / of_side * UP * (1 + _off(len(value)))
    sizes, edges = np.empty((2, len(value))), cell_edges(planned, within)
    for excluded, other in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if bet_against(value, least, other, goal, planned, _prior(within), sizes) >= goal:
            continue  # one cell after the other: an excluded one says nothing of those below
        return last_that(lambda mean: capital_at(value, sizes, mean) >= goal, excluded, other, _HALVINGS)
    return within[1]


def cell_edges(planned: float, within: Range) -> FloatArray:
    """Return the ends of cells, closer to one another where outcomes near an end of their range vary less.

    They depend on what was pre-specified alone.
    """
    n = min(ceil(_CELLS * math.sqrt(planned)), _MOST_CELLS)
    part = np.arange(n + 1) / n
    edges = within[0] + (within[1] - within[0]) * (part * part * (3 - 2 * part))
    edges[-1] = within[1]
    return np.asarray(edges)


def _prior(within: Range) -> FloatArray:
    """Return the mean and the largest variance of numbers in a range, which count as one run."""
    return np.array([(within[0] + within[1]) / 2, (within[1] - within[0]) ** 2 / 4])


def _off(n: int) -> float:
    """Return by how much roundings may have raised a capital after n runs, relative to it."""
    return 1.01 * UNIT * _ROUNDINGS * (n + 1)


@dataclass(frozen=True, eq=False)
class Draws:
    """Runs of two arms, each drawn with a chance that was written down before its draw."""

    is_first: BoolArray  # (n_runs): whether the first arm was drawn
    chance: FloatArray  # (n_runs): that the first arm would be, which may depend on the task and on earlier runs
    task: npt.NDArray[np.int64]  # (n_runs): by number, drawn anew for each run; all zero if there is one task

    @property
    def turned(self) -> Draws:
        """The same draws, of the second arm first."""
        return Draws(~self.is_first, 1 - self.chance, self.task)


def difference_ends(
    lower: FloatArray, upper: FloatArray, draws: Draws, error: float, planned: float, *, within: Range = (-1.0, 1.0)
) -> Range:
    """Return bounds on the mean of a first arm minus that of a second; one of both was drawn for each run.

    Outcomes lie between 0 and 1. One that is not known makes the score of its run as small as it may be for the lower
    end: that is the least outcome of the first arm, and the largest of the second. An upper end is a lower one for what
    outcomes fall short of 1.
    """
    side, is_first = equal_parts(error, 2), draws.is_first
    ends = [np.where(is_first, lower, upper), 1 - np.where(is_first, upper, lower)]
    low, high = (scores_of(each, draws) for each in ends)
    mirrored = _lower_end(*high, side, planned, (-within[1], -within[0]))
    return _lower_end(*low, side, planned, within), -mirrored


def value_ends(lower: FloatArray, upper: FloatArray, draws: Draws, error: float, planned: float) -> Range:
    """Return bounds on the mean of a first arm, if it were used for all runs: the difference to one that earns 0."""
    low, high = (np.where(draws.is_first, each, 0.0) for each in (lower, upper))
    return difference_ends(low, high, draws, error, planned, within=(0.0, 1.0))


def scores_of(outcome: FloatArray, draws: Draws) -> tuple[FloatArray, FloatArray]:
    """Return scores of runs, whose mean is at most the difference of two arms, and the least that each could be.

    That of a run is (y - c) / π of the first arm, and (c - y) / (1 - π) of the second. Any c that was fixed before the
    draw will do; it varies least for (1 - π) h + π h', where h and h' are the means of both arms in earlier runs, for
    its task. The least score is fixed by earlier runs alone, for all tasks and chances that may come, since sizes that
    know those of their run bet on them, too: it is what is needed if the chance is the mean of earlier ones, and c is
    cut where another chance would need more.
    """
    n_tasks, n = int(draws.task.max(initial=0)) + 2, len(outcome)  # one of them is never there, as are later ones
    total, count, score, least = *np.zeros((2, 2, n_tasks)), *np.empty((2, n))
    usual = np.append(0.5, np.cumsum(draws.chance)[:-1] / np.arange(1, n))  # of earlier runs, or a half
    # of a score, of chances that are one less a float
    closest = np.minimum(draws.chance, 1 - draws.chance)
    for i, (y, is_first, chance, task) in enumerate(
        zip(outcome, draws.is_first, draws.chance, draws.task, strict=True)
    ):
        arm = (total.sum(axis=1) + 1) / (count.sum(axis=1) + 2)
        h, other = (total + 2 * arm[:, None]) / (count + 2)  # (n_tasks) each; of a task without runs it is the arm's
        far = max((np.maximum(h / usual[i], (1 - other) / (1 - usual[i])) - h + other).max(), 1.0)
        c = min(max((1 - chance) * h[task] + chance * other[task], 1 - far * (1 - chance)), far * chance)
        off = 16 * UNIT * (1 / closest[i] + far) / closest[i]
        score[i] = max(((y - c) / chance if is_first else (c - y) / (1 - chance)) - off, -far)
        least[i] = -far
        total[int(not is_first), task] += y
        count[int(not is_first), task] += 1
    return score, least


@compiled_leaf
def _log_of(growth: float) -> float:
    """Return about the logarithm of a number from one on, by operations that are the same on all machines."""
    halvings, rest = 0, min(max(growth, 1.0), _LARGEST)
    while rest > 1.5:
        rest *= 0.5
        halvings += 1
    s = (rest - 1) / (rest + 1)
    return halvings * _LOG_2 + 2 * s * (1 + s * s * (1 / 3 + s * s * (1 / 5 + s * s / 7)))


@compiled
def bet_against(value: Any, least: Any, mean: float, goal: float, planned: float, prior: Any, sizes: Any) -> float:
    """Return the largest capital of bets that a mean is larger, up to the run that reaches a goal, and write all sizes.

    Half of the capital is bet for what is still to be won in the runs that are left, half for all at once. The size of
    run i is fixed by the runs before it alone: nothing here may look at ``value[i]`` before the sizes are written.
    """
    renewed, constant, largest = 1.0, 1.0, 1.0
    total, square, count = prior[0], prior[1], 1.0
    aim = 2 * _log_of(2 * goal) / planned
    for i in range(len(value)):
        variance, most = square / count, _MOST / max(mean - least[i], _CLOSEST)
        missing = max(2 * goal - constant, 0.0)
        needed = 2 * _log_of(missing / renewed if renewed > 0 else _LARGEST) / max(planned - i, 1.0)
        sizes[0, i] = min(np.sqrt(needed / variance), most)
        sizes[1, i] = min(np.sqrt(aim / variance), most)
        renewed *= 1 + sizes[0, i] * (value[i] - mean)
        constant *= 1 + sizes[1, i] * (value[i] - mean)
        renewed, constant = (renewed if renewed > _LOST else 0.0), (constant if constant > _LOST else 0.0)
        largest = max(largest, (renewed + constant) / 2)
        if largest >= goal:
            break
        off = value[i] - total / count
        total, square, count = total + value[i], square + off * off, count + 1
    return largest


@compiled
def capital_at(value: Any, sizes: Any, mean: float) -> float:
    """Return the largest capital that bets of these sizes have, up to some run, against a mean."""
    renewed, constant, largest = 1.0, 1.0, 1.0
    for i in range(len(value)):
        renewed *= 1 + sizes[0, i] * (value[i] - mean)
        constant *= 1 + sizes[1, i] * (value[i] - mean)
        renewed, constant = (renewed if renewed > _LOST else 0.0), (constant if constant > _LOST else 0.0)
        largest = max(largest, (renewed + constant) / 2)
    return largest
