"""The values of a log as small whole numbers, what may be meant by others, and rows of numbers looked up in a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, in_line
from plumdp.base.vocabulary import NumberHint
from plumdp.model.graph import BoolArray, Graph, Indices

Codes: TypeAlias = npt.NDArray[np.int64]
"""Whole numbers from 0, or -1 for what is not known."""

_LARGEST_KEY = 1 << 62
_SPARE = 8  # places of a table for each row in it, up to which it is filled by position
_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.0*)?")  # a longer one is a text
_TRUTH = {"true": 1, "false": 0}
_ANSWERS = {"yes": 1, "no": 0}  # how many logs write truth values


@dataclass(frozen=True)
class Whole:
    """Whole numbers from ``low`` on; truth values are 0 and 1, and may be written as yes and no."""

    low: int
    size: int
    is_truth: bool = False

    def code(self, values: npt.NDArray[Any]) -> Codes:
        """Return the distance of each value from the lowest, also if the log has 3 as 3.0 or "3"."""
        if values.dtype.kind not in "biuf":
            return _code_objects(values, self._code_one)
        numbers, codes = np.ma.getdata(values), np.full(len(values), -1, dtype=np.int64)
        is_known = (numbers >= self.low) & (numbers < self.low + self.size) & ~np.ma.getmaskarray(values)
        if values.dtype.kind == "f":
            is_known &= numbers == np.floor(numbers)
        codes[is_known] = numbers[is_known].astype(np.int64) - self.low
        return codes

    def is_readable(self, values: npt.NDArray[Any]) -> BoolArray:
        """Return which values are whole numbers, whether some state has them or not."""
        if values.dtype.kind not in "biuf":
            return np.asarray(_code_objects(values, lambda value: -1 if self._number(value) is None else 0) == 0)
        numbers = np.ma.getdata(values)
        is_whole = np.isfinite(numbers) & (numbers == np.floor(numbers)) if values.dtype.kind == "f" else True
        return np.asarray(~np.ma.getmaskarray(values) & is_whole)

    def _number(self, value: Any) -> int | None:
        answer = _ANSWERS.get(value.strip().lower()) if self.is_truth and isinstance(value, str) else None
        return whole(value) if answer is None else answer

    def _code_one(self, value: Any) -> int:
        number = self._number(value)
        return number - self.low if number is not None and 0 <= number - self.low < self.size else -1


@dataclass(frozen=True)
class Texts:
    """Words, such as the names of actions; ``others`` are what a log may call them, with their positions."""

    words: tuple[str, ...]
    others: Mapping[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.words)

    def code(self, values: npt.NDArray[Any]) -> Codes:
        """Return the position of each value among the words."""
        number = {**{word: i for i, word in enumerate(self.words)}, **self.others}

        def code_one(value: Any) -> int:
            text = value if isinstance(value, str) else str(whole(value)) if whole(value) is not None else None
            if text is None:
                return -1
            plain = text.strip()
            return number.get(text, number.get(plain, self.others.get(plain.removesuffix(".0"), -1)))

        codes = _code_objects(values, code_one)
        codes[np.ma.getmaskarray(values)] = -1
        return codes

    def is_readable(self, values: npt.NDArray[Any]) -> BoolArray:
        """Return which values are words or whole numbers, whether some state has them or not."""

        def code_one(value: Any) -> int:
            is_word = bool(value.strip()) if isinstance(value, str) else whole(value) is not None
            return 0 if is_word else -1

        return np.asarray((_code_objects(values, code_one) == 0) & ~np.ma.getmaskarray(values))


def domain(values: npt.NDArray[Any]) -> Whole | Texts:
    """Return the values that a state variable takes."""
    if values.dtype.kind == "U":
        return Texts(tuple(np.unique(values).tolist()))
    if values.dtype.kind == "b":
        return Whole(0, 2, is_truth=True)
    return Whole(int(values.min()), int(values.max()) - int(values.min()) + 1)


def whole(value: Any) -> int | None:
    """Return a value as the whole number it stands for.

    >>> whole("3"), whole(3.0), whole("3.0"), whole("true"), whole(3.5), whole("three"), whole(None)
    (3, 3, 3, 1, None, None, None)
    """
    if isinstance(value, str):
        text = value.strip().lower()
        return int(text.partition(".")[0]) if _NUMBER.fullmatch(text) else _TRUTH.get(text)
    try:
        number = int(value)
        return number if number == value else None
    except (TypeError, ValueError, OverflowError):
        return None


def shown(value: Any) -> str:
    """Return a value of a log as text for messages."""
    if isinstance(value, float) and value == round(value, 0) and abs(value) < 2**53:
        return f"{value:.0f}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else in_line(str(value))


def _code_objects(values: npt.NDArray[Any], code_one: Callable[[Any], int]) -> Codes:
    """Return the codes of values of any type, each different one looked at once."""
    if values.dtype.kind in "mM":  # NumPy would make numbers of times
        return np.full(len(values), -1, dtype=np.int64)
    listed = np.ma.getdata(values).tolist()
    try:
        codes = {value: code_one(value) for value in set(listed)}
    except TypeError:
        example = next(value for value in listed if value.__hash__ is None)
        raise DataError(f"a column holds values like {example!r}; it must hold numbers, truth values or text") from None
    return np.fromiter(map(codes.__getitem__, listed), np.int64, len(listed))


class RowIndex:
    """Rows of codes, to be found again: each is packed into one number, looked up by position or by search."""

    def __init__(self, sizes: Sequence[int], columns: Sequence[Indices]) -> None:
        self._sizes = sizes
        self._known: list[Codes | None] = []  # by column: what stands for the columns before it, if they take too much
        keys, span = np.zeros(len(columns[0]), dtype=np.int64), 1
        for size, column in zip(sizes, columns, strict=True):
            known = None
            if span * size > _LARGEST_KEY:
                known, keys = np.unique(keys, return_inverse=True)
                span = len(known)
            self._known.append(known)
            keys, span = keys * size + column, span * size
        order = np.argsort(keys, kind="stable").astype(np.int32)
        ordered = keys[order]
        is_repeated = ordered[1:] == ordered[:-1]
        self.repeated = order[:-1][is_repeated]  # rows that come again; of equal rows, ``find`` returns the first
        self._is_dense = span <= _SPARE * len(order)
        if self._is_dense:
            self._keys, self._row = ordered[:0], np.full(span, -1, dtype=np.int32)
            self._row[ordered[::-1]] = order[::-1]
        else:
            self._keys, self._row = ordered, order

    def find(self, columns: Sequence[Codes]) -> Codes:
        """Return the number of the row with these codes, or -1."""
        keys, is_known = np.zeros(len(columns[0]), dtype=np.int64), np.ones(len(columns[0]), dtype=np.bool_)
        for size, known, column in zip(self._sizes, self._known, columns, strict=True):
            is_known &= column >= 0
            if known is not None:
                place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
                is_known &= known[place] == keys
                keys = place
            keys = keys * size + column
        keys[~is_known] = 0
        if self._is_dense:
            rows = self._row[keys]
        else:
            place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            rows = np.where(self._keys[place] == keys, self._row[place], -1)
        return np.where(is_known, rows, -1).astype(np.int64)


class StateIndex:
    """The states of a graph, to be found by the values of their variables, which tell all of them apart."""

    def __init__(self, graph: Graph, source: str = "table") -> None:
        self.variables = [domain(values) for values in graph.states.values()]
        self.rows = RowIndex([variable.size for variable in self.variables], self.codes([*graph.states.values()]))
        if len(self.rows.repeated):
            where = graph.describe_state(int(self.rows.repeated[0]))
            raise DataError(f"several states have the valuation ({where}), so that a {source} cannot tell them apart")

    def find(self, columns: Sequence[npt.NDArray[Any]]) -> Codes:
        """Return the state that each row of columns describes, or -1."""
        return self.rows.find(self.codes(columns))

    def codes(self, columns: Sequence[npt.NDArray[Any]]) -> list[Codes]:
        """Return the columns as whole numbers, each below the size of its variable."""
        return [variable.code(column) for variable, column in zip(self.variables, columns, strict=True)]


def likely_word(given: Any, words: Sequence[str]) -> str | None:
    """Return the word that a text is likely to stand for, if there is one.

    >>> likely_word("Esat", ["west", "east", "north"]), likely_word("fly", ["west", "east"])
    ('east', None)
    """
    folded = {word.casefold(): word for word in reversed(words)}
    text = given.strip().casefold() if isinstance(given, str) else ""
    near = get_close_matches(text, folded, n=3, cutoff=0.6) if text else []
    return folded[max(near, key=lambda word: (_likeness(word, text), word[0] == text[0]))] if near else None


def _likeness(word: str, text: str) -> float:
    """Return the similarity of two words; letters that changed places are the most likely mistake."""
    return 0.99 if sorted(word) == sorted(text) else SequenceMatcher(None, text, word).ratio()


def action_hint(graph: Graph, given: Any) -> str:
    """Return which action a name may stand for, or which there are if they are few."""
    look = re.fullmatch(r"(.+), (\S+) steps", str(given))
    if look and look[1] in graph.action_names:  # of a model whose choices are observations
        if not look[2].isdecimal():
            return "gaps are whole numbers of steps: choose shorter steps, or round times"
        return f"the model has no observation after {look[2]} steps: give it all gaps that are possible"
    word = likely_word(given, graph.action_names)
    if word is not None:
        is_same = given.strip().casefold() == word.casefold()
        return f"did you mean {word!r}?" + (" lower, upper and trim make names alike" if is_same else "")
    names = dict.fromkeys(graph.action_names)
    if whole(given) is not None:
        unclear = f"the model has {', '.join(map(repr, names))}, in no order that is clear"
        return NumberHint(f"it is not known which action a number is: {unclear}")
    return f"the actions are {', '.join(map(repr, names))}" if len(names) <= 6 and all(names) else ""


def state_hint(graph: Graph, values: Sequence[Any]) -> str:
    """Return which value of a state is not one of its variable, and what such values are."""
    values = [None if isinstance(value, float) and not isfinite(value) else value for value in values]
    for (name, own), value in zip(graph.states.items(), values, strict=True):
        if value is None or domain(own).code(_column(value))[0] >= 0:
            continue
        known = domain(own)
        if isinstance(known, Texts):
            word = likely_word(value, known.words)
            if word is not None:
                return f"{name}={shown(value)}: did you mean {shown(word)}?"
            return f"{name} is {', '.join(map(shown, known.words))} in the model" if len(known.words) <= 6 else ""
        return f"{name} is true or false" if known.is_truth else f"{name} is {own.min()} to {own.max()} in the model"
    return "" if None in values else "each value is known, but the model has no state with all of them"


def _column(value: Any) -> npt.NDArray[Any]:
    column = np.empty(1, dtype=np.object_)
    column[0] = value
    return column
