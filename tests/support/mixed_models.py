"""Random models with unknown rows beside rows of expressions, and points of them."""

from fractions import Fraction

import numpy as np

import plumdp as pl
from plumdp.model.question import ask
from plumdp.solver.coupled.chain import policy_chain
from plumdp.tables.chain import table_chain
from plumdp.tables.views import as_table

REACH = 'Pmax=? [ F "goal" ]'
p, q = pl.parameters("p", "q")
SPACE = pl.ParameterSpace.box({"p": (Fraction(1, 10), Fraction(9, 10)), "q": (Fraction(1, 10), Fraction(9, 10))})
# rows with two and with three successors; the first two are those of several states
ROWS = {
    2: [[p, 1 - p], [q / 2, 1 - q / 2], [p * q, 1 - p * q], [(p + q) / 2, 1 - (p + q) / 2]],
    3: [[p / 2, Fraction(1, 2), (1 - p) / 2], [p * q, p * (1 - q), 1 - p], [q / 3, (1 - q) / 3, Fraction(2, 3)]],
}


def random_model(rng, *, free=0.4):
    """Return a walk of 3 to 8 states between two ends, some of whose rows are unknown, and the rows of its states."""
    n, rows = int(rng.integers(3, 9)), {}
    for x in range(1, n + 1):
        size = int(rng.integers(2, 4))
        kind = int(rng.integers(len(ROWS[size]))) if rng.random() < 0.5 else 0
        rows[x] = None if rng.random() < free else ROWS[size][kind]
        sizes = size if rows[x] is None else len(rows[x])
        rows[x] = (sizes, rows[x])
    rows[1], rows[n] = (2, None), (2, ROWS[2][0])  # one of each at least

    def step(s):
        if s.x in (0, n + 1):
            return {"stay": [(1, s)]}
        to = [s._replace(x=x) for x in (s.x + 1, s.x - 1, s.x)]
        size, row = rows[s.x]
        return {"go": pl.unknown(*to[:size]) if row is None else [*zip(row, to, strict=False)]}

    labels = {"goal": lambda s: s.x == n + 1, "end": lambda s: s.x in (0, n + 1)}
    return pl.explore(step, {"x": (n + 1) // 2}, space=SPACE, labels=labels)


def three_rows():
    """Return a walk between two ends whose first and last rows are (p, 1 - p), and whose middle row is unknown."""

    def step(s):
        up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
        if s.x in (0, 4):
            return {"stay": [(1, s)]}
        return {"go": pl.unknown(up, down) if s.x == 2 else [(p, up), (1 - p, down)]}

    return pl.explore(step, {"x": 2}, space=SPACE, labels={"goal": lambda s: s.x == 4})


def random_point(model, rng):
    """Return values of the parameters, and a probability for each transition."""
    sizes = np.diff(model.graph.first_transition)
    rows = [np.maximum(rng.dirichlet(np.full(k, 2.0)), 0.05) for k in sizes]
    values = {name: float(rng.uniform(0.2, 0.8)) for name in model.space.names}
    return values, np.concatenate([row / row.sum() for row in rows])


def probabilities(model, point):
    """Return the probability of each transition at a point."""
    return model.probabilities(point)[model.expression]


def chain_of(model, *, view=as_table):
    """Return the chain of the only policy of a model, seen as a table, and the transition of each of its own."""
    table = view(model)
    objective = ask(REACH, table).objective
    chain = policy_chain(table, np.asarray(table.graph.first_choice[:-1]), objective)
    transitions = [t for s in chain.state[: chain.n_open] for t in table.graph.transitions_of(np.array([s]))]
    return table_chain(table, chain), np.array(transitions)


def mixed_table(rng):
    """Return the chain of a random model that is seen as a table, and its true probabilities."""
    model = random_model(rng)
    table, transitions = chain_of(model)
    return table, probabilities(model, random_point(model, rng))[transitions]
