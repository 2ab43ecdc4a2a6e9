"""Rewards with unknown means: how models declare them, logs tell them, and what their values count for."""

from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from flint import arb, ctx
from in_format import in_format
from paid_models import COST, counts_of, machine, one_payment, runs_of, seen_in_one_step
from tiers import size

import plumdp as pl
from plumdp.base.errors import DataError, ModelError
from plumdp.base.rounding import UNIT
from plumdp.confidence import staged_bets
from plumdp.confidence.bets import factors_along, log_gains, sharpness_of
from plumdp.confidence.bounded_means import Tally, mean_bounds
from plumdp.confidence.estimates import law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.reward_coins import Pooled, RewardCoins
from plumdp.confidence.staged_bets import find_stages
from plumdp.data.counts import TransitionCounts
from plumdp.data.pilots import planned_moments
from plumdp.data.seen import SQUARES
from plumdp.model.readers import storm
from plumdp.model.readers.storm import read_prism

MODELS = Path(__file__).parents[1] / "models"

MACHINE = machine()
SMALL = one_payment(2, 10)
SMALL_TABLE = likelihood_table(SMALL)


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
        pooled = table.pool_seen(seen_in_one_step(model, [int(value * per_unit)]))
        yield [Fraction(count) for count in pooled.outcome_counts.tolist()]


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
        Fraction(e)
        for e in factors_along(table, np.array([float(other)]), np.array([[0.3 * rng.normal()]]))[0].tolist()
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
    monkeypatch.setattr(RewardCoins, "shown", lambda *args: Pooled(*map(np.round, shown(*args))))
    assert not are_fair(range(60))


# Bets that see the variance: x wins e + x (e' - e), and sums of x and x² bound what all values win


def won_and_bound(seed):
    """Return the expectation of what a value wins over what it stakes, and what some values win: all, and the bound.

    The first is a fraction, the second a ball, and the third a float of the package with what its rounding may be.
    """
    rng, model = np.random.default_rng(seed), SMALL
    values, shares = random_law(rng)
    table, (low, span), per_unit = SMALL_TABLE, (2, 8), model.learned_rewards["cost"].per_unit
    point, step = np.array([low + span * rng.uniform(0.05, 0.95)]), rng.normal(size=1)
    (factors,) = factors_along(table, point, step[None], 1 + rng.gamma(4, 4, 1))
    one, other = map(Fraction, factors.tolist())
    mean = sum(value * share for value, share in zip(values, shares, strict=True))
    won = sum(share * (x * one + (1 - x) * other) for x, share in zip(values, shares, strict=True))
    staked = sum(f.evaluate({"pay": low + span * mean}) * e for f, e in zip(table.outcomes, (one, other), strict=True))
    times = rng.integers(0, 9, len(values))
    units = [int((low + span * x) * per_unit) for x, n in zip(values, times, strict=True) for _ in range(n)]
    pooled = table.pool_seen(seen_in_one_step(model, units))
    gains = log_gains(table, pooled.outcome_counts, factors, pooled.mixed)
    total = arb(0)
    for x, n in zip(values, times.tolist(), strict=True):
        total += n * ball(x * one + (1 - x) * other).log()
    return won / staked, total, gains.sum() - 16 * UNIT * np.abs(gains).sum()


def all_are_bounded(seeds):
    """Return whether bets are fair and what they win is never overstated, to the last digit."""
    ctx.prec = 200
    found = [won_and_bound(seed) for seed in seeds]
    return all(fair == 1 and not total < arb(bound) for fair, total, bound in found)


def test_values_of_any_law_win_at_least_the_bound_by_sums_and_squares():
    assert all_are_bounded(range(size(200, 10_000)))


def test_a_coin_wins_what_its_sides_do():
    """Of values that are 0 or 1, or all alike, sums and squares tell everything: the bound is what is won."""
    for values in ([2, 10, 10], [3, 3, 3, 3]):
        per_unit = SMALL.learned_rewards["cost"].per_unit
        pooled = SMALL_TABLE.pool_seen(seen_in_one_step(SMALL, [value * per_unit for value in values]))
        factors = np.array([1.5, 0.75])
        won = [0.75 * (1 + (value - 2) / 8) for value in values]
        bound = log_gains(SMALL_TABLE, pooled.outcome_counts, factors, pooled.mixed).sum()
        assert bound == pytest.approx(np.log(won).sum(), abs=1e-12)


@pytest.mark.parametrize("error", ["a wrong constant", "squares in other units"])
def test_bounds_that_win_too_much_are_found(error, monkeypatch):
    shown, constant = RewardCoins.shown, 1.25 if error == "a wrong constant" else 8.0
    monkeypatch.setattr(RewardCoins, "shown", lambda *args: Pooled(shown(*args)[0], constant * shown(*args)[1]))
    assert not all_are_bounded(range(200))


