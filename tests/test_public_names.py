"""The public surface: that it is what the stub lists, documented with examples, and that importing it costs little."""

import ast
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import plumdp

ROOT = Path(__file__).parents[1]
STUB = ast.parse(Path(plumdp.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
LISTED = [
    (node.module, alias.name) for node in ast.walk(STUB) if isinstance(node, ast.ImportFrom) for alias in node.names
]
PUBLIC = [name for _, name in LISTED]


def test_the_public_names_are_those_of_the_stub():
    assert plumdp.__all__ == sorted(PUBLIC)
    assert dir(plumdp) == sorted([*PUBLIC, "__version__"])
    assert len(PUBLIC) == len(set(PUBLIC)) > 60


@pytest.mark.parametrize(("module", "name"), LISTED)
def test_every_name_is_found_where_the_stub_says(module, name):
    assert getattr(plumdp, name) is getattr(import_module(f"plumdp.{module}" if module else "plumdp"), name)


def test_a_star_import_gives_exactly_the_public_names():
    names = {}
    exec("from plumdp import *", names)
    assert names.keys() - {"__builtins__"} == set(PUBLIC)


def test_the_reference_documents_exactly_the_public_names():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    documented = re.findall(r"^\.\. auto(?:function|class|exception|module):: plumdp\.(\w+)$", pages, re.MULTILINE)
    assert sorted(documented) == sorted(PUBLIC)


def test_functions_and_types_can_be_pickled():
    for name in PUBLIC:
        if isinstance(getattr(plumdp, name), ModuleType):
            continue
        assert pickle.loads(pickle.dumps(getattr(plumdp, name))) is getattr(plumdp, name)


def test_the_wheel_contains_the_stub():
    """Without it, nothing could be imported."""
    wheel = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    assert {"plumdp/__init__.pyi", "plumdp/py.typed"} <= {f.distribution_path for f in wheel.recurse_included_files()}
    assert wheel.metadata.version == plumdp.__version__


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_says_what_it_is(name):
    assert (getattr(plumdp, name).__doc__ or "").strip(), f"{name} has no docstring"


@pytest.mark.parametrize("name", [name for name in PUBLIC if name[0].islower()])
def test_every_public_function_has_an_example_that_runs(name):
    assert ">>>" in getattr(plumdp, name).__doc__, f"{name} has no example"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="No plumdp attribute certifyy"):
        plumdp.certifyy  # noqa: B018


def test_importing_plumdp_loads_nothing_heavy():
    heavy = ["numpy", "numba", "scipy", "flint", "stormpy", "matplotlib", "typer", "rich"]
    code = f"import sys, plumdp; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
