"""Rewards with unknown means: how models declare them, logs tell them, and what their values count for."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from command_line import plumdp as command_line
from flint import arb, ctx
from paid_models import COST, counts_of, machine, one_payment, runs_of
from tiers import size

import plumdp as pl
from plumdp.base.errors import DataError, ModelError
from plumdp.confidence.bets import factors_along
from plumdp.confidence.bounded_means import Tally, mean_bounds
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.reward_coins import RewardCoins
from plumdp.data.counts import TransitionCounts

MACHINE = machine()


# Fairness: the expectation of a value's factor, in balls of 200 bits


def random_law(rng):
    """Return values between 0 and 1 in sixteenths, and their probabilities."""
    n = int(rng.integers(2, 6))
    values = [Fraction(int(k), 16) for k in rng.integers(0, 17, n)]
    parts = rng.multinomial(64, rng.dirichlet(np.ones(n)))
    return values, [Fraction(int(part), 64) for part in parts]


def ball(number):
    """Return the ball of a fraction."""
    number = Fraction(number)
    return arb(number.numerator) / arb(number.denominator)


def single_counts(model, values):
    """Yield what one step with each value counts for, by the package's own pooling."""
    table, per_unit = likelihood_table(model), model.learned_rewards["cost"].per_unit
    for value in values:
        seen = np.zeros((2, model.graph.n_transitions), dtype=np.int64)
        seen[:, 0] = 1, int(value * per_unit)
        yield [Fraction(count) for count in table.pool(seen).tolist()]


def expectations(seed):
    """Yield the expectations of the factors of likelihood and bets, of one step with a value of a random law."""
    rng, model = np.random.default_rng(seed), one_payment()
    values, shares = random_law(rng)
    mean = sum(value * share for value, share in zip(values, shares, strict=True))
    if not 0 < mean < 1:
        return
    table, other = likelihood_table(model), Fraction(int(rng.integers(1, 64)), 64)
    truth, wrong = ([f.evaluate({"pay": at}) for f in table.outcomes] for at in (mean, other))
    bets = [
        Fraction(e) for e in factors_along(table, np.array([float(other)]), np.array([0.3 * rng.normal()])).tolist()
    ]
    stake = sum(f * e for f, e in zip(truth, bets, strict=True))
    for odds in ([w / t for w, t in zip(wrong, truth, strict=True)], [e / stake for e in bets]):
        total = arb(0)
        for share, counts in zip(shares, single_counts(model, values), strict=True):
            factor = arb(1)
            for ratio, count in zip(odds, counts, strict=True):
                factor *= ball(ratio) ** ball(count)
            total += ball(share) * factor
        yield total


def are_fair(seeds):
    """Return whether no expectation is above one."""
    ctx.prec = 200
    return all(not total > 1 for seed in seeds for total in expectations(seed))


def test_a_value_of_any_law_has_a_factor_whose_expectation_is_at_most_one():
    assert are_fair(range(size(60, 10_000)))


def test_values_that_are_rounded_to_the_ends_are_found(monkeypatch):
    """As if a value were known to be an end of its range, rather than an average of both."""
    shown = RewardCoins.shown
    monkeypatch.setattr(RewardCoins, "shown", lambda *args: np.round(shown(*args)))
    assert not are_fair(range(60))


def test_values_count_for_both_ends_of_their_range():
    """3 of values from 2 to 10 is 1/8 of the way: it counts 1/8 for the highest value, and 7/8 for the lowest."""
    model = one_payment(2, 10)
    counts = counts_of(model, [3.0] * 16 + [10.0], expected=17)
    assert likelihood_table(model).pool(counts.seen).tolist() == [3.0, 14.0]


# Models


def test_rewards_that_are_multiples_share_a_mean():
    """A slow repair costs from 3 to 11 and a fast one from 5 to 21, with the same share of their ranges."""
    learned = MACHINE.learned_rewards["cost"]
    assert learned.low == (3, 5)
    assert learned.span == (8, 16)
    assert learned.expression[0].tolist() == learned.expression[1].tolist()
    assert MACHINE.rewards["cost"].choice[-1] == 0


def test_rewards_that_are_products_or_undeclared_are_refused():
    p, q = pl.parameters("p", "q")
    for reward, reason in ((p * p, "products of parameters"), (p + q, "q is not declared")):
        with pytest.raises(ModelError, match=reason):
            pl.explore(
                lambda s: {"stay": [(1, s)]},
                {"x": 0},
                space=pl.ParameterSpace.unit("p"),
                rewards={"cost": lambda s, reward=reward: reward},
            )


def test_values_at_a_point_are_those_of_known_rewards():
    """At p = 0.6 a step takes 1/0.6 tries at 1 + 4, and three are to be made: 25."""
    at = pl.stages.instantiate(MACHINE, {"p": 0.6, "repair": 4})
    found = pl.stages.solve(at, pl.parse_property(COST, MACHINE))
    assert found.lower[0] == pytest.approx(25, abs=1e-4)


# Logs


