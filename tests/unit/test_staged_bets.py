"""Bets that are renewed: fixed by what came before, with weights that sum to one, and half-spaces that are implied."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import log, sqrt

import numpy as np
import pytest
from bet_tables import DIGITS, TABLES, decimal, exact_process, is_outside, random_counts
from constraints import half_spaces_of
from row_models import row_model
from tiers import size

import plumdp as pl
from plumdp.confidence import staged_bets as method
from plumdp.confidence.bets import factors_along, tangent_half_space
from plumdp.confidence.estimates import Law, law_of_space
from plumdp.confidence.likelihood import LinearConstraints
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.staged_bets import DataStage, Horizons, find_horizons, find_stages, staged_half_spaces
from plumdp.data.counts import Pilot, PilotEnd
from plumdp.data.pilots import planned_moments


def random_stages(table, rng, most):
    """Return stages with estimates and information that have nothing to do with the data: any bets must be valid."""
    d, stages = len(table.names), []
    for length in np.cumsum(rng.uniform(1, 30, int(rng.integers(1, 4)))).tolist():
        root = rng.normal(size=(d, d + 2)) * 10 ** rng.uniform(-1, 1)
        seen = random_counts(table, rng, most)
        stages.append(DataStage(rng.uniform(0.02, 0.98, d), root @ root.T, seen, length=length))
    return stages


def placed(table, stages, horizons, rng, error):
    """Return the half-spaces of random bets, with the stages that each is made of, their factors and weights."""
    d = len(table.names)
    found = staged_half_spaces(
        table,
        stages,
        rng.normal(size=(len(stages), 1, d)),
        horizons,
        Law(np.full(d, 0.5), 12 * np.eye(d)),
        near=rng.uniform(0.1, 0.9, d),
        error=error,
        texts=["a value"],
    )
    for each in found:
        first = stages[: each.side.until]
        pairs = zip(first, each.side.steps, strict=False)
        factors = np.array([factors_along(table, stage.point, steps) for stage, steps in pairs])
        yield each.left, first, factors, horizons._replace(log_weight=horizons.log_weight - log(2))


def exact_wealth(table, stages, factors, horizons, point):
    """Return ln F at a point of fractions, to about sixty digits."""
    with localcontext(prec=DIGITS):
        each = [
            sum(exact_process(table, stage.outcome_counts, factors[s, m], point) for s, stage in enumerate(stages))
            + Decimal(w)
            for m, w in enumerate(horizons.log_weight.tolist())
        ]
        return max(each) + sum((one - max(each)).exp() for one in each).ln()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coin", "rare", "tree"])
@pytest.mark.parametrize("most", [30, 10**9])
def test_the_half_space_has_all_points_of_the_space_at_which_the_wealth_is_small(name, most):
    """Points on lines between points with small and with large wealths, up to sixty digits; at all moments."""
    table, rng, n_near = TABLES[name], np.random.default_rng([len(name), most]), 0
    for is_renewed in (False, True):
        every, error = random_stages(table, rng, most), float(10 ** rng.uniform(-4, -0.4))
        horizons = Horizons(10.0 ** rng.uniform(0, 4, 3), np.log([0.5, 0.3, 0.2]), is_renewed)
        corners = [[Fraction(x) for x in row] for row in product([0.001, 0.999], repeat=len(table.names))]
        for found, stages, factors, weights in placed(table, every, horizons, rng, error):
            level = -decimal(error).ln()
            heights = [exact_wealth(table, stages, factors, weights, point) for point in corners]
            inner, outer = (corners[heights.index(pick(heights))] for pick in (min, max))
            points = [point for point, height in zip(corners, heights, strict=True) if height < level]
            if min(heights) < level <= max(heights):
                for _ in range(55):
                    middle = [(a + b) / 2 for a, b in zip(inner, outer, strict=True)]
                    is_small = exact_wealth(table, stages, factors, weights, middle) < level
                    inner, outer = (middle, outer) if is_small else (inner, middle)
                points.append(inner)
                n_near += 1
            assert not any(is_outside(found, point) for point in points)
    assert n_near > 0 or most == 30


def coin_data(parts, **options):
    """Return counts of a coin thrown in parts, at the end of all but the last of which bets are renewed."""
    p = pl.parameters("p")[0]
    model = row_model([[p, 1 - p]], pl.ParameterSpace.unit("p"))
    counts = np.zeros((len(parts), model.graph.n_transitions), dtype=np.int64)
    counts[:, :2] = parts
    sums = np.cumsum(counts, axis=0)
    lengths = tuple(float(moment.sum()) for moment in sums[:-1])
    about = {"end": PilotEnd.POWER_OF_FOUR, "moments": tuple(sums[:-1]), "lengths": lengths} | options
    pilot = Pilot(sums[0], **about)
    return model, pl.TransitionCounts(model.graph, sums[-1], "adaptive", pilot)


def stages_of(parts):
    model, counts = coin_data(parts)
    return find_stages(likelihood_table(model), counts, law_of_space(model))


def test_a_stage_knows_what_came_before_it_and_nothing_else():
    one, other = stages_of([[5, 11], [30, 18], [100, 92]]), stages_of([[5, 11], [30, 18], [192, 0]])
    assert [stage.outcome_counts.tolist() for stage in one] == [[30, 18], [100, 92]]
    for first, second in zip(one, other, strict=True):
        assert first.point.tobytes() == second.point.tobytes()
        assert first.per_length.tobytes() == second.per_length.tobytes()
    assert one[0].point < one[1].point  # after 5 of 16, and after 35 of 64


@pytest.mark.parametrize("options", [{}, {"expected": 1000.0}, {"end": PilotEnd.PLANNED}])
def test_the_weights_of_all_horizons_sum_to_at_most_one(options, monkeypatch):
    monkeypatch.setattr(method, "_HORIZONS", 10**6)
    pilot = Pilot(np.array([10, 6]), **({"end": PilotEnd.POWER_OF_FOUR} | options), lengths=(16.0,))
    for total in (100, 10**9):
        weights = np.exp(find_horizons(pilot, total).log_weight)
        assert 0.96 < weights.sum() <= 1 + 1e-12


def test_horizons_near_the_end_of_the_data_are_looked_at():
    pilot = Pilot(np.array([100, 60]), PilotEnd.POWER_OF_FOUR, lengths=(16.0,))
    lengths = sorted(find_horizons(pilot, 16_000).length)  # ten steps in a run: 1,600 runs
    assert lengths[0] < 1600 < lengths[-1]
    assert len(lengths) == 5


def test_bets_for_a_planned_length_have_four_fifths_of_the_weight():
    pilot = Pilot(np.array([10, 6]), ratio=9.0, lengths=(16.0,))
    horizons = find_horizons(pilot, 160)
    assert (horizons.length[0], horizons.is_renewed) == (160, True)
    assert np.exp(horizons.log_weight[0]) == pytest.approx(0.8)


def thrown_coin(heads, planned):
    """Return the half-spaces of a coin whose number of throws was planned, given the heads of each stage."""
    throws = np.diff([0, *planned_moments(planned), planned])[: len(heads)]
    model, counts = coin_data(np.stack([heads, throws - heads], axis=1), end=PilotEnd.PLANNED, expected=float(planned))
    return pl.learn(model, counts, objectives=["Pmax=? [ F at=1 ]"], confidence=0.95).bounds


def test_sizes_that_are_renewed_know_the_past_and_the_prespecified_number_alone():
    """The bets of the first stages are the same whatever comes later, also if the data end before or after the plan."""
    throws = np.diff([0, *planned_moments(100), 100])
    heads = np.random.default_rng(1).binomial(throws, 0.5)
    later = np.where(np.arange(len(heads)) < 12, heads, throws)
    made = [thrown_coin(each, 100) for each in (heads, later, heads[:14])]
    steps = [{each.sign: each.steps[:11] for each in made.of_kind(LinearConstraints)[0].bets.sides} for made in made]
    for side in (1, -1):
        assert steps[0][side][:, 0].tobytes() == steps[1][side][:, 0].tobytes() == steps[2][side][:, 0].tobytes()
    assert len({*steps[0][1][:, 0, 0].tolist()}) == 11  # renewed at each moment


@pytest.mark.slow
def test_a_coin_is_bounded_more_tightly_than_by_bets_of_one_size():
    """By hand: those of one size are sqrt(2 ln(1/share)) deviations away, whatever is seen."""
    rng, n, widths = np.random.default_rng(1), 400, []
    throws = np.diff([0, *planned_moments(n), n])
    for _ in range(size(12, 200)):
        found = half_spaces_of(thrown_coin(rng.binomial(throws, 0.5), n))
        ends = found.offsets / found.rows[:, 0]
        widths.append(ends[found.rows[:, 0] > 0].min() - ends[found.rows[:, 0] < 0].max())
    assert np.mean(widths) * sqrt(n) < 0.92 * 2 * sqrt(2 * log(2 / (0.05 * 0.8))) / 2


@pytest.mark.parametrize("most", [30, 10**4, 10**9])
@pytest.mark.parametrize("name", TABLES)
def test_a_tangent_of_the_likelihood_has_all_points_above_the_threshold(name, most):
    table, rng = TABLES[name], np.random.default_rng([most, len(name)])
    for _ in range(6):
        seen, d = random_counts(table, rng, most), len(table.names)
        near, points = rng.uniform(0.05, 0.95, d), rng.uniform(0.001, 0.999, (8, d))
        exact = [log_likelihood(table, seen, [Fraction(x) for x in point]) for point in points.tolist()]
        for point, value in zip(points.tolist(), exact, strict=True):
            threshold = float(value) - abs(float(value)) * 1e-15 - 1e-300  # just below, as a float
            found = tangent_half_space(table, seen, threshold, near=near)
            assert not is_outside(found, [Fraction(x) for x in point])
            there = tangent_half_space(table, seen, threshold, near=np.array(point))
            assert not is_outside(there, [Fraction(x) for x in point])


def log_likelihood(table, seen, point):
    with localcontext(prec=DIGITS):
        names = dict(zip(table.names, point, strict=True))
        chances = (Fraction(f.evaluate({name: names[name] for name in f.names})) for f in table.outcomes)
        return sum((int(k) * decimal(f).ln() for k, f in zip(seen, chances, strict=True) if k), Decimal(0))


def test_bets_on_one_outcome_are_the_same_for_all_others():
    """Else the half-space across its probability leans on others, where few of them were seen before a stage."""
    ill, lost = pl.parameters("ill", "lost")

    def year(state):
        after = [(ill, "ill"), (lost, "lost"), (1 - ill - lost, "well")]
        after = after if state.status == "new" else [(1, state.status)]
        return {"go": [(p, state._replace(status=each)) for p, each in after]}

    model = pl.explore(year, {"status": "new"}, space=pl.ParameterSpace.unit("ill", "lost"))
    counts = pl.simulate(model, [0.1, 0.04], 500, rng=1, max_steps=1)
    question = pl.model.Question(model, pl.parse_property('P=? [ F status="ill" ]', model), policy="go")
    learned = pl.learn(model, counts, objectives=[question], confidence=0.95)
    rows = half_spaces_of(learned.bounds).rows
    assert len(rows) >= 2
    assert (np.abs(rows[:, 1]) < 0.01 * np.abs(rows[:, 0])).all()
