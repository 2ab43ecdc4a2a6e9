"""The table of sub-commands: ``--help`` imports next to nothing, and says what each command says of itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from plumdp import cli, library
from plumdp.cli import COMMANDS, load

HEAVY = (
    "numba",
    "scipy",
    "numpy",
    "matplotlib",
    "pandas",
    "duckdb",
    "plumdp.experiments",
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


def test_the_commands_use_what_the_list_has_and_the_list_has_what_they_use():
    stub = ast.parse(Path(library.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    listed = [alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(cli.__file__).parent.glob("*.py")]
    used = {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "library"
    }
    assert sorted(listed) == sorted(used)
    assert all(getattr(library, name) is not None for name in listed)
    with pytest.raises(AttributeError, match=r"plumdp\.library does not list nothing"):
        getattr(library, "nothing")  # noqa: B009


def test_the_help_of_a_command_imports_no_library_of_numbers():
    """Only that of bench does, which says what each study is about."""
    code = f"""
import sys
from plumdp.cli import COMMANDS, app
for name in COMMANDS:
    if name != "bench":
        app([name, "--help"], standalone_mode=False)
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.stdout.count("Usage: ") == len(COMMANDS) - 1


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_each_command_what_the_command_says_of_itself(name):
    paragraph = load(name).help.split("\n\n")[0]
    assert COMMANDS[name].summary == " ".join(paragraph.split())


def test_a_command_that_there_is_not_is_misuse():
    done = subprocess.run([sys.executable, "-m", "plumdp", "certifi"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such command 'certifi'" in done.stderr