def read(table, **options):
    return pl.read_log(MACHINE, pd.DataFrame(table), columns={"cost": "price"}, **options)


def test_sums_of_values_are_those_of_the_log():
    table = runs_of(np.random.default_rng(1), 60)
    counts = read(table, sampling="trajectories").counts
    per_unit, paid = MACHINE.learned_rewards["cost"].per_unit, pd.DataFrame(table)
    assert counts.rewards.sum() / per_unit == pytest.approx(paid.price.sum(), rel=1e-8)
    assert counts.pilot.rewards[1].sum() / per_unit == pytest.approx(paid.price[paid.episode < 16].sum(), rel=1e-8)


def test_all_ways_to_read_a_log_find_the_same_sums(tmp_path):
    frame = pd.DataFrame(runs_of(np.random.default_rng(2), 40))
    moves = frame[frame.action.notna()].assign(next_x=frame.x.shift(-1)[frame.action.notna()].astype(int))
    frame.to_csv(tmp_path / "log.csv", index=False)
    twice = pd.concat([moves, moves.iloc[:5]])
    logs = [frame, frame.sample(frac=1, random_state=1), moves, moves.drop(columns=["episode", "step"]), twice]
    sums = [
        pl.read_log(MACHINE, log, columns={"cost": "price"}).counts.rewards for log in (*logs, tmp_path / "log.csv")
    ]
    assert all((each == sums[0]).all() for each in sums)


@pytest.mark.parametrize(
    ("value", "shown"), [(22.0, "is 22,"), (0.0, "is 0,"), (None, "is missing"), (1e300, "far too large")]
)
def test_a_value_that_cannot_be_contradicts_the_model_and_is_found(tmp_path, value, shown):
    frame = pd.DataFrame(runs_of(np.random.default_rng(3), 20))
    row = int(frame.index[frame.action == "fast"][4])
    frame.loc[row, "price"] = value
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(DataError, match="contradict the model") as refused:
        pl.read_log(MACHINE, tmp_path / "log.csv", columns={"cost": "price"})
    assert f"row {row + 1}, episode {frame.episode[row]}" in str(refused.value)
    assert shown in str(refused.value)
    assert "from 5 to 21" in str(refused.value)


def test_a_log_without_values_is_refused():
    with pytest.raises(DataError, match="lacks cost"):
        pl.read_log(MACHINE, pd.DataFrame(runs_of(np.random.default_rng(4), 3)))


def test_counts_keep_their_sums(tmp_path):
    counts = read(runs_of(np.random.default_rng(5), 130), sampling="trajectories").counts
    pl.write_counts(counts, tmp_path / "counts.parquet")
    again = pl.read_counts(MACHINE, tmp_path / "counts.parquet")
    assert again.fingerprint == counts.fingerprint
    more = read(runs_of(np.random.default_rng(6), 130), sampling="trajectories").counts
    assert ((counts + more).rewards == counts.rewards + more.rewards).all()
    assert len(counts.planned_sum(more).pilot.rewards) == 2
    with pytest.raises(DataError, match="only some of these data have values"):
        counts + TransitionCounts(MACHINE.graph, more.counts, "trajectories")


# Certificates


def test_other_sets_and_a_misfit_are_refused():
    counts = read(runs_of(np.random.default_rng(7), 20)).counts
    for options in ({"confidence_set": "interval"}, {"misfit": 0.1}):
        with pytest.raises(DataError, match="likelihood sets alone"):
            pl.certify(MACHINE, counts, COST, **options)


@pytest.mark.slow
def test_a_log_becomes_a_certificate_and_a_report(tmp_path):
    """The true value is 25, and what is assumed of rewards is said; the result can be certified again from its file."""
    (tmp_path / "machine.py").write_text("from paid_models import machine\n", encoding="utf-8")
    pd.DataFrame(runs_of(np.random.default_rng(8), 400)).to_csv(tmp_path / "log.csv", index=False)
    options = ["--column", "cost=price", "--sampling", "trajectories", "-p", COST, "-o", f"{tmp_path}/result"]
    done = command_line("certify", f"{tmp_path}/machine.py:machine", f"{tmp_path}/log.csv", *options)
    assert done.code == 0, done.err
    assert "the mean reward of a step" in " ".join(done.out.split())
    result = pl.read_result(tmp_path / "result")
    assert result.lower < 25 < result.upper
    assert command_line("report", f"{tmp_path}/result").code == 0
    assert "repair" in (tmp_path / "result" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_bounds_of_coins_are_narrower_than_those_by_bets_on_any_law():
    """Of values that are 0 or 1 all is known; of others, bets that see their variance know more."""
    rng, model = np.random.default_rng(9), one_payment()
    values = (rng.random(1000) < 0.3).astype(float)
    certificate = pl.certify(model, counts_of(model, values, expected=1000), COST, confidence=0.95)
    lower, upper = mean_bounds(Tally.of(values), Tally.of(values), 0.05)
    assert certificate.upper - certificate.lower < upper - lower
