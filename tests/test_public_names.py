"""The public surface: what it is, that it is documented with an example, and that importing it costs little."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import plumdp

PUBLIC = [
    "Polynomial",
    "parameters",
    "PolynomialArray",
    "tabulate",
    "ParameterSpace",
    "Graph",
    "ParametricMDP",
    "RewardStructure",
    "explore",
    "explore_batch",
    "read_model",
    "read_prism",
    "Reach",
    "Reward",
    "parse_predicate",
    "parse_property",
    "Issue",
    "check",
    "Events",
    "find_events",
    "EventCounts",
    "TransitionCounts",
    "first_visits",
    "simulate",
    "Trajectories",
    "record",
    "record_blocks",
    "as_env",
    "gym_environment",
    "sample_env",
    "Log",
    "read_log",
    "IngestionReport",
    "counts_query",
    "read_counts",
    "write_counts",
    "ExpressionBounds",
    "expression_bounds",
    "Polytope",
    "Conflict",
    "build_region",
    "project",
    "IntervalMDP",
    "instantiate",
    "expression_wise",
    "interval_wise",
    "parameter_wise",
    "rectangular",
    "Solution",
    "solve",
    "evaluate",
    "PolicyTable",
    "Certificate",
    "Learned",
    "learn",
    "certify",
    "compare",
    "conclude",
    "OnlineRecord",
    "learn_online",
    "simulator",
    "CaseStudy",
    "case_study",
    "summarise",
    "DataError",
    "MissingExtra",
    "ModelError",
]


def test_the_public_names_are_exactly_these():
    assert plumdp.__all__ == PUBLIC
    assert set(dir(plumdp)) == {*PUBLIC, "__version__"}


def test_the_names_for_type_checkers_are_the_same():
    tree = ast.parse(Path(plumdp.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    static = {f"{node.module}:{alias.asname}" for node in block.body for alias in node.names}
    assert static == {f"plumdp.{module}:{name}" for module, names in plumdp._HOME.items() for name in names}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_says_what_it_is(name):
    assert (getattr(plumdp, name).__doc__ or "").strip(), f"{name} has no docstring"


@pytest.mark.parametrize("name", [name for name in PUBLIC if name[0].islower()])
def test_every_public_function_has_an_example_that_runs(name):
    assert ">>>" in getattr(plumdp, name).__doc__, f"{name} has no example"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'plumdp' has no attribute 'certifyy'"):
        plumdp.certifyy  # noqa: B018


def test_importing_plumdp_loads_nothing_heavy():
    heavy = ["numpy", "numba", "scipy", "flint", "stormpy", "matplotlib", "typer", "rich"]
    code = f"import sys, plumdp; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
