"""Finds the tied rows of a model, which are rows with the same expressions, and their outcomes.

Rows with the same expressions, in whatever order, are one class, and all their visits count together. Successors with
the same expression are one outcome, and so are all successors with known probabilities. So the outcomes of a class
exclude each other, and their probabilities sum to one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.graph import IntArray, read_only, sum_by
from plumdp.model.parametric import ParametricMDP, RowClasses

KNOWN = NONE = -1


@dataclass(frozen=True, eq=False)
class TiedRows:
    """The classes of tied rows, their outcomes and their transitions; rows without a parameter are in no class."""

    outcomes: tuple[Polynomial, ...]  # (n_outcomes)
    first: IntArray  # (n_classes + 1)
    expression: IntArray  # (n_outcomes): the expression that the outcome is a multiple of, or KNOWN
    multiple: IntArray  # (n_outcomes)
    rows: RowClasses
    class_of_row: IntArray  # (n_rows), or NONE
    outcome_of_place: IntArray  # (n_places), or NONE

    @property
    def class_of_choice(self) -> IntArray:
        """The class of each choice (n_choices), or NONE."""
        return read_only(self.class_of_row[self.rows.number])

    def pool(self, counts: TransitionCounts) -> tuple[CountArray, CountArray]:
        """Return the visits of each class and how often each outcome was seen."""
        by_row, has_class = self.rows.sum_by_row(self.rows.sum_by_place(counts.counts)), self.class_of_row >= 0
        trials = sum_by(self.class_of_row[has_class], by_row[has_class], len(self.first) - 1)
        return trials, self.by_outcome(counts.counts)

    def by_outcome(self, counts: CountArray) -> CountArray:
        """Return the sums (n_outcomes) of whole numbers on transitions."""
        by_place, has_outcome = self.rows.sum_by_place(counts), self.outcome_of_place >= 0
        return sum_by(self.outcome_of_place[has_outcome], by_place[has_outcome], len(self.outcomes))


def find_tied_rows(model: ParametricMDP) -> TiedRows:
    """Return the classes of rows with the same unknown expressions, each as often, so that known numbers agree too."""
    model.expressions.require_polynomials()
    distinct, is_unknown = model.rows, model.expressions.is_unknown.tolist()
    places, starts = model.expression[distinct.transition].tolist(), distinct.first.tolist()
    rows = [places[start:end] for start, end in pairwise(starts)]
    keys = [tuple(sorted(f for f in row if is_unknown[f])) for row in rows]
    polynomials = model.expressions.polynomials
    known = dict(zip(keys, ([f for f in row if not is_unknown[f]] for row in rows), strict=True))
    number = {key: c for c, key in enumerate(key for key in known if key)}
    classes = [_outcomes(key, [polynomials[f].constant for f in known[key]], polynomials) for key in number]
    first = np.cumsum([0, *map(len, classes)])
    place = [{f: first[c] + i for i, (_, f, _) in enumerate(kinds)} for c, kinds in enumerate(classes)]
    of_row = [
        place[number[key]].get(f if is_unknown[f] else KNOWN, NONE) if key else NONE
        for row, key in zip(rows, keys, strict=True)
        for f in row
    ]
    kinds = [kind for of_class in classes for kind in of_class]
    return TiedRows(
        tuple(polynomial for polynomial, _, _ in kinds),
        integers(first),
        integers([f for _, f, _ in kinds]),
        integers([multiple for _, _, multiple in kinds]),
        distinct,
        integers([number.get(key, NONE) for key in keys]),
        integers(of_row),
    )


def _outcomes(
    row: tuple[int, ...], known: Sequence[Fraction], polynomials: Sequence[Polynomial]
) -> list[tuple[Polynomial, int, int]]:
    """Return probability, expression and multiple of each outcome, given the unknown expressions and the known numbers.

    Rows sum to one as polynomials, so that rows with the same unknown expressions have known numbers with the same sum.
    """
    kinds = [
        (polynomials[f] if multiple == 1 else multiple * polynomials[f], f, multiple)
        for f, multiple in Counter(row).items()
    ]
    total = sum(known, Fraction(0))
    return [*kinds, (Polynomial(total), KNOWN, 1)] if total else kinds


def integers(values: npt.ArrayLike) -> IntArray:
    """Return whole numbers as a read-only array."""
    return read_only(np.asarray(values, dtype=np.int32))
