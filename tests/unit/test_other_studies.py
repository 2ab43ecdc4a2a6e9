"""Evidence from other studies: it cuts the region at its share of the error, and is tested against the data."""

import json
import re

import numpy as np
import pytest
from row_models import row_model
from scipy.stats import binom, binomtest
from shorthand import explain
from tiers import size
from typer.testing import CliRunner

import plumdp as pl
from plumdp.base.errors import ModelError
from plumdp.cli import app
from plumdp.cli.errors import in_command_line_words
from plumdp.confidence.binomial import beta_binomial
from plumdp.confidence.studies import Study
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region.build import project
from plumdp.region.find import enclose, find_region

STUDY = pl.case_study("betting:5")
P = pl.parameters("p")[0]
ASKED = STUDY.objective
COUNTS = ": give successes and trials, whole numbers with at least one trial and no more successes, such as 34 of 210"


def simulated(n, rng=1):
    return pl.simulate(STUDY.model, STUDY.true_point, n, rng=rng, max_steps=6)


@pytest.fixture(scope="module")
def counts():
    return simulated(1000)


def two_coins():
    """Return a model of two parameters, each the probability of a coin."""
    p, q = pl.parameters("p", "q")
    return row_model({"first": [p, 1 - p], "second": [q, 1 - q]}, pl.ParameterSpace.unit("p", "q"))


def tossed(model, rng):
    return pl.simulate(model, {"p": 0.3, "q": 0.4}, 20, rng=rng, max_steps=1)


def exact_interval(successes, trials, error):
    """Return the interval of Clopper and Pearson by SciPy."""
    found = binomtest(successes, trials).proportion_ci(1 - error, "exact")
    return found.low, found.high


# The region


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["likelihood", "interval", "l1", "ellipsoid"])
def test_with_hardly_any_data_the_region_is_the_interval_of_the_study_at_its_share(kind):
    """So its width falls like the root of the number of trials: a hundred times the trials, a tenth of the width."""
    study, widths = pl.case_study("betting:25"), []
    few = pl.simulate(study.model, study.true_point, 3, rng=1, max_steps=26)
    for trials in (400, 40_000):
        successes = trials * 55 // 100
        learned = pl.learn(study.model, few, confidence_set=kind, evidence={"p": (successes, trials)})
        error = float(learned.budget["evidence"]) * learned.error
        low, high = learned.parameters["p"]
        assert (low, high) == pytest.approx(exact_interval(successes, trials, error), rel=1e-3)
        assert low <= exact_interval(successes, trials, error)[0]
        widths.append(high - low)
    assert widths[0] / widths[1] == pytest.approx(10, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["likelihood", "interval"])
def test_the_region_is_what_data_and_study_both_leave(kind, counts):
    """One trial says nothing, but has the same share: it leaves the region of the data alone."""
    alone, both = (
        pl.learn(STUDY.model, counts, objectives=[ASKED], confidence_set=kind, evidence={"p": given})
        for given in ((1, 1), (11_100, 20_000))
    )
    error = float(both.budget["evidence"]) * both.error
    low, high = exact_interval(11_100, 20_000, error)
    of_data = alone.parameters["p"]
    assert both.parameters["p"] == pytest.approx((max(low, of_data[0]), min(high, of_data[1])), rel=1e-3)
    assert np.diff(both.parameters["p"]) < np.diff(of_data)


