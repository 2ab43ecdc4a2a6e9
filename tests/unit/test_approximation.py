"""The usual approximate interval beside bounds: that of textbooks, for parameters and for tables."""

from math import sqrt
from statistics import NormalDist

import pandas as pd
import pytest
from row_models import listed

import plumdp as pl

WINS, LOSSES = 700, 300
Z = NormalDist().inv_cdf(0.975)


def coins(p, q):
    """Return a game of one throw of one of two coins, of which the second wins with q."""
    rows = {"one": [(p, "won"), (1 - p, "lost")], "two": [(q, "won"), (1 - q, "lost")]}
    return listed({"start": rows}, "p q", start="start", labels={"won": "won"})


MODEL = coins(*pl.parameters("p", "q"))
GOAL = 'Pmax=? [ F "won" ]'


def thrown(model, one=(WINS, LOSSES), two=(400, 600)):
    amounts = {("one", "won"): one[0], ("one", "lost"): one[1], ("two", "won"): two[0], ("two", "lost"): two[1]}
    rows = [{"at": "start", "action": a, "next_at": to, "n": n} for (a, to), n in amounts.items()]
    frame = pd.DataFrame(rows)
    frame = frame.loc[frame.index.repeat(frame["n"])].drop(columns="n")
    return pl.read_log(model, frame)


def half_width(share, n):
    return Z * sqrt(share * (1 - share) / n)


@pytest.mark.parametrize("kind", ["likelihood", "table"])
def test_the_interval_of_one_coin_is_that_of_textbooks(kind):
    found = pl.certify(MODEL, thrown(MODEL), GOAL, policy="one", confidence=0.95, confidence_set=kind)
    low, high = found.beside.approximate
    assert (low + high) / 2 == pytest.approx(0.7, abs=1e-3)
    assert (high - low) / 2 == pytest.approx(half_width(0.7, 1000), rel=0.01)
    assert found.lower < low < high < found.upper
    assert "by the normal approximation" in str(found)


@pytest.mark.parametrize("kind", ["likelihood", "table"])
def test_variances_of_two_coins_add_up(kind):
    learned = pl.learn(MODEL, thrown(MODEL), objectives=[GOAL], confidence=0.95, confidence_set=kind)
    low, high = pl.difference(learned, GOAL, "one", "two").approximate
    assert (low + high) / 2 == pytest.approx(0.3, abs=2e-3)
    both = sqrt(half_width(0.7, 1000) ** 2 + half_width(0.4, 1000) ** 2)
    assert (high - low) / 2 == pytest.approx(both, rel=0.01)


@pytest.mark.parametrize("kind", ["likelihood", "table"])
def test_what_two_policies_share_cancels(kind):
    learned = pl.learn(MODEL, thrown(MODEL), objectives=[GOAL], confidence=0.95, confidence_set=kind)
    found = pl.difference(learned, GOAL, lambda s: {"one": 0.5, "two": 0.5}, "one").approximate
    half = pl.difference(learned, GOAL, "two", "one").approximate
    assert found[1] - found[0] == pytest.approx((half[1] - half[0]) / 2, rel=1e-6)


def test_without_data_there_is_none():
    found = pl.certify(MODEL, thrown(MODEL, (0, 0), (0, 0)), GOAL, policy="one")
    assert found.beside.approximate is None
    assert "not certified" not in dict(found.page().facts)


@pytest.mark.slow
def test_a_value_that_depends_on_rows_with_hidden_paths_has_the_interval_of_what_was_seen():
    p, q = pl.parameters("p", "q")
    model = coins(p, p * q + (1 - p) * (1 - q))
    learned = pl.learn(model, thrown(model), objectives=[GOAL], confidence=0.95)
    assert len(learned.table.paths.rows) == 1
    for policy, chance in (("one", 0.7), ("two", 0.4)):
        low, high = pl.conclude(learned, GOAL, policy=policy).beside.approximate
        assert (high - low) / 2 == pytest.approx(half_width(chance, 1000), rel=0.02)


def test_a_value_that_depends_on_rows_without_a_likelihood_has_none():
    p, q = pl.parameters("p", "q")
    model = coins(p, (p - q) ** 2)
    learned = pl.learn(model, thrown(model), objectives=[GOAL])
    assert len(learned.table.left_out) == 1
    found = {each: pl.conclude(learned, GOAL, policy=each).beside.approximate for each in ("one", "two")}
    assert found["one"] is not None
    assert found["two"] is None


def test_an_outcome_that_was_never_seen_widens_nothing():
    p, q = pl.parameters("p", "q")

    def step(state):
        if state.at != "start":
            return {"stop": [(1, state)]}
        to = [state._replace(at=name) for name in ("won", "gone", "lost")]
        return {"throw": [(p, to[0]), (q, to[1]), (1 - p - q, to[2])]}

    space = pl.ParameterSpace.simplex("p", "q")
    model = pl.explore(step, {"at": "start"}, space=space, labels={"won": lambda s: s.at == "won"})
    frame = pd.DataFrame({"at": "start", "action": "throw", "next_at": ["won"] * WINS + ["lost"] * LOSSES})
    low, high = pl.certify(model, pl.read_log(model, frame), GOAL, confidence=0.95).beside.approximate
    assert (high - low) / 2 == pytest.approx(half_width(0.7, 1000), rel=0.01)
