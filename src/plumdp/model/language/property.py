"""Properties in the PRISM language, read as objectives on a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from plumdp.base.errors import ModelError, Option, require_kind
from plumdp.model.graph import BoolArray, read_only
from plumdp.model.language.path import BOUNDS, PathReader, available_rewards, named_reward, window
from plumdp.model.language.predicate import DEEP, NamedModel, PredicateReader, parse_predicate
from plumdp.model.language.tokens import OPERATOR, Token, Tokens
from plumdp.model.missions.automaton import Automaton, mission_automaton
from plumdp.model.missions.budget import budget_of
from plumdp.model.missions.hoa import read_hoa
from plumdp.model.missions.logic import Path
from plumdp.model.objective import Direction, Nature, Objective, Reach, Reward, digest, is_objective
from plumdp.model.objectives.mission import Mission
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
_DEEPEST = 100  # parentheses inside each other


def parse_property(text: str, model: NamedModel) -> Objective:
    """Return the objective that a PRISM property asks for.

    ``Pmax=? [ … ]`` and ``Pmin=?`` take ``F b``, ``G a``, ``X b`` and ``a U b``, with step bounds such as ``F<=10 b``.
    A ``Mission`` is what is returned for formulas of several temporal operators, and for a budget, ``F{"fuel"}<=20 b``.
    ``R{"name"}max=? [ … ]`` and ``min`` take ``F b``, ``C<=k``, ``C`` and the discounted ``C{0.9}`` (in Storm's words
    ``Cdiscount=0.9``), and ``S`` or ``LRA``, the average of a step in the long run. ``LRAmax=? [ b ]`` or ``Smax=?`` is
    the share of steps in states with b. In ``Pmaxmin=?`` the first word is the agent's direction, the second nature's.

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
    objective = _operator(PredicateReader(tokens, model))
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
    if match is None or match[1] not in ("P", "R", "S", "LRA"):
        raise _no_property(tokens, first, match[1] if match else first.text)
    reward = _reward(reader) if match[1] == "R" else None
    quantifier = _quantifier(reader, first, match[1], match[2])
    tokens.expect("[")
    is_share = match[1] in ("S", "LRA")
    objective = _share_of_time(reader, quantifier) if is_share else _content(reader, quantifier, reward)
    if tokens.next.text == "{":
        raise tokens.refused(tokens.next)
    tokens.expect("]")
    return objective


def _no_property(tokens: Tokens, first: Token, name: str) -> ModelError:
    if name in ("T", "multi", "filter") or (name in ("E", "A") and tokens.next.text == "["):
        return tokens.refused(first, name)
    return tokens.error(f"{name} starts no property: a formula has no value; ask for example Pmax=? [ F … ]", first)


def _reward(reader: PredicateReader) -> RewardStructure:
    """Read ``{"name"}``, which may be left out if there is only one reward structure."""
    tokens, rewards = reader.tokens, reader.model.rewards
    before = tokens.all[tokens.index - 1]
    if not tokens.accept("{"):
        if len(rewards) != 1:
            advice = '; write R{"name"}' if rewards else ""
            raise tokens.error(f"R without a name: {available_rewards(reader)}{advice}", before)
        return next(iter(rewards.values()))
    if before.text != "R":
        raise tokens.error(
            f'{before.text}{{: the name comes before the direction, R{{"name"}}{before.text[1:]}', before
        )
    return named_reward(reader, "R")[1]


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


def _share_of_time(reader: PredicateReader, quantifier: Quantifier) -> Reward:
    """Read the states whose share of the steps is asked for, in the long run."""
    direction, nature = quantifier
    inside = RewardStructure(reader.predicate().astype(np.float64), None)
    return Reward(inside, direction, average=True, nature=nature)


def _content(reader: PredicateReader, quantifier: Quantifier, reward: RewardStructure | None) -> Objective:
    """Read the contents of the brackets, without parentheses around all contents."""
    tokens, n_wraps = reader.tokens, 0
    while _is_wrapped(tokens.all[tokens.index :], ")" if n_wraps else "]"):
        tokens.expect("(")
        n_wraps += 1
        if n_wraps > _DEEPEST:
            raise ModelError("this property has too many parentheses inside each other; leave some out")
    objective = _path(reader, quantifier) if reward is None else _earned(reader, quantifier, reward)
    for _ in range(n_wraps):
        tokens.expect(")")
    return objective