def test_a_complement_says_the_same_and_a_sum_bounds_the_sum():
    model = two_coins()
    data = tossed(model, 1)
    one, other = (
        pl.learn(model, data, confidence_set="interval", evidence=each).parameters["p"]
        for each in ({"p": (300, 1000)}, {"1 - p": (700, 1000)})
    )
    assert one == pytest.approx(other, abs=1e-9)
    learned = pl.learn(model, data, confidence_set="interval", evidence={"p + q": (7000, 10_000)})
    p, q = pl.parameters("p", "q")
    found = [float(end[0]) for end in project(learned.region, ExpressionTable.build([p + q], ("p", "q")))]
    expected = exact_interval(7000, 10_000, float(learned.budget["evidence"]) * learned.error)
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
def test_without_evidence_nothing_changes(counts):
    plain, empty = (pl.certify(STUDY.model, counts, ASKED, evidence=given) for given in (None, {}))
    one, other = plain.to_dict(), empty.to_dict()
    assert {name for name in one if one[name] != other[name]} <= {"seconds", "provenance"}
    assert plain.options["evidence"] is None
    assert not any("evidence" in words for words, _ in plain.budget)


@pytest.mark.slow
def test_the_truth_is_missed_no_more_often_than_the_error_allows():
    rng, missed, model, n = np.random.default_rng(1), 0, two_coins(), size(30, 100)
    for _ in range(n):
        study, data = {"p": (int(rng.binomial(40, 0.3)), 40)}, tossed(model, rng)
        learned = pl.learn(model, data, confidence=0.6, confidence_set="interval", evidence=study)
        low, high = learned.parameters.get("p", (1.0, 0.0))
        missed += not low <= 0.3 <= high
    assert 0 < missed <= binom.ppf(0.999, n, 0.4)


