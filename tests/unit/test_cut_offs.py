"""How many runs reach each step, and how many are censored in it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from in_format import in_format

import plumdp as pl
from plumdp.data.censoring import CensoredRuns, CensoredStep
from plumdp.data.report import report_from

ASKED = 'P=? [ F<=3 status="ill" ]'
(P,) = pl.parameters("p")
GO_ON = pl.explore(
    lambda s: {"wait": [(P, s._replace(status="ill")), (1 - P, s)]} if s.status == "well" else {"stay": [(1, s)]},
    {"status": "well"},
    space=pl.ParameterSpace.unit("p"),
)


def life(runs):
    """Return the rows of runs by how many steps they made, and whether they ended ill; others say nothing of it."""
    rows = [
        {"unit": unit, "step": step, "status": "ill" if is_ill and step == n else "well", "action": "wait"}
        for unit, (n, is_ill) in enumerate(runs)
        for step in range(n + 1)
    ]
    frame = pd.DataFrame(rows)
    is_last = frame.groupby("unit").step.transform("max") == frame.step
    return frame.assign(action=frame.action.mask(is_last))


def read(frame, **options):
    columns = {"episode": "unit"}
    return pl.read_log(GO_ON, frame, on_unmatched="report", **in_format(columns=columns, **options)).counts


def by_hand(runs):
    """Return what is counted, run by run."""
    return [
        CensoredStep(t + 1, begun, sum(n == t and not ill for n, ill in runs))
        for t in range(max(n for n, _ in runs) + 1)
        if (begun := sum(n > t or (n == t and not ill) for n, ill in runs))
    ]


def some_runs(seed=1, n=400):
    rng = np.random.default_rng(seed)
    return [(int(steps), bool(ill)) for steps, ill in zip(rng.integers(1, 7, n), rng.random(n) < 0.4, strict=True)]


def test_runs_that_begin_a_step_and_are_cut_off_in_it_are_counted():
    runs = some_runs()
    assert read(life(runs)).report.censored_runs.steps() == by_hand(runs)


@pytest.mark.parametrize("order", ["as it is", "shuffled", "with copies"])
def test_the_order_and_copies_of_rows_make_no_difference(order, tmp_path):
    runs, frame = some_runs(2), life(some_runs(2))
    frame = frame if order == "as it is" else frame.sample(frac=1, random_state=1)
    frame = pd.concat([frame, frame.head(50)]) if order == "with copies" else frame
    frame.to_csv(tmp_path / "log.csv", index=False)
    assert (
        read(frame).report.censored_runs.steps()
        == read(str(tmp_path / "log.csv")).report.censored_runs.steps()
        == by_hand(runs)
    )


def test_rows_with_their_next_state_have_the_same_ends():
    runs = some_runs(3)
    frame = life(runs)
    after = frame.groupby("unit").status.shift(-1)
    rows = frame.assign(next_status=after)[after.notna()]
    assert read(rows, form="transitions").report.censored_runs.steps() == by_hand(runs)


def test_ends_are_kept_in_files_of_counts_and_summed(tmp_path):
    one, other = some_runs(5), some_runs(6, n=90)
    pl.write_counts(read(life(one)), tmp_path / "one.parquet")
    both = pl.read_counts(GO_ON, tmp_path / "one.parquet") + read(life(other))
    assert both.report.censored_runs.steps() == by_hand(one + other)
    assert report_from(both.report.to_dict()) == both.report


def test_ends_of_reports_that_were_written_before_are_unknown():
    told = read(life(some_runs())).report.to_dict()
    del told["censored_runs"]
    assert report_from(told).censored_runs == CensoredRuns()


def test_runs_that_all_stop_after_the_same_steps_are_not_warned_about():
    runs = [(12, False)] * 300 + [(n, True) for n in range(1, 12)] * 20
    report = read(life(runs)).report
    assert report.censored_runs.steps()[-1] == CensoredStep(13, 300, 300)
    assert not report.censored_runs.notable()
    assert "censored in it" not in str(report)


def test_few_runs_and_steps_that_hardly_any_run_ends_are_not_warned_about():
    assert not CensoredRuns((0, 4), (0, 0, 10)).notable()  # of 14, which may be chance
    assert not CensoredRuns((0, 0, 0, 500), (0, 0, 0, 0, 1)).notable()  # one run longer than the planned ones
    assert [each.step for each in CensoredRuns((0, 5), (0, 0, 10)).notable()] == [2]


def test_the_last_of_many_steps_is_no_step():
    ends = CensoredRuns((0,) * 1_000 + (700,), (0,) * 1_000 + (300,))
    assert ends.steps()[-1] == CensoredStep(1_000, 1_000, 0)


def test_a_state_from_which_no_run_goes_on_is_an_end():
    frame = life([(3, False), (5, False)]).assign(status=lambda rows: rows.status.mask(rows.action.isna(), "sold"))
    model = pl.explore(
        lambda s: {"wait": [("1/2", s), ("1/2", s._replace(status="sold" if s.status == "well" else "well"))]},
        {"status": "well"},
    )
    found = pl.read_log(model, frame, pl.LogFormat(columns={"episode": "unit"}))
    assert found.report.censored_runs == CensoredRuns((), (0, 0, 0, 1, 0, 1))


@pytest.fixture(scope="module")
def yearly(tmp_path_factory):
    """The trial in rows of a year, of which the last has no row unless the patient became ill in it."""
    table = Path(pytest.importorskip("lifelines").__file__).parent / "datasets" / "ACTG175.csv"
    trial = pd.read_csv(table)
    last = (np.ceil(trial.days / 365) - (trial.cens == 0)).clip(upper=3).astype(int)
    ill = (trial.cens == 1) & (trial.days <= 1095)
    frame = life([*zip(last.tolist(), ill.tolist(), strict=True)]).rename(columns={"step": "year"})
    frame.to_csv(path := tmp_path_factory.mktemp("trial") / "yearly.csv", index=False)
    return path


def test_the_trial_in_years_says_who_was_cut_off_in_start_certificate_and_report(yearly):
    ends = pl.read_log(
        GO_ON, yearly, pl.LogFormat(columns={"episode": "unit", "step": "year"}), on_unmatched="report"
    ).report.censored_runs
    assert ends.steps()[2] == CensoredStep(3, 1590, 918)
    assert max(ends.notable(), key=lambda each: each.n_cut) == ends.steps()[2]
    found = pl.start(yearly, pl.LogFormat(columns={"episode": "unit", "step": "year"}))
    assert "that began step 3 were censored in it" in dict(found.facts)["censored"]
    certificate = pl.certify(found.model, found.log, ASKED, confidence=0.95)
    step = next(each for each in certificate.rests_on.data_quality.report.censored_runs.notable() if each.step == 3)
    *_, rows = certificate.claim.rungs  # runs that are censored count for both ends of the others
    (said,) = (text for text in rows.premises if str(step) in text and text.startswith("no step is missing"))
    assert str(step) in said.brief


def test_the_trial_in_months_warns_of_nothing():
    found = pl.start("example:trial")
    assert "censored" not in dict(found.facts)
    assert not found.log.counts.report.censored_runs.notable()


def test_the_trial_in_years_is_contradicted_by_what_came_before_and_the_way_out_is_named(yearly):
    """The share that becomes ill grows from year to year, for the most part as those who are censored are left out."""
    found = pl.start(yearly, pl.LogFormat(columns={"episode": "unit", "step": "year"}))
    certificate = pl.certify(found.model, found.log, ASKED, confidence=0.95)
    assert certificate.beside.p_value < 1e-6
    of_rows = certificate.claim.rungs[-1]
    assert of_rows.status == "model rejected"
    assert "after 2 or more earlier visits in its run" in of_rows.reason  # the third year since joining
    assert "--remember visits" in of_rows.reason


def test_the_trial_in_months_that_remember_the_step_is_not_contradicted():
    found = pl.start("example:trial", remember="step")
    certificate = pl.certify(found.model, found.log, 'Pmin=? [ F<=24 status="ill" ]', confidence=0.95)
    assert certificate.status == "certified"
