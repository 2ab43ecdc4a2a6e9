"""The Graph of a model, with states, choices and transitions as offsets. Later stages add arrays on its edges."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import in_line
from plumdp.model.text import number_of, one_line

OUT_OF_TABLE = "out_of_table"  # the label, and the only action, of the state for all that a table does not have


@dataclass(frozen=True, eq=False)
class Levels:
    """The states of level ``k`` are ``first_state[k]`` up to ``first_state[k + 1]``.

    Each state leads to states of the next level only, or all its choices lead back to itself.
    """

    folder: Path  # of the files
    first_state: npt.NDArray[np.int64]  # (n_levels + 1)

    def __len__(self) -> int:
        return len(self.first_state) - 1

    def __repr__(self) -> str:
        return f"Levels({len(self):,} levels in {str(self.folder)!r})"

    def scratch(self, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array of zeros in a file beside the model, which vanishes with the array."""
        with TemporaryFile(dir=self.folder) as file:
            file.truncate(max(n, 1) * np.dtype(dtype).itemsize)
            return np.memmap(file, dtype=dtype, mode="r+", shape=(n,))


def mapped(path: Path, dtype: npt.DTypeLike, n: int) -> npt.NDArray[Any]:
    """Return the numbers in a file as an array that is read when it is used."""
    return np.memmap(path, dtype=dtype, mode="r", shape=(n,)) if n else np.zeros(0, dtype=dtype)


def is_mapped(array: npt.NDArray[Any]) -> bool:
    """Return whether an array is a file, as a whole or in part."""
    return _map_of(array) is not None


def forget(array: npt.NDArray[Any]) -> None:
    """Give back the memory of a file that an array is a view of. Later reads come from the file."""
    mapping = _map_of(array)
    if mapping is not None and hasattr(mapping, "madvise"):
        mapping.madvise(mmap.MADV_DONTNEED)


