"""The table of sub-commands: ``--help`` imports next to nothing, and says what each command says of itself."""

import subprocess
import sys

import pytest

from plumdp.cli import COMMANDS, load

HEAVY = ("numba", "scipy", "numpy", "matplotlib", "pandas", "duckdb", "plumdp.experiments", "plumdp.pipeline")


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


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_each_command_what_the_command_says_of_itself(name):
    paragraph = load(name).help.split("\n\n")[0]
    assert COMMANDS[name].summary == " ".join(paragraph.split())


def test_a_command_that_there_is_not_is_misuse():
    done = subprocess.run([sys.executable, "-m", "plumdp", "certifi"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such command 'certifi'" in done.stderr
