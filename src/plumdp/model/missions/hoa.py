"""Reads deterministic automata from files in the Hanoi Omega-Automata format (HOA), such as other tools write.

What is read is decided in finite time: each way that a run may go on forever in the automaton must be accepted as a
whole or rejected as a whole, and either the accepted ones or the rejected ones must have no way out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, IntArray
from plumdp.model.missions.automaton import Automaton, letters_of, may_reach, smallest

_TOKEN = re.compile(
    r'(?:\s|/\*.*?\*/)*(--[A-Z]+--|[A-Za-z_][\w-]*:|"(?:\\.|[^"\\])*"|@?[\w-]+|[][(){}!&|]|$)', re.DOTALL
)
_MOST_BYTES = 10**7
_DECIDED = "only automata are read that decide each run in finite time, such as those of co-safe and safe formulas"


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


def read_hoa(path: str | Path, states_of: Callable[[str], BoolArray], n_states: int) -> tuple[Automaton, bool]:
    """Return the automaton of a file, or one that accepts what it rejects, and whether it is the opposite.

    ``states_of`` returns the states in which an atomic proposition holds.
    """
    try:
        with Path(path).open("rb") as opened:
            text = opened.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ModelError(f"it has more than {_MOST_BYTES:,} bytes")
        return _read(text.decode("utf-8-sig"), states_of, n_states)
    except (OSError, UnicodeDecodeError, RecursionError, ModelError) as error:
        deep = "labels are nested too deeply"
        reason = deep if isinstance(error, RecursionError) else getattr(error, "strerror", None) or error
        raise ModelError(f"{path} cannot be read as an automaton: {reason}") from None


def _read(text: str, states_of: Callable[[str], BoolArray], n_states: int) -> tuple[Automaton, bool]:
    file = _File(_tokens(text))
    _read_header(file)
    propositions = [token[1:-1] for token in file.header.get("AP:", ["0"])[1:]]
    letter, holds = letters_of([states_of(name) for name in propositions], n_states)
    start, n = _whole(file, "Start:"), _whole(file, "States:")
    if not start < n:
        raise ModelError(f"its start {start} is not one of its {n:,} states")
    after, is_marked, names = _read_body(file, n, holds)
    acceptance = "".join(file.header.get("Acceptance:", ["no", "acceptance"])[1:])
    is_good = {"t": np.ones_like(is_marked), "f": np.zeros_like(is_marked), "Inf(0)": is_marked, "Fin(0)": ~is_marked}
    if acceptance not in is_good:
        shown = " ".join(file.header.get("acc-name:", [])) or acceptance
        raise ModelError(
            f"its acceptance is {shown}; t, f, Inf(0) (Büchi) and Fin(0) (co-Büchi) are read, and {_DECIDED}"
        )
    good = is_good[acceptance]
    good[-1] = False  # where there is no way on
    return _decided(after, good, letter, start, names)


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


def _read_body(file: _File, n: int, holds: BoolArray) -> tuple[IntArray, BoolArray, list[str]]:
    """Return what is after each state and letter, whether the step has a mark, and the names of the states.

    The last state is added, for letters that have no way on.
    """
    n_letters = holds.shape[1]
    if n * n_letters > 10**7:
        raise ModelError(f"{n:,} states and {n_letters:,} kinds of states of the model are too many")
    after = np.full((n + 1, n_letters), n, dtype=np.int32)
    is_marked = np.zeros((n + 1, n_letters), dtype=np.bool_)
    names = [*(f"state {q}" for q in range(n)), "false"]
    while not file.accept("--END--"):
        file.take("State:")
        of_state = _label(file, holds) if file.tokens[file.at : file.at + 1] == ["["] else None
        state = _state(file, n)
        if file.tokens[file.at : file.at + 1] and file.tokens[file.at].startswith('"'):
            names[state] = file.take()[1:-1]
        has_mark, edge = _mark(file), 0
        while file.at < len(file.tokens) and file.tokens[file.at] not in ("State:", "--END--"):
            where = _label(file, holds) if file.tokens[file.at] == "[" else of_state
            if where is None:  # edges without labels are in the order of all sets of propositions
                number = (holds * (1 << np.arange(len(holds)))[:, None]).sum(axis=0)
                where, edge = number == edge, edge + 1
            to = _state(file, n)
            if (after[state, where] < n).any() and (after[state, where] != to)[after[state, where] < n].any():
                raise ModelError(f"it is not deterministic: there are two ways on from state {state}")
            after[state, where] = to
            is_marked[state, where] = _mark(file) or has_mark
    return after, is_marked, names


def _state(file: _File, n: int) -> int:
    token = file.take()
    if not token.isdecimal() or int(token) >= n:
        raise ModelError(f"{token} is not a state; they are 0 to {n - 1}")
    if file.accept("&"):
        raise ModelError("it goes on in two states at once, and is not deterministic")
    return int(token)


def _mark(file: _File) -> bool:
    if not file.accept("{"):
        return False
    marks = []
    while not file.accept("}"):
        marks.append(file.take())
    return bool(marks)


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


def _decided(
    after: IntArray, good: BoolArray, letter: IntArray, start: int, names: list[str]
) -> tuple[Automaton, bool]:
    """Return the automaton in which a run is decided, or refuse one that has runs which are never decided."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

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
        raise ModelError(f"some runs are accepted or not by what they do infinitely often; {_DECIDED}")
    is_good, is_bad = (reached & part[component] for part in (n_good > 0, (n_stays > 0) & (n_good == 0)))
    wins, loses = ~may_reach(after, is_bad), ~may_reach(after, is_good)
    is_opposite = bool((is_good & ~wins).any())
    if is_opposite and (is_bad & ~loses).any():
        raise ModelError(f"some runs are not decided in finite time; {_DECIDED}")
    accepted, rejected = (loses, wins) if is_opposite else (wins, loses)
    whole = Automaton(after, letter, start, accepted, rejected, tuple(names))
    return smallest(whole, is_negated=is_opposite), is_opposite
