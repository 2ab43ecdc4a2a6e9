"""Explanations of a lack of fit, ordered by the evidence that a change of the model would make the data more likely.

An explanation frees something that the model ties. That may be parameters of their own for some values of a state
variable, for an action, or for the early data. It may be probabilities of its own for one row, or for all rows with the
same expressions. Or it may be a number that the model fixes. Its *gain* is by how many nats the largest log-likelihood
grows (along one line, where parameters are freed: from below), with all other parameters estimated again. So a variable
that is merely correlated with the guilty one gains less than that. Its *evidence* is the gain less what the best of as
many such explanations may gain by chance, which is the logarithm of how many there are of its kind, and one nat for
each further number that it frees.

They order what to look at. They are not tests: no error is controlled here.

One kind is a dependence on a state variable, on an action or on time that the model does not have. The parameters (all
of them, or one) may depend on it, or the probability of a change such as "money goes up", by so much in probability, or
in log-odds. The dependence is a pattern over the cells of the contrast: along a line, another value on one side, or
another value in one cell. For each of these, the efficient score statistic says to second order what is gained: the
information that a pattern has in common with the parameters themselves is taken out first. The best of them is then
followed along its line, which gains what it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.confidence.constants import FixedNumbers, number_surprises
from plumdp.confidence.contrasts import Contrast
from plumdp.fit.residuals import Change, FittedRows, sums, unit_axes
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, read_only

ExplanationKind: TypeAlias = Literal["variable", "action", "row", "class", "number", "early"]

_LEAST_SHARE = 1e-3  # of the information that is left without a row, or without that of the parameters
_CLOSEST = 200  # rows whose gain is computed with parameters estimated again


@dataclass(frozen=True, eq=False)
class Explanation:
    """Something that the model ties and the data would rather have free."""

    kind: ExplanationKind
    gain: float  # in nats
    evidence: float  # the gain less what chance may do
    contrast: Contrast | None = None  # of a variable or an action
    cells: BoolArray | None = None  # (n_cells): those on the one side
    subject: str = ""  # the parameter that is another there, or the change that is more or less likely
    choice: int = -1  # the row, or a row of the class; of a number, that which has it
    test: int = -1  # the fixed number, or that of a class
    is_pooled: bool = False  # whether a number is that of several rows


def explain_by_rows(rows: FittedRows) -> list[Explanation]:
    """Return explanations by probabilities of their own, for single rows and for rows with the same expressions."""
    classes = rows.row_class
    n_rows = np.bincount(classes[rows.start[:-1]])
    shared = np.where(n_rows[classes] > 1, classes, -1)
    first = np.zeros(len(n_rows), dtype=np.int64)
    first[classes[::-1]] = rows.choice[::-1]
    single = [Explanation("row", gain, less, choice=c) for c, gain, less in _freed(rows, rows.choice)]
    pooled = _freed(rows, shared)
    return single + [Explanation("class", gain, less, choice=int(first[c])) for c, gain, less in pooled]


def explain_by_numbers(rows: FittedRows, fixed: FixedNumbers) -> list[Explanation]:
    """Return explanations by other values of fixed numbers, for single rows and for rows with the same numbers."""
    explanations = []
    for is_pooled, gains in enumerate(number_surprises(fixed, rows.counts)):
        if len(gains):
            best = int(np.argmax(gains))
            member = int(np.argmax(fixed.pooled == best)) if is_pooled else best
            gain, chance = float(gains[best]), log(len(gains))
            choice, is_several = int(fixed.choice[member]), bool(is_pooled)
            explanations.append(
                Explanation("number", gain, gain - chance, choice=choice, test=best, is_pooled=is_several)
            )
    return explanations


def _freed(rows: FittedRows, group: Indices) -> list[tuple[int, float, float]]:
    """Return the best groups of rows, with gain and evidence if each has probabilities of its own.

    ``group`` has the number of each transition's group (n), or -1 for none. The outcomes of a group are told apart by
    their expressions. Free probabilities gain Σ K ln (K / expected). And the others, without this group, estimate
    parameters of their own, which gains score (1 - information)⁻¹ score / 2.
    """
    from scipy.special import xlogy

    used = np.flatnonzero(group >= 0)
    if not len(used):
        return []
    groups, place = np.unique(group[used], return_inverse=True)
    pairs, outcome = np.unique(
        place * np.int64(len(rows.model.expressions)) + rows.expression[used], return_inverse=True
    )
    owner = pairs // len(rows.model.expressions)
    observed, expected = (np.bincount(outcome, x[used]) for x in (rows.observed, rows.expected))
    of_group = np.bincount(owner, xlogy(observed, observed / expected), len(groups))
    n_free = np.bincount(owner, minlength=len(groups)) - 1
    best = np.argsort(n_free - of_group, kind="stable")[:_CLOSEST]
    freed = []
    for g in best.tolist():
        members = used[place == g]
        gain = float(of_group[g]) + _gain_of_others(rows, members)
        freed.append((int(groups[g]), gain, gain - max(int(n_free[g]) - 1, 0) - log(len(groups))))
    return freed


def _gain_of_others(rows: FittedRows, members: Indices) -> float:
    """Return the gain of all other rows, to second order, when the members no longer bind the parameters."""
    slopes = rows.row_slopes[members]
    score = rows.observed[members] @ slopes - rows.score
    information = (slopes * rows.expected[members, None]).T @ slopes
    rest, axes = np.linalg.eigh(np.eye(rows.rank) - information)
    # directions that only the members tell about have no gain elsewhere
    is_informed = rest > _LEAST_SHARE
    return float(((axes[:, is_informed].T @ score) ** 2 / rest[is_informed]).sum()) / 2


_LEAST = 1e-9  # smallest probability of a change that is divided by
_STEPS = 30  # of Newton's method on a line
_MOST_PLACES = 24  # outcomes of actions, beyond which they are not looked at
_MANY = 30  # parameters, beyond which they are not looked at one by one


@dataclass(frozen=True, eq=False)
class DriftTable:
    """Kinds of transitions that nothing tells apart here, with features of each kind that may depend on a contrast.

    Each feature has mean zero in every row, as it is the slope of ln probability while something else moves. The first
    are those of the parameters.
    """

    rows: FittedRows
    kind: Indices  # (n): of each transition
    features: FloatArray  # (n_kinds, k + f)
    texts: tuple[str, ...]  # the changes, which have the next features
    action: IntArray  # (g): the last features are those of outcomes of actions

    def counts(self, cell: Indices, n_cells: int, values: FloatArray) -> FloatArray:
        """Return the sums (n_cells, n_kinds) of values of transitions (n), given their cells or NONE."""
        n_kinds, used = len(self.features), cell >= 0
        keys = cell[used] * np.int64(n_kinds) + self.kind[used]
        return sums(keys, values[used], n_cells * n_kinds).reshape(n_cells, n_kinds)


def drift_table(rows: FittedRows, changes: Sequence[Change]) -> DriftTable:
    """Return the table of parameters, changes and outcomes that may depend on a variable, an action or time.

    The outcomes of an action are told apart by their places in its rows, for actions with rows of a few lengths.
    """
    row, n_rows = rows.row, len(rows.start) - 1
    keys = rows.row_class * np.int64(len(rows.model.expressions)) + rows.expression
    columns: list[FloatArray] = []
    places, actions = _places(rows)
    for is_done in [*(change.is_done for change in changes), *places]:
        done = np.bincount(row[is_done], rows.probability[is_done], n_rows)[row]
        odds = np.where((done > _LEAST) & (done < 1 - _LEAST), is_done - done, 0.0)
        place = np.unique(np.round(odds, 12), return_inverse=True)[1]
        keys = np.unique(keys, return_inverse=True)[1] * (place.max(initial=0) + 1) + place
        columns += [odds, odds / np.maximum(done * (1 - done), _LEAST)] if len(columns) < 2 * len(changes) else [odds]
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    features = np.concatenate([rows.row_slopes[first], *(column[first, None] for column in columns)], axis=1)
    texts = tuple(change.text for change in changes for _ in range(2))
    return DriftTable(rows, kind, read_only(features), texts, read_only(actions))


def _places(rows: FittedRows) -> tuple[list[BoolArray], IntArray]:
    """Return the transitions (n) at each place in the rows of each action and length, and the action.

    The last place is left out, as it follows from the others.
    """
    length = np.diff(rows.start)[rows.row]
    place = np.arange(len(rows.choice)) - rows.start[rows.row]
    action = rows.model.graph.action[rows.choice]
    keys = (action * np.int64(length.max(initial=0) + 1) + length) * (length.max(initial=0) + 1) + place
    distinct, first = np.unique(np.where(place < length - 1, keys, -1), return_index=True)
    distinct, first = distinct[distinct >= 0], first[distinct >= 0]
    if len(distinct) > _MOST_PLACES:
        return [], np.zeros(0, dtype=np.int32)
    return [keys == key for key in distinct.tolist()], action[first].astype(np.int32)


def explain_by_contrasts(table: DriftTable, contrasts: Sequence[Contrast]) -> list[Explanation]:
    """Return the best explanation by each variable and each action."""
    explanations, rows = [], table.rows
    for contrast in contrasts:
        cell, m = contrast.at(rows.choice), len(contrast.cells)
        observed, expected = (table.counts(cell, m, values) for values in (rows.observed, rows.expected))
        action = contrast.name if contrast.kind == "action" else None
        best = _best(table, observed, expected, contrast.levels, action=action)
        if best is not None:
            evidence = best.gain - best.chance - log(len(contrasts))
            explanations.append(Explanation(contrast.kind, best.gain, evidence, contrast, best.is_upper, best.subject))
    return explanations


def explain_by_early_data(table: DriftTable) -> list[Explanation]:
    """Return the explanation that the pilot, as the early part of the data, is different, or nothing without one."""
    rows, pilot = table.rows, table.rows.counts.pilot
    if pilot is None or not pilot.total:
        return []
    early = pilot.counts[rows.transition].astype(np.float64)
    visits = np.add.reduceat(early, rows.start[:-1])[rows.row]
    everything = np.zeros(len(early), dtype=np.int64)
    parts = (early, rows.observed - early, visits * rows.probability, (rows.visits - visits) * rows.probability)
    first, rest, first_expected, rest_expected = (table.counts(everything, 1, part) for part in parts)
    observed, expected = np.concatenate([rest, first]), np.concatenate([rest_expected, first_expected])
    best = _best(table, observed, expected, np.array([0.0, 1.0]))
    if best is None:
        return []
    return [Explanation("early", best.gain, best.gain - best.chance, subject=best.subject)]


class _Best(NamedTuple):
    gain: float
    chance: float
    is_upper: BoolArray  # (n_cells)
    subject: str


def _best(
    table: DriftTable, observed: FloatArray, expected: FloatArray, levels: FloatArray, *, action: str | None = None
) -> _Best | None:
    """Return the pattern over cells, and the freedom with it, that gain most, for counts (n_cells, n_kinds)."""
    features, totals = table.features, expected.sum(axis=1)
    if np.count_nonzero(totals) < 2:
        return None
    scores = observed @ features
    informations = np.stack([_information(features, weights) for weights in expected])
    weights, is_upper = _patterns(levels, totals)
    freedoms = list(_freedoms(table, scores.sum(axis=0), informations.sum(axis=0), action))
    lines = []
    for q, pattern in enumerate(weights):
        own, cross = (np.tensordot(power, informations, 1) for power in (pattern**2, pattern))
        lines += [(q, freedom.line(pattern @ scores, own, cross)) for freedom in freedoms]
    if not lines:
        return None
    q, line = max(lines, key=lambda each: each[1].gain - each[1].chance)
    along = weights[q][:, None] * (features @ line.direction) - features @ line.shift
    gain = _gain(observed.ravel(), along[expected > 0], along.ravel())
    return _Best(gain, line.chance + log(len(weights)), read_only(is_upper[q]), line.subject)


def _information(features: FloatArray, weights: FloatArray) -> FloatArray:
    used = np.flatnonzero(weights)
    information: FloatArray = (features[used] * weights[used, None]).T @ features[used]
    return information


def _patterns(levels: FloatArray, totals: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return numbers for cells, (q, n_cells), and the cells on the upper side that words speak of, likewise.

    They are a line through the levels, each way to cut the cells in two, and each cell against the others.
    """
    m = len(levels)
    steps = np.tri(m, m, -1).T[: m - 1].astype(np.bool_)  # cell j + 1 and those above
    if m == 2:
        return _centred(steps.astype(np.float64), totals), steps
    single = np.eye(m, dtype=np.bool_)[1 : m - 1]
    weights = _centred(np.concatenate([levels[None, :], steps, single]).astype(np.float64), totals)
    return weights, np.concatenate([weights[:1] > 0, steps, single])


