"""The table of sub-commands: ``--help`` imports next to nothing, and commands take the same options alike."""

import subprocess
import sys

import pytest
from command_line import plumdp

from plumdp.cli import COMMANDS, load
from plumdp.cli.commands import REMOVED
from plumdp.cli.options import GROUPS, OPTIONS, Options

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


def test_a_command_that_there_is_not_is_misuse():
    done = subprocess.run([sys.executable, "-m", "plumdp", "certifi"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such command 'certifi'" in done.stderr


@pytest.mark.parametrize(("name", "line"), REMOVED.items())
def test_a_command_that_there_was_says_what_to_type(name, line):
    ended = plumdp(name, "betting:5", "counts.parquet")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: No such command '{name}'; type {line}\n"
    assert name not in COMMANDS
    is_python = line.endswith(" in Python")
    assert is_python or all(one.split(" MODEL")[0].removeprefix("plumdp ") in COMMANDS for one in line.split(", or "))


def options_of(name):
    return {each.name: each for each in load(name).params if each.param_type_name == "option" and each.name in OPTIONS}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_names_options_that_there_are_and_its_words_are_of_those_it_takes(name):
    about = COMMANDS[name]
    assert {each.removesuffix("!") for each in about.takes.split()} <= {*OPTIONS, *GROUPS}
    assert {*about.words} <= {*options_of(name), *about.arguments}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_typer_knows_of_an_option_is_in_the_table(name):
    """And its default is the one that a function gets which is given none."""
    for key, option in options_of(name).items():
        assert [*option.opts, *option.secondary_opts] == "/".join(OPTIONS[key].flags).split("/")
        assert option.default in (OPTIONS[key].default, None)
        assert getattr(Options(), key) == OPTIONS[key].default


def test_few_commands_take_few_options():
    """Growth is a cost: one more needs another to go."""
    flags = {each.opts[0] for name in COMMANDS for each in load(name).params if each.param_type_name == "option"}
    assert len(COMMANDS) <= 17
    assert len(flags) <= 72


def test_help_shows_eight_options_of_certify_and_names_the_others(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    short, full = plumdp("certify", "-h").out, plumdp("certify", "--help-all").out
    shown = short.partition("\nOptions:\n")[2].partition("\nMore options")[0]
    assert len([line for line in shown.splitlines() if line.startswith("  -")]) == 8
    for option in options_of("certify").values():
        assert option.opts[0] in short
        assert " ".join(option.help.split()) in " ".join(full.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_ends_with_the_options_that_all_have(name):
    assert [each.name for each in load(name).params[-2:]] == ["verbose", "help_all"]
