"""Bets on tables are fair, exactly: over all data of a small chain, in three batches, their expectation is one.

The weights are those that ``table_bounds`` makes of each of the data, as the fractions that floats are. Equations and
bounds on the way are compared with exact solutions, and chains whose frequencies never end give no wrong bracket.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
from mixed_models import chain_of, three_rows
from table_cases import (
    ERRORS,
    all_batches,
    draw,
    labels_of,
    make_table,
    random_case,
    random_pair,
    row_of_place,
    values_at,
)
from tiers import size

from plumdp.base.errors import WhyNot
from plumdp.tables import bracket
from plumdp.tables import values as sides
from plumdp.tables.bracket import BetMoments, table_bounds
from plumdp.tables.chain import regular_equations
from plumdp.tables.contraction import _leads_out
from plumdp.tables.plan import curvature
from plumdp.tables.values import side_by_side

HALF = Fraction(1, 2)
# nodes 0 and 1 lead to each other, to the target and to a dead end
ONE_ROW = make_table([[(0, 0), (1, 1), (2, 2)]])
TWO_ROWS = make_table([[(1, 0), (2, 1)], [(0, 2), (3, 3)]])
TIED = make_table([[(1, 0), (2, 1)], [(0, 0), (3, 1)]])
# node 0 draws one of two actions, which lead back, to the target or to a dead end
DRAWN = make_table([[(1, None), (2, None)], [(0, 0), (3, 1)], [(0, 2), (4, 3)]], numbers={0: [0.25, 0.75]})
# the first node has a row of its own in either policy, and the second the same row
ONE, OTHER = (replace(make_table([[(1, a), (2, a + 1)], [(0, 2), (3, 3)]]), n_places=6) for a in (0, 4))
SIDES, _ = side_by_side(ONE, OTHER, labels_of(ONE), labels_of(OTHER))
# the node in the middle has an unknown row, and both others (p, 1 - p)
MIXED, _ = chain_of(three_rows())
CHAINS = {  # true probabilities of places, visits of each row in the three batches, and how many more were planned
    "one row": (ONE_ROW, [Fraction(1, 2), Fraction(1, 5), Fraction(3, 10)], [(1,), (2,), (1,)], 1),
    "one row, with small bets": (ONE_ROW, [Fraction(1, 2), Fraction(1, 5), Fraction(3, 10)], [(1,), (2,), (1,)], 300),
    "two rows": (TWO_ROWS, [Fraction(n, 12) for n in (4, 8, 9, 3)], [(1, 1), (1, 1), (1, 1)], 300),
    "tied rows": (TIED, [Fraction(2, 5), Fraction(3, 5)], [(2,), (2,), (2,)], 300),
    "drawn actions": (DRAWN, [Fraction(n, 12) for n in (4, 8, 9, 3)], [(1, 1), (1, 1), (1, 1)], 300),
    "two policies side by side": (
        SIDES,
        [Fraction(n, 12) for n in (4, 8, 9, 3, 6, 6)],
        [(1, 1, 1), (1, 1, 0), (0, 1, 0)],
        300,
    ),
    "expressions beside an unknown row": (MIXED, [Fraction(n, 15) for n in (5, 10, 6, 9)], [(1, 1)] * 3, 300),
}


def exact_values(table, probability):
    """Return the values of a chain of one or two rows in fractions, given exact probabilities (n_transitions)."""
    n = table.n
    matrix = [[Fraction(int(s == t)) for t in range(n)] for s in range(n)]
    right = [Fraction(float(r)) for r in table.chain.reward]
    for t, p in enumerate(probability):
        owner, successor, factor = int(table.owner[t]), int(table.successor[t]), Fraction(table.discount)
        if successor < n:
            matrix[owner][successor] -= factor * p
        else:
            right[owner] += factor * p * Fraction(float(table.chain.known[successor - n]))
    return solved(matrix, right)


def solved(matrix, right):
    """Return the exact solution of linear equations."""
    n, rows = len(right), [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def placed(table, moments):
    """Return the plan, the reference and the stages of both signs that ``table_bounds`` makes of data."""
    seen = {}

    def contracted(plan, reference, counts, lower, upper):
        seen.update(plan=plan, reference=reference, later=counts)
        return SimpleNamespace(values=np.zeros(table.n), distance=np.zeros(table.n))

    def ended(plan, stages, near, sign, *_):
        seen[sign] = stages
        return SimpleNamespace(value=0.0, curvature=0.0, mismatch=0.0, statistics=1.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bracket, "contract", contracted)
        patch.setattr(bracket, "bracket_end", ended)
        found = table_bounds(table, moments, ERRORS, np.zeros(table.n), np.ones(table.n))
    return None if isinstance(found, WhyNot) else seen


def exact_payoffs(table, weight, difference, ranges):
    """Return the payoff of each place, with bets made smaller where values range too far, in fractions."""
    payoff, most = [Fraction(0)] * table.n_places, [Fraction(0)] * table.n_places
    for t in np.flatnonzero(table.place >= 0).tolist():
        place = table.place[t]
        w, s = Fraction(float(weight[table.owner[t]])), int(table.owner[t])
        payoff[place] += w * difference[t]
        most[place] += abs(w) * ranges[s]
    by_row = {row: max(most[p] for p in np.flatnonzero(row_of_place(table) == row)) for row in row_of_place(table)}
    scale = {row: min(Fraction(1), HALF / largest if largest else Fraction(1)) for row, largest in by_row.items()}
    return [x * scale[row] for x, row in zip(payoff, row_of_place(table), strict=True)]


def power(factors, counts):
    """Return the product of factors, each as often as it was seen."""
    assert min(factors) >= 0
    return prod((f ** int(k) for f, k in zip(factors, counts, strict=True)), start=Fraction(1))


def expectations(name):
    """Return the exact expectation of the product of each kind of bet over all data of a chain."""
    table, truth, (first, second, third), planned = CHAINS[name]
    numbers = map(Fraction, table.number.tolist())
    probability = [truth[place] if place >= 0 else p for place, p in zip(table.place, numbers, strict=True)]
    values = exact_values(table, probability)
    every = [*values, *(Fraction(float(v)) for v in table.chain.known)]
    ahead = [every[s] for s in table.successor]
    difference = [ahead[t] - values[table.owner[t]] for t in range(len(ahead))]
    spans = [slice(a, b) for a, b in zip(table.chain.first[:-1], table.chain.first[1:], strict=True)]
    ranges = [max(ahead[span]) - min(ahead[span]) for span in spans]
    total, means = Fraction(0), {}
    for (a, chance_a), (b, chance_b), (c, chance_c) in product(
        *(list(all_batches(table, truth, visits)) for visits in (first, second, third))
    ):
        lengths = (float(a.sum()), float((a + b).sum()))
        ALL[:] = [a + b + c]
        seen = placed(table, BetMoments((a, a + b, a + b + c), lengths, planned * float((a + b + c).sum())))
        chance = chance_a * chance_b * chance_c
        total += chance
        won = {} if seen is None else dict(_winnings(table, seen, difference, ranges, values, b + c))
        for kind in KINDS:
            means[kind] = means.get(kind, 0) + chance * won.get(kind, 1)
    assert total == 1
    return means


ALL = []  # all data of the moment, for mutants that look at them
KINDS = ["low", "high", *(f"row {i} {sign}" for i in range(3) for sign in (-1, 1)), "mixture"]


def _winnings(table, seen, difference, ranges, values, later):
    """Yield each kind of bet with what it won: on the value, on the first unknown row, and a mixture on all rows."""
    assert (seen["later"] == later).all()
    for name, sign in (("low", -1), ("high", 1)):
        assert (sum(stage.counts for stage in seen[sign]) == later).all()
        products = [
            power([1 + x for x in exact_payoffs(table, stage.weight, difference, ranges)], stage.counts)
            for stage in seen[sign]
        ]
        yield name, prod(products)
    reference, mixture = seen["reference"], Fraction(1)
    floats = np.array([float(v) for v in values])
    deviation = [Fraction(float(x)) for x in table.deviations(reference.probability, table.ahead(floats))]
    for s in np.flatnonzero(table.is_free).tolist():
        span = range(table.chain.first[s], table.chain.first[s + 1])
        x, counts = [difference[t] / deviation[s] for t in span], [later[table.place[t]] for t in span]
        if s == np.argmax(table.is_free):
            for i, bets in enumerate(reference.sizes):
                for sign in (-1, 1):
                    yield f"row {i} {sign}", power([1 + sign * Fraction(float(bets[s])) * each for each in x], counts)
        if reference.is_mixed[s]:
            cut, spread = float(reference.cut[s]), float(reference.spread[s])
            nodes = [(cut * u, Fraction(float(np.exp(-((cut * u / spread) ** 2) / 2)))) for u in (-1, -0.5, 0.25, 0.8)]
            weighted = [w * power([1 + Fraction(theta) * each for each in x], counts) for theta, w in nodes]
            mixture *= sum(weighted) / sum(w for _, w in nodes)
    yield "mixture", mixture


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAINS)
def test_the_expectation_of_every_bet_is_one(name):
    assert expectations(name) == dict.fromkeys(KINDS, 1)


def the_plan_has_seen_all_data(patch):
    plan = bracket.make_plan
    patch.setattr(bracket, "make_plan", lambda table, counts, *args: plan(table, ALL[0], *args))


def weights_have_seen_their_own_batch(patch):
    weights = bracket.next_weights
    patch.setattr(bracket, "next_weights", lambda plan, before, *args: weights(plan, ALL[0], *args))


def tied_rows_bet_as_if_they_were_two(patch):
    """A mixture over tied nodes is a product of bets on the same visits."""
    reference = bracket.make_reference

    def mistaken(plan, *args):
        found = reference(plan, *args)
        return type(found)(**{**vars(found), "is_mixed": found.cut > 0})

    patch.setattr(bracket, "make_reference", mistaken)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "name", "kinds"),
    [
        (the_plan_has_seen_all_data, "two rows", {"low", "high", "row 0 1", "mixture"}),
        (weights_have_seen_their_own_batch, "two rows", {"low", "high"}),
        (weights_have_seen_their_own_batch, "tied rows", {"low", "high"}),
        (tied_rows_bet_as_if_they_were_two, "tied rows", {"mixture"}),
    ],
)
def test_a_planted_look_ahead_is_found(plant, name, kinds, monkeypatch):
    plant(monkeypatch)
    assert kinds <= {kind for kind, mean in expectations(name).items() if mean != 1}


# Parts of a bracket, against exact solutions and brute force


@pytest.mark.parametrize("seed", range(size(12, 200)))
def test_solutions_from_above_are_above_the_exact_ones(seed):
    """Leaks are as small as 10^-12, so that the plain solution is below the exact one time and again."""
    rng = np.random.default_rng(seed)
    n, leak = int(rng.integers(1, 7)), 10 ** rng.uniform(-12, 0)
    table = make_table([[(t, s * (n + 1) + i) for i, t in enumerate([*range(n), n])] for s in range(n)])
    probability = np.hstack([rng.dirichlet(np.ones(n), n) * (1 - leak), np.full((n, 1), leak)]).ravel()
    equations, right = regular_equations(table, probability), rng.uniform(0, 1, n) * 10.0 ** rng.integers(-3, 4, n)
    above = None if equations is None else equations.above(right)
    if above is None:
        assert leak < 1e-6
        return
    moves = equations.moves @ np.eye(n)
    matrix = [[Fraction(int(s == t)) - Fraction(float(moves[s, t])) for t in range(n)] for s in range(n)]
    exact = solved(matrix, [Fraction(float(x)) for x in right])
    assert all(Fraction(float(x)) >= y for x, y in zip(above, exact, strict=True))
    assert leak < 1e-7 or np.allclose(above, [float(y) for y in exact], rtol=1e-6)


@pytest.mark.parametrize("t", [1e-6, 1e-4, 0.01, 0.3, 0.5, 0.9, 0.998])
def test_logarithms_are_above_their_parabolas(t):
    s = np.concatenate([np.linspace(-t, 4, 4001), [-t]])
    kappa = float(curvature(np.array(t)))
    assert (np.log1p(s) >= s - kappa * s**2 / 2 - 1e-18).all()
    assert t < 1e-4 or np.log1p(-t) < -t - 0.999 * kappa * t**2 / 2


def test_rows_that_never_lead_out_by_what_was_seen_are_closed():
    """Nodes 0 and 1 were only seen to lead to each other, and 3 to itself; 2 leads to the target."""
    rows = [[(1, 0), (4, 1)], [(0, 2), (5, 3)], [(0, 4), (4, 5)], [(3, 6), (4, 7)]]
    table, counts = make_table(rows), np.array([5.0, 0, 7, 0, 3, 4, 9, 0])
    every = np.ones(4, dtype=bool)
    assert _leads_out(table, counts, every).tolist() == [False, False, True, False]
    counts[3] = 1
    assert _leads_out(table, counts, every).tolist() == [True, True, True, False]
    assert _leads_out(make_table(rows, discount=0.9), counts, every).all()
    one_is_open = np.array([True, False, True, True])
    assert _leads_out(table, np.array([5.0, 0, 7, 0, 3, 4, 9, 0]), one_is_open).tolist() == [True, False, True, False]


def bracket_of(table, cumulative, lower, upper):
    """Return the bracket of the first node, cut to the bounds that it started from."""
    lengths = tuple(max(float(each.sum()), 1.0) for each in cumulative[:-1])
    found = table_bounds(
        table, BetMoments(tuple(cumulative), lengths, float(cumulative[-1].sum())), ERRORS, lower, upper
    )
    start = table.chain.initial
    if isinstance(found, WhyNot):
        return lower[start], upper[start]
    low = [end.value for end in (found.low,) if end is not None]
    high = [end.value for end in (found.high,) if end is not None]
    lows, highs = [lower[start], found.estimate - found.distance, *low], [upper[start], found.estimate + found.distance]
    return max(lows), min([*highs, *high])


@pytest.mark.parametrize("seed", range(size(25, 400)))
def test_frequencies_with_a_closed_class_give_no_wrong_bracket(seed):
    """Runs hardly ever end, and in the data never did: the frequencies have no solution."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    successors = [*range(n), n, n + 1]
    table = make_table([[(t, s * (n + 2) + i) for i, t in enumerate(successors)] for s in range(n)])
    exits = 2e-4 * rng.dirichlet([1, 1], n)
    truth = np.hstack([rng.dirichlet(np.ones(n), n) * (1 - 2e-4), exits]).ravel()
    value, cumulative = values_at(table, truth)[0], []
    for visits in (10, 75, 15):
        seen = draw(table, truth, dict.fromkeys(np.unique(row_of_place(table)).tolist(), visits), rng)
        seen = seen.reshape(n, -1)
        seen[:, :n] += np.eye(n) * seen[:, n:].sum(1, keepdims=True)
        seen[:, n:] = 0  # runs that did end are made to stay
        cumulative.append(seen.ravel() + (cumulative[-1] if cumulative else 0))
    low, high = bracket_of(table, cumulative, np.zeros(n), np.ones(n))
    assert low <= value <= high


