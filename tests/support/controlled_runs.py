"""Machines that are good or bad for a few steps, whose bad ones a rule mends; practice mends some, as it remembers.

What a mended machine costs beyond the mean that the rule's chain has is one of two numbers, or nothing.
"""

from fractions import Fraction
from itertools import product

import numpy as np
from table_cases import make_table, values_at

from plumdp.data.returns import Outcomes
from plumdp.tables.control import Step, StepKinds

MEND, WAIT, LOST = 3.0, 1.0, 9.0  # costs of a step in which a bad machine is mended or not, and of a lost machine
NOTHING = {0.0: Fraction(1)}
VARIES = {-1.0: Fraction(1, 2), 2.0: Fraction(1, 2)}  # what mending costs beyond that, and how often


def chain(n_steps):
    """Return the chain of the rule, whose rows are those of good machines (0, 1) and of mended ones (2, 3, 4)."""
    n = 2 * n_steps
    rows = []
    for t in range(n_steps):
        ahead = (2 * t + 2, 2 * t + 3) if t + 1 < n_steps else (n, n)
        rows += [[(ahead[0], 0), (ahead[1], 1)], [(ahead[0], 2), (ahead[1], 3), (n + 1, 4)]]
    return make_table(rows, known=(0.0, LOST), reward=np.tile([0.0, MEND], n_steps))


def kinds(n_steps, paid=NOTHING):
    """Return the kinds of steps in this chain: good machines, and mended ones."""
    return StepKinds(np.tile([0, 1], n_steps), np.array([0.0, min(paid)]), np.array([0.0, max(paid)]))


def mends(past):
    """Return the probability with which practice mends a bad machine: less if it has been mended before."""
    return Fraction(1, 4) if "mended" in past else Fraction(3, 4)


def all_runs(truth, n_steps, paid=NOTHING):
    """Yield every run of practice: what it costs, its steps that the rule has, and its probability.

    A step is a place, and what was paid beyond the mean.
    """

    def go(t, state, past, cost, steps, chance):
        if t == n_steps or state == "lost":
            yield cost + (LOST if state == "lost" else 0.0), steps, chance
            return
        if state == "good":
            for to, place in (("good", 0), ("bad", 1)):
                yield from go(t + 1, to, past, cost, [*steps, (place, 0.0)], chance * truth[place])
            return
        mend = mends(past)
        for (to, place), (more, share) in product((("good", 2), ("bad", 3), ("lost", 4)), paid.items()):
            new = (*past, "mended"), cost + MEND + more, [*steps, (place, more)], chance * mend * truth[place] * share
            yield from go(t + 1, to, *new)
        yield from go(t + 1, "bad", past, cost + WAIT, steps, chance * (1 - mend))

    yield from go(0, "good", (), 0.0, [], Fraction(1))


def as_data(runs, n_steps, paid=NOTHING):
    """Return runs as outcomes between 0 and the most that a run can cost, their steps, and kinds of these."""
    most = (MEND + max(paid)) * n_steps + LOST
    cost = np.array([cost for cost, *_ in runs]) / most
    run = np.repeat(np.arange(len(runs)), [len(steps) for _, steps, *_ in runs])
    place = np.array([p for _, steps, *_ in runs for p, _ in steps], dtype=np.int64)
    more = np.array([more for _, steps, *_ in runs for _, more in steps])
    steps = Step(run, np.where(place > 1, 1, 0), place, more)
    return Outcomes(cost, cost, np.ones(len(runs), dtype=bool), (0.0, most)), steps, kinds(n_steps, paid)


def value_of(table, p, mean=0.0):
    """Return the value of the rule, given the probabilities of places and what mending costs beyond its mean."""
    n_steps, values = table.n // 2, np.zeros(2)
    for _ in range(n_steps):
        values = np.array(
            [p[0] * values[0] + p[1] * values[1], MEND + mean + p[2] * values[0] + p[3] * values[1] + p[4] * LOST]
        )
    assert mean or abs(values[0] - values_at(table, p[table.place])[table.chain.initial]) < 1e-9
    return values[0]


def true_difference(table, truth, n_steps, paid=NOTHING):
    """Return the value of the rule less the mean cost of practice."""
    p, mean = np.array([float(x) for x in truth]), float(sum(more * share for more, share in paid.items()))
    value = value_of(table, p, mean)
    return value - float(sum(Fraction(cost) * chance for cost, _, chance in all_runs(truth, n_steps, paid)))
