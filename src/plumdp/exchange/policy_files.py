"""Writes policies to files, in our own tables, in the formats of Storm and PRISM, and as code for controllers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.edge import write_whole
from plumdp.base.errors import DataError
from plumdp.exchange.write_intervals import text_column
from plumdp.model.graph import Graph
from plumdp.model.policy import policy_weights
from plumdp.result.policy_rules import DecisionTree, described
from plumdp.result.policy_table import PolicyTable

_KEEPS = "keeps memory; write .csv or .json"


def write_policy(policy: PolicyTable, path: str | Path) -> None:
    """Write a policy in the format that the file's name ends in; ``read_policy`` reads tables, lists and schedulers.

    ``.csv`` is a table with state variables and action, ``.txt`` PRISM's list of actions (``(0,1):north`` for each
    state), and ``.json`` a scheduler as Storm writes it. A function in ``.py`` and rules in ``.rules`` are for running
    and reading the policy elsewhere (``PolicyTable.to_python`` and ``to_rules``), one in C (``.c``) or in structured
    text (``.st``, IEC 61131-3) for controllers.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study
    >>> graph = case_study("betting:5").model.graph
    >>> with TemporaryDirectory() as folder:
    ...     write_policy(PolicyTable(graph, graph.first_choice[:-1]), Path(folder) / "policy.txt")
    ...     print((Path(folder) / "policy.txt").read_text().splitlines()[0])
    (10,0):bet0
    """
    policy_writer(path)(policy, Path(path))


def policy_writer(path: str | Path) -> Callable[[PolicyTable, Path], None]:
    """Return the function that writes a file with this name."""
    writer = POLICY_WRITERS.get(Path(path).suffix.lower())
    if writer is None:
        raise DataError(f"{path}: policies are written to files that end in {', '.join(POLICY_WRITERS)}")
    return writer


def _write_list(policy: PolicyTable, path: Path) -> None:
    if policy.weights is not None:
        raise DataError(
            f"{path}: PRISM's list has one action for each state, but the policy draws; write .csv or .json"
        )
    if policy.graph.memory is not None:
        raise DataError(f"{path}: PRISM's list has one action for each state, but the policy {_KEEPS}")
    *_, actions = policy.columns().values()
    states = zip(*(text_column(path, name, policy.graph) for name in policy.graph.states), strict=True)
    lines = [f"({','.join(state)}):{action}\n" for state, action in zip(states, actions.tolist(), strict=True)]
    write_whole(path, "".join(lines))


def _write_scheduler(policy: PolicyTable, path: Path) -> None:
    if not policy.graph.n_transitions:
        raise DataError(
            f"{path}: a scheduler has the numbers of the model's choices, which a result alone does not have; "
            "give the model, read_result(folder, model), or write .csv"
        )
    graph, weights = policy.graph, policy_weights(policy.graph, policy)
    memory, taken = graph.memory, np.flatnonzero(weights)
    index = taken if memory is None else memory.choice[taken]
    places = _places(graph)
    choices: list[list[dict[str, Any]]] = [[] for _ in range(len(policy))]
    for choice, number, state, share in zip(
        taken.tolist(), index.tolist(), graph.state_of_choice()[taken].tolist(), weights[taken].tolist(), strict=True
    ):
        label = graph.action_names[graph.action[choice]]
        entry = {"index": number, "labels": [label] if label else [], "prob": share}
        if memory is not None:
            successors = graph.successor[graph.transitions_of(np.array([choice]))].tolist()
            entry["memory-updates"] = [{"s'": places[to]["s"], "m'": places[to]["m"]} for to in successors]
        choices[state].append(entry)
    entries = [{"c": c, **place} for c, place in zip(choices, places, strict=True)]
    write_whole(path, json.dumps(entries, indent=1) + "\n")


def _places(graph: Graph) -> list[dict[str, Any]]:
    """Return each state as a scheduler has it: the values of its variables, and the memory if there is some."""
    memory = () if graph.memory is None else graph.memory.names
    names = [name for name in graph.states if name not in memory]
    rows = zip(*(graph.states[name].tolist() for name in names), strict=True)
    states = [{"s": dict(zip(names, row, strict=True))} for row in rows]
    if not memory:
        return states
    return [state | {"m": value} for state, value in zip(states, graph.states[memory[0]].tolist(), strict=True)]


POLICY_WRITERS: Mapping[str, Callable[[PolicyTable, Path], None]] = {
    ".csv": PolicyTable.to_csv,
    ".txt": _write_list,
    ".json": _write_scheduler,
    ".py": lambda policy, path: write_whole(path, policy.to_python()),
    ".rules": lambda policy, path: write_whole(path, policy.to_rules()),
    ".c": lambda policy, path: write_whole(path, c_code(policy)),
    ".st": lambda policy, path: write_whole(path, structured_text(policy)),
}


_NO_STATE = -1  # what is returned for values that no state has


@dataclass(frozen=True)
class _Language:
    """How a language writes what a tree needs."""

    types: Mapping[str, str]  # kind of a NumPy array → type; texts are numbered
    comment: str
    never: str
    equal: str
    negated: str
    either: str
    branch: tuple[str, str, str]  # if, else and the end
    answer: str


_KINDS = ("b", "i", "u", "f", "U")
_C = _Language(
    dict(zip(_KINDS, ("int", "long", "long", "double", "int"), strict=True)),
    "/* {} */",
    "0",
    "==",
    "!{}",
    " || ",
    ("if ({}) {{", "}} else {{", "}}"),
    "return {};",
)
_ST = _Language(
    dict(zip(_KINDS, ("BOOL", "DINT", "DINT", "LREAL", "INT"), strict=True)),
    "(* {} *)",
    "FALSE",
    "=",
    "NOT {}",
    " OR ",
    ("IF {} THEN", "ELSE", "END_IF;"),
    "policy := {};",
)


@dataclass(frozen=True)
class _Input:
    """A state variable as an argument."""

    name: str  # which is no keyword, as it begins like none
    kind: str
    texts: tuple[str, ...]  # in the order of their numbers, if its values are texts
    low: Any
    high: Any


def c_code(policy: PolicyTable) -> str:
    """Return a function in C of the state variables, which returns the number of the action and needs nothing else.

    Texts are numbered, as constants say, and -1 is returned for values that no state has.

    >>> from plumdp import case_study
    >>> graph = case_study("betting:5").model.graph
    >>> print("\\n".join(c_code(PolicyTable.from_actions(graph, "bet0")).splitlines()[1:6]))
    #define POLICY_BET0 0
    #define POLICY_END 1
    #define POLICY_DONE 2
    <BLANKLINE>
    int policy(long in_money, long in_step)
    """
    tree, inputs = _tree(policy), _inputs(policy)
    actions = _constants("POLICY", tree.done)
    values = [line for each in inputs for line in _constants(f"POLICY_{each.name[3:]}", each.texts)]
    parameters = ", ".join(f"{_C.types[each.kind]} {each.name}" for each in inputs)
    lines = [
        _comment(_C, described(policy.graph, tree)),
        *(f"#define {name} {number}" for number, name in (*actions, *values)),
        "",
        f"int policy({parameters})",
        "{",
        f"    if ({_outside(inputs, _C)}) {{",
        f"        return {_NO_STATE};",
        "    }",
        *_nested(tree, inputs, _C, [name for _, name in actions], pad="    "),
        "}",
    ]
    return "\n".join(lines) + "\n"


def structured_text(policy: PolicyTable) -> str:
    """Return a function in structured text of the state variables, which returns the number of the action."""
    tree, inputs = _tree(policy), _inputs(policy)
    lines = [
        _comment(_ST, described(policy.graph, tree)),
        f"FUNCTION policy : INT {_comment(_ST, f'{_numbered(tree.done)}; {_NO_STATE} for values that no state has')}",
        "VAR_INPUT",
        *(
            f"    {each.name} : {_ST.types[each.kind]};"
            + (f" {_comment(_ST, _numbered(each.texts))}" * bool(each.texts))
            for each in inputs
        ),
        "END_VAR",
        f"IF {_outside(inputs, _ST)} THEN",
        f"    policy := {_NO_STATE};",
        "    RETURN;",
        "END_IF;",
        *_nested(tree, inputs, _ST, [f"{number}" for number in range(len(tree.done))], pad=""),
        "END_FUNCTION",
    ]
    return "\n".join(lines) + "\n"


def _tree(policy: PolicyTable) -> DecisionTree:
    """Return the decision tree, or refuse a policy that does not name one action in each state."""
    if policy.weights is not None or policy.graph.memory is not None:
        why = "draws its actions" if policy.weights is not None else "keeps memory"
        raise DataError(f"a controller has one action in each state, but the policy {why}; write .py")
    return policy.tree


def _inputs(policy: PolicyTable) -> list[_Input]:
    states = policy.graph.states
    found = []
    for name, values in zip(_identifiers(states), states.values(), strict=True):
        texts = tuple(np.unique(values).tolist()) if values.dtype.kind == "U" else ()
        low, high = (0, len(texts) - 1 if texts else 1) if values.dtype.kind in "bU" else (values.min(), values.max())
        found.append(_Input(f"in_{name}", values.dtype.kind, texts, low, high))
    return found


def _identifiers(texts: Iterable[str]) -> list[str]:
    """Return texts as identifiers, of which no two are the same whatever their case."""
    found: list[str] = []
    for text in texts:
        name, known = re.sub(r"\W", "_", text, flags=re.ASCII), {each.upper() for each in found}
        found.append(next(each for n in range(len(found) + 2) if (each := f"{name}{n or ''}").upper() not in known))
    return found


def _constants(prefix: str, texts: Sequence[str]) -> list[tuple[int, str]]:
    return [(number, f"{prefix}_{name}".upper()) for number, name in enumerate(_identifiers(texts))]


def _numbered(texts: Sequence[str]) -> str:
    return ", ".join(f"{number} is {text}" for number, text in enumerate(texts))


def _comment(language: _Language, text: str) -> str:
    return language.comment.format(text.replace("*", "x"))  # lest a comment end, or another begin


def _outside(inputs: Sequence[_Input], language: _Language) -> str:
    """Return the condition that some input has a value outside of those that states have."""
    numbers = [each for each in inputs if language.types[each.kind] != "BOOL"]
    parts = [part for each in numbers for part in (f"{each.name} < {each.low}", f"{each.name} > {each.high}")]
    return language.either.join(parts) or language.never


def _nested(
    tree: DecisionTree,
    inputs: Sequence[_Input],
    language: _Language,
    answers: Sequence[str],
    *,
    pad: str,
    node: int = 0,
) -> Iterator[str]:
    """Yield the tree below a node as nested comparisons."""
    if tree.variable[node] < 0:
        yield pad + language.answer.format(answers[tree.value[node]])
        return
    each, value = inputs[tree.variable[node]], tree.value[node]
    condition = f"{each.name} <= {value}"
    if each.texts:
        condition = f"{each.name} {language.equal} {each.texts.index(value)}"
    elif each.kind == "b":
        condition = language.negated.format(each.name)  # up to False
    first, otherwise, end = language.branch
    yield pad + first.format(condition)
    yield from _nested(tree, inputs, language, answers, pad=f"{pad}    ", node=tree.yes[node])
    yield pad + otherwise.format()
    yield from _nested(tree, inputs, language, answers, pad=f"{pad}    ", node=tree.no[node])
    yield pad + end.format()
