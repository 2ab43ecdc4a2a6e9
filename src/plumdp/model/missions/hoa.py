"""Reads deterministic automata from files in the Hanoi Omega-Automata format (HOA), such as other tools write.

They accept by any condition of the format (Büchi, generalised Büchi, Rabin, Streett, parity, and others).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, IntArray
from plumdp.model.missions.acceptance import Condition, Joined, Limit
from plumdp.model.missions.automaton import Automaton, letters_of
from plumdp.model.missions.marked_steps import MarkedSteps, decided, undecided
from plumdp.model.missions.recurrence import Recurrence

_TOKEN = re.compile(
    r'(?:\s|/\*.*?\*/)*(--[A-Z]+--|[A-Za-z_][\w-]*:|"(?:\\.|[^"\\])*"|@?[\w-]+|[][(){}!&|]|$)', re.DOTALL
)
_MOST_BYTES = 10**7
_MOST_MARKS = 64


@dataclass
class _File:
    """The parts of a file, as far as they are read."""

    tokens: list[str]
    at: int = 0
    header: dict[str, list[str]] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)

    def take(self, wanted: str = "") -> str:
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if (wanted and token != wanted) or not token:
            instead = f"found {token}" if token else "the file ends"
            raise ModelError(f"{instead} where {wanted or 'more'} is expected")
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        is_next = self.tokens[self.at : self.at + 1] == [token]
        self.at += is_next
        return is_next


def read_hoa(
    path: str | Path, states_of: Callable[[str], BoolArray], n_states: int, *, is_max: bool
) -> tuple[Automaton | Recurrence, bool]:
    """Return the automaton of a file, or one that accepts what it rejects, and whether it is the opposite.

    ``states_of`` returns the states in which an atomic proposition holds. ``is_max`` says whether runs should be
    accepted; otherwise an automaton that never decides is returned as its opposite, which they should avoid.
    """
    try:
        with Path(path).open("rb") as opened:
            text = opened.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ModelError(f"it has more than {_MOST_BYTES:,} bytes")
        return parse_hoa(text.decode("utf-8-sig"), states_of, n_states, is_max=is_max)
    except (OSError, UnicodeDecodeError, RecursionError, ModelError) as error:
        deep = "labels are nested too deeply"
        reason = deep if isinstance(error, RecursionError) else getattr(error, "strerror", None) or error
        raise ModelError(f"{path} cannot be read as an automaton: {reason}") from None


def parse_hoa(
    text: str, states_of: Callable[[str], BoolArray], n_states: int, *, is_max: bool
) -> tuple[Automaton | Recurrence, bool]:
    """Return the automaton of a text, as ``read_hoa`` does."""
    file = _File(_tokens(text))
    _read_header(file)
    propositions = [token[1:-1] for token in file.header.get("AP:", ["0"])[1:]]
    letter, holds = letters_of([states_of(name) for name in propositions], n_states)
    start, n = _whole(file, "Start:"), _whole(file, "States:")
    if not start < n:
        raise ModelError(f"its start {start} is not one of its {n:,} states")
    n_marks, condition = _acceptance(file)
    after, marks, names = _read_body(file, n, holds, n_marks)
    steps = MarkedSteps(after, marks, letter, start, tuple(names))
    return decided(steps, condition) or undecided(steps, condition, is_max=is_max)


def _acceptance(file: _File) -> tuple[int, Condition]:
    """Return the number of marks, and the condition, with one more mark for runs that have no way on."""
    number, *rest = file.header.get("Acceptance:", []) or [""]
    if not number.isdecimal() or int(number) > _MOST_MARKS:
        shown = " ".join([number, *rest]).strip() or "nothing"
        raise ModelError(f"Acceptance: {shown}: a number of sets, up to {_MOST_MARKS}, and a condition is expected")
    inner, n_marks = _File(rest), int(number)
    condition = _any_condition(inner, n_marks)
    if inner.at < len(rest):
        raise ModelError(f"found {rest[inner.at]} after the end of the acceptance condition")
    return n_marks, Joined("&", (condition, Limit(2 * n_marks, is_often=False)))


def _any_condition(file: _File, n_marks: int) -> Condition:
    parts = [_all_conditions(file, n_marks)]
    while file.accept("|"):
        parts.append(_all_conditions(file, n_marks))
    return parts[0] if len(parts) == 1 else Joined("|", tuple(parts))


def _all_conditions(file: _File, n_marks: int) -> Condition:
    parts = [_one_condition(file, n_marks)]
    while file.accept("&"):
        parts.append(_one_condition(file, n_marks))
    return parts[0] if len(parts) == 1 else Joined("&", tuple(parts))


def _one_condition(file: _File, n_marks: int) -> Condition:
    token = file.take()
    if token == "(":
        condition = _any_condition(file, n_marks)
        file.take(")")
        return condition
    if token in ("t", "f"):
        return Joined("&" if token == "t" else "|")
    if token not in ("Inf", "Fin"):
        raise ModelError(f"found {token} where Inf, Fin, t or f is expected in the acceptance condition")
    file.take("(")
    is_opposite = file.accept("!")  # steps without the mark, which have marks of their own here
    mark = _mark(file.take(), n_marks)
    file.take(")")
    return Limit(mark + n_marks * is_opposite, is_often=token == "Inf")


def _mark(token: str, n_marks: int) -> int:
    if not token.isdecimal() or int(token) >= n_marks:
        raise ModelError(f"{token} is not an acceptance set; there are {n_marks}")
    return int(token)


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ModelError(f"{text[at : at + 20].split()[0]!r} is not part of the format")
        at = found.end()
        if found[1]:
            tokens.append(found[1])
        elif at >= len(text):
            break
    return tokens


def _read_header(file: _File) -> None:
    if file.take() != "HOA:" or file.take() != "v1":
        raise ModelError("it does not begin with HOA: v1")
    while not file.accept("--BODY--"):
        name, values = file.take(), []
        if not name.endswith(":"):
            raise ModelError(f"found {name} where a line of the header is expected")
        while file.at < len(file.tokens) and not (
            file.tokens[file.at].endswith(":") or file.tokens[file.at] == "--BODY--"
        ):
            values.append(file.take())
        if name == "Alias:":
            file.aliases[values[0] if values else ""] = values[1:]
        elif name in file.header and name == "Start:":
            raise ModelError("it has several starts, and is not deterministic")
        else:
            file.header[name] = values


def _whole(file: _File, name: str) -> int:
    values = file.header.get(name, [])
    if len(values) != 1 or not values[0].isdecimal() or int(values[0]) > 10**6:
        raise ModelError(f"{name} {' '.join(values) or 'nothing'}: one whole number up to 1,000,000 is expected")
    return int(values[0])


def _read_body(file: _File, n: int, holds: BoolArray, n_marks: int) -> tuple[IntArray, BoolArray, list[str]]:
    """Return what is after each state and letter, the marks of the step, and the names of the states.

    The last state is added, for letters that have no way on. The marks are those of the file, then whether each of them
    is absent, and then whether there is no way on.
    """
    n_letters = holds.shape[1]
    if n * n_letters * (n_marks + 1) > 10**7:
        raise ModelError(f"{n:,} states and {n_letters:,} kinds of states of the model are too many")
    after = np.full((n + 1, n_letters), n, dtype=np.int32)
    marks = np.zeros((n + 1, n_letters, n_marks), dtype=np.bool_)
    names = [*(f"state {q}" for q in range(n)), "false"]
    while not file.accept("--END--"):
        file.take("State:")
        of_state = _label(file, holds) if file.tokens[file.at : file.at + 1] == ["["] else None
        state = _state(file, n)
        if file.tokens[file.at : file.at + 1] and file.tokens[file.at].startswith('"'):
            names[state] = file.take()[1:-1]
        of_all, edge = _marks(file, n_marks), 0
        while file.at < len(file.tokens) and file.tokens[file.at] not in ("State:", "--END--"):
            where = _label(file, holds) if file.tokens[file.at] == "[" else of_state
            if where is None:  # edges without labels are in the order of all sets of propositions
                number = (holds * (1 << np.arange(len(holds)))[:, None]).sum(axis=0)
                where, edge = number == edge, edge + 1
            to = _state(file, n)
            if (after[state, where] < n).any() and (after[state, where] != to)[after[state, where] < n].any():
                raise ModelError(f"it is not deterministic: there are two ways on from state {state}")
            after[state, where] = to
            marks[state, where] = _marks(file, n_marks) | of_all
    return after, np.concatenate([marks, ~marks, after[:, :, None] == n], axis=2), names


def _state(file: _File, n: int) -> int:
    token = file.take()
    if not token.isdecimal() or int(token) >= n:
        raise ModelError(f"{token} is not a state; they are 0 to {n - 1}")
    if file.accept("&"):
        raise ModelError("it goes on in two states at once, and is not deterministic")
    return int(token)


def _marks(file: _File, n_marks: int) -> BoolArray:
    """Read the acceptance sets of a state or a step, if there are some."""
    is_in = np.zeros(n_marks, dtype=np.bool_)
    if file.accept("{"):
        while not file.accept("}"):
            is_in[_mark(file.take(), n_marks)] = True
    return is_in


def _label(file: _File, holds: BoolArray) -> BoolArray:
    file.take("[")
    where = _any_of(file, holds)
    file.take("]")
    return where


def _any_of(file: _File, holds: BoolArray) -> BoolArray:
    where = _all_of(file, holds)
    while file.accept("|"):
        where = where | _all_of(file, holds)
    return where


def _all_of(file: _File, holds: BoolArray) -> BoolArray:
    where = _one_of(file, holds)
    while file.accept("&"):
        where = where & _one_of(file, holds)
    return where


def _one_of(file: _File, holds: BoolArray) -> BoolArray:
    token = file.take()
    if token == "!":
        return ~_one_of(file, holds)
    if token == "(":
        where = _any_of(file, holds)
        file.take(")")
        return where
    if token in ("t", "f"):
        return np.full(holds.shape[1], token == "t")
    if token in file.aliases:
        inner = _File(file.aliases[token], aliases=file.aliases)
        return _any_of(inner, holds)
    if not token.isdecimal() or int(token) >= len(holds):
        raise ModelError(f"{token} is not an atomic proposition; there are {len(holds)}")
    proposition: BoolArray = holds[int(token)]
    return proposition