def _is_wrapped(tokens: list[Token], closing: str) -> bool:
    """Return whether the first token is a parenthesis whose partner is just before ``closing``."""
    depth = 0
    for token, following in pairwise(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return token.text == ")" and following.text == closing
    return False


def _path(reader: PredicateReader, quantifier: Quantifier) -> Reach | Mission:
    """Read a path formula; with one temporal operator, and neither memory nor a budget, it needs no mission."""
    tokens, first, (direction, nature) = reader.tokens, reader.tokens.next, quantifier
    if first.text == "HOA" and tokens.all[tokens.index + 1].text == ":":
        return Mission(*_from_file(reader), direction, nature)
    try:
        path = PathReader(tokens, reader.model).read()
    except RecursionError:
        raise tokens.error(DEEP, first) from None
    try:
        if not path.is_plain:
            return Mission(*mission_automaton(path, reader.model.graph.n_states), direction, nature)
        reach = _reach(path, direction, nature)
        if path.spending is None:
            return reach
        budget = budget_of(path.spending, reader.model.graph, reach.target, reach.avoid)
        return Mission(budget, reach.complement, direction, nature)
    except (ModelError, RecursionError) as error:
        raise tokens.error(str(error) if isinstance(error, ModelError) else DEEP, first) from None


def _from_file(reader: PredicateReader) -> tuple[Automaton, bool]:
    """Read ``HOA: {"file.hoa", "p0" <- "goal"}`` as in PRISM; a proposition without states is a label of its name."""
    tokens, first, states = reader.tokens, reader.tokens.take(), {}
    for symbol in (":", "{"):
        tokens.expect(symbol)
    file = _quoted(tokens, "the name of a file")
    while tokens.accept(","):
        name = _quoted(tokens, "a proposition of the automaton")
        for symbol in ("<", "-"):
            tokens.expect(symbol)
        states[name] = reader.predicate()
    tokens.expect("}")

    def states_of(name: str) -> BoolArray:
        if name not in states and name not in reader.labels:
            raise ModelError(
                f'"{name}" is not a label of the model; say what it is: HOA: {{"{file}", "{name}" <- x=1}}'
            )
        return states[name] if name in states else reader.labels[name]

    try:
        return read_hoa(file, states_of, reader.model.graph.n_states)
    except ModelError as error:
        raise tokens.error(str(error), first) from None


def _quoted(tokens: Tokens, what: str) -> str:
    token = tokens.take()
    if token.kind != "quoted":
        raise tokens.error(f"{token.text or 'nothing'}: {what} is expected, in quotes", token)
    return token.text[1:-1]


def _reach(path: Path, direction: Direction, nature: Nature | None) -> Reach:
    """Return the objective of ``F b``, ``G a``, ``X b`` or ``a U b``, with step bounds."""
    *before, last = (operand.states for operand in path.operands if operand.states is not None)
    steps = (1, 1) if path.operator == "X" else path.window
    nowhere = read_only(np.zeros_like(last))
    if path.operator == "G":
        return Reach(read_only(~last), nowhere, direction, steps, complement=True, nature=nature)
    avoid = read_only(~before[0]) if before else nowhere
    return Reach(last, avoid, direction, steps, nature=nature)


def _earned(reader: PredicateReader, quantifier: Quantifier, reward: RewardStructure) -> Reward:
    """Read ``F b``, or ``C`` with a bound and a discount."""
    tokens, first = reader.tokens, reader.tokens.take()
    direction, nature = quantifier
    if first.text == "F":
        if tokens.next.text in BOUNDS:
            name = f"F{tokens.next.text}"
            raise tokens.error(f"{name}: a reward until a target takes no bound; write F, or C<=k for k steps", first)
        return Reward(reward, direction, target=reader.predicate(), nature=nature)
    if first.text in ("C", "Cdiscount"):
        steps, discount = _cumulative(reader, first)
        return Reward(reward, direction, steps=steps, discount=discount, nature=nature)
    if first.text in ("S", "LRA"):
        return Reward(reward, direction, average=True, nature=nature)
    if first.text == "I":
        raise tokens.refused(first)
    if first.kind == "end":
        raise tokens.unexpected("where F, C, C<=k or S is expected")
    kinds = "until a target (F …), over k steps (C<=k), forever (C) or on average (S)"
    raise tokens.error(f"{first.text}: a reward is asked {kinds}", first)


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
    steps = window(reader, first) if tokens.next.text in ("<=", "<") else None
    if discount is None and tokens.accept("discount"):
        tokens.expect("=")
        discount = _discount(reader)
    return steps and steps[1], discount


def _discount(reader: PredicateReader) -> Fraction:
    token = reader.tokens.next
    value = reader.number()
    if not 0 < value < 1:
        read = reader.tokens.since(token)
        raise reader.tokens.error(f"{read} is not a discount factor; it lies strictly between 0 and 1", token)
    return value
