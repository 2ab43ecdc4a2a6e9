"""Properties in the words of the PRISM language, as objectives on a model."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from plumdp.errors import ModelError
from plumdp.model.graph import read_only
from plumdp.model.objective import Direction, Nature, Objective, Reach, Reward
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.predicate import PredicateReader, parse_predicate
from plumdp.model.tokens import Token, Tokens

__all__ = ["parse_predicate", "parse_property"]

_OPERATOR = re.compile(r"(P|R|S|T|LRA)(|max|min|maxmin|minmax|maxmax|minmin)")
_BOUNDS = ("<=", "<", "=", "[", ">=", ">", "{")  # what may follow a temporal operator before its formula
_CONTENT = "a reward is asked until a target (F …), over k steps (C<=k), or for ever (C)"

Quantifier: TypeAlias = tuple[Direction, Nature | None]


def parse_property(text: str, model: ParametricMDP) -> Objective:
    """Return the objective that a PRISM property asks for.

    ``Pmax=? [ … ]`` and ``Pmin=?`` take ``F b``, ``G a``, ``X b`` and ``a U b`` with step bounds such as ``F<=10 b``;
    ``R{"name"}max=? [ … ]`` and ``min`` take ``F b``, ``C<=k``, ``C`` and the discounted ``C{0.9}`` (Storm's
    ``Cdiscount=0.9``). In ``Pmaxmin=?`` the first word is the agent's direction, the second nature's.

    >>> from plumdp import ParameterSpace, explore
    >>> from plumdp.model.property import parse_property
    >>> def step(state):
    ...     return {"go": [(1, state._replace(x=min(state.x + 1, 3)))]}
    >>> model = explore(step, {"x": 0}, space=ParameterSpace.unit("p"), labels={"odd": lambda s: s.x % 2 == 1})
    >>> objective = parse_property('Pmaxmin=? [ !"odd" U<=5 x=2 ]', model)
    >>> objective.target, objective.steps, objective.direction, objective.nature
    (array([False, False,  True, False]), (0, 5), 'max', 'robust')
    """
    tokens = Tokens(text)
    if tokens.next.kind == "end":
        raise ModelError('the property is empty; write for example Pmax=? [ F "goal" ]')
    if tokens.next.kind == "quoted" and tokens.all[tokens.index + 1].text == ":":
        tokens.index += 2  # a name, as in a file of properties
    objective = _operator(PredicateReader(tokens, model))
    tokens.accept(";")
    tokens.expect_end("property")
    return replace(objective, text=text.strip())


def _operator(reader: PredicateReader) -> Objective:
    """Read ``Pmax=? [ … ]`` or ``R{"name"}max=? [ … ]``."""
    tokens, first = reader.tokens, reader.tokens.next
    match = _OPERATOR.fullmatch(first.text)
    if match is None or match[1] not in ("P", "R"):
        raise _no_value(reader, match[1] if match else first.text)
    tokens.take()
    name = _reward_name(reader) if match[1] == "R" else None
    direction, nature = _quantifier(reader, first, match[2])
    reward = _reward(reader, first, name) if match[1] == "R" else None
    tokens.expect("[")
    if reward is None:
        objective: Objective = _unwrapped(reader, lambda: _path(reader, direction, nature))
    else:
        objective = _unwrapped(reader, lambda: _earned(reader, Reward(reward, direction, nature=nature)))
    if tokens.next.text == "{":
        raise tokens.refused(tokens.next)
    tokens.expect("]")
    return objective
