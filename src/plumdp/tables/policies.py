"""The chain of a policy in a table, with the bounds on the values of its nodes that a bracket starts from.

If the policy draws its actions, the draw is a step of known numbers before the row of its choice. So each state and
action that it may take is a node with an unknown row of its own, and each state is a node whose row is known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.base.rounding import ULP
from plumdp.model.elsewhere import places_elsewhere
from plumdp.model.graph import FloatArray, IntArray, read_only
from plumdp.model.objective import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.solver.coupled.chain import policy_chain
from plumdp.solver.draws import draw_first, stretched
from plumdp.tables.chain import KNOWN, TableChain, table_chain


class BoundedChain(NamedTuple):
    """A chain, and bounds (n) on the values of its open nodes."""

    table: TableChain
    lower: FloatArray
    upper: FloatArray


def chain_of_policy(
    model: ParametricMDP,
    policy: npt.NDArray[Any],
    objective: Objective,
    lower: FloatArray,
    upper: FloatArray,
    *,
    side: int = -1,
) -> BoundedChain | str:
    """Return the chain of a policy, or in words why there is none, given bounds (n_states) on its values.

    The objective is not a complement; the value of its opposite has the same bets. Runs that leave the table are worth
    the least (side -1) or the most (side 1) that they may be, so that the values of the chain are constants.
    """
    if objective.n_steps is not None:
        return "the number of steps is bounded: there are no bets on such values yet"
    if objective.kind is Kind.AVERAGE:
        return "there are no bets on averages in the long run yet"
    nature = places_elsewhere(model)
    if policy.dtype.kind == "f":
        model, policy, objective, lower, upper = _with_draws(model, policy, objective, lower, upper)
    chain = policy_chain(model, policy, objective)
    if isinstance(chain, str):
        return chain
    if chain.n_open == 0:
        return "the value is known"
    table = table_chain(model, chain)
    if len(nature):
        is_hers = np.isin(table.place, nature)
        chosen = table.place == nature[0 if side < 0 else 1]
        place, number = np.where(is_hers, KNOWN, table.place), np.where(is_hers, chosen, table.number)
        table = replace(table, place=read_only(place), number=read_only(number.astype(np.float64)))
    state = table.chain.state[: table.n]
    return BoundedChain(table, lower[state], upper[state])


class _Drawn(NamedTuple):
    """A model in which a policy draws first, its only policy, the objective, and bounds on the values of all states."""

    model: ParametricMDP
    policy: IntArray
    objective: Objective
    lower: FloatArray
    upper: FloatArray


def _with_draws(
    model: ParametricMDP, weights: FloatArray, objective: Objective, lower: FloatArray, upper: FloatArray
) -> _Drawn:
    """Return the model in which a policy draws first, given bounds (n_states) on its values in the model itself.

    What a choice is worth is bounded by its own reward, and the least and the largest value where it may lead.
    """
    graph = model.graph
    draws, twice = draw_first(graph, weights), stretched(objective, graph)
    split, starts = draws.model(model), graph.first_transition[:-1]
    own = twice.terms(draws.graph).reward[graph.n_states :]
    low, high = np.minimum.reduceat(lower[graph.successor], starts), np.maximum.reduceat(upper[graph.successor], starts)
    outward = 2 * ULP * (np.abs(own) + np.maximum(np.abs(low), np.abs(high)))
    return _Drawn(
        split,
        draws.only,
        twice,
        np.concatenate([lower, own + low - outward]),
        np.concatenate([upper, own + high + outward]),
    )
