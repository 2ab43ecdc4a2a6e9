"""Reads deterministic automata from files in the Hanoi Omega-Automata format (HOA), such as other tools write.

They accept by any condition of the format (Büchi, generalised Büchi, Rabin, Streett, parity, and others).

Marks may be on steps. Then runs are accepted or rejected in finite time if each way that a run may go on forever is
accepted as a whole or rejected as a whole, and either the accepted ones or the rejected ones have no way out. Nothing
need be known of the model but its graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, IntArray
from plumdp.model.missions.automaton import (
    Automaton,
    Condition,
    Joined,
    Limit,
    explored,
    letters_of,
    may_reach,
    negated,
    pairs_of,
    smallest,
)
from plumdp.model.missions.recurrence import Recurrence, smallest_recurrence

_Read = TypeVar("_Read")
_TOKEN = re.compile(r'\s+|/\*.*?\*/|(--[A-Z]+--|[A-Za-z_][\w-]*:|"(?:\\.|[^"\\])*"|@?[\w-]+|[][(){}!&|])', re.DOTALL)
_MEANS = ("States:", "Start:", "AP:", "Acceptance:")  # names in lower case change no meaning
_MOST_BYTES = 10**7
_MOST_MARKS = 64
_MOST_STATES = 10**6


@dataclass
class _File:
    """The tokens of a file with their lines, and the place up to which they are read."""

    tokens: list[str]
    lines: list[int]
    at: int = 0
    header: dict[str, tuple[int, int]] = field(default_factory=dict)  # first and last place after each name or @alias
    aliases: dict[str, BoolArray] = field(default_factory=dict)  # that were read

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    @property
    def line(self) -> int:
        """The line of the token that was read last."""
        return self.lines[min(self.at, len(self.lines)) - 1] if self.lines else 1

    def take(self, wanted: str = "") -> str:
        token, self.at = self.next, self.at + 1
        if (wanted and token != wanted) or not token:
            instead = f"found {token}" if token else "the file ends"
            raise ModelError(f"{instead} where {wanted or 'more'} is expected")
        return token

    def accept(self, token: str) -> bool:
        is_next = self.next == token
        self.at += is_next
        return is_next

    def in_header(self, name: str, read: Callable[[], _Read]) -> _Read:
        """Return the value that a function reads after a name in the header; more text there is refused."""
        if name not in self.header:
            raise ModelError(f"its header has no line {name}")
        here, (self.at, end) = self.at, self.header[name]
        result = read()
        if self.at != end:
            raise ModelError(f"found {self.take()} after the end of {name}")
        self.at = here
        return result


def read_hoa(
    path: str | Path, states_of: Callable[[str], BoolArray], n_states: int, *, is_max: bool, is_open: bool = False
) -> tuple[Automaton | Recurrence, bool]:
    """Return the automaton of a file, or one that accepts what it rejects, and whether it is the opposite.

    ``states_of`` returns the states in which an atomic proposition holds. ``is_max`` says whether runs should be
    accepted; otherwise an automaton that never decides is returned as its opposite, which they should avoid. If the
    model is open, runs are decided by what holds in any states, not only in those that it has.
    """
    try:
        with Path(path).open("rb") as opened:
            text = opened.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ModelError(f"it has more than {_MOST_BYTES:,} bytes")
        return parse_hoa(text.decode("utf-8-sig"), states_of, n_states, is_max=is_max, is_open=is_open)
    except (OSError, UnicodeDecodeError, ModelError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{path} cannot be read as an automaton: {reason}") from None


def parse_hoa(
    text: str, states_of: Callable[[str], BoolArray], n_states: int, *, is_max: bool, is_open: bool = False
) -> tuple[Automaton | Recurrence, bool]:
    """Return the automaton of a text, as ``read_hoa`` does."""
    file = _tokens(text)
    try:
        _read_header(file)
        n = file.in_header("States:", lambda: _number(file, _MOST_STATES + 1, "a number of states, up to 1,000,000,"))
        start = file.in_header("Start:", lambda: _number(file, n, f"a state, 0 to {n - 1},"))
        n_marks, condition = file.in_header("Acceptance:", lambda: _acceptance(file))
        held = file.in_header("AP:", lambda: _propositions(file, states_of)) if "AP:" in file.header else []
        letter, holds = letters_of(held, n_states, every=is_open)
        after, marks, names = _read_body(file, n, holds, n_marks)
    except (ModelError, RecursionError) as error:
        reason = "labels are nested too deeply" if isinstance(error, RecursionError) else error
        raise ModelError(f"line {file.line:,}: {reason}") from None
    steps = MarkedSteps(after, marks, letter, start, tuple(names))
    return decided(steps, condition) or undecided(steps, condition, is_max=is_max)


def _number(file: _File, n: int, what: str) -> int:
    """Read a number below n."""
    token = file.take()
    if not token.isdecimal() or len(token) > 9 or int(token) >= n:
        raise ModelError(f"found {token[:40]} where {what} is expected")
    return int(token)


def _propositions(file: _File, states_of: Callable[[str], BoolArray]) -> list[BoolArray]:
    names = [file.take() for _ in range(_number(file, _MOST_STATES, "the number of propositions"))]
    if wrong := [name for name in names if not name.startswith('"')]:
        raise ModelError(f"found {wrong[0]} where a proposition in quotes is expected")
    return [states_of(name[1:-1]) for name in names]


def _acceptance(file: _File) -> tuple[int, Condition]:
    """Return the number of marks, and the condition, with one more mark for runs that have no way on."""
    n_marks = _number(file, _MOST_MARKS + 1, f"a number of acceptance sets, up to {_MOST_MARKS},")
    return n_marks, Joined("&", (_condition(file, n_marks), Limit(2 * n_marks, is_often=False)))


def _condition(file: _File, n_marks: int, signs: str = "|&") -> Condition:
    """Read conditions that are joined by signs, of which a later one binds more tightly."""
    if signs:
        parts = [_condition(file, n_marks, signs[1:])]
        while file.accept(signs[0]):
            parts.append(_condition(file, n_marks, signs[1:]))
        return parts[0] if len(parts) == 1 else Joined("|" if signs[0] == "|" else "&", tuple(parts))
    token = file.take()
    if token == "(":
        condition = _condition(file, n_marks)
        file.take(")")
        return condition
    if token in ("t", "f"):
        return Joined("&" if token == "t" else "|")
    if token not in ("Inf", "Fin"):
        raise ModelError(f"found {token} where Inf, Fin, t or f is expected in the acceptance condition")
    file.take("(")
    is_opposite = file.accept("!")  # steps without the mark, which have marks of their own here
    mark = _mark(file, n_marks)
    file.take(")")
    return Limit(mark + n_marks * is_opposite, is_often=token == "Inf")


def _mark(file: _File, n_marks: int) -> int:
    return _number(file, n_marks, f"one of {n_marks} acceptance sets, by its number from 0,")


def _tokens(text: str) -> _File:
    file, at, line = _File([], []), 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ModelError(f"line {line:,}: {text[at : at + 20].split()[0]!r} is not part of the format")
        if found[1]:
            file.tokens.append(found[1])
            file.lines.append(line)
        at, line = found.end(), line + found[0].count("\n")
    return file


def _read_header(file: _File) -> None:
    if file.take() != "HOA:" or file.take() != "v1":
        raise ModelError("it does not begin with HOA: v1")
    while not file.accept("--BODY--"):
        name = file.take()
        is_alias = name == "Alias:"
        name = file.take() if is_alias else name
        if not (name.startswith("@") if is_alias else name.endswith(":")):
            raise ModelError(f"found {name} where a line of the header is expected")
        if name[0].isupper() and name not in _MEANS:  # by the format, it may change what the automaton means
            raise ModelError(f"{name} is not known here")
        if name in file.header and not name[0].islower():
            several = "it has several starts, and is not deterministic"
            raise ModelError(several if name == "Start:" else f"{name} is given twice")
        first = file.at
        while file.next and not file.next.endswith(":") and file.next != "--BODY--":
            file.at += 1
        file.header[name] = first, file.at


def _read_body(file: _File, n: int, holds: BoolArray, n_marks: int) -> tuple[IntArray, BoolArray, list[str]]:
    """Return the successor of each state and letter, the marks of the step, and the names of the states.

    The last state is added, for letters that have no way on. The marks are those of the file, then whether each of them
    is absent, and then whether there is no way on.
    """
    n_letters = holds.shape[1]
    if n * n_letters * (n_marks + 1) > 10**7:
        raise ModelError(f"{n:,} states and {n_letters:,} kinds of states of the model are too many")
    after = np.full((n + 1, n_letters), n, dtype=np.int32)
    marks = np.zeros((n + 1, n_letters, n_marks), dtype=np.bool_)
    names = [*(f"state {q}" for q in range(n)), "false"]
    is_read = np.zeros(n, dtype=np.bool_)
    while not file.accept("--END--"):
        file.take("State:")
        of_state = _label(file, holds) if file.next == "[" else None
        state = _state(file, n)
        if is_read[state]:
            raise ModelError(f"state {state} is described twice")
        is_read[state] = True
        if file.next.startswith('"'):
            names[state] = file.take()[1:-1]
        of_all, edge = _marks(file, n_marks), 0
        while file.next not in ("State:", "--END--", ""):
            if file.next == "[" and of_state is not None:
                raise ModelError(f"state {state} has a label, and so has one of its edges")
            where = _label(file, holds) if file.next == "[" else of_state
            if where is None:  # edges without labels are in the order of all sets of propositions
                number = (holds * (1 << np.arange(len(holds)))[:, None]).sum(axis=0)
                where, edge = number == edge, edge + 1
            to, of_edge = _state(file, n), _marks(file, n_marks) | of_all
            is_taken = where & (after[state] < n)
            if (after[state, is_taken] != to).any() or (marks[state, is_taken] != of_edge).any():
                raise ModelError(f"it is not deterministic: two ways on from state {state} have labels that overlap")
            after[state, where], marks[state, where] = to, of_edge
        if edge not in (0, 2 ** len(holds)):
            raise ModelError(f"state {state} has {edge} edges without labels; it needs {2 ** len(holds):,}, or labels")
    if file.next:
        raise ModelError(f"found {file.take()} after --END--; a file holds one automaton")
    return after, np.concatenate([marks, ~marks, after[:, :, None] == n], axis=2), names


def _state(file: _File, n: int) -> int:
    state = _number(file, n, f"a state, 0 to {n - 1},")
    if file.accept("&"):
        raise ModelError("it goes on in two states at once, and is not deterministic")
    return state


def _marks(file: _File, n_marks: int) -> BoolArray:
    """Read the acceptance sets of a state or a step, if there are some."""
    is_in = np.zeros(n_marks, dtype=np.bool_)
    if file.accept("{"):
        while not file.accept("}"):
            is_in[_mark(file, n_marks)] = True
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
    if token.startswith("@"):
        if token not in file.aliases:  # each is read once, else a line of aliases of aliases doubles the work
            file.aliases[token] = file.in_header(token, lambda: _any_of(file, holds))
        return file.aliases[token]
    file.at -= 1
    which = f"one of {len(holds)} propositions, by its number from 0,"
    proposition: BoolArray = holds[_number(file, len(holds), which)]
    return proposition


@dataclass(frozen=True, eq=False)
class MarkedSteps:
    """A deterministic automaton whose steps have marks.

    Its last state is for letters that have no way on, which is the last mark.
    """

    after: IntArray  # (n, n_letters)
    marks: BoolArray  # (n, n_letters, n_marks): of the steps
    letter: IntArray  # (n_states)
    start: int
    names: tuple[str, ...]


def decided(automaton: MarkedSteps, condition: Condition) -> tuple[Automaton, bool] | None:
    """Return the automaton in which a run is decided in finite time, or None if there are runs that never are."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    after, start = automaton.after, automaton.start
    good = _good_steps(automaton, condition)
    if good is None:
        return None
    reached = np.zeros(len(after), dtype=np.bool_)
    found = np.array([start])
    while len(found):
        reached[found] = True
        found = np.unique(after[found])
        found = found[~reached[found]]
    source, to = np.repeat(np.arange(len(after)), after.shape[1]), after.reshape(-1)
    edges = csr_array((np.ones(len(to), dtype=np.int32), (source, to)), shape=(len(after),) * 2)
    _, component = connected_components(edges, directed=True, connection="strong")
    stays = (component[after] == component[:, None]) & reached[:, None]
    n_stays, n_good = (np.bincount(component, part.sum(axis=1)) for part in (stays, stays & good))
    if ((n_good > 0) & (n_good < n_stays)).any():
        return None
    is_good, is_bad = (reached & part[component] for part in (n_good > 0, (n_stays > 0) & (n_good == 0)))
    wins, loses = ~may_reach(after, is_bad), ~may_reach(after, is_good)
    is_opposite = bool((is_good & ~wins).any())
    if is_opposite and (is_bad & ~loses).any():
        return None
    accepted, rejected = (loses, wins) if is_opposite else (wins, loses)
    whole = Automaton(after, automaton.letter, start, accepted, rejected, automaton.names)
    return smallest(whole, is_negated=is_opposite), is_opposite


