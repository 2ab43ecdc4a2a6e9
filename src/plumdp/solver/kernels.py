"""Compiled loops of the solver: components, qualitative games, and backups that are rounded outward.

Rows are choices: row ``c`` has the transitions ``first[c]`` up to ``first[c + 1]``, with bounds ``lower[expression[t]]`` and
``upper[expression[t]]``. Nature picks a distribution within them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.compiled import compiled

UNIT = 2.0**-53  # relative error of one rounding
NEGLIGIBLE = 1e-12  # a sum of bounds that misses 1 by less is taken as 1: nature may do more, never less


@compiled
def strong_components(first_choice: Any, first: Any, successor: Any, is_open: Any, order: Any, component: Any) -> int:
    """Write the open states into ``order``, component by component, successors first; return the number of components.

    Tarjan's algorithm without recursion. ``component`` gets the number of each open state's component, and those numbers
    grow along ``order``: everything a component can leave to has a smaller number.
    """
    n = len(is_open)
    index = np.full(n, -1, dtype=np.int32)
    low = np.zeros(n, dtype=np.int32)
    stack = np.empty(n, dtype=np.int32)
    path = np.empty(n, dtype=np.int32)
    position = np.zeros(n, dtype=np.int64)
    n_stack = n_path = n_index = n_order = n_components = 0
    for root in range(n):
        if not is_open[root] or index[root] >= 0:
            continue
        path[0] = root
        n_path = 1
        while n_path:
            state = path[n_path - 1]
            if index[state] < 0:
                index[state] = low[state] = n_index
                n_index += 1
                stack[n_stack] = state
                n_stack += 1
                position[state] = first[first_choice[state]]
            end = first[first_choice[state + 1]]
            descended = False
            while position[state] < end:
                target = successor[position[state]]
                position[state] += 1
                if not is_open[target]:
                    continue
                if index[target] < 0:
                    path[n_path] = target
                    n_path += 1
                    descended = True
                    break
                if component[target] < 0:
                    low[state] = min(low[state], index[target])
            if descended:
                continue
            n_path -= 1
            if n_path:
                parent = path[n_path - 1]
                low[parent] = min(low[parent], low[state])
            if low[state] == index[state]:
                while True:
                    n_stack -= 1
                    member = stack[n_stack]
                    component[member] = n_components
                    order[n_order] = member
                    n_order += 1
                    if member == state:
                        break
                n_components += 1
    return n_components


@compiled
def predecessors(first_choice: Any, first: Any, successor: Any, offset: Any, source: Any) -> None:
    """Write for each state the states with a transition to it: ``source[offset[s]:offset[s + 1]]``."""
    for t in range(len(successor)):
        offset[successor[t] + 1] += 1
    for s in range(len(offset) - 1):
        offset[s + 1] += offset[s]
    place = offset.copy()
    for s in range(len(first_choice) - 1):
        for t in range(first[first_choice[s]], first[first_choice[s + 1]]):
            source[place[successor[t]]] = s
            place[successor[t]] += 1


@compiled
def row_may(
    start: int, end: int, successor: Any, expression: Any, lower: Any, upper: Any, inside: Any, aim: Any
) -> bool:
    """Return whether some distribution of the row stays inside and gives the aim (a part of inside) a positive chance."""
    most, least = 0.0, 0.0
    for t in range(start, end):
        f = expression[t]
        if inside[successor[t]]:
            most += upper[f]
            least += lower[f]
        elif lower[f] > 0.0:
            return False
    if most < 1.0 - NEGLIGIBLE:
        return False
    for t in range(start, end):
        f = expression[t]
        if aim[successor[t]] and upper[f] > 0.0 and (lower[f] > 0.0 or least < 1.0):
            return True
    return False


@compiled
def row_must(
    start: int, end: int, successor: Any, expression: Any, lower: Any, upper: Any, inside: Any, aim: Any
) -> bool:
    """Return whether every distribution of the row stays inside and gives the aim a positive chance."""
    least, elsewhere = 0.0, 0.0
    surely = False
    for t in range(start, end):
        f = expression[t]
        least += lower[f]
        if not aim[successor[t]]:
            elsewhere += upper[f]
        elif lower[f] > 0.0:
            surely = True
    for t in range(start, end):
        f = expression[t]
        if not inside[successor[t]] and upper[f] > 0.0 and (lower[f] > 0.0 or least < 1.0):
            return False
    return surely or elsewhere < 1.0 - NEGLIGIBLE


@compiled
def attract(
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    offset: Any,
    source: Any,
    is_open: Any,
    inside: Any,
    agent_helps: bool,
    nature_helps: bool,
    reached: Any,
    pending: Any,
) -> None:
    """Extend ``reached`` to the open states from which the helpers can stay inside and reach it with positive chance.

    A player that helps needs one option that does, one that does not is stopped only if all its options do.
    """
    n_pending = 0
    for s in range(len(reached)):
        if reached[s]:
            pending[n_pending] = s
            n_pending += 1
    while n_pending:
        n_pending -= 1
        target = pending[n_pending]
        for k in range(offset[target], offset[target + 1]):
            s = source[k]
            if reached[s] or not is_open[s] or not inside[s]:
                continue
            good = not agent_helps
            for c in range(first_choice[s], first_choice[s + 1]):
                if nature_helps:
                    helps = row_may(first[c], first[c + 1], successor, expression, lower, upper, inside, reached)
                else:
                    helps = row_must(first[c], first[c + 1], successor, expression, lower, upper, inside, reached)
                if agent_helps and helps:
                    good = True
                    break
                if not agent_helps and not helps:
                    good = False
                    break
            if good:
                reached[s] = True
                pending[n_pending] = s
                n_pending += 1


@compiled
def row_value(
    start: int,
    end: int,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    values: Any,
    nature: float,
    side: float,
    buffer_value: Any,
    buffer_transition: Any,
) -> float:
    """Return the best expectation for nature (+1 largest, -1 smallest), off by rounding to the given side only.

    The expectation is the extreme value plus differences to it, so that rounding scales with the differences: a row
    whose mass stays on equal values is exact. Infinite values count as soon as they must get (or may get) mass.
    """
    n = end - start
    free = 1.0
    for i in range(n):  # insertion sort: what nature prefers first
        t = start + i
        free -= lower[expression[t]]
        v = values[successor[t]]
        j = i
        while j > 0 and nature * buffer_value[j - 1] < nature * v:
            buffer_value[j] = buffer_value[j - 1]
            buffer_transition[j] = buffer_transition[j - 1]
            j -= 1
        buffer_value[j] = v
        buffer_transition[j] = t
    free = max(free, 0.0)
    base = np.inf
    total, weight, marginal = 0.0, 0.0, 0.0
    saturated = False
    for i in range(n):
        f = expression[buffer_transition[i]]
        extra = min(upper[f] - lower[f], free)
        free -= extra
        p = lower[f] + extra
        v = buffer_value[i]
        if np.isinf(v):
            if p > NEGLIGIBLE:
                return v
            continue
        if np.isinf(base):
            base = v
        else:
            difference = v - base
            total += p * difference
            weight += p * abs(difference)
            if extra > 0.0 or saturated:
                marginal = max(marginal, abs(difference))
        saturated = extra >= upper[f] - lower[f] and free <= NEGLIGIBLE  # rounding may give the next one some mass
    value = base + total
    if total != 0.0 or marginal != 0.0:
        error = UNIT * ((n + 8.0) * weight + (2.0 * n + 6.0) * marginal + 2.0 * abs(value))
        value += side * error
    return value


@compiled
def state_value(
    state: int,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    reward: Any,
    discount: float,
    values: Any,
    agent: float,
    nature: float,
    side: float,
    buffer_value: Any,
    buffer_transition: Any,
) -> tuple[float, int]:
    """Return the agent's best row value (+1 largest, -1 smallest), rounded to the given side, and that row."""
    best, chosen = -agent * np.inf, first_choice[state]
    for c in range(first_choice[state], first_choice[state + 1]):
        value = row_value(
            first[c],
            first[c + 1],
            successor,
            expression,
            lower,
            upper,
            values,
            nature,
            side,
            buffer_value,
            buffer_transition,
        )
        if discount != 1.0 and np.isfinite(value):
            value = value * discount
            value += side * 4.0 * UNIT * abs(value)
        if reward[c] != 0.0 and np.isfinite(value):
            value += reward[c]
            value += side * 4.0 * UNIT * abs(value)
        if agent * value > agent * best:
            best, chosen = value, c
    return best, chosen


