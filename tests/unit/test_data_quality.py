"""What a certificate says of its data: contradictions of the graph, rows left out, and no data at all."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from coin_model import COIN, coin_step

import plumdp as pl
from plumdp.data.report import KINDS, IngestionReport, report_from

HEADS = pl.parse_property('Pmax=? [ F "heads" ]', COIN)
BIASED = pl.explore(
    coin_step, {"x": 0}, space=pl.ParameterSpace.box({"p": (0.25, 0.75)}), labels={"heads": lambda s: s.x == 1}
)


def log_of(before, action, after, **options):
    frame = pd.DataFrame({"x": before, "action": action, "next_x": after}, dtype=object)
    return pl.read_log(frame, COIN, on_unmatched="report", **options)


def throws(*after, **options):
    return log_of([0] * len(after), ["go"] * len(after), after, **options)


CONTRADICTIONS = {
    "impossible transition": (
        lambda: log_of([0, 1], ["go", "stay"], [1, 2]),
        "impossible transition: 1 row; (x=1) 'stay' → (x=2) (1×); the model has no such edge, so it may be wrong",
    ),
    "an action that the state does not have": (
        lambda: log_of([0, 1], ["go", "go"], [1, 1]),
        "impossible transition: 1 row; (x=1) 'go' → (x=1) (1×); the model has no such edge, so it may be wrong",
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
            pd.DataFrame({"episode": [1, 1, 2], "step": [0, 1, 0], "x": [0, 1, 5], "action": ["go", None, None]}),
            COIN,
            on_unmatched="report",
        ),
        "unknown state: 1 row; (x=5) (1×); x is 0 to 2 in the model",
    ),
}


@pytest.mark.parametrize("is_paper", [False, True])
@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_nothing_is_claimed_if_the_log_shows_what_the_graph_excludes(case, is_paper):
    read, reason = CONTRADICTIONS[case]
    certificate = pl.certify(COIN, read(), HEADS, as_published=is_paper)
    assert (certificate.status, certificate.reason) == ("model contradicted", reason)
    assert (certificate.lower, certificate.upper) == (-math.inf, math.inf)
    assert certificate.assumptions == ()
    written = json.loads(certificate.to_json())
    assert (written["lower"], written["upper"]) == (None, None)


def test_half_a_log_of_impossible_steps_is_not_certified_from_the_other_half():
    log = throws(*[1] * 900, *[2] * 100, *[7] * 1000)
    certificate = pl.certify(COIN, log, HEADS)
    assert certificate.headline == (
        "MODEL CONTRADICTED: 1,000 rows of the data show what the model says cannot happen. No bound is claimed."
    )
    assert ("data", "2,000 rows of transitions: 1,000 matched, 1,000 rejected") in certificate.facts()
    assert {each.status for each in pl.compare(COIN, log, HEADS)} == {"model contradicted"}


@pytest.mark.parametrize("way", ["file", "sum", "sum with counts of no log", "planned sum"])
def test_a_contradiction_travels_with_the_counts(way, tmp_path):
    counts, others = throws(1, 2, 7).counts, throws(1, 1, 2, None).counts
    if way == "file":
        pl.write_counts(counts, tmp_path / "counts.parquet")
        counts = pl.read_counts(tmp_path / "counts.parquet", COIN)
    elif way == "sum":
        counts = others + counts
        assert str(counts.report) == (
            "7 rows of transitions: 5 matched, 2 rejected\n"
            "  unknown next state: 1 row; (x=7) (1×); x is 0 to 2 in the model\n"
            "  unreadable state: 1 row; (x=0) 'go' → (x=null) (1×)"
        )
    elif way == "planned sum":
        counts = counts.planned_sum(others)
    else:
        counts = counts + pl.TransitionCounts(COIN.graph, [1, 1, 0, 0], "independent")
        assert ("data", "4 steps; 3 rows of transitions: 2 matched, 1 rejected") in pl.certify(
            COIN, counts, HEADS
        ).facts()
    assert pl.certify(COIN, counts, HEADS).status == "model contradicted"


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
    assert certificate.data_quality.unreadable == 1
    assert certificate.assumptions[-1] == (
        "whether a row of the log can be read does not depend on where its step led (1 row was left out)"
    )
    assert ("data", "51 rows of transitions: 50 matched, 1 rejected") in certificate.facts()


def test_gaps_and_repeated_steps_are_rows_that_were_left_out():
    rows = {"episode": [1, 1, 2, 2, 2, 3, 3], "step": [0, 2, 0, 0, 1, 0, 1], "x": [0, 1, 0, 1, 1, 0, 1]}
    log = pl.read_log(pd.DataFrame(rows | {"action": "go"}), COIN, on_unmatched="report")
    certificate = pl.certify(COIN, log, HEADS)
    assert certificate.status != "model contradicted"
    assert certificate.assumptions[-1].endswith("(3 rows were left out)")


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
    assert (certificate.status, certificate.reason) == ("nothing certified", why)
    assert certificate.headline == f"Nothing certified: {why}."


def test_what_the_space_alone_says_is_certified_without_data():
    """At every point of the space heads has a probability from 1/4 to 3/4."""
    nothing = pl.TransitionCounts(BIASED.graph, [0] * 4, "independent")
    certificate = pl.certify(BIASED, nothing, pl.parse_property('Pmax=? [ F "heads" ]', BIASED))
    assert certificate.status == "certified"
    assert certificate.lower == pytest.approx(0.25)
    assert ("data", "0 steps") in certificate.facts()


def test_a_log_as_it_is_read_gives_a_certificate_for_those_who_look_and_stop():
    certificate = pl.certify(COIN, throws(*[1] * 60, *[2] * 40), HEADS)
    assert certificate.guarantee == "finite-sample, anytime"
    assert certificate.assumptions[-1] == (
        "nothing about when you stopped: valid even if you looked at the data while collecting it and stopped when you "
        "liked"
    )


# reports


REPORT = IngestionReport(
    "transitions", dict.fromkeys(KINDS, 0) | {"matched": 5, "unknown state": 2}, {"unknown state": ["(x=7) (2×)"]}
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
    with pytest.raises(pl.DataError, match=r"^the report of what became of the rows of the log is not one$"):
        report_from(BAD[case])


def test_reports_of_different_forms_add_up():
    other = IngestionReport("trajectories", dict.fromkeys(KINDS, 1), {"unknown state": ["(x=8) (1×)", "(x=7) (2×)"]})
    both = REPORT + other
    assert both.form == "several forms"
    assert (both.total, both.matched, both.contradicting) == (len(KINDS) + 7, 6, 5)
    assert both.worst["unknown state"] == ["(x=7) (2×)", "(x=8) (1×)"]
    assert np.sum([*both.rows.values()]) == both.total
