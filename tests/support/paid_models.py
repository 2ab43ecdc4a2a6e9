"""Models whose rewards are unknown, and data with values of any law."""

import numpy as np

import plumdp as pl
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.data.seen import SQUARES, Seen

COST = 'R{"cost"}min=? [ F "done" ]'


def one_payment(low=0, high=1):
    """Return a model of one step, whose cost has an unknown mean and lies between two numbers."""
    (pay,) = pl.parameters("pay")
    return pl.explore(
        lambda s: {"go": [(1, s._replace(x=1))]} if s.x == 0 else {"stop": [(1, s)]},
        {"x": 0},
        space=pl.ParameterSpace.box({"pay": (low, high)}),
        labels={"done": lambda s: s.x == 1},
        choice_rewards={"cost": lambda s, action: pay if action == "go" else 0},
    )


def machine():
    """Return a machine that is repaired in two ways, at costs of which one is twice the other."""
    p, repair = pl.parameters("p", "repair")

    def step(s):
        if s.x == 3:
            return {"stop": [(1, s)]}
        return {
            "slow": [(p, s._replace(x=s.x + 1)), (1 - p, s)],
            "fast": [(1 - p / 2, s._replace(x=s.x + 1)), (p / 2, s)],
        }

    return pl.explore(
        step,
        {"x": 0},
        space=pl.ParameterSpace.box({"p": ("0.3", "0.9"), "repair": (2, 10)}),
        labels={"done": lambda s: s.x == 3},
        rewards={"cost": lambda s: 0 if s.x == 3 else 1},
        choice_rewards={"cost": lambda s, action: {"slow": repair, "fast": 2 * repair, "stop": 0}[action]},
    )


def counts_of(model, values, *, expected):
    """Return the counts of a model of one step that was taken once for each value, in their order."""
    per_unit = model.learned_rewards["cost"].per_unit
    units = np.round(np.asarray(values) * per_unit).astype(np.int64)

    def until(n):
        return seen_in_one_step(model, units[:n])

    moments = [16 * 4**i for i in range(6) if 16 * 4**i < len(values)]
    lengths = tuple(map(float, moments))
    pilot = Pilot.of(until(moments[0]), moments=[*map(until, moments)], lengths=lengths, expected=expected)
    seen = until(len(values))
    return TransitionCounts(model.graph, seen.counts, "trajectories", pilot, rewards=seen.rewards)


def seen_in_one_step(model, units):
    """Return what is seen if the first transition is taken once for each value, in units."""
    seen, units = Seen.nothing(model.graph.n_transitions, 1), np.asarray(units, dtype=np.int64)
    first, second = np.divmod(units**2, SQUARES)
    seen.counts[0] = len(units)
    seen.rewards[0, :, 0] = units.sum(), first.sum(), second.sum()
    return seen


def runs_of(rng, n_runs):
    """Return a table of runs of the machine with p = 0.6 and a mean of 4 for repairs, which vary."""
    rows = []
    for run in range(n_runs):
        x = step = 0
        while x < 3:
            action = ["slow", "fast"][rng.integers(2)]
            paid = (2 + 8 * rng.beta(1, 3)) * (1 if action == "slow" else 2)
            rows.append((run, step, x, action, 1 + paid))
            x, step = x + int(rng.random() < (0.6 if action == "slow" else 0.7)), step + 1
        rows.append((run, step, x, None, None))
    return {
        name: [*values]
        for name, values in zip(("episode", "step", "x", "action", "price"), zip(*rows, strict=True), strict=True)
    }
