"""Models that are seen now and then: rows are powers, and observations, as booked, have fair factors in fractions."""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from set_points import satisfies
from tiers import size

import plumdp as pl
from plumdp.confidence import observation_paths
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.path_likelihood import PathLevelSet
from plumdp.confidence.path_sums import total
from plumdp.data.seen import Seen
from plumdp.region.ball import Ball
from plumdp.region.boxes import Boxes

WELL, ILL, DEAD = 0, 1, 2
FALLS, HEALS, DIES, DIES_ILL = pl.parameters("a", "r", "m", "h")
ROWS = {
    WELL: [(1 - FALLS - DIES, WELL), (FALLS, ILL), (DIES, DEAD)],
    ILL: [(HEALS, WELL), (1 - HEALS - DIES_ILL, ILL), (DIES_ILL, DEAD)],
    DEAD: [(1, DEAD)],
}
MODEL = pl.explore(
    lambda s: {"live": [(p, s._replace(x=x)) for p, x in ROWS[s.x]]},
    {"x": WELL},
    space=pl.ParameterSpace.box(dict.fromkeys("armh", (0, "0.4"))),
    labels={"dead": lambda s: s.x == DEAD},
)
PANEL = pl.with_gaps(MODEL, [1, 2, 3, 5])
EXACT = pl.with_gaps(MODEL, [1, 2, 3, 5], exact='"dead"')
COLUMNS = {"gap": "months", "after": "seen_after", "partial": "is_last"}
TRUTH = {name: Fraction(n, 20) for name, n in zip("armh", (6, 4, 1, 6), strict=True)}
OTHERS = [{**TRUTH, "m": Fraction(1, 50), "h": Fraction(1, 10)}, {**TRUTH, "m": Fraction(3, 20)}]
GAPS = (1, 2, 3, 5)
START, FIRST, SECOND = WELL, 2, 3  # an observation after two steps, and another one after three


def single_steps(at):
    """Return the matrix of single steps at a point, in fractions."""
    names = MODEL.graph.states["x"].tolist()
    matrix = np.full((3, 3), Fraction(0), dtype=object)
    for state, row in ROWS.items():
        for p, after in row:
            matrix[state, after] += Fraction(p) if isinstance(p, int) else value(p, at)
    assert sorted(names) == [WELL, ILL, DEAD]
    return matrix


def power(matrix, gap):
    return matrix if gap == 1 else power(matrix, gap - 1) @ matrix


@cache
def booked(before, after, gap, *exact):
    """Return the model and the transition that ``read_log`` counts for an observation, a row of a table.

    If the step of a death is known, ``exact`` has the step after which the next state was seen, and whether the
    observation sees no more than who lives.
    """
    frame, model = pd.DataFrame({"x": [before], "next_x": [after], "months": [gap]}), PANEL
    if exact:
        frame, model = frame.assign(seen_after=exact[0], is_last=exact[1], episode=1, step=0), EXACT
    counts = pl.read_log(model, frame, pl.LogFormat(columns=COLUMNS if exact else {"gap": "months"})).counts.counts
    assert counts.sum() == 1
    return model.counted, int(np.argmax(counts))


def value(polynomial, at):
    return polynomial.evaluate({name: at[name] for name in polynomial.names})


def law(counted, transition, at):
    """Return the other transitions of the same observation, and their probabilities at a point."""
    choice = counted.graph.choice_of(transition)
    row = range(*counted.graph.first_transition[choice : choice + 2].tolist())
    return {t: value(counted.expressions.polynomials[counted.expression[t]], at) for t in row}


def test_rows_of_looks_are_powers_of_the_matrix_of_single_steps():
    for at in [TRUTH, *OTHERS]:
        for gap, before in product(GAPS, (WELL, ILL, DEAD)):
            exact = power(single_steps(at), gap)[before]
            for after in np.flatnonzero(exact).tolist():
                counted, transition = booked(before, after, gap)
                assert law(counted, transition, at)[transition] == exact[after]
                assert sum(law(counted, transition, at).values()) == 1


def test_outcomes_of_looks_with_known_deaths_are_those_of_single_steps():
    """Who dies in step m has lived for m - 1 steps, by powers of the matrix in which nobody is dead twice."""
    for at in [TRUTH, *OTHERS]:
        once = single_steps(at)
        once[DEAD, DEAD] = Fraction(0)
        for gap, before, partial in product(GAPS, (WELL, ILL), (False, True)):
            steps = [power(once, m)[before] for m in range(1, gap + 1)]
            observations = {(DEAD, gap, m, partial): steps[m - 1][DEAD] for m in range(1, gap + 1)}
            lives = {(x, gap, gap, partial): steps[-1][x] for x in (WELL, ILL)}
            observations |= {(None, gap, gap, True): sum(lives.values())} if partial else lives
            for (after, *observation), chance in observations.items():
                counted, transition = booked(before, after, *observation)
                assert law(counted, transition, at)[transition] == chance
                assert sum(law(counted, transition, at).values()) == sum(observations.values()) == 1


