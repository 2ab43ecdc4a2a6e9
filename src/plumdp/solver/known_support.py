"""The reduction of a problem in which nature must keep every transition possible to one in which it may drop them.

Values are then limits over natures that come closer and closer to dropping a transition. States that the graph alone
decides (no chance of the target, infinite rewards, staying forever) are decided here, with all transitions present. The
rest has the same values if nature may drop them. ``docs/proofs/solver.md`` says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, IntArray, ranges, read_only
from plumdp.model.objectives import Kind, Nature, Objective, Reach, is_open_everywhere
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import end_component_kernels, graph_kernels
from plumdp.solver.end_component_kernels import N_LOST, N_PARTS, EdgeRows, StatePartition, refine
from plumdp.solver.game import Game, plain_game
from plumdp.solver.problem import Problem, Reduction
from plumdp.solver.qualitative import decide_certain, make_game

_BUDGET = 256  # steps of a search for a disconnected set of states


def end_components(graph: Graph, allowed: BoolArray) -> tuple[IntArray, BoolArray]:
    """Return the number of each state's maximal end component, or -1, and the rows that make up the components.

    An end component is a set of states and allowed rows of theirs that lead to all of its states and to no other. We
    split into strongly connected parts and drop the rows that leave their part, until there are none. Only parts that
    may be disconnected are split again. States that separate one by one, as along a border, are found by small searches
    from where rows were dropped (as in Chatterjee and Henzinger, 2011).
    """
    rows, parts = _start(graph, allowed)
    component = np.full(graph.n_states, -1, dtype=np.int64)
    n_numbers = 0
    states = np.flatnonzero(parts.part >= 0)
    while len(states):
        number, leaving = _strong_parts(rows, states)
        _set_parts(parts, states, number)
        refine(leaving, _BUDGET, rows, parts)
        component[states] = np.where(parts.part[states] < 0, -1, n_numbers + parts.part[states])
        n_numbers += parts.counters[N_PARTS]
        # only open parts may be disconnected
        states = states[(parts.part[states] >= 0) & parts.is_open[parts.part[states]]]
    is_inside = component >= 0
    component[is_inside] = np.unique(component[is_inside], return_inverse=True)[1]
    return component.astype(np.int32), rows.inner


def _start(graph: Graph, allowed: BoolArray) -> tuple[EdgeRows, StatePartition]:
    """Return the rows that are left when those that may lead to a state without rows are dropped, again and again.

    With them comes the partition into one part of all states.
    """
    n_states, n_choices, n_transitions = graph.n_states, graph.n_choices, graph.n_transitions
    offset, incoming = np.zeros(n_states + 1, dtype=np.int64), np.empty(n_transitions, dtype=np.int32)
    every_choice = np.arange(n_choices + 1, dtype=np.int32)
    graph_kernels.predecessors(every_choice, graph.first_transition, graph.successor, offset, incoming)
    source = graph.state_of_choice()
    n_inner = np.bincount(source[allowed], minlength=n_states)
    rows = EdgeRows(
        graph.first_choice, graph.first_transition, graph.successor, source, offset, incoming, allowed.copy(), n_inner
    )
    parts = StatePartition(
        part=np.empty(n_states, dtype=np.int32),
        size=np.empty(2 * n_states, dtype=np.int64),
        is_open=np.empty(2 * n_states, dtype=np.bool_),
        lost=np.empty(n_states, dtype=np.int32),
        events=np.empty(n_choices + n_transitions, dtype=np.int32),
        mark=np.zeros(n_states, dtype=np.int64),
        queue=np.empty(n_states, dtype=np.int32),
        counters=np.zeros(4, dtype=np.int64),
    )
    _set_parts(parts, np.arange(n_states), np.zeros(n_states, dtype=np.int32))
    lost = np.flatnonzero(n_inner == 0)
    parts.lost[: len(lost)], parts.counters[N_LOST] = lost, len(lost)
    refine(np.empty(0, dtype=np.int64), -1, rows, parts)
    return rows, parts


def _set_parts(parts: StatePartition, states: Indices, number: IntArray) -> None:
    n_parts = int(number.max()) + 1
    parts.part[states] = number
    parts.size[:n_parts] = np.bincount(number, minlength=n_parts)
    parts.is_open[:n_parts] = False
    parts.counters[N_PARTS] = n_parts


def _strong_parts(rows: EdgeRows, states: Indices) -> tuple[IntArray, Indices]:
    """Return the number of each state's strongly connected part, and the inner rows that leave theirs."""
    n_states = len(states)
    position = np.empty(len(rows.n_inner), dtype=np.int32)
    position[states] = np.arange(n_states, dtype=np.int32)
    choices = ranges(rows.first_choice[states], rows.first_choice[states + 1])
    choices = choices[rows.inner[choices]]
    start, end = rows.first[choices], rows.first[choices + 1]
    target = position[rows.successor[ranges(start, end)]]
    first = np.concatenate([[0], np.cumsum(end - start)])
    first_choice = np.concatenate([[0], np.cumsum(rows.n_inner[states])])
    number = np.full(n_states, -1, dtype=np.int32)
    everywhere, order = np.ones(n_states, dtype=np.bool_), np.empty(n_states, dtype=np.int32)
    graph_kernels.strong_components(first_choice, first, target, everywhere, order, number)
    of_transition = np.repeat(np.repeat(number, rows.n_inner[states]), end - start)
    leaves = np.logical_or.reduceat(number[target] != of_transition, first[:-1])
    return number, choices[leaves]


