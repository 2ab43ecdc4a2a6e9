"""Advice on more data: rates against hand calculations, designs against brute force, and what is refused."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import tank
from row_models import listed
from shorthand import explain
from test_table_certificates import REACH, REWARDS, data

import plumdp as pl
from plumdp.confidence.sets import ModelCache
from plumdp.explaining.advice import advise
from plumdp.explaining.design import ENOUGH, UNIFORM_SHARE, ValueQuestion, plan_sampling, table_question
from plumdp.explaining.expected_runs import ExpectedRewards, RunLaw
from plumdp.model.policy import check_policy
from plumdp.model.question import ask
from studies import advise as measured


def apart():
    """Return a model of two untied rows, of which the second is visited seldom, and data."""
    model = listed({0: {"go": [1, 2, 3]}, 1: {"go": [2, 3]}}, None, at="x", labels={"goal": 2})
    point = np.array([0.1, 0.5, 0.4, 0.3, 0.7, 1, 1])
    return (
        model,
        point,
        pl.simulate(
            model, point, 20_000, rng=3, max_steps=3, stop=model.labels["goal"] | (model.graph.states["x"] == 3)
        ),
    )


def test_the_variance_of_each_row_is_that_of_the_delta_method():
    """The value is p01 q + p02, and its derivatives are q, 1, 0 along the first row, and p01 and 0 along the second."""
    model, _, counts = apart()
    learned = pl.learn(model, counts, objectives=[REACH])
    question = table_question(learned, ask(REACH, model), model.graph.first_choice[:-1])
    p, q = counts.counts[:3] / counts.counts[:3].sum(), counts.counts[3:5] / counts.counts[3:5].sum()
    ahead = np.array([q[0], 1, 0])
    expected = [p @ ahead**2 - (p @ ahead) ** 2, p[0] ** 2 * q[0] * q[1]]
    assert question.of_visit[:2] == pytest.approx(expected, rel=0.01)
    assert not question.of_visit[2:].any()
    assert question.value == pytest.approx(p @ ahead, rel=0.01)


def test_no_other_division_of_the_visits_is_better():
    """Visits of both rows are moved by hundredths; a hundred more in all are rounding."""
    model, _, counts = apart()
    learned = pl.learn(model, counts, objectives=[REACH])
    question = table_question(learned, ask(REACH, model), model.graph.first_choice[:-1])
    seen = question.information(counts.counts.astype(float))
    more = question.of_visits(question.directly(counts.counts.astype(float), 0.25))
    assert question.variance(seen + more) == pytest.approx(question.variance(seen) / 16, rel=1e-3)
    total = more.sum()
    others = [question.variance(seen + total * np.array([s, 1 - s, 0])) for s in np.linspace(0, 1, 101)]
    assert question.variance(seen + more) <= min(others) * 1.0001


@pytest.mark.parametrize("text", [REACH, REWARDS[0], 'Pmin=? [ G !"bad" ]'])
def test_as_many_runs_as_are_advised_bring_the_width_that_was_wanted(text):
    model, point, counts = data(n_runs=5000)
    learned = pl.learn(model, counts, objectives=[text])
    found = pl.conclude(learned, text)
    advice = pl.advise(learned, text, width=(found.upper - found.lower) / 3)
    like_these = advice.enough[0]
    more = pl.simulate(model, point, like_these.runs, rng=5, max_steps=60, stop=model.labels["end"])
    both = pl.certify(model, more, text, policy=found.policy, prespecified=True)
    assert (both.upper - both.lower) == pytest.approx(advice.target, rel=0.35)
    assert "The rows that limit the width most" in str(advice)
    assert (advice.directly > 0).any()


@pytest.mark.night
def test_findings_and_reports_name_the_rows_that_limit_the_width(tmp_path):
    model, _, counts = apart()
    found = pl.certify(model, counts, REACH)
    findings = explain(model, counts, found)
    assert [rung.relaxation for rung in findings.ladder] == ["interval", "coupled"]
    assert findings.expressions[0].text == "state (x=0), action 'go', to (x=1)"
    assert findings.expressions[0].lower < 0.1 < findings.expressions[0].upper
    assert "state (x=0), action 'go'" in findings.advice["sentences"][1]
    pl.write_report(found, findings, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "The rows that limit the width most" in page
    assert "parameters" not in page.partition("Sources of uncertainty")[2].partition("</section>")[0]


def test_a_width_that_the_bounds_have_already_and_values_that_are_known_are_refused():
    model, _, counts = apart()
    learned = pl.learn(model, counts, objectives=[REACH])
    with pytest.raises(pl.DataError, match="apart now"):
        pl.advise(learned, REACH, width=0.9)
    known = pl.learn(model, counts, objectives=["Pmax=? [ F true ]"])
    with pytest.raises(pl.DataError, match="the value is known"):
        pl.advise(known, "Pmax=? [ F true ]")


a, b = pl.parameters("a", "b")
SPACE = pl.ParameterSpace.unit("a", "b")
TRUTH = {"a": Fraction(3, 10), "b": Fraction(8, 10)}


def workshop(second=b):
    """Return a model in which one may try coin a, try coin b, rest, or do the job, which needs a and then b."""

    half = Fraction(1, 2)
    rows = {"job": [(a, 1), (1 - a, 4)], "try_a": [(a, 2), (1 - a, 4)], "try_b": [(b, 2), (1 - b, 4)]}
    rows = {0: rows | {"rest": [(half, 2), (half, 4)]}, 1: {"job": [(second, 3), (1 - second, 4)]}}
    return listed(rows, SPACE, labels={"done": 3, "tried": 2}, rewards={"steps": lambda s: s.at < 2})


MODEL = workshop()
DONE = pl.parse_property('Pmax=? [ F "done" ]', MODEL)
STEPS = 2


def learned_from(model=MODEL, objective=DONE, runs=2_000, **options):
    counts = pl.simulate(model, TRUTH, runs, rng=1, max_steps=STEPS)
    chosen = {"confidence_set": "likelihood"} | options
    return pl.learn(model, counts, objectives=[objective], **chosen)


LEARNED = learned_from()


@pytest.fixture(scope="module")
def advice():
    return advise(LEARNED, DONE)


def choice_of(name, at=0):
    graph = MODEL.graph
    state = int(np.flatnonzero(graph.states["at"] == at)[0])
    own = range(graph.first_choice[state], graph.first_choice[state + 1])
    return next(c for c in own if graph.action_names[graph.action[c]] == name)


@pytest.mark.slow
def test_rates_are_those_of_a_hand_calculation(advice):
    """The value a·b has the gradient (b, a), and its variance is b² a(1-a)/m + a² b(1-b)/n after m and n throws.

    The space counts as well, with the precision 12 of the uniform law, and moves the estimate a little. One more throw
    of a lowers the width by half the share b² x² (1 / a(1-a)) of the variance, with x = a(1-a)/m.
    """
    visits = LEARNED.counts.visits
    m = visits[choice_of("job")] + visits[choice_of("try_a")]
    n = visits[choice_of("job", at=1)] + visits[choice_of("try_b")]
    at_a, at_b = LEARNED.estimate
    one, other = m / (at_a * (1 - at_a)) + 12, n / (at_b * (1 - at_b)) + 12
    variance = at_b**2 / one + at_a**2 / other
    rate_a = (at_b / one) ** 2 / (at_a * (1 - at_a)) / (2 * variance)
    rate_b = (at_a / other) ** 2 / (at_b * (1 - at_b)) / (2 * variance)
    assert advice.rate[choice_of("try_a")] == pytest.approx(rate_a, rel=0.01)
    assert advice.rate[choice_of("job")] == pytest.approx(rate_a, rel=0.01)
    assert advice.rate[choice_of("try_b")] == pytest.approx(rate_b, rel=0.01)
    assert advice.rate[choice_of("rest")] == 0
    rates = {each.outcomes: each.rate for each in advice.classes}
    assert sorted(rates.values()) == pytest.approx(sorted([rate_a, rate_b]), rel=0.01)


def test_no_mixture_of_actions_beats_the_advised_one():
    """All mixtures on a grid, with variances in closed form: a run is one action, and a job throws b if a comes up.

    Rounds end when less than 2 % of the variance are left to gain; 2 % of the runs are uniform.
    """
    at = np.array([0.3, 0.8])
    probability = MODEL.expressions.evaluate(at[None, :])[:, 0][MODEL.expression]
    table = pl.learn(MODEL, LEARNED.counts, confidence_set="likelihood").table
    rewards = ExpectedRewards(table, table.values(at)[0], np.ones(len(table.is_class)), (), {})
    question = ValueQuestion(MODEL.graph, table, at, probability, at[::-1], 12 * np.eye(2), rewards)
    law = RunLaw(MODEL.graph, probability, MODEL.graph.states["at"] > 1, STEPS)
    runs = 1_000
    weights = plan_sampling(question, law, np.zeros((2, 2)), runs)
    shares = np.arange(0, 101) / 100
    job, try_a = (grid.ravel() for grid in np.meshgrid(shares, shares))
    try_b = 1 - job - try_a
    one, other = runs * (job + try_a) / (0.3 * 0.7) + 12, runs * (0.3 * job + try_b) / (0.8 * 0.2) + 12
    variance = np.where(try_b >= -1e-9, 0.8**2 / one + 0.3**2 / other, np.inf)
    found = question.variance(runs * question.of_visits(law.visits(weights)))
    assert variance.min() * (1 - 1e-3) <= found <= variance.min() / (1 - UNIFORM_SHARE) / (1 - ENOUGH) * 1.003
    assert weights[choice_of("rest")] == pytest.approx(UNIFORM_SHARE / 4, abs=1e-4)  # as line searches leave it


def test_the_advised_policy_can_be_simulated_and_is_narrower_than_uniform(advice):
    assert (check_policy(MODEL.graph, advice.sampling) == advice.sampling).all()
    by = {prediction.sampling: prediction.width for prediction in advice.predictions}
    assert by["advised"] < by["uniform"] < advice.width
    pl.simulate(MODEL, TRUTH, 10, rng=1, max_steps=STEPS, policy=advice.sampling)


def test_predictions_say_how_many_runs_were_seen_and_how_many_halve_the_width(advice):
    assert (advice.n_runs, advice.max_steps) == (2_000, STEPS)
    assert [p.sampling for p in advice.predictions] == ["like these", "uniform", "certified policy", "advised"]
    assert [p.sampling for p in advice.enough] == ["like these", "advised"]
    for prediction in advice.enough:
        assert prediction.width == pytest.approx(advice.width / 2, rel=0.03)
    like_these, advised = advice.enough
    assert 5_000 < like_these.runs < 10_000
    assert advised.runs < 0.8 * like_these.runs


def test_the_best_choices_are_those_where_runs_gain_most(advice):
    worth = advice.rate * advice.visits_per_run
    order = advice.best_choices(3)
    assert (np.diff(worth[order]) <= 0).all()
    assert worth[order[0]] == worth.max()
    assert choice_of("rest") not in advice.best_choices(100)


def test_the_policy_is_written_with_its_names(advice, tmp_path):
    advice.to_csv(tmp_path / "policy.csv")
    lines = (tmp_path / "policy.csv").read_text().splitlines()
    assert lines[0] == "at,action,probability"
    assert len(lines) == 1 + MODEL.graph.n_choices
    assert float(lines[1].split(",")[2]) == advice.sampling[0]


def test_advice_is_ready_for_json_and_for_reading(advice):
    facts = json.loads(json.dumps(advice.to_dict()))
    assert facts["choices"][0]["action"] in ("job", "try_a", "try_b")
    assert facts["enough"][0]["uses"] == "new runs alone"
    text = str(advice)
    assert text.split("\n")[1].startswith("  To halve the width of the bracket (now ")
    assert "collect about this many more runs: " in text
    assert " like these*" in text


def test_bounds_that_are_not_finite_are_said_to_be_so(advice):
    endless = replace(advice, width=np.inf, enough=(), predictions=(replace(advice.predictions[0], width=np.inf),))
    assert endless.sentences()[:2] == [
        f"The bracket has an end that is not finite, after {advice.n_steps:,} steps.",
        "Expected width after 2,000 more runs, in percentage points: infinite like these.",
    ]
    assert json.loads(json.dumps(endless.to_dict()))["width"] is None


@pytest.mark.night
@pytest.mark.parametrize("kind", ["interval", "l1", "ellipsoid"])
def test_other_sets_have_advice_as_well(kind):
    found = advise(learned_from(confidence_set=kind), DONE, runs=8_000)
    widths = {p.sampling: p.width for p in found.predictions}
    assert widths["like these"] < found.width
    assert widths["advised"] < found.width
    assert found.rate[choice_of("rest")] == 0


@pytest.mark.night
def test_a_sampling_policy_of_ones_own_is_predicted_too():
    mine = np.where(np.arange(MODEL.graph.n_choices) == choice_of("rest"), 1.0, 0.0)
    weights = np.where(MODEL.graph.state_of_choice() == MODEL.graph.initial_state, mine, 1.0)
    found = advise(LEARNED, DONE, runs=500, sampling=weights)
    given = next(p for p in found.predictions if p.sampling == "given policy")
    assert given.width == pytest.approx(found.width, rel=0.01)  # resting shows nothing


def test_a_contradiction_is_refused():
    counts = np.zeros(MODEL.graph.n_transitions, dtype=np.int64)
    first = MODEL.graph.first_transition
    for name, pair in (("try_a", (900, 100)), ("job", (100, 900)), ("rest", (1, 1))):
        counts[first[choice_of(name)] : first[choice_of(name)] + 2] = pair
    learned = pl.learn(MODEL, pl.TransitionCounts(MODEL.graph, counts, "trajectories"), confidence_set="likelihood")
    with pytest.raises(pl.DataError) as error:
        advise(learned, DONE)
    assert str(error.value) == "the data reject the model: more of them do not narrow the bounds; certify says why"


def test_a_value_that_is_infinite_is_refused():
    until = pl.parse_property('R{"steps"}max=? [ F "done" ]', MODEL)
    with pytest.raises(pl.DataError) as error:
        advise(LEARNED, until)
    assert str(error.value) == (
        "the value of the policy is infinite at the estimate: it has no gradient, and no data narrow it"
    )


def test_a_value_that_no_parameter_decides_is_refused():
    first_step = pl.parse_property('R{"steps"}max=? [ C<=1 ]', MODEL)
    with pytest.raises(pl.DataError) as error:
        advise(LEARNED, first_step)
    assert str(error.value) == "the value of the policy does not depend on the parameters: no data narrow it"


@pytest.mark.parametrize("runs", [0, -3, 2.5])
def test_a_number_of_runs_is_a_whole_number(runs):
    with pytest.raises(pl.DataError) as error:
        advise(LEARNED, DONE, runs=runs)
    assert str(error.value) == f"runs={runs!r}: give a whole number, at least 1"


@pytest.mark.slow
def test_data_that_are_not_runs_need_a_length():
    ones = np.full(MODEL.graph.n_transitions, 100, dtype=np.int64)
    learned = pl.learn(MODEL, pl.TransitionCounts(MODEL.graph, ones, "independent"))
    with pytest.raises(pl.DataError) as error:
        advise(learned, DONE)
    assert str(error.value) == (
        "the data are not runs from the initial state: say with max_steps how long a run may be"
    )
    found = advise(learned, DONE, max_steps=STEPS, runs=100)
    assert found.n_runs is None
    assert [p.sampling for p in found.predictions] == ["uniform", "certified policy", "advised"]


@pytest.mark.night
@pytest.mark.parametrize("name", ["rover:10,10", "aircraft:20,10", "glider:11,9"])
def test_predicted_widths_are_within_15_percent_of_measured_ones(name):
    found = measured.doubling(pl.case_study(name), seed=7, runs=3_000)
    assert found.predicted == pytest.approx(found.measured, rel=0.15)
    assert found.advised_predicted == pytest.approx(found.advised_measured, rel=0.15)


@pytest.mark.night
@pytest.mark.parametrize("name", ["rover:10,10", "glider:11,9"])
def test_sampling_by_advice_needs_fewer_runs_than_uniform_and_optimistic_sampling(name):
    found = measured.needed(pl.case_study(name), seeds=(5,), target=8_000, first=500)
    assert found["advised"] < 0.7 * min(found["uniform"], found["optimistic"])


@pytest.mark.slow
def test_a_log_with_rows_that_were_left_out_says_how_long_its_runs_are():
    """Runs have two steps each; some rows cannot be read, so that what is left is not made of whole runs."""
    model = workshop()
    runs = pd.DataFrame(pl.data.record(model, TRUTH, 400, rng=1, max_steps=2).columns("trajectories")).astype(
        {"at": "Int64"}
    )
    runs.loc[4:600:30, "at"] = pd.NA
    log = pl.read_log(model, runs, sampling="trajectories", on_unmatched="report")
    assert log.report.rejected > 0
    learned = pl.learn(model, log, objectives=["Pmax=? [ F at=3 ]"])
    assert advise(learned, "Pmax=? [ F at=3 ]").max_steps == 2


# Rows with hidden paths, and rows that the likelihood ignores


@pytest.fixture(scope="module")
def hidden_advice():
    model = tank.tank(steps=2)
    counts = pl.simulate(model, tank.TRUTH, 1_000, rng=1, max_steps=2)
    return advise(pl.learn(model, counts, objectives=[tank.BAD]), tank.BAD)


@pytest.fixture(scope="module")
def blind_advice():
    model = tank.blind_tank(steps=2)
    counts = pl.simulate(model, tank.BLIND_TRUTH, 300, rng=1, max_steps=2)
    return advise(pl.learn(model, counts, objectives=[tank.BAD]), tank.BAD)


@pytest.mark.night
def test_no_prediction_is_wider_than_the_bounds_are_now(hidden_advice):
    assert len(hidden_advice.predictions) == 4
    assert all(p.width <= hidden_advice.width for p in hidden_advice.predictions)
    tiny = advise(LEARNED, DONE, runs=1)
    assert all(p.width <= tiny.width for p in tiny.predictions)


@pytest.mark.night
def test_the_advised_policy_is_not_predicted_to_be_worse_than_any_other(hidden_advice):
    by = {prediction.sampling: prediction.width for prediction in hidden_advice.predictions}
    assert by["advised"] == min(by.values())
    like_these, *advised = (prediction.runs for prediction in hidden_advice.enough)
    assert all(runs < like_these for runs in advised)


@pytest.mark.night
def test_predictions_are_about_what_more_runs_give_though_paths_are_hidden(hidden_advice):
    """1,000 more runs in the same way: the estimate is that of all rows, so that expected counts are right."""
    model = tank.tank(steps=2)
    counts = pl.simulate(model, tank.TRUTH, 1_000, rng=1, max_steps=2)
    more = pl.simulate(model, tank.TRUTH, 1_000, rng=2, max_steps=2)
    learned = pl.learn(model, counts + more, objectives=[tank.BAD])
    certificate = pl.conclude(learned, tank.BAD, policy=hidden_advice.policy)
    assert hidden_advice.predictions[0].width == pytest.approx(certificate.upper - certificate.lower, rel=0.2)


@pytest.mark.night
@pytest.mark.parametrize(("share", "place"), [(0.9, 0), (0.3, -1)])
def test_a_gradient_from_rows_that_the_likelihood_ignores_is_said_first_if_it_is_most_of_it(blind_advice, share, place):
    said = (
        f"{100 * share:.0f} % of the gradient comes from rows that the likelihood ignores: the advised policy is not "
        "planned for what these rows show."
    )
    found = replace(blind_advice, unseen=share).sentences()
    assert found[place] == said
    assert found.count(said) == 1
    assert replace(blind_advice, unseen=0.0).sentences() == [text for text in found if text != said]
    assert blind_advice.unseen > 0.5


@pytest.mark.night
def test_a_value_that_only_ignored_rows_decide_has_no_advice():
    model = workshop(second=a * b + (1 - a) * (1 - b))
    mixed = pl.parse_property('Pmax=? [ F "done" ]', model)
    learned = pl.learn(model, pl.simulate(model, TRUTH, 500, rng=1, max_steps=STEPS), objectives=[mixed])
    blind = ModelCache(model)
    vars(blind)["table"] = replace(learned.table, basis=np.zeros((2, 0)), paths=None)
    with pytest.raises(pl.DataError) as error:
        advise(replace(learned, cache=blind), mixed)
    assert str(error.value) == ("the value depends only on rows that the likelihood ignores: no advice can be planned")
