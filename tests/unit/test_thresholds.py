"""Thresholds: a yes and a no are true for all parameters of the region, and for all policies if they are about all.

The oracle enumerates all memoryless policies, which are enough for the best and the worst value, and solves linear
equations for each of them at points of the region. The models have one parameter, so that the region is an interval.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from row_models import listed
from support.refusals import rows

import plumdp as pl
from plumdp.certifying.thresholds import Verdict, decide
from plumdp.model.language.threshold import is_threshold, parse_threshold
from plumdp.result.printing import outward

(P,) = pl.parameters("p")
N_STATES = 5
SPACE = pl.ParameterSpace.box({"p": ("0.05", "0.95")})


def random_model(seed):
    """Return a model whose states 0 to 2 have two actions with random successors; 3 is the goal, 4 a trap."""
    rng = np.random.default_rng(seed)
    shapes = [P, 1 - P, P / 2 + Fraction(1, 4), (1 - P) / 2, Fraction(1, 3) + P / 3]
    rows = {}
    for x, action in product(range(3), ("a", "b")):
        share = shapes[rng.integers(len(shapes))]
        good, bad = rng.choice(N_STATES, size=2, replace=False)
        rows[x, action] = [(share, int(good)), (1 - share, int(bad))]

    rows = {x: {action: rows[x, action] for action in "ab"} for x in range(3)}
    return listed(rows, SPACE, at="x", labels={"goal": 3}, rewards={"steps": lambda s: int(s.x < 3)})


def best_and_worst(model, at):
    """Return the largest and the smallest probability of the goal over all memoryless policies at a point."""
    graph = model.graph
    probability = model.probabilities({"p": Fraction(at)})[model.expression]
    goal = model.labels["goal"]
    values = []
    for choices in product(*(range(*graph.first_choice[s : s + 2]) for s in range(graph.n_states))):
        matrix = np.zeros((graph.n_states, graph.n_states))
        for state, choice in enumerate(choices):
            for edge in range(*graph.first_transition[choice : choice + 2]):
                matrix[state, graph.successor[edge]] += probability[edge]
        values.append(_reach(matrix, goal)[graph.initial_state])
    return max(values), min(values)


def _reach(matrix, goal):
    """Return the probability of the goal in a chain: states that cannot reach it have none."""
    can = goal.copy()
    for _ in range(len(goal)):
        can |= (matrix[:, can] > 0).any(axis=1)
    open_states = np.flatnonzero(can & ~goal)
    value = goal.astype(float)
    inner = np.eye(len(open_states)) - matrix[np.ix_(open_states, open_states)]
    value[open_states] = np.linalg.solve(inner, matrix[np.ix_(open_states, np.flatnonzero(goal))].sum(axis=1))
    return value


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_no_verdict_is_wrong_at_any_point_of_the_region_for_any_policy(seed):
    model = random_model(seed)
    counts = pl.simulate(model, {"p": "0.4"}, 30, rng=seed, max_steps=5)
    learned = pl.learn(model, counts, confidence=0.95)
    if learned.conflict is not None:
        pytest.skip("1 in 20 times the region may be empty")
    low, high = float(learned.region.lower[0]), float(learned.region.upper[0])
    values = [best_and_worst(model, at) for at in np.linspace(max(low, 0.05), min(high, 0.95), 5)]
    slack = 1e-9  # of the oracle
    truths = {
        "Pmax>={}": lambda number: [best >= number - slack for best, _ in values],
        "Pmax<={}": lambda number: [best <= number + slack for best, _ in values],
        "Pmin>={}": lambda number: [worst >= number - slack for _, worst in values],
        "Pmin<={}": lambda number: [worst <= number + slack for _, worst in values],
    }
    bests, worsts = zip(*values, strict=True)
    telling = [(a + b) / 2 for ends in (bests, worsts) for a, b in ((min(ends), max(ends)), (ends[0], ends[1]))]
    for number, (form, truth) in product(np.clip([*np.linspace(0, 1, 5), *telling], 0, 1), truths.items()):
        verdict = decide(learned, f'{form.format(number)} [ F "goal" ]').verdict
        if verdict == "yes":
            assert all(truth(number)), (form, number)
        if verdict == "no":
            assert not any(truth(number + (slack if ">" in form else -slack) * 2)), (form, number)


def test_what_the_safe_policy_cannot_reach_another_might():
    """The safe action wins half of the time, the other with p, which is hardly known: the safe one is recommended."""

    def step(state):
        if state.x:
            return {"stay": [(1, state)]}
        ends = [state._replace(x=1), state._replace(x=2)]
        half = Fraction(1, 2)
        return {"safe": list(zip((half, half), ends, strict=True)), "risky": list(zip((P, 1 - P), ends, strict=True))}

    model = pl.explore(step, {"x": 0}, space=SPACE, labels={"goal": lambda s: s.x == 1})
    learned = pl.learn(model, pl.simulate(model, {"p": "0.5"}, 20, rng=1, max_steps=1), confidence=0.9)
    answer = decide(learned, 'P>=0.55 [ F "goal" ]')
    assert answer.certificate.lower == pytest.approx(0.5, abs=1e-12)
    assert answer.certificate.upper == pytest.approx(0.5, abs=1e-12)
    assert 0.55 < learned.region.upper[0] <= answer.limit
    assert answer.verdict == "inconclusive"
    assert decide(learned, 'Pmax<=0.55 [ F "goal" ]').verdict == "inconclusive"
    assert decide(learned, 'P<=0.45 [ F "goal" ]').verdict == "inconclusive"


@pytest.fixture(scope="module")
def learned():
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    return pl.learn(study.model, counts)


def test_a_threshold_between_the_bounds_is_not_yet_known(learned):
    certificate = pl.conclude(learned, 'R{"money"}max=? [ F "end" ]')
    between = (certificate.lower + certificate.upper) / 2
    for form in ("R>={}", "Rmax>={}", "Rmax<={}", "Rmax>{}", "Rmax<{}"):
        answer = decide(learned, f'{form.format(between)} [ F "end" ]')
        assert answer.verdict == Verdict.INCONCLUSIVE
        assert answer.headline.startswith("Inconclusive (confidence 99.9 %): the recommended policy has at least 10.")


def test_a_threshold_at_the_bound_itself_is_reached_but_not_passed(learned):
    bound = Fraction(pl.conclude(learned, 'R{"money"}max=? [ F "end" ]').lower)
    assert decide(learned, f'R>={bound} [ F "end" ]').verdict == "yes"
    assert decide(learned, f'R>{bound} [ F "end" ]').verdict == "inconclusive"


def test_the_limit_of_all_policies_is_above_the_bounds_of_each(learned):
    """No policy has more than the limit: not the best at any point, so not one whose upper bound is proved."""
    study = pl.case_study("betting:5")
    limit = decide(learned, 'R>=0 [ F "end" ]').limit
    low, high = learned.region.lower[0], learned.region.upper[0]
    for at in np.linspace(low, high, 5):
        best = pl.stages.solve(pl.stages.instantiate(study.model, {"p": Fraction(at)}), study.objective).lower[0]
        assert best <= limit


@pytest.mark.parametrize(("text", "of_all"), rows("words:yes_about_one_policy"))
def test_yes_to_a_threshold_without_max_or_min_says_that_it_is_about_one_policy(learned, text, of_all):
    """PRISM asks it of all policies; that question is named, can be asked as it is, and is another one."""
    answer = decide(learned, text)
    has = "0 %; " if "<" in text else "at least "  # no policy has a chance of 12
    assert answer.headline.startswith(f"Yes (confidence 99.9 %): the recommended policy has {has}")
    assert answer.headline.endswith(f" was asked. Other policies may do worse: ask {of_all} for all policies.")
    assert answer.to_dict()["headline"] == answer.headline
    assert str(answer).splitlines()[0] == answer.headline
    every = decide(learned, of_all + text[text.index(" [") :])
    assert (every.question.is_negated, every.verdict) == (True, "no")


@pytest.mark.parametrize(("text", "sentence"), rows("words:other_answers"))
def test_other_answers_say_whether_they_are_about_the_policy_found_or_about_all(learned, text, sentence):
    answer = decide(learned, text)
    bounds = {"lower": outward(answer.certificate.lower, -1, 3), "limit": outward(answer.limit, 1, 3)}
    assert answer.headline == sentence.format(**bounds)


@pytest.mark.parametrize(("text", "sentence"), rows("words:of_chains"))
def test_answers_about_a_chain_do_not_speak_of_policies(text, sentence):
    model = listed({0: {"throw": [(P, 1), (1 - P, 2)]}}, SPACE, at="x", labels={"goal": 1})
    answer = decide(pl.learn(model, pl.simulate(model, {"p": "0.4"}, 1_000, rng=1, max_steps=1)), text)
    ends = sorted([answer.certificate.claim.bound, answer.limit])
    lower, upper = (f"{outward(100 * end, side, 3)} %" for end, side in zip(ends, (-1, 1), strict=True))
    assert answer.headline == sentence.format(lower=lower, upper=upper)


@pytest.mark.parametrize(("text", "value", "comparison", "is_negated"), rows("words:comparisons"))
def test_a_threshold_is_read_as_a_value_and_a_comparison(text, value, comparison, is_negated):
    question = parse_threshold(text, pl.case_study("betting:5").model)
    assert (question.objective.text, question.comparison) == (value, comparison)
    assert (question.is_negated, question.text) == (is_negated, text)


def test_a_comparison_inside_the_brackets_is_not_a_threshold():
    assert not is_threshold("Pmax=? [ F x>=2 ]")
    assert is_threshold('R{"x>=2"}<=5 [ F "goal" ]')


@pytest.fixture(scope="module")
def one_throw():
    """Return what data say of a coin with p = 0.6: action b wins with p, action a with half of it."""
    model = listed(
        {0: {name: [(f, 3), (1 - f, 4)] for name, f in {"a": P / 2, "b": P}.items()}}, SPACE, at="x", labels={"goal": 3}
    )
    return pl.learn(model, pl.simulate(model, {"p": 0.6}, 2_000, rng=1, max_steps=1), confidence_set="interval")


@pytest.mark.parametrize("direction", ["", "max", "min"])
def test_a_question_about_a_policy_is_answered_by_its_own_bounds(one_throw, direction):
    """Whatever max and min say, and whatever other policies reach: action a is the worse one."""
    certificate = pl.conclude(one_throw, 'Pmax=? [ F "goal" ]', policy="a")
    low, high = certificate.lower, certificate.upper
    assert 0.2 < low < 0.3 < high < pl.conclude(one_throw, 'Pmax=? [ F "goal" ]').lower - 0.05
    cases = (low - 0.01, "yes", "no"), (high + 0.01, "no", "yes"), ((low + high) / 2, "inconclusive", "inconclusive")
    said = {
        "yes": "Yes (confidence 99.9 %): this policy has at ",
        "no": "No (confidence 99.9 %): this policy has at ",
        "inconclusive": "Inconclusive (confidence 99.9 %): this policy ",
    }
    for number, of_least, of_most in cases:
        for comparison, verdict in ((">=", of_least), (">", of_least), ("<=", of_most), ("<", of_most)):
            answer = decide(one_throw, f'P{direction}{comparison}{number} [ F "goal" ]', policy="a")
            assert answer.verdict == verdict, (comparison, number)
            assert answer.headline.startswith(said[verdict])
            assert "Other policies" not in answer.headline
            again = decide(one_throw, answer.question, certificate=answer.certificate)
            assert (again.verdict, again.headline) == (answer.verdict, answer.headline)


def test_a_policy_that_draws_is_worth_what_lies_between_its_actions(one_throw):
    a, b, both = (pl.conclude(one_throw, 'Pmax=? [ F "goal" ]', policy=policy) for policy in ("a", "b", "uniform"))
    assert a.upper < both.lower < 0.45 < both.upper < b.lower
    number = (a.upper + both.lower) / 2
    asked = f'P>={number} [ F "goal" ]'
    verdicts = [decide(one_throw, asked, policy=policy).verdict for policy in ("a", "b", "uniform")]
    assert verdicts == ["no", "yes", "yes"]