def _centred(weights: FloatArray, totals: FloatArray) -> FloatArray:
    """Return patterns with mean zero and size one where there are data."""
    share = totals / totals.sum()
    shifted = weights - (weights @ share)[:, None]
    size = np.sqrt(shifted**2 @ share)[:, None]
    centred: FloatArray = np.divide(shifted, size, out=np.zeros_like(shifted), where=size > 0)
    return centred


class _Direction(NamedTuple):
    """A line along which probabilities may change."""

    gain: float  # to second order
    chance: float  # what chance may gain on as many lines
    direction: FloatArray  # (k + f), of features, times the pattern
    shift: FloatArray  # (k + f): what the parameters do meanwhile
    subject: str


class _Freedom(NamedTuple):
    """Something that may depend on a pattern, and what is estimated besides."""

    directions: FloatArray  # (k + f, r), of features
    besides: FloatArray  # (k + f, s), of features: with information one each, and none in common
    score: FloatArray  # (s), of what is estimated besides
    subject: str
    n_alike: int  # things that may depend on it likewise

    def line(self, score: FloatArray, own: FloatArray, cross: FloatArray) -> _Direction:
        """Return the line of largest gain, given the score (k + f) and the information of pattern times features.

        ``own`` is the information about these, and ``cross`` that in common with the features without the pattern.
        """
        shared = self.directions.T @ cross @ self.besides
        left = self.directions.T @ score - shared @ self.score
        best, gain, n_free = _efficient(left, self.directions.T @ own @ self.directions, shared)
        chance = float(max(n_free - 1, 0)) + log(self.n_alike)
        return _Direction(gain, chance, self.directions @ best, self.besides @ (best @ shared), self.subject)