def _map_of(array: Any) -> mmap.mmap | None:
    """Return the mapping that an array is a view of, if any."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.integer[Any]]

_LARGEST_INT32 = 2**31 - 1
_HASHED = 1 << 24  # elements that are hashed at once


@runtime_checkable
class HasGraph(Protocol):
    """A model, as far as those know it who count."""

    @property
    def counted_graph(self) -> Graph:
        """The graph whose transitions data count."""
        ...


@dataclass(frozen=True, eq=False)
class Graph:
    """States, their choices (one per action), and the transitions of each choice.

    State ``s`` has the choices ``first_choice[s]`` up to ``first_choice[s + 1]``. Choice ``c`` has the transitions
    ``first_transition[c]`` up to ``first_transition[c + 1]``. Transition ``t`` leads to ``successor[t]``.
    """

    first_choice: IntArray  # (n_states + 1)
    first_transition: IntArray  # (n_choices + 1)
    successor: IntArray  # (n_transitions)
    initial_state: int
    states: Mapping[str, npt.NDArray[Any]]  # variable → (n_states): int32, bool or text
    action: IntArray  # (n_choices), index into action_names
    action_names: tuple[str, ...]
    levels: Levels | None = None  # of a model that is stored on disk, see ``explore_batch``
    memory: Memory | None = None  # of a product with what a policy remembers, see ``memory.py``

    def __repr__(self) -> str:
        sizes = ((self.n_states, "state"), (self.n_choices, "choice"), (self.n_transitions, "transition"))
        return one_line(self, *(number_of(n, thing) for n, thing in sizes), f"variables {', '.join(self.states)}")

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.first_choice) - 1

    @property
    def n_choices(self) -> int:
        """The number of choices, which are state–action pairs."""
        return len(self.first_transition) - 1

    @property
    def n_transitions(self) -> int:
        """The number of transitions, which are edges."""
        return len(self.successor)

    @property
    def is_chain(self) -> bool:
        """Whether no state has several actions, so that there is one policy."""
        return self.n_choices == self.n_states

    @property
    def nbytes(self) -> int:
        """The memory of the arrays, state valuations included."""
        arrays = [self.first_choice, self.first_transition, self.successor, self.action, *self.states.values()]
        return sum(array.nbytes for array in arrays)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of structure, values of variables and names, which counts of transitions refer to."""
        digest = blake2b(digest_size=16)
        for array in (self.first_choice, self.first_transition, self.successor, self.action):
            update_digest(digest, array)
        for name, values in self.states.items():
            digest.update(repr((name, values.dtype.str)).encode())
            update_digest(digest, values)
        digest.update(repr((self.initial_state, self.action_names)).encode())
        return digest.hexdigest()

    def sum_by_choice(self, values: FloatArray) -> FloatArray:
        """Return the sum of transition values per choice."""
        return np.bincount(self.choice_of_transition(), values, self.n_choices).astype(np.float64)

    def state_of_choice(self) -> IntArray:
        """Return the state each choice belongs to."""
        return owners(self.first_choice)

    def choice_of_transition(self) -> IntArray:
        """Return the choice each transition belongs to."""
        return owners(self.first_transition)

    def state_of(self, choice: int) -> int:
        """Return the state of one choice."""
        return int(owners_of(self.first_choice, choice))

    def choice_of(self, transition: int) -> int:
        """Return the choice of one transition."""
        return int(owners_of(self.first_transition, transition))

    def transitions_of(self, choices: Indices) -> Indices:
        """Return the transitions of some choices, one choice after the other."""
        return ranges(self.first_transition[choices], self.first_transition[choices + 1])

    def keep(self, transitions: BoolArray) -> Graph:
        """Return the graph with only the marked transitions (n_transitions), and with all states and choices.

        An array on transitions is taken at the mark: ``expression[transitions]``.
        """
        kept_before = np.concatenate([[0], np.cumsum(transitions, dtype=np.int64)])
        first = kept_before[self.first_transition].astype(offset_type(int(kept_before[-1])))
        return replace(self, first_transition=read_only(first), successor=read_only(self.successor[transitions]))

    def take(self, choices: Indices) -> tuple[Graph, Indices]:
        """Return the graph with only the given choices, in the order of their states, and its transitions here.

        States stay. An array on choices is taken at ``choices``, one on transitions at the transitions returned.
        """
        transitions = self.transitions_of(choices)
        first_transition = np.zeros(len(choices) + 1, dtype=offset_type(len(transitions)))
        np.cumsum(self.first_transition[choices + 1] - self.first_transition[choices], out=first_transition[1:])
        smaller = replace(
            self,
            first_choice=read_only(self._first_of(choices)),
            first_transition=read_only(first_transition),
            successor=read_only(self.successor[transitions]),
            action=read_only(self.action[choices]),
            memory=None,
        )
        return smaller, transitions

    def _first_of(self, choices: Indices) -> IntArray:
        """Return the offsets of each state's choices among the given ones, which must be in the order of states."""
        every = np.arange(self.n_states + 1, dtype=np.int32)
        is_one_each = len(choices) == self.n_states and (self.first_choice[:-1] <= choices).all()
        if is_one_each and (choices < self.first_choice[1:]).all():
            return every
        source = owners_of(self.first_choice, choices)
        if (np.diff(source) < 0).any():
            raise ValueError("the choices of a graph must be in the order of their states")
        return np.searchsorted(source, every).astype(np.int32)

    def describe_state(self, state: int) -> str:
        """Return a state's valuation as text, for instance ``x=3, y=5``."""
        return ", ".join(f"{name}={_text(values[state])}" for name, values in self.states.items())

    def describe_choice(self, choice: int) -> str:
        """Return a choice as text, for instance ``state (x=3, y=5), action 'up'``."""
        return (
            f"state ({self.describe_state(self.state_of(choice))}), action {self.action_names[self.action[choice]]!r}"
        )

    def component_sizes(self) -> IntArray:
        """Return the number of states of each strongly connected component, largest first."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        edges, offsets = np.ones(self.n_transitions, dtype=np.bool_), self.first_transition[self.first_choice]
        matrix = csr_array((edges, self.successor, offsets), shape=(self.n_states, self.n_states), copy=True)
        matrix.sum_duplicates()  # the search of SciPy 1.13 and 1.14 never ends if an edge is listed twice
        _, component = connected_components(matrix, directed=True, connection="strong")
        sizes: IntArray = np.sort(np.bincount(component))[::-1].astype(np.int32)
        return sizes

    def is_acyclic(self) -> bool:
        """Return whether every cycle is a self-loop, so that one backward pass is exact."""
        return bool(self.component_sizes()[0] == 1)


@dataclass(frozen=True, eq=False)
class Memory:
    """The tie of a product's graph to the graph without memory, and the variables that a policy has to keep itself."""

    graph: Graph  # without memory
    state: IntArray  # (n_states): the state there
    choice: IntArray  # (n_choices): the choice there
    names: tuple[str, ...]  # of the state variables that are memory
    words: str  # what a policy does with it, as certificates say it

    def __repr__(self) -> str:
        return one_line(self, ", ".join(self.names), repr(self.graph))