def bets_before(stages):
    return [np.concatenate([stage.point, stage.per_length.ravel(), stage.sharpness]) for stage in stages]


def do_not_look_ahead():
    """Return whether the bets of a stage are the same whatever values come in it and later."""
    rng = np.random.default_rng(1)
    law, start = law_of_space(SMALL), 2 + 8 * rng.beta(3, 3, 256)
    later = [np.concatenate([start, 2 + 8 * rng.beta(*shape, 400)]) for shape in ((3, 3), (90, 30))]
    bets = [bets_before(find_stages(SMALL_TABLE, counts_of(SMALL, each, expected=656), law)) for each in later]
    return all((one == other).all() for one, other in zip(*bets, strict=True))


def test_bets_on_values_do_not_look_ahead():
    assert do_not_look_ahead()


def test_bets_whose_size_is_chosen_by_main_data_are_found(monkeypatch):
    stage = staged_bets._stage

    def by_main_data(table, before, after, length, space):
        return stage(table, before, after, length, space)._replace(
            sharpness=sharpness_of(table, *table.pool_seen(after - before))
        )

    monkeypatch.setattr(staged_bets, "_stage", by_main_data)
    assert not do_not_look_ahead()


def test_values_count_for_both_ends_of_their_range():
    """3 of values from 2 to 10 is 1/8 of the way: it counts 1/8 for the highest value, and 7/8 for the lowest."""
    model = one_payment(2, 10)
    counts = counts_of(model, [3.0] * 16 + [10.0], expected=17)
    pooled = likelihood_table(model).pool_seen(counts.seen)
    assert pooled.outcome_counts.tolist() == [3.0, 14.0]
    assert pooled.mixed == pytest.approx([16 * 7 / 64], abs=1e-12)


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
    return pl.read_log(MACHINE, pd.DataFrame(table), **in_format(columns={"cost": "price"}, **options))


def test_sums_of_values_are_those_of_the_log():
    table = runs_of(np.random.default_rng(1), 60)
    counts = read(table, sampling="trajectories").counts
    per_unit, paid = MACHINE.learned_rewards["cost"].per_unit, pd.DataFrame(table)
    assert counts.rewards[0, 0].sum() / per_unit == pytest.approx(paid.price.sum(), rel=1e-8)
    of_16 = counts.pilot.rewards[1 + counts.pilot.lengths.index(16)]
    assert of_16[0, 0].sum() / per_unit == pytest.approx(paid.price[paid.episode < 16].sum(), rel=1e-8)
    squares = float(counts.rewards[0, 1].sum()) * SQUARES + counts.rewards[0, 2].sum()
    assert squares / per_unit**2 == pytest.approx((paid.price**2).sum(), rel=1e-8)


def test_all_ways_to_read_a_log_find_the_same_sums(tmp_path):
    frame = pd.DataFrame(runs_of(np.random.default_rng(2), 40))
    moves = frame[frame.action.notna()].assign(next_x=frame.x.shift(-1)[frame.action.notna()].astype(int))
    frame.to_csv(tmp_path / "log.csv", index=False)
    twice = pd.concat([moves, moves.iloc[:5]])
    logs = [frame, frame.sample(frac=1, random_state=1), moves, moves.drop(columns=["episode", "step"]), twice]
    sums = [
        pl.read_log(MACHINE, log, pl.LogFormat(columns={"cost": "price"})).counts.rewards
        for log in (*logs, tmp_path / "log.csv")
    ]
    assert all((each == sums[0]).all() for each in sums)


@pytest.mark.parametrize("form", ["trajectories", "transitions"])
def test_the_query_for_warehouses_counts_the_same_values(form):
    """With those of the first 4, 16, … runs; in the words of DuckDB, so that it can be run here."""
    log = pd.DataFrame(runs_of(np.random.default_rng(11), 300))
    if form == "transitions":
        moves = log.action.notna()
        log = log[moves].assign(next_x=log.x.shift(-1)[moves].astype(int)).drop(columns="step")
    columns = {"cost": "price"} | ({"episode": "episode"} if form == "transitions" else {})
    query = pl.data.counts_query(
        MACHINE, pl.LogFormat(columns=columns, form=form), table="lake_log", dialect="duckdb", sampling="trajectories"
    )
    with duckdb.connect() as connection:
        connection.register("lake_log", log)
        ready = connection.execute(query).df()
    counts = pl.read_log(MACHINE, ready, pl.LogFormat(form="counts"), sampling="trajectories").counts
    counted = read(log, sampling="trajectories").counts  # which also knows what was seen at other times
    kept = dict(zip(counted.pilot.lengths, counted.pilot.seen_at_moments, strict=True))
    assert counts.pilot.lengths == (4, 16, 64, 256)
    seen = zip(
        [counts.seen, *counts.pilot.seen_at_moments],
        [counted.seen, *(kept[n] for n in counts.pilot.lengths)],
        strict=True,
    )
    assert all((one.counts == other.counts).all() and (one.rewards == other.rewards).all() for one, other in seen)
    in_other_units = ready.rename(columns=lambda name: name.replace("cost_in_", "cost_in_1"))
    with pytest.raises(DataError, match="lacks cost_in_"):
        pl.read_log(MACHINE, in_other_units, pl.LogFormat(form="counts"), sampling="trajectories")


