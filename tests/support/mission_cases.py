"""Random small models and formulas, and the values of missions by recursion over histories, straight from semantics.

Models have no cycles but loops in states without a way out, so that a history ends in such a state, and its last state
is repeated forever. Formulas are nested tuples. Nothing here knows of automata or of progression.
"""

from fractions import Fraction
from functools import partial

import numpy as np

import plumdp as pl

LABELS = ("a", "b", "c")
_OTHER = {"U": "R", "R": "U", "UR": "UR"}  # of which formulas the negation is


def random_mission_model(rng, *, is_acyclic=True, has_end=True):
    """Return a model with two parameters, choices and random labels, whose last states have no way out.

    A model with cycles may have a way out of all states.
    """
    p, q = pl.parameters("p", "q")
    n = int(rng.integers(4, 7))
    label = {name: rng.random(n) < 0.45 for name in LABELS}
    rows = {}
    for s in range(n):
        low = s + 1 if is_acyclic else 0
        if s >= n - 2 and (is_acyclic or s == n - 1) and has_end:
            rows[s] = {"stay": [(1, s)]}
            continue
        rows[s] = {}
        for name in ("left", "right")[: int(rng.integers(1, 3))]:
            first, second = rng.choice(np.arange(low, n), 2, replace=False) if n - low > 1 else (low, low)
            if first == second:
                rows[s][name] = [(1, int(first))]
            else:
                chance = (p, q, p / 2, 1 - q)[int(rng.integers(4))]
                rows[s][name] = [(chance, int(first)), (1 - chance, int(second))]
    cost = rng.integers(0, 3, n), rng.integers(0, 3, n)
    return pl.explore(
        lambda state: {a: [(e, state._replace(s=t)) for e, t in row] for a, row in rows[state.s].items()},
        {"s": 0},
        space=pl.ParameterSpace.unit("p", "q"),
        labels={name: partial(_is_in, states) for name, states in label.items()},
        rewards={"fuel": lambda state: cost[0][state.s] / 2},
        choice_rewards={"fuel": lambda state, action: float(cost[1][state.s] * (action == "left"))},
    )


def _is_in(states, state):
    return bool(states[state.s])


def random_formula(rng, depth=3, *, unbounded="U"):
    """Return a formula in which only F and U (``unbounded="U"``), only G, W and R ("R"), or any have no last step."""
    kind = rng.random()
    if depth == 0 or kind < 0.12:
        atom = ("label", str(rng.choice(LABELS)))
        return ("!", atom) if rng.random() < 0.3 else atom
    parts = [random_formula(rng, depth - 1, unbounded=unbounded) for _ in range(2)]
    if kind < 0.22:  # the negation of the other kind
        return ("!", random_formula(rng, depth - 1, unbounded=_OTHER[unbounded]))
    if kind < 0.28:
        return ("=>", random_formula(rng, depth - 1, unbounded=_OTHER[unbounded]), parts[1])
    if kind < 0.5:
        return (str(rng.choice(["&", "|"])), *parts)
    if kind < 0.62:
        return ("X", parts[0])
    if kind < 0.75:
        first, last = sorted(rng.integers(0, 4, 2).tolist())
        window = (0 if rng.random() < 0.6 else first, last)
        operator = str(rng.choice(["F", "G", "U"]))
        return (operator, *parts[: 1 + (operator == "U")], window)
    operator = str(rng.choice({"U": ["F", "U"], "R": ["G", "W", "R"], "UR": ["F", "U", "G", "W", "R"]}[unbounded]))
    return (operator, *parts[: 1 + (operator not in "FG")], None)


def written(formula, *, for_storm=False):
    """Return a formula as text, for Storm without W and R, which it does not read."""
    operator, *parts = formula
    if operator == "label":
        return f'"{parts[0]}"'
    if operator in ("W", "R") and for_storm:
        a, b, _ = parts
        no, other = ("!", a), ("!", b)
        swapped = ("U", other, ("&", no, other), None) if operator == "W" else ("U", no, other, None)
        return written(("!", swapped), for_storm=True)
    if operator == "=>" and for_storm:
        return written(("|", ("!", parts[0]), parts[1]), for_storm=True)
    texts = [
        f"({written(part, for_storm=for_storm)})" for part in parts if isinstance(part, tuple) and _is_formula(part)
    ]
    if operator in ("!", "X"):
        return f"{operator} {texts[0]}"
    bound = ""
    if operator in "FGUWR" and parts[-1] is not None:
        first, last = parts[-1]
        bound = f"[{first},{last}]" if first else f"<={last}"
    return f"{operator}{bound} {texts[0]}" if len(texts) == 1 else f"{texts[0]} {operator}{bound} {texts[1]}"


def _is_formula(part):
    return isinstance(part[0], str)


def holds(formula, trace, at=0, *, is_finite=False):
    """Return whether a formula holds at a position of a trace of sets of labels.

    The last set of the trace is repeated forever, or if ``is_finite`` there is no step after it.
    """
    operator, *parts = formula
    last = len(trace) - 1

    def later(part, n):
        return holds(part, trace, min(at + n, last), is_finite=is_finite)

    if operator == "label":
        return parts[0] in trace[at]
    if operator == "!":
        return not later(parts[0], 0)
    if operator == "&":
        return later(parts[0], 0) and later(parts[1], 0)
    if operator == "|":
        return later(parts[0], 0) or later(parts[1], 0)
    if operator == "=>":
        return not later(parts[0], 0) or later(parts[1], 0)
    if operator == "X":
        return not (is_finite and at == last) and later(parts[0], 1)
    first, final = parts[-1] or (0, last - at + 1)  # by then nothing changes any more
    steps = range(first, min(final, last - at) + 1 if is_finite else final + 1)
    if operator == "F":
        return any(later(parts[0], n) for n in steps)
    if operator == "G":
        return all(later(parts[0], n) for n in steps)
    a, b = parts[:2]
    if operator == "R":  # b until and with the step in which a holds, or forever
        return all(later(b, n) or any(later(a, m) for m in range(n)) for n in steps)
    until = any(later(b, n) and all(later(a, m) for m in range(n)) for n in steps)
    return until or (operator == "W" and all(later(a, n) for n in steps))


def over_histories(model, rows, worth, choose):
    """Return the value of the initial state, where a history is worth what it is in a state without a way out.

    ``choose`` returns the value of a choice, given the history of states, the choices, and the value of each.
    """
    graph = model.graph

    def value(history, taken):
        s = history[-1]
        own = range(graph.first_choice[s], graph.first_choice[s + 1])
        successors = [graph.successor[graph.first_transition[c] : graph.first_transition[c + 1]] for c in own]
        if all((to == s).all() for to in successors):
            return Fraction(int(worth(history, taken)))

        def of(c):
            steps = range(graph.first_transition[c], graph.first_transition[c + 1])
            return sum((rows[t] * value([*history, int(graph.successor[t])], [*taken, c]) for t in steps), Fraction(0))

        return choose(history, own, of)

    return value([graph.initial_state], [])


def trace_of(model, history):
    return [{name for name in LABELS if model.labels[name][s]} for s in history]


def follows(policy, model):
    """Return the function for ``over_histories`` that takes the action of a policy, which sees one state at a time."""
    graph, states = model.graph, model.graph.states

    def choose(history, own, value_of):
        run = policy.start()
        for s in history:
            action = run({name: column[s].item() for name, column in states.items()})
        return value_of(next(c for c in own if graph.action_names[graph.action[c]] == action))

    return choose
