"""Properties in the PRISM language, read as objectives on a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from plumdp.base.errors import ModelError, Option, require_kind
from plumdp.model.graph import read_only
from plumdp.model.language.predicate import NamedModel, PredicateReader, parse_predicate
from plumdp.model.language.tokens import OPERATOR, Token, Tokens
from plumdp.model.objective import Direction, Nature, Objective, Reach, Reward, digest, is_objective
from plumdp.model.parametric import RewardStructure

__all__ = ["as_objective", "as_objectives", "parse_predicate", "parse_property"]

Quantifier: TypeAlias = tuple[Direction, Nature | None]

_QUANTIFIERS: dict[str, Quantifier] = {
    "max": ("max", None),
    "min": ("min", None),
    "maxmin": ("max", "robust"),
    "minmax": ("min", "robust"),
    "maxmax": ("max", "optimistic"),
    "minmin": ("min", "optimistic"),
}
_BOUNDS = ("<=", "<", "=", "[", ">=", ">", "{")  # what may be between a temporal operator and its formula


def parse_property(text: str, model: NamedModel) -> Objective:
    """Return the objective that a PRISM property asks for.

    ``Pmax=? [ … ]`` and ``Pmin=?`` take ``F b``, ``G a``, ``X b`` and ``a U b``, with step bounds such as ``F<=10 b``.
    ``R{"name"}max=? [ … ]`` and ``min`` take ``F b``, ``C<=k``, ``C`` and the discounted ``C{0.9}`` (in Storm's words
    ``Cdiscount=0.9``). In ``Pmaxmin=?`` the first word is the agent's direction, the second nature's.

    >>> from plumdp import ParameterSpace, explore
    >>> from plumdp.model.language.property import parse_property
    >>> def step(state):
    ...     return {"go": [(1, state._replace(x=min(state.x + 1, 3)))]}
    >>> model = explore(step, {"x": 0}, space=ParameterSpace.unit("p"), labels={"odd": lambda s: s.x % 2 == 1})
    >>> objective = parse_property('Pmaxmin=? [ !"odd" U<=5 x=2 ]', model)
    >>> objective.target, objective.steps, objective.direction, objective.nature
    (array([False, False,  True, False]), (0, 5), 'max', 'robust')
    """
    require_kind(text, str, "parse_property takes the text of a property, such as 'Pmax=? [ F \"goal\" ]', first")
    tokens = Tokens(text)
    if tokens.next.kind == "end":
        raise ModelError('the property is empty; write for example Pmax=? [ F "goal" ]')
    if tokens.next.kind == "quoted" and tokens.all[1].text == ":":
        tokens.index = 2  # a name, as in a file of properties
    try:
        objective = _operator(PredicateReader(tokens, model))
    except RecursionError:
        raise ModelError("this property has too many parentheses inside each other; leave some out") from None
    tokens.accept(";")
    tokens.expect_end("property")
    return replace(objective, text=text.strip())


def as_objective(objective: Objective | str, model: NamedModel) -> Objective:
    """Return an objective, or the one that a text asks of the model."""
    if isinstance(objective, str):
        return parse_property(objective, model)
    if not is_objective(objective):
        shown = type(objective).__name__
        raise ModelError(
            f"give a property such as 'Pmax=? [ F \"goal\" ]', a Reach or a Reward as objective, not {shown}"
        )
    return objective


def as_objectives(objectives: Sequence[Objective | str], model: NamedModel) -> tuple[Objective, ...]:
    """Return objectives, or those that texts ask of the model.

    The same question is refused if it is asked twice, however it is written.
    """
    if isinstance(objectives, str):
        raise ModelError(f"objectives={objectives!r}: give a list of objectives, even if there is only one")
    asked = tuple(as_objective(objective, model) for objective in objectives)
    digests: set[str] = set()
    for objective in asked:
        what = digest(objective)
        if what in digests:
            raise ModelError(f"{objective.text or 'an objective without a text'}: this is asked twice; ask it once")
        digests.add(what)
    return asked


def _operator(reader: PredicateReader) -> Objective:
    tokens, first = reader.tokens, reader.tokens.take()
    match = OPERATOR.fullmatch(first.text)
    if match is None or match[1] not in ("P", "R"):
        raise _no_property(tokens, first, match[1] if match else first.text)
    reward = _reward(reader) if match[1] == "R" else None
    quantifier = _quantifier(reader, first, match[1], match[2])
    tokens.expect("[")
    objective = _content(reader, quantifier, reward)
    if tokens.next.text == "{":
        raise tokens.refused(tokens.next)
    tokens.expect("]")
    return objective


def _no_property(tokens: Tokens, first: Token, name: str) -> ModelError:
    if name in ("S", "T", "LRA", "multi", "filter") or (name in ("E", "A") and tokens.next.text == "["):
        return tokens.refused(first, name)
    return tokens.error(f"{name} starts no property: a formula has no value; ask for example Pmax=? [ F … ]", first)


def _reward(reader: PredicateReader) -> RewardStructure:
    """Read ``{"name"}``, which may be left out if there is only one reward structure."""
    tokens, rewards = reader.tokens, reader.model.rewards
    before = tokens.all[tokens.index - 1]
    names = ", ".join(f'"{name}"' for name in rewards)
    available = f"the model has {names or 'no reward structure'}"
    if not tokens.accept("{"):
        if len(rewards) != 1:
            advice = '; write R{"name"}' if rewards else ""
            raise tokens.error(f"R without a name: {available}{advice}", before)
        return next(iter(rewards.values()))
    if before.text != "R":
        raise tokens.error(
            f'{before.text}{{: the name comes before the direction, R{{"name"}}{before.text[1:]}', before
        )
    token = tokens.take()
    if token.kind != "quoted":
        raise tokens.error(f'R{{{token.text}}}: name the reward structure in quotes, R{{"name"}}; {available}', token)
    if token.text[1:-1] not in rewards:
        raise tokens.error(f"{token.text} is not a reward structure; {available}", token)
    tokens.expect("}")
    return rewards[token.text[1:-1]]


def _quantifier(reader: PredicateReader, first: Token, letter: str, words: str) -> Quantifier:
    """Read the rest of ``max=?``, of which ``words`` were written together with the letter."""
    tokens, graph = reader.tokens, reader.model.graph
    while tokens.next.kind == "word":
        words += tokens.take().text
    if words not in ("", *_QUANTIFIERS):
        raise tokens.error(
            f"{letter}{words}: write max or min, or one for the agent and one for nature as in maxmin", first
        )
    values = f"{letter}max=? or {letter}min=?"
    if tokens.next.text in ("<", "<=", ">", ">="):
        bound = f"{letter}{words}{tokens.next.text}"
        advice = tokens.error(f" answers; here ask for the value with {values}")
        raise ModelError(f"{bound} asks yes or no, which ", Option("decide"), *advice.args)
    tokens.expect("=")
    tokens.expect("?")
    if not words and graph.n_choices > graph.n_states:
        raise tokens.error(f"{letter}=? has no direction, but the model has choices; write {values}", first)
    return _QUANTIFIERS[words or "max"]


def _content(
    reader: PredicateReader, quantifier: Quantifier, reward: RewardStructure | None, closing: str = "]"
) -> Objective:
    """Read the contents of the brackets, without parentheses around all contents."""
    tokens = reader.tokens
    if _is_wrapped(tokens.all[tokens.index :], closing):
        tokens.expect("(")
        objective = _content(reader, quantifier, reward, ")")
        tokens.expect(")")
        return objective
    return _path(reader, quantifier) if reward is None else _earned(reader, quantifier, reward)


def _is_wrapped(tokens: list[Token], closing: str) -> bool:
    """Return whether the first token is a parenthesis whose partner is just before ``closing``."""
    depth = 0
    for token, following in pairwise(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return token.text == ")" and following.text == closing
    return False


def _path(reader: PredicateReader, quantifier: Quantifier) -> Reach:
    """Read ``F b``, ``G a``, ``X b`` or ``a U b``, with step bounds."""
    tokens, first = reader.tokens, reader.tokens.next
    direction, nature = quantifier
    if first.text in ("F", "G", "X"):
        tokens.take()
        steps = _next_step(tokens) if first.text == "X" else _window(reader, first)
        states = reader.predicate()
        nowhere = read_only(np.zeros_like(states))
        if first.text == "G":
            return Reach(read_only(~states), nowhere, direction, steps, complement=True, nature=nature)
        return Reach(states, nowhere, direction, steps, nature=nature)
    stay = reader.predicate()
    if tokens.next.text in ("]", ")"):
        raise tokens.error(
            f"{tokens.since(first)} is not a path formula; put F, G or X before it, or U between two", first
        )
    operator = tokens.next
    tokens.expect("U")
    steps = _window(reader, operator)
    return Reach(reader.predicate(), read_only(~stay), direction, steps, nature=nature)


def _next_step(tokens: Tokens) -> tuple[int, int]:
    if tokens.next.text in _BOUNDS:
        raise tokens.error(f"X{tokens.next.text}: X takes no bound; it is F=1")
    return (1, 1)


def _window(reader: PredicateReader, operator: Token) -> tuple[int, int] | None:
    """Read ``<=k``, ``<k``, ``=k`` or ``[i,j]`` behind a temporal operator, and return the first and last step."""
    tokens, symbol = reader.tokens, reader.tokens.next.text
    if symbol not in _BOUNDS:
        return None
    name = f"{operator.text}{symbol}"
    if symbol == "{":
        raise tokens.error(
            f"{name}: reward bounds are not supported; bound the steps, as in {operator.text}<=10", operator
        )
    if symbol in (">=", ">"):
        raise tokens.error(f"{name}: a bound without an end is not supported; write {operator.text}[5,10]", operator)
    tokens.take()
    last = _steps(reader)
    first = last if symbol in ("=", "[") else 0
    if symbol == "[":
        tokens.expect(",")
        last = _steps(reader)
        tokens.expect("]")
    if symbol == "<":
        last -= 1
    if first > last:
        raise tokens.error(f"{tokens.since(operator)}: no step lies in this window", operator)
    return first, last


def _steps(reader: PredicateReader) -> int:
    token = reader.tokens.next
    value = reader.number()
    if value < 0 or value.denominator != 1:
        read = reader.tokens.since(token)
        shown = read if read == str(value) else f"{read} = {value}"
        raise reader.tokens.error(f"{shown} is not a number of steps; give 0, 1, 2, …", token)
    return int(value)


def _earned(reader: PredicateReader, quantifier: Quantifier, reward: RewardStructure) -> Reward:
    """Read ``F b``, or ``C`` with a bound and a discount."""
    tokens, first = reader.tokens, reader.tokens.take()
    direction, nature = quantifier
    if first.text == "F":
        if tokens.next.text in _BOUNDS:
            name = f"F{tokens.next.text}"
            raise tokens.error(f"{name}: a reward until a target takes no bound; write F, or C<=k for k steps", first)
        return Reward(reward, direction, target=reader.predicate(), nature=nature)
    if first.text in ("C", "Cdiscount"):
        steps, discount = _cumulative(reader, first)
        return Reward(reward, direction, steps=steps, discount=discount, nature=nature)
    if first.text in ("I", "S", "LRA"):
        raise tokens.refused(first)
    if first.kind == "end":
        raise tokens.unexpected("where F, C or C<=k is expected")
    raise tokens.error(
        f"{first.text}: a reward is asked until a target (F …), over k steps (C<=k) or forever (C)", first
    )


def _cumulative(reader: PredicateReader, first: Token) -> tuple[int | None, Fraction | None]:
    """Return the steps and the discount of ``C<=k``, ``C{0.9}<=k``, ``C<=k discount=0.9`` or ``Cdiscount=0.9``."""
    tokens = reader.tokens
    if first.text == "Cdiscount":
        tokens.expect("=")
        return None, _discount(reader)
    discount = None
    if tokens.accept("{"):
        discount = _discount(reader)
        tokens.expect("}")
    window = _window(reader, first) if tokens.next.text in ("<=", "<") else None
    if discount is None and tokens.accept("discount"):
        tokens.expect("=")
        discount = _discount(reader)
    return window and window[1], discount


def _discount(reader: PredicateReader) -> Fraction:
    token = reader.tokens.next
    value = reader.number()
    if not 0 < value < 1:
        read = reader.tokens.since(token)
        raise reader.tokens.error(f"{read} is not a discount factor; it lies strictly between 0 and 1", token)
    return value