@pytest.mark.parametrize("seed", range(size(10, 40)))
def test_a_trap_that_is_never_left_gives_no_wrong_bracket(seed):
    """Node 2 never leads out in truth, although the graph lets it, so that its value is 0 and that of node 0 is 3/7."""
    rng = np.random.default_rng(seed)
    table = make_table([[(1, 0), (2, 1)], [(0, 2), (3, 3)], [(2, 4), (3, 5)]])
    truth, cumulative = np.array([0.6, 0.4, 0.5, 0.5, 1.0, 0.0]), []
    assert pytest.approx(3 / 7) == 0.3 / (1 - 0.3)
    for visits in (50, 400, 80):
        seen = draw(table, truth, {0: visits, 2: visits, 4: visits}, rng)
        cumulative.append(seen + (cumulative[-1] if cumulative else 0))
    low, high = bracket_of(table, cumulative, np.zeros(3), np.ones(3))
    assert low <= 3 / 7 <= high


@pytest.mark.parametrize("later", [0, 1, 5, 1000])
@pytest.mark.parametrize("pilot", [0, 1, 30])
def test_rows_without_visits_or_choices_give_a_bracket_or_none(pilot, later):
    """Node 2 has one successor, and node 1 was never visited at all."""
    table = make_table([[(1, 0), (2, 1), (3, 2)], [(0, 3), (4, 4)], [(3, 5)]], start=0)
    first = np.array([pilot, pilot, 2 * pilot, 0, 0, pilot], dtype=np.float64)
    second = first + np.array([later, later, 2 * later, 0, 0, later])
    low, high = bracket_of(table, [first, second], np.zeros(3), np.ones(3))
    assert low <= 0.75 <= high
    assert later < 1000 or not pilot or high - low < 0.5


