"""Reads the contents of the brackets of a property: path formulas and rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import OUT_OF_TABLE, read_only
from plumdp.model.language.path import BOUNDS, PathReader, steps, window
from plumdp.model.language.predicate import DEEP, PredicateReader
from plumdp.model.language.tokens import Token, Tokens
from plumdp.model.missions.automaton import finite_automaton, mission_automaton
from plumdp.model.missions.budget import Instant, budget_of
from plumdp.model.missions.logic import Path
from plumdp.model.objectives import Direction, Nature, Reach, Reward
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import RewardStructure

Quantifier: TypeAlias = tuple[Direction, Nature | None]

_ENDLESS = (
    "this formula has F or U beside G, W or R (once negations are moved inwards), so that it may never be decided; "
    "bound one of them by steps, as in G<=100, or ask for how often something happens on average: R=? [ S ]"
)
_NEVER_DONE = "a reward is collected until a mission is done, and this one never is in finite time"


def read_path(reader: PredicateReader, quantifier: Quantifier) -> Reach | Mission:
    """Read a path formula; with one temporal operator, and neither memory nor a budget, it needs no mission."""
    first, (direction, nature) = reader.tokens.next, quantifier
    if _is_finite(reader.tokens):
        return _finite(reader, quantifier)
    path = _formula(reader)

    def asked() -> Reach | Mission:
        if not path.is_plain:
            return _mission(path, reader, quantifier)
        reach = _reach(path, direction, nature)
        if path.spending is None:
            return reach
        budget = budget_of(path.spending, reader.model.graph, reach.target, reach.avoid)
        return Mission(budget, reach.complement, direction, nature)

    return _located(reader.tokens, first, asked)


def _is_finite(tokens: Tokens) -> bool:
    """Return whether a formula about finite traces follows."""
    after = tokens.all[min(tokens.index + 1, len(tokens.all) - 1)].text
    return (tokens.next.text, after) == ("LTLf", "{")


def _formula(reader: PredicateReader) -> Path:
    first = reader.tokens.next
    try:
        return PathReader(reader.tokens, reader.model).read()
    except RecursionError:
        raise reader.tokens.error(DEEP, first) from None


def _located(tokens: Tokens, first: Token, make: Callable[[], Reach | Mission]) -> Reach | Mission:
    """Return the result of parsing a formula, or raise its errors with their place."""
    try:
        return make()
    except (ModelError, RecursionError) as error:
        raise tokens.error(str(error) if isinstance(error, ModelError) else DEEP, first) from None


def _mission(path: Path, reader: PredicateReader, quantifier: Quantifier) -> Mission:
    found = mission_automaton(path, reader.model.graph.n_states, is_open=OUT_OF_TABLE in reader.model.labels)
    if found is None:
        raise ModelError(_ENDLESS)
    return Mission(*found, *quantifier)


def _finite(reader: PredicateReader, quantifier: Quantifier) -> Mission:
    """Read ``LTLf{"end"} formula``, about the states of a run up to the first with "end"."""
    tokens, first = reader.tokens, reader.tokens.take()
    n_states, is_open = reader.model.graph.n_states, OUT_OF_TABLE in reader.model.labels
    tokens.expect("{")
    ends = reader.predicate()
    tokens.expect("}")
    start = tokens.next
    path = _formula(reader)
    if path.spending is not None:
        raise tokens.error("a budget does not go with LTLf; leave out one of them", start)
    if not ends.any():
        raise tokens.error("no state ends a trace, so no trace is finite; say in which states runs end", first)
    mission = _located(
        tokens,
        start,
        lambda: Mission(finite_automaton(path, ends, n_states, is_open=is_open), False, *quantifier),
    )
    assert isinstance(mission, Mission)
    return mission


def _reach(path: Path, direction: Direction, nature: Nature | None) -> Reach:
    """Return the objective of ``F b``, ``G a``, ``X b`` or ``a U b``, with step bounds."""
    *before, last = (operand.states for operand in path.operands if operand.states is not None)
    window = (1, 1) if path.operator == "X" else path.window
    nowhere = read_only(np.zeros_like(last))
    if path.operator == "G":
        return Reach(read_only(~last), nowhere, direction, window, complement=True, nature=nature)
    avoid = read_only(~before[0]) if before else nowhere
    return Reach(last, avoid, direction, window, nature=nature)


def read_earned(reader: PredicateReader, quantifier: Quantifier, reward: RewardStructure) -> Reward | Mission:
    """Read ``C`` with a bound and a discount, ``I=k``, ``S``, ``F b``, or a mission until which rewards are earned."""
    tokens, first = reader.tokens, reader.tokens.next
    direction, nature = quantifier
    if first.text in ("C", "Cdiscount"):
        n_steps, discount = _cumulative(reader, tokens.take())
        return Reward(reward, direction, steps=n_steps, discount=discount, nature=nature)
    if first.text in ("S", "LRA"):
        tokens.take()
        return Reward(reward, direction, average=True, nature=nature)
    if first.text == "I":
        return _instant(reader, quantifier, reward)
    if first.kind == "end" or first.text == "]":
        tokens.take()
        raise tokens.unexpected("where F, C, C<=k or S is expected") if first.kind == "end" else _no_reward(tokens)
    return _until(reader, quantifier, reward)


def _until(reader: PredicateReader, quantifier: Quantifier, reward: RewardStructure) -> Reward | Mission:
    """Read what is to be done, until which rewards are earned."""
    tokens, first, (direction, nature) = reader.tokens, reader.tokens.next, quantifier
    following = tokens.all[min(tokens.index + 1, len(tokens.all) - 1)].text
    if first.text == "F" and following in BOUNDS:
        raise tokens.error(f"F{following}: a reward until a target takes no bound; write F, or C<=k for k steps", first)
    if _is_finite(tokens):
        mission = _finite(reader, quantifier)
    else:
        path = _formula(reader)
        if path.spending is not None:
            raise tokens.error("a budget does not go with a reward; leave out one of them", first)
        if path.operator == "F" and path.is_plain:
            return Reward(reward, direction, target=path.operands[0].states, nature=nature)
        made = _located(tokens, first, lambda: _mission(path, reader, quantifier))
        assert isinstance(made, Mission)
        mission = made
    if mission.complement:
        raise tokens.error(_NEVER_DONE, first)
    return replace(mission, reward=reward)


def _no_reward(tokens: Tokens) -> ModelError:
    first = tokens.all[tokens.index - 1]
    kinds = "until a target (F …), over k steps (C<=k), forever (C) or on average (S)"
    return tokens.error(f"{first.text}: a reward is asked {kinds}", first)


def _instant(reader: PredicateReader, quantifier: Quantifier, reward: RewardStructure) -> Mission:
    """Read ``I=k``, the reward of the state after k steps."""
    tokens, first = reader.tokens, reader.tokens.take()
    tokens.expect("=")
    step = steps(reader)
    if reward.state is None:
        raise tokens.error(
            "I: this is about the reward of a state, and states have none; C<=k sums those of steps", first
        )
    of_state = RewardStructure(reward.state, None, out_of_table=reward.out_of_table if reward.choice is None else None)
    return Mission(Instant(step), False, *quantifier, reward=of_state)


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
    bound = window(reader, first) if tokens.next.text in ("<=", "<") else None
    if discount is None and tokens.accept("discount"):
        tokens.expect("=")
        discount = _discount(reader)
    return bound and bound[1], discount


def _discount(reader: PredicateReader) -> Fraction:
    token = reader.tokens.next
    value = reader.number()
    if not 0 < value < 1:
        read = reader.tokens.since(token)
        raise reader.tokens.error(f"{read} is not a discount factor; it lies strictly between 0 and 1", token)
    return value