@pytest.mark.slow
def test_four_times_the_trials_halve_the_bounds_where_the_study_knows_more_than_the_data():
    study = pl.case_study("betting:25")
    data = pl.simulate(study.model, study.true_point, 1000, rng=1, max_steps=26)
    studies = [{"p": (n * 55 // 100, n)} for n in (40_000, 160_000, 640_000)]
    found = [pl.certify(study.model, data, study.objective, evidence=each) for each in studies]
    widths = [one.upper - one.lower for one in found]
    assert [widths[0] / widths[1], widths[1] / widths[2]] == pytest.approx([2, 2], rel=0.02)


# Agreement


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.05, 0.2])
def test_the_p_value_of_agreement_is_valid_exactly(error):
    """All outcomes of 12 trials of the data, with an interval of that error, and 15 of the study, are added up."""
    bounds = [[float(end) for end in beta_binomial(seen, 12, error)] for seen in range(13)]
    p_values = np.array([[Study("p", P, k, 15).p_value(*ends, error) for k in range(16)] for ends in bounds])
    for truth in (0.1, 0.35, 0.5):
        chances = np.outer(binom.pmf(range(13), 12, truth), binom.pmf(range(16), 15, truth))
        for level in (0.06, 0.1, 0.25, 0.5, 0.9):
            assert chances[p_values <= level].sum() <= level
    assert p_values.min() < 2 * error < p_values.max() == 1.0


@pytest.mark.slow
def test_a_study_that_agrees_is_assumed_with_its_p_value(counts):
    found = pl.certify(STUDY.model, counts, ASKED, evidence={"1 - p": (95, 210)})
    assert found.assumptions[-1] == (
        "1 - p is the same in the other study as in these data (95 of 210; agreement with the data has the p-value 1), "
        "its trials were independent and fixed in number, and it was chosen without looking at these data"
    )
    assert (
        "evidence from other studies",
        pl.learn(STUDY.model, counts, objectives=[ASKED]).budget["half_spaces"] / 2,
    ) in (found.budget)


@pytest.mark.parametrize("kind", ["likelihood", "interval", "l1", "ellipsoid"])
def test_a_study_that_contradicts_the_data_is_named(kind, counts):
    learned = pl.learn(STUDY.model, counts, confidence_set=kind, evidence={"p": (34, 210)})
    alone = pl.learn(STUDY.model, counts, confidence_set=kind, evidence={"p": (1, 1)})
    error = float(learned.budget["evidence"]) * learned.error
    low, high = Study("p", P, 34, 210).interval(error)
    assert (low, high) == pytest.approx(exact_interval(34, 210, error), rel=1e-3)
    p_value = re.search(r"p-value ([\d.e-]+)", str(learned.conflict))[1]
    assert float(1 - learned.budget["evidence"]) * learned.error <= float(p_value) <= learned.error
    assert str(learned.conflict) == (
        f"the other study of p (34 of 210) does not agree with these data (p-value {p_value}): leave out this "
        f"evidence, or ask what differs; no parameters fit p in [{low:.6g}, {high:.6g}] (34 of 210 in the other "
        "study) and p in [{:.6g}, {:.6g}] (these data)".format(*alone.parameters["p"])
    )
    found = pl.conclude(learned, ASKED)
    assert found.status == "model contradicted"
    assert found.reason == str(learned.conflict)
    assert not any("other study" in text for text in found.assumptions)


def test_studies_that_contradict_each_other_are_all_named():
    evidence = {"p": (300, 1000), "1 - p": (400, 1000)}
    text = str(pl.learn(STUDY.model, simulated(1), evidence=evidence).conflict)
    assert text.startswith(
        "the other studies and these data exclude each other: leave out evidence, or ask what differs;"
    )
    assert "(300 of 1,000 in the other study)" in text
    assert "(400 of 1,000 in the other study)" in text


@pytest.mark.parametrize("kind", ["likelihood", "interval", "l1", "ellipsoid"])
def test_studies_that_exclude_each_other_only_together_are_a_conflict_in_every_set(kind):
    evidence, model = {"p": (100, 1000), "q": (100, 1000), "p + q": (900, 1000)}, two_coins()
    learned = pl.learn(model, tossed(model, 1), confidence_set=kind, evidence=evidence)
    assert str(learned.conflict).count("in the other study)") >= 1


def test_a_region_that_cannot_be_made_for_another_reason_is_no_conflict():
    """Otherwise a model would be called contradicted that no data speak against."""

    class TooLarge:
        intervals = None

    @enclose.register
    def _refused(first: TooLarge, *_):
        raise ModelError("too many products")

    study = Study("p", P, 500, 1000, error=0.01)
    with pytest.raises(ModelError, match="too many products"):
        find_region(STUDY.model.space, STUDY.model.expressions, [TooLarge(), study])


# What is refused


# Saved, explained, and on the command line


@pytest.mark.slow
def test_a_saved_result_keeps_its_evidence_and_is_explained_with_it(tmp_path, counts):
    found = pl.certify(STUDY.model, counts, ASKED, evidence={"p": (5500, 10_000)})
    found.save(tmp_path / "result")
    again = pl.read_result(tmp_path / "result", STUDY.model)
    assert again.options["evidence"] == {"p": [5500, 10_000]}
    assert again.assumptions == found.assumptions
    assert explain(STUDY.model, counts, again, parts=["ladder", "region"]).about == found.fingerprint
    changed = pl.learn(STUDY.model, counts, objectives=[ASKED])
    with pytest.raises(pl.DataError, match="other options"):
        pl.explain(changed, again)


@pytest.mark.slow
def test_the_command_line_takes_evidence(tmp_path, counts):
    data = str(tmp_path / "counts.parquet")
    pl.write_counts(counts, data)
    runner, certify = CliRunner(), ["certify", "betting:5", data]
    found = json.loads(runner.invoke(app, [*certify, "--evidence", "p=5500/10000", "--json"]).output)
    expected = pl.certify(STUDY.model, counts, ASKED, evidence={"p": (5500, 10_000)})
    assert (found["lower"], found["upper"]) == (expected.lower, expected.upper)
    for given, message in (
        (["p=34"], "--evidence p=34: write EXPRESSION=SUCCESSES/TRIALS, such as p=34/210"),
        (["p=5/3"], "--evidence p=5/3" + COUNTS),
        (["p=3/5", "p=1/2"], "--evidence p=1/2: p is given twice; add up successes and trials"),
    ):
        refused = runner.invoke(app, [*certify, *(part for each in given for part in ("--evidence", each))])
        assert in_command_line_words(*refused.exception.args) == message
