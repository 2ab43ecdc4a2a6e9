"""Drift tests: fair bets wherever the model is right, one coin in two cells exactly, and drifts that are found."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from cell_models import cell_model, counts_in_cells
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

import plumdp as pl
from plumdp.confidence.contrasts import NONE, find_contrasts
from plumdp.confidence.estimates import SPACE_AS_DATA, law_of_pilot, law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.fit.drift import PilotView, _plans, _split, drift_tests, parameter_axes
from plumdp.fit.fit_record import bet_factors

p, q = pl.parameters("p", "q")
LINE, SQUARE = pl.ParameterSpace.unit("p"), pl.ParameterSpace.unit("p", "q")
COIN = [[p, 1 - p]]
TWO_CELLS = cell_model([COIN, COIN], LINE)
MIXED = cell_model(
    [[[p, 1 - p], [p * q, p * (1 - q), 1 - p]], [[q, 1 - q], [(p + q) / 2, 1 - (p + q) / 2]], COIN], SQUARE
)
FACTORS = cell_model([[[q**2, 2 * q * (1 - q), (1 - q) ** 2]]] * 2, SQUARE)


def view_of(model, counts):
    """Return what the pilot has fixed, as for the test of a model."""
    table, space = likelihood_table(model), law_of_space(model)
    law = law_of_pilot(table, table.pool(counts.pilot.counts), space)
    return PilotView(table, counts.pilot.counts, law.mean, counts.pilot.ratio, SPACE_AS_DATA * space.precision)


def by_choice(model, view, counts):
    return view.table.pool_by_choice(counts)


def factors_of(split, slope, rest):
    return bet_factors(split.level * slope[split.outcome] - rest[split.outcome])


def drifts_of(model, counts, near, *, error=0.2):
    return drift_tests(view_of(model, counts), counts, find_contrasts(model), near=np.array(near), error=error)


def value_at(drift, point):
    """Return by how much a half-space is violated at a point, in fractions: above zero, the point is outside."""
    row = (Fraction(a) * Fraction(v) for a, v in zip(drift.left.row.tolist(), point, strict=True))
    return sum(row, Fraction(0)) - Fraction(drift.left.offset)


# Every bet is fair


@pytest.mark.parametrize("model", [TWO_CELLS, MIXED], ids=["coin", "mixed"])
def test_one_visit_of_any_class_in_any_cell_has_the_expectation_one(model):
    """Σ f e / Z = 1 in fractions, where factors e are taken as the floats they are; both sides."""
    seen = [[[30] * len(row) for row in rows] for rows in rows_in(model)]
    counts = counts_in_cells(
        model,
        seen,
        pilot=[[[10 + i + 3 * j for j in range(len(row))] for row in rows] for i, rows in enumerate(rows_in(model))],
    )
    view, point = view_of(model, counts), {"p": Fraction(1, 3), "q": Fraction(1, 7)}
    n_bets = 0
    for contrast in find_contrasts(model):
        split = _split(view.table, by_choice(model, view, counts.main), contrast)
        for plan in _plans(view, by_choice(model, view, view.counts), contrast):
            for scale in (0.3, -0.3):
                factors = factors_of(split, scale * plan.slope, scale * plan.rest)
                n_bets += int((factors != 1).sum())
                assert expectations(view.table, split, factors, point) == {Fraction(1)}
    assert n_bets > 0


def rows_in(model):
    """Return the rows of each cell of the models above."""
    return {id(TWO_CELLS): [COIN, COIN], id(MIXED): [[[1] * 2, [1] * 3], [[1] * 2, [1] * 2], [[1] * 2]]}[id(model)]


def expectations(table, split, factors, point):
    """Return the expectations of e / Z, and check that the groups are whole classes."""
    known = {name: point[name] for name in table.names}
    chance = [Fraction(table.outcomes[j].evaluate(known)) for j in split.outcome.tolist()]
    found = set()
    for group in range(len(split.outcomes.is_class)):
        own = np.flatnonzero(split.outcomes.group == group).tolist()
        assert sum(chance[i] for i in own) == 1
        mean = sum(chance[i] * Fraction(float(factors[i])) for i in own)
        found.add(sum(chance[i] * (Fraction(float(factors[i])) / mean) for i in own))
    return found


def test_groups_of_factors_are_not_bet_on():
    counts = counts_in_cells(FACTORS, [[[10, 5, 90]], [[90, 5, 10]]], pilot=[[[5, 5, 9]], [[9, 5, 5]]])
    assert drifts_of(FACTORS, counts, [0.5, 0.5]) == []


def test_a_pilot_in_one_cell_alone_bets_on_nothing():
    counts = counts_in_cells(TWO_CELLS, [[[50, 50]], [[50, 50]]], pilot=[[[10, 10]], [[0, 0]]])
    assert drifts_of(TWO_CELLS, counts, [0.5]) == []


def test_bets_do_not_look_at_main_data():
    """The factors of a plan come from the pilot: other main data change counts, not factors."""
    pilot = [[[12, 8]], [[9, 11]]]
    rest = [[[[50, 50]], [[50, 50]]], [[[90, 10]], [[10, 90]]]]
    plans = []
    for main in rest:
        counts = counts_in_cells(TWO_CELLS, main, pilot=pilot)
        (contrast,) = find_contrasts(TWO_CELLS)
        view = view_of(TWO_CELLS, counts)
        plans += _plans(view, by_choice(TWO_CELLS, view, view.counts), contrast)
    assert len(plans) == 4
    for one, other in zip(plans[:2], plans[2:], strict=True):
        assert np.array_equal(one.slope, other.slope)
        assert np.array_equal(one.rest, other.rest)
        assert one.spread == other.spread


# One coin in two cells, exactly


def linear_wealth(chance, pilot, error, side):
    """Return ln(wealth error) as a constant and four weights of heads and tails in both cells, at the true chance.

    With tangents at the truth a half-space is the wealth itself, which is a sum over throws.
    """

    def value(seen):
        counts = counts_in_cells(TWO_CELLS, [[seen[:2]], [seen[2:]]], pilot=pilot)
        found = drifts_of(TWO_CELLS, counts, [chance], error=4 * error)
        assert sorted((d.parameter, d.side) for d in found) == [("", -1), ("", 1), ("p", -1), ("p", 1)]
        (own,) = (d for d in found if (d.parameter, d.side) == ("p", side))
        return float(value_at(own, [Fraction(chance)]))

    base = value([1, 1, 1, 1])
    weights = np.array([(value([1 + 9 * (i == j) for j in range(4)]) - base) / 9 for i in range(4)])
    assert value([7, 13, 20, 4]) == pytest.approx(base + weights @ [6, 12, 19, 3], abs=1e-9)
    return base - weights.sum(), weights


def ever_crossed(chance, constant, weights, n_throws):
    """Return how likely the wealth of one coin, thrown in both cells in turn, ever reaches the inverse error."""
    heads = np.arange(n_throws + 2)
    alive = np.zeros((n_throws + 2, n_throws + 2))
    alive[0, 0], crossed = 1.0, 0.0
    for n in range(1, 2 * n_throws + 1):
        cell = (n - 1) % 2
        kept = alive.T if cell else alive
        moved = (1 - chance) * kept
        moved[1:] += chance * kept[:-1]
        moved[moved < 1e-20] = 0  # 10^5 numbers: less than 10^-12 in all throws together
        alive = moved.T if cell else moved
        thrown = [(n + 1) // 2, n // 2]
        parts = [weights[2 * c] * heads + weights[2 * c + 1] * (thrown[c] - heads) for c in (0, 1)]
        is_over = constant + parts[0][:, None] + parts[1][None, :] > 0
        crossed += alive[is_over].sum()
        alive[is_over] = 0
    return crossed


@pytest.mark.parametrize("chance", [0.5, 0.3, 0.1])
@pytest.mark.parametrize("side", [1, -1])
def test_a_coin_without_drift_is_contradicted_with_a_probability_of_at_most_the_error(chance, side):
    """A pilot of forty throws, and 500 more; by dynamic programming over both numbers of heads.

    At least a tenth of the error is used, so that the test is not empty.
    """
    error, heads = 0.1, max(1, round(20 * chance))
    constant, weights = linear_wealth(chance, [[[heads, 20 - heads]]] * 2, error, side)
    assert error / 10 <= ever_crossed(chance, constant, weights, 250) <= error


@pytest.mark.parametrize("pilot", [[[[1, 19]], [[19, 1]]], [[[19, 1]], [[1, 19]]], [[[1, 0]], [[0, 1]]]], ids=str)
def test_whatever_the_pilot_showed_the_error_holds(pilot):
    for side in (1, -1):
        constant, weights = linear_wealth(0.4, pilot, 0.1, side)
        assert ever_crossed(0.4, constant, weights, 150) <= 0.1


def test_throws_that_count_twice_contradict_the_truth_too_often():
    """The check can fail."""
    constant, weights = linear_wealth(0.5, [[[10, 10]]] * 2, 0.1, 1)
    assert ever_crossed(0.5, constant, 2 * weights, 250) > 0.1


# The half-space lies outside of the process, in many digits


@pytest.mark.slow
@settings(max_examples=examples(15))
@given(data=st.data())
def test_the_half_space_is_implied_by_the_process(data):
    """At any point of the space, the half-space is violated by no more than Σ K ln e - Σ N ln Z + ln(share)."""
    number = st.integers(0, 10**6)
    shapes = [[2, 3], [2, 2], [2]]
    draw = [[[data.draw(number) for _ in range(n)] for n in rows] for rows in shapes]
    pilot = [[[data.draw(st.integers(1, 50)) for _ in range(n)] for n in rows] for rows in shapes]
    counts = counts_in_cells(MIXED, draw, pilot=pilot)
    near, error = [data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))], 0.01
    point = {"p": data.draw(st.fractions(0, 1)), "q": data.draw(st.fractions(0, 1))}
    view = view_of(MIXED, counts)
    found = drifts_of(MIXED, counts, near, error=error)
    assert found
    share = error / len(found)
    for drift in found:
        split = _split(view.table, by_choice(MIXED, view, counts.main), drift.contrast)
        factors = factors_of(split, drift.slope, drift.rest)
        exact = process(view.table, split, factors, point, share)
        assert decimal(value_at(drift, [point["p"], point["q"]])) <= exact


def decimal(fraction):
    with localcontext(prec=60):
        return Decimal(Fraction(fraction).numerator) / Decimal(Fraction(fraction).denominator)


def process(table, split, factors, point, share):
    """Return Σ K ln e - Σ N ln Z + ln(share) to sixty digits."""
    chance = [Fraction(table.outcomes[j].evaluate({n: point[n] for n in table.names})) for j in split.outcome.tolist()]
    with localcontext(prec=60):
        total = decimal(Fraction(float(share))).ln()
        for group in range(len(split.outcomes.is_class)):
            own = np.flatnonzero(split.outcomes.group == group).tolist()
            mean = sum((chance[i] * Fraction(float(factors[i])) for i in own), Fraction(0))
            for i in own:
                gain = decimal(Fraction(float(factors[i]))).ln() - decimal(mean).ln()
                total += Decimal(float(split.seen[i])) * gain
        return total


# Drifts


@pytest.mark.parametrize("side", [1, -1])
def test_a_planted_drift_contradicts_all_points_on_its_side_and_only_there(side):
    """0.45 against 0.55, in thousands: bets on the right side have won at every point, those on the other at none."""
    low, high = ([450, 550], [550, 450]) if side > 0 else ([550, 450], [450, 550])
    scaled = [[[10 * k for k in low]], [[10 * k for k in high]]]
    counts = counts_in_cells(TWO_CELLS, scaled, pilot=[[[25, 25]], [[25, 25]]])
    for drift in drifts_of(TWO_CELLS, counts, [0.5], error=0.001):
        values = [value_at(drift, [x]) for x in np.linspace(0, 1, 101)]
        assert (min(values) > 0) == (drift.side == side)


@pytest.mark.slow
def test_data_without_drift_contradict_no_true_point():
    """A hundred data sets of a right model, at an error at which at most a quarter of one is expected to be missed."""
    rng, truth = np.random.default_rng(5), [0.3, 0.6]
    chance = [[[0.3, 0.7], [0.18, 0.12, 0.7]], [[0.6, 0.4], [0.45, 0.55]], [[0.3, 0.7]]]
    missed = 0
    for _ in range(100):
        pilot, main = ([[rng.multinomial(n, row) for row in rows] for rows in chance] for n in (50, 900))
        counts = counts_in_cells(MIXED, main, pilot=pilot)
        missed += any(value_at(drift, truth) > 0 for drift in drifts_of(MIXED, counts, truth, error=0.0025))
    assert missed <= 3


# What is looked at


def test_parameters_are_looked_at_one_by_one_if_all_of_them_matter():
    axes = parameter_axes(likelihood_table(MIXED))
    assert [name for name, _ in axes] == ["p", "q"]
    assert np.array_equal([axis for _, axis in axes], np.eye(2))


def test_a_sum_of_parameters_is_one_direction_with_both_names():
    (name, axis), *more = parameter_axes(likelihood_table(cell_model([[[(p + q) / 2, 1 - (p + q) / 2]]], SQUARE)))
    assert (name, more) == ("p and q", [])
    assert np.abs(axis) == pytest.approx(np.full(2, 0.5**0.5))


def test_more_than_fifty_parameters_are_not_looked_at_one_by_one():
    names = [f"w{i}" for i in range(51)]
    rows = [[[w, 1 - w] for w in pl.parameters(*names)]]
    assert parameter_axes(likelihood_table(cell_model(rows, pl.ParameterSpace.unit(*names)))) == []


def test_each_cell_has_all_outcomes_of_its_classes_and_what_was_seen():
    counts = counts_in_cells(
        MIXED,
        [[[5, 6], [1, 2, 3]], [[7, 8], [0, 9]], [[0, 4]]],
        pilot=[[[1, 1], [1, 1, 1]], [[1, 1], [1, 1]], [[1, 1]]],
    )
    table = likelihood_table(MIXED)
    contrast = next(c for c in find_contrasts(MIXED) if c.name == "h")
    split = _split(table, table.pool_by_choice(counts.main), contrast)
    seen = {}
    for outcome, level, amount in zip(split.outcome.tolist(), split.level.tolist(), split.seen.tolist(), strict=True):
        seen[level, str(table.outcomes[outcome])] = amount
    assert seen == {
        (0, "p"): 5 + 3, (0, "-p + 1"): 6 + 3, (0, "q"): 1, (0, "-q + 1"): 2,
        (1, "q"): 7, (1, "-q + 1"): 8, (1, "1/2*p + 1/2*q"): 0, (1, "-1/2*p - 1/2*q + 1"): 9,
        (2, "p"): 0, (2, "-p + 1"): 4,
    }  # fmt: skip
    assert len(split.outcomes.constants) == len(split.seen) == 10


# Contrasts


SPACE = pl.ParameterSpace.unit("p", "q")


def open_choices(model):
    """Return which choices have a transition with an unknown probability, by going through all of them."""
    graph = model.graph
    found = []
    for choice in range(graph.n_choices):
        transitions = range(graph.first_transition[choice], graph.first_transition[choice + 1])
        found.append(any(not model.expressions.polynomials[model.expression[t]].is_constant for t in transitions))
    return np.array(found)


@pytest.mark.slow
def test_every_open_choice_is_in_one_cell_and_no_other_choice_is():
    for name in ("betting:5", "rover:10,10", "aircraft:20,10", "parallel:5"):
        model = pl.case_study(name).model
        for contrast in find_contrasts(model):
            assert np.array_equal(contrast.cell != NONE, open_choices(model))
            used = contrast.cell[contrast.cell != NONE]
            assert len(contrast.levels) == len(contrast.cells) == used.max() + 1 == len(np.unique(used))
            assert (np.diff(contrast.levels) > 0).all()


def test_a_variable_with_few_values_has_a_cell_for_each():
    model = cell_model([[[p, 1 - p]], [[q, 1 - q]], [[p, 1 - p]]], SPACE)
    (contrast,) = find_contrasts(model)
    assert (contrast.name, contrast.kind) == ("h", "variable")
    assert contrast.levels.tolist() == [0, 1, 2]
    assert contrast.cells == ("h = 0", "h = 1", "h = 2")
    state = model.graph.state_of_choice()
    assert np.array_equal(contrast.value[contrast.cell >= 0], model.graph.states["h"][state][contrast.cell >= 0])


def test_a_variable_with_many_values_has_sixteen_runs_of_neighbours_with_their_means():
    """Values 0 to 39 in sixteen runs; by hand, the first three values of bin i are those with ⌊16 v / 40⌋ = i."""
    (contrast,) = find_contrasts(cell_model([COIN] * 40, SPACE))
    bins = [[v for v in range(40) if 16 * v // 40 == i] for i in range(16)]
    assert contrast.levels.tolist() == [np.mean(values) for values in bins]
    assert contrast.cells[0] == "h from 0 to 2"


def test_actions_are_one_against_the_others():
    model = cell_model([[[p, 1 - p], [q, 1 - q], [p, q / 2, 1 - p - q / 2]]], pl.ParameterSpace.simplex("p", "q"))
    found = {contrast.name: contrast for contrast in find_contrasts(model)}
    assert set(found) == {"row 0", "row 1", "row 2"}
    assert sorted(found["row 1"].cell[found["row 1"].cell >= 0].tolist()) == [0, 0, 1]
    assert found["row 1"].cells == ("other actions", "action 'row 1'")


def test_what_does_not_vary_is_no_contrast():
    assert find_contrasts(cell_model([COIN], SPACE)) == []


def test_contrasts_do_not_depend_on_names_of_parameters():
    a, b = pl.parameters("a", "b")
    one = find_contrasts(cell_model([[[p, 1 - p]], [[q, 1 - q]]], SPACE))
    other = find_contrasts(cell_model([[[a, 1 - a]], [[b, 1 - b]]], pl.ParameterSpace.unit("a", "b")))
    assert [contrast.cells for contrast in one] == [contrast.cells for contrast in other]
