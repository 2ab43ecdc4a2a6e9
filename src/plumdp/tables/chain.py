"""The chain of a policy in a table of unknown rows, and the temporal differences of values on it.

A row of the chain is unknown, with a count for each of its places, or it consists of known numbers. Nodes whose rows
are tied share their places, so that each visit of one of them is a visit of all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.base.sparse import sparse
from plumdp.model.graph import BoolArray, FloatArray, Indices, owners, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.solver.chains import Equations, equations_of
from plumdp.solver.coupled.chain import PolicyChain

KNOWN = -1
PRIOR = 0.5  # visits that a row is smoothed by
_TRIALS = 4  # to raise a solution until it is an upper bound


@dataclass(frozen=True, eq=False)
class OpenChain:
    """The chain of a policy: nodes 0 to n - 1 are open, the others closed with values that are known.

    Transition t leads from ``owner[t]`` to ``successor[t]``. It has the place ``place[t]`` of the counts, or it is
    ``KNOWN`` and has the probability ``number[t]``.
    """

    chain: PolicyChain
    place: Indices  # (n_transitions)
    number: FloatArray  # (n_transitions), 0 where the row is unknown
    n_places: int
    signed: FloatArray | None = None  # (n): what is sought of the values, by default that of the first node

    @property
    def n(self) -> int:
        """The number of open nodes."""
        return self.chain.n_open

    @property
    def discount(self) -> float:
        """The factor of later rewards."""
        return self.chain.discount

    @property
    def successor(self) -> Indices:
        """The node that each transition leads to."""
        return self.chain.successor

    @cached_property
    def owner(self) -> Indices:
        """The node of each transition."""
        return owners(self.chain.first)

    @cached_property
    def is_free(self) -> BoolArray:
        """For each open node whether its row is unknown."""
        return read_only(self.place[self.chain.first[:-1]] != KNOWN)

    @cached_property
    def one_of_each(self) -> Indices:
        """One node for each unknown row, of those that are tied by it."""
        free = np.flatnonzero(self.is_free)
        return free[np.unique(self.place[self.chain.first[free]], return_index=True)[1]]

    @cached_property
    def n_successors(self) -> Indices:
        """The number of transitions of each open node."""
        return np.diff(self.chain.first)

    @cached_property
    def start(self) -> FloatArray:
        """What is sought, as weights of the values of open nodes: one for the first node, unless others are given."""
        if self.signed is not None:
            return self.signed
        first = np.zeros(self.n)
        first[self.chain.initial] = 1.0
        return first

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of values (n_transitions) over each row."""
        total: FloatArray = np.add.reduceat(values, self.chain.first[:-1])
        return total

    def of_places(self, values: FloatArray, *, known: float = 0.0) -> FloatArray:
        """Return the value of each transition's place, and a number in rows that are known."""
        return np.where(self.place >= 0, values[self.place], known)

    def by_place(self, values: FloatArray) -> FloatArray:
        """Return the sum of values (n_transitions) over the transitions of each place: tied rows add up."""
        free = self.place >= 0
        return np.bincount(self.place[free], values[free], self.n_places).astype(np.float64)

    def visits(self, counts: FloatArray) -> FloatArray:
        """Return the number of visits to the row of each node, summed over the nodes that share it."""
        return self.sums(self.of_places(counts))

    def frequencies(self, counts: FloatArray) -> FloatArray:
        """Return probabilities (n_transitions): known numbers, and smoothed frequencies of the others."""
        smoothed = smooth(self.of_places(counts), self.visits(counts)[self.owner], self.n_successors[self.owner])
        return np.where(self.place >= 0, smoothed, self.number)

    def ahead(self, values: FloatArray, *, closed: float | None = None) -> FloatArray:
        """Return values at the successors (n_transitions), those of closed nodes being known, or the number given."""
        known = self.chain.known if closed is None else np.full(len(self.chain.known), closed)
        return np.concatenate([values, known])[self.successor]

    def differences(self, values: FloatArray) -> FloatArray:
        """Return the temporal differences r + discount · V(successor) - V(owner) of values (n_transitions)."""
        gain = self.chain.reward[self.owner] + self.discount * self.ahead(values)
        return np.asarray(gain - values[self.owner])

    def deviations(self, probability: FloatArray, ahead: FloatArray) -> FloatArray:
        """Return the standard deviation of the discounted values ahead, under a probability, of each row."""
        mean = self.sums(probability * ahead)
        return np.asarray(self.discount * np.sqrt(self.sums(probability * (ahead - mean[self.owner]) ** 2)))

    def ranges(self, ahead: FloatArray) -> FloatArray:
        """Return the range of the discounted values ahead of each row."""
        first = self.chain.first[:-1]
        return self.discount * (np.maximum.reduceat(ahead, first) - np.minimum.reduceat(ahead, first))


