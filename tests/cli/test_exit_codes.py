"""How a real process ends: every end has a code of its own, and 1 is nothing but the answer no."""

import json
import os
import subprocess
import sys

import pytest
from command_line import plumdp

from plumdp.cli import check
from plumdp.cli.options import Options

NO_SPACE = "error: output cannot be written: No space left on device\n"
FULL = "/dev/full"
needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs the streams of POSIX")
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason="needs a device that is always full")


def run(*arguments, code="from plumdp.cli import main; main()", **more):
    """Return how a process ends that runs a command, unless the code says otherwise."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8", **more}
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONUNBUFFERED", "PLUMDP_DEBUG")}
    environment |= options.pop("env", {})
    return subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=False, **options)


TOLD = """
import json, sys
import plumdp.cli.check
from plumdp.cli import main

plumdp.cli.check._facts = lambda model: {facts!r}
main()
"""


@pytest.fixture(scope="module")
def told():
    """Return code that knows what there is to print about a model, so that no process has to build it."""
    return TOLD.format(facts=check._facts(Options(model="betting:5")))


PRINTING = {
    "a table": ["info", "betting:5"],
    "json": ["info", "betting:5", "--json"],
    "a line": ["--version"],
    "help": ["-h"],
    "an error in json": ["info", "nowhere", "--json"],
}


@pytest.mark.night
@needs_full
@pytest.mark.parametrize("arguments", PRINTING.values(), ids=PRINTING)
def test_standard_output_on_a_full_disk_ends_with_74_and_one_line(arguments, told):
    with open(FULL, "w") as full:
        ended = run(*arguments, code=told, stdout=full)
    assert (ended.returncode, ended.stderr) == (74, NO_SPACE)


@pytest.mark.night
@needs_full
def test_standard_output_on_a_full_disk_ends_in_the_same_way_if_it_has_no_buffer(told):
    with open(FULL, "w") as full:
        ended = run("info", "betting:5", "--json", code=told, stdout=full, env={"PYTHONUNBUFFERED": "1"})
    assert (ended.returncode, ended.stderr) == (74, NO_SPACE)


@pytest.mark.night
@needs_posix
@pytest.mark.parametrize("arguments", PRINTING.values(), ids=PRINTING)
def test_a_closed_pipe_ends_with_141_and_without_a_word(arguments, told):
    reader, writer = os.pipe()
    os.close(reader)
    ended = run(*arguments, code=told, stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.night
@needs_posix
def test_a_result_that_nobody_reads_is_saved(told, tmp_path):
    counts = tmp_path / "counts.parquet"
    run("simulate", "betting:5", "-n", "50", "-o", str(counts), code=told)
    reader, writer = os.pipe()
    os.close(reader)
    ended = run("certify", "betting:5", str(counts), "-o", str(tmp_path / "result"), code=told, stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")
    assert (tmp_path / "result/certificate.json").exists()


@needs_posix
def test_a_closed_standard_output_ends_with_74():
    ended = run("info", "betting:5", stdout=None, preexec_fn=lambda: os.close(1))
    assert ended.returncode == 74
    assert ended.stderr == "error: standard output is closed: no result can be printed\n"


@pytest.mark.night
@needs_full
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "full"])
def test_a_standard_error_that_cannot_be_written_changes_no_code(is_closed, told):
    with open(FULL, "w") as full:
        more = {"preexec_fn": lambda: os.close(2)} if is_closed else {}
        assert run("info", "nowhere", stderr=None if is_closed else full, **more).returncode == 2
        assert run("info", "betting:5", code=told, stderr=None if is_closed else full, **more).returncode == 0


WRITING = {
    "log": (["simulate", "betting:5", "-n", "50", "-o"], "log.parquet"),
    "csv": (["simulate", "betting:5", "-n", "50", "-o"], "log.csv"),
    "result": (["certify", "betting:5", "LOG", "-o"], "result"),
    "report": (["report", "betting:5", "LOG", "-o"], "report.html"),
}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    assert plumdp("simulate", "betting:5", "-n", "50", "--seed", "1", "-o", str(path)).code == 0
    return str(path)


@pytest.mark.night
@needs_posix
@pytest.mark.parametrize(("arguments", "name"), WRITING.values(), ids=WRITING)
def test_a_file_on_a_full_disk_ends_with_74_and_leaves_nothing(arguments, name, log, tmp_path):
    """No file of the process may have more than 64 bytes."""
    resource = pytest.importorskip("resource")
    given = [log if text == "LOG" else text for text in arguments]
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))}
    ended = run(*given, str(tmp_path / name), **limit)
    assert (ended.returncode, ended.stderr) == (74, f"error: {tmp_path / name} cannot be written: File too large\n")
    assert [*tmp_path.iterdir()] == []


BROKEN = """
import os, signal, sys, time
import plumdp.cli.check
from plumdp.cli import main

def broken(*arguments, **options):
    {statement}

