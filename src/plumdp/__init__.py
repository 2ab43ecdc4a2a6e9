"""Parameter learning for uncertain MDPs: from a parametric model and data to a policy with a guarantee."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # the public names, in the order of the pipeline; each is loaded when it is first used
    from plumdp.model.polynomial import Polynomial as Polynomial, parameters as parameters
    from plumdp.model.polynomial_array import PolynomialArray as PolynomialArray, tabulate as tabulate
    from plumdp.model.space import ParameterSpace as ParameterSpace
    from plumdp.model.graph import Graph as Graph
    from plumdp.model.parametric import ParametricMDP as ParametricMDP, RewardStructure as RewardStructure
    from plumdp.model.explore import explore as explore, explore_batch as explore_batch
    from plumdp.model.storm import read_prism as read_prism
    from plumdp.model.objective import Reach as Reach, Reward as Reward
    from plumdp.model.property import parse_predicate as parse_predicate, parse_property as parse_property
    from plumdp.model.check import Issue as Issue, check as check
    from plumdp.relaxation.intervals import IntervalMDP as IntervalMDP, instantiate as instantiate
    from plumdp.benchmarks import Benchmark as Benchmark, benchmark as benchmark
    from plumdp.summary import summarise as summarise
    from plumdp.errors import DataError as DataError, MissingExtra as MissingExtra, ModelError as ModelError

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
