"""``plumdp certify --witness`` and ``plumdp verify``: what they print, and how they end."""

import json
import shutil

import pytest
from command_line import plumdp
from support.verified_results import rehash

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("verify")
    runs = str(path / "runs.parquet")
    assert plumdp("simulate", "rover:10,10", "-n", "2000", "--seed", "1", "-o", runs).code == 0
    options = "--order", "runs", "-o", str(path / "result"), "--witness"
    assert plumdp("certify", "rover:10,10", runs, *options).code == 0
    return path


def test_a_result_with_a_witness_is_verified(folder):
    ended = plumdp("verify", str(folder / "result"))
    assert ended.code == 0
    assert ended.out.startswith("Verified: ")
    content = json.loads(plumdp("verify", str(folder / "result"), "--json").out)
    assert (content["schema"], content["verified"], content["broken"]) == ("plumdp/verification/1", True, None)


def test_a_broken_step_is_named_and_ends_with_one(folder, tmp_path):
    ended = plumdp("verify", str(tmp_path))
    assert (ended.code, ended.out) == (
        1,
        "Rejected (files): certificate.json cannot be read: No such file or directory.\n",
    )


def test_the_checker_is_written_once(tmp_path):
    name = str(tmp_path / "verify.pyz")
    assert plumdp("verify", "-o", name).code == 0
    assert plumdp("verify", "-o", name).code == 2
    assert plumdp("verify").code == 2


def test_a_witness_needs_a_folder(folder):
    ended = plumdp("certify", "rover:10,10", str(folder / "runs.parquet"), "--order", "runs", "--witness")
    assert ended.code == 2


def test_a_result_without_a_witness_is_saved_and_says_why(folder, tmp_path):
    result, runs = tmp_path / "l1", str(folder / "runs.parquet")
    options = "--order", "runs", "--confidence-set", "l1", "-o", str(result), "--witness"
    ended = plumdp("certify", "rover:10,10", runs, *options)
    assert ended.code == 0
    assert "warning: verify does not know 'l1' sets" in ended.err
    assert sorted(file.name for file in result.iterdir()) == ["certificate.json", "data.npz", "policy.csv"]


TABLE = """
import plumdp

def model():
    def step(s):
        if s.x in (0, 4):
            return {"stay": [(1, s)]}
        return {"go": plumdp.unknown(s._replace(x=s.x + 1), s._replace(x=s.x - 1))}

    return plumdp.explore(step, {"x": 2}, labels={"goal": lambda s: s.x == 4, "end": lambda s: s.x in (0, 4)})
"""


def test_a_witness_of_a_table_is_refused(tmp_path):
    (tmp_path / "table.py").write_text(TABLE)
    (tmp_path / "log.csv").write_text("episode,step,x,action\n1,0,2,go\n1,1,3,go\n1,2,4,\n")
    asked = "-p", 'Pmax=? [ F "goal" ]', "-o", str(tmp_path / "result"), "--witness"
    for policy in ((), ("--policy", "uniform"), ("--against", "go")):
        ended = plumdp("certify", f"{tmp_path / 'table.py'}:model", str(tmp_path / "log.csv"), *asked, *policy)
        assert (ended.code, ended.out) == (2, "")
        assert "--witness: verify does not know tables of unknown rows; leave it out" in ended.err


@pytest.mark.night
def test_a_comparison_with_a_witness_is_reported_unless_it_was_changed(tmp_path):
    runs, result = str(tmp_path / "runs.parquet"), str(tmp_path / "result")
    assert plumdp("simulate", "betting:5", "-n", "1000", "--seed", "1", "-o", runs).code == 0
    command = "certify", "betting:5", runs, "--order", "runs", "--policy", "bet1", "--against", "bet0"
    ended = plumdp(*command, "--unit", "€", "-o", result, "--witness")
    assert ended.code == 0, ended.err
    certificate = json.loads((tmp_path / "result" / "certificate.json").read_text())
    assert certificate["left_out"] == ""
    verified = " ".join(plumdp("verify", result).out.split())
    assert 'that values are counted in "€"' in verified
    assert 'that rival.csv is the policy that is called "bet0"' in verified
    with_model = plumdp("verify", result, "betting:5")
    assert (with_model.code, "that is called" in " ".join(with_model.out.split())) == (0, False)
    assert plumdp("report", result).code == 0
    certificate["comparison"]["names"].reverse()
    rehash(tmp_path / "result", certificate)
    assert plumdp("verify", result, "betting:5").code == 1
    assert "do not give its comparison" in plumdp("report", result, "--force").err


def test_ones_own_log_is_counted_by_ones_own_model(folder):
    runs, result, model = str(folder / "runs.parquet"), str(folder / "result"), ("rover:10,10",)
    ended = plumdp("verify", result, *model, runs, "--order", "runs")
    assert ended.code == 0, ended.out
    assert "that the counts" not in ended.out
    assert "not checked     entries of certificate.json that are not printed here\n" in ended.out
    assert plumdp("verify", result, *model, runs).code == 1


def test_what_could_not_be_compared_is_not_called_broken(folder, tmp_path):
    result = shutil.copytree(folder / "result", tmp_path / "result")
    (result / "data.npz").write_bytes(b"")
    rehash(result)
    ended = plumdp("verify", str(result), "--json")
    content = json.loads(ended.out)
    assert (ended.code, content["verified"], content["broken"]) == (4, False, None)
    assert content["not_compared"]["layer"] == "data"


def test_a_log_that_needs_a_file_of_defaults_is_refused_with_how_to_name_it(folder, tmp_path, monkeypatch):
    """What lies in a folder must not say how one's own log is read, so that plumdp.toml is not read by itself."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plumdp.toml").write_text('column = ["step=t"]\n')
    (tmp_path / "log.csv").write_text("episode,t\n0,0\n")
    ended = plumdp("verify", str(folder / "result"), "rover:10,10", "log.csv")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.endswith("; verify does not read plumdp.toml: give its options on the command line\n")


def test_a_folder_that_is_not_there_is_misuse_and_not_called_broken():
    ended = plumdp("verify", "nowhere")
    assert (ended.code, ended.out) == (2, "")
    assert "nowhere is not a folder; name that of a result" in ended.err
