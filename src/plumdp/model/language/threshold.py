"""Properties that compare a value with a number, such as ``P>=0.9 [ F "goal" ]``, and ask yes or no.

``quantile(B, P>=0.9 [ F{"fuel"}<=B "goal" ])`` asks for the least budget, or the least number of steps, with yes. The
words are Storm's. Whether the least or the largest B is meant follows from the rest, and may be said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.language.predicate import NamedModel, PredicateReader
from plumdp.model.language.property import QUANTIFIERS, parse_property
from plumdp.model.language.tokens import OPERATOR, Token, Tokens, without_comments
from plumdp.model.missions.budget import Budget
from plumdp.model.objectives import Direction, Objective, Reach
from plumdp.model.objectives.mission import Mission

Comparison: TypeAlias = Literal["<", "<=", ">", ">="]

_COMPARISONS: dict[str, Comparison] = {"<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OPPOSITE: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, eq=False)
class Threshold:
    """The question whether some policy's value compares with a number in this way or, if negated, whether none does.

    ``Pmax>=0.9`` asks for a policy with at least 0.9, and so does ``P>=0.9``, as the policy is ours to choose.
    ``Pmax<=0.9`` says that no policy has more than 0.9: the negation of ``Pmax>0.9``. In the same way ``Pmin<=0.1`` and
    ``P<=0.1`` ask for a policy with at most 0.1, and ``Pmin>=0.1`` says that no policy has less.
    """

    objective: Objective  # the best value of any policy is what matters: max for > and >=, min for < and <=
    comparison: Comparison  # of the value of a policy with the number
    number: Fraction
    is_negated: bool
    text: str
    of_all: str = ""  # the comparison that asks the same of all policies, if the text has neither max nor min

    def holds_for(self, value: float) -> bool:
        """Return whether a value compares with the number as asked for, exactly."""
        if value in (float("inf"), -float("inf")):
            return (value > 0) == (self.objective.direction == "max")
        exact = Fraction(value)
        return {
            "<": exact < self.number,
            "<=": exact <= self.number,
            ">": exact > self.number,
            ">=": exact >= self.number,
        }[self.comparison]


def is_threshold(text: str) -> bool:
    """Return whether a property compares its value with a number.

    >>> is_threshold('P>=0.9 [ F "goal" ]'), is_threshold("Pmax=? [ F x>=2 ]")
    (True, False)
    """
    return _comparison(Tokens(text)) is not None


def parse_threshold(text: str, model: NamedModel) -> Threshold:
    """Return the question that a property with a comparison asks, such as ``P>=0.9 [ … ]`` or ``R{"cost"}max<5 [ … ]``.

    >>> from plumdp import case_study
    >>> model = case_study("betting:5").model
    >>> question = parse_threshold('R{"money"}>=9/2 [ F "end" ]', model)
    >>> question.objective.text, question.comparison, question.number
    ('R{"money"}max=? [ F "end" ]', '>=', Fraction(9, 2))
    >>> question.of_all
    'R{"money"}min>=9/2'
    >>> parse_threshold('R{"money"}max<=5 [ F "end" ]', model).is_negated
    True
    """
    text = without_comments(text)
    tokens = Tokens(text)
    symbol = _comparison(tokens)
    if symbol is None:
        raise ModelError(f"{text}: there is no comparison with a number; write for example P>=0.9 [ F … ]")
    given = tokens.all[tokens.all.index(symbol) - 1]
    tokens.index = tokens.all.index(symbol) + 1
    number = PredicateReader(tokens, model).number()
    rest = text[tokens.next.position :]
    best: Direction = "max" if symbol.text in (">", ">=") else "min"
    words = _words(tokens, symbol, given)
    direction: Direction = best if not words else "max" if words[:3] == "max" else "min"
    asked_for, compared = text[: symbol.position].rstrip(), text[symbol.position : tokens.next.position].rstrip()
    value = asked_for + ("" if words else direction)
    of_all = "" if words else f"{asked_for}{'min' if direction == 'max' else 'max'}{compared}"
    objective = parse_property(f"{value}=? {rest}", model)
    if objective.cap == 1 and not 0 <= number <= 1:
        raise tokens.error(f"{number} is not a probability; give a number from 0 to 1", symbol)
    comparison = _COMPARISONS[symbol.text]
    is_negated = direction != best
    asked = _OPPOSITE[comparison] if is_negated else comparison
    return Threshold(objective, asked, number, is_negated, text, of_all)


def _comparison(tokens: Tokens) -> Token | None:
    """Return the comparison of the value with a number, which is before the first square bracket."""
    inside = 0
    for token in tokens.all:
        inside += (token.text == "{") - (token.text == "}")
        if token.text == "[":
            return None
        if not inside and token.text in _COMPARISONS:
            return token
    return None


def _words(tokens: Tokens, symbol: Token, given: Token) -> str:
    """Return the directions of the agent and of nature that are written before the comparison, if any are."""
    match = OPERATOR.fullmatch(given.text)
    words = match[2] if match else given.text if given.text in QUANTIFIERS else ""
    if words and words not in QUANTIFIERS:
        said = "write max or min, or one for the agent and one for nature as in maxmin, or neither"
        raise tokens.error(f"{given.text}{symbol.text}: {said}", given)
    return words


def as_question(text: str, model: NamedModel) -> Threshold | Objective:
    """Return the question of a text, for a value, or whether it is on one side of a number."""
    return parse_threshold(text, model) if is_threshold(text) else parse_property(text, model)


_STEPS = "step"


@dataclass(frozen=True, eq=False)
class Quantile:
    """The question for the least (``is_least``) or the largest budget with which a threshold is kept."""

    text: str
    name: str  # of the reward that is spent, or "step"
    is_least: bool
    with_nothing: Threshold  # with a budget of 0
    before: str
    after: str
    model: NamedModel

    def __repr__(self) -> str:
        return f"Quantile({self.text})"

    def at(self, most: Fraction | int) -> Threshold:
        """Return the threshold with a budget."""
        return parse_threshold(f"{self.before}{most}{self.after}", self.model)

    def forever(self) -> Threshold:
        """Return the threshold without a bound."""
        objective, (spent, _) = self.with_nothing.objective, self.task(0)
        reach = Reach(
            spent.target,
            spent.avoid,
            objective.direction,
            complement=_is_complement(self.with_nothing),
            nature=objective.nature,
        )
        return replace(self.with_nothing, objective=replace(reach, text=objective.text), text=self.text)

    def task(self, most: Fraction | int) -> tuple[Budget, Mission]:
        """Return the budget, which may be of steps, and the question with it."""
        objective = self.at(most).objective
        if isinstance(objective, Mission) and isinstance(objective.task, Budget):
            return objective.task, objective
        assert isinstance(objective, Reach)
        assert objective.steps is not None
        ones = np.ones(self.model.graph.n_choices, dtype=np.int64)
        budget = Budget(_STEPS, ones, objective.steps[1], Fraction(1), objective.target, objective.avoid)
        mission = Mission(budget, objective.complement, objective.direction, objective.nature, text=objective.text)
        return budget, mission


def is_quantile(text: str) -> bool:
    """Return whether a property asks for a budget.

    >>> is_quantile('quantile(B, P>=0.9 [ F<=B "goal" ])'), is_quantile('P>=0.9 [ F "goal" ]')
    (True, False)
    """
    return text.lstrip().startswith("quantile")


def parse_quantile(text: str, model: NamedModel) -> Quantile:
    """Return the question for a budget, ``quantile(min B, P>=0.9 [ … <=B … ])``, where min or max may be left out.

    >>> from plumdp import case_study
    >>> model = case_study("rover:4,4,2").model
    >>> parse_quantile('quantile(B, Pmax>=0.9 [ F<=B "target" ])', model).is_least
    True
    """
    tokens = Tokens(text)
    for word in ("quantile", "("):
        tokens.expect(word)
    said = tokens.take().text if tokens.next.text in ("min", "max") else ""
    variable = tokens.take()
    if variable.kind != "word" or variable.text in (*model.graph.states, *model.constants):
        what = "is a name of the model" if variable.kind == "word" else "is not a name"
        raise tokens.error(
            f"{variable.text or 'nothing'} {what}; name the budget by a letter, as in quantile(B, …)", variable
        )
    tokens.expect(",")
    start, place = tokens.next, _place(tokens, variable)
    last = tokens.all[-2]
    if last.text != ")":
        tokens.index = len(tokens.all) - 1
        raise tokens.unexpected("where ) is expected")
    before, after = text[start.position : place.position], text[place.position + len(variable.text) : last.position]
    zero = parse_threshold(f"{before}0{after}", model)
    objective = zero.objective
    is_budget = isinstance(objective, Mission) and isinstance(objective.task, Budget)
    if not is_budget and not (isinstance(objective, Reach) and objective.steps is not None):
        raise tokens.error(
            f"{variable.text}: a budget or a number of steps is asked for one F, U or G with predicates, as in "
            f'P>=0.9 [ F<={variable.text} "goal" ]',
            place,
        )
    name = objective.task.name if isinstance(objective, Mission) and isinstance(objective.task, Budget) else _STEPS
    is_least = ((zero.comparison in (">", ">=")) != _is_complement(zero)) != zero.is_negated
    if said and (said == "min") != is_least:
        kept = "least" if is_least else "largest"
        other = "max" if said == "min" else "min"
        raise tokens.error(
            f"{said} {variable.text}: here the {kept} is asked for, write {other} {variable.text}", variable
        )
    return Quantile(without_comments(text), name, is_least, zero, before, after, model)


def _is_complement(threshold: Threshold) -> bool:
    return bool(getattr(threshold.objective, "complement", False))


def _place(tokens: Tokens, variable: Token) -> Token:
    """Return the only token of the variable, which comes after ``<=``."""
    places = [i for i in range(tokens.index, len(tokens.all)) if tokens.all[i].text == variable.text]
    example = f'F{{"fuel"}}<={variable.text} or F<={variable.text}'
    if len(places) != 1:
        count = "not at all" if not places else "more than once"
        raise tokens.error(f"{variable.text} is used {count}; use it once, as in {example}", variable)
    if tokens.all[places[0] - 1].text != "<=":
        raise tokens.error(f"{variable.text} is the most that may be spent; write {example}", tokens.all[places[0]])
    return tokens.all[places[0]]
