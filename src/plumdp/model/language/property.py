"""Properties in the PRISM language, read as objectives on a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from plumdp.base.errors import ModelError, Option, require_kind
from plumdp.model.language.mission import Quantifier, read_earned, read_path
from plumdp.model.language.path import available_rewards, named_reward
from plumdp.model.language.predicate import NamedModel, PredicateReader, parse_predicate
from plumdp.model.language.tokens import OPERATOR, Token, Tokens, without_comments
from plumdp.model.objectives import Objective, Reward, digest
from plumdp.model.parametric import RewardStructure
from plumdp.model.question import as_objective

__all__ = ["as_objectives", "parse_predicate", "parse_property"]

QUANTIFIERS: dict[str, Quantifier] = {
    "max": ("max", None),
    "min": ("min", None),
    "maxmin": ("max", "robust"),
    "minmax": ("min", "robust"),
    "maxmax": ("max", "optimistic"),
    "minmin": ("min", "optimistic"),
}
_DEEPEST = 100  # parentheses inside each other


def parse_property(text: str, model: NamedModel, *, unit: str = "") -> Objective:
    """Return the objective that a PRISM property asks for.

    ``Pmax=? [ … ]`` and ``Pmin=?`` take ``F b``, ``G a``, ``X b`` and ``a U b``, with step bounds such as ``F<=10 b``;
    formulas of several temporal operators, a budget, ``F{"fuel"}<=20 b``, and ``LTLf{b} …``, which is about runs that
    end in b, are missions. ``R{"name"}max=? [ … ]`` and ``min`` take ``F b`` and missions that are done in finite time,
    ``C<=k``, ``C`` and the discounted ``C{0.9}`` (in Storm's words ``Cdiscount=0.9``), ``I=k``, and ``S`` or ``LRA``,
    the average of a step in the long run. ``LRAmax=? [ b ]`` or ``Smax=?`` is the share of steps in states with b. In
    ``Pmaxmin=?`` the first word is the agent's direction, the second nature's.

    Parameters
    ----------
    text
        The property.
    model
        The model whose labels, variables and rewards it names.
    unit
        What rewards are counted in, such as "€ per month", for the sentences of results.

    Returns
    -------
    Objective
        A ``Reach``, ``Reward`` or ``Mission``.

    Raises
    ------
    ModelError
        If the text is no property of the model, with the place in it.

    Examples
    --------
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
    return in_unit(replace(objective, text=without_comments(text)), unit)


def in_unit(objective: Objective, unit: str) -> Objective:
    """Return an objective whose value is counted in a unit, which probabilities do not have."""
    if not unit:
        return objective
    if objective.cap == 1:
        raise ModelError(Option("unit", unit), f": {objective.text} is a probability, which has no unit; leave it out")
    return replace(objective, unit=unit)


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
    if words not in ("", *QUANTIFIERS):
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
    if not words and not graph.is_chain:
        raise tokens.error(f"{letter}=? has no direction, but the model has choices; write {values}", first)
    return QUANTIFIERS[words or "max"]


def _share_of_time(reader: PredicateReader, quantifier: Quantifier) -> Reward:
    """Read the states whose share of the steps is asked for, in the long run."""
    direction, nature = quantifier
    inside = RewardStructure(reader.predicate().astype(np.float64), None, out_of_table=(0.0, 1.0))
    return Reward(inside, direction, average=True, nature=nature)


def _content(reader: PredicateReader, quantifier: Quantifier, reward: RewardStructure | None) -> Objective:
    """Read the contents of the brackets, without parentheses around all contents."""
    tokens, n_wraps = reader.tokens, 0
    while _is_wrapped(tokens.all[tokens.index :], ")" if n_wraps else "]"):
        tokens.expect("(")
        n_wraps += 1
        if n_wraps > _DEEPEST:
            raise ModelError("this property has too many parentheses inside each other; leave some out")
    objective = read_path(reader, quantifier) if reward is None else read_earned(reader, quantifier, reward)
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
