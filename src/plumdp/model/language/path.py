"""Path formulas in the PRISM language, which are predicates with temporal operators: F, G, X before, U, W, R between.

In PRISM, ``F a & b`` is ``F (a & b)``. Elsewhere F binds more tightly than ``&``. So parentheses are asked for where
the readings differ, unless ``a`` and ``b`` are predicates and F is the first word.
"""

from __future__ import annotations

from bisect import bisect_left

from plumdp.base.errors import ModelError
from plumdp.model.language.formula import literal
from plumdp.model.language.predicate import NamedModel, Operand, PredicateReader
from plumdp.model.language.tokens import Token, Tokens, unwrapped
from plumdp.model.missions.logic import Path, Spending
from plumdp.model.parametric import RewardStructure

BOUNDS = ("<=", "<", "=", "[", ">=", ">", "{")  # what may be between a temporal operator and its formula
PREFIXES, _INFIXES = ("F", "G", "X"), ("U", "W", "R")
_CONNECTIVES = ("&", "|", "=>", "<=>", "?")


class PathReader:
    """Reads a path formula from tokens, in the names of a model."""

    def __init__(self, tokens: Tokens, model: NamedModel) -> None:
        self.tokens, self.reader = tokens, PredicateReader(tokens, model, temporal=self)
        self.budget: Token | None = None  # the operator that has one

    def read(self) -> Path:
        """Return all of a formula."""
        first = self.tokens.next
        operand = self.joined(self.prefixed() if first.text in PREFIXES else self.reader.operand())
        if operand.path is None:
            self.reader.states_of(operand)
            read = self.tokens.since(first)
            raise self.tokens.error(f"{read} is not a path formula; put F, G or X before it, or U between two", first)
        if self.budget is not None and (operand.path.spending is None or not operand.path.is_plain):
            raise self.tokens.error(
                f"{self.budget.text}{{: a budget goes with predicates alone, and is no part of a larger formula",
                self.budget,
            )
        return operand.path

    def starts_here(self) -> bool:
        """Return whether the next token is an operator before a formula, and not a name of the model."""
        return self.tokens.next.text in PREFIXES and self.tokens.next.text not in self.reader.names

    def prefixed(self) -> Operand:
        """Read F, G or X and the formula behind it, as much as there is of it."""
        before, operator = self.tokens.all[self.tokens.index - 1], self.tokens.take()
        bound = self._bound(operator)
        operand = self.reader.operand()
        if self._has(operand, _CONNECTIVES) and (operand.path is not None or before.text not in ("[", "(")):
            raise self._unclear(operator, operand)
        return self._made(Path(operator.text, (self._path(operand),), *bound), operator)

    def joined(self, left: Operand) -> Operand:
        """Return a formula, or both if U, W or R is behind it and another one."""
        operator = self.tokens.next
        if operator.text not in _INFIXES:
            return left
        self.tokens.take()
        bound = self._bound(operator)
        before = self._path(left)  # its errors come first
        right = self.reader.operand()
        if left.path is not None and self._has(left, (*_CONNECTIVES, *PREFIXES)):
            raise self._unclear(operator, left)
        if right.path is not None and self._has(right, _CONNECTIVES):
            raise self._unclear(operator, right)
        if self.tokens.next.text in _INFIXES:
            both = f"{operator.text} and {self.tokens.next.text}"
            raise self.tokens.error(f"{both}: put one of them in parentheses, with its formulas")
        return self._made(Path(operator.text, (before, self._path(right)), *bound), left.start)

    def combined(self, operator: str, operands: tuple[Operand, ...]) -> Operand:
        """Return path formulas and predicates joined by logic."""
        return self._made(Path(operator, tuple(self._path(each) for each in operands)), operands[0].start)

    def _made(self, path: Path, start: Token) -> Operand:
        return Operand(literal(True), "path", start, self.tokens.index, path)

    def _path(self, operand: Operand) -> Path:
        if operand.path is not None:
            return operand.path
        states, within = self.reader.states_of(operand), unwrapped(self._tokens_of(operand))
        text = self.tokens.text[within[0].position : within[-1].position + len(within[-1].text)]
        return Path("states", states=states, text=" ".join(text.split()))

    def _tokens_of(self, operand: Operand) -> list[Token]:
        first = bisect_left(self.tokens.all, operand.start.position, key=lambda token: token.position)
        return self.tokens.all[first : operand.stop]

    def _has(self, operand: Operand, words: tuple[str, ...]) -> bool:
        """Return whether one of the words is in a formula and in no parentheses."""
        depth = 0
        for token in self._tokens_of(operand):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and token.text in words:
                return True
        return False

    def _unclear(self, operator: Token, operand: Operand) -> ModelError:
        read = self.tokens.since(operand.start, operand.stop)
        return self.tokens.error(
            f"{read}: put this, or the part that {operator.text} applies to, in parentheses", operator
        )

    def _bound(self, operator: Token) -> tuple[tuple[int, int] | None, Spending | None]:
        """Read a window of steps or a budget, either of which may be absent."""
        symbol = self.tokens.next.text
        if operator.text in ("X", "W", "R") and symbol in BOUNDS:
            instead = "it is F=1" if operator.text == "X" else "put one on F, G or U"
            raise self.tokens.error(f"{operator.text}{symbol}: {operator.text} takes no bound; {instead}")
        if symbol != "{":
            return window(self.reader, operator), None
        self.budget = operator
        self.tokens.take()
        name, reward = named_reward(self.reader, operator.text)
        comparison = self.tokens.take()
        if comparison.text not in ("<=", "<"):
            example = f'{operator.text}{{"{name}"}}<=10'
            raise self.tokens.error(f"a budget is the most that may be spent: write {example}", comparison)
        start = self.tokens.next
        most = self.reader.number()
        if most < 0 or self.tokens.next.text == ",":
            wrong = "is below 0, and costs are not" if most < 0 else "is one budget, and two are not supported"
            raise self.tokens.error(f"{self.tokens.since(start)} {wrong}", start)
        return None, Spending(name, reward, most, comparison.text == "<")