def offset_type(largest: int) -> type[np.signedinteger[Any]]:
    """Return the type of offsets up to the given one, which is int32 as long as it fits.

    >>> offset_type(2**31 - 1), offset_type(2**31)
    (<class 'numpy.int32'>, <class 'numpy.int64'>)
    """
    return np.int32 if largest <= _LARGEST_INT32 else np.int64


def update_digest(digest: Any, array: npt.NDArray[Any]) -> None:
    """Add an array to a hash, a part at a time. Numbers in a type narrower than int32 count as int32."""
    is_narrow = array.dtype.kind in "iu" and array.dtype.itemsize < 4
    for start in range(0, len(array), _HASHED):
        part = np.ascontiguousarray(array[start : start + _HASHED], dtype=np.int32 if is_narrow else None)
        digest.update(part.view(np.uint8).data)
        forget(array)


def owners(first: Indices) -> IntArray:
    """Return the group of every item, if group ``g`` has the items ``first[g]`` up to ``first[g + 1]``.

    >>> owners(np.array([0, 2, 2, 3]))
    array([0, 0, 2], dtype=int32)
    """
    return np.repeat(np.arange(len(first) - 1, dtype=np.int32), np.diff(first))


def sum_by(index: Indices, values: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Return the sums of whole numbers with the same index, exactly."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, index, values)
    return read_only(total)


def owners_of(first: Indices, items: npt.ArrayLike) -> IntArray:
    """Return the group of each given item, looked up one by one, for items that are few beside the whole.

    >>> owners_of(np.array([0, 2, 2, 3]), [2, 0])
    array([2, 0], dtype=int32)
    """
    same = np.asarray(items, dtype=first.dtype)  # or else all of the offsets would be converted
    groups: IntArray = (np.searchsorted(first, same, side="right") - 1).astype(np.int32)
    return groups


def ranges(start: Indices, end: Indices) -> Indices:
    """Return the numbers from each start up to its end, one after the other.

    >>> ranges(np.array([3, 7]), np.array([5, 8]))
    array([3, 4, 7])
    """
    lengths = end - start
    stops = np.cumsum(lengths)
    shift: Indices = np.repeat(start - (stops - lengths), lengths)
    return shift + np.arange(len(shift))


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, contiguous and protected against writing, as models are shared and never changed."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def own_array(values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """Return values of a caller as an array of our own, protected against writing, without a change to theirs.

    Only an array that is protected already, and shares its memory with no other or is mapped from a file, is not
    copied.
    """
    array = np.asarray(values, dtype=dtype)
    is_own = (array.base is None or is_mapped(array)) and array.flags.c_contiguous and not array.flags.writeable
    return array if is_own else read_only(array.copy())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, np.bool_ | bool) else in_line(str(value))
