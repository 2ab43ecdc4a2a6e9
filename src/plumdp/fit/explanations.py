"""Explanations of a misfit, ordered by the evidence that a change of the model would make the data more likely.

An explanation frees something that the model ties. That may be parameters of their own for some values of a state
variable, for an action, or for the early data. It may be probabilities of its own for one row, or for all rows with the
same expressions. Or it may be a number that the model fixes. Its *gain* is by how many nats the largest log-likelihood
grows (along one line, where parameters are freed: from below), with all other parameters estimated again. So a variable
that is merely correlated with the guilty one gains less than that. Its *evidence* is the gain less what the best of as
many such explanations may gain by chance, which is the logarithm of how many there are of its kind, and one nat for
each further number that it frees.

They order what to look at. They are not tests: no error is controlled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Literal, TypeAlias

import numpy as np

from plumdp.confidence.constants import FixedNumbers, number_surprises
from plumdp.confidence.contrasts import Contrast
from plumdp.fit.fitted_rows import FittedRows
from plumdp.model.graph import BoolArray, Indices

ExplanationKind: TypeAlias = Literal["variable", "action", "row", "class", "number", "early"]

_LEAST_SHARE = 1e-3  # of the information that is left without a row
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
