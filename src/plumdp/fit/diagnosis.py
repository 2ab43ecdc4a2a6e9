"""The diagnosis of a model that the data contradict, explanations ordered by evidence, and the best one in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from plumdp.base.vocabulary import ToTry
from plumdp.confidence.constants import ROW, FixedNumbers, find_fixed_numbers
from plumdp.confidence.contrasts import Contrast
from plumdp.confidence.likelihood import best_point
from plumdp.data.counts import TransitionCounts
from plumdp.fit.explanations import (
    Explanation,
    drift_table,
    explain_by_contrasts,
    explain_by_early_data,
    explain_by_numbers,
    explain_by_rows,
)
from plumdp.fit.fit_record import ModelFit
from plumdp.fit.residual_counts import Residuals
from plumdp.fit.residuals import (
    Change,
    FittedRows,
    cell_residuals,
    find_changes,
    fitted_rows,
    observed_contrasts,
)
from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import cut, number_of

_AS_GOOD = 2.0  # nats: explanations this close to the best are named with it
_LONGEST = 60  # expression that is shown
_LEAST = 3.0  # nats: less evidence is not worth a word
_ROUNDING = 1e-9
_ALMOST = 0.8  # of the evidence of the change that differs most
_NOTHING = (
    "no single variable, action or row stands out: the model differs from the data by a little in many places",
    ToTry.of("look at the residuals of plumdp check-model, from the largest on"),
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
    return words.finding, ToTry.of(words.advice)


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
        ToTry.of("widen the parameter space, or check the expressions"),
    )


def _as_good(explanations: tuple[Explanation, ...], best: Explanation) -> list[Contrast]:
    """Return the contrasts of other variables or actions that explain as much as the best explanation does."""
    alike = [e for e in explanations if e.kind == best.kind and e is not best]
    return [e.contrast for e in alike if e.contrast is not None and e.evidence > best.evidence - _AS_GOOD]


def _side(examination: Examination, explanation: Explanation) -> ResidualContrast | None:
    """Return the change that differs most on the one side of a contrast, or in the pilot, with its residuals."""
    rows = examination.rows
    if explanation.contrast is not None and explanation.cells is not None:
        cell = explanation.contrast.at(rows.choice)
        is_inside = np.where(cell >= 0, explanation.cells[cell], -1)
        split = examination.split(is_inside, explanation)
        return None if split is None else ResidualContrast(*split)
    return _early_side(examination) if explanation.kind == "early" else None


def _early_side(examination: Examination) -> ResidualContrast | None:
    """Return the change that differs most in the pilot from what the model says at the estimate from all data."""
    whole, pilot = examination.rows, examination.rows.counts.pilot
    assert pilot is not None
    rows = fitted_rows(whole.model, TransitionCounts(whole.model.graph, pilot.counts, "adaptive"), whole.point)
    inside = np.ones(len(rows.choice), dtype=np.int64)
    candidates = [(change, cell_residuals(rows, change, inside, 2)) for change in _visible(find_changes(rows))]
    sizes = [float(residuals.difference[1] ** 2 * residuals.observations[1]) for _, residuals in candidates]
    best = first_of_best(candidates, sizes)
    return None if best is None else ResidualContrast(*best)


class Words(NamedTuple):
    """A finding, and advice what to try."""

    finding: str
    advice: str


class ResidualContrast(NamedTuple):
    """A change, and its residuals outside and inside of the place that an explanation is about."""

    change: Change
    residuals: Residuals  # (2)


def words_for(
    rows: FittedRows,
    fixed: FixedNumbers,
    explanation: Explanation,
    side: ResidualContrast | None,
    as_good: Sequence[Contrast],
) -> Words:
    """Return an explanation in words, where ``as_good`` are contrasts that explain as much."""
    if explanation.kind == "variable":
        return _of_variable(rows, explanation, side, as_good)
    if explanation.kind == "action":
        return _of_action(rows, explanation, side, as_good)
    if explanation.kind == "number":
        return _of_number(rows, fixed, explanation)
    return _of_early_data(rows, side) if explanation.kind == "early" else _of_row(rows, explanation)


def _of_variable(
    rows: FittedRows, explanation: Explanation, side: ResidualContrast | None, as_good: Sequence[Contrast]
) -> Words:
    contrast, cells = explanation.contrast, explanation.cells
    assert contrast is not None
    assert cells is not None
    what, subject = _freed(rows, explanation)
    short, where = _places(rows, contrast, cells)
    either = _either([other.name for other in as_good])
    finding = f"the data fit {what} where {short}{either}{_amount(side, where, 'elsewhere')}"
    name = contrast.name.partition(" = ")[0]
    advice = f"let {subject} depend on {name}, such as with one value {where} and another elsewhere"
    return Words(finding, f"{advice}; or add a state variable that matters there and that {name} only stands for")


def _of_action(
    rows: FittedRows, explanation: Explanation, side: ResidualContrast | None, as_good: Sequence[Contrast]
) -> Words:
    assert explanation.contrast is not None
    name = explanation.contrast.name
    what, subject = _freed(rows, explanation)
    either = _either([repr(other.name) for other in as_good])
    amount = _amount(side, f"under {name!r}", "under other actions")
    finding = f"the data fit {what} under action {name!r}{either} than under other actions{amount}"
    parameter = f"a {subject}" if subject in rows.model.space.names else "parameters"
    return Words(finding, f"give action {name!r} {parameter} of its own, or check the expressions in its rows")


def _of_row(rows: FittedRows, explanation: Explanation) -> Words:
    """Return the words for one row, or for a class of rows with an example."""
    graph, table = rows.model.graph, rows.model.expressions
    is_class, member = explanation.kind == "class", np.flatnonzero(rows.choice == explanation.choice)
    observed, visits, n_rows = rows.observed[member], float(rows.visits[member[0]]), 1
    if is_class:
        alike = np.flatnonzero(rows.row_class == rows.row_class[member[0]])
        n_rows = len(np.unique(rows.choice[alike]))
        observed = rows.observed[alike].reshape(n_rows, -1).sum(axis=0)
        visits = float(observed.sum())
    worst = int(np.argmax(np.abs(observed - visits * rows.probability[member])))
    t = int(rows.transition[member[worst]])
    successor = f"successor ({graph.describe_state(int(graph.successor[t]))})"
    expression = cut(str(table.polynomials[rows.model.expression[t]]), _LONGEST)
    says = f"the model says {rows.probability[member[worst]]:.3g} for {successor} at the best parameters"
    seen = f"seen {observed[worst]:,.0f} of {visits:,.0f} times"
    where = graph.describe_choice(explanation.choice)
    if is_class:
        finding = (
            f"{n_rows:,} rows with the same expressions, such as {where}: {says} ({expression}), {seen} in all of them"
        )
        return Words(finding, f"check the expression {expression} of these rows")
    advice = "check this row: whether its expressions are right, and whether something that is not in the state matters"
    return Words(f"{where}: {says} ({expression}), {seen}", advice)


def _of_number(rows: FittedRows, fixed: FixedNumbers, explanation: Explanation) -> Words:
    """Return the words for a number that the model fixes, in one row or in several."""
    graph, counts = rows.model.graph, rows.counts
    members = (
        np.flatnonzero(fixed.pooled == explanation.test) if explanation.is_pooled else np.array([explanation.test])
    )
    i = int(members[0])
    t, number = int(fixed.transition[i]), fixed.numbers[fixed.number[i]]
    seen, trials = counts.counts[fixed.transition[members]].sum(), fixed.trials(counts)[members].sum()
    where = (
        f"{graph.describe_choice(int(fixed.choice[i]))}, successor ({graph.describe_state(int(graph.successor[t]))})"
    )
    several = f"{len(members):,} rows with the same fixed numbers together, such as {where}"
    says = f"the model says {float(number):.4g}"
    if fixed.group[i] != ROW:
        says += f" of the visits of {number.denominator} successors with the same expression"
    finding = f"{several if explanation.is_pooled else where}: {says}, seen {seen:,} of {trials:,} times"
    return Words(finding, "check this number, or make it a parameter")


def _of_early_data(rows: FittedRows, side: ResidualContrast | None) -> Words:
    pilot = rows.counts.pilot
    assert pilot is not None
    later = rows.counts.total - pilot.total
    finding = (
        f"the data of the pilot ({number_of(pilot.total, 'step')}) fit other parameters than the {later:,} after it"
    )
    finding += _amount(side, "in the pilot", "")
    return Words(finding, "find out what changed meanwhile, and leave out the data from before")


def _freed(rows: FittedRows, explanation: Explanation) -> tuple[str, str]:
    """Return the part of the model that the data fit otherwise, and the part that should be free."""
    names = rows.model.space.names
    name = names[0] if len(names) == 1 else explanation.subject
    if name in names:
        return f"another {name}", name
    return ("other parameters", "the parameters") if rows.rank else ("other probabilities", "the probabilities")


def _places(rows: FittedRows, contrast: Contrast, cells: BoolArray) -> tuple[str, str]:
    """Return the values of a variable that cells stand for, in a short and in a long form.

    These are such as "money is large", and "from money = 17 on".
    """
    inside = np.flatnonzero(cells)
    if len(inside) == 1 or contrast.name not in rows.model.graph.states:
        cell_names = " or ".join(contrast.cells[j] for j in inside.tolist())
        return cell_names, f"where {cell_names}"
    values = _values_in(rows, contrast, inside)
    if inside[-1] == len(cells) - 1:
        return f"{contrast.name} is large", f"from {contrast.name} = {values.min():g} on"
    return f"{contrast.name} is small", f"up to {contrast.name} = {values.max():g}"


def _values_in(rows: FittedRows, contrast: Contrast, cells: Indices) -> Indices:
    graph = rows.model.graph
    choices = np.flatnonzero(np.isin(contrast.cell, cells))
    values: Indices = graph.states[contrast.name][graph.state_of_choice()[choices]]
    return values


def _amount(side: ResidualContrast | None, inside: str, outside: str) -> str:
    """Return the difference of a change's probability from the model's, inside and outside, or nothing."""
    if side is None or not side.residuals.observations[1]:
        return ""
    difference, observations = side.residuals.difference, side.residuals.observations
    amount = f": {inside}, the probability that {side.change.text} is {_off(difference[1])} ({_seen(observations[1])})"
    if observations[0]:
        amount += f", and {outside} {_off(difference[0], 'it')} ({_seen(observations[0])})"
    return amount


def _off(difference: float, what: str = "what the model says") -> str:
    size = f"{abs(difference):.3f}" if abs(difference) >= 0.001 else f"{abs(difference):.1g}"
    return f"{size} {'above' if difference > 0 else 'below'} {what}"


def _seen(observations: float) -> str:
    return number_of(round(float(observations)), "observation")


def _either(names: Sequence[str]) -> str:
    """Return other names that would do as well, in parentheses, or nothing."""
    return f" (or {' or '.join(names)}: the data do not tell these apart)" if names else ""
