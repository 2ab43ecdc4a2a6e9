"""Exact values of policies that count steps, and the best of them, by backward induction in fractions."""

from fractions import Fraction

import exact_values
import numpy as np

from plumdp.model.objectives import Reach


def best_value(graph, rows, objective):
    """Return the best value over all policies that count steps, given the probability of each transition."""
    pick = max if objective.direction == "max" else min
    if isinstance(objective, Reach) and objective.complement:
        pick = min if pick is max else max  # of what the complement is taken
    return _induction(graph, rows, objective, lambda step, state, of_choices: pick(of_choices))


def value_of(graph, rows, objective, place):
    """Return the value of the policy that takes choice number ``place(step, state)`` of the state at each step."""
    return _induction(graph, rows, objective, lambda step, state, of_choices: of_choices[place(step, state)])


def places_of(policy, n_steps):
    """Return the function of step and state that a table with a step counter stands for, by its columns alone."""
    graph = policy.graph
    (name,) = graph.memory.names
    small = graph.memory.graph
    names = [each for each in graph.states if each != name]
    states = {tuple(small.states[each][s].item() for each in names): s for s in range(small.n_states)}
    table = {}
    columns = policy.columns()
    for row, action in enumerate(columns["action"].tolist()):
        state = states[tuple(columns[each][row].item() for each in names)]
        own = small.action[small.first_choice[state] : small.first_choice[state + 1]].tolist()
        table[int(columns[name][row]), state] = own.index(small.action_names.index(action))
    return lambda step, state: table.get((step, state), table.get((n_steps, state), 0))


def _induction(graph, rows, objective, choose):
    n_steps, n = objective.n_steps, graph.n_states
    values = _at(objective, [Fraction(0)] * n, n_steps)
    for step in range(n_steps - 1, -1, -1):
        after = values
        moved = [
            choose(step, s, [_worth(graph, rows, objective, c, s, after) for c in _own(graph, s)]) for s in range(n)
        ]
        values = _at(objective, moved, step)
    value = values[graph.initial_state]
    return 1 - value if isinstance(objective, Reach) and objective.complement else value


def _own(graph, state):
    return range(graph.first_choice[state], graph.first_choice[state + 1])


def _worth(graph, rows, objective, choice, state, after):
    transitions = range(graph.first_transition[choice], graph.first_transition[choice + 1])
    mean = sum((rows[t] * after[graph.successor[t]] for t in transitions), Fraction(0))
    if isinstance(objective, Reach):
        return mean
    paid = exact_values.state_reward(objective, state) + exact_values.choice_reward(objective, choice)
    return paid + (objective.discount or 1) * mean


def _at(objective, values, step):
    """Return the values at a step, straight from the definition, given those if the run goes on."""
    if not isinstance(objective, Reach):
        over = np.zeros(len(values), bool) if objective.target is None else objective.target
        return [Fraction(0) if over[s] else v for s, v in enumerate(values)]
    first, last = objective.steps
    won = [bool(objective.target[s]) and first <= step for s in range(len(values))]
    lost = [bool(objective.avoid[s]) or step == last for s in range(len(values))]
    return [Fraction(int(won[s])) if won[s] or lost[s] else v for s, v in enumerate(values)]