def named_reward(reader: PredicateReader, operator: str) -> tuple[str, RewardStructure]:
    """Read the rest of ``{"name"}``, and return a reward structure with its name."""
    tokens, rewards = reader.tokens, reader.model.rewards
    token = tokens.take()
    if token.kind != "quoted":
        what = f'{operator}{{{token.text}}}: name the reward structure in quotes, {operator}{{"name"}}'
        raise tokens.error(f"{what}; {available_rewards(reader)}", token)
    name = token.text[1:-1]
    if name not in rewards:
        raise tokens.error(f"{token.text} is not a reward structure; {available_rewards(reader)}", token)
    tokens.expect("}")
    return name, rewards[name]


def available_rewards(reader: PredicateReader) -> str:
    """Return the names of all reward structures of the model, in a sentence."""
    names = ", ".join(f'"{name}"' for name in reader.model.rewards)
    return f"the model has {names or 'no reward structure'}"


def window(reader: PredicateReader, operator: Token) -> tuple[int, int] | None:
    """Read ``<=k``, ``<k``, ``=k`` or ``[i,j]`` behind a temporal operator, and return the first and last step."""
    tokens, symbol = reader.tokens, reader.tokens.next.text
    if symbol not in BOUNDS:
        return None
    name = f"{operator.text}{symbol}"
    if symbol in (">=", ">"):
        raise tokens.error(f"{name}: a bound without an end is not supported; write {operator.text}[5,10]", operator)
    tokens.take()
    last = steps(reader)
    first = last if symbol in ("=", "[") else 0
    if symbol == "[":
        tokens.expect(",")
        last = steps(reader)
        tokens.expect("]")
    if symbol == "<":
        last -= 1
    if first > last:
        raise tokens.error(f"{tokens.since(operator)}: no step lies in this window", operator)
    return first, last


def steps(reader: PredicateReader) -> int:
    """Read a number of steps."""
    token = reader.tokens.next
    value = reader.number()
    if value < 0 or value.denominator != 1:
        read = reader.tokens.since(token)
        shown = read if read == str(value) else f"{read} = {value}"
        raise reader.tokens.error(f"{shown} is not a number of steps; give 0, 1, 2, …", token)
    return int(value)
