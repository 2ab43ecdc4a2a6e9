"""The table of sub-commands: ``--help`` imports next to nothing, and commands take the same options alike."""

import ast
import inspect
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from itertools import combinations
from pathlib import Path

import pytest
from command_line import plumdp

from plumdp import cli
from plumdp.base.threads import n_threads
from plumdp.cli import COMMANDS, load
from plumdp.cli.interval_options import IntervalModelOptions
from plumdp.cli.options import LogOptions, ModelOptions, PropertyOptions, SetOptions

HEAVY = (
    "numba",
    "scipy",
    "numpy",
    "matplotlib",
    "pandas",
    "duckdb",
    "plumdp.certifying.pipeline",
)
HEAVY += ("flint", "jinja2", "plumdp.model.graph")


def test_help_imports_no_library_of_numbers():
    code = f"""
import sys
from plumdp.cli import app
app(["--help"], standalone_mode=False)
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.slow
def test_the_help_of_a_command_imports_no_library_of_numbers():
    code = f"""
import sys
from plumdp.cli import COMMANDS, app
for name in COMMANDS:
    app([name, "--help"], standalone_mode=False)
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.stdout.count("Usage: ") == len(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_each_command_what_the_command_says_of_itself(name):
    paragraph = load(name).help.split("\n\n")[0]
    assert COMMANDS[name].summary == " ".join(paragraph.split())


def test_a_command_that_there_is_not_is_misuse():
    done = subprocess.run([sys.executable, "-m", "plumdp", "certifi"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such command 'certifi'" in done.stderr


def shared_parameters(name):
    """Return the parameters of a command that are declared in ``cli/arguments.py``, in their order."""
    about = COMMANDS[name]
    function = getattr(import_module(f"plumdp.cli.{about.module}"), about.function)
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each for each in parameters if str(each.annotation).startswith("args.")}


def test_two_commands_take_the_same_option_alike():
    """By the same declaration, with the same default, and in the same order; four names have several meanings."""
    several = {"force", "output", "data", "property"}
    for first, second in combinations(map(shared_parameters, COMMANDS), 2):
        names = [name for name in first if name in second and name not in several]
        assert names == [name for name in second if name in first and name not in several]
        for name in names:
            assert (first[name].annotation, first[name].default) == (second[name].annotation, second[name].default)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_all_options_about_data_or_sets_or_none(name):
    """But commands without evidence, and those that only name a confidence."""
    taken = [*shared_parameters(name)]
    for group, needed in ((LogOptions, "data"), (SetOptions, "evidence"), (ModelOptions, "space")):
        wanted = [each.name for each in fields(group) if each.name != "model"]
        assert needed not in taken or [each for each in taken if each in wanted] == wanted


@pytest.mark.slow
def test_options_are_put_together_under_their_own_names():
    """They are given by place, where two of the same type could change places."""
    groups = {
        each.__name__: each for each in (IntervalModelOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions)
    }
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(cli.__file__).parent.glob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in groups]
    assert len(made) > 20
    for call in made:
        given = [each.id for each in call.args if isinstance(each, ast.Name)]
        names = [each.name for each in fields(groups[call.func.id])]
        assert ["model" if name == "subject" else name for name in given] == names[: len(given)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_ends_with_the_options_that_all_have(name):
    assert [each.name for each in load(name).params[-3:]] == ["verbose", "config", "threads"]


def test_threads_are_those_of_the_option_until_the_command_ends(tmp_path):
    text = "import plumdp\nfrom plumdp.base.threads import n_threads\nprint('threads', n_threads())\n"
    (tmp_path / "model.py").write_text(f"{text}model = plumdp.case_study('betting:5').model\n")
    before = n_threads()
    ended = plumdp("info", f"{tmp_path}/model.py:model", "--threads", "3")
    assert (ended.code, ended.err) == (0, "threads 3\n")
    assert n_threads() == before
    refused = plumdp("info", "betting:5", "--threads", "0")
    assert refused == (2, "", "error: --threads 0: give the number of threads, 1 or more\n")