def _freedoms(table: DriftTable, score: FloatArray, information: FloatArray, action: str | None) -> Iterator[_Freedom]:
    """Yield the parts of a model that may depend on a contrast, parameters, changes and outcomes of actions.

    The parameters are freed together and one by one. For an action, the probabilities of changes and of its own
    outcomes may be others than the model says. For all else, they may be others anyway, so that a variable is not
    blamed for what is the same at all its values.
    """
    rows, n = table.rows, table.features.shape[1]
    k, names, places = rows.rank, rows.model.space.names, n - len(table.action)
    unit = np.eye(n)

    def freedom(directions: FloatArray, subject: str, n_alike: int, *, has_main: bool) -> _Freedom:
        both = np.concatenate([unit[:, :k], directions], axis=1) if has_main else unit[:, :k]
        besides = both @ unit_axes(both.T @ information @ both)
        return _Freedom(directions, besides, besides.T @ score, subject, n_alike)

    single = np.linalg.pinv(rows.axes) if 1 < k <= _MANY else np.zeros((k, 0))
    n_alike = single.shape[1] + len(table.texts)
    if k:
        yield freedom(unit[:, :k], names[0] if len(names) == 1 else "", 1, has_main=False)
    for name, axis in zip(names, single.T, strict=False):
        yield freedom(unit[:, :k] @ axis[:, None], name, n_alike, has_main=False)
    for i, text in enumerate(table.texts):
        yield freedom(unit[:, [k + i]], text, n_alike, has_main=action is None)
    is_of_action = [action in (None, rows.model.graph.action_names[a]) for a in table.action]
    if any(is_of_action):
        yield freedom(unit[:, places:][:, is_of_action], "", 1, has_main=action is None)


