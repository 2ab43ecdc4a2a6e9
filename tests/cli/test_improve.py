"""``plumdp certify --against``: which of two policies to follow."""

import html
import json
import re

import pytest
from command_line import plumdp
from shorthand import improve
from support.refusals import told

import plumdp as pl


def simulated(path, runs):
    assert plumdp("simulate", "betting:5", "-n", runs, "--form", "counts", "-o", str(path)).code == 0
    return str(path)


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return simulated(tmp_path_factory.mktemp("improve") / "counts.parquet", "1000")


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return simulated(tmp_path_factory.mktemp("few") / "few.parquet", "200")


@pytest.fixture(scope="module")
def still_open(few, tmp_path_factory):
    """Return how a comparison ends that few data leave open, and the folder in which it was saved."""
    folder = tmp_path_factory.mktemp("open") / "result"
    return plumdp("certify", "betting:5", few, "--policy", "bet1", "--against", "bet0", "-o", str(folder)), folder


@pytest.mark.slow
def test_a_better_policy_than_practice_is_found_and_saved(counts, tmp_path):
    ended = plumdp("certify", "betting:5", counts, "--against", "practice", "-o", str(tmp_path / "result"))
    assert (ended.code, ended.err) == (0, "")
    text = " ".join(ended.out.split())
    assert text.startswith("Certified: the expected “money” until the system reaches “end” is ")
    assert "practice acts as in the log, by state alone" in text
    saved = pl.read_result(tmp_path / "result")
    study = pl.case_study("betting:5")
    same = improve(study.model, pl.read_counts(study.model, counts), study.objective)
    assert saved.lower == same.certificate.lower
    assert saved.comparison.difference == same.compared.comparison.difference


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "runs", "code"),
    [
        (["--against", "practice"], "1000", 0),
        (["--against", "bet1"], "50", 4),
        (["--policy", "bet0", "--against", "uniform"], "1000", 0),
    ],
)
def test_a_comparison_is_saved_with_a_witness_and_verified(tmp_path, command, runs, code):
    """Also if the baseline is kept, whose certificate it then is."""
    data, folder = str(tmp_path / "counts.parquet"), str(tmp_path / "result")
    plumdp("simulate", "betting:5", "-n", runs, "--form", "counts", "--seed", "1", "-o", data)
    ended = plumdp("certify", "betting:5", data, *command, "-o", folder, "--witness")
    assert (ended.code, ended.err) == (code, "")
    checked = plumdp("verify", folder, "betting:5", "--json")
    told = json.loads(checked.out)
    assert (checked.code, told["passed"][-3:]) == (0, ["model", "data", "directions"])
    comparison = pl.read_result(folder).comparison.difference
    assert comparison["names"][0] in told["sentence"]  # names are quoted
    assert comparison["policy"] == ("first" if code == 0 else "second")


@pytest.mark.slow
def test_json_has_the_gain_and_both_certificates(counts):
    ended = plumdp("certify", "betting:5", counts, "--against", "bet0", "--json")
    content = json.loads(ended.out)
    assert ended.code == 0
    assert content["schema"] == "plumdp/improvement/1"
    assert 0 < content["gain"] == content["difference"]["lower"]
    assert content["baseline"] == "bet0"
    assert content["certificate"] == content["difference"]["first"]


@pytest.mark.night
def test_a_baseline_that_nothing_is_known_to_beat_is_kept(counts, tmp_path):
    folder = tmp_path / "best"
    assert plumdp("certify", "betting:5", counts, "-o", str(folder)).code == 0
    ended = plumdp("certify", "betting:5", counts, "--against", str(folder), "-o", str(tmp_path / "kept"))
    assert (ended.code, ended.err) == (4, "")
    said = "Inconclusive: no other policy than best was found. Keep best: no policy is known to be better."
    assert " ".join(ended.out.split()).startswith(said)
    assert (folder / "policy.csv").read_text() == (tmp_path / "kept" / "policy.csv").read_text()


@pytest.mark.slow
def test_two_policies_are_compared_in_words_and_by_the_exit_code(counts):
    """The value of bet0 is larger by 1.7 to 2.1."""
    told("commands:two_policies", counts=counts)


@pytest.mark.slow
def test_a_report_says_how_much_better_a_policy_is(counts, tmp_path, blank_pictures):
    folder = str(tmp_path / "result")
    plumdp("certify", "betting:5", counts, "--policy", "bet0", "--against", "uniform", "-o", folder)
    assert plumdp("report", folder).code == 0
    page = (tmp_path / "result" / "report.html").read_text(encoding="utf-8")
    sentence = pl.read_result(folder).decided
    assert sentence.startswith("Certified: ")
    assert "Better by how much" in page
    assert sentence.replace(" %", "\N{NO-BREAK SPACE}%") in page
    assert '<body class="certified">' in page
    assert '<p class="question">Is bet0 better than uniform?</p>' in page
    assert "under bet0." in page


