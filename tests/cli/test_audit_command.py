"""``plumdp audit``: what it prints, how it ends, and results that cannot be audited."""

import json

import pandas as pd
import pytest
from command_line import plumdp
from support.refusals import rows

import plumdp as pl
from plumdp.data import write_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a result, runs under its policy, and runs under it of another process."""
    path = tmp_path_factory.mktemp("audit")
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, study.true_point, 3000, rng=1, max_steps=6)
    found = pl.certify(study.model, counts, study.objective, policy="bet1")
    found.save(path / "result", model=study.model, counts=counts)
    found.save(path / "without")
    for name, point in (("fresh.parquet", study.true_point), ("other.csv", {"p": 0.2})):
        write_runs(study.model, point, 1000, path / name, rng=2, max_steps=6, policy=found.policy)
    return path


@pytest.mark.slow
def test_runs_that_agree_end_with_0_and_say_so_in_one_sentence(folder):
    ended = plumdp("audit", str(folder / "result"), str(folder / "fresh.parquet"), "--range", "0", "20")
    assert (ended.code, ended.err) == (0, "")
    sentence, *assuming = ended.out.splitlines()
    assert sentence.startswith("1,000 runs under the policy: value between 1")
    assert (
        "with confidence 99.9 %, from these runs alone; they do not contradict the certificate (between 1" in sentence
    )
    assert all(line.startswith("  assuming  ") for line in assuming)
    assert "every return lies between 0 and 20" in ended.out


def test_runs_that_contradict_end_with_3(folder):
    arguments = ["audit", str(folder / "result"), str(folder / "other.csv"), "--range", "0", "20", "--json"]
    ended = plumdp(*arguments, "--margin", "0.5")
    content = json.loads(ended.out)
    assert (ended.code, content["schema"], content["verdict"]) == (3, "plumdp/audit/1", "contradicted")
    assert content["p_value"] < 1e-6
    assert content["upper"] < content["certified"][0]
    assert 10 < content["runs_needed"] < 10_000


def test_runs_are_read_as_their_texts_are_written(folder):
    """Steps are dates such as 31.05.2024, one a day."""
    runs = pd.read_csv(folder / "other.csv")
    runs["step"] = (pd.Timestamp("2024-01-01") + pd.to_timedelta(runs.step, "D")).dt.strftime("%d.%m.%Y")
    runs.to_csv(folder / "dates.csv", index=False)
    arguments = ["audit", str(folder / "result"), str(folder / "dates.csv"), "--range", "0", "20"]
    assert plumdp(*arguments, "--text", "date_format=%d.%m.%Y").code == 3
    assert plumdp(*arguments).code == 2


def test_a_plan_needs_no_runs(folder):
    ended = plumdp("audit", str(folder / "result"), "--margin", "1", "--range", "0", "20")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("About ")
    assert "runs in all would show that the value is 1 outside of the certified bounds; fewer, if" in ended.out


@pytest.mark.parametrize(("arguments", "told"), rows("commands:audits"))
def test_what_cannot_be_audited_is_refused(folder, monkeypatch, arguments, told):
    monkeypatch.chdir(folder)
    ended = plumdp("audit", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
