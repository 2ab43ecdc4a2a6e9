"""Steps out of a table: a transition that the table does not have leads out of it, where nature decides
everything.

From there nature chooses, without a step of the run, between two states that are never left: in one a run is worth the
least that could be, in the other the most (proof: docs/proofs/table_differences.md). An objective that is ``settled``
says how much that is. So solvers, bets and policies meet nothing unusual.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite
from typing import TypeVar

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.base.rounding import ULP
from plumdp.model.graph import OUT_OF_TABLE as OUT_OF_TABLE
from plumdp.model.graph import Indices
from plumdp.model.objectives.protocol import Kind, Objective
from plumdp.model.objectives.reach import Reach
from plumdp.model.objectives.reward import Reward
from plumdp.model.parametric import ParametricMDP, RewardStructure

_Asked = TypeVar("_Asked", bound=Objective)


def out_of_table_of(model: ParametricMDP) -> int | None:
    """Return the state of a table that stands for what it does not know, if runs may leave it.

    From it nature chooses between the two states after it, the least and the most; no other state comes later.
    """
    mask, n = model.labels.get(OUT_OF_TABLE) if model.is_table and model.source is None else None, model.graph.n_states
    if mask is None or np.flatnonzero(mask).tolist() != [n - 3]:
        return None
    return n - 3 if model.graph.successor[-4:-2].tolist() == [n - 2, n - 1] else None  # another label of that name


def places_out_of_table(model: ParametricMDP) -> Indices:
    """Return the places of nature's choice among the free expressions of a table, the least first, or none."""
    table = model.counted
    out_of_table, graph = out_of_table_of(table), table.graph
    if out_of_table is None:
        return np.zeros(0, dtype=np.int64)
    transitions = graph.transitions_of(graph.first_choice[out_of_table : out_of_table + 1])
    return np.asarray(table.expression)[transitions] - len(table.expressions.polynomials)


def refuse_reserved(names: Iterable[str]) -> None:
    """Refuse a label of the user's own with the name of what a table does not know."""
    if OUT_OF_TABLE in names:
        raise ModelError(
            f"labels: the name {OUT_OF_TABLE!r} is kept for successors that a table from a log does not have; choose "
            "another name"
        )


def settled(model: ParametricMDP, objective: _Asked) -> _Asked:
    """Return an objective that says what a run is worth which left the table, at least and at most.

    Rewards are settled before they are asked of a product with memory. Settling twice changes nothing.
    """
    out_of_table = out_of_table_of(model)
    reward = getattr(objective, "reward", None)
    if out_of_table is not None and reward is not None:
        objective = replace(objective, reward=_earned(model, out_of_table, objective, reward))
    is_base = model.graph.memory is None
    return ended(model, objective) if isinstance(objective, Reach) or is_base else objective


def ended(model: ParametricMDP, objective: _Asked) -> _Asked:
    """Return an objective with the ends that runs have outside of the table, where no set of states says anything."""
    out_of_table, memory = out_of_table_of(model.counted), model.graph.memory
    if out_of_table is None or not isinstance(objective, Reach | Reward) or objective.target is None:
        return objective
    state = np.arange(model.graph.n_states) if memory is None else memory.state
    is_inside, least, most = state < out_of_table, state == out_of_table + 1, state == out_of_table + 2
    if isinstance(objective, Reach):
        target, avoid = (objective.target & is_inside) | most, (objective.avoid & is_inside) | least
        return replace(objective, target=target, avoid=avoid)
    return replace(objective, target=(objective.target & is_inside) | least)  # the most is never to come there


def _earned(model: ParametricMDP, out_of_table: int, objective: Objective, reward: RewardStructure) -> RewardStructure:
    """Return rewards by choice, with the least and the most that a step outside of the table may earn.

    A run may come back at any time, so that the rewards of the table are among them.
    """
    total = np.zeros(model.graph.n_choices)
    if reward.state is not None:
        total += np.repeat(reward.state, np.diff(model.graph.first_choice))
    if reward.choice is not None:
        total += reward.choice
    outside = int(model.graph.first_choice[out_of_table])
    is_endless = objective.kind in (Kind.UNTIL_END, Kind.FOREVER) and getattr(objective, "steps", 0) is None
    given = reward.out_of_table
    if given is None or not (is_endless or isfinite(given[1])):
        name = next((name for name, each in model.rewards.items() if each.state is reward.state), "name")
        raise ModelError(
            f"{objective.text or 'the objective'}: nothing is known of rewards in states that the table does not have; "
            "say what a step there earns, at least and at most, with "
            f'model_from_log(…, out_of_table={{"{name}": (0, 1000)}})'
        )
    ends = np.array([min(given[0], total[:outside].min()), max(given[1], total[:outside].max())])
    ends[1] = 1.0 if is_endless else ends[1]  # of an endless sum, all that counts is that it grows
    discount = getattr(objective, "discount", None)
    if discount is not None:  # nature's choice is a step of the model, but none of the run
        ends = ends / float(discount)
        ends += 4 * ULP * np.abs(ends) * (-1, 1)  # outward
    total[outside:] = 0.0, *ends
    return replace(reward, state=None, choice=total)
