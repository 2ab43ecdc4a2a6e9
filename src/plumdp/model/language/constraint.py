"""Linear constraints on parameters, such as ``crash <= 0.2`` or ``0.1 <= p <= 0.9``, and the models cut by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from plumdp.base.errors import ModelError
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.language.predicate import PredicateReader, did_you_mean
from plumdp.model.language.tokens import Tokens
from plumdp.model.parametric import ParametricMDP

_FUNCTIONS = ("min", "max", "mod", "pow", "floor", "ceil")


def parse_constraint(text: str, model: ParametricMDP) -> tuple[Polynomial, ...]:
    """Return polynomials that are at least zero where a constraint on the parameters of a model holds, exactly.

    >>> from plumdp import case_study
    >>> parse_constraint("0.1 <= p <= 0.9", case_study("betting:5").model)
    (Polynomial('p - 1/10'), Polynomial('-p + 9/10'))
    """
    tokens = Tokens(text)
    _require_names(tokens, model)
    names = {**model.constants, **dict(zip(model.space.names, parameters(*model.space.names), strict=True))}
    reader = PredicateReader(tokens, model, names)
    sides, symbols = [reader.polynomial()], []
    while tokens.next.kind != "end":
        symbol = tokens.take()
        if symbol.text not in ("<=", ">="):
            raise tokens.error(f"{symbol.text}: a parameter space includes its boundary; write <= or >=", symbol)
        symbols.append(symbol.text)
        sides.append(reader.polynomial())
    if not symbols:
        raise tokens.unexpected("where <= or >= is expected, as in p <= 0.2")
    return tuple(
        right - left if symbol == "<=" else left - right
        for symbol, (left, right) in zip(symbols, pairwise(sides), strict=True)
    )


def cut_model(model: ParametricMDP, constraints: Iterable[str]) -> ParametricMDP:
    """Return the model with only those parameters at which constraints hold, such as ``crash <= 0.2``.

    >>> from plumdp import case_study
    >>> cut_model(case_study("betting:5").model, ["p <= 0.6"]).space
    ParameterSpace(p in [0, 0.6])
    """
    for text in constraints:
        sides = parse_constraint(text, model)
        try:
            declared, space = model.declared_space.cut(sides), model.space.cut(sides)
        except ModelError as error:
            raise ModelError(f"{text}: {error}") from None
        if space.constraints and space.vertices == ():
            raise ModelError(
                f"{text}: no parameters are left; with it, the space would be {'; '.join(space.describe())}"
            )
        model = replace(model, declared_space=declared, space=space)
    return model


def _require_names(tokens: Tokens, model: ParametricMDP) -> None:
    """Refuse names that are not those of parameters or constants."""
    allowed = [*model.space.names, *model.constants, *_FUNCTIONS]
    for token in tokens.all:
        if token.kind == "word" and token.text not in allowed:
            names = ", ".join(model.space.names) or "none"
            near = did_you_mean(token.text, list(model.space.names))
            raise tokens.error(f"{token.text} is not a parameter of the model{near}; the parameters are {names}", token)
