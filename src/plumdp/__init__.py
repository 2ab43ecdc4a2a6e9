"""Parameter learning for uncertain MDPs: from a parametric model and data to a policy with a guarantee."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # the public names, in the order of the pipeline; each is loaded when it is first used
    from plumdp.benchmarks import Benchmark as Benchmark
    from plumdp.benchmarks import benchmark as benchmark
    from plumdp.errors import DataError as DataError
    from plumdp.errors import MissingExtra as MissingExtra
    from plumdp.errors import ModelError as ModelError
    from plumdp.model.check import Issue as Issue
    from plumdp.model.check import check as check
    from plumdp.model.explore import explore as explore
    from plumdp.model.explore import explore_batch as explore_batch
    from plumdp.model.graph import Graph as Graph
    from plumdp.model.objective import Reach as Reach
    from plumdp.model.objective import Reward as Reward
    from plumdp.model.parametric import ParametricMDP as ParametricMDP
    from plumdp.model.parametric import RewardStructure as RewardStructure
    from plumdp.model.polynomial import Polynomial as Polynomial
    from plumdp.model.polynomial import parameters as parameters
    from plumdp.model.polynomial_array import PolynomialArray as PolynomialArray
    from plumdp.model.polynomial_array import tabulate as tabulate
    from plumdp.model.property import parse_predicate as parse_predicate
    from plumdp.model.property import parse_property as parse_property
    from plumdp.model.space import ParameterSpace as ParameterSpace
    from plumdp.model.storm import read_prism as read_prism
    from plumdp.relaxation.intervals import IntervalMDP as IntervalMDP
    from plumdp.relaxation.intervals import instantiate as instantiate
    from plumdp.solver.evaluate import evaluate as evaluate
    from plumdp.solver.solve import Solution as Solution
    from plumdp.solver.solve import solve as solve
    from plumdp.summary import summarise as summarise

_HOME = {
    "model.polynomial": ("Polynomial", "parameters"),
    "model.polynomial_array": ("PolynomialArray", "tabulate"),
    "model.space": ("ParameterSpace",),
    "model.graph": ("Graph",),
    "model.parametric": ("ParametricMDP", "RewardStructure"),
    "model.explore": ("explore", "explore_batch"),
    "model.storm": ("read_prism",),
    "model.objective": ("Reach", "Reward"),
    "model.property": ("parse_predicate", "parse_property"),
    "model.check": ("Issue", "check"),
    "relaxation.intervals": ("IntervalMDP", "instantiate"),
    "solver.solve": ("Solution", "solve"),
    "solver.evaluate": ("evaluate",),
    "benchmarks": ("Benchmark", "benchmark"),
    "summary": ("summarise",),
    "errors": ("DataError", "MissingExtra", "ModelError"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [*_MODULE]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'plumdp' has no attribute {name!r}")
    value = getattr(import_module(f"plumdp.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