@pytest.mark.parametrize(
    ("value", "shown"), [(22.0, "is 22,"), (0.0, "is 0,"), (None, "is missing"), (1e300, "far too large")]
)
def test_a_value_that_cannot_be_contradicts_the_model_and_is_found(tmp_path, value, shown):
    frame = pd.DataFrame(runs_of(np.random.default_rng(3), 20))
    row = int(frame.index[frame.action == "fast"][4])
    frame.loc[row, "price"] = value
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(DataError, match="the data reject the model") as refused:
        pl.read_log(MACHINE, tmp_path / "log.csv", pl.LogFormat(columns={"cost": "price"}))
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
    assert ((counts + more).rewards == (counts.seen + more.seen).rewards).all()
    assert ((counts + more).rewards[0, 0] == counts.rewards[0, 0] + more.rewards[0, 0]).all()
    assert len(counts.planned_sum(more).pilot.rewards) == 2
    with pytest.raises(DataError, match="only some of these data have values"):
        counts + TransitionCounts(MACHINE.graph, more.counts, "trajectories")


# Environments


def test_an_environment_gives_values():
    """Of a model they are the means at the point: 5 for slow repairs and 9 for fast ones, if a repair costs 4."""
    env = pl.data.as_env(MACHINE, {"p": 0.6, "repair": 4}, max_steps=50, reward="cost")
    counts = pl.data.sample_env(MACHINE, env, 40, rng=1, sampling="trajectories", reward="cost")
    slow = counts.visits[MACHINE.graph.action == MACHINE.graph.action_names.index("slow")].sum()
    fast = counts.visits[MACHINE.graph.action == MACHINE.graph.action_names.index("fast")].sum()
    assert counts.rewards[0, 0].sum() == (5 * slow + 9 * fast) * MACHINE.learned_rewards["cost"].per_unit
    assert len(counts.pilot.rewards) == 1 + len(planned_moments(40))
    pooled = likelihood_table(MACHINE).pool_seen(counts.seen)
    assert pooled.mixed.max() == pytest.approx((slow + fast) * 3 / 16, rel=1e-12)
    with pytest.raises(DataError, match="one learned reward; the model has cost"):
        pl.data.sample_env(MACHINE, env, 1, rng=1, reward="steps")
    cheap = pl.data.as_env(MACHINE, {"p": 0.6, "repair": 4}, max_steps=50)
    with pytest.raises(DataError, match="episode 0, step 0: the value of cost is 0, and"):
        pl.data.sample_env(MACHINE, cheap, 1, rng=1, reward="cost")


# Certificates


def test_other_sets_and_a_misfit_are_refused():
    counts = read(runs_of(np.random.default_rng(7), 20)).counts
    for options in ({"confidence_set": "interval"}, {"model_tolerance": 0.1}):
        with pytest.raises(DataError, match="likelihood sets alone"):
            pl.certify(MACHINE, counts, COST, **options)


@pytest.mark.night
@pytest.mark.parametrize(("law", "most"), [("coin", 1.0), ("uniform", 1.0), ("beta(30, 30)", 1.15)])
def test_widths_are_those_of_bets_on_all_values(law, most):
    """Against bets that know each value, with fractions of the capital that nobody plans: sums and squares suffice."""
    rng, model = np.random.default_rng(9), one_payment()
    draw = {"coin": lambda: rng.random(1000) < 0.3, "uniform": lambda: rng.random(1000)}
    values = draw.get(law, lambda: rng.beta(30, 30, 1000))().astype(float)
    certificate = pl.certify(model, counts_of(model, values, expected=1000), COST, confidence=0.95)
    lower, upper = mean_bounds(Tally.of(values), Tally.of(values), 0.05)
    assert certificate.upper - certificate.lower < most * (upper - lower)


# Models from elsewhere: the same machine