@pytest.mark.parametrize("panel", [PANEL, EXACT])
def test_sums_over_paths_are_the_outcomes_of_looks(panel):
    counted = panel.counted
    sums = observation_paths.sums_of_observations(counted)
    longer = counted.expression[counted.graph.transitions_of(np.flatnonzero(counted.gaps != 1))]
    assert {counted.expressions.polynomials[f] for f in longer} == sums.keys()
    assert all(total(paths) == outcome for outcome, paths in sums.items())
    assert all(path.constant > 0 for paths in sums.values() for path in paths)
    assert not likelihood_table(counted).left_out


# Ways to book observations: histories of a unit, each with its probability, become rows (before, after, gap)


def histories(n_steps, state=START):
    """Yield the states of a unit after 0, 1, … steps, with their probability at the truth."""
    if n_steps == 0:
        yield Fraction(1), (state,)
        return
    for after, p in enumerate(single_steps(TRUTH)[state]):
        if p:
            for chance, rest in histories(n_steps - 1, after):
                yield p * chance, (state, *rest)


def each_history(book):
    """Return a way to book looks at one unit, without chances of its own."""

    def ways():
        for chance, x in histories(FIRST + SECOND):
            yield chance, book(x)

    return ways


def second(x):
    return (x[FIRST], x[FIRST + SECOND], SECOND)


def all_looks(x):
    return [(START, x[FIRST], FIRST), second(x)]


def leaves_when_seen_ill(x):
    return all_looks(x)[: 1 if x[FIRST] == ILL else 2]


def data_end_in_the_second_gap(x):
    """Nothing is booked of the second observation, whatever is known."""
    return all_looks(x)[:1]


def a_coin_decides_which_looks_are_missed():
    for chance, x in histories(FIRST + SECOND):
        yield chance / 2, all_looks(x)
        yield chance / 2, [(START, x[-1], FIRST + SECOND)]


def later_units_see_earlier_ones():
    """A unit is looked at after one step. If it has died, so is the next one, which else is looked at after three."""
    for chance, x in histories(1):
        gap = 1 if x[1] == DEAD else 3
        for other, y in histories(gap):
            yield chance * other, [(START, x[1], 1), (START, y[gap], gap)]


def lost_because_it_died(x):
    return [] if x[FIRST] == DEAD else all_looks(x)


def pending_deaths_are_counted_at_the_cut(x):
    """Data end after one step: of those who died before, the observation is booked, of the others it is dropped."""
    return [(START, DEAD, FIRST)] if x[1] == DEAD else []


def deaths_have_gaps_of_their_own(x):
    """Who died within the first gap is booked with the time of death, the others with the planned gap."""
    return [(START, DEAD, 1)] if x[1] == DEAD else [(START, x[FIRST], FIRST)]


def deaths_are_booked_although_the_look_is_missed():
    for chance, x in histories(FIRST + SECOND):
        yield chance / 2, all_looks(x)
        yield chance / 2, [(START, DEAD, FIRST) if x[FIRST] == DEAD else (START, x[-1], FIRST + SECOND)]


def after_a_partial_look_from_the_last_known_state(x):
    """At the first observation it is seen who lives, and no more. The second observation is booked from the start."""
    return [(START, DEAD, FIRST)] if x[FIRST] == DEAD else [(START, x[-1], SECOND)]


def all_pairs_of_looks(x):
    return [*all_looks(x), (START, x[-1], FIRST + SECOND)]


def exact(x, start, gap, partial=False):
    """Return the row of an observation if the step of a death is known; a partial one shows who lives, no more."""
    path = x[start : start + gap + 1]
    if DEAD in path:
        return (path[0], DEAD, gap, path.index(DEAD), partial)
    return (path[0], None if partial else path[-1], gap, gap, partial)


def as_long_as_it_lives(x, *observations):
    return [exact(x, *observation) for observation in observations if x[observation[0]] != DEAD]


def deaths_have_their_steps(x):
    return as_long_as_it_lives(x, (0, FIRST), (FIRST, SECOND))


def leaves_when_seen_ill_and_deaths_have_their_steps(x):
    return deaths_have_their_steps(x)[: 1 if x[FIRST] == ILL else 2]


def data_end_in_a_partial_look(x):
    return as_long_as_it_lives(x, (0, FIRST), (FIRST, 2, True))


def a_whole_look_after_a_partial_one_is_where_it_goes_on(x):
    return as_long_as_it_lives(x, (0, FIRST, True), (FIRST + 1, 2))


