"""Evidence of rows with hidden paths: likelihoods with them, and bets on their outcomes.

Bets are placed on what is seen, the outcomes of rows, as on those of any class. They leave half-spaces of the
parameters and of the probabilities of these outcomes, which are polynomials of the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.bets import HalfSpace
from plumdp.confidence.estimates import Law
from plumdp.confidence.likelihood_table import LikelihoodTable, PathRows
from plumdp.confidence.path_likelihood import PathLevelSet, path_level
from plumdp.data.counts import TransitionCounts
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.graph import FloatArray, read_only


@dataclass(frozen=True, eq=False)
class LiftedConstraints:
    """The points in half-spaces ``rows @ (point, expressions at the point) <= offsets``, rounded outward."""

    rows: FloatArray  # (m, n_parameters + n_expressions)
    offsets: FloatArray  # (m)
    texts: tuple[str, ...]  # (m): the origin of each half-space, in words
    error: float
    polynomials: tuple[Polynomial, ...]  # (n_expressions)
    intervals: None = None

    def inequalities(self, names: tuple[str, ...]) -> list[tuple[Polynomial, float, str]]:
        """Return polynomials that are at most a number, exactly, and their words."""
        terms = [*parameters(*names), *self.polynomials]
        found = []
        for row, offset, text in zip(self.rows.tolist(), self.offsets.tolist(), self.texts, strict=True):
            parts = (Fraction(weight) * term for weight, term in zip(row, terms, strict=True) if weight)
            found.append((sum(parts, Polynomial(0)), offset, text))
        return found

    def half_spaces(self, names: tuple[str, ...]) -> tuple[()]:
        """Return none, as they are not affine in the parameters."""
        return ()

    def widened(self, by: float) -> None:
        """Return None: nothing is proved for rows that are off."""


@dataclass(frozen=True, eq=False)
class PathEvidence:
    """Rows with hidden paths, data, the law of the space, and the point at which the data are most likely."""

    paths: PathRows
    counts: TransitionCounts
    space: Law
    near: FloatArray
    error: float  # of the likelihoods

    @property
    def bet_on(self) -> tuple[LikelihoodTable, Law, FloatArray]:
        """The table with outcomes as parameters, the law of the space, and an estimate, for bets."""
        table, (mean, precision) = self.paths.bets, self.space
        law = Law(table.lifted(mean), np.pad(precision, (0, len(table.names) - len(mean))))
        return table, law, table.lifted(self.near)

    @property
    def likelihoods(self) -> list[PathLevelSet]:
        """The likelihood of each block of parameters that rows with hidden paths are about, in equal parts."""
        paths, (seen, hidden) = self.paths, self.paths.pool(self.counts.seen)
        blocks = [(is_about, is_about[paths.visit[paths.row]]) for _, is_about in paths.table.blocks]
        blocks = [(is_about, is_hidden) for is_about, is_hidden in blocks if is_hidden.any()]
        part = equal_parts(self.error, len(blocks))  # whether or not data were seen of them
        return [
            path_level(
                paths, np.where(is_about, seen, 0.0), np.where(is_hidden, hidden, 0.0), self.near, self.space, part
            )
            for is_about, is_hidden in blocks
            if hidden[is_hidden].any()
        ]

    def constraints(self, half_spaces: Sequence[HalfSpace], error: float) -> Sequence[PathLevelSet | LiftedConstraints]:
        """Return the likelihoods, and the half-spaces that bets on the table of ``bet_on`` left."""
        table = self.paths.bets
        assert table.lifts is not None
        rows = np.array([each.row for each in half_spaces], dtype=np.float64).reshape(-1, len(table.names))
        offsets = np.array([each.offset for each in half_spaces], dtype=np.float64)
        texts = tuple(each.text for each in half_spaces)
        lifted = LiftedConstraints(read_only(rows), read_only(offsets), texts, error, table.lifts.polynomials)
        return [*self.likelihoods, lifted]
