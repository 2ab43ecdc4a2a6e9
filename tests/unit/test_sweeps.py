"""Sweeps that keep nature's masses give the same bits as sweeps that find them anew."""

from fractions import Fraction

import numpy as np
import pytest
from numba import njit

import plumdp as pl
from plumdp.base.compiled import prefetch
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.nature import Rows, interval
from plumdp.solver.prepared import prepare

LENGTHS = (1, 2, 3, 5, 9)


def random_rows(rng, nature, agent, discount, n_states=60, n_expressions=200):
    """Return rows of one to nine successors, with bounds that fit, are exact, wide, or miss one by a rounding."""
    first_choice = np.concatenate([[0], np.cumsum(rng.integers(1, 4, n_states))]).astype(np.uint32)
    lengths = rng.choice(LENGTHS, int(first_choice[-1]))
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    lower, upper = [], []
    for length in lengths:
        middle = rng.dirichlet(np.ones(length)) if rng.random() < 0.7 else np.full(length, 1 / length)
        width = rng.choice([0.0, 1e-17, 0.05, 1.0])
        lower += list(np.maximum(middle - width, 0.0) if length > 1 else [1.0])
        upper += list(np.minimum(middle + width, 1.0) if length > 1 else [1.0])
    successor = rng.integers(0, n_states + 5, len(lower)).astype(np.uint32)
    reward = rng.choice([0.0, 1.5], int(first_choice[-1]))
    expression = np.arange(len(lower), dtype=np.uint32)
    return Rows(
        first_choice, first, successor, expression, np.array(lower), np.array(upper), reward, discount, agent, nature
    )


def own(rows):
    return rows._replace(successor=rows.successor.copy(), expression=rows.expression.copy())


@pytest.mark.parametrize("nature", [-1.0, 1.0])
@pytest.mark.parametrize(("agent", "discount"), [(1.0, 1.0), (-1.0, 0.9)])
def test_masses_that_are_kept_are_those_that_nature_would_give_anew(nature, agent, discount):
    """Values change a little, so that some rows keep their order and others do not; some are infinite or tied."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        rows = random_rows(rng, nature, agent, discount)
        kept_rows, other_rows = own(rows), own(rows)
        kept, n = np.full(len(rows.successor), -1.0), len(rows.first_choice) - 1
        values = rng.choice([0.0, 0.25, 0.5, 1.0, np.inf], n + 5, p=[0.2, 0.3, 0.2, 0.2, 0.1])
        for step in (1, -1, 1, 1, -1, 1):
            for side in (-1.0, 1.0):
                found = []
                for each, memory in ((kept_rows, kept), (other_rows, np.empty(0))):
                    result, best_row = np.full(n + 5, 0.1), np.zeros(n, dtype=np.int32)
                    arguments = (0, n, step, each, side, 1e-13, 40.0, values, result, best_row)
                    outcome = interval.backup(*arguments, np.empty(2 * max(LENGTHS)), memory)
                    found.append((outcome, result.tobytes(), best_row.tobytes(), each.successor.tobytes()))
                assert found[0] == found[1]
            is_moved = rng.random(n + 5) < 0.2
            values = np.where(is_moved, rng.random(n + 5), values)
        assert (kept[rows.first[:-1][np.diff(rows.first) > 1]] >= 0).all()


def test_layouts_of_one_game_keep_masses_apart():
    """Nature against the agent and nature with it, swept in turn on layouts from one: as if each were alone."""
    study = pl.case_study("engagement:10")
    truth = pl.stages.instantiate(study.model, study.true_point)
    wide = [
        IntervalMDP(truth.graph, truth.expression, np.maximum(truth.lower - w, 0.01), np.minimum(truth.upper + w, 1))
        for w in (0.01, 0.05)
    ]
    prepared = prepare(wide[0], study.objective)
    for _ in range(2):
        for imdp in wide:
            for nature in ("robust", "optimistic"):
                alone = pl.stages.solve(imdp, study.objective, nature=nature)
                shared = pl.stages.solve(imdp, study.objective, nature=nature, prepared=prepared)
                assert (alone.lower == shared.lower).all()
                assert (alone.upper == shared.upper).all()


def test_asking_for_an_element_changes_nothing():
    def total(values, index):
        found = 0.0
        for i in index:
            prefetch(values, i)
            found += values[i]
        return found

    values, index = np.random.default_rng(1).random(100), np.arange(100, dtype=np.uint32)[::-1].copy()
    assert njit(total)(values, index) == total(values, index)


@pytest.mark.parametrize("discount", ["0.999", "0.99999", "0.999999", "0.9999999"])
@pytest.mark.parametrize("gain", [0.001, 1.0, 1000.0])
def test_a_discount_near_one_takes_few_sweeps_and_its_bounds_hold(gain, discount):
    """Exact values: a gain in each step from the second on, with probability 1/4, and nothing in another state.

    Rounding of the largest value, summed with the discount, is far more than the precision where the value is zero.
    """
    (p,) = pl.parameters("p")

    def step(state):
        if state.at != "start":
            return {"stay": [(1, state)]}
        return {"go": [(p, state._replace(at="win")), (1 - p, state._replace(at="lose"))]}

    rewards = {"gain": lambda state: gain if state.at == "win" else 0.0}
    model = pl.explore(step, {"at": "start"}, rewards=rewards, space=pl.ParameterSpace.unit("p"))
    asked = pl.parse_property(f'R{{"gain"}}max=? [ C{{{discount}}} ]', model)
    found = pl.stages.solve(pl.stages.instantiate(model, {"p": 0.25}), asked)
    factor = Fraction(float(discount))
    won = Fraction(gain) / (1 - factor)
    exact = {"start": factor * won / 4, "win": won, "lose": Fraction(0)}
    for at, low, high in zip(model.graph.states["at"], found.lower, found.upper, strict=True):
        assert Fraction(float(low)) <= exact[at] <= Fraction(float(high))
    assert found.sweeps < 1000
    assert (found.upper - found.lower).max() <= max(1e-6, 1e-6 * float(won))
