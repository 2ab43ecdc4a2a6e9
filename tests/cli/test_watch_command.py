"""``plumdp watch``: what it prints and writes, and how it ends."""

import json
import re

import pandas as pd
import pytest
from command_line import plumdp

import plumdp as pl
from plumdp.data import write_runs
from plumdp.reporting.read import explain_result

STUDY = pl.case_study("betting:5")
MODEL = "betting:5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a result of a policy, and days of runs under it, which change."""
    path = tmp_path_factory.mktemp("watch")
    counts = pl.simulate(STUDY.model, STUDY.true_point, 3000, rng=1, max_steps=6)
    found = pl.certify(STUDY.model, counts, STUDY.objective, policy="bet1")
    pl.write_result(found, path / "result", model=STUDY.model, counts=counts)
    for name, change in (("quiet", 99), ("changed", 6)):
        (path / name).mkdir()
        for day in range(1, 13):
            point = STUDY.true_point if day <= change else {"p": 0.15}
            file = path / name / f"2024-05-{day:02}.csv"
            write_runs(STUDY.model, point, 60, file, rng=day, max_steps=6, policy=found.policy)
    return path


def ended(folder, name, *options):
    return plumdp("watch", MODEL, str(folder / name), "--against", str(folder / "result"), *options)


@pytest.mark.slow
def test_a_quiet_process_ends_with_0_and_says_what_holds_now(folder):
    done = ended(folder, "quiet", "--range", "0", "20")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("No alarm in 12 parts, the last one 2024-05-12.")
    words = " ".join(done.out.split())
    assert "false alarms at most one in 1,000 parts on average, of both kinds together," in words
    now = "Certified: under this policy, the expected “money” until the system reaches “end” is 1"
    assert f"If nothing has changed since 2024-05-01 (12 parts): {now}" in words


@pytest.mark.slow
def test_an_alarm_ends_with_1_until_it_is_acknowledged(folder, tmp_path):
    options = ("--range", "0", "20", "--checkpoint", str(tmp_path / "state"), "--output", str(tmp_path / "press.prom"))
    done = ended(folder, "changed", *options, "--json")
    (line,) = done.out.splitlines()
    told = json.loads(line)
    assert (done.code, told["schema"], told["status"]) == (1, "plumdp/watch/1", "alarm")
    assert {alarm["kind"] for alarm in told["alarms"]} == {"rows", "value"}
    assert told["now"]["lower"] <= told["now"]["upper"]
    text = (tmp_path / "press.prom").read_text("utf-8")
    assert 'plumdp_watch_alarm{alarm="rows"} 1\n' in text
    assert "plumdp_watch_parts_total 12\n" in text
    assert text.endswith("# EOF\n")
    assert ended(folder, "changed", *options).code == 1
    assert ended(folder, "changed", *options, "--acknowledge").code == 0


@pytest.mark.night
def test_the_report_says_when_and_why_a_certificate_was_withdrawn(folder, tmp_path):
    shown = {}
    for name in ("quiet", "changed"):
        done = ended(folder, name, "--range", "0", "20", "--output", str(tmp_path / f"{name}.html"))
        assert done.err == ""
        shown[name] = (tmp_path / f"{name}.html").read_text("utf-8")
    assert "Withdrawn" not in shown["quiet"]
    assert ", and watched since then. No alarm in 12 parts, the last one 2024-05-12." in shown["quiet"]
    assert "Withdrawn: do not rely on this certificate" in shown["changed"]
    assert re.search(
        r"Certified on \d+ \w+ \d+, and withdrawn after the data of 2024-05-(07|08|09|10), because rows are "
        r"not as the certificate says: p is about 0\.1\d* from about 2024-05-0\d on, not about 0\.\d+ \(estimates\)",
        shown["changed"],
    )
    assert "If nothing has changed since 2024-05-0" in shown["changed"]
    assert "No step is missing because of its outcome." in shown["changed"]  # which the bounds about now need
    (folder / "quiet" / "2024-05-05.csv").rename(tmp_path / "late.csv")
    assert ended(folder, "quiet", "--range", "0", "20", "--output", str(tmp_path / "gap.html")).code == 4
    (tmp_path / "late.csv").rename(folder / "quiet" / "2024-05-05.csv")
    assert "Stopped: no part between 2024-05-04 and 2024-05-06." in (tmp_path / "gap.html").read_text("utf-8")
    lone = plumdp("watch", MODEL, str(folder / "quiet"), "--output", str(tmp_path / "lone.html"))
    assert (lone.code, (tmp_path / "lone.html").exists()) == (2, False)
    assert "the report is on a certificate; say which, as in --against result" in lone.err


