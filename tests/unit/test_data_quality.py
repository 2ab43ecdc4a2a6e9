"""What a certificate says of its data: contradictions of the graph, rows left out, and no data at all."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from coin_model import COIN, coin_step
from in_format import in_format
from shorthand import compare

import plumdp as pl
from plumdp.data.report import KINDS, IngestionReport, report_from

HEADS = pl.parse_property('Pmax=? [ F "heads" ]', COIN)
BIASED = pl.explore(
    coin_step, {"x": 0}, space=pl.ParameterSpace.box({"p": (0.25, 0.75)}), labels={"heads": lambda s: s.x == 1}
)


def log_of(before, action, after, **options):
    frame = pd.DataFrame({"x": before, "action": action, "next_x": after}, dtype=object)
    return pl.read_log(COIN, frame, on_unmatched="report", **in_format(**options))


def throws(*after, **options):
    return log_of([0] * len(after), ["go"] * len(after), after, **options)


REJECTIONS = {
    "impossible transition": (
        lambda: log_of([0, 1], ["go", "stay"], [1, 2]),
        "impossible transition: 1 row; (x=1) 'stay' → (x=2) (1×); the model lacks it: add it, or correct the log",
    ),
    "an action that the state does not have": (
        lambda: log_of([0, 1], ["go", "go"], [1, 1]),
        "impossible transition: 1 row; (x=1) 'go' → (x=1) (1×); the model lacks it: add it, or correct the log",
    ),
    "unknown next state": (
        lambda: throws(1, 2, 7, 7),
        "unknown next state: 2 rows; (x=7) (2×); x is 0 to 2 in the model",
    ),
    "unknown state": (
        lambda: log_of([0, -1], ["go", None], [1, None]),
        "unknown state: 1 row; (x=-1) (1×); x is 0 to 2 in the model",
    ),
    "unknown state in the last row of a run": (
        lambda: pl.read_log(
            COIN,
            pd.DataFrame({"episode": [1, 1, 2], "step": [0, 1, 0], "x": [0, 1, 5], "action": ["go", None, None]}),
            on_unmatched="report",
        ),
        "unknown state: 1 row; (x=5) (1×); x is 0 to 2 in the model",
    ),
}


@pytest.mark.parametrize("case", REJECTIONS)
def test_nothing_is_claimed_if_the_log_shows_what_the_graph_excludes(case):
    read, reason = REJECTIONS[case]
    certificate = pl.certify(COIN, read(), HEADS)
    assert (certificate.status, certificate.claim.reason) == ("model rejected", reason)
    assert (certificate.lower, certificate.upper) == (-math.inf, math.inf)
    assert certificate.rests_on.assumptions == ()
    written = json.loads(json.dumps(certificate.to_dict()))
    assert (written["lower"], written["upper"]) == (None, None)


def test_half_a_log_of_impossible_steps_is_not_certified_from_the_other_half():
    log = throws(*[1] * 900, *[2] * 100, *[7] * 1000)
    certificate = pl.certify(COIN, log, HEADS)
    assert certificate.headline == ("Model rejected: 1,000 log rows show what the model excludes. Nothing is claimed.")
    assert ("data", "2,000 log rows: 1,000 matched, 1,000 rejected") in certificate.page().facts
    assert {label for label, _ in certificate.page().facts} == {
        "query",
        "data",
        "because",
        "",
    }  # no set, no relaxation
    assert {each.status for each in compare(COIN, log, HEADS)} == {"model rejected"}


@pytest.mark.parametrize("way", ["file", "sum", "sum with counts of no log", "planned sum"])
def test_a_contradiction_travels_with_the_counts(way, tmp_path):
    counts, others = throws(1, 2, 7).counts, throws(1, 1, 2, None).counts
    if way == "file":
        pl.write_counts(counts, tmp_path / "counts.parquet")
        counts = pl.read_counts(COIN, tmp_path / "counts.parquet")
    elif way == "sum":
        counts = others + counts
        assert str(counts.report) == (
            "7 log rows: 5 matched, 2 rejected\n"
            "  unknown next state: 1 row; (x=7) (1×); x is 0 to 2 in the model\n"
            "  unreadable state: 1 row; (x=0) 'go' → (x=null) (1×)"
        )
    elif way == "planned sum":
        counts = counts.planned_sum(others)
    else:
        counts = counts + pl.TransitionCounts(COIN.graph, [1, 1, 0, 0], "independent")
        assert ("data", "4 steps; 3 log rows: 2 matched, 1 rejected") in pl.certify(COIN, counts, HEADS).page().facts
    assert pl.certify(COIN, counts, HEADS).status == "model rejected"


UNREADABLE = {
    "null": lambda: throws(*[1] * 50, None),
    "no number": lambda: throws(*[1] * 50, "heads"),
    "no whole number": lambda: throws(*[1] * 50, 1.5),
    "not a number": lambda: throws(*[1] * 50, float("nan")),
    "unknown action": lambda: log_of([0] * 51, ["go"] * 50 + ["throw"], [1] * 51),
    "no action": lambda: log_of([0] * 51, ["go"] * 50 + [None], [1] * 51),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_rows_that_cannot_be_read_are_counted_and_what_leaving_them_out_assumes_is_said(case):
    certificate = pl.certify(COIN, UNREADABLE[case](), HEADS)
    assert certificate.status == "certified"
    assert certificate.rests_on.data_quality.unreadable == 1
    assert certificate.rests_on.assumptions[-1] == (
        "whether a row of the log is readable does not depend on the outcome of a step (1 row was left out)"
    )
    assert ("data", "51 log rows: 50 matched, 1 rejected") in certificate.page().facts


def test_gaps_and_repeated_steps_are_rows_that_were_left_out():
    rows = {"episode": [1, 1, 2, 2, 2, 3, 3], "step": [0, 2, 0, 0, 1, 0, 1], "x": [0, 1, 0, 1, 1, 0, 1]}
    log = pl.read_log(COIN, pd.DataFrame(rows | {"action": "go"}), on_unmatched="report")
    certificate = pl.certify(COIN, log, HEADS)
    assert certificate.status != "model rejected"
    assert certificate.rests_on.assumptions[-1].endswith("(3 rows were left out)")


ABSENCES = {
    "empty log": (lambda: throws(), "there are no data (the log has 0 rows)"),
    "no step": (
        lambda: pl.TransitionCounts(COIN.graph, [0] * 4, "independent"),
        "there are no data (all counts are 0)",
    ),
    "no row": (
        lambda: throws(None, None),
        "there are no data (none of the 2 rows of the log is a transition of the model)",
    ),
}


@pytest.mark.parametrize("case", ABSENCES)
def test_no_data_are_called_no_data(case):
    data, why = ABSENCES[case]
    certificate = pl.certify(COIN, data(), HEADS)
    assert (certificate.status, certificate.claim.reason) == ("inconclusive", why)
    assert f"because         {why}" in str(certificate)


def test_what_the_space_alone_says_is_certified_without_data():
    """At every point of the space heads has a probability from 1/4 to 3/4."""
    nothing = pl.TransitionCounts(BIASED.graph, [0] * 4, "independent")
    certificate = pl.certify(BIASED, nothing, pl.parse_property('Pmax=? [ F "heads" ]', BIASED))
    assert certificate.status == "certified"
    assert certificate.lower == pytest.approx(0.25)
    assert ("data", "0 steps") in certificate.page().facts


def test_a_log_as_it_is_read_gives_a_certificate_for_those_who_look_and_stop():
    certificate = pl.certify(COIN, throws(*[1] * 60, *[2] * 40), HEADS)
    assert certificate.claim.guarantee == "finite-sample, anytime"
    assert certificate.rests_on.assumptions[-1] == COMPLETE
    assert not [text for text in certificate.rests_on.assumptions if "stopped" in text]  # which is not assumed
    assert "whenever you stopped" in dict(certificate.page().details)["confidence set"]


# which steps are in the data

COMPLETE = "no step is missing because of its outcome"
UNCONFOUNDED = (
    "actions were chosen without knowing more about the outcome of a step than the state tells (no unmeasured "
    "confounding)"
)
SIMULATED = {
    "simulate": lambda seed: pl.simulate(COIN, {"p": 0.6}, 100, rng=seed, max_steps=1),
    "record": lambda seed: pl.data.record(COIN, {"p": 0.6}, 100, rng=seed, max_steps=1).counts(),
    "sample_env": lambda seed: pl.data.sample_env(
        COIN, pl.data.as_env(COIN, {"p": 0.6}, max_steps=1), 100, rng=seed, sampling="trajectories"
    ),
}


def runs_of_coin(n_ended, n_censored=0, **options):
    """Return a log of throws, of which some end with the throw and not with what it showed."""
    ended = {"episode": np.repeat(np.arange(n_ended), 2), "step": [0, 1] * n_ended, "x": [0, 1] * n_ended}
    frame = pd.DataFrame(ended | {"action": ["go", None] * n_ended}).astype({"x": int, "step": int})
    others = pd.DataFrame({"episode": np.arange(n_censored) + n_ended, "step": 0, "x": 0, "action": "go"})
    return pl.read_log(COIN, pd.concat([frame, others]), **in_format(**options)).counts


def kept(counts, path):
    pl.write_counts(counts, path)
    return pl.read_counts(COIN, path)


def test_certificates_say_that_no_step_is_missing_because_of_its_outcome(tmp_path):
    counts = [
        throws(*[1] * 60, *[2] * 40),
        runs_of_coin(100),
        pl.TransitionCounts(COIN.graph, [60, 40, 0, 0], "adaptive"),
    ]
    counts += [kept(counts[2], tmp_path / "counts.parquet"), SIMULATED["simulate"](1) + runs_of_coin(9)]
    for data in counts:
        assumptions = pl.certify(COIN, data, HEADS).rests_on.assumptions
        assert COMPLETE in assumptions
        assert UNCONFOUNDED not in assumptions  # a coin has no actions


def test_certificates_of_models_with_choices_say_that_nobody_knew_more_than_the_state():
    study = pl.case_study("betting:5")
    seen = pl.simulate(study.model, study.true_point, 100, rng=1, max_steps=6).counts
    data = pl.TransitionCounts(study.model.graph, seen, "adaptive")
    assert {COMPLETE, UNCONFOUNDED} <= {*pl.certify(study.model, data, study.objective).rests_on.assumptions}


@pytest.mark.parametrize("way", SIMULATED)
def test_steps_that_plumdp_made_and_counted_are_all_there(way, tmp_path):
    counts = SIMULATED[way](1)
    for data in (counts, kept(counts, tmp_path / "counts.parquet"), counts + SIMULATED[way](2)):
        assert not [
            text
            for text in pl.certify(COIN, data, HEADS).rests_on.assumptions
            if "missing" in text or "chose" in text.split()
        ]


def test_a_few_runs_that_were_cut_off_are_named(tmp_path):
    counts = runs_of_coin(1000, 12)
    for data in (counts, kept(counts, tmp_path / "counts.parquet")):
        certificate = pl.certify(COIN, data, HEADS)
        assert certificate.rests_on.assumptions[-1] == (
            f"{COMPLETE} (12 of 1,012 runs end before the outcome of their last action)"
        )
        facts = dict(certificate.page().facts)
        assert facts["data"] == ("2,012 log rows: 1,000 matched, 1,012 ends of runs (12 censored), 0 rejected")
        assert json.loads(json.dumps(certificate.to_dict()))["data_quality"]["report"]["rows"]["censored"] == 12


@pytest.mark.slow
def test_who_says_that_runs_were_cut_off_regardless_of_outcomes_is_quoted(tmp_path):
    said = "that 300 of 400 runs end before the outcome of their last action has nothing to do with that outcome"
    counts = runs_of_coin(100, 300, censoring="unrelated")
    complete = f"{COMPLETE} (300 of 400 runs that began step 1 were censored in it)"
    others = throws(*[1] * 60).counts
    for data in (
        counts,
        kept(counts, tmp_path / "1.parquet"),
        counts + others,
        others + kept(counts, tmp_path / "2.parquet"),
    ):
        certificate = pl.certify(COIN, data, HEADS)
        assert certificate.rests_on.assumptions[-2:] == (complete, f"{said} (assumed; censoring= says so)")
        pl.write_result(certificate, tmp_path / "result", force=True)
        assert pl.read_result(tmp_path / "result").rests_on.assumptions == certificate.rests_on.assumptions
    more = counts + runs_of_coin(1000)
    assert (
        pl.certify(COIN, more, HEADS)
        .rests_on.assumptions[-1]
        .startswith("that 300 of 1,400 runs end before the outcome of ")
    )
    assert report_from(json.loads(json.dumps(counts.report.to_dict()))).censoring == "unrelated"
    assert runs_of_coin(100, censoring="unrelated").report.censoring is None  # there is nothing to say


def test_a_recorder_that_never_writes_the_last_state_does_not_certify_that_runs_never_end():
    """Tries until success: every success is the last row of its run, and no row shows one."""
    (p,) = pl.parameters("p")
    step = lambda s: {"stay": [(1, s)]} if s.at else {"go": [(p, s._replace(at=1)), (1 - p, s)]}  # noqa: E731
    model = pl.explore(step, {"at": 0}, space=pl.ParameterSpace.unit("p"))
    runs = pl.data.record(model, {"p": 0.3}, 200, rng=1, max_steps=99, stop=model.graph.states["at"] == 1)
    frame = pd.DataFrame(runs.columns("trajectories"))
    assert pl.read_log(model, frame).report.rows["censored"] == 0
    with pytest.raises(pl.DataError, match=r"^200 of 200 runs end before the outcome of their last action: "):
        pl.read_log(model, frame[frame.action.notna()])


def test_copies_that_were_left_out_are_an_assumption():
    rows = pd.DataFrame({"episode": [1, 2, 2], "step": 0, "x": 0, "action": "go", "next_x": [1, 2, 2]})
    for log, n in ((rows, "1 row was"), (pd.concat([rows, rows]), "4 rows were")):
        certificate = pl.certify(COIN, pl.read_log(COIN, log), HEADS)
        assert certificate.rests_on.assumptions[-1] == (
            f"rows of the log with the same run, step and values are copies of one row ({n} left out)"
        )


def test_the_provenance_of_a_sum_lists_all_its_data(tmp_path):
    for name, x in (("a.csv", 1), ("b.csv", 2)):
        (tmp_path / name).write_text(f"x,action,next_x\n0,go,{x}\n")
    a, b = (pl.read_log(COIN, tmp_path / name).counts for name in ("a.csv", "b.csv"))
    both = sum([kept(a, tmp_path / "a.parquet"), throws(1, 2).counts, SIMULATED["simulate"](1), b])
    provenance = pl.certify(COIN, both, HEADS).rests_on.provenance
    assert [value.partition(":")[0] for key, value in provenance.items() if key.startswith("data ")][:4] == [
        str(tmp_path / "a.csv"),
        str(tmp_path / "b.csv"),
        "2 steps not read from a file",
        "100 simulated steps",
    ]
    assert "data 1" not in pl.certify(COIN, throws(1, 2), HEADS).rests_on.provenance


# reports


REPORT = IngestionReport(
    "transitions", dict.fromkeys(KINDS, 0) | {"matched": 5, "unknown state": 2}, {"unknown state": ("(x=7) (2×)",)}
)


def test_a_report_survives_json():
    assert report_from(json.loads(json.dumps(REPORT.to_dict()))) == REPORT


BAD = {
    "not a report": [],
    "lacks a part": {"form": "transitions", "rows": {}},
    "form": REPORT.to_dict() | {"form": "rows"},
    "kind": REPORT.to_dict() | {"rows": {"mismatched": 1}},
    "negative": REPORT.to_dict() | {"rows": {"matched": -1}},
    "fraction": REPORT.to_dict() | {"rows": {"matched": 1.5}},
    "truth": REPORT.to_dict() | {"rows": {"matched": True}},
    "worst": REPORT.to_dict() | {"worst": {"unknown state": "(x=7)"}},
    "worst text": REPORT.to_dict() | {"worst": {"unknown state": [7]}},
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_a_report_is_refused(case):
    with pytest.raises(
        pl.DataError, match=r"^the report of what became of the rows of the log is not one: count the log again$"
    ):
        report_from(BAD[case])


def test_reports_of_different_forms_add_up():
    other = IngestionReport("trajectories", dict.fromkeys(KINDS, 1), {"unknown state": ("(x=8) (1×)", "(x=7) (2×)")})
    both = REPORT + other
    assert both.form == "several forms"
    assert (both.total, both.matched, both.contradicting) == (len(KINDS) + 7, 6, 5)
    assert [*both.worst["unknown state"]] == ["(x=7) (2×)", "(x=8) (1×)"]
    assert np.sum([*both.rows.values()]) == both.total