@dataclass(frozen=True, eq=False)
class Quotient:
    """A model whose support is not known, with an objective of the same values, and the arrays of the inverse."""

    imdp: IntervalMDP
    objective: Objective
    state: IntArray  # (n_states): the state of the reduction that has each state's value
    choice: Indices  # (n_choices of the reduction): the choice that each row is; past the last for those added
    game: Game  # on the model's graph, all transitions certain: what is decided already, and with which policy
    inner: BoolArray  # (n_choices): whether the row is part of a collapsed end component

    def policy(self, reduced: IntArray) -> IntArray:
        """Return the choice of each state, given a policy of the reduction.

        A row that leaves a collapsed end component is taken in its own state, to which the others lead almost surely.
        Where the agent stays forever, any row of the component will do.
        """
        graph = self.game.imdp.graph
        chosen = self.choice[reduced][self.state]
        is_own = (graph.first_choice[:-1] <= chosen) & (chosen < graph.first_choice[1:])
        policy = np.where(is_own, chosen, self.game.policy)
        itself, nothing = np.arange(graph.n_states, dtype=np.int32), np.empty((0, 2), dtype=np.int32)
        within, rows = _rebuild(self.game.imdp, itself, graph.n_states, self.inner, nothing)
        exits = Reach(is_own, np.zeros_like(is_own), "max")
        towards = decide_certain(plain_game(within, exits, "optimistic"), 1.0).policy
        waits = ~is_own & (np.diff(within.graph.first_choice) > 0)
        policy[waits] = rows[towards[waits]]
        return policy.astype(np.int32)

    def hint(self, values: FloatArray, policy: IntArray) -> tuple[FloatArray, IntArray]:
        """Return values and a policy of the reduction that correspond to those given, for a solver to start from."""
        graph, reduced_graph = self.game.imdp.graph, self.imdp.graph
        of_state = np.zeros(reduced_graph.n_states)
        of_state[self.state] = values
        is_taken = np.append(np.isin(np.arange(graph.n_choices), policy), False)
        rows = reduced_graph.first_choice[:-1].copy()
        rows_of_policy = np.flatnonzero(is_taken[np.minimum(self.choice, graph.n_choices)])
        rows[reduced_graph.state_of_choice()[rows_of_policy]] = rows_of_policy
        return of_state, rows


def known_support(problem: Problem[IntervalMDP]) -> Reduction[IntervalMDP] | None:
    """Return a problem of the same values in which nature may drop transitions, or None if that makes no difference."""
    mdp, objective, nature, start = problem.mdp, problem.objective, problem.nature, problem.start
    if not (mdp.known_support and is_support_relevant(mdp, objective, nature)):
        return None
    reduced = reduce_known_support(mdp, objective, nature)
    if start is not None:
        values, policy = reduced.hint(start.lower, start.policy)
        start = replace(start, lower=values, upper=values, policy=policy)
    return Reduction(
        Problem(reduced.imdp, reduced.objective, None, nature, start), reduced.state, policy=reduced.policy
    )


def is_support_relevant(imdp: IntervalMDP, objective: Objective, nature: Nature) -> bool:
    """Return whether it may change values that nature must keep every transition possible.

    It does not if they are continuous in the probabilities, nor if nature wants them large, and comes arbitrarily close
    to what it could get by dropping transitions.
    """
    if imdp.has_fixed_support() or is_open_everywhere(objective):
        return False
    wants_large = (objective.direction == "max") == (nature == "optimistic")
    return not wants_large or objective.kind is Kind.UNTIL_END


