"""Checks a model, where each issue names the values of a state and the action, and sums it up in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from typing import Any, Literal, TypeVar

import numpy as np

from plumdp.model import kernels
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import Terms, box_range, terms_of
from plumdp.model.graph import Indices, IntArray, owners, ranges, read_only, sum_by
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import one_line

_T = TypeVar("_T")
_SLACK = 1e-12  # what the float test of a range may be off
_MAX_CORNERS = 1024
_EXAMPLES = 20  # how many offenders of one kind are named one by one


@dataclass(frozen=True)
class Issue:
    """One issue, an error that makes the model unusable, a warning that deserves a look, or a note."""

    severity: Literal["error", "warning", "note"]
    kind: str
    message: str

    def __repr__(self) -> str:
        return one_line(self, f"{self.severity}, {self.kind}: {self.message}")

    def __str__(self) -> str:
        return self.message


def validate(model: ParametricMDP) -> list[Issue]:
    """Return all issues of a model, errors first.

    Parameters
    ----------
    model
        The parametric model.

    Returns
    -------
    list of Issue
        Errors, warnings and notes.

    Examples
    --------
    >>> from plumdp import case_study
    >>> for issue in validate(case_study("betting:25").model):
    ...     print(issue.severity, issue)  # doctest: +ELLIPSIS
    note expression p + 1/500 is 1.002 at p=1 (809 more expressions leave [0, 1] too): the space is cut ...
    """
    return check_with_terms(model, terms_of(model.expressions.polynomials))


def check_with_terms(model: ParametricMDP, terms: Terms) -> list[Issue]:
    """Return all issues of a model, given the terms of its expressions."""
    number, representative = model.rows.number, model.rows.representative
    rows = number, representative[~model.is_free_row]  # free ones sum to one, with an expression for each place
    issues = [
        *_deadlocks(model),
        *_row_sums(model, terms, *rows),
        *_free_rows(model, representative[model.is_free_row]),
        *_constants(model),
        *_ranges(replace(model, expressions=model.expressions.without_free())),
        *_equal_in_row(model, *rows),
        *_ambiguous_actions(model),
        *_empty_labels(model),
    ]
    return sorted(issues, key=lambda issue: ("error", "warning", "note").index(issue.severity))


def _deadlocks(model: ParametricMDP) -> Iterator[Issue]:
    graph = model.graph
    for state in _first(np.flatnonzero(np.diff(graph.first_choice) == 0).tolist()):
        where = f"state ({graph.describe_state(state)})"
        yield Issue(
            "error", "deadlock", f"{where}: no choice is possible; give it an action that stays with probability 1"
        )
    repaired = model.labels.get("deadlock")
    if repaired is not None and repaired.any():
        example = graph.describe_state(int(np.argmax(repaired)))
        message = f"{repaired.sum()} deadlock states were given a self-loop, for example ({example})"
        yield Issue("warning", "deadlock", message)


def _row_sums(model: ParametricMDP, terms: Terms, row_class: IntArray, representative: IntArray) -> Iterator[Issue]:
    """Yield an issue for each distinct row whose sum is not exactly the polynomial 1."""
    graph, polynomials = model.graph, model.expressions.polynomials
    wrong = _wrong_rows(model, terms, representative)
    for choice in _first(wrong):
        first, last = graph.first_transition[choice], graph.first_transition[choice + 1]
        row = " + ".join(f"({polynomials[f]})" for f in model.expression[first:last]) or "nothing"
        others = int((row_class == row_class[choice]).sum()) - 1
        more = f" (and {others} more choices with the same expressions)" if others else ""
        message = f"{graph.describe_choice(choice)}: probabilities {row} sum to {_row_sum(model, choice)}, not 1{more}"
        yield Issue("error", "row sum", message)


def _free_rows(model: ParametricMDP, representative: IntArray) -> Iterator[Issue]:
    """Yield an issue unless each free expression is one place of one distinct row, which has no other expressions."""
    _, row = _rows_of(model, representative)
    n_known = len(model.expressions.polynomials)
    if not np.array_equal(np.sort(row), np.arange(n_known, n_known + model.expressions.n_free)):
        message = "the unknown probabilities of rows are not those of distinct rows, each with one for each successor"
        yield Issue("error", "free rows", message)


def _wrong_rows(model: ParametricMDP, terms: Terms, representative: IntArray) -> list[int]:
    """Return those of the choices whose probabilities do not sum to 1, in whole numbers if these are small."""
    first, row = _rows_of(model, representative)
    whole = terms.whole(int(np.diff(first).max(initial=0)))
    constant = terms.monomials.index(()) if () in terms.monomials else -1
    if whole is None or constant < 0:
        return [c for c in representative.tolist() if _row_sum(model, c) != 1]
    coefficient, denominator = whole
    start, end = terms.first[row], terms.first[row + 1]
    used = terms.term[ranges(start, end)]
    place = np.repeat(owners(first).astype(np.int64), end - start) * len(terms.monomials) + terms.monomial[used]
    places, which = np.unique(place, return_inverse=True)
    sums, (owner, monomial) = sum_by(which, coefficient[used], len(places)), np.divmod(places, len(terms.monomials))
    is_wrong = np.ones(len(representative), dtype=np.bool_)
    is_wrong[owner[(monomial == constant) & (sums == denominator)]] = False
    is_wrong[owner[(monomial != constant) & (sums != 0)]] = True
    return [int(c) for c in representative[is_wrong]]


def _row_sum(model: ParametricMDP, choice: int) -> Polynomial:
    first, last = model.graph.first_transition[choice], model.graph.first_transition[choice + 1]
    return sum((model.expressions.polynomials[f] for f in model.expression[first:last]), Polynomial(0))


def _constants(model: ParametricMDP) -> Iterator[Issue]:
    table = model.expressions
    for f in np.flatnonzero(~table.is_unknown):
        if not 0 <= table.polynomials[f].constant <= 1:
            transition = int(np.argmax(model.expression == f))
            choice = model.graph.choice_of(transition)
            message = f"{model.graph.describe_choice(choice)}: {table.polynomials[f]} is not a probability"
            yield Issue("error", "range", message)


def _ranges(model: ParametricMDP) -> Iterator[Issue]:
    """Yield an issue for expressions that leave [0, 1] somewhere in the declared space, with the point."""
    table, space = model.expressions, model.declared_space
    affine = np.flatnonzero(table.is_unknown & table.is_affine)
    rest = np.flatnonzero(~table.is_affine)
    points = _candidates(model)
    for which, severity, remedy in (
        (affine, "note", "the space is cut to where every expression is a probability"),
        (rest, "warning", "declare a smaller space, or constraints that keep it between 0 and 1"),
    ):
        low, high = box_range(table, which, space.lower, space.upper)
        suspects = which[(low < -_SLACK) | (high > 1 + _SLACK)]
        outside = _outside(model, suspects, points)
        if outside:
            f, point = outside[0]
            polynomial = table.polynomials[f]
            at = ", ".join(f"{name}={float(value):g}" for name, value in point.items() if name in polynomial.names)
            more = f" ({len(outside) - 1} more expressions leave [0, 1] too)" if len(outside) > 2 else ""
            more = " (1 more expression leaves [0, 1] too)" if len(outside) == 2 else more
            message = f"expression {polynomial} is {float(polynomial.evaluate(point)):g} at {at}{more}: {remedy}"
            yield Issue(severity, "range", message)  # type: ignore[arg-type]  # mypy widens the literals of the loop


def _candidates(model: ParametricMDP) -> list[dict[str, Fraction]]:
    """Return points where an expression is likely to leave [0, 1], corners of the declared space and some inside."""
    space = model.declared_space
    corners = list(space.vertices or ())
    if not corners and 2**space.dimension <= _MAX_CORNERS:
        corners = [dict(zip(space.names, ends, strict=True)) for ends in product(*space.bounds)]
    rng = np.random.default_rng(1)
    parts = [[Fraction(int(k), 64) for k in row] for row in rng.integers(0, 65, size=(32, space.dimension))]
    inside = [
        {
            name: low + (high - low) * part
            for name, (low, high), part in zip(space.names, space.bounds, row, strict=True)
        }
        for row in parts
    ]
    return [point for point in corners + inside if space.contains(point)]


def _outside(
    model: ParametricMDP, suspects: Indices, points: list[dict[str, Fraction]]
) -> list[tuple[int, dict[str, Fraction]]]:
    """Return the suspects that leave [0, 1] at one of the points, with that point, after an exact check."""
    if not len(suspects) or not points:
        return []
    names = model.declared_space.names
    values = model.expressions.monomial_values(np.array([[float(point[name]) for name in names] for point in points]))
    likely = []
    for block in np.array_split(suspects, 1 + len(suspects) // 10_000):
        excess = np.abs(model.expressions.coefficients[block] @ values - 0.5) - 0.5
        worst = excess.argmax(axis=1)
        likely += [(int(f), points[w]) for f, w, e in zip(block, worst, excess.max(axis=1), strict=True) if e > _SLACK]
    return [(f, p) for f, p in likely if not 0 <= model.expressions.polynomials[f].evaluate(p) <= 1]


def _equal_in_row(model: ParametricMDP, row_class: IntArray, representative: IntArray) -> Iterator[Issue]:
    """Yield an issue for rows with one unknown expression at two successors.

    A visit counts once for their sum.
    """
    graph, repeated = model.graph, []
    for choice in _choices_with_equal_expressions(model, representative):
        row = model.expression[graph.first_transition[choice] : graph.first_transition[choice + 1]].tolist()
        repeated += [(choice, f) for f in set(row) if row.count(f) > 1 and model.expressions.is_unknown[f]]
    for choice, f in _first(repeated):
        n = int((row_class == row_class[choice]).sum())
        more = f" ({n} choices like this)" if n > 1 else ""
        message = f"several successors have the probability {model.expressions.polynomials[f]}{more}"
        yield Issue("note", "equal expressions", f"{graph.describe_choice(choice)}: {message}")


def _choices_with_equal_expressions(model: ParametricMDP, representative: IntArray) -> list[int]:
    first, row = _rows_of(model, representative)
    same = np.empty(len(row), dtype=np.int32)
    if not kernels.repeated_successors(first, row, same):
        return []
    choices: list[int] = representative[np.unique(owners(first)[same != np.arange(len(row))])].tolist()
    return choices


def _rows_of(model: ParametricMDP, choices: IntArray) -> tuple[IntArray, IntArray]:
    """Return the expressions of some choices one after the other, and before them where each choice starts."""
    start, size = model.graph.first_transition[choices], np.diff(model.graph.first_transition)[choices]
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int32)
    return read_only(first), read_only(model.expression[ranges(start, start + size)])


def _ambiguous_actions(model: ParametricMDP) -> Iterator[Issue]:
    """Yield an issue for two choices of one state under one action name, which a log cannot tell apart."""
    graph = model.graph
    same = np.empty(graph.n_choices, dtype=np.int32)
    n_repeated = kernels.repeated_successors(graph.first_choice, graph.action, same)
    if n_repeated:
        is_later = same != np.arange(graph.n_choices)
        repeated = np.union1d(same[is_later], np.flatnonzero(is_later))
        message = (
            f"{graph.describe_choice(int(repeated.min()))} stands for several choices; logs cannot tell them apart"
        )
        yield Issue("warning", "ambiguous action", f"{message} ({len(repeated)} choices are concerned)")


def _empty_labels(model: ParametricMDP) -> Iterator[Issue]:
    for name, mask in model.labels.items():
        if name != "deadlock" and not mask.any():
            yield Issue("warning", "unreachable label", f'label "{name}": no reachable state has it')


def _first(items: Iterable[_T]) -> Iterator[_T]:
    return islice(items, _EXAMPLES)


def summarise(model: ParametricMDP) -> dict[str, Any]:
    """Return sizes, parameters, expressions, structure and issues of a model, ready for JSON.

    >>> from plumdp import case_study
    >>> facts = summarise(case_study("betting:25").model)
    >>> facts["states"], facts["expressions"]["total"], facts["structure"]["acyclic"]
    (3625, 1283, True)
    """
    graph, table, space = model.graph, model.expressions, model.space
    components = graph.component_sizes()
    return {
        "states": graph.n_states,
        "choices": graph.n_choices,
        "transitions": graph.n_transitions,
        "bytes": model.nbytes,
        "variables": {name: _range(values) for name, values in graph.states.items()},
        "initial_state": graph.describe_state(graph.initial_state),
        "actions": list(graph.action_names),
        "parameters": {
            name: [float(low), float(high)] for name, (low, high) in zip(space.names, space.bounds, strict=True)
        },
        "constraints": [f"{constraint} >= 0" for constraint in space.constraints],
        "expressions": {"total": len(table), "unknown": int(table.is_unknown.sum()), **_kinds(model)},
        "labels": {name: int(mask.sum()) for name, mask in model.labels.items()},
        "rewards": list(model.rewards),
        "structure": {
            "acyclic": bool(components[0] == 1),
            "components": len(components),
            "largest_component": int(components[0]),
        },
        "issues": [{"severity": i.severity, "kind": i.kind, "message": i.message} for i in validate(model)],
    }


def _kinds(model: ParametricMDP) -> dict[str, int]:
    """Return numbers about the unknown expressions: rows and probabilities of a table, or degrees of polynomials."""
    table = model.expressions
    kinds = {}
    if model.has_free_rows:
        rows = model.rows.n_choices[model.is_free_row]
        kinds = {"free": table.n_free, "free_rows": len(rows), "tied_choices": int(rows[rows > 1].sum())}
    if model.is_table:
        return kinds
    table = table.without_free()
    affine = int((table.is_unknown & table.is_affine).sum())
    return kinds | {"affine": affine, "degree": int(table.degree.max(initial=0))}


def _range(values: Any) -> list[Any]:
    if values.dtype.kind in "bU":
        return list(np.unique(values).tolist())
    return [int(values.min()), int(values.max())]