def smooth(counts: FloatArray, visits: FloatArray, n_successors: Indices) -> FloatArray:
    """Return frequencies that are not zero: half a visit more, divided equally among all successors."""
    return np.asarray((counts + PRIOR / n_successors) / (visits + PRIOR))


def table_chain(model: ParametricMDP, chain: PolicyChain) -> OpenChain:
    """Return the chain of a policy with the places of its rows among the free expressions of the model."""
    table, expression = model.expressions, np.asarray(chain.expression)
    n_known = len(table.polynomials)
    values = np.array([float(f.constant) for f in table.polynomials]) if n_known else np.zeros(1)
    is_free = expression >= n_known
    number = np.where(is_free, 0.0, values[np.where(is_free, 0, expression)])
    return OpenChain(chain, read_only(np.where(is_free, expression - n_known, KNOWN)), read_only(number), table.n_free)


def pooled(model: ParametricMDP, counts: Indices) -> FloatArray:
    """Return the count of each place (n_free), given those of the transitions; tied rows add up."""
    table, expression = model.expressions, np.asarray(model.expression)
    n_known = len(table.polynomials)
    is_free = expression >= n_known
    return np.bincount(expression[is_free] - n_known, counts[is_free], table.n_free).astype(np.float64)


@dataclass(frozen=True, eq=False)
class RegularEquations:
    """The equations of a chain for probabilities, with a matrix I - M that is proved to be regular.

    For M >= 0, if some h >= 0 has (I - M) h >= 1/2, then I - M is regular and its inverse is not negative. So every x
    with (I - M) x >= b is an upper bound on the exact solution, whatever x was calculated by: the inequality is checked
    with all its roundings.
    """

    table: OpenChain
    probability: FloatArray  # (n_transitions), 0 in rows that are closed
    moves: Any  # (n, n): M, sparse
    equations: Equations
    witness: FloatArray  # (n): h
    n_terms: int  # that the sums of a row or a column have, at most

    def solve(self, right: FloatArray) -> FloatArray:
        """Return about the solution of (I - M) x = right."""
        return self.equations.solve(right)

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """Return about the solution of x (I - M) = right."""
        return self.equations.solve_transposed(right)

    @property
    def closed(self) -> FloatArray:
        """What closed successors contribute to each row."""
        return self.table.discount * self.table.sums(self.probability * self.table.ahead(np.zeros(self.table.n)))

    def values(self, reward: FloatArray | None = None) -> FloatArray:
        """Return about the values of the open nodes, given the rewards of their rows, by default those of the chain."""
        return self.solve((self.table.chain.reward if reward is None else reward) + self.closed)

    def applied(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (I - M) x in floats, and a bound on its rounding, for vectors or matrices."""
        return x - self.moves @ x, self._rounding(np.abs(x) + self.moves @ np.abs(x))

    def applied_transposed(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x (I - M) in floats, and a bound on its rounding."""
        return x - self.moves.T @ x, self._rounding(np.abs(x) + self.moves.T @ np.abs(x))

    def _rounding(self, size: FloatArray) -> FloatArray:
        return (self.n_terms + 8) * UNIT * size

    def above(self, right: FloatArray) -> FloatArray | None:
        """Return an upper bound on the solution for a right-hand side that is not negative, or None if that fails."""
        x = np.maximum(self.solve(right), 0.0)
        for _ in range(_TRIALS):
            value, rounding = self.applied(x)
            lacking = float((right * (1 + 4 * UNIT) - value + rounding).max(initial=0.0))
            if not np.isfinite(lacking):
                return None
            if lacking <= 0:
                return x
            x = x + 4 * lacking * self.witness
        return None


def regular_equations(table: OpenChain, probability: FloatArray) -> RegularEquations | None:
    """Return the equations for probabilities (n_transitions), 0 in rows that are closed; None if not proved regular."""
    n, is_open = table.n, table.successor < table.n
    entries = (table.discount * probability)[is_open], (table.owner[is_open], table.successor[is_open])
    first = np.concatenate([[0], np.cumsum(np.bincount(entries[1][0], minlength=n))])
    moves = sparse(entries[0], entries[1][1], first, n)
    equations = equations_of(moves)
    if equations is None:
        return None
    most = max(int(np.bincount(axis, minlength=1).max(initial=0)) for axis in entries[1])
    plain = RegularEquations(table, probability, moves, equations, np.zeros(n), most)
    witness = np.maximum(plain.solve(np.ones(n)), 0.0)
    if not np.isfinite(witness).all():
        return None
    value, rounding = plain.applied(witness)
    if not (value - rounding >= 0.5).all():
        return None
    return replace(plain, witness=witness)