def a_coin_decides_before_which_looks_are_missed():
    for chance, x in histories(FIRST + SECOND):
        yield chance / 2, deaths_have_their_steps(x)
        yield chance / 2, as_long_as_it_lives(x, (0, FIRST + SECOND))


def lost_because_it_died_though_the_step_is_known(x):
    return [] if DEAD in x[: FIRST + 1] else deaths_have_their_steps(x)


def pending_deaths_are_counted_at_the_cut_with_their_steps(x):
    """Data end after one step: of those who died before, it is booked as it was planned, else it is dropped."""
    return [(START, DEAD, FIRST, 1, False)] if x[1] == DEAD else []


def survivors_alone_are_in_the_partial_look_at_the_cut(x):
    return [(START, DEAD, FIRST, 1, False)] if x[1] == DEAD else [exact(x, 0, 1, True)]


def a_coin_decides_which_looks_are_missed_when_they_come():
    """Who died before has the gap that had been planned, and those whose observation is missed a longer one."""
    for chance, x in histories(FIRST + SECOND):
        yield chance / 2, deaths_have_their_steps(x)
        is_dead = DEAD in x[: FIRST + 1]
        yield chance / 2, [exact(x, 0, FIRST) if is_dead else exact(x, 0, FIRST + SECOND)]


def after_a_partial_look_it_goes_on_from_the_last_known_state(x):
    first = exact(x, 0, FIRST, True)
    return [first] if first[1] == DEAD else [first, (START, x[-1], SECOND, SECOND, False)]


def later_units_wait_for_known_deaths():
    for chance, x in histories(1):
        gap = 1 if x[1] == DEAD else 3
        for other, y in histories(gap):
            yield chance * other, [exact(x, 0, 1), exact(y, 0, gap)]


def earlier_units_see_known_deaths_of_later_ones():
    for chance, observations in later_units_wait_for_known_deaths():
        yield chance, observations[::-1]


def earlier_units_see_later_ones():
    for chance, observations in later_units_see_earlier_ones():
        yield chance, observations[::-1]


RIGHT = [
    each_history(all_looks),
    each_history(leaves_when_seen_ill),
    each_history(data_end_in_the_second_gap),
    a_coin_decides_which_looks_are_missed,
    later_units_see_earlier_ones,
    each_history(deaths_have_their_steps),
    each_history(leaves_when_seen_ill_and_deaths_have_their_steps),
    each_history(data_end_in_a_partial_look),
    each_history(a_whole_look_after_a_partial_one_is_where_it_goes_on),
    a_coin_decides_before_which_looks_are_missed,
    later_units_wait_for_known_deaths,
]
WRONG = [
    each_history(lost_because_it_died),
    each_history(pending_deaths_are_counted_at_the_cut),
    each_history(deaths_have_gaps_of_their_own),
    deaths_are_booked_although_the_look_is_missed,
    each_history(after_a_partial_look_from_the_last_known_state),
    each_history(all_pairs_of_looks),
    earlier_units_see_later_ones,
    each_history(lost_because_it_died_though_the_step_is_known),
    each_history(pending_deaths_are_counted_at_the_cut_with_their_steps),
    each_history(survivors_alone_are_in_the_partial_look_at_the_cut),
    a_coin_decides_which_looks_are_missed_when_they_come,
    each_history(after_a_partial_look_it_goes_on_from_the_last_known_state),
    earlier_units_see_known_deaths_of_later_ones,
]
IDS = [
    "lost_because_it_died",
    "pending_deaths_at_the_cut",
    "deaths_with_gaps_of_their_own",
    "deaths_of_missed_looks",
    "after_a_partial_look",
    "all_pairs_of_looks",
    "by_unit_against_the_order",
    "exact_lost_because_it_died",
    "exact_pending_deaths_at_the_cut",
    "exact_deaths_planned_otherwise_than_survivors",
    "exact_deaths_of_missed_looks",
    "exact_after_a_partial_look",
    "exact_by_unit_against_the_order",
]


def likelihood(observations, at):
    """Return the likelihood ratio of a point to the truth."""
    ratio = Fraction(1)
    for counted, transition in (booked(*observation) for observation in observations):
        ratio *= law(counted, transition, at)[transition] / law(counted, transition, TRUTH)[transition]
    return ratio


def bets(observations, on_life, turns):
    """Return the wealth of bets on life or death, which may turn after each observation by its gap."""
    wealth = Fraction(1)
    for i, observation in enumerate(observations):
        side = on_life != (turns and i > 0 and observations[i - 1][2] != 1)
        counted, seen = booked(*observation)
        after, x = counted.graph.successor, counted.graph.states["x"]
        stakes = {
            t: (Fraction(8, 5) if (x[after[t]] != DEAD) == side else Fraction(5, 8), p)
            for t, p in law(counted, seen, TRUTH).items()
        }
        wealth *= stakes[seen][0] / sum(stake * p for stake, p in stakes.values())
    return wealth


