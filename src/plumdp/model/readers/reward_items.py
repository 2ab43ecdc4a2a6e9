"""Rewards of PRISM files that depend on parameters, item by item: an action or none, a guard, and a value.

Storm's bindings name a reward structure and show its text, nothing more. So the items are cut out of that text, which
has parentheses around everything, and read once more as commands of a module, whose guards and values Storm parses.
The means that follow are compared with the rewards that Storm builds at a point.

Storm's expression trees are read as formulas of our own, which are calculated exactly.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.expressions.arrays import PolynomialArray
from plumdp.model.expressions.polynomial import MAX_DEGREE, Polynomial, polynomial
from plumdp.model.graph import IntArray
from plumdp.model.language.formula import DistinctEvaluator, Formula, literal, variable
from plumdp.model.readers.commands import Columns
from plumdp.model.readers.storm_messages import OWN_PARAMETER, reward_lines

_BLOCK = re.compile(r'(?<!")\brewards(?:\s+"([^"]*)")?(.*?)endrewards', re.DOTALL)
_MODULE = "plumdp_reads_these_rewards"


class Item(NamedTuple):
    """A reward of all states, or of the choices with an action, where a guard holds."""

    action: str | None
    guard: Formula
    value: Formula
    place: str


def reward_items(stormpy: Any, program: Any, text: str, unknown: set[str]) -> dict[str, list[Item]]:
    """Return the items of the reward structures that depend on parameters, by the names of these."""
    shown = str(program)
    found: dict[str, list[tuple[str | None, str, str]]] = {}
    places = {}
    for (name, body), line in zip(_BLOCK.findall(shown), reward_lines(text), strict=False):
        if unknown & set(re.findall(r"[A-Za-z_]\w*", body)):
            places[name] = f"line {line}: rewards" + (f' "{name}"' if name else "")
            found[name] = [_cut(item, places[name]) for item in body.split(";") if item.strip()]
    if not found:
        return {}
    commands = "\n".join(f"[] {guard} -> ({value}) : true;" for items in found.values() for _, guard, value in items)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rewards.prism"
        file.write_text(f"{_BLOCK.sub('', shown)}\nmodule {_MODULE}\n{commands}\nendmodule\n", encoding="utf-8")
        parsed = stormpy.parse_prism_program(str(file)).substitute_formulas().substitute_constants()
    read = iter(next(module for module in parsed.modules if module.name == _MODULE).commands)
    return {name: [_item(action, next(read), places[name]) for action, _, _ in items] for name, items in found.items()}


def _cut(item: str, place: str) -> tuple[str | None, str, str]:
    """Return the action of an item, if it has one, its guard and its value, as Storm writes them."""
    named = re.match(r"\s*\[(\w*)\]", item)
    action, rest = (named[1], item[named.end() :]) if named else (None, item)
    if action == "":
        raise ModelError(f"{place} depend on parameters and are given to commands without an action: name the action")
    depth = 0
    for i, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if letter == ":" and depth == 0:
            return action, rest[:i], rest[i + 1 :]
    raise ModelError(f"{place} depend on parameters in a way that is not read: {rest.strip()}")


def _item(action: str | None, command: Any, place: str) -> Item:
    shared: dict[str, Formula] = {}
    (update,) = command.updates
    guard, value = command.guard_expression, update.probability_expression
    return Item(action, formula_at(place, guard, shared), formula_at(place, value, shared), place)


def means_of(
    items: Sequence[Item],
    states: Columns,
    state_of_choice: IntArray,
    action: Sequence[str],
    parameters: Mapping[str, Polynomial],
) -> list[Polynomial]:
    """Return the reward of each choice and its state, given the name of the action of each choice."""
    means, names = [Polynomial(0)] * len(state_of_choice), np.array(action)
    for item in items:
        of_action = np.full(len(names), True) if item.action is None else names == item.action
        holds = np.asarray(DistinctEvaluator(states, parameters, state_of_choice)(item.guard))
        choices = np.flatnonzero(of_action & holds)
        calculate = DistinctEvaluator(states, parameters, state_of_choice[choices])
        try:
            values = _each(calculate(item.value), len(choices))
        except ModelError as error:
            raise ModelError(f"{item.place}: {error}") from None
        for choice, value in zip(choices.tolist(), values, strict=True):
            means[choice] = means[choice] + value
    return means


def _each(value: Any, n: int) -> Iterator[Polynomial]:
    """Yield n values that are given as a column or as one number."""
    if isinstance(value, PolynomialArray):
        return (value.table[i] for i in value.index.tolist())
    return (polynomial(each) for each in (value.tolist() if isinstance(value, np.ndarray) else [value] * n))


_OPERATORS = {
    "AND": "&", "OR": "|", "XOR": "xor", "IMPLIES": "=>", "IFF": "<=>", "NOT": "!", "ITE": "?",
    "PLUS": "+", "MINUS": "-", "TIMES": "*", "DIVIDE": "/", "POWER": "pow", "MODULO": "mod",
    "MIN": "min", "MAX": "max", "FLOOR": "floor", "CEIL": "ceil",
    "EQUAL": "=", "NOT_EQUAL": "!=", "LESS": "<", "LESS_OR_EQUAL": "<=", "GREATER": ">", "GREATER_OR_EQUAL": ">=",
}  # fmt: skip


def formula_at(place: str, expression: Any, shared: dict[str, Formula]) -> Formula:
    """Return Storm's expression tree as ours, or refuse it with its place."""
    try:
        return formula(expression, shared)
    except ModelError as error:
        raise ModelError(f"{place}: {error}") from None


def formula(expression: Any, shared: dict[str, Formula]) -> Formula:
    """Return Storm's expression tree as ours, with equal subtrees as one node, so that each is evaluated once."""
    text = f"{expression} : {expression.type}"
    if text not in shared:
        if expression.is_function_application:
            operands = tuple(formula(expression.get_operand(i), shared) for i in range(expression.arity))
            operator = _operator(expression)
            if operator == "pow" and _is_large(operands[1]):
                raise ModelError(f"{expression}: the exponent is too large to calculate with")
            shared[text] = Formula(operator, operands)
        elif expression.is_variable():
            shared[text] = variable(expression.get_identifier())
        elif expression.has_boolean_type():
            shared[text] = literal(bool(expression.evaluate_as_bool()))
        elif expression.has_integer_type():
            shared[text] = literal(int(expression.evaluate_as_int()))
        else:
            shared[text] = literal(Fraction(str(expression.evaluate_as_rational())))
    return shared[text]


def _operator(expression: Any) -> str:
    try:
        return _OPERATORS[expression.operator.name]
    except (ValueError, LookupError):  # a logarithm, for one, has no name in stormpy
        raise ModelError(f"{expression} is not calculated exactly; {OWN_PARAMETER}") from None


def _is_large(exponent: Formula) -> bool:
    """Return whether an exponent is beyond all that polynomials have, as Storm would calculate such powers."""
    value = exponent.value
    return isinstance(value, int | Fraction) and not -MAX_DEGREE <= value <= MAX_DEGREE
