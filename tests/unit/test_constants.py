"""Numbers that the model fixes: which are tested, at what error, and what is said when the data exclude one."""

from bisect import bisect_left
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import cycle, product

import numpy as np
import pytest
from tiers import size

import plumdp as pl
from plumdp.confidence.binomial import beta_binomial, clopper_pearson
from plumdp.confidence.constants import NONE, ROW, excluded_numbers, find_fixed_numbers
from plumdp.learning.learn import learn
from plumdp.learning.model_tests import check_fixed_numbers
from plumdp.region.conflict import Conflict
from plumdp.result.printing import outward

p, q = pl.parameters("p", "q")
SETS = ["interval", "l1", "ellipsoid", "likelihood"]
SAMPLINGS = ["independent", "trajectories", "adaptive"]
UNIT = pl.ParameterSpace.unit("p", "q")


def rows_model(*rows, space=UNIT):
    """Return a model whose state x=i takes row i, given by its probabilities, to x=100, 101, ... and ends there.

    State 0 is the start, with one action for each row, named "0", "1", ...; all rows are rows of state 0.
    """

    def step(state):
        if state.x > 0:
            return {"stay": [(1, state)]}
        return {
            str(i): [(f, state._replace(x=10 * (i + 1) + j)) for j, f in enumerate(row)] for i, row in enumerate(rows)
        }

    return pl.explore(step, {"x": 0}, space=space, labels={"goal": lambda s: s.x == 10})


def counts_of(model, *rows, sampling="independent"):
    """Return the counts of the rows of state 0, one after the other."""
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    seen = [n for row in rows for n in row]
    counts[: len(seen)] = seen
    return pl.TransitionCounts(model.graph, counts, sampling)


def goal(model):
    return pl.parse_property('Pmax=? [ F "goal" ]', model)


def is_contradicted(model, counts, **options):
    return isinstance(learn(model, counts, **options).region, Conflict)


