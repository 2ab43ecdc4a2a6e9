"""Chains of tables from which runs may leave to states that the table does not have.

What a run is worth there may depend on the row that it left. So each transition elsewhere gets a node of
its own, whose value is not known, and whose row is never counted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumdp.model.graph import read_only
from plumdp.tables.chain import TableChain


def split_elsewhere(table: TableChain, state: int) -> TableChain:
    """Return the chain with an open node for each transition to a state, in place of the one node that it has."""
    chain, n = table.chain, table.n
    at = np.flatnonzero(chain.state[:n] == state)
    if not len(at):
        return table
    (node,) = at.tolist()
    leaves = np.flatnonzero((table.successor == node) & (table.owner != node))
    kept = np.delete(np.arange(n), node)
    n_open, n_new = n - 1 + len(leaves), len(leaves)
    number = np.empty(chain.n_nodes, dtype=np.int64)
    number[kept], number[n:] = np.arange(n - 1), np.arange(n_open, n_open + chain.n_nodes - n)
    number[node] = 0  # overwritten: no transition leads there any more
    successor = number[table.successor]
    successor[leaves] = np.arange(n - 1, n_open)
    own = table.owner != node
    places = np.arange(table.n_places, table.n_places + n_new)
    sink = n_open + chain.n_nodes - n  # that rows lead to which are never visited
    sizes = np.concatenate([np.diff(chain.first)[kept], np.ones(n_new, dtype=np.int64)])
    split = replace(
        chain,
        state=read_only(
            np.concatenate([chain.state[kept], np.full(n_new, state), chain.state[n:], [state]]).astype(np.int32)
        ),
        first=read_only(np.concatenate([[0], np.cumsum(sizes)])),
        successor=read_only(np.concatenate([successor[own], np.full(n_new, sink)]).astype(np.int32)),
        expression=read_only(np.concatenate([np.asarray(chain.expression)[own], np.full(n_new, -1)])),
        reward=read_only(np.concatenate([chain.reward[kept], np.zeros(n_new)])),
        known=read_only(np.append(chain.known, 0.0)),
        initial=int(number[chain.initial]),
        is_ordered=False,
    )
    return TableChain(
        split,
        read_only(np.concatenate([table.place[own], places])),
        read_only(np.concatenate([table.number[own], np.zeros(n_new)])),
        table.n_places + n_new,
    )