@compiled
def pass_once(
    states: Any,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    reward: Any,
    discount: float,
    agent: float,
    nature: float,
    low: Any,
    high: Any,
    policy: Any,
    buffer_value: Any,
    buffer_transition: Any,
) -> None:
    """Write certified lower and upper values and the policy of states whose successors are all done.

    The policy is the one of the side that is guaranteed: the lower for an agent that wants large values.
    """
    for s in states:
        low[s], chosen_low = state_value(
            s, first_choice, first, successor, expression, lower, upper, reward, discount, low, agent, nature, -1.0,
            buffer_value, buffer_transition,
        )  # fmt: skip
        high[s], chosen_high = state_value(
            s, first_choice, first, successor, expression, lower, upper, reward, discount, high, agent, nature, 1.0,
            buffer_value, buffer_transition,
        )  # fmt: skip
        policy[s] = chosen_low if agent > 0.0 else chosen_high


@compiled
def sweep(
    states: Any,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    reward: Any,
    discount: float,
    agent: float,
    nature: float,
    side: float,
    lift: float,
    cap: float,
    values: Any,
    policy: Any,
    buffer_value: Any,
    buffer_transition: Any,
) -> tuple[int, float]:
    """Update the states in place, in order; return how many got larger, and the largest relative change.

    Downwards (side -1) a value only grows: every value stays a lower bound. Upwards the new value plus ``lift`` replaces
    the old one; if no state got larger in a sweep, the values after it are an upper bound (Park's induction).
    """
    n_larger, change = 0, 0.0
    for s in states:
        old = values[s]
        new, chosen = state_value(
            s, first_choice, first, successor, expression, lower, upper, reward, discount, values, agent, nature, side,
            buffer_value, buffer_transition,
        )  # fmt: skip
        if side < 0.0:
            if new > old:
                values[s] = new
                n_larger += 1
                if agent > 0.0:
                    policy[s] = chosen
                change = max(change, (new - old) / max(1.0, abs(new)))
        else:
            new = min(new + lift * max(1.0, abs(new)), cap)
            if new > old:
                n_larger += 1
            change = max(change, abs(new - old) / max(1.0, abs(new)))
            values[s] = new
            if agent < 0.0:
                policy[s] = chosen
    return n_larger, change


