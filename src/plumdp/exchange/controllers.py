"""Writes policies for controllers: a function in C, or in structured text (IEC 61131-3), from the decision tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.result.policy_rules import DecisionTree, described
from plumdp.result.policy_table import PolicyTable

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
