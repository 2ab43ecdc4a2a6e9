"""Explanations of a misfit in words that someone who knows the process, and not the statistics, understands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plumdp.confidence.constants import ROW, FixedNumbers
from plumdp.confidence.contrasts import Contrast
from plumdp.fit.explanations import Explanation
from plumdp.fit.fitted_rows import FittedRows
from plumdp.fit.residuals import Change, Residuals
from plumdp.model.graph import BoolArray, Indices
from plumdp.model.text import cut, number_of

_LONGEST = 60  # expression that is shown


class Words(NamedTuple):
    """A finding, and advice what to try."""

    finding: str
    advice: str


class Side(NamedTuple):
    """A change, and its residuals outside and inside of the place that an explanation is about."""

    change: Change
    residuals: Residuals  # (2)


def words_for(
    rows: FittedRows, fixed: FixedNumbers, explanation: Explanation, side: Side | None, as_good: Sequence[Contrast]
) -> Words:
    """Return an explanation in words, where ``as_good`` are contrasts that explain as much."""
    if explanation.kind == "variable":
        return _of_variable(rows, explanation, side, as_good)
    if explanation.kind == "action":
        return _of_action(rows, explanation, side, as_good)
    if explanation.kind == "number":
        return _of_number(rows, fixed, explanation)
    return _of_early_data(rows, side) if explanation.kind == "early" else _of_row(rows, explanation)


def _of_variable(rows: FittedRows, explanation: Explanation, side: Side | None, as_good: Sequence[Contrast]) -> Words:
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


def _of_action(rows: FittedRows, explanation: Explanation, side: Side | None, as_good: Sequence[Contrast]) -> Words:
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


def _of_early_data(rows: FittedRows, side: Side | None) -> Words:
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


def _amount(side: Side | None, inside: str, outside: str) -> str:
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