def _efficient(score: FloatArray, own: FloatArray, cross: FloatArray) -> tuple[FloatArray, float, int]:
    """Return the direction of some features that gains most, its gain to second order, and in how many it is free.

    ``own`` is the information about them, and ``cross`` that in common with what is estimated besides, whose own is the
    unit matrix: what is left is own - cross crossᵀ, the variance of the efficient score.
    """
    size, axes = np.linalg.eigh(own)
    kept = size > 1e-12 * max(float(size.max(initial=0)), UNDERFLOW)
    unit = axes[:, kept] / np.sqrt(size[kept])
    shared = unit.T @ cross
    # own - cross crossᵀ, in coordinates in which own is the unit matrix
    share, turn = np.linalg.eigh(np.eye(unit.shape[1]) - shared @ shared.T)
    is_left = share > _LEAST_SHARE
    unit = unit @ turn[:, is_left] / np.sqrt(share[is_left])
    along = unit.T @ score
    return unit @ along, float(along @ along) / 2, len(along)


def _gain(observed: FloatArray, possible: FloatArray, along: FloatArray) -> float:
    """Return the largest Σ observed ln(1 + step · along) over steps that leave all possible ones at least zero."""
    low, high = -1 / max(float(possible.max()), 1e-9), -1 / min(float(possible.min()), -1e-9)
    along, observed = along[observed > 0], observed[observed > 0]
    step, best = min(1.0, 0.9 * high), 0.0
    for _ in range(_STEPS):
        factor = 1 + step * along
        best = max(best, float(observed @ np.log(factor)))
        relative = along / factor
        slope, curvature = float(observed @ relative), float(observed @ relative**2)
        if curvature <= 0 or slope**2 < 1e-6 * curvature:
            break
        # Newton's step, kept inside of where all probabilities are positive
        step = min(max(step + slope / curvature, (step + 9 * low) / 10), (step + 9 * high) / 10)
    return best
