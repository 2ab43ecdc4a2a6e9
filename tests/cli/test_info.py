"""``plumdp info`` as a user types it."""

import json

import pytest
from command_line import plumdp
from support import refusals

import plumdp as pl
from plumdp.case_studies import prism_file


@pytest.fixture(autouse=True)
def _screen(monkeypatch):
    """Set a screen of 120 columns."""
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.slow
def test_info_prints_the_facts_of_a_case_study():
    done = plumdp("info", "betting:50")
    assert done.code == 0
    facts = dict(line.split(maxsplit=1) for line in done.out.splitlines()[1:] if len(line.split(maxsplit=1)) == 2)
    assert facts["states"].strip() == "13,500"
    assert facts["transitions"].strip() == "111,678"
    assert facts["parameters"].strip() == "p in [0, 0.85]"
    assert facts["expressions"].startswith("2,613 distinct, 2,612 depend on parameters (all affine")
    assert facts["structure"].strip() == "acyclic apart from self-loops"
    assert facts["properties"].strip() == 'R{"money"}max=? [ F "end" ]'


def test_info_as_json_is_json_only_and_says_the_same():
    done = plumdp("info", "engagement:50", "--json")
    facts = json.loads(done.out)
    assert (facts["states"], facts["transitions"], facts["expressions"]["total"]) == (994, 2962, 61)
    assert facts["parameters"] == {name: [0.0, 1.0] for name in ("t1", "t2", "t3", "t4")}
    assert facts["constraints"][0] == "-t1 - t2 - t3 - t4 + 1 >= 0"
    assert facts["structure"]["largest_component"] == 980
    assert facts["variables"]["e"] == [0, 50]
    assert [issue["kind"] for issue in facts["issues"]] == ["range"]


def test_info_reads_a_prism_file_and_the_properties_beside_it():
    pytest.importorskip("stormpy")
    done = plumdp("info", str(prism_file("parallel")), "-c", "N=5,small=false", "--json")
    facts = json.loads(done.out)
    assert (facts["states"], facts["transitions"], facts["expressions"]["total"]) == (3051, 15543, 477)
    assert facts["properties"] == ['R{"money"}max=? [ F "end" ]']
    assert facts["issues"][0]["severity"] == "warning"


def test_misuse_ends_with_one_sentence_and_exit_code_2(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refusals.misused("commands:info")


def test_the_version_is_the_packages():
    assert plumdp("--version").out.strip() == pl.__version__