def first_excluded(model, n, number, *, confidence, sampling="independent"):
    """Return the least number of successes of n in the first of two outcomes that contradicts the number.

    More successes of more than expected contradict it, too.
    """
    successes = range(int(n * number), n + 1)
    like = learn(model, counts_of(model, (n // 2, n - n // 2), sampling=sampling), confidence=confidence)

    def is_excluded(k):
        counts = counts_of(model, (k, n - k), sampling=sampling)
        return learn(model, counts, confidence=confidence, like=like).conflict is not None

    return successes[bisect_left(successes, True, key=is_excluded)]


# What is said


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_coin_written_one_half_and_seen_heads_99_times_of_100_contradicts_the_model(sets, sampling):
    model = rows_model((0.5, 0.5))
    counts = counts_of(model, (890_000, 10_000), sampling=sampling)
    certificate = pl.certify(model, counts, goal(model), confidence_set=sets)
    assert certificate.status == "model rejected"
    assert certificate.claim.reason.split("; ")[0] == (  # what tests of all rows say comes behind it
        "state (x=0), action '0', successor (x=10): the model says 0.5, seen 890,000 of 900,000 times "
        "(between 0.988 and 0.99 with confidence 99.9 %)"
    )
    lower, upper = beta_binomial(890_000, 900_000, 0.025 * (1 - 0.999))
    assert certificate.how.relaxation == "untied"
    assert certificate.rests_on.parameters == {}
    assert certificate.lower == pytest.approx(float(lower), abs=1e-8)
    assert certificate.upper == pytest.approx(float(upper), abs=1e-8)


def test_a_number_that_only_its_own_interval_contradicts_is_no_sign_of_memory():
    model = rows_model((0.5, 0.5))
    certificate = pl.certify(model, counts_of(model, (560, 440), sampling="independent"), goal(model), confidence=0.9)
    assert certificate.claim.reason.startswith(
        "state (x=0), action '0', successor (x=10): the model says 0.5, seen 560"
    )


@pytest.mark.parametrize(
    ("row", "seen", "says", "trials"),
    [
        ((Fraction(1, 3), Fraction(2, 3)), (30, 970), "1/3", 1000),
        ((0.2, p, 0.8 - p), (500, 300, 200), "0.2", 1000),
        (
            (p / 2, p / 2, 1 - p),
            (300, 100, 600),
            "0.5 of the visits of 2 successors with the probability 1/2*p each",
            400,
        ),
    ],
)
def test_a_conflict_names_the_row_the_number_and_what_was_seen(row, seen, says, trials):
    model = rows_model(row)
    low, high = clopper_pearson(seen[0], trials, 0.025 * (1 - 0.999))
    assert learn(model, counts_of(model, seen)).region.numbers == (
        f"state (x=0), action '0', successor (x=10): the model says {says}, seen {seen[0]} of {trials:,} times "
        f"(between {outward(float(low), -1, digits=3)} and {outward(float(high), 1, digits=3)} with confidence 99.9 %)",
    )


def test_printed_bounds_leave_the_number_outside_however_close_it_is():
    """The interval of 10^14 trials has a width of 5·10^-7."""
    model = rows_model((0.5, 0.5))
    half, more = 5 * 10**13, 10**8
    text = str(learn(model, counts_of(model, (half + more, half - more))).region)
    low = Fraction(text.split("between ")[1].split(" and")[0])
    assert Fraction(1, 2) < low < Fraction(1, 2) + Fraction(more, 10**14)


def test_three_excluded_numbers_are_described_and_the_others_counted():
    model = rows_model(*[(Fraction(1, i), 1 - Fraction(1, i)) for i in range(2, 10)])
    region = learn(model, counts_of(model, *[(1000 - i, i) for i in range(8)])).region
    assert [text.split(",")[1] for text in region.numbers[:3]] == [" action '7'", " action '6'", " action '5'"]
    assert region.numbers[3:] == ("5 more fixed numbers",)


def test_parameters_that_do_not_fit_are_named_beside_fixed_numbers():
    model = rows_model((0.5, 0.5), (p, 1 - p), (p / 2, 1 - p / 2))
    counts = counts_of(model, (900, 100), (900, 100), (900, 100))
    region = learn(model, counts, confidence_set="interval").region
    texts = str(region).split("; ")
    assert texts[0].startswith("state (x=0), action '0', successor (x=10): the model says 0.5, seen 900 of 1,000 times")
    assert texts[-2].startswith("no parameters fit ")
    assert texts[-1].startswith("all intervals would have to be ")
    assert [region.constraints[1][:10], len(region.multipliers)] == ["1/2*p in [", 1]


def test_a_conflict_of_fixed_numbers_alone_has_no_multipliers():
    region = learn(model := rows_model((0.5, 0.5)), counts_of(model, (900, 100))).region
    assert (region.expressions, len(region.multipliers), region.constraints) == ((), 0, ())
    assert np.isnan(region.stretch)


# What is excluded


@pytest.mark.parametrize("seen", [(900, 100), (100, 900)])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_numbers_are_excluded_on_both_sides(seen, sampling):
    model = rows_model((0.5, 0.5))
    assert is_contradicted(model, counts_of(model, seen, sampling=sampling))
    assert not is_contradicted(model, counts_of(model, (510, 490), sampling=sampling))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_every_constant_of_a_mixed_row_is_tested(place):
    row = [Fraction(1, 5), p, Fraction(4, 5) - p]
    seen = [500, 300, 200]
    model = rows_model(tuple(row[place:] + row[:place]))
    assert is_contradicted(model, counts_of(model, tuple(seen[place:] + seen[:place])))


def test_no_data_exclude_nothing():
    model = rows_model((0.5, 0.5), (0.2, p, 0.8 - p), (q / 2, q / 2, 1 - q))
    assert not is_contradicted(model, counts_of(model))


def test_numbers_as_small_as_no_float_are_excluded_by_one_success():
    tiny = Fraction(1, 10**400)
    model = rows_model((tiny, 1 - tiny))
    assert not is_contradicted(model, counts_of(model, (0, 10**6)))
    assert is_contradicted(model, counts_of(model, (1, 10**6)))
    assert is_contradicted(rows_model((1 - tiny, tiny)), counts_of(model, (10**6, 1)))


@pytest.mark.parametrize("number", [Fraction(1, 3), Fraction(1, 10), 1 - Fraction(1, 10**18), Fraction(1, 2)])
def test_floats_beside_a_number_are_on_their_sides(number):
    fixed = find_fixed_numbers(rows_model((number, 1 - number)))
    i = fixed.numbers.index(number)
    assert Fraction(fixed.below[i]) <= number <= Fraction(fixed.above[i])
    assert Fraction(fixed.rest[i]) <= 1 - number


# Rows that fix the same numbers


def test_an_error_common_to_many_rows_is_found_though_no_row_shows_it():
    """A hundred rows of 30 visits, 20 of them heads: 2000 of 3000 are 18 standard errors off, 20 of 30 not two."""
    model = rows_model(*[(0.5, 0.5)] * 100)
    low, high = clopper_pearson(2000, 3000, 0.025 * (1 - 0.999) / 2)
    assert not is_contradicted(model, counts_of(model, (20, 10)))
    assert learn(model, counts_of(model, *[(20, 10)] * 100)).region.numbers == (
        "100 rows with the same fixed numbers together, such as state (x=0), action '0', successor (x=10): the model "
        "says 0.5, seen 2,000 of 3,000 times "
        f"(between {outward(float(low), -1, digits=3)} and {outward(float(high), 1, digits=3)} with confidence 99.9 %)",
    )


def test_shares_of_all_rows_are_tested_together():
    model = rows_model(*[(p / 2, p / 2, 1 - p), (q / 2, q / 2, 1 - q)] * 50)
    text = str(learn(model, counts_of(model, *[(20, 10, 20)] * 100)).region)
    assert text.startswith("100 rows with the same fixed numbers together, such as state (x=0), action '0', successor ")
    assert "the model says 0.5 of the visits of 2 successors with the probability 1/2*p each, seen 2,000 of 3,0" in text


def test_a_class_is_not_named_beside_one_of_its_rows():
    model = rows_model(*[(0.5, 0.5)] * 3)
    region = learn(model, counts_of(model, (900, 100))).region
    assert len(region.numbers) == 1
    assert region.numbers[0].startswith("state (x=0), action '0'")


def test_rows_with_other_numbers_or_other_sizes_are_other_classes():
    same = [(0.5, p, 0.5 - p), (q, 0.5 - q, 0.5)]
    others = [(0.5, 0.5), (0.5, 0.25, 0.25), (0.5, p / 4, p / 4, (1 - p) / 4, (1 - p) / 4)]
    fixed = find_fixed_numbers(rows_model(*same, *others))
    by_row = defaultdict(list)
    for choice, group, pooled in zip(fixed.choice, fixed.group, fixed.pooled, strict=True):
        by_row[int(choice)] += [int(pooled)] if group == ROW else []
    assert by_row == {0: [0], 1: [0], 2: [NONE], 3: [NONE] * 3, 4: [NONE]}


def test_constants_are_pooled_number_by_number_whatever_their_order_in_the_row():
    model = rows_model((0.2, 0.3, 0.5), (0.5, 0.2, 0.3), (0.3, 0.5, 0.2))
    seen = counts_of(model, (20, 30, 50), (50, 20, 30), (30, 50, 20))
    fixed = find_fixed_numbers(model)
    pooled = Counter()
    for transition, test in zip(fixed.transition, fixed.pooled, strict=True):
        pooled[int(test)] += int(seen.counts[transition])
    assert sorted(pooled.values()) == [60, 90, 150]


# The error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ([(0.5, 0.5)], 1),  # one row, no class
        ([(0.5, 0.5), (0.2, 0.8)], 1 / 2),  # two rows, no class
        ([(0.5, 0.5), (0.2, 0.3, 0.5)], 1 / 4),  # 1 + 3 numbers
        ([(0.5, 0.5), (p / 2, p / 2, 1 - p)], 1 / 2),  # a number and a share
        ([(0.5, 0.5), (p / 3, p / 3, p / 3, 1 - p)], 1 / 4),  # a number and three shares
        ([(0.5, 0.5), (p, 1 - p)], 1),  # parameters are none of them
        ([(0.5, 0.5), (0.2, 0.8), (0.2, 0.8)], 1 / 2 / 3),  # half of it for the class
        ([(0.5, 0.5)] * 2 + [(0.2, 0.8)] * 2, 1 / 4),  # half of it for two classes: one of four rows would be 1/8
        ([(0.5, 0.5), (0.5, 0.5)], 1 / 2),  # one of two rows of a class: as their sum, at half the error
    ],
)
def test_the_error_of_a_test_is_its_share_of_a_fortieth(rows, share):
    """For one row of 1000 trials, the first number of heads that an interval at that error tells from one half."""
    model, n, confidence = rows_model(*rows), 1000, 0.9
    k = np.arange(n + 1)
    lower, _ = clopper_pearson(k, n, 0.025 * (1 - confidence) * share)
    assert first_excluded(model, n, 0.5, confidence=confidence) == int(k[lower > 0.5][0])


@pytest.mark.parametrize("rows", [[(p, 1 - p)], [(0.5, 0.5), (p, 1 - p)], [(p / 2, p / 2, 1 - p)]])
@pytest.mark.parametrize("sets", SETS)
def test_the_intervals_keep_their_share_of_the_error_and_what_is_left_is_divided(rows, sets):
    model = rows_model(*rows)
    learned = learn(model, counts_of(model, *[(5,) * len(row) for row in rows]), confidence_set=sets, confidence=0.9)
    assert learned.bounds.error == (1 - 0.05 - 0.025) * (1 - 0.9)
    assert learned.budget["graph_alone"] == Fraction(1, 40 if len(find_fixed_numbers(model)) else 20)


@pytest.mark.slow
def test_data_that_may_stop_at_any_time_have_wider_intervals():
    """With a policy that returns to the row, runs try it many times; a fixed number of runs is then no fixed sample."""

    def step(state):
        return {"toss": [(0.5, state._replace(x=state.x)), (0.5, state._replace(x=1 - state.x))]}

    again = pl.explore(step, {"x": 0}, space=UNIT)
    once = rows_model((0.5, 0.5))
    k, n = np.arange(1001), 1000
    fixed_sample, anytime = clopper_pearson(k, n, 0.0025)[0], beta_binomial(k, n, 0.0025)[0]
    of_row = beta_binomial(k, n, 0.0025 / 2)[0]  # both rows together are at half the error, too: beta-binomial for 1
    for model, sampling, lower in [
        (once, "independent", fixed_sample),
        (once, "trajectories", fixed_sample),
        (once, "adaptive", anytime),
        (again, "trajectories", of_row),
        (again, "adaptive", of_row),
    ]:
        fixed = find_fixed_numbers(model)
        options = {"error": 0.0025, "confidence": 0.9}
        found = (
            excluded_numbers(model, fixed, counts_of(model, (j, n - j), sampling=sampling), **options) for j in k[500:]
        )
        assert 500 + next(j for j, texts in enumerate(found) if texts) == int(k[lower > 0.5][0])


@pytest.mark.slow
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_numbers_are_tested_at_any_time_unless_the_set_itself_needs_fixed_numbers_of_samples(sampling):
    """Clopper–Pearson intervals hold for a fixed number of trials alone, and are narrower."""
    model, n, k = rows_model((0.5, 0.5)), 1000, np.arange(1001)
    interval = clopper_pearson if sampling == "independent" else beta_binomial
    lower = interval(k, n, 0.0025)[0]
    assert first_excluded(model, n, 0.5, confidence=0.9, sampling=sampling) == int(k[lower > 0.5][0])


# Slow and simple


def slow_numbers(model):
    """Return (choice, transition, number, trials over these transitions) of every test, by definition."""
    graph, table, found = model.graph, model.expressions.polynomials, []
    for choice in range(graph.n_choices):
        row = list(range(graph.first_transition[choice], graph.first_transition[choice + 1]))
        constants = [t for t in row if table[model.expression[t]].is_constant]
        if len(row) == 2 and constants:
            constants = [min(row, key=lambda t: (model.expression[t], t))]
        if len(row) > 1:
            found += [(choice, t, table[model.expression[t]].constant, tuple(row)) for t in constants]
        for f in {model.expression[t] for t in row if not table[model.expression[t]].is_constant}:
            same = [t for t in row if model.expression[t] == f]
            tested_ones = same if len(same) > 2 else same[: len(same) - 1]
            found += [(choice, t, Fraction(1, len(same)), tuple(same)) for t in tested_ones]
    return found


def random_rows(rng):
    """Return rows with constants, equal expressions, and both."""
    kinds = [
        (1,),
        (p, 1 - p),
        (0.5, 0.5),
        (0.2, 0.8),
        (0.2, p, 0.8 - p),
        (0.25, 0.25, 0.25, 0.25),
        (p / 2, p / 2, 1 - p),
        (q / 3, q / 3, q / 3, 1 - q),
        (p * q, p * q, 1 - 2 * p * q),
        (0.1, p / 4, p / 4, 0.9 - p / 2),
        (0.2, 0.2, p / 2, q / 2, 0.6 - p / 2 - q / 2),
    ]
    rows = [kinds[i] for i in rng.integers(0, len(kinds), rng.integers(1, 12))]
    return [tuple(row[i] for i in rng.permutation(len(row))) for row in rows]


@pytest.mark.parametrize("seed", range(40))
def test_numbers_trials_and_verdicts_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    model = rows_model(*random_rows(rng))
    counts = pl.TransitionCounts(model.graph, rng.integers(0, 300, model.graph.n_transitions), "independent")
    fixed, slow = find_fixed_numbers(model), slow_numbers(model)
    trials = fixed.trials(counts)
    quick = zip(fixed.choice, fixed.transition, fixed.number, trials, strict=True)
    assert sorted((int(c), int(t), fixed.numbers[i], int(n)) for c, t, i, n in quick) == sorted(
        (c, t, number, int(counts.counts[list(among)].sum())) for c, t, number, among in slow
    )
    share = 0.1 / (2 if fixed.n_pooled else 1) / max(len(slow), 1)
    excluded = {
        t
        for _, t, number, among in slow
        for low, high in [clopper_pearson(counts.counts[t], counts.counts[list(among)].sum(), share)]
        if not low <= number <= high
    }
    texts = excluded_numbers(model, fixed, counts, error=0.1, confidence=0.9)
    named = [text for text in texts if text.startswith("state")]
    assert len(named) == min(len(excluded), 3)
    assert bool(texts) >= bool(excluded)


# Spaces that leave an expression one value


def constant_by_space(name):
    box = pl.ParameterSpace.box
    half = [p + q - 0.5, 0.5 - p - q]
    return {
        "a point": rows_model((p, 1 - p), space=box({"p": (0.3, 0.3)})),
        "a point that is no float": rows_model((p, 1 - p), space=box({"p": ("1/3", "1/3")})),
        "a line": rows_model((p + q, 1 - p - q), space=box({"p": (0, 1), "q": (0, 1)}, constraints=half)),
        "a line, three outcomes": rows_model(
            (p + q, (1 - p - q) / 2, (1 - p - q) / 2), space=box({"p": (0, 1), "q": (0, 1)}, constraints=half)
        ),
        "a product": rows_model((p * q, 1 - p * q), space=box({"p": (0.5, 0.5), "q": (0.5, 0.5)})),
    }[name]


LEFT_BY_SPACE = ["a point", "a point that is no float", "a line", "a line, three outcomes", "a product"]


@pytest.mark.parametrize(
    ("name", "sets", "sampling"),
    [*size(zip(LEFT_BY_SPACE, cycle(SETS), cycle(SAMPLINGS), strict=False), product(LEFT_BY_SPACE, SETS, SAMPLINGS))],
)
def test_an_expression_that_the_space_leaves_one_value_is_tested_as_well(name, sets, sampling):
    model = constant_by_space(name)
    n_transitions = int(model.graph.first_transition[1])
    for heads in (0.99, 0.02):
        rest = (1 - heads) / (n_transitions - 1)
        seen = tuple(round(900_000 * share) for share in (heads, *[rest] * (n_transitions - 1)))
        certificate = pl.certify(model, counts_of(model, seen, sampling=sampling), goal(model), confidence_set=sets)
        assert certificate.status == "model rejected"
        assert any(text.startswith("no parameters fit ") for text in certificate.claim.reason.split("; "))


@pytest.mark.parametrize("sets", SETS)
def test_the_value_that_the_space_leaves_is_not_contradicted_by_itself(sets):
    for name, heads in (("a point", 0.3), ("a line", 0.5), ("a product", 0.25)):
        model = constant_by_space(name)
        seen = (round(heads * 10**6), 10**6 - round(heads * 10**6))
        assert not is_contradicted(model, counts_of(model, seen), confidence_set=sets)


# Online


@pytest.mark.slow
def test_learning_online_finds_a_number_that_is_wrong():
    """The coin of the environment shows heads nine times of ten."""
    model, truth = (rows_model((heads, 1 - heads), (p, 1 - p)) for heads in (Fraction(1, 2), Fraction(9, 10)))
    environment = pl.online.simulator(truth, {"p": 0.3, "q": 0.5}, rng=1, max_steps=2)
    records = list(pl.learn_online(model, environment, goal(model), episodes=2000))
    assert records[0].status != "model rejected"
    assert records[-1].status == "model rejected"


def test_testing_changes_nothing_but_the_share_if_all_numbers_are_right():
    model = rows_model((0.5, 0.5), (p, 1 - p))
    learned = learn(model, counts_of(model, (50, 50), (30, 70)))
    again = check_fixed_numbers(learned, find_fixed_numbers(model))
    assert again.region is learned.region
    assert again.bounds is learned.bounds
