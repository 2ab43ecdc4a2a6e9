"""The diagnosis of a model that the data contradict, explanations ordered by evidence, and the best one in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from plumdp.confidence.constants import FixedNumbers, find_fixed_numbers
from plumdp.confidence.contrasts import Contrast
from plumdp.confidence.likelihood import best_point
from plumdp.data.counts import TransitionCounts
from plumdp.fit.drift_explanations import drift_table, explain_by_contrasts, explain_by_early_data
from plumdp.fit.explanations import Explanation, explain_by_numbers, explain_by_rows
from plumdp.fit.fitted_rows import FittedRows, fitted_rows
from plumdp.fit.model_fit import ModelFit
from plumdp.fit.residuals import Change, Residuals, cell_residuals, find_changes, observed_contrasts
from plumdp.fit.words import Side, words_for
from plumdp.model.graph import FloatArray, Indices
from plumdp.model.parametric import ParametricMDP

ADVICE = "what to try: "
_AS_GOOD = 2.0  # nats: explanations this close to the best are named with it
_LEAST = 3.0  # nats: less evidence is not worth a word
_ROUNDING = 1e-9
_ALMOST = 0.8  # of the evidence of the change that differs most
_NOTHING = (
    "no single variable, action or row stands out: the model differs from the data by a little in many places",
    f"{ADVICE}look at the residuals of plumdp check-model, from the largest on",
)

Shown = TypeVar("Shown")


@dataclass(frozen=True, eq=False)
class Examination:
    """The counts of each row beside the model's probabilities at an estimate, and explanations of the difference."""

    rows: FittedRows
    changes: tuple[Change, ...]
    contrasts: tuple[Contrast, ...]
    fixed: FixedNumbers

    @property
    def visible(self) -> tuple[Change, ...]:
        """The changes that words and pictures speak of, which are those of state variables, if there are any."""
        return _visible(self.changes)

    @property
    def is_inside(self) -> bool:
        """Whether the estimate is in the parameter space, up to rounding, or may be moved there at no loss."""
        space, point = self.rows.model.space, self.rows.point
        if self.rows.rank < space.dimension:
            return True
        rows, limits = space.inequalities
        in_box = (point >= space.lower - _ROUNDING) & (point <= space.upper + _ROUNDING)
        return bool(in_box.all() and (rows @ point <= limits + _ROUNDING).all())

    @cached_property
    def explanations(self) -> tuple[Explanation, ...]:
        """The explanations why the data do not fit, the most evident first."""
        if not len(self.rows.choice):
            return ()
        table = drift_table(self.rows, [change for change in self.changes if not change.parameter])
        explanations = [
            *explain_by_numbers(self.rows, self.fixed),  # of two that are as evident, the first is named
            *explain_by_rows(self.rows),
            *explain_by_contrasts(table, self.contrasts),
            *explain_by_early_data(table),
        ]
        return tuple(sorted(explanations, key=lambda explanation: -explanation.evidence))

    def split(self, is_inside: Indices, explanation: Explanation | None = None) -> tuple[Change, Residuals] | None:
        """Return the change that differs most where ``is_inside`` (n) is one, and its residuals outside and inside."""
        subject = "" if explanation is None else explanation.subject
        named = [change for change in self.changes if subject and change.text == subject]
        candidates = [(change, cell_residuals(self.rows, change, is_inside, 2)) for change in named or self.visible]
        return first_of_best(candidates, [float(residuals.evidence[1]) for _, residuals in candidates])


def _visible(changes: Sequence[Change]) -> tuple[Change, ...]:
    return tuple(change for change in changes if not change.parameter) or tuple(changes)


def first_of_best(changes: Sequence[Shown], evidence: Sequence[float]) -> Shown | None:
    """Return the first of some changes whose evidence is not much less than that of any.

    So the change that a variable goes up is preferred to the one that it goes down.
    """
    most = max(evidence, default=0.0)
    return next(
        (change for change, of_change in zip(changes, evidence, strict=True) if of_change >= _ALMOST * most), None
    )