def expectations(ways):
    """Return the expectations of likelihood ratios and of bets, for one way to book observations."""
    every = [*ways()]
    assert sum(chance for chance, _ in every) == 1
    processes = [lambda observations, at=at: likelihood(observations, at) for at in OTHERS]
    processes += [lambda observations, bet=bet: bets(observations, *bet) for bet in product((True, False), repeat=2)]
    return [sum(chance * process(observations) for chance, observations in every) for process in processes]


@pytest.mark.parametrize("ways", RIGHT)
def test_looks_that_were_decided_by_what_was_seen_are_fair(ways):
    assert max(expectations(ways)) == 1


@pytest.mark.parametrize("ways", WRONG, ids=IDS)
def test_a_wrong_way_to_book_looks_is_found(ways):
    assert max(expectations(ways)) > 1


def test_deaths_of_missed_looks_are_wrong_for_bets_alone():
    *ratios, _, _, _, _ = expectations(a_coin_decides_which_looks_are_missed_when_they_come)
    assert ratios == [1, 1]


def looks_at_a_chain_that_turns_back(*gaps):
    """Return a chain between two states, and 2,000 looks at it for a = 0.3 and b = 0.2.

    With a = 0.9 and b = 0.6, two steps have the same probabilities: (1 - a - b)² = 1/4, and a / b is the same.
    """
    a, b = pl.parameters("a", "b")
    rows = [[(1 - a, 0), (a, 1)], [(b, 0), (1 - b, 1)]]
    space = pl.ParameterSpace.unit("a", "b")
    model = pl.explore(lambda s: {"go": [(p, s._replace(x=x)) for p, x in rows[s.x]]}, {"x": 0}, space=space)
    rng, at, seen = np.random.default_rng(1), 0, []
    for gap in rng.choice(gaps, 2000).tolist():
        moves = np.linalg.matrix_power(np.array([[0.7, 0.3], [0.2, 0.8]]), gap)
        seen.append({"x": at, "gap": gap, "next_x": (at := int(rng.random() < moves[at, 1]))})
    panel = pl.with_gaps(model, gaps)
    return panel, pl.read_log(panel, pd.DataFrame(seen))


@pytest.mark.parametrize("gaps", [(2,), (1, 2)])
def test_chains_that_look_alike_after_two_steps_are_told_apart_by_looks_after_one(gaps):
    panel, log = looks_at_a_chain_that_turns_back(*gaps)
    learned = pl.learn(panel, log, confidence=0.95)
    points = [{"a": Fraction(3 * n, 10), "b": Fraction(2 * n, 10)} for n in (1, 3, 2)]
    assert [satisfies(learned.bounds, at) for at in points] == [True, gaps == (2,), False]
    certificate = pl.certify(panel, log, "P=? [ F<=1 x=1 ]", confidence=0.95)
    assert certificate.lower < 0.3 < certificate.upper
    assert (certificate.upper >= 0.9) == (gaps == (2,)) == ("one step apart" in str(certificate))


def test_functions_on_boxes_are_above_the_log_likelihood_of_looks():
    """The log-likelihood is that of powers of matrices in floats."""
    counted = PANEL.counted
    paths = likelihood_table(counted).paths
    rng, off = np.random.default_rng(1), []
    for _ in range(size(20, 500)):
        counts = rng.choice([0, 0, 1, 7, 300, 10**5], counted.graph.n_transitions)
        seen, hidden = paths.pool(Seen(counts))
        level = PathLevelSet(paths, seen, hidden + (hidden == hidden.max()), -1e7, 0.1)
        ends = np.sort(rng.uniform(0.01, 0.39, (2, 4)), axis=0)
        boxes = Boxes(Ball(ends.mean(axis=0), np.diag(ends[1] - ends[0]) / 2), np.zeros((1, 4)), np.ones((1, 4)))
        value, slope, bent, error = (part[0] for part in level.above(boxes))
        for x in rng.uniform(-1, 1, (5, 4)):
            at = map(Fraction, (boxes.centres[0] + boxes.spreads[0] @ x).tolist())
            at = dict(zip(counted.space.names, at, strict=True))
            off += [above(level, paths, at) - (value + slope @ x + x @ bent @ x + error)]
    assert max(off) <= 1e-6


def above(level, paths, at):
    """Return the log-likelihood less its threshold at a point."""
    counts = [(n, f) for n, f in zip(level.outcome_counts, paths.table.outcomes, strict=True) if n]
    counts += [(n, f) for n, f in zip(level.path_counts, (f for row in paths.rows for f in row), strict=True) if n]
    values = [(n, float(value(f, at))) for n, f in counts]
    return (
        sum(n * np.log(p) for n, p in values if p > 0) - level.threshold if all(p > 0 for _, p in values) else -np.inf
    )
