"""State predicates in the PRISM language, which are formulas over labels, variables and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.expressions.polynomial import Polynomial, exact
from plumdp.model.graph import OUT_OF_TABLE, BoolArray, Graph, read_only
from plumdp.model.language.formula import Formula, evaluate, literal, variable
from plumdp.model.language.tokens import OPERATOR, REFUSED, Token, Tokens
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.text import listing

if TYPE_CHECKING:
    from plumdp.model.missions.logic import Path

Kind: TypeAlias = Literal["Boolean", "integer", "fraction", "text", "path"]

_LEVELS = (("=>",), ("<=>",), ("|",), ("&",), ("=", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/"))
_LEVEL = {symbol: level for level, symbols in enumerate(_LEVELS) for symbol in symbols}  # the higher, the tighter
_ARGUMENTS = {"min": None, "max": None, "mod": 2, "pow": 2, "floor": 1, "ceil": 1}  # None: two or more
_LOGIC = ("=>", "<=>", "|", "&", "!")
_BOOLEANS: tuple[str, tuple[Kind, ...]] = ("Booleans", ("Boolean",))
_NUMBERS: tuple[str, tuple[Kind, ...]] = ("numbers", ("integer", "fraction"))
_TAKES = {
    **dict.fromkeys(("=>", "<=>", "|", "&", "!", "?"), _BOOLEANS),
    **dict.fromkeys(("<", "<=", ">", ">=", "+", "-", "*", "/", *_ARGUMENTS), _NUMBERS),
    "mod": ("integers", ("integer",)),
}
_GIVES: dict[str, Kind] = {
    **dict.fromkeys(("=>", "<=>", "|", "&", "!", "<", "<=", ">", ">="), "Boolean"),
    "/": "fraction",
    **dict.fromkeys(("floor", "ceil"), "integer"),
}  # the other operators give an integer from integers, else a fraction
DEEP = "this formula is nested too deeply; give its states a label in the model and name that"
_MAX_DIGITS = 1000  # of a number in the text
_MAX_BITS = 4096  # of a number that is calculated from the text
_SHOWN = {
    "Boolean": "a Boolean",
    "integer": "an integer",
    "fraction": "a fraction",
    "text": "a text",
    "path": "a path formula",
}


class NamedModel(Protocol):
    """A model with names that formulas refer to, either parametric or one of intervals."""

    @property
    def graph(self) -> Graph:
        """The states with their variables."""

    @property
    def labels(self) -> Mapping[str, BoolArray]:
        """The states of each label (n_states)."""

    @property
    def rewards(self) -> Mapping[str, RewardStructure]:
        """The reward structures by name."""

    @property
    def constants(self) -> Mapping[str, bool | int | Fraction]:
        """The values of constants."""


def parse_predicate(text: str, model: NamedModel) -> BoolArray:
    """Return for each state whether a formula over labels, variables and constants holds in it.

    >>> from plumdp import ParameterSpace, explore
    >>> from plumdp.model.language.property import parse_predicate
    >>> def step(state):
    ...     return {"go": [(1, state._replace(x=min(state.x + 1, 3)))]}
    >>> model = explore(step, {"x": 0}, space=ParameterSpace.unit("p"), labels={"odd": lambda s: s.x % 2 == 1})
    >>> parse_predicate('!"odd" & x > 0', model)
    array([False, False,  True, False])
    """
    tokens = Tokens(text)
    if tokens.next.kind == "end":
        raise ModelError('the predicate is empty; write for example "goal" or x > 0')
    states = PredicateReader(tokens, model).predicate()
    tokens.expect_end("predicate")
    return states


@dataclass(frozen=True, eq=False)
class Operand:
    """A formula, the kind of its value, and where its tokens are. A path formula has no value, but a tree."""

    formula: Formula
    kind: Kind
    start: Token
    stop: int = 0  # the number of the token behind it
    path: Path | None = None


class Temporal(Protocol):
    """Reads operators between which predicates may be, such as F and U."""

    def starts_here(self) -> bool:
        """Return whether the next token is an operator before a formula."""

    def prefixed(self) -> Operand:
        """Read an operator and the formula behind it."""

    def joined(self, left: Operand) -> Operand:
        """Return a formula, or two if an operator between them is read."""

    def combined(self, operator: str, operands: tuple[Operand, ...]) -> Operand:
        """Return path formulas joined by logic."""


class PredicateReader:
    """Reads predicates and numbers in the names of a model from tokens, and path formulas if ``temporal`` does."""

    def __init__(
        self,
        tokens: Tokens,
        model: NamedModel,
        names: Mapping[str, Any] | None = None,
        temporal: Temporal | None = None,
    ) -> None:
        self.tokens, self.model, self.temporal = tokens, model, temporal
        names_of_model: Mapping[str, Any] = {**model.constants, **model.graph.states}
        self.names = names_of_model if names is None else names
        self.labels = _labels(model)

    def predicate(self) -> BoolArray:
        """Read a state formula, and return the states in which it holds."""
        return self._states(*self._read(self.operand))

    def states_of(self, operand: Operand) -> BoolArray:
        """Return the states in which a formula holds that was read before."""
        return self._states(operand, self._evaluate(operand))

    def _states(self, operand: Operand, value: Any) -> BoolArray:
        if operand.kind != "Boolean":
            read = f"{self.tokens.since(operand.start, operand.stop)} is {_SHOWN[operand.kind]}"
            raise self.tokens.error(f"{read}; a formula that is true or false is expected", operand.start)
        holds: BoolArray = read_only(np.broadcast_to(np.asarray(value, dtype=np.bool_), self.model.graph.n_states))
        return holds

    def number(self) -> Fraction:
        """Read a sum over numbers and constants, and return its value."""
        operand, value = self._read(lambda: self._operation(_LEVEL["+"]))
        read = self.tokens.since(operand.start)
        if operand.kind not in ("integer", "fraction"):
            raise self.tokens.error(f"{read} is {_SHOWN[operand.kind]}; a number is expected", operand.start)
        varying = sorted(operand.formula.variables() & self.model.graph.states.keys())
        if varying:
            advice = (
                "a number without variables is expected (put a formula behind it that starts with - in parentheses)"
            )
            raise self.tokens.error(f"{varying[0]} is a state variable; {advice}", operand.start)
        number = value.constant if isinstance(value, Polynomial) else exact(value)
        if max(abs(number.numerator), number.denominator).bit_length() > _MAX_BITS:
            raise self.tokens.error("this number is too large", operand.start)
        return number

    def polynomial(self) -> Polynomial:
        """Read a sum over numbers and names, and return it, where names may stand for polynomials."""
        operand, value = self._read(lambda: self._operation(_LEVEL["+"]))
        if operand.kind not in ("integer", "fraction"):
            read = self.tokens.since(operand.start)
            raise self.tokens.error(f"{read} is {_SHOWN[operand.kind]}; a number is expected", operand.start)
        return value if isinstance(value, Polynomial) else Polynomial(exact(value))

    def _read(self, parse: Callable[[], Operand]) -> tuple[Operand, Any]:
        start = self.tokens.next
        try:
            operand = parse()
            return operand, self._evaluate(operand)
        except RecursionError:
            raise self.tokens.error(DEEP, start) from None

    def _evaluate(self, operand: Operand) -> Any:
        masks = {f'"{name}"': mask for name, mask in self.labels.items()}
        try:
            return evaluate(operand.formula, {**self.names, **masks})
        except (ModelError, ArithmeticError) as error:
            read = self.tokens.since(operand.start, operand.stop)
            raise self.tokens.error(f"{read} has no value: {error}", operand.start) from None

    def operand(self) -> Operand:
        """Read a formula of any kind, as much as there is of it."""
        condition = self._operation(0)
        symbol = self.tokens.next
        if not self.tokens.accept("?"):
            return condition
        self._check("?", condition)
        then = self.operand()
        self.tokens.expect(":")
        otherwise = self.operand()
        if _family(then) != _family(otherwise) or then.kind in ("text", "path"):
            shown = f"{_SHOWN[then.kind]} and {_SHOWN[otherwise.kind]}"
            raise self.tokens.error(f"? : chooses between two numbers or two Booleans, not {shown}", symbol)
        if then.kind == "Boolean":  # by logic: a formula's ? : is for numbers
            unless = self._apply("&", self._apply("!", condition), otherwise)
            return self._apply("|", self._apply("&", condition, then), unless)
        kind: Kind = "integer" if then.kind == otherwise.kind == "integer" else "fraction"
        return self._made(Formula("?", (condition.formula, then.formula, otherwise.formula)), kind, condition.start)

    def _operation(self, loosest: int) -> Operand:
        """Read operators that bind at least as tightly as a level, those of one level from left to right."""
        left = self._prefixed()
        while (level := _LEVEL.get(self.tokens.next.text, -1)) >= loosest:
            symbol = self.tokens.take()
            if self.tokens.next.kind == "quoted" and left.kind not in ("Boolean", "path"):  # beside these it is a label
                right = self._text(left.formula, self.tokens.take())
            else:
                right = self._operation(level + 1)
            is_equality = symbol.text in ("=", "!=")
            left = self._equality(symbol, left, right) if is_equality else self._apply(symbol.text, left, right)
        return left

    def _equality(self, symbol: Token, left: Operand, right: Operand) -> Operand:
        if _family(left) != _family(right) or left.kind == "path":
            raise self.tokens.error(f"{symbol.text} compares {_SHOWN[left.kind]} with {_SHOWN[right.kind]}", symbol)
        operator = {"=": "<=>", "!=": "xor"}[symbol.text] if left.kind == "Boolean" else symbol.text
        return self._made(Formula(operator, (left.formula, right.formula)), "Boolean", left.start)

    def _prefixed(self) -> Operand:
        token = self.tokens.next
        if self.tokens.accept("!"):
            inner = self._apply("!", self._operation(_LEVEL["="]))  # !x=1 is !(x=1)
        elif self.tokens.accept("-"):
            inner = self._apply("-", self._prefixed())
        elif self.tokens.accept("("):
            inner = self.operand() if self.temporal is None else self.temporal.joined(self.operand())
            self.tokens.expect(")")
        elif self.temporal is not None and self.temporal.starts_here():
            return self.temporal.prefixed()
        else:
            return self._atom()
        return replace(inner, start=token, stop=self.tokens.index)

    def _made(self, formula: Formula, kind: Kind, start: Token) -> Operand:
        """Return the formula whose last token was just read."""
        return Operand(formula, kind, start, self.tokens.index)

    def _atom(self) -> Operand:
        token = self.tokens.next
        if token.kind not in ("number", "quoted", "word"):
            raise self.tokens.unexpected("where a label, a variable or a number is expected")
        self.tokens.take()
        if token.kind == "number":
            return self._literal(token)
        if token.text in ("true", "false"):
            return self._made(literal(token.text == "true"), "Boolean", token)
        if token.text in _ARGUMENTS and self.tokens.next.text == "(":
            return self._call(token)
        return self._label(token) if token.kind == "quoted" else self._name(token)

    def _literal(self, token: Token) -> Operand:
        if len(token.text) > _MAX_DIGITS:
            raise self.tokens.error(f"this number has more than {_MAX_DIGITS:,} digits", token)
        if token.text.isdecimal():
            return self._made(literal(int(token.text)), "integer", token)
        try:
            return self._made(literal(exact(token.text)), "fraction", token)
        except ModelError as error:
            raise self.tokens.error(str(error), token) from None

    def _call(self, function: Token) -> Operand:
        self.tokens.expect("(")
        arguments = [self.operand()]
        while self.tokens.accept(","):
            arguments.append(self.operand())
        self.tokens.expect(")")
        wanted, given = _ARGUMENTS[function.text], len(arguments)
        if given != (wanted or max(given, 2)):
            takes = f"takes {wanted or 'two or more'} argument{'' if wanted == 1 else 's'}"
            raise self.tokens.error(f"{function.text} {takes}, not {given}", function)
        return replace(self._apply(function.text, *arguments), start=function)

    def _apply(self, operator: str, *operands: Operand) -> Operand:
        if self.temporal is not None and operator in _LOGIC and any(each.kind == "path" for each in operands):
            return self.temporal.combined(operator, operands)
        self._check(operator, *operands)
        whole = all(operand.kind == "integer" for operand in operands)
        kind = _GIVES.get(operator, "integer" if whole else "fraction")
        return self._made(Formula(operator, tuple(operand.formula for operand in operands)), kind, operands[0].start)

    def _check(self, operator: str, *operands: Operand) -> None:
        words, kinds = _TAKES[operator]
        for operand in operands:
            if operand.kind not in kinds:
                raise self.tokens.error(f"{operator} takes {words}; this is {_SHOWN[operand.kind]}", operand.start)

    def _label(self, token: Token) -> Operand:
        name = token.text[1:-1]
        if name in self.labels:
            return self._made(variable(token.text), "Boolean", token)
        if name in self.names:
            raise self.tokens.error(
                f"{token.text} is not a label but a variable or constant; leave out the quotes", token
            )
        labels = [f'"{label}"' for label in self.labels]
        near = did_you_mean(token.text, labels)
        raise self.tokens.error(f"{token.text} is not a label of the model{near}; it has {', '.join(labels)}", token)

    def _text(self, left: Formula, token: Token) -> Operand:
        """Return a text; refuse one that a variable has in no state, unless the model is a table that lacks some."""
        text, values = token.text[1:-1], self.model.graph.states.get(str(left.value))
        if left.operator == "variable" and values is not None and values.dtype.kind == "U" and text not in values:
            known = [str(each) for each in np.unique(values)]
            if OUT_OF_TABLE not in self.labels:  # a table may lack a value that there is
                said = f"{left.value} is {token.text} in no state{did_you_mean(text, known)}; it is {listing(known)}"
                raise self.tokens.error(said, token)
        return Operand(Formula("literal", value=text), "text", token)

    def _name(self, token: Token) -> Operand:
        name = token.text
        if name not in self.names:
            raise self._unknown(token)
        return self._made(variable(name), _kind(self.names[name]), token)

    def _unknown(self, token: Token) -> ModelError:
        name = token.text
        if isinstance(self.model, ParametricMDP) and name in self.model.space.names:
            return self.tokens.error(f"{name} is a parameter: its value is unknown", token)
        if name in self.labels:
            return self.tokens.error(f'{name} is a label; write it in quotes, "{name}"', token)
        if OPERATOR.fullmatch(name):
            return self.tokens.error(f"{name}: operators inside formulas are not supported; use a label instead", token)
        if name in REFUSED:
            return self.tokens.refused(token)
        if name in ("round", "log", "func") and self.tokens.next.text == "(":
            return self.tokens.error(f"{name} is not supported; the functions are {', '.join(_ARGUMENTS)}", token)
        near = did_you_mean(name, list(self.names))
        variables, constants = ", ".join(self.model.graph.states), ", ".join(self.model.constants) or "none"
        names = f"variables: {variables}; constants: {constants}"
        return self.tokens.error(f"{name} is not a variable or constant of the model{near}; {names}", token)


def _labels(model: NamedModel) -> dict[str, BoolArray]:
    """Return the model's labels, and those that every model has."""
    initial = np.arange(model.graph.n_states) == model.graph.initial_state
    return {"init": initial, "deadlock": np.diff(model.graph.first_choice) == 0, **model.labels}


def _kind(value: Any) -> Kind:
    if isinstance(value, np.ndarray):
        kinds: dict[str, Kind] = {"b": "Boolean", "U": "text"}
        return kinds.get(value.dtype.kind, "integer")
    return "Boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else "fraction"


def _family(operand: Operand) -> str:
    return "number" if operand.kind in ("integer", "fraction") else operand.kind


def did_you_mean(name: str, known: list[str]) -> str:
    """Return a suggestion in parentheses, if a known name is like this one."""
    near = get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""
