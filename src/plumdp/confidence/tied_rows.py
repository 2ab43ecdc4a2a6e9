"""Which rows of a model are tied, and what a visit of one can come out as.

Rows with the same expressions, in whatever order, are one class, and all their visits count together. Successors with
the same expression are one outcome, and so are all successors with known probabilities: the outcomes of a class exclude
each other, and their probabilities sum to one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.model.check import row_classes
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.graph import IntArray, read_only
from plumdp.model.parametric import ParametricMDP

KNOWN = NONE = -1


@dataclass(frozen=True, eq=False)
class TiedRows:
    """Which transitions are which outcome of which class of rows; rows without a parameter are in no class."""

    outcomes: tuple[Polynomial, ...]  # (n_outcomes)
    first: IntArray  # (n_classes + 1)
    expression: IntArray  # (n_outcomes): the expression it is a multiple of, or KNOWN
    multiple: IntArray  # (n_outcomes)
    class_of_choice: IntArray  # (n_choices), or NONE
    outcome_of_transition: IntArray  # (n_transitions), or NONE

    def pool(self, counts: TransitionCounts) -> tuple[CountArray, CountArray]:
        """Return the visits of each class and how often each outcome was seen."""
        trials, successes = np.zeros(len(self.first) - 1, dtype=np.int64), np.zeros(len(self.outcomes), dtype=np.int64)
        of_choice, of_transition = self.class_of_choice >= 0, self.outcome_of_transition >= 0
        np.add.at(trials, self.class_of_choice[of_choice], counts.visits[of_choice])
        np.add.at(successes, self.outcome_of_transition[of_transition], counts.counts[of_transition])
        return read_only(trials), read_only(successes)


def find_tied_rows(model: ParametricMDP) -> TiedRows:
    """Return the classes of rows with the same unknown expressions, each as often: what is known is then the same."""
    row_of_choice, representative = row_classes(model)
    first_transition, is_unknown = model.graph.first_transition, model.expressions.is_unknown.tolist()
    length = np.diff(first_transition)
    rows = [model.expression[first_transition[c] : first_transition[c + 1]].tolist() for c in representative]
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
    start = (np.cumsum(length[representative]) - length[representative])[row_of_choice]
    same = np.arange(model.graph.n_transitions) + np.repeat(start - first_transition[:-1], length)
    kinds = [kind for of_class in classes for kind in of_class]
    return TiedRows(
        tuple(polynomial for polynomial, _, _ in kinds),
        _integers(first),
        _integers([f for _, f, _ in kinds]),
        _integers([multiple for _, _, multiple in kinds]),
        _integers([number.get(key, NONE) for key in keys])[row_of_choice],
        _integers(of_row)[same],
    )


def _outcomes(
    row: tuple[int, ...], known: Sequence[Fraction], polynomials: Sequence[Polynomial]
) -> list[tuple[Polynomial, int, int]]:
    """Return probability, expression and multiple of each outcome, given the unknown expressions and the known numbers.

    Rows sum to one as polynomials, so that rows with the same unknown expressions have the same known sum.
    """
    kinds = [
        (polynomials[f] if multiple == 1 else multiple * polynomials[f], f, multiple)
        for f, multiple in Counter(row).items()
    ]
    total = sum(known, Fraction(0))
    return [*kinds, (Polynomial(total), KNOWN, 1)] if total else kinds


def _integers(values: npt.ArrayLike) -> IntArray:
    return read_only(np.asarray(values, dtype=np.int32))
