"""What all sub-commands share: help, exit codes, errors as text and JSON, ``plumdp.toml``, and the log."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import plumdp
from support.refusals import rows

import plumdp as pl
from plumdp.base.errors import Option
from plumdp.cli import COMMANDS, load
from plumdp.cli.errors import in_command_line_words
from plumdp.cli.options import OPTIONS
from plumdp.result.printing import bracket

ERROR = {"schema", "error"}
SOURCE = Path(pl.__file__).parent


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    path = tmp_path_factory.mktemp("frame") / "counts.parquet"
    ended = plumdp("simulate", "betting:5", "-n", "1000", "--form", "counts", "-o", str(path))
    assert ended.code == 0, ended.err
    return str(path)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example_and_breaks_no_word_on_any_screen(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    narrow = plumdp(name, "-h")
    monkeypatch.setenv("COLUMNS", "100")
    wide = plumdp(name, "--help")
    assert (narrow.code, wide.code, narrow.err, wide.err) == (0, 0, "", "")
    assert narrow.out.split() == wide.out.split()
    assert narrow.out.endswith("".join(f"  {line}\n" for line in COMMANDS[name].example.splitlines()))
    assert "<" not in re.sub(r"<=|<[a-z0-9]", "", narrow.out.partition("Example:")[0].replace("[ F<", ""))
    text = narrow.out.partition("Example:")[0]
    assert all(len(line) <= 40 or len(line.split()) == 1 for line in text.splitlines())


def test_plumdp_alone_shows_what_there_is():
    alone = plumdp()
    assert (alone.code, alone.err) == (0, "")
    assert alone.out.startswith("Usage: plumdp COMMAND")


def test_the_help_of_all_has_the_table_of_exit_codes(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    ended = plumdp("-h")
    table = ended.out.partition("Exit codes:\n")[2]
    codes = re.findall(r"^  (\d+)  ", table, re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "4", "70", "74", "130", "141"]
    assert all(name in ended.out for name in COMMANDS)


@pytest.mark.parametrize(("arguments", "message"), rows("commands:one_sentence"))
def test_misuse_is_one_sentence_on_standard_error_or_an_object_and_ends_with_2(arguments, message):
    ended = plumdp(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert " ".join(ended.err.split()).startswith(f"error: {message.partition(' (Possible')[0]}")
    as_json = plumdp(*arguments, "--json")
    if arguments == ["certifi"] or "--jsn" in arguments:
        assert as_json.code == 2
    read = json.loads(as_json.out)
    assert (as_json.err, read.keys()) == ("", ERROR)
    assert read["schema"] == "plumdp/error/1"
    assert read["error"].keys() == {"kind", "message"}
    assert read["error"]["kind"] in ("model", "usage")
    assert f"error: {read['error']['message']}\n" == ended.err


@pytest.mark.parametrize(
    ("parts", "python", "command_line"),
    [
        ([Option("columns", {})], "columns={…}", "--column NAME=COLUMN"),
        ([Option("form", ...)], "form=…", "--form"),
        ([Option("columns", {"x": "y"}), ": no such"], "columns={'x': 'y'}: no such", "--column x=y: no such"),
        ([Option("columns", {"z": ...})], "columns={'z': …}", "--column z=…"),
        ([Option("constants", {"N": 10, "M": ...})], "constants={'N': 10, 'M': …}", "--constant N=10,M=…"),
        ([Option("states", {"x": [0, 2]})], "states={'x': [0, 2]}", "--state x=[0, 2]"),
        ([Option("actions", "if a then b")], "actions='if a then b'", "--action if a then b"),
        ([Option("order", "runs")], "order='runs'", "--order runs"),
        ([Option("censoring", "unrelated")], "censoring='unrelated'", "--censoring unrelated"),
        ([Option("on_unmatched", "report")], "on_unmatched='report'", "--keep-going"),
        (["or: ", Option("pilot", False)], "or: pilot=False", "or: leave out --order and --sampling"),
        ([Option("force", True)], "force=True", "--force"),
        ([Option("encoding", "cp1252")], "encoding='cp1252'", "--text encoding=cp1252"),
        ([Option("confidence_set"), " is for"], "confidence_set is for", "--confidence-set is for"),
        ([Option("model_tolerance", 0.3)], "model_tolerance=0.3", "--model-tolerance 0.3"),
        ([Option("expected", np.float64(100))], "expected=100.0", "--expected 100"),
        (["which ", Option("decide"), " answers"], "which decide answers", "which certify answers"),
        (["state (runs=5, order=2): no"], "state (runs=5, order=2): no", "state (runs=5, order=2): no"),
    ],
)
def test_options_in_messages_are_spelled_as_keywords_or_as_options(parts, python, command_line):
    assert str(pl.DataError(*parts)) == python
    assert in_command_line_words(*parts) == command_line


def test_errors_keep_their_parts_between_processes():
    error = pl.DataError(Option("model_tolerance"), " or ", Option("form", ...))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (pl.DataError, "model_tolerance or form=…")
    assert in_command_line_words(*again.args) == "--model-tolerance or --form"


def test_every_option_that_an_error_speaks_of_is_one_of_a_command_or_of_python_alone():
    """Misspelled names would be told to people who then look for them in vain."""
    named = {
        name for path in SOURCE.rglob("*.py") for name in re.findall(r'\bOption\("(\w+)"', path.read_text("utf-8"))
    }
    options = {option for name in COMMANDS for parameter in load(name).params for option in parameter.opts}
    spelled = {name for name in named if in_command_line_words(Option(name)).partition(" ")[0] in options}
    of_python = "advise alarm decide level out_of_table nights on_unmatched pilot read_counts read_log reference"
    assert named - spelled == {*of_python.split(), "share", "table", "than", "threads", "window"}


@pytest.mark.slow
def test_defaults_come_from_a_file_and_options_override_them(counts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plumdp.toml").write_text("[certify]\nconfidence = 0.9\njson = true\nconfidence_set = 'interval'\n")
    assert json.loads(plumdp("certify", "betting:5", counts).out)["confidence"] == pytest.approx(0.9)
    given = json.loads(plumdp("certify", "betting:5", counts, "--confidence", "0.8").out)
    assert given["confidence"] == pytest.approx(0.8)


NAMED = {  # a value of the file, one of the command line, and both together, the command line first
    "constant": (["N=4", "M=2"], "N=5", {"N": "5", "M": "2"}),
    "column": (["episode=case", "step=t"], "arm=drug", {"episode": "case", "step": "t", "arm": "drug"}),
    "state": (["x=lon", "y=[0, 1]"], "x=floor(lon)", {"x": "floor(lon)", "y": [0.0, 1.0]}),
    "text": (["decimal=,"], "encoding=cp1252", {"decimal": ",", "encoding": "cp1252"}),
    "table": (["first=4", "initial.x=1"], "first=9", {"first": "9", "initial.x": "1"}),
}


@pytest.mark.parametrize("name", NAMED)
def test_values_by_name_of_a_file_and_of_the_command_line_are_merged(name, tmp_path, monkeypatch):
    of_file, typed, both = NAMED[name]
    seen = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plumdp.cli.certify.certify", seen.append)
    for file in (f"{name} = {of_file}\n", f"[certify]\n{name} = {of_file}\n"):
        (tmp_path / "plumdp.toml").write_text(file)
        plumdp("certify", "betting:5", "log.csv", f"--{name}", typed)
        plumdp("certify", "betting:5", "log.csv")
    assert [getattr(given, name) for given in seen[::2]] == [both, both]
    assert getattr(seen[1], name) == OPTIONS[name].value(of_file)


@pytest.mark.parametrize(("content", "message"), rows("commands:wrong_defaults"))
def test_a_wrong_file_of_defaults_says_what_to_change(content, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plumdp.toml").write_text(content)
    ended = plumdp("certify", "betting:5", "nowhere.csv")
    assert ended.code == 2
    assert ended.err.startswith(f"error: {message}")


@pytest.mark.night
def test_options_above_all_tables_are_for_every_command_that_has_them(counts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plumdp.toml").write_text("confidence = 0.9\nspace = ['p<=0.9']\n[check-model]\nconfidence = 0.8\n")
    assert json.loads(plumdp("certify", "betting:5", counts, "--json").out)["confidence"] == pytest.approx(0.9)
    assert json.loads(plumdp("check-model", "betting:5", counts, "--json").out)["confidence"] == pytest.approx(0.8)
    assert json.loads(plumdp("info", "betting:5", "--json").out)["parameters"]["p"][1] == 0.9  # has no confidence


def test_options_that_are_shared_are_options_of_certify():
    options = {name for parameter in load("certify").params for name in parameter.opts}
    assert {about.flags[0] for about in OPTIONS.values() if about.is_shared} <= options


@pytest.mark.slow
def test_verbose_says_on_standard_error_what_is_done_and_the_result_stays_the_same(counts):
    silent, loud = plumdp("certify", "betting:5", counts), plumdp("certify", "betting:5", counts, "-v")
    assert silent.err == ""
    told = [text.partition("\nvalid if")[0].splitlines() for text in (loud.out, silent.out)]
    assert loud.out.startswith("\n".join(told[1]))  # and then what is assumed, in full
    assert loud.err.splitlines()[:2] == ["reading the model betting:5", "learning from 6,000 steps"]
    assert plumdp("info", "betting:5").err == ""  # one command's -v is not that of the next


@pytest.mark.parametrize(
    ("words", "found"),
    [("plumdp cer", ["certify"]), ("plumdp info gli", ["glider:"]), ("plumdp info --js", ["--json"])],
)
def test_the_shell_completes_commands_case_studies_and_options(words, found, monkeypatch):
    monkeypatch.setenv("_PLUMDP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    printed = plumdp().out.split()
    assert all(any(line.startswith(text) for line in printed) for text in found)
    assert all(line.startswith(words.split()[-1]) for line in printed)


@pytest.mark.slow
def test_a_narrow_screen_cuts_no_bound(counts, monkeypatch):
    wanted = json.loads(plumdp("certify", "betting:5", counts, "-r", "all", "--json").out)
    monkeypatch.setenv("COLUMNS", "40")
    for relaxation in ("coupled", "all"):
        text = plumdp("certify", "betting:5", counts, "-r", relaxation).out
        assert max(map(len, text.splitlines())) <= 40
        assert "…" not in text
        low, high = wanted[-1]["lower"], wanted[-1]["upper"]
        shown = f"is {bracket(low, high)} (" if relaxation == "coupled" else f"lower {low:.12f}"[:13]
        assert shown in " ".join(text.split())


@pytest.mark.night
def test_no_line_begins_with_a_per_cent_sign_or_ends_with_a_blank(counts, monkeypatch):
    for width in range(70, 90):
        monkeypatch.setenv("COLUMNS", str(width))
        text = plumdp("check-model", "betting:5", counts).out
        assert "99.9 %" in text
        assert not any(line.lstrip().startswith("%") or line.endswith(" ") for line in text.splitlines())
