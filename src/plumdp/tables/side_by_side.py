"""Bounds on the difference of the values of two policies of a table, by bets on both chains as one.

Both chains stand side by side, and what is bounded is the value of one first node less that of the other. Nodes whose
rows are the same are tied, so that what both policies have in common cancels; nodes from which on all is the same,
whatever the table is, are one node.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import FloatArray, Indices, ranges, read_only
from plumdp.solver.coupled import kernels
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.tables.chain import OpenChain


def side_by_side(one: OpenChain, other: OpenChain, of_one: Indices, of_other: Indices) -> tuple[OpenChain, Indices]:
    """Return the chain of the first policy less the second, and the nodes of the second that are its own.

    They come after the open nodes of the first. ``of_one`` and ``of_other`` have a number for the
    probability of each transition: if it is the same, so are these, whatever the table is.
    """
    assert (one.n_places, one.discount) == (other.n_places, other.discount)  # of one model
    a, b = one.chain, other.chain
    same = _same_nodes(a, b, of_one, of_other)
    is_own = same < 0
    own, own_closed = np.flatnonzero(is_own[: other.n]), np.flatnonzero(is_own[other.n :])
    n = one.n + len(own)
    node = np.where(same < one.n, same, same + len(own))  # closed nodes come after all open ones
    node[own] = one.n + np.arange(len(own))
    node[other.n + own_closed] = n + len(a.known) + np.arange(len(own_closed))
    kept, sizes = ranges(b.first[own], b.first[own + 1]), np.diff(b.first)[own]
    successor = np.where(a.successor < one.n, a.successor, a.successor + len(own))
    chain = replace(
        a,
        state=_joined(a.state[: one.n], b.state[own], a.state[one.n :], b.state[other.n + own_closed]),
        first=_joined(a.first, a.first[-1] + np.cumsum(sizes)),
        successor=_joined(successor, node[b.successor[kept]]),
        expression=_joined(a.expression, b.expression[kept]),
        reward=_joined(a.reward, b.reward[own]),
        known=_joined(a.known, b.known[own_closed]),
        is_ordered=False,
    )
    signed = np.zeros(n)
    signed[a.initial] += 1.0
    signed[node[b.initial]] -= 1.0
    place, number = _joined(one.place, other.place[kept]), _joined(one.number, other.number[kept])
    return OpenChain(chain, place, number, one.n_places, read_only(signed)), own


def _joined(*parts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return read_only(np.concatenate(parts).astype(parts[0].dtype))


def _same_nodes(a: PolicyChain, b: PolicyChain, of_a: Indices, of_b: Indices) -> Indices:
    """Return for each node of the second chain the one of the first with the same future, whatever the table is, or -1.

    These have the same state and reward, the same probabilities in the same order, and successors that are the same.
    """
    n = b.n_open
    of_state = np.full(int(max(a.state.max(), b.state.max())) + 1, -1)
    of_state[a.state] = np.arange(a.n_nodes)
    same = of_state[b.state]
    (end_a, pay_a), (end_b, pay_b) = (_ends(each) for each in (a, b))
    differs = (same < 0) | (end_a[same] != end_b) | (pay_a[same] != pay_b)
    alike = np.flatnonzero(~differs[:n])
    in_a, in_b = (ranges(c.first[at], c.first[at + 1]) for c, at in ((a, same[alike]), (b, alike)))
    is_off = (of_a[in_a] != of_b[in_b]) | (same[b.successor[in_b]] != a.successor[in_a])
    differs[np.repeat(alike, np.diff(b.first)[alike])[is_off]] = True
    kernels.mark_ahead(b.first, b.successor, differs)  # what leads to nodes that differ has another future
    return np.where(differs, -1, same)


def _ends(chain: PolicyChain) -> tuple[Indices, FloatArray]:
    """Return the number of transitions of each node, none of closed ones, and what it pays or is worth."""
    return np.append(np.diff(chain.first), np.zeros(len(chain.known), dtype=np.int64)), np.append(
        chain.reward, chain.known
    )
