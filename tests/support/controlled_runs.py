"""Machines that are good or bad for a few steps, whose bad ones a rule mends; practice mends some, as it remembers."""

from fractions import Fraction

import numpy as np
from table_cases import make_table, values_at

from plumdp.data.returns import Outcomes
from plumdp.tables.control import Step

MEND, WAIT, LOST = 3.0, 1.0, 9.0  # costs of a step in which a bad machine is mended or not, and of a lost machine


def chain(n_steps):
    """Return the chain of the rule, whose rows are those of good machines (0, 1) and of mended ones (2, 3, 4)."""
    n = 2 * n_steps
    rows = []
    for t in range(n_steps):
        ahead = (2 * t + 2, 2 * t + 3) if t + 1 < n_steps else (n, n)
        rows += [[(ahead[0], 0), (ahead[1], 1)], [(ahead[0], 2), (ahead[1], 3), (n + 1, 4)]]
    return make_table(rows, known=(0.0, LOST), reward=np.tile([0.0, MEND], n_steps))


def mends(past):
    """Return the probability with which practice mends a bad machine: less if it has been mended before."""
    return Fraction(1, 4) if "mended" in past else Fraction(3, 4)


def all_runs(truth, n_steps):
    """Yield every run of practice: what it costs, the places of its steps in shared rows, and its probability."""

    def go(t, state, past, cost, places, chance):
        if t == n_steps or state == "lost":
            yield cost + (LOST if state == "lost" else 0.0), places, chance
            return
        if state == "good":
            for to, place in (("good", 0), ("bad", 1)):
                yield from go(t + 1, to, past, cost, [*places, place], chance * truth[place])
            return
        mend = mends(past)
        for to, place in (("good", 2), ("bad", 3), ("lost", 4)):
            new = (*past, "mended"), cost + MEND, [*places, place], chance * mend * truth[place]
            yield from go(t + 1, to, *new)
        yield from go(t + 1, "bad", past, cost + WAIT, places, chance * (1 - mend))

    yield from go(0, "good", (), 0.0, [], Fraction(1))


def as_data(runs, n_steps):
    """Return runs as outcomes between 0 and the most that a run can cost, and their steps."""
    most = MEND * n_steps + LOST
    cost = np.array([cost for cost, *_ in runs]) / most
    run = np.repeat(np.arange(len(runs)), [len(places) for _, places, *_ in runs])
    place = np.array([p for _, places, *_ in runs for p in places], dtype=np.int64)
    return Outcomes(cost, cost, np.ones(len(runs), dtype=bool), (0.0, most)), Step(run, place)


def true_difference(table, truth, n_steps):
    """Return the value of the rule less the mean cost of practice."""
    p = np.array([float(x) for x in truth])
    value = values_at(table, p[table.place])[table.chain.initial]
    return value - float(sum(Fraction(cost) * chance for cost, _, chance in all_runs(truth, n_steps)))