plumdp.cli.check._facts = broken
main()
"""
REPORT = (
    ", which says nothing about the model or the data. Please report it, with the command and what it prints with "
    "PLUMDP_DEBUG=1"
)
FAILURES = {
    "KeyError": ("raise KeyError('money')", 70, f"plumdp ended unexpectedly (KeyError: 'money'){REPORT}"),
    "AssertionError": ("assert False", 70, f"plumdp ended unexpectedly (AssertionError: ){REPORT}"),
    "ValueError": ("raise ValueError('a\\nb')", 70, f"plumdp ended unexpectedly (ValueError: a b){REPORT}"),
    "RecursionError": (
        "def deeper():\n    deeper()\ndeeper()",
        70,
        f"plumdp ended unexpectedly (RecursionError: maximum recursion depth exceeded){REPORT}",
    ),
    "MemoryError": ("raise MemoryError", 70, f"plumdp ended unexpectedly (not enough memory){REPORT}"),
    "a library that exits": ("sys.exit(1)", 70, f"plumdp ended unexpectedly (SystemExit: 1){REPORT}"),
    "a library that exits well": ("sys.exit()", 70, f"plumdp ended unexpectedly (SystemExit: ){REPORT}"),
    "a file": ("open('/nowhere/x')", 74, "/nowhere/x: No such file or directory"),
}


@pytest.mark.parametrize(("statement", "code", "message"), FAILURES.values(), ids=FAILURES)
def test_what_nobody_expected_has_a_code_of_its_own_and_one_sentence(statement, code, message, monkeypatch):
    """In this process; the next tests have one of their own."""

    def broken(*arguments):
        exec(statement, {"sys": sys})

    monkeypatch.setattr(check, "_facts", broken)
    assert plumdp("info", "betting:5") == (code, "", f"error: {message}\n")


@pytest.mark.slow
def test_an_unexpected_error_is_json_if_that_is_asked_for():
    ended = run("info", "betting:5", "--json", code=BROKEN.format(statement="raise KeyError('money')"))
    assert (ended.returncode, ended.stderr) == (70, "")
    assert json.loads(ended.stdout) == {
        "schema": "plumdp/error/1",
        "error": {"kind": "unexpected", "message": f"plumdp ended unexpectedly (KeyError: 'money'){REPORT}"},
    }


@pytest.mark.night
def test_the_traceback_is_shown_on_demand():
    code = BROKEN.format(statement="raise KeyError('money')")
    ended = run("info", "betting:5", code=code, env={"PLUMDP_DEBUG": "1"})
    first, *_, last = ended.stderr.splitlines()
    assert (ended.returncode, first) == (70, "Traceback (most recent call last):")
    assert last == f"error: plumdp ended unexpectedly (KeyError: 'money'){REPORT}"
    assert "in broken" in ended.stderr


@pytest.mark.slow
@needs_posix
def test_ctrl_c_ends_with_130_and_without_a_word():
    ended = run("info", "betting:5", code=BROKEN.format(statement="os.kill(os.getpid(), signal.SIGINT); time.sleep(9)"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


INTERRUPTED_IMPORT = """
import os, signal, sys

def profile(frame, event, called):
    is_of_extension = getattr(called, "__name__", "") in ("create_dynamic", "exec_dynamic")
    state["inside"] += is_of_extension * {{"c_call": 1, "c_return": -1, "c_exception": -1}}.get(event, 0)
    state["calls"] += event == "call" and state["inside"] > 0
    if state["calls"] == {calls}:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "stormpy":
            sys.setprofile(profile)

state = {{"inside": 0, "calls": 0}}
sys.meta_path.insert(0, Finder())
from plumdp.cli import main
main()
"""


@pytest.mark.night
@needs_posix
@pytest.mark.parametrize("calls", [1, 500])
def test_ctrl_c_while_storm_is_loaded_is_not_taken_for_a_missing_storm(calls, tmp_path):
    """The signal comes while an extension calls Python, and pybind11 makes an ImportError of it."""
    pytest.importorskip("stormpy")
    file = tmp_path / "coin.prism"
    file.write_text("dtmc\nmodule coin\n x: [0..1];\n [] true -> 1/2: (x'=0) + 1/2: (x'=1);\nendmodule\n")
    ended = run("info", str(file), code=INTERRUPTED_IMPORT.format(calls=calls))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.night
@pytest.mark.parametrize("text", ["import sys\nsys.exit(0)\n", "def model():\n    raise SystemExit(0)\n"])
def test_a_model_that_exits_is_misuse(text, tmp_path):
    file = tmp_path / "model.py"
    file.write_text(text)
    ended = run("info", f"{file}:model")
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"error: {file}, line 2: SystemExit: 0\n")


@pytest.mark.night
def test_completion_still_ends_as_shells_expect():
    asked = {"_PLUMDP_COMPLETE": "complete_bash", "COMP_WORDS": "plumdp inf", "COMP_CWORD": "1"}
    ended = run(env=asked)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "info\n", "")
