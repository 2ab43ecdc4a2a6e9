"""Random cases for values at points of confidence sets: a model, data, a question, and how it is answered.

Models have rows that share expressions, products of parameters, edges that vanish at some points, cycles, loops that
are slow to leave, and states from which the goal is never reached. Data are few or many, with a pilot or without.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from coupled_points import random_policy, random_product_model
from random_objectives import ALL_KINDS, random_objective
from random_pmdps import random_point, random_problem

import plumdp as pl
from plumdp.data.counts import Pilot
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP

SETS = ("likelihood", "interval", "likelihood", "l1", "ellipsoid")
MISFITS = {"likelihood": (0.001, 0.01, 0.1), "interval": (0.001, 0.01, 0.1)}
PRECISIONS = (1e-6, 1e-6, 1e-3, 1e-9)
NAMES = ("p", "q", "r")


@dataclass(frozen=True, eq=False)
class Case:
    """A question about a policy of a model, given or to be found, and the data that answer it."""

    model: ParametricMDP
    counts: pl.TransitionCounts
    objective: Objective
    kind: str  # of the objective
    confidence: float
    confidence_set: str
    model_tolerance: float
    policy: np.ndarray | None
    precision: float
    is_slow: bool


def random_case(seed):
    """Return a case; 60 seeds in a row have all pairs of sets and objectives."""
    rng = np.random.default_rng(seed)
    kind, confidence_set = ALL_KINDS[seed % len(ALL_KINDS)], SETS[seed % len(SETS)]
    is_slow = rng.random() < 0.3
    model, point = random_model(rng, is_slow=is_slow)
    return Case(
        model,
        random_data(rng, model, point),
        random_objective(rng, model, kind),
        kind,
        float(rng.choice([0.5, 0.9, 0.999])),
        confidence_set,
        float(rng.choice(MISFITS[confidence_set])) if confidence_set in MISFITS and rng.random() < 0.2 else 0.0,
        random_policy(rng, model.graph) if rng.random() < 0.4 else None,
        float(rng.choice(PRECISIONS)),
        is_slow,
    )


def random_model(rng, *, is_slow):
    """Return a model and a point of its space."""
    other = rng.random()
    if not is_slow and other < 0.3:
        problem = random_problem(
            rng, n_states=(3, 6), least=Fraction(int(rng.integers(2)), 100), sure=rng.random() < 0.3
        )
        return problem.model, problem.point
    model = random_product_model(rng) if not is_slow and other < 0.4 else random_graph(rng, is_slow=is_slow)
    return model, random_point(rng, model.space.vertices)


def random_graph(rng, *, is_slow):
    """Return a model with one to three choices in each state but the last, which is a trap or goes on as others do."""
    variables = pl.parameters(*NAMES[: int(rng.choice([1, 1, 2, 2, 3]))])
    n = int(rng.integers(3, 7))
    table = [
        [random_row(rng, variables, state, n, is_slow=is_slow) for _ in range(rng.choice([1, 2, 2, 3]))]
        for state in range(n - int(rng.integers(0, 2)))
    ]

    def step(state):
        if state.at >= len(table):
            return {"stay": [(1, state)]}
        rows = enumerate(table[state.at])
        return {f"do{i}": [(f, state._replace(at=to)) for to, f in row.items()] for i, row in rows}

    ends = (
        (Fraction(0), Fraction(1)),
        (Fraction(0), Fraction(1)),
        (Fraction(1, 100), Fraction(99, 100)),
        (Fraction(1, 5), Fraction(4, 5)),
    )
    space = pl.ParameterSpace.box({f"{x}": ends[rng.integers(len(ends))] for x in variables})
    return pl.explore(step, {"at": 0}, space=space, labels={"goal": lambda s: s.at == n - 1})


def random_row(rng, variables, state, n, *, is_slow):
    """Return successor → expression: coins, coins after coins, squares, shares and numbers; a slow one mostly stays."""
    a, b = (variables[rng.integers(len(variables))] for _ in range(2))
    share = Fraction(int(rng.choice([1, 3, 9])), int(rng.choice([10, 50, 100])))
    kinds = [
        [a, 1 - a],
        [share * a, 1 - share * a],
        [a * b, 1 - a * b],
        [a * a * b, 1 - a * a * b],
        [share, 1 - share],
        [a * b, a * (1 - b), 1 - a],
        [a / 2, a / 2, 1 - a],
        [a * a, 2 * a * (1 - a), (1 - a) * (1 - a)],
        [share * a / 2, (1 - a) / 2, (1 + a - share * a) / 2],
    ]
    row = kinds[rng.integers(len(kinds))]
    successors = rng.permutation(n)[: len(row)].tolist()
    if is_slow and rng.random() < 0.5:
        rare = Fraction(1, int(rng.choice([100, 10_000])))
        row, successors = [*(rare * f for f in row), 1 - rare], [*successors, state]
    merged = {}
    for f, to in zip(row, successors, strict=False):
        merged[to] = merged.get(to, 0) + f
    merged[successors[-1]] += 1 - sum(merged.values(), Polynomial(0))
    return merged


def random_data(rng, model, point):
    """Return counts of visits of choices at a point, in three parts: the first two may be moments of a pilot."""
    graph, rows = model.graph, model.probabilities(point)[model.expression].clip(0)
    visits, parts = int(rng.choice([0, 3, 30, 300, 3000, 50_000])), np.zeros((3, graph.n_transitions), dtype=np.int64)
    is_left_out = rng.random(graph.n_choices) < rng.choice([0, 0, 0.3, 0.8])
    for c in np.flatnonzero(~is_left_out).tolist():
        a, b = graph.first_transition[c : c + 2]
        for part, share in zip(parts, (0.02, 0.08, 0.9), strict=True):
            part[a:b] = rng.multinomial(-int(-share * visits // 1), rows[a:b] / rows[a:b].sum())
    moments = [moment for moment in np.cumsum(parts, axis=0)[:2] if moment.any()]
    pilot = None
    if moments and rng.random() < 0.7:
        end, lengths = str(rng.choice(["planned", "power of four"])), tuple(16.0 * 4**i for i in range(len(moments)))
        pilot = Pilot(moments[-1], end, 9.0, moments=tuple(moments), lengths=lengths)
    sampling = "adaptive" if pilot is not None else str(rng.choice(["independent", "trajectories", "adaptive"]))
    return pl.TransitionCounts(graph, parts.sum(axis=0), sampling, pilot)