@pytest.mark.night
def test_a_report_of_a_comparison_that_is_open_is_not_green(still_open, blank_pictures):
    """Both bounds are certified, and which policy is better is not: that is what was asked."""
    ended, folder = still_open
    assert ended.code == 4
    assert plumdp("report", str(folder)).code == 0
    page, kept = (folder / "report.html").read_text(encoding="utf-8"), pl.read_result(folder)
    assert kept.status == "certified"
    assert '<body class="vacuous">' in page
    assert "Inconclusive which policy is better" in page
    said = re.search(r"<h1>Inconclusive: the expected “money” .* higher under bet1 than under bet0 ", page)
    assert said is not None
    assert said.start() < page.index(", under bet1.")
    widths = [
        high - low for low, high in (kept.comparison.difference[name] for name in ("first", "second", "difference"))
    ]
    assert ("known better than either" in page) == (widths[2] < min(widths[:2]))


@pytest.mark.night
def test_a_report_of_policies_that_are_the_same_within_a_margin_is_green(few, tmp_path, blank_pictures):
    folder = str(tmp_path / "result")
    asked = ["certify", "betting:5", few, "--policy", "bet1", "--against", "bet0", "--margin", "9", "-o", folder]
    assert plumdp(*asked).code == 0
    assert plumdp("report", folder).code == 0
    page = (tmp_path / "result" / "report.html").read_text(encoding="utf-8")
    assert '<body class="certified">' in page
    assert '<p class="question">Is bet1 better than bet0, or worse by no more than 9?</p>' in page
    assert "<h1>Certified: bet1 and bet0 are the same within 9; the expected “money” " in page


@pytest.mark.night
def test_what_is_not_yet_known_comes_with_the_runs_that_would_tell(few, still_open):
    ended, _ = still_open
    assert (ended.code, ended.err) == (4, "")
    assert "By the estimate, bet1 is better by" in ended.out
    told = " ".join(ended.out.split())
    assert "more runs like these" in told
    assert "to narrow it collect more data" in told
    assert "(see plumdp advise)" in told
    content = json.loads(plumdp("certify", "betting:5", few, "--policy", "bet1", "--against", "bet0", "--json").out)
    assert (content["schema"], content["verdicts"]) == ("plumdp/difference/1", ["inconclusive"])
    assert content["runs_to_tell"]["predictions"]["better"]["runs"] > 200
    ended = plumdp("certify", "betting:5", few, "--against", "bet1", "--json")
    content = json.loads(ended.out)
    assert (content["runs_to_tell"] is None) == content["is_better"]


@pytest.mark.night
@pytest.mark.parametrize(
    ("runs", "weights", "code", "words"),
    [
        ("1000", "0:0.01", 0, "Nothing to compare"),
        ("30", "0.1:1", 4, "Inconclusive which policy is best"),
        ("3000", "0:1", 0, "Certified"),
    ],
)
def test_net_benefits_are_compared_in_a_range_of_the_willingness_to_pay(runs, weights, code, words, tmp_path):
    counts = f"{tmp_path}/counts.parquet"
    assert plumdp("simulate", "betting:5", "-n", runs, "--seed", "1", "--form", "counts", "-o", counts).code == 0
    asked = ("-p", 'R{"money"}max=? [ F "end" ]', "-p", 'Pmin=? [ F "end" & money<10 ]')
    ended = plumdp("certify", "betting:5", counts, *asked, "--willingness", weights, "--json", "-o", f"{tmp_path}/all")
    content = json.loads(ended.out)
    assert (ended.code, content["schema"]) == (code, "plumdp/net-benefit/2")
    assert (content["strategies"][0]["cost"]["upper"] == 0) == weights.startswith("0:")
    report = html.unescape((tmp_path / "all" / "report.html").read_text(encoding="utf-8"))
    badge = report.partition('<p class="badge">')[2].partition("</p>")[0]
    assert words in badge
    assert all(
        text.replace(" %", "\N{NO-BREAK SPACE}%") in report for text in (content["sentence"], *content["assumptions"])
    )
    assert "net benefits by willingness to pay" in report


@pytest.mark.slow
def test_named_policies_are_compared_in_a_range_of_the_willingness_to_pay(counts):
    asked = ("-p", 'R{"money"}max=? [ F "end" ]', "-p", 'Pmin=? [ F "end" & money<10 ]', "--willingness", "0:1")
    ended = plumdp("certify", "betting:5", counts, *asked, "--policy", "bet1", "--against", "uniform", "--json")
    found = json.loads(ended.out)["strategies"]
    assert {each["name"] for each in found} == {"bet1", "uniform"}
