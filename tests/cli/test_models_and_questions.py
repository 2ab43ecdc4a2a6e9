"""Models from Python files, spaces, named properties, thresholds and ranges, as users write them."""

import json
from html import unescape
from pathlib import Path

import pytest
from command_line import plumdp
from support import refusals
from support.refusals import rows

MODEL = """
import plumdp as pl
from sizes import N

(p,) = pl.parameters("p")


def build(n=N, wrong=0):
    def step(state):
        if state.x >= n:
            return {"stay": [(1, state)]}
        return {"go": [(p, state._replace(x=state.x + 1)), (1 - p, state)], "wait": [(1, state)]}

    1 / (1 - wrong)
    return pl.explore(step, {"x": 0}, space=pl.ParameterSpace.unit("p"), labels={"goal": lambda s: s.x >= n})


model = build()
study = pl.case_study("betting:5")
number = 3
"""
PROPERTIES = """
"safe": Pmax=? [ F<=8 "goal" ];  // in eight steps
"fast":
  Pmax=? [ F<=5
    "goal" ]
Pmin=? [ F "goal" ]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "mine.py").write_text(MODEL)
    (folder / "sizes.py").write_text("N = 4\n")
    (folder / "mine.props").write_text(PROPERTIES)
    (folder / "broken.py").write_text("import plumdp\n\nmodel = plumdp.nothing\n")
    made = plumdp(
        *("simulate", str(folder / "mine.py:model"), "--at", "p=0.6", "-n", "500", "--max-steps", "20"),
        *("-o", str(folder / "log.parquet")),
    )
    assert made.code == 0, made.err
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return plumdp


def test_a_model_in_python_is_a_name_or_a_function_of_constants(run):
    assert json.loads(run("info", "mine.py:model", "--json").out)["states"] == 5
    assert json.loads(run("info", "mine.py:build", "-c", "n=7", "--json").out)["states"] == 8
    read = json.loads(run("info", "mine.py:study", "--json").out)
    assert read["schema"] == "plumdp/info/1"
    assert read["properties"] == ['R{"money"}max=? [ F "end" ]']


def test_what_a_file_prints_is_not_part_of_the_result(run, folder):
    """It is called like a module of the standard library, which must not be in its way."""
    (folder / "json.py").write_text(f"print('made by me')\nfrom mine import model as inner\n{MODEL}")
    ended = run("info", "json.py:build", "-c", "n=2", "--json")
    assert json.loads(ended.out)["states"] == 3
    assert ended.err == "made by me\n"
    (folder / "json.py").unlink()


@pytest.mark.slow
def test_properties_have_names_and_may_go_over_lines(run):
    read = json.loads(run("info", "mine.py:model", "--json").out)
    fast, safe = '"fast": Pmax=? [ F<=5 "goal" ]', '"safe": Pmax=? [ F<=8 "goal" ]'
    assert read["properties"] == [safe, fast, 'Pmin=? [ F "goal" ]']
    found = json.loads(run("certify", "mine.py:model", "log.parquet", "--prop", "safe,fast", "--json").out)
    assert [each["objective"] for each in found] == [safe, fast]
    assert found[0]["lower"] > found[1]["lower"]
    assert json.loads(run("certify", "mine.py:model", "log.parquet", "-p", "2", "--json").out)["objective"] == fast


@pytest.mark.slow
def test_a_space_cuts_the_region(run):
    plain = json.loads(run("certify", "mine.py:model", "log.parquet", "-p", "safe", "--json").out)
    cut = json.loads(
        run("certify", "mine.py:model", "log.parquet", "-p", "safe", "--space", "0.1<=p<=0.6", "--json").out
    )
    assert cut["parameters"]["p"][1] <= 0.6 + 1e-9 < plain["parameters"]["p"][1]
    assert cut["upper"] < plain["upper"]
    assert json.loads(run("info", "mine.py:model", "--space", "2*p<=1", "--json").out)["parameters"] == {"p": [0, 0.5]}


@pytest.mark.night
def test_a_range_is_a_table_or_a_list(run):
    ended = run("info", "mine.py:build", "--const", "n=3:2:7", "--json")
    assert [(each["constants"], each["states"]) for each in json.loads(ended.out)] == [
        ({"n": "3"}, 4),
        ({"n": "5"}, 6),
        ({"n": "7"}, 8),
    ]
    table = run("info", "mine.py:build", "-c", "n=3:5").out.splitlines()
    assert sum("│" in line for line in table) == 3
    asked = ("certify", "mine.py:build", "log.parquet", "-p", "Pmax=? [ F x>=3 ]", "-c", "n=4,wrong=0:2:2")
    found = json.loads(run(*asked, "--json").out)
    assert [each["constants"] for each in found] == [{"n": "4", "wrong": "0"}, {"n": "4", "wrong": "2"}]
    assert found[0]["lower"] == found[1]["lower"]
    printed = " ".join(run(*asked).out.split())
    assert printed.count("certified") == 2
    assert "Each row by itself with confidence 99.9 %." in printed
    assert "valid if model no transition is missing; " in printed


@pytest.mark.parametrize(("text", "code", "opening"), rows("words:answered_first"))
def test_a_threshold_is_answered_first_and_by_the_exit_code(run, text, code, opening):
    ended = run("certify", "mine.py:model", "log.parquet", "-p", text)
    assert ended.code == code
    assert ended.out.startswith(opening)
    asked = run("certify", "mine.py:model", "log.parquet", "-p", text, "--json")
    read = json.loads(asked.out)
    assert asked.code == code
    assert read["verdict"] == {0: "yes", 1: "no", 4: "inconclusive"}[code]
    assert (read["question"], read["schema"]) == (text, "plumdp/certificate/1")


@pytest.mark.night
@pytest.mark.parametrize(
    ("text", "of_all"), [('P>=0.5 [ F<=8 "goal" ]', "Pmin>=0.5"), ("P<1/2 [ F x>=4 ]", "Pmax<1/2")]
)
def test_a_yes_about_one_policy_names_the_question_about_all(run, folder, text, of_all):
    words = f"Other policies may do worse: ask {of_all} for all policies."
    assert words in " ".join(run("certify", "mine.py:model", "log.parquet", "-p", text).out.split())
    asked = run("certify", "mine.py:model", "log.parquet", "-p", text, "--json", "-o", "asked", "--force")
    assert json.loads(asked.out)["headline"].endswith(f" was asked. {words}")
    assert run("report", "asked").code == 0
    assert unescape((folder / "asked" / "report.html").read_text(encoding="utf-8")).count(words) == 2  # and all digits
    every = run("certify", "mine.py:model", "log.parquet", "-p", of_all + text[text.index(" [") :], "--json")
    assert json.loads(every.out)["verdict"] == "no"


LAZY = "x,action\n" + "".join(f"{x},wait\n" for x in range(4))


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["certify", "--policy", "lazy.csv", "-p", 'Pmax=? [ F "goal" ]'], 0),
        (["certify", "--policy", "lazy.csv", "-p", "Pmin=? [ G x<4 ]"], 1),
        (["certify", "-p", "Pmax=? [ F x<0 ]"], 0),
        (["certify", "-p", "Pmin=? [ F x=0 ]"], 1),
    ],
)
def test_a_proved_value_ends_with_0_though_it_is_the_worst(run, folder, arguments, value):
    (folder / "lazy.csv").write_text(LAZY)
    command = [arguments[0], "mine.py:model", "log.parquet", *arguments[1:]]
    ended = run(*command)
    assert (ended.code, ended.err) == (0, "")
    assert f" is {100 * int(value)} % (confidence 99.9 %)." in " ".join(ended.out.split())
    read = json.loads(run(*command, "--json").out)
    assert (read["status"], read["lower"], read["upper"]) == ("certified", value, value)


def test_a_file_with_one_model_needs_no_name(run):
    lines = "import plumdp\nfrom mine import build as _build\n\nonly = _build(n=3)\n"
    Path("only.py").write_text(lines)
    by_file, by_name = run("info", "only.py"), run("info", "only.py:only")
    assert by_file.code == by_name.code == 0
    assert by_file.out.splitlines()[1:] == by_name.out.splitlines()[1:]


def test_one_value_may_be_compared_with_several_thresholds(run):
    asked = [option for number in (0.5, 0.83, 0.99) for option in ("-p", f'P>={number} [ F<=8 "goal" ]')]
    ended = run("certify", "mine.py:model", "log.parquet", *asked, "--json")
    found = json.loads(ended.out)
    assert [each["verdict"] for each in found] == ["yes", "inconclusive", "no"]
    assert len({each["lower"] for each in found}) == 1
    assert ended.code == 1


def test_misuse_says_what_to_change(run):
    refusals.misused("commands:models", run)


def test_data_that_fit_one_model_of_a_range_say_which_they_do_not_fit(run):
    ended = run("certify", "mine.py:build", "log.parquet", "-c", "n=3:4", "-p", "safe")
    assert ended.code == 2
    assert ended.err.startswith("error: mine.py:build n=3: ")
    assert "or count the other rows with --keep-going; " in ended.err