@pytest.mark.parametrize("factor", [0.1, 0.9999, 1.0, 1.01])
def test_data_that_are_longer_than_planned_cost_width_alone(factor):
    """Whoever expected fewer data than the pilot has is taken at their word."""
    case = random_case(3)
    counts, lengths = case.moments.counts, case.moments.lengths
    value = values_at(case.table, case.truth)[case.table.chain.initial]
    moments = BetMoments(counts, lengths, factor * lengths[0])
    found = table_bounds(case.table, moments, ERRORS, np.zeros(case.table.n), np.ones(case.table.n))
    assert not isinstance(found, WhyNot)
    for end, sign in ((found.low, -1), (found.high, 1)):
        assert end is None or sign * (end.value - value) >= 0
    assert abs(found.estimate - value) <= found.distance


# Two policies side by side


def off_by(seeds):
    """Return how far what is sought of two chains side by side is from the difference of their values, at most."""
    worst = 0.0
    for seed in seeds:
        one, other, *truth = random_pair(np.random.default_rng(seed))
        table, own = side_by_side(one, other, labels_of(one), labels_of(other))
        at_both = np.concatenate([truth[0], truth[1][np.isin(other.owner, own)]])
        values = [values_at(each, p)[each.chain.initial] for each, p in zip((one, other), truth, strict=True)]
        worst = max(worst, abs(table.start @ values_at(table, at_both) - (values[0] - values[1])))
    return worst