def reduce_known_support(imdp: IntervalMDP, objective: Objective, nature: Nature) -> Quotient:
    """Return a problem with the same values in which nature may drop transitions, where the support is relevant.

    Decided states become two sinks: the end of the run, and a trap (0 for a probability, infinite for a reward). Rows
    that may lead to infinity are gone, and maximal end components without rewards are one state each, with the rows
    that leave them: under every nature the agent comes from each of their states to any other, at no cost. If it wants
    a large total reward it may also stay forever: then there is a row to the end.
    """
    imdp = _without_impossible(imdp)
    certain = IntervalMDP(imdp.graph, np.zeros_like(imdp.expression), np.ones(1), np.ones(1))
    game = make_game(certain, objective, nature)
    source = imdp.graph.state_of_choice()
    component, inner = end_components(imdp.graph, game.is_undecided[source] & (game.reward == 0))
    state, end = _number(game, component, 0.0 if objective.kind is Kind.END else np.inf)
    trap, n_components = end + 1, component.max(initial=-1) + 1
    # an agent that stays gets no more reward: that is a move to the end
    may_stay = np.arange(n_components if objective.kind is Kind.FOREVER and game.agent > 0 else 0)
    added = np.vstack([[(end, end), (trap, trap)], np.column_stack([may_stay, np.full_like(may_stay, end)])])
    # a row that may lead to infinity is infinite itself, under every nature
    leads_there = np.logical_or.reduceat(np.isinf(game.known)[imdp.graph.successor], imdp.graph.first_transition[:-1])
    kept = game.is_undecided[source] & ~inner & ~leads_there
    quotient, choice = _rebuild(imdp, state, end + 2, kept, added.astype(np.int32))
    sinks = np.arange(end + 2)
    reward = np.concatenate([game.reward, added[:, 1] == trap])[choice]
    reduced = objective.with_sinks(sinks == end, sinks == trap, reward, until_end=game.nature <= 0)
    return Quotient(quotient, reduced, state, choice, game, inner)


def _number(game: Game, component: IntArray, lost: float) -> tuple[IntArray, int]:
    """Return each state's number in the reduction, and that of the end, which is followed by the trap."""
    is_alone = game.is_undecided & (component < 0)
    n_components = component.max(initial=-1) + 1
    end = n_components + is_alone.sum()
    state = np.where(game.is_undecided, component, np.where(game.known == lost, end + 1, end)).astype(np.int32)
    state[is_alone] = np.arange(n_components, end)
    return state, int(end)


def _without_impossible(imdp: IntervalMDP) -> IntervalMDP:
    """Return the model without transitions that cannot have a positive probability."""
    graph = imdp.graph
    possible = np.empty(graph.n_transitions, dtype=np.bool_)
    end_component_kernels.mark_possible(graph.first_transition, imdp.expression, imdp.lower, imdp.upper, possible)
    if possible.all():
        return imdp
    shorter = graph.keep(possible)
    return replace(imdp, graph=shorter, expression=read_only(imdp.expression[possible]))


def _rebuild(
    imdp: IntervalMDP, state: IntArray, n_states: int, kept: BoolArray, added: IntArray
) -> tuple[IntervalMDP, Indices]:
    """Return the model of the kept rows with states renumbered and moves (from, to) added, and the choice of each row.

    The added moves are certain, and count as choices behind all others.
    """
    graph, n_added = imdp.graph, len(added)
    source = np.concatenate([state[graph.state_of_choice()], added[:, 0]])
    first = np.concatenate([graph.first_transition, graph.n_transitions + np.arange(1, n_added + 1)])
    rows = np.flatnonzero(np.concatenate([kept, np.ones(n_added, dtype=np.bool_)]))
    rows = rows[np.argsort(source[rows], kind="stable")]
    transitions = ranges(first[rows], first[rows + 1])
    new_graph = Graph(
        read_only(np.searchsorted(source[rows], np.arange(n_states + 1)).astype(np.int32)),
        read_only(np.concatenate([[0], np.cumsum(first[rows + 1] - first[rows])]).astype(np.int32)),
        read_only(np.concatenate([state[graph.successor], added[:, 1]])[transitions]),
        int(state[graph.initial_state]),
        {"state": np.arange(n_states, dtype=np.int32)},
        read_only(np.zeros(len(rows), dtype=np.int32)),
        ("",),
    )
    expression = np.concatenate([imdp.expression, np.full(n_added, len(imdp.lower), dtype=np.int32)])[transitions]
    lower, upper = (read_only(np.append(bounds, 1.0)) for bounds in (imdp.lower, imdp.upper))
    region = None if imdp.region is None else imdp.region.with_constants(np.ones(1))
    return IntervalMDP(new_graph, read_only(expression), lower, upper, region=region), rows