@pytest.mark.night
def test_a_report_refuses_the_watch_of_another_certificate(folder, tmp_path):
    (certificate, findings), days = explain_result(folder / "result"), folder / "quiet"
    found = pl.watch(STUDY.model, days, STUDY.objective)
    with pytest.raises(pl.DataError, match="the watch is not of this certificate"):
        pl.write_report(certificate, findings, tmp_path / "report.html", watch=found)


@pytest.mark.slow
def test_a_missing_day_ends_with_4_and_misuse_with_2(folder, tmp_path):
    days = tmp_path / "days"
    days.mkdir()
    for file in sorted((folder / "quiet").iterdir())[:4]:
        if not file.name.endswith("03.csv"):
            (days / file.name).write_bytes(file.read_bytes())
    done = plumdp("watch", MODEL, str(days))
    assert done.code == 4
    assert "no part between 2024-05-02 and 2024-05-04" in done.out
    assert plumdp("watch", MODEL, str(days), "--censoring", "unrelated").code == 0
    assert plumdp("watch", MODEL, str(days), "--since", "nowhere").code == 2


@pytest.mark.night
def test_units_that_changed_are_named_with_1(tmp_path):
    for unit, change in (("left", 99), ("right", 14), ("spare", 99)):
        (tmp_path / "units" / unit).mkdir(parents=True)
        for day in range(1, 25):
            point = STUDY.true_point if day <= change else {"p": 0.1}
            counts = pl.simulate(STUDY.model, point, 40, rng=day + 100 * len(unit), max_steps=6)
            pl.write_counts(counts, tmp_path / "units" / unit / f"2024-05-{day:02}.parquet")
    options = ("watch", MODEL, str(tmp_path / "units"), "--checkpoint", str(tmp_path / "states"))
    done = plumdp(*options, "--json")
    (line,) = done.out.splitlines()
    told = json.loads(line)
    assert (done.code, told["schema"], told["status"]) == (1, "plumdp/fleet/1", "alarm")
    assert [unit["name"] for unit in told["named"]] == ["right"]
    assert sorted(file.name for file in (tmp_path / "states").iterdir()) == ["left.watch", "right.watch", "spare.watch"]
    (tmp_path / "units" / "notes.md").write_text("the second one is new", encoding="utf-8")
    assert plumdp(*options).out.startswith("1 of 3 units has changed.")
    refused = plumdp(*options, "--acknowledge")
    assert (refused.code, refused.err.startswith("error: --acknowledge: ")) == (2, True)
    assert refused.err.endswith("units has a folder for each unit; watch one by itself\n")


@pytest.mark.slow
def test_a_watch_reads_parts_as_start_wrote_it_and_closes_over_no_gap(tmp_path, monkeypatch):
    """Units are seen for three months or until they fail; the first 25 of them made the table, and are no evidence."""
    monkeypatch.chdir(tmp_path)
    rows = [(unit, month, "ok" if month < 2 or unit % 3 else "bad") for unit in range(400) for month in range(3)]
    units = pd.DataFrame(rows, columns=["unit", "month", "status"])
    for part, name in enumerate(("2024-01", "2024-02", "2024-04", "2024-05")):
        units[units.unit // 100 == part].to_csv(f"{name}.csv", index=False)
    assert plumdp("start", "2024-01.csv").code == 0
    done = plumdp("watch", "2024-01.csv", "2024-*.csv", "--json")
    told = json.loads(done.out)
    assert (done.code, done.err, told["n_parts"]) == (4, "", 2)
    assert told["gap"] == "no part between 2024-02 and 2024-04"
    said = " ".join(told["assumptions"])
    assert "what was done in the first 25 runs of the log" in said
    assert "of 75 runs end before the outcome of their last action" in said
    gone_on = json.loads(plumdp("watch", "2024-01.csv", "2024-*.csv", "--censoring", "unrelated", "--json").out)
    assert gone_on["n_parts"] == 4
    assert (
        "parts that are missing have nothing to do with the outcomes in them (as you stated)" in gone_on["assumptions"]
    )
