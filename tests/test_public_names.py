"""The public surface: some thirty names, and namespaces for the rest; documented with examples, and cheap to import."""

import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from package_size import NAMESPACES

import plumdp

ROOT = Path(__file__).parents[1]
NAMES = [name for name in plumdp.__all__ if name not in NAMESPACES]


def listed(namespace: str) -> list[str]:
    """Return the public names of a namespace, which its first file lists."""
    module = getattr(plumdp, namespace)
    return [name for name in vars(module) if name[0] != "_"] if namespace == "decisions" else list(module.__all__)


def public() -> dict[str, object]:
    """Return everything public by its name after ``plumdp.``"""
    inner = {f"{space}.{name}": getattr(getattr(plumdp, space), name) for space in NAMESPACES for name in listed(space)}
    return {name: getattr(plumdp, name) for name in NAMES} | inner


def test_the_root_has_few_names_and_says_which():
    assert 25 <= len(NAMES) <= 35
    assert len(public()) <= 68
    assert dir(plumdp) == sorted([*plumdp.__all__, "__version__"])
    assert {"certify", "learn", "conclude", "explain", "read_log", "write_result", "draw"} <= set(NAMES)


def test_a_star_import_gives_exactly_the_public_names():
    names = {}
    exec("from plumdp import *", names)
    assert names.keys() - {"__builtins__"} == set(plumdp.__all__)


def test_no_name_is_in_two_places():
    last = [name.rpartition(".")[2] for name in public()]
    assert len(last) == len(set(last)) > 60


def test_the_reference_documents_exactly_the_public_names():
    """Types that functions return and nobody makes are documented by the module that defines them."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    found = re.findall(r"^\.\. auto(?:function|class|exception|module):: plumdp\.([\w.]+)$", pages, re.MULTILINE)
    documented = [name for name in found if name.count(".") == 0 or name.split(".")[0] in NAMESPACES]
    assert sorted(name for name in documented if name.count(".") < 2) == sorted(public())


def test_the_model_comes_first_wherever_there_is_one():
    functions = {name: each for name, each in public().items() if isinstance(each, FunctionType)}
    places = {name: [*inspect.signature(each).parameters] for name, each in functions.items()}
    others = {name for name, names in places.items() if "model" in names and names[0] != "model"}
    assert others == {"parse_property", "read_result", "write_result"}  # what the model is to explain
    assert sum("model" in names for names in places.values()) > 20


def test_every_verb_called_the_other_way_says_the_line_to_write():
    """What rests on something learned takes that first, and certify(model, counts, objective) is the only shorthand."""
    study = plumdp.case_study("betting:5")
    counts = plumdp.simulate(study.model, study.true_point, 10, rng=1, max_steps=6)
    learned, n_of_learned = plumdp.learn(study.model, counts, objectives=[study.objective]), 0
    for verb in public().values():
        if isinstance(verb, FunctionType):
            first, *others = inspect.signature(verb).parameters.values()
            needed = [each for each in others if each.default is each.empty and each.kind is not each.KEYWORD_ONLY]
            if first.name == "learned":
                n_of_learned += 1
                line = re.escape(f"write {verb.__name__}({', '.join(['learned', *(each.name for each in needed)])}")
                with pytest.raises(plumdp.DataError, match=line):
                    verb(study.model, counts, *[study.objective] * len(needed))
            if verb in (plumdp.learn, plumdp.certify):
                line = r"\.model|write conclude\(learned, objective\)" if verb is plumdp.certify else r"\.model"
                with pytest.raises((plumdp.DataError, plumdp.ModelError), match=line):
                    verb(learned, *[study.objective] * len(needed))
    assert n_of_learned > 10


def test_functions_and_types_can_be_pickled():
    for value in public().values():
        if not isinstance(value, ModuleType):
            assert pickle.loads(pickle.dumps(value)) is value


def test_the_wheel_contains_the_stubs_and_no_studies():
    """Without the stubs, nothing could be imported."""
    wheel = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    files = {file.distribution_path for file in wheel.recurse_included_files()}
    assert {"plumdp/__init__.pyi", "plumdp/data/__init__.pyi", "plumdp/py.typed"} <= files
    assert not [file for file in files if file.startswith("studies/") or "experiments" in file]
    assert wheel.metadata.version == plumdp.__version__


def test_every_public_name_says_what_it_is_and_functions_show_an_example():
    for name, value in public().items():
        words = value.__doc__ or ""
        assert words.strip(), f"{name} has no docstring"
        assert name.rpartition(".")[2][0].isupper() or ">>>" in words, f"{name} has no example"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="No plumdp attribute certifyy"):
        plumdp.certifyy  # noqa: B018


def test_importing_plumdp_loads_nothing_heavy():
    heavy = ["numpy", "numba", "scipy", "flint", "stormpy", "matplotlib", "typer", "rich"]
    code = f"import sys, plumdp; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
