"""The Markov chain of a policy on the states that it reaches, with the model's expressions on its transitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumdp.base.errors import WhyNot
from plumdp.base.sparse import sparse
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, ranges, read_only
from plumdp.model.learned_rewards import LearnedRewards
from plumdp.model.objectives import Kind, Objective, Payoff
from plumdp.model.parametric import ParametricMDP
from plumdp.solver.by_steps import first_alike
from plumdp.solver.coupled import kernels


@dataclass(frozen=True, eq=False)
class PolicyChain:
    """The part of a model that a policy reaches, first the open nodes, whose runs go on, then the closed ones.

    Closed are targets, states to avoid, and states from which nothing counts any more. There the value is known,
    whatever the parameters are. "Reaches" is meant in the graph, with all its transitions, so that this holds for
    every point of the space.
    """

    state: IntArray  # (n_nodes): state of the model
    first: Indices  # (n_open + 1): open node s has the transitions first[s] up to first[s + 1]
    successor: IntArray  # (n_transitions): node
    expression: Indices  # (n_transitions)
    reward: FloatArray  # (n_open)
    known: FloatArray  # (n_nodes - n_open): values of the closed nodes
    initial: int  # node
    is_ordered: bool  # whether successors come before their states: cycles are self-loops
    discount: float
    model_tolerance: float = 0.0  # how far rows may be off from what their expressions say, in total variation
    learned: LearnedRewards | None = None  # the rewards of open nodes that depend on parameters, if there are any
    n_payments: int = 0  # the last nodes, which are no states, and stand for what coins pay (see ``with_coins``)

    @property
    def n_open(self) -> int:
        """The number of open nodes."""
        return len(self.first) - 1

    @property
    def n_nodes(self) -> int:
        """The number of all nodes."""
        return len(self.state)

    def has_loops(self) -> bool:
        """Return whether some node has a transition to itself."""
        return bool((self.successor == np.repeat(np.arange(self.n_open), np.diff(self.first))).any())

    def with_own_expressions(self) -> tuple[PolicyChain, Indices]:
        """Return the chain with its expressions numbered from zero on, and their numbers in the model."""
        is_used = np.zeros(int(self.expression.max(initial=-1)) + 1, dtype=np.bool_)
        is_used[self.expression] = True
        number = np.cumsum(is_used, dtype=np.int32) - 1
        return replace(self, expression=read_only(number[self.expression])), np.flatnonzero(is_used)

    def with_coins(self) -> PolicyChain:
        """Return the chain with a coin thrown in each open node whose reward depends on parameters.

        It leads to a closed node whose value is what it pays, or to one that pays nothing, besides where the row leads.
        So r + Σ_t f_t W(s_t) is what it is with the reward, and what the linear terms of all transitions of a node sum
        to is zero as before. Payments are divided by the discount, as all that comes later is multiplied by it.
        """
        learned = self.learned
        if learned is None:
            return self
        n, at = self.n_nodes, np.flatnonzero(learned.coin >= 0)
        coin, ends = learned.coin[at], self.first[at + 1]
        pays = np.insert(
            self.successor, np.repeat(ends, 2), np.column_stack([n + 1 + coin, np.full_like(coin, n)]).ravel()
        )
        expression = np.insert(self.expression, np.repeat(ends, 2), learned.expression[coin].ravel())
        more = np.zeros(self.n_open + 1, dtype=np.int64)
        more[at + 1] = 2
        paid = np.append(0.0, learned.spans / self.discount)
        return replace(
            self,
            state=read_only(np.append(self.state, np.full(len(paid), -1, dtype=np.int32))),
            first=read_only(self.first + np.cumsum(more)),
            successor=read_only(pays.astype(np.int32)),
            expression=read_only(expression),
            known=read_only(np.append(self.known, paid)),
            learned=None,
            n_payments=len(paid),
        )

    def rows(self, of_transition: FloatArray, columns: Indices, width: int) -> Any:
        """Return a sparse matrix (n_open, width) with a number for each transition, in the given columns."""
        return sparse(of_transition, columns, self.first, width)


def policy_chain(model: ParametricMDP, policy: Indices, objective: Objective) -> PolicyChain | WhyNot:
    """Return the chain of a policy (the number of a choice for each state), or the reason why its value is infinite.

    For objectives with a number of steps, closed are only the states in which the run is over at every step. The
    values of closed nodes are then left at zero.
    """
    if objective.kind is Kind.AVERAGE:
        return WhyNot("an average in the long run is valued by cycles")
    terms = objective.terms(model.graph)
    is_over = terms.is_end if objective.n_steps is None else _always_fixed(objective, model.graph.n_states)
    chain = reached_chain(model, policy, terms, is_over)
    if objective.n_steps is not None or objective.kind == Kind.DISCOUNTED:
        return chain
    n, closed = chain.n_open, chain.state[chain.n_open :]
    is_ahead = np.zeros(chain.n_nodes, dtype=np.bool_)
    if objective.kind == Kind.FOREVER:
        is_ahead[:n] = chain.reward != 0
        if chain.learned is not None:
            is_ahead[:n] |= chain.learned.coin >= 0
    else:
        chain = replace(chain, known=read_only(terms.value[closed]))
        is_ahead[n:] = (chain.known > 0) | (objective.kind == Kind.UNTIL_END)
    # from all other nodes nothing counts any more, at any point of the space: their value is zero
    kernels.mark_ahead(chain.first, chain.successor, is_ahead)
    if objective.kind == Kind.UNTIL_END and not is_ahead.all():
        return WhyNot(
            "the policy may come to states from which it cannot reach the target, so that its value is infinite"
        )
    return _closing(chain, ~is_ahead[:n])


def reached_chain(model: ParametricMDP, policy: Indices, terms: Payoff, is_over: BoolArray) -> PolicyChain:
    """Return the chain with only those states closed in which a run is over."""
    graph, n = model.graph, model.graph.n_states
    order, ends, stack = (np.empty(n + 1, dtype=np.int32) for _ in range(3))
    ways = graph.initial_state, policy, graph.first_transition, graph.successor, read_only(is_over.view())
    n_open, n_ends, is_ordered = kernels.visit(
        *ways,
        np.zeros(n + 1, dtype=np.int8), stack, np.empty(n + 1, dtype=np.int64), order, ends,
    )  # fmt: skip
    state = np.concatenate([order[:n_open], ends[:n_ends]])
    node = np.full(n, -1, dtype=np.int32)
    node[state] = np.arange(len(state), dtype=np.int32)
    choices = policy[state[:n_open]]
    transitions = graph.transitions_of(choices)
    first = np.concatenate([[0], np.cumsum(np.diff(graph.first_transition)[choices], dtype=np.int64)])
    return PolicyChain(
        read_only(state),
        read_only(first),
        read_only(node[graph.successor[transitions]]),
        read_only(model.expression[transitions]),
        read_only(terms.reward[choices]),
        read_only(np.zeros(n_ends)),
        int(node[graph.initial_state]),
        bool(is_ordered),
        terms.discount,
        learned=None if terms.learned is None else terms.learned.of_choices(terms.learned.coin[choices]),
    )


def fixed_states(objective: Objective, n_states: int, step: int) -> BoolArray:
    """Return the states whose value at a step follows from the objective alone, whatever comes later."""
    return np.asarray(objective.at_step(np.zeros(n_states), step) == objective.at_step(np.ones(n_states), step))


def _always_fixed(objective: Objective, n_states: int) -> BoolArray:
    """Return the states whose value follows from the objective at every step, where a run is over."""
    assert objective.n_steps is not None
    result = np.ones(n_states, dtype=np.bool_)
    for step in (*range(min(first_alike(objective), objective.n_steps) + 1), objective.n_steps):
        result &= fixed_states(objective, n_states, step)
    return result


def _closing(chain: PolicyChain, closing: BoolArray) -> PolicyChain:
    """Return the chain with some open nodes closed at value zero, none of which leads to an open one."""
    if not closing.any():
        return chain
    n = chain.n_open
    kept, gone = np.flatnonzero(~closing), np.flatnonzero(closing)
    old = np.concatenate([kept, np.arange(n, chain.n_nodes), gone])
    node = np.empty(chain.n_nodes, dtype=np.int32)
    node[old] = np.arange(chain.n_nodes, dtype=np.int32)
    transitions = ranges(chain.first[kept], chain.first[kept + 1])
    return replace(
        chain,
        state=read_only(chain.state[old]),
        first=read_only(np.concatenate([[0], np.cumsum(np.diff(chain.first)[kept])])),
        successor=read_only(node[chain.successor[transitions]]),
        expression=read_only(chain.expression[transitions]),
        reward=read_only(chain.reward[kept]),
        known=read_only(np.concatenate([chain.known, np.zeros(len(gone))])),
        initial=int(node[chain.initial]),
        learned=None if chain.learned is None else chain.learned.of_choices(chain.learned.coin[kept]),
    )
