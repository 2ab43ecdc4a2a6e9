"""Storm's expression trees as formulas of our own, which are calculated exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from plumdp.base.errors import ModelError
from plumdp.model.expressions.polynomial import MAX_DEGREE
from plumdp.model.language.formula import Formula, literal, variable
from plumdp.model.readers.storm_messages import OWN_PARAMETER

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
