"""Properties in plain words, for people who do not read the PRISM language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from plumdp.base.errors import ModelError
from plumdp.model.language.tokens import OPERATOR, Token, Tokens, unwrapped

SYSTEM = "the system"
_SIGNS = {"&": "and", "|": "or", "=": "=", "!=": "≠", "<=": "≤", ">=": "≥", "=>": "implies", "<=>": "is the same as"}
_THRESHOLDS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
_FUNCTIONS = ("min", "max", "floor", "ceil", "pow", "mod")  # of the language, before parentheses
_BOUNDS = ("<=", "<", "=", "[")
_UP_TO = {"C": "over", "G": "over", "I": "after"}
_LONGEST_NUMBER = 30  # characters: an exponent may be beyond all reason
_TEMPORAL = ("F", "G", "X", "U", "W", "R")


def value_in_words(text: str, *, system: str = "") -> str:
    """Return the quantity that a property is about, or nothing if the text is not a property.

    ``system`` is what runs, such as "the pump".

    >>> value_in_words('Pmin=? [ F<=10 "pump_failed" ]', system="the plant")
    'the probability that the plant reaches “pump failed” within 10 steps'
    >>> value_in_words('R{"cost"}min=? [ F x=2 & y>=3 ]')
    'the expected “cost” until the system reaches a state with x = 2 and y ≥ 3'
    """
    try:
        head, content = _parts(text)
        if head[0].text.startswith(("S", "LRA")):
            return f"the share of time that {system or SYSTEM} spends in {_states(content)} in the long run"
        said = _earned(head, content, system or SYSTEM) if head[0].text.startswith("R") else ""
        return said or f"the probability that {_path(content, system or SYSTEM)}"
    except (ModelError, IndexError, ValueError):
        return ""


def is_probability(text: str) -> bool:
    """Return whether the value of a property is a probability, as far as its text says so.

    >>> is_probability('"fail": Pmin=? [ F "failed" ]'), is_probability("Rmax=? [ C ]"), is_probability("")
    (True, False, False)
    """
    return bool(value_in_words(text)) and _parts(text)[0][0].text.startswith("P")


def threshold_in_words(text: str, *, system: str = "") -> str:
    """Return the question that a property with a threshold asks, or nothing if the text is not one.

    >>> threshold_in_words('P>=0.9 [ F "goal" ]')
    'Is there a policy for which the probability that the system ever reaches “goal” is at least 90 %?'
    >>> threshold_in_words('Pmax<0.01 [ F "failed" ]')
    'Is the probability that the system ever reaches “failed” less than 1 %, whatever the policy?'
    """
    value = value_in_words(text, system=system)
    if not value or not any(token.text in _THRESHOLDS for token in _parts(text)[0]):
        return ""
    asked = asked_of(text)
    limit = f"{_THRESHOLDS[asked.sign]} {_limit(asked.text, is_probability=is_probability(text))}"
    if asked.is_negated:
        return f"Is {value} {limit}, whatever the policy?"
    return f"Is there a policy for which {value} is {limit}?"


@dataclass(frozen=True)
class Asked:
    """What a property with a threshold compares, as far as its text says so."""

    sign: str
    text: str  # of the number
    number: Fraction | None  # unless it is an expression
    is_negated: bool  # whether it says something of all policies, such as Pmax<=0.9
    of_all: str  # the comparison that does, if there is neither max nor min


def asked_of(text: str) -> Asked:
    """Return what a property with a threshold compares.

    >>> asked_of('P>=0.9 [ F "goal" ]').of_all, asked_of("Rmax<=12 [ C ]").is_negated
    ('Pmin>=0.9', True)
    """
    head = _parts(text)[0]
    position = next(i for i, token in enumerate(head) if token.text in _THRESHOLDS)
    sign, number = head[position].text, "".join(token.text for token in head[position + 1 :])
    value = "".join(token.text for token in head[:position])
    best = "max" if sign in (">", ">=") else "min"
    is_named = value[-3:] in ("max", "min")
    try:
        exact = Fraction(number if len(number) <= _LONGEST_NUMBER else "")
    except (ValueError, ZeroDivisionError):
        exact = None
    of_all = "" if is_named else f"{value}{'min' if best == 'max' else 'max'}{sign}{number}"
    return Asked(sign, number, exact, is_named and value[-3:] != best, of_all)


def _parts(text: str) -> tuple[list[Token], list[Token]]:
    """Return the tokens before the square brackets of a property, and those inside."""
    tokens = Tokens(text).all[:-1]
    if tokens[0].kind == "quoted" and tokens[1].text == ":":
        tokens = tokens[2:]  # a name, as in a file of properties
    if tokens[-1].text == ";":
        tokens = tokens[:-1]
    first = next(i for i, token in enumerate(tokens) if token.text == "[") if "[" in text else 0
    match = OPERATOR.fullmatch(tokens[0].text)
    if match is None or match[1] == "T" or not first or tokens[-1].text != "]":
        raise ValueError("not a property")
    return tokens[:first], unwrapped(tokens[first + 1 : -1])


def _path(content: list[Token], system: str) -> str:
    """Return a path formula in words: ``F b``, ``G a``, ``X b`` or ``a U b``, with bounds on the steps."""
    operator = content[0].text
    if operator == "LTLf":
        end = next(i for i, token in enumerate(content) if token.text == "}")
        where, asked = _states(content[2:end]), _joined(content[end + 1 :])
        return f"{system} reaches {where}, and until then satisfies: {asked}"
    if _is_mission(content):
        return f"{system} satisfies: {_joined(content)}"
    if any(token.text == "{" for token in content):
        return _spends(content, system)
    if operator == "X":
        return f"the first step of {system} leads to {_states(content[1:])}"
    if operator in ("F", "G"):
        first, last, rest = _window(content[1:])
        return f"{system} {_when(_states(rest), first, last, stays=operator == 'G')}"
    at = _until(content)
    stay, (first, last, rest) = unwrapped(content[:at]), _window(content[at + 1 :])
    reached = _when(_states(rest), first, last, stays=False)
    if stay[0].text == "!" and len(unwrapped(stay[1:])) <= max(1, len(stay) - 3):
        return f"{system} {reached} without passing {_states(unwrapped(stay[1:]))} on the way"
    if [token.text for token in stay] == ["true"]:
        return f"{system} {reached}"
    return f"{system} {reached}, and until then stays in {_states(stay)}"


def _is_mission(content: list[Token]) -> bool:
    """Return whether there is more than one temporal operator, in no parentheses, that has words of its own."""
    depth, depths = 0, []
    for token in content:
        depth += (token.text == "(") - (token.text == ")")
        depths += [depth] * (token.text in _TEMPORAL and token.kind == "word")
    has_words = depths in ([], [0]) and not any(token.text in ("W", "R") for token in content)
    return not has_words or content[0].text == "LTLf"


def _spends(content: list[Token], system: str) -> str:
    """Return a path formula with a budget in words."""
    first, last = (next(i for i, token in enumerate(content) if token.text == sign) for sign in "{}")
    end = _end_of_number(content, last + 2)
    most = (
        f"{_THRESHOLDS[content[last + 1].text]} {_joined(content[last + 2 : end])} {_joined(content[first + 1 : last])}"
    )
    return f"{_path(content[:first] + content[end:], system)}, with {most}"


def _until(content: list[Token]) -> int:
    """Return the position of the ``U`` outside all parentheses."""
    depth = 0
    for i, token in enumerate(content):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == "U":
            return i
    raise ValueError("not a path")


def _earned(head: list[Token], content: list[Token], system: str) -> str:
    """Return an expected reward in words."""
    name = next((f"“{_label(token)}”" for token in head if token.kind == "quoted"), "reward")
    if content[0].text == "I":
        return f"the expected {name} of the state after {_whole(_joined(content[2:]))} steps"
    if content[0].text not in ("C", "Cdiscount", "S", "LRA") and (content[0].text != "F" or _is_mission(content)):
        return f"the expected {name} until {system} has satisfied: {_joined(content)}"
    if content[0].text == "F":
        return f"the expected {name} until {system} reaches {_states(content[1:])}"
    if content[0].text in ("S", "LRA"):
        return f"the average {name} of a step in the long run"
    texts = [token.text for token in content]
    discount, rest = "", content[1:]
    if "{" in texts:
        discount, rest = "".join(texts[texts.index("{") + 1 : texts.index("}")]), content[texts.index("}") + 1 :]
    elif "=" in texts:
        discount = "".join(texts[texts.index("=") + 1 :])
    bound = rest[:1] and rest[0].text in ("<=", "<")
    over = f"{name} over the first {_whole(_window(rest)[1])} steps" if bound else f"total {name}"
    later = f", where each step counts {discount} times as much as the one before" if discount else ""
    return f"the expected {over}{later}"


def _window(tokens: list[Token]) -> tuple[str, str, list[Token]]:
    """Return the first and the last step of a bound, as texts that may be empty, and what comes after it."""
    if tokens[0].text not in _BOUNDS:
        return "", "", tokens
    if tokens[0].text == "[":
        comma = _end_of_number(tokens, 1)
        end = _end_of_number(tokens, comma + 1)
        return _joined(tokens[1:comma]), _joined(tokens[comma + 1 : end]), tokens[end + 1 :]
    size = _end_of_number(tokens, 1)
    last = _joined(tokens[1:size])
    first = {"=": last, "<": "", "<=": ""}[tokens[0].text]
    return first, f"{last} - 1" if tokens[0].text == "<" else last, tokens[size:]


def _end_of_number(tokens: list[Token], start: int) -> int:
    """Return the end of the arithmetic that begins at a position: an operand, and further ones after signs."""
    if tokens[start].text == "-":
        return _end_of_number(tokens, start + 1)
    end = start + 1
    if tokens[start].text == "(" or (end < len(tokens) and tokens[start].text in _FUNCTIONS):
        depth = 0
        for end in range(start, len(tokens)):
            depth += (tokens[end].text == "(") - (tokens[end].text == ")")
            if depth == 0 and tokens[end].text == ")":
                break
        end += 1
    is_more = end < len(tokens) and tokens[end].text in ("+", "-", "*", "/")
    return _end_of_number(tokens, end + 1) if is_more else end


def _when(where: str, first: str, last: str, *, stays: bool) -> str:
    """Return that some states are reached, or not left, between two steps, in words."""
    if not last:
        return f"{'always stays in' if stays else 'ever reaches'} {where}"
    end = f"{_whole(last)} steps"
    if not first or first == "0":
        return f"stays in {where} for {end}" if stays else f"reaches {where} within {end}"
    if first == last:
        return f"is in {where} after exactly {end}"
    return f"is in {where} at {'every' if stays else 'some'} step from {_whole(first)} to {_whole(last)}"


def _states(tokens: Sequence[Token]) -> str:
    """Return a set of states in words: a label by its name, and other formulas by what is true in the states."""
    tokens = unwrapped(list(tokens))
    if not tokens:
        raise ValueError("no states")
    if len(tokens) == 1 and tokens[0].kind == "quoted":
        return f"“{_label(tokens[0])}”"
    return f"a state with {_joined(tokens)}"


def _joined(tokens: Sequence[Token]) -> str:
    words = [f"“{_label(token)}”" if token.kind == "quoted" else _sign(token) for token in tokens]
    return " ".join(words).replace("( ", "(").replace(" )", ")").replace(" , ", ", ")


def _sign(token: Token) -> str:
    return "not" if token.text == "!" else _SIGNS.get(token.text, token.text)


def _label(token: Token) -> str:
    return token.text.strip('"').replace("_", " ")


def _whole(text: str) -> str:
    """Return a number of steps with separators, and a formula as it is written; ``10 - 1`` is calculated."""
    number, _, less = text.partition(" - ")
    if number.isdecimal() and less in ("", "1"):
        return f"{int(number) - (less == '1'):,}"
    return text


def _limit(text: str, *, is_probability: bool) -> str:
    """Return the number of a threshold: a probability in per cent, where that is short."""
    try:
        number = Fraction(text if "e" not in text.lower() else "")  # an exponent may be beyond all reason
    except (ValueError, ZeroDivisionError):
        return text
    return f"{float(100 * number):.10g} %" if is_probability and (number == 0 or number >= Fraction(1, 1000)) else text
