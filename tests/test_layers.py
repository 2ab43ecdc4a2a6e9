"""A room imports rooms before it only, and each outside library is imported in one place."""

import ast
import re
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "plumdp"
CHECKER = SOURCE.parent / "plumdp_verify"
# all rooms, in the one order in which they may import each other; the root has no files but the public names
ROOMS = (
    *("base", "model", "case_studies", "data", "confidence", "region", "fit", "relaxation", "solver"),
    *(
        "tables",
        "stages",
        "result",
        "learning",
        "certifying",
        "verifying",
        "exchange",
        "explaining",
        "online",
        "watching",
        "decisions",
        "starting",
        "plots",
    ),
    "reporting",
    "cli",
)
ROOT = {"__init__.py", "__main__.py", "kinds.py"}
COMMANDS = {f"cli/{path.name}" for path in (SOURCE / "cli").glob("*.py")}
DOORS = {
    "stormpy": {"model/readers/storm.py"},
    "numba": {"base/compiled.py"},
    "threadpoolctl": {"base/threads.py"},
    "typer": COMMANDS,
    "rich": COMMANDS,
    "matplotlib": {
        *(f"plots/{name}.py" for name in ("style", "lists", "policy_map", "region_outline")),
    },
    "jinja2": {"reporting/page.py"},
    "duckdb": {"data/duckdb_engine.py"},
    "sqlglot": {"data/sql.py", "data/mapping_language.py"},
    "gymnasium": {"data/environment.py"},
    "deltalake": {"data/snapshots.py"},
    "pyiceberg": {"data/snapshots.py"},
}