def batch_machine():
    """Return the machine of ``paid_models``, from a step over arrays."""
    p, repair = pl.parameters("p", "repair")

    def step(s):
        over, after = s.x == 3, s._replace(x=np.minimum(s.x + 1, 3))
        yield "slow", ~over, [(p, after), (1 - p, s)]
        yield "fast", ~over, [(1 - p / 2, after), (p / 2, s)]
        yield "stop", over, [(1, s)]

    return pl.model.explore_batch(
        step,
        {"x": 0},
        space=pl.ParameterSpace.box({"p": ("0.3", "0.9"), "repair": (2, 10)}),
        labels={"done": lambda s: s.x == 3},
        rewards={"cost": lambda s: (s.x < 3).astype(float)},
        choice_rewards={"cost": lambda s, action: {"slow": repair, "fast": 2 * repair, "stop": 0}[action]},
    )


PRISM_MACHINE = (MODELS / "machine.prism").read_text()


def prism_machine(folder):
    (folder / "machine.prism").write_text(PRISM_MACHINE, encoding="utf-8")
    return read_prism(folder / "machine.prism", space=MACHINE.declared_space)


@pytest.mark.parametrize("make", [lambda _: batch_machine(), prism_machine], ids=["batch", "prism"])
def test_the_same_rewards_from_elsewhere_are_the_same(make, tmp_path):
    model = make(tmp_path)
    ours, theirs = (each.learned_rewards["cost"] for each in (MACHINE, model))
    assert (ours.low, ours.span, ours.coin.tolist()) == (theirs.low, theirs.span, theirs.coin.tolist())
    at = pl.stages.instantiate(model, {"p": 0.6, "repair": 4})
    assert pl.stages.solve(at, pl.parse_property(COST, model)).lower[0] == pytest.approx(25, abs=1e-4)
    table = pd.DataFrame(runs_of(np.random.default_rng(1), 60))
    sums = [
        pl.read_log(each, table, pl.LogFormat(columns={"cost": "price"})).counts.rewards for each in (MACHINE, model)
    ]
    assert (sums[0] == sums[1]).all()


def test_a_model_on_disk_refuses_rewards_in_parameters(tmp_path):
    (pay,) = pl.parameters("pay")

    def step(s):
        yield "go", s.x < 2, [(1, s._replace(x=np.minimum(s.x + 1, 2)))]
        yield "stop", s.x == 2, [(1, s)]

    space = pl.ParameterSpace.unit("pay")
    with pytest.raises(ModelError, match="a reward depends on parameters"):
        pl.model.explore_batch(
            step, {"x": 0}, space=space, rewards={"cost": lambda s: pay}, store=tmp_path / "m", level=lambda s: s.x
        )


def test_rewards_that_storm_builds_otherwise_are_found(tmp_path, monkeypatch):
    means = storm.means_of
    monkeypatch.setattr(storm, "means_of", lambda items, *rest: means(items[:-1], *rest))
    with pytest.raises(ModelError, match="differ from those that Storm built"):
        prism_machine(tmp_path)


# Advice


@pytest.mark.night
def test_advice_counts_values_and_says_which_means_limit_the_width():
    """Four times the values halve the width, as nothing else is unknown, and advice that knows their variance says so.

    Values of which a coin would need sixty times as many are predicted to within a quarter.
    """
    model, values = one_payment(), np.random.default_rng(1).beta(30, 30, 2000)
    first = pl.learn(model, counts_of(model, values[:500], expected=500), objectives=[COST])
    advice = pl.advise(first, COST, runs=2000)
    alone = min(p.width for p in advice.predictions)
    later = pl.certify(model, counts_of(model, values, expected=2000), COST)
    assert alone == pytest.approx(later.upper - later.lower, rel=0.25)
    (mean,) = advice.classes
    assert (mean.mean, mean.visits) == ("cost = pay", 500)
    assert mean.share == pytest.approx(1, abs=0.01)
    assert any("The mean reward cost = pay has 100 % of the variance" in line for line in advice.sentences())
    assert any("about 1,500 more of them alone bring the width to" in line for line in advice.sentences())


def test_simulated_values_are_the_ends_of_their_range():
    """Their mean is that of the point, and nothing is mixed: 1 of values from 0 to 4 is 1/4 of the way."""
    model = one_payment(0, 4)
    counts = pl.simulate(model, {"pay": 1}, 4000, rng=1, max_steps=1)
    pooled = likelihood_table(model).pool_seen(counts.seen)
    assert pooled.mixed.tolist() == [0.0]
    assert pooled.outcome_counts.tolist() == np.round(pooled.outcome_counts).tolist()
    assert pooled.outcome_counts[0] / 4000 == pytest.approx(0.25, abs=0.04)
