"""The state variables that a policy depends on most, in order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import IntArray
from plumdp.result.policy_table import PolicyTable


def telling_variables(policy: PolicyTable) -> tuple[str, ...]:
    """Return the state variables in the order of how much the policy depends on them.

    A variable counts by how uncertain the action is to those who know all other variables, in states with several
    choices, and then by how much it tells of the action by itself. Variables with one value come last.

    >>> from plumdp import case_study
    >>> graph = case_study("betting:5").model.graph
    >>> sorted(telling_variables(PolicyTable(graph, graph.first_choice[:-1])))
    ['money', 'step']
    """
    graph = policy.graph
    several = np.diff(graph.first_choice) > 1
    used = several if several.any() else np.ones_like(several)
    action = graph.action[policy.choice][used]
    codes = {name: np.unique(values[used], return_inverse=True)[1] for name, values in graph.states.items()}

    def rank(name: str) -> tuple[bool, float, float]:
        others = [code for other, code in codes.items() if other != name]
        alone = _entropy(action, []) - _entropy(action, [codes[name]])
        return bool(codes[name].any()), round(_entropy(action, others), 12), round(alone, 12)

    return tuple(sorted(codes, key=rank, reverse=True))


def _entropy(action: IntArray, known: list[npt.NDArray[np.intp]]) -> float:
    """Return the mean entropy of the action among states that agree in the known variables."""
    group = np.zeros(len(action), dtype=np.intp)
    for code in known:
        group = np.unique(group * (code.max(initial=0) + 1) + code, return_inverse=True)[1].ravel()
    both = np.unique(group * (int(action.max(initial=0)) + 1) + action, return_counts=True)[1]
    return _information(both) - _information(np.bincount(group))


def _information(numbers: npt.NDArray[np.intp]) -> float:
    share = numbers / max(1, numbers.sum())
    return float(-(share * np.log(share)).sum())