@cache
def imported(source: str, package: str) -> set[str]:
    """Return the full names of all modules that a text of a package imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def violations(path: str, source: str) -> list[str]:
    """Return what is wrong with the imports of one file, given by its path below the package."""
    problems = []
    room, is_loose = path.split("/")[0], "/" not in path
    if path not in ROOT and room not in ROOMS:
        problems.append(f"{path} is in no room")
    for name in sorted(imported(source, ".".join(["plumdp", *path.split("/")[:-1]]))):
        package, _, rest = name.partition(".")
        other = rest.split(".")[0]
        if package == "plumdp" and not is_loose and room in ROOMS and other in ROOMS[ROOMS.index(room) + 1 :]:
            problems.append(f"{path} ({room}) imports {name} from the later room {other}")
        if package == "plumdp_verify" and room != "verifying":
            problems.append(f"{path} imports {name}; only verifying/ may import the checker")
        doors = DOORS.get(package)
        if doors and not any(path == door or path.endswith(f"/{door}") for door in doors):
            problems.append(f"{path} imports {name}; its door is {', '.join(sorted(doors))}")
    return problems


@pytest.mark.slow
def test_every_room_imports_earlier_rooms_only():
    files = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    assert {path.split("/")[0] for path in files if "/" in path} == set(ROOMS)
    assert [line for path, source in files.items() for line in violations(path, source)] == []


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        (
            "model/graph.py",
            "from plumdp.relaxation.intervals import IntervalMDP",
            "model/graph.py (model) imports plumdp.relaxation.intervals from the later room relaxation",
        ),
        (
            "model/explore.py",
            "def f():\n    import plumdp.solver.chain_kernels",
            "model/explore.py (model) imports plumdp.solver.chain_kernels from the later room solver",
        ),
        (
            "learning/learn.py",
            "from plumdp.certifying import pipeline",
            "learning/learn.py (learning) imports plumdp.certifying from the later room certifying",
        ),
        (
            "model/readers/read.py",
            "from ...solver import evaluate",
            "model/readers/read.py (model) imports plumdp.solver from the later room solver",
        ),
        ("shares.py", "", "shares.py is in no room"),
        ("checking/fit.py", "", "checking/fit.py is in no room"),
        (
            "model/check.py",
            "import stormpy.pars",
            "model/check.py imports stormpy.pars; its door is model/readers/storm.py",
        ),
        (
            "cli/verify.py",
            "from plumdp_verify.check import verify",
            "cli/verify.py imports plumdp_verify.check; only verifying/ may import the checker",
        ),
        (
            "solver/evaluate.py",
            "from numba import njit",
            "solver/evaluate.py imports numba; its door is base/compiled.py",
        ),
    ],
)
def test_a_planted_violation_is_found(path, source, expected):
    assert expected in violations(path, source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("relaxation/intervals.py", "from plumdp.model.graph import Graph"),
        ("model/kernels.py", "from plumdp.base.compiled import compiled"),
        ("certifying/pipeline.py", "from plumdp.result.certificate import Certificate"),
        ("verifying/verify.py", "from plumdp_verify import check"),
        ("__main__.py", "from plumdp.cli import main"),
    ],
)
def test_what_is_allowed_is_not_reported(path, source):
    assert violations(path, source) == []


@pytest.mark.slow
def test_the_checker_imports_nothing_but_the_standard_library_and_flint():
    """So that it can be read, and run, without the code whose results it checks."""
    files = list(CHECKER.rglob("*.py"))
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    absolute = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    absolute |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    inside = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 1}
    assert {name.split(".")[0] for name in absolute} - sys.stdlib_module_names == {"flint"}
    assert inside <= {path.stem for path in files}
    assert not [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level > 1]
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"eval", "exec", "compile", "__import__", "open"}


def circle(files: dict[str, str]) -> list[str]:
    """Return modules that import each other in a circle, if any do; files are given by module name."""
    graph, packages = {}, {module.rpartition(".")[0] for module in files}
    for module, source in files.items():
        package = module if module in packages else module.rpartition(".")[0]
        graph[module] = {name for name in imported(source, package) if name in files and name != module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle():
    paths = [path for path in (*SOURCE.rglob("*.py"), *CHECKER.rglob("*.py")) if path != SOURCE / "__init__.py"]
    names = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path for path in paths}
    assert circle({name.removesuffix(".__init__"): path.read_text("utf-8") for name, path in names.items()}) == []


def test_a_planted_circle_is_found():
    files = {"plumdp.a": "from plumdp.b import x", "plumdp.b": "def f():\n    from plumdp import c", "plumdp.c": ""}
    assert circle(files) == []
    assert set(circle(files | {"plumdp.c": "import plumdp.a"})) == {"plumdp.a", "plumdp.b", "plumdp.c"}


@pytest.mark.parametrize(
    "back", ["from .a import x", "from . import a", "from ..room.a import x", "from .. import room"]
)
def test_a_planted_circle_of_relative_imports_is_found(back):
    files = {"p": "", "p.room": "from .a import x", "p.room.a": "from .b import x", "p.room.b": ""}
    assert circle(files) == []
    assert {"p.room.a", "p.room.b"} <= set(circle(files | {"p.room.b": back}))


@pytest.mark.slow
def test_no_two_classes_have_one_name():
    """A word has one meaning in the package, private classes included."""
    texts = [path.read_text("utf-8") for path in SOURCE.rglob("*.py")]
    names = Counter(name for text in texts for name in re.findall(r"^ *class (\w+)[(:]", text, re.MULTILINE))
    assert [name for name, n in names.items() if n > 1] == []
    assert len(names) > 300


TEXTS = {  # values of variables, or what people gave
    "cli/sources.py: _value",
    "cli/texts.py: action_map",
    "data/remembering.py: first",
    "verifying/chain_part.py: _reward",
}


def kinds(node: ast.expr) -> set[str]:
    """Return the types of which a type is a union."""
    return kinds(node.left) | kinds(node.right) if isinstance(node, ast.BinOp) else {ast.unparse(node)}


def or_texts(source: str) -> list[str]:
    """Return what returns a text or something else, by its annotation: functions, and types of functions by line."""
    found = []
    for node in ast.walk(ast.parse(source)) if re.search(r"\| str\b|\bstr \|", source) else ():
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.BinOp):
            found += [(node.name, kinds(node.returns))]
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Callable":
            found += [(f"line {node.lineno}", kinds(node.slice.elts[-1]))]
    return [name for name, each in found if "str" in each and each - {"str", "None"}]


@pytest.mark.slow
def test_why_there_is_no_answer_is_a_type_of_its_own():
    """A function that returns something, or why there is none, returns ``WhyNot`` then: texts are answers."""
    files = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    assert {f"{path}: {name}" for path, text in files.items() for name in or_texts(text)} == TEXTS


@pytest.mark.parametrize("kind", ["Proof | str", "str | Proof", "list[Proof | None] | str"])
def test_a_planted_text_in_place_of_an_answer_is_found(kind):
    assert or_texts(f"def prove(sought: str | None) -> {kind}: ...") == ["prove"]
    assert or_texts(f"Prover: TypeAlias = Callable[[Sought | str], {kind}]") == ["line 1"]
    assert or_texts("def shown(path: Path | str) -> str | None: ...\ndef parts() -> list[str | Option]: ...") == []
