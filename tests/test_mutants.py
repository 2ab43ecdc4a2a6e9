"""Every planted error of tests/mutants.toml is found by day, and every test that plants one is listed there."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MUTANTS = tomllib.loads((TESTS / "mutants.toml").read_text(encoding="utf-8"))
FOUND = [(f"tests/{file}.py", test) for file, tests in MUTANTS.items() for test in tests.values()]
SAYS_SO = re.compile("mutant|planted|caught|found_out|negative control|check can fail", re.IGNORECASE)
OTHERS = {  # say so, and plant no error of the package
    "test_every_game_finds_a_mutant",
    "test_every_process_has_a_mutant",
    "test_plain_value_iteration_passes_this_test_on_a_fast_chain",
    "test_the_bound_is_not_positive_where_tests_have_a_point_in_common",
    "test_a_planted_drift_contradicts_all_points_on_its_side_and_only_there",
}


@cache
def functions(file):
    """Return name and docstring of each test of a file."""
    tree = ast.parse((TESTS.parent / file).read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {node.name: ast.get_docstring(node) or "" for node in tests}


@pytest.mark.slow
def test_every_test_of_the_table_exists():
    assert [(file, test) for file, test in FOUND if test.partition("[")[0] not in functions(file)] == []


@pytest.mark.slow
def test_every_test_that_plants_an_error_is_in_the_table():
    listed = {test.partition("[")[0] for _, test in FOUND} | OTHERS
    files = [path.relative_to(TESTS.parent).as_posix() for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    missing = {
        f"{file}::{name}"
        for file in files
        for name, text in functions(file).items()
        if SAYS_SO.search(name + text.partition(".")[0]) and name not in listed
    }
    assert missing == set()


@pytest.mark.slow
def test_every_test_of_the_table_is_run_by_day(request):
    """Of the files that this run has collected; with their parameters, and without a condition to leave them out."""
    options = request.config.option
    if options.keyword or options.markexpr or any("::" in argument for argument in request.config.args):
        pytest.skip("tests were left out")
    may_skip = ("test_report.py",)  # where there is no browser
    items = request.session.items
    run = {item.nodeid for item in items if item.path.name in may_skip or not item.get_closest_marker("skipif")}
    files = {nodeid.partition("::")[0] for nodeid in run}
    names = run | {nodeid.partition("[")[0] for nodeid in run}
    asked = {f"{file}::{test}" for file, test in FOUND if file in files}
    assert asked - names == set()