def examine(model: ParametricMDP, counts: TransitionCounts, point: FloatArray) -> Examination:
    """Return the counts of each row beside the model's probabilities at a point, which is an estimate."""
    rows = fitted_rows(model, counts, point)
    is_empty = not len(rows.choice)
    changes = () if is_empty else tuple(find_changes(rows))
    contrasts = () if is_empty else tuple(observed_contrasts(rows))
    return Examination(rows, changes, contrasts, find_fixed_numbers(model))


def diagnose(
    model: ParametricMDP, counts: TransitionCounts, fit: ModelFit, *, point: FloatArray | None = None
) -> tuple[str, ...]:
    """Return a diagnosis of a model that the data contradict, the finding and what to try, in sentences.

    ``point`` is the estimate from all data, if it is known.
    """
    estimate = best_point(model, counts) if point is None else point
    return in_words(examine(model, counts, estimate if np.isfinite(estimate).all() else fit.point))


def in_words(examination: Examination) -> tuple[str, ...]:
    """Return the most evident explanation and what to try, in sentences."""
    explanations = examination.explanations
    if not explanations or explanations[0].evidence < _LEAST:
        return _NOTHING if examination.is_inside else _outside(examination)
    best = _most_telling(explanations)
    side, as_good = _side(examination, best), _as_good(explanations, best)
    words = words_for(examination.rows, examination.fixed, best, side, as_good)
    return words.finding, f"{ADVICE}{words.advice}"


def _most_telling(explanations: tuple[Explanation, ...]) -> Explanation:
    """Return the best explanation.

    An action is preferred to a class of rows with the same expressions, if it explains as much.
    """
    best = explanations[0]
    if best.kind != "class":
        return best
    return next((e for e in explanations if e.kind == "action" and e.evidence > best.evidence - _AS_GOOD), best)


def _outside(examination: Examination) -> tuple[str, ...]:
    rows = examination.rows
    point = ", ".join(f"{n} = {x:.4g}" for n, x in zip(rows.model.space.names, rows.point.tolist(), strict=True))
    return (
        f"the data fit best at {point}, which is outside of the parameter space",
        f"{ADVICE}widen the parameter space, or check the expressions",
    )


def _as_good(explanations: tuple[Explanation, ...], best: Explanation) -> list[Contrast]:
    """Return the contrasts of other variables or actions that explain as much as the best explanation does."""
    alike = [e for e in explanations if e.kind == best.kind and e is not best]
    return [e.contrast for e in alike if e.contrast is not None and e.evidence > best.evidence - _AS_GOOD]


def _side(examination: Examination, explanation: Explanation) -> Side | None:
    """Return the change that differs most on the one side of a contrast, or in the pilot, with its residuals."""
    rows = examination.rows
    if explanation.contrast is not None and explanation.cells is not None:
        cell = explanation.contrast.at(rows.choice)
        is_inside = np.where(cell >= 0, explanation.cells[cell], -1)
        split = examination.split(is_inside, explanation)
        return None if split is None else Side(*split)
    return _early_side(examination) if explanation.kind == "early" else None


def _early_side(examination: Examination) -> Side | None:
    """Return the change that differs most in the pilot from what the model says at the estimate from all data."""
    whole, pilot = examination.rows, examination.rows.counts.pilot
    assert pilot is not None
    rows = fitted_rows(whole.model, TransitionCounts(whole.model.graph, pilot.counts, "adaptive"), whole.point)
    inside = np.ones(len(rows.choice), dtype=np.int64)
    candidates = [(change, cell_residuals(rows, change, inside, 2)) for change in _visible(find_changes(rows))]
    sizes = [float(residuals.difference[1] ** 2 * residuals.observations[1]) for _, residuals in candidates]
    best = first_of_best(candidates, sizes)
    return None if best is None else Side(*best)