@compiled
def step_values(
    states: Any,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    reward: Any,
    discount: float,
    agent: float,
    nature: float,
    side: float,
    values: Any,
    result: Any,
    policy: Any,
    buffer_value: Any,
    buffer_transition: Any,
) -> None:
    """Write the value of one more step into ``result``, rounded to the given side."""
    for s in states:
        result[s], policy[s] = state_value(
            s, first_choice, first, successor, expression, lower, upper, reward, discount, values, agent, nature, side,
            buffer_value, buffer_transition,
        )  # fmt: skip


@compiled
def row_distribution(
    start: int,
    end: int,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    values: Any,
    nature: float,
    buffer_value: Any,
    buffer_transition: Any,
    probability: Any,
) -> None:
    """Write nature's choice for a row: ``probability[i]`` is that of its i-th transition."""
    n = end - start
    free = 1.0
    for i in range(n):
        t = start + i
        free -= lower[expression[t]]
        v = values[successor[t]]
        j = i
        while j > 0 and nature * buffer_value[j - 1] < nature * v:
            buffer_value[j] = buffer_value[j - 1]
            buffer_transition[j] = buffer_transition[j - 1]
            j -= 1
        buffer_value[j] = v
        buffer_transition[j] = t
    free = max(free, 0.0)
    for i in range(n):
        f = expression[buffer_transition[i]]
        extra = min(upper[f] - lower[f], free)
        free -= extra
        probability[buffer_transition[i] - start] = lower[f] + extra


@compiled
def chain_of_best(
    states: Any,
    local: Any,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    reward: Any,
    discount: float,
    agent: float,
    nature: float,
    values: Any,
    offset: Any,
    column: Any,
    entry: Any,
    constant: Any,
    buffer_value: Any,
    buffer_transition: Any,
    probability: Any,
) -> int:
    """Write the Markov chain of both players' best moves on a component; return its number of entries.

    Row i of the chain is state ``states[i]``: probabilities to members in ``entry``, everything else in ``constant``.
    """
    n_entries = 0
    for i in range(len(states)):
        _, c = state_value(
            states[i], first_choice, first, successor, expression, lower, upper, reward, discount, values, agent,
            nature, 0.0, buffer_value, buffer_transition,
        )  # fmt: skip
        row_distribution(
            first[c], first[c + 1], successor, expression, lower, upper, values, nature, buffer_value,
            buffer_transition, probability,
        )  # fmt: skip
        constant[i] = reward[c]
        for t in range(first[c], first[c + 1]):
            p = probability[t - first[c]]
            inner = local[successor[t]]
            if p > 0.0 and inner >= 0:
                column[n_entries] = inner
                entry[n_entries] = p
                n_entries += 1
            elif p > 0.0:
                constant[i] += p * values[successor[t]]
        offset[i + 1] = n_entries
    return n_entries


@compiled
def is_inductive(
    states: Any,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    reward: Any,
    discount: float,
    agent: float,
    nature: float,
    side: float,
    values: Any,
    policy: Any,
    buffer_value: Any,
    buffer_transition: Any,
) -> bool:
    """Return whether one more step, rounded to the given side, moves every value strictly back from that side.

    For side +1 the values are then an upper bound; for side -1 a lower bound (values that are zero need no proof).
    """
    for s in states:
        if side < 0.0 and values[s] == 0.0:
            continue
        new, chosen = state_value(
            s, first_choice, first, successor, expression, lower, upper, reward, discount, values, agent, nature, side,
            buffer_value, buffer_transition,
        )  # fmt: skip
        if not side * new < side * values[s]:
            return False
        if side * agent < 0.0:
            policy[s] = chosen
    return True