def _good_steps(automaton: MarkedSteps, condition: Condition) -> BoolArray | None:
    """Return the steps such that a run is accepted if it takes them alone forever, and rejected if it takes none.

    They are None if the condition is about several marks.
    """
    pairs, dead = pairs_of(condition), automaton.marks.shape[2] - 1
    alone = [(set(pair.never) - {dead}, pair.often) for pair in pairs]
    is_dead: BoolArray = automaton.marks[:, :, dead]
    if not pairs or alone == [(set(), ())]:
        return ~is_dead if pairs else np.zeros_like(is_dead)
    ((never, often), *others) = alone
    if others or len(never) + len(often) > 1:
        return None
    marks: BoolArray = automaton.marks[:, :, [*never, *often][0]]
    return (~marks if never else marks) & ~is_dead


def undecided(automaton: MarkedSteps, condition: Condition, *, is_max: bool) -> tuple[Recurrence, bool]:
    """Return the automaton with marks of states instead of steps, or its opposite."""
    none = (False,) * automaton.marks.shape[2]
    rows = [[tuple(marks) for marks in of_state] for of_state in automaton.marks.tolist()]
    kept, after = explored(
        (automaton.start, none),
        lambda each, letter: (int(automaton.after[each[0], letter]), rows[each[0]][letter]),
        automaton.after.shape[1],
    )
    whole = Recurrence(
        after,
        automaton.letter,
        0,
        np.array([marks for _, marks in kept]),
        pairs_of(condition if is_max else negated(condition)),
        tuple(automaton.names[state] for state, _ in kept),
    )
    return smallest_recurrence(whole), not is_max
