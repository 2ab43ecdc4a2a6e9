"""A policy as a small decision tree over the state variables, the same in every state, as Python code and as rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp import __version__
from plumdp.base.errors import DataError
from plumdp.model.graph import FloatArray, Graph, IntArray
from plumdp.model.named_policy import python_names
from plumdp.model.text import number_of, one_line

_DEPENDS = "what the policy remembers depends on where a step leads; write it as .csv or .json"
_EVEN = 1e-9  # relative: splits that tell so nearly the same are chosen by how evenly they divide the states


@dataclass(frozen=True, eq=False)
class DecisionTree:
    """Comparisons of state variables that lead to what a policy does; node 0 comes first, and leaves have no variable.

    Numbers and truth values go to ``yes`` up to the value, texts if they are equal to it.
    """

    names: tuple[str, ...]  # of the state variables
    variable: tuple[int, ...]  # (n_nodes): index into names, -1 for a leaf
    value: tuple[Any, ...]  # (n_nodes): of the variable; for a leaf, the number of what is done
    yes: tuple[int, ...]  # (n_nodes): the next node if the comparison holds
    no: tuple[int, ...]  # (n_nodes): the next node if it does not
    done: tuple[Any, ...]  # what the policy does: the name of an action, or a dict from names to probabilities

    def __repr__(self) -> str:
        return one_line(self, self.size)

    @property
    def n_comparisons(self) -> int:
        """The number of comparisons in the tree."""
        return sum(variable >= 0 for variable in self.variable)

    @property
    def size(self) -> str:
        """The size of the tree, in words."""
        return f"{number_of(self.n_comparisons, 'comparison')}, at most {max(self._depths())} for one state"

    def _depths(self) -> list[int]:
        depth = [0] * len(self.variable)
        for node, variable in enumerate(self.variable):  # children come after their parents
            if variable >= 0:
                depth[self.yes[node]] = depth[self.no[node]] = depth[node] + 1
        return depth

    def decide(self, columns: Mapping[str, npt.NDArray[Any]]) -> IntArray:
        """Return the number of what is done in each state of some columns."""
        values = [columns[name] for name in self.names]
        result = np.empty(len(values[0]), dtype=np.int32)
        inside = {0: np.arange(len(result))}
        for node, variable in enumerate(self.variable):
            states = inside.pop(node)
            if variable < 0:
                result[states] = self.value[node]
                continue
            column = values[variable][states]
            holds = column == self.value[node] if column.dtype.kind == "U" else column <= self.value[node]
            inside[self.yes[node]], inside[self.no[node]] = states[holds], states[~holds]
        return result

    def done_in(self, columns: Mapping[str, npt.NDArray[Any]]) -> list[Any]:
        """Return the action in each state of some columns."""
        return [self.done[number] for number in self.decide(columns).tolist()]

    def lines(self, names: list[str], *, is_code: bool) -> Iterator[str]:
        """Yield the tree as nested comparisons, in code that returns, or as rules of which the first that fits counts.

        Whichever branch has fewer leaves is written inside of the comparison, so that they nest a few levels deep.
        """
        leaves = [int(variable < 0) for variable in self.variable]
        for node in reversed(range(len(leaves))):
            if self.variable[node] >= 0:
                leaves[node] = leaves[self.yes[node]] + leaves[self.no[node]]
        yield from self._nested(0, "    " if is_code else "", leaves, names, is_code=is_code)

    def _nested(self, node: int, pad: str, leaves: list[int], names: list[str], *, is_code: bool) -> Iterator[str]:
        first = node
        while self.variable[node] >= 0:
            is_yes = leaves[self.yes[node]] <= leaves[self.no[node]]
            inner, rest = (self.yes[node], self.no[node]) if is_yes else (self.no[node], self.yes[node])
            condition = self._condition(node, names, holds=is_yes)
            if self.variable[inner] < 0 and not is_code:
                yield f"{pad}if {condition}: {_in_words(self.done[self.value[inner]])}"
            else:
                yield f"{pad}if {condition}:"
                yield from self._nested(inner, f"{pad}    ", leaves, names, is_code=is_code)
            node = rest
        done, word = self.done[self.value[node]], "always" if node == first else "else"
        yield f"{pad}return {done!r}" if is_code else f"{pad}{word}: {_in_words(done)}"

    def _condition(self, node: int, names: list[str], *, holds: bool) -> str:
        name, value = names[self.variable[node]], self.value[node]
        if isinstance(value, str):
            return f"{name} {'==' if holds else '!='} {value!r}"
        if isinstance(value, bool):
            return f"not {name}" if holds else name
        return f"{name} {'<=' if holds else '>'} {value}"


def _in_words(done: Any) -> str:
    return done if isinstance(done, str) else ", ".join(f"{name} with {share:g}" for name, share in done.items())


def tree_of(graph: Graph, choice: IntArray, weights: FloatArray | None) -> DecisionTree:
    """Return a decision tree of a policy, which is compared with it in every state."""
    done, label = _labels(graph, choice, weights)
    tree = _grow(graph, label, done)
    if not np.array_equal(tree.decide(graph.states), label):
        raise AssertionError("the decision tree differs from its policy; please report this")
    return tree


def memory_after(graph: Graph, choice: IntArray, weights: FloatArray | None) -> IntArray:
    """Return the memory of a policy after a step from each state (n_states)."""
    assert graph.memory is not None
    taken = choice if weights is None else np.flatnonzero(weights)
    after = graph.states[graph.memory.names[0]][graph.successor]
    if after.dtype.kind == "U":  # what is left of a mission
        raise DataError(_DEPENDS)
    lowest, highest = (end.reduceat(after, graph.first_transition[:-1])[taken] for end in (np.minimum, np.maximum))
    state = graph.state_of_choice()[taken]
    result = np.empty(graph.n_states, dtype=np.int32)
    result[state] = lowest
    if len(graph.memory.names) > 1 or not (np.array_equal(lowest, highest) and (result[state] == lowest).all()):
        raise DataError(_DEPENDS)
    return result


def memory_tree(graph: Graph, choice: IntArray, weights: FloatArray | None) -> DecisionTree | None:
    """Return a decision tree of what a policy remembers after a step, None for one more than before, if it has memory.

    Other values are those of the memory itself.
    """
    if graph.memory is None:
        return None
    after = memory_after(graph, choice, weights)
    is_next = after == graph.states[graph.memory.names[0]] + 1
    one_more = int(after.min()) - 1  # which no memory is
    values, label = np.unique(np.where(is_next, one_more, after), return_inverse=True)
    done = tuple(None if value == one_more else value for value in values.tolist())
    return _grow(graph, label.astype(np.int32), done)


def python_of(graph: Graph, tree: DecisionTree, remembered: DecisionTree | None = None) -> str:
    """Return a module with a function of the state variables that does what the tree says, and needs nothing else.

    With what is remembered after each step, there is a class that follows the policy through a run.
    """
    names = python_names(graph)
    ranges = [_range(name, values) for name, values in zip(names, graph.states.values(), strict=True)]
    shown = ", ".join(f"{name}={{{name}!r}}" for name in names)
    code = [
        f'"""{described(graph, tree)}."""',
        "",
        "",
        f"def policy({', '.join(names)}):",
        '    """Return the action in a state of the model."""',
        f"    if not ({' and '.join(ranges)}):",
        f'        raise ValueError(f"not a state of the model: {shown}")',
        *tree.lines(names, is_code=True),
    ]
    if remembered is not None:
        code += _running(graph, names, remembered)
    return "\n".join(code) + "\n"


def _running(graph: Graph, names: list[str], remembered: DecisionTree) -> list[str]:
    """Return the code of a class that keeps the memory of a policy through one run."""
    assert graph.memory is not None
    place = [*graph.states].index(graph.memory.names[0])
    memory, seen = names[place], [name for name in names if name != names[place]]
    start = graph.states[graph.memory.names[0]][graph.initial_state].item()
    arguments = ", ".join(f"self.{name}" if name == memory else name for name in names)
    updates = [line.replace("return None", f"return {memory} + 1") for line in remembered.lines(names, is_code=True)]
    return [
        *("", ""),
        f"def remember({', '.join(names)}):",
        f'    """Return {memory} after a step from a state of the model."""',
        *updates,
        *("", ""),
        "class Run:",
        '    """The policy in one run, called once for each step, from the initial state on."""',
        "",
        "    def __init__(self):",
        f"        self.{memory} = {start!r}",
        "",
        f"    def __call__(self{''.join(f', {name}' for name in seen)}):",
        f"        action = policy({arguments})",
        f"        self.{memory} = remember({arguments})",
        "        return action",
    ]


def rules_of(graph: Graph, tree: DecisionTree) -> str:
    """Return a tree as rules in plain text, with its size first."""
    return "\n".join([f"# {described(graph, tree)}.", *tree.lines([*graph.states], is_code=False)]) + "\n"


def described(graph: Graph, tree: DecisionTree) -> str:
    """Return the origin of a policy and the size of its tree, for the head of a file."""
    return (
        f"A policy written by plumdp {__version__}: {tree.size}, the same as its table in all "
        f"{number_of(graph.n_states, 'state')}"
    )


def _range(name: str, values: npt.NDArray[Any]) -> str:
    """Return the condition that a variable has one of its values, or lies between the least and the largest number."""
    if values.dtype.kind in "bU":
        return f"{name} in {(*np.unique(values).tolist(),)!r}"
    return f"{values.min()} <= {name} <= {values.max()}"


def _labels(graph: Graph, choice: IntArray, weights: FloatArray | None) -> tuple[tuple[Any, ...], IntArray]:
    """Return all that a policy does in some state, and the number of that for each state."""
    names = graph.action_names
    if weights is None:
        action, label = np.unique(graph.action[choice], return_inverse=True)
        return tuple(names[each] for each in action.tolist()), label.astype(np.int32)
    number: dict[tuple[tuple[str, float], ...], int] = {}
    labels = np.empty(graph.n_states, dtype=np.int32)
    for state in range(graph.n_states):
        choices = range(*graph.first_choice[state : state + 2].tolist())
        drawn = tuple((names[graph.action[c]], float(weights[c])) for c in choices if weights[c] > 0)
        labels[state] = number.setdefault(drawn, len(number))
    return tuple(drawn[0][0] if len(drawn) == 1 else dict(drawn) for drawn in number), labels


def _grow(graph: Graph, label: IntArray, done: tuple[Any, ...]) -> DecisionTree:
    """Return a tree that is grown greedily, by the split of each node that tells most about what is done."""
    variables: list[int] = []
    values: list[Any] = []
    after: tuple[list[int], list[int]] = ([], [])  # if a comparison does not hold, and if it does
    open_nodes = [(np.arange(graph.n_states), -1, True)]
    while open_nodes:
        states, parent, is_yes = open_nodes.pop()
        node, of_states = len(variables), label[states]
        if parent >= 0:
            after[is_yes][parent] = node
        split = _best_split(graph, states, of_states) if (of_states != of_states[0]).any() else None
        variables.append(-1 if split is None else split[0])
        values.append(int(of_states[0]) if split is None else split[1])
        for nodes in after:
            nodes.append(-1)
        if split is not None:
            open_nodes += [(states[~split[2]], node, False), (states[split[2]], node, True)]
    return DecisionTree(tuple(graph.states), tuple(variables), tuple(values), tuple(after[1]), tuple(after[0]), done)


def _best_split(graph: Graph, states: npt.NDArray[np.intp], label: IntArray) -> tuple[int, Any, npt.NDArray[np.bool_]]:
    """Return the variable and the value that leave the least uncertainty about what is done, and where they hold."""
    best, found = (np.inf, np.inf), None
    n_classes = int(label.max()) + 1
    for number, column in enumerate(graph.states.values()):
        values, place = np.unique(column[states], return_inverse=True)
        if len(values) == 1:
            continue
        counts = np.bincount(place * n_classes + label, minlength=len(values) * n_classes).reshape(-1, n_classes)
        is_text = values.dtype.kind == "U"
        inside = counts if is_text else np.cumsum(counts, axis=0)[:-1]
        left = _uncertainty(inside) + _uncertainty(counts.sum(axis=0) - inside)
        uneven = np.abs(2 * inside.sum(axis=1) - len(states))
        near = np.flatnonzero(left <= left.min() + _EVEN * len(states))
        at = int(near[np.argmin(uneven[near])])
        worth = round(float(left[at]) / len(states), 9), float(uneven[at])
        if worth < best:
            best, found = worth, (number, values[at].item(), place == at if is_text else place <= at)
    if found is None:
        where = graph.describe_state(int(states[0]))
        raise DataError(f"several states have the valuation ({where}), so that rules cannot tell them apart")
    return found


def _uncertainty(counts: npt.NDArray[np.int64]) -> FloatArray:
    """Return the entropy of classes in bits, times the number of states, for each row of counts."""
    total = counts.sum(axis=1)
    logs = np.log2(np.maximum(counts, 1)), np.log2(np.maximum(total, 1))
    uncertainty: FloatArray = total * logs[1] - (counts * logs[0]).sum(axis=1)
    return uncertainty
