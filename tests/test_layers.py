"""A stage imports earlier stages only, and each outside library has one door."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "plumdp"
STAGES = ("model", "data", "confidence", "region", "relaxation", "solver", "result")
# loose files that every stage may use
FOUNDATION = ("errors", "compiled", "keywords", "prefetch", "rounding", "tally", "threads", "vocabulary")
COMMANDS = {f"cli/{path.name}" for path in (SOURCE / "cli").glob("*.py")}
DOORS = {
    "stormpy": {"model/readers/storm.py"},
    "numba": {"compiled.py", "prefetch.py"},
    "threadpoolctl": {"threads.py"},
    "typer": COMMANDS,
    "rich": COMMANDS,
    "matplotlib": {
        "experiments/plots.py",
        *(f"plots/{name}.py" for name in ("style", "expression_forest", "model_graph", "policy_map", "region_outline")),
    },
    "jinja2": {"reporting/page.py"},
    "joblib": {"experiments/runner.py"},
    "distributed": {"experiments/runner.py"},
    "ray": {"experiments/runner.py"},
    "duckdb": {"data/duckdb_tables.py"},
    "narwhals": {"data/frame_logs.py", "data/frame_mappings.py", "model/named_policy.py"},
    "sqlglot": {"data/sql.py"},
    "gymnasium": {"data/environment.py"},
    "minari": {"data/minari_logs.py"},
}


def imported(source: str) -> set[str]:
    """Return the full names of all modules that a text imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def violations(path: str, source: str) -> list[str]:
    """Return what is wrong with the imports of one file, given by its path below the package."""
    found = []
    stage = path.split("/")[0]
    for name in sorted(imported(source)):
        package, _, rest = name.partition(".")
        if package == "plumdp" and stage in STAGES:
            other = rest.split(".")[0]
            if other in STAGES and STAGES.index(other) > STAGES.index(stage):
                found.append(f"{path} ({stage}) imports {name} from the later stage {other}")
            elif other and other not in STAGES and other not in FOUNDATION:
                found.append(f"{path} ({stage}) imports {name} from the outer ring")
        doors = DOORS.get(package)
        if doors and not any(path == door or path.endswith(f"/{door}") for door in doors):
            found.append(f"{path} imports {name}; its door is {', '.join(sorted(doors))}")
    return found


def test_every_stage_imports_earlier_stages_only():
    files = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    assert len(files) > 20
    assert [line for path, source in files.items() for line in violations(path, source)] == []


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        (
            "model/graph.py",
            "from plumdp.relaxation.intervals import IntervalMDP",
            "model/graph.py (model) imports plumdp.relaxation.intervals from the later stage relaxation",
        ),
        (
            "model/explore.py",
            "def f():\n    import plumdp.solver.layout_kernels",
            "model/explore.py (model) imports plumdp.solver.layout_kernels from the later stage solver",
        ),
        (
            "region/build.py",
            "from plumdp.case_studies import case_study",
            "region/build.py (region) imports plumdp.case_studies from the outer ring",
        ),
        (
            "model/check.py",
            "import stormpy.pars",
            "model/check.py imports stormpy.pars; its door is model/readers/storm.py",
        ),
        (
            "solver/evaluate.py",
            "from numba import njit",
            "solver/evaluate.py imports numba; its door is compiled.py, prefetch.py",
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
        ("pipeline.py", "from plumdp.result.certificate import Certificate"),
        ("model/check.py", "from plumdp.base.errors import ModelError"),
    ],
)
def test_what_is_allowed_is_not_reported(path, source):
    assert violations(path, source) == []


def circle(files: dict[str, str]) -> list[str]:
    """Return modules that import each other in a circle, if any do; files are given by module name."""
    graph = {}
    for module, source in files.items():
        graph[module] = {name for name in imported(source) if name in files and name != module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle():
    paths = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]
    names = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path for path in paths}
    assert circle({name.removesuffix(".__init__"): path.read_text("utf-8") for name, path in names.items()}) == []


def test_a_planted_circle_is_found():
    files = {"plumdp.a": "from plumdp.b import x", "plumdp.b": "def f():\n    from plumdp import c", "plumdp.c": ""}
    assert circle(files) == []
    assert set(circle(files | {"plumdp.c": "import plumdp.a"})) == {"plumdp.a", "plumdp.b", "plumdp.c"}
