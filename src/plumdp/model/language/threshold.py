"""Properties that compare a value with a number, such as ``P>=0.9 [ F "goal" ]``, and ask yes or no."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from plumdp.base.errors import ModelError
from plumdp.model.language.predicate import NamedModel, PredicateReader
from plumdp.model.language.property import QUANTIFIERS, parse_property
from plumdp.model.language.tokens import OPERATOR, Token, Tokens, without_comments
from plumdp.model.objectives import Direction, Objective

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