def test_what_is_sought_side_by_side_is_the_difference_of_both_values():
    assert off_by(range(size(40, 2000))) < 1e-9


def unequal_futures_are_one(patch):
    patch.setattr(sides.kernels, "mark_ahead", lambda *args: None)


def rows_of_one_state_are_one(patch):
    same = sides._same_nodes
    patch.setattr(sides, "_same_nodes", lambda a, b, of_a, of_b: same(a, b, 0 * of_a, 0 * of_b))


def the_sign_is_lost(patch):
    joined = sides.read_only
    patch.setattr(sides, "read_only", lambda x: joined(np.abs(x) if x.dtype.kind == "f" else x))


@pytest.mark.parametrize("plant", [unequal_futures_are_one, rows_of_one_state_are_one, the_sign_is_lost])
def test_a_planted_merger_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert off_by(range(40)) > 1e-3


# What was won at earlier moments


def stages_differ(seed):
    """Return whether weights of a stage depend on what comes after it: more data, later moments or the end."""
    case = random_case(seed)
    moments, rng = case.moments, np.random.default_rng(seed)
    plan = bracket.plan_of(case.table, moments, ERRORS)
    if plan is None or len(moments.lengths) < 2:
        return False
    more = moments.counts[-1] + rng.integers(0, 50, case.table.n_places)
    lengths = (*moments.lengths, moments.lengths[-1] + 1.0)
    longer = BetMoments((*moments.counts, more), lengths, moments.planned)
    ends = (moments.counts[:2], moments.counts, longer.counts)
    found = [
        bracket.make_stages(plan, BetMoments(counts, lengths[: len(counts) - 1], moments.planned), 1)[0].weight
        for counts in ends
    ]
    return any((weight != found[0]).any() for weight in found)


def test_weights_do_not_know_what_comes_after_their_stage():
    assert not any(map(stages_differ, range(10)))


def test_a_stage_that_knows_to_be_the_last_is_found(monkeypatch):
    make = bracket.make_stages

    def mistaken(plan, moments, sign):
        stages = make(plan, moments, sign)
        return [*stages[:-1], replace(stages[-1], weight=1.1 * stages[-1].weight)]

    monkeypatch.setattr(bracket, "make_stages", mistaken)
    assert any(map(stages_differ, range(10)))
