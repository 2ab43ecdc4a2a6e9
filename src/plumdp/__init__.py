"""Parameter learning for uncertain MDPs: from a parametric model and data to a policy with a guarantee."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # the public names, in the order of the pipeline; each is loaded when it is first used
    from plumdp.case_studies import Benchmark as Benchmark
    from plumdp.case_studies import CaseStudy as CaseStudy
    from plumdp.case_studies import benchmark as benchmark
    from plumdp.case_studies import case_study as case_study
    from plumdp.confidence.bounds import ExpressionBounds as ExpressionBounds
    from plumdp.confidence.bounds import expression_bounds as expression_bounds
    from plumdp.data.counts import EventCounts as EventCounts
    from plumdp.data.counts import TransitionCounts as TransitionCounts
    from plumdp.data.files import read_counts as read_counts
    from plumdp.data.files import write_counts as write_counts
    from plumdp.data.logs import Log as Log
    from plumdp.data.logs import read_log as read_log
    from plumdp.data.report import IngestionReport as IngestionReport
    from plumdp.data.simulate import first_visits as first_visits
    from plumdp.data.simulate import simulate as simulate
    from plumdp.data.simulators import as_env as as_env
    from plumdp.data.simulators import gym_environment as gym_environment
    from plumdp.data.simulators import sample_env as sample_env
    from plumdp.data.sql import counts_query as counts_query
    from plumdp.data.trajectories import Trajectories as Trajectories
    from plumdp.data.trajectories import record as record
    from plumdp.data.trajectories import record_blocks as record_blocks
    from plumdp.errors import DataError as DataError
    from plumdp.errors import MissingExtra as MissingExtra
    from plumdp.errors import ModelError as ModelError
    from plumdp.learning import Learned as Learned
    from plumdp.learning import learn as learn
    from plumdp.model.check import Issue as Issue
    from plumdp.model.check import check as check
    from plumdp.model.events import Events as Events
    from plumdp.model.events import find_events as find_events
    from plumdp.model.explore import explore as explore
    from plumdp.model.explore import explore_batch as explore_batch
    from plumdp.model.expressions.arrays import PolynomialArray as PolynomialArray
    from plumdp.model.expressions.arrays import tabulate as tabulate
    from plumdp.model.expressions.polynomial import Polynomial as Polynomial
    from plumdp.model.expressions.polynomial import parameters as parameters
    from plumdp.model.graph import Graph as Graph
    from plumdp.model.language.property import parse_predicate as parse_predicate
    from plumdp.model.language.property import parse_property as parse_property
    from plumdp.model.objective import Reach as Reach
    from plumdp.model.objective import Reward as Reward
    from plumdp.model.parametric import ParametricMDP as ParametricMDP
    from plumdp.model.parametric import RewardStructure as RewardStructure
    from plumdp.model.readers.read import read_model as read_model
    from plumdp.model.readers.storm import read_prism as read_prism
    from plumdp.model.space import ParameterSpace as ParameterSpace
    from plumdp.online import OnlineRecord as OnlineRecord
    from plumdp.online import learn_online as learn_online
    from plumdp.online import simulator as simulator
    from plumdp.pipeline import certify as certify
    from plumdp.pipeline import compare as compare
    from plumdp.pipeline import conclude as conclude
    from plumdp.region.build import build_region as build_region
    from plumdp.region.build import project as project
    from plumdp.region.conflict import Conflict as Conflict
    from plumdp.region.shapes import Polytope as Polytope
    from plumdp.relaxation.intervals import IntervalMDP as IntervalMDP
    from plumdp.relaxation.intervals import instantiate as instantiate
    from plumdp.relaxation.relax import expression_wise as expression_wise
    from plumdp.relaxation.relax import interval_wise as interval_wise
    from plumdp.relaxation.relax import parameter_wise as parameter_wise
    from plumdp.relaxation.relax import rectangular as rectangular
    from plumdp.result.certificate import Certificate as Certificate
    from plumdp.result.policy_table import PolicyTable as PolicyTable
    from plumdp.solver.evaluate import evaluate as evaluate
    from plumdp.solver.solution import Solution as Solution
    from plumdp.solver.solve import solve as solve
    from plumdp.summary import summarise as summarise

_HOME = {
    "model.expressions.polynomial": ("Polynomial", "parameters"),
    "model.expressions.arrays": ("PolynomialArray", "tabulate"),
    "model.space": ("ParameterSpace",),
    "model.graph": ("Graph",),
    "model.parametric": ("ParametricMDP", "RewardStructure"),
    "model.explore": ("explore", "explore_batch"),
    "model.readers.read": ("read_model",),
    "model.readers.storm": ("read_prism",),
    "model.objective": ("Reach", "Reward"),
    "model.language.property": ("parse_predicate", "parse_property"),
    "model.check": ("Issue", "check"),
    "model.events": ("Events", "find_events"),
    "data.counts": ("EventCounts", "TransitionCounts"),
    "data.simulate": ("first_visits", "simulate"),
    "data.trajectories": ("Trajectories", "record", "record_blocks"),
    "data.simulators": ("as_env", "gym_environment", "sample_env"),
    "data.logs": ("Log", "read_log"),
    "data.report": ("IngestionReport",),
    "data.sql": ("counts_query",),
    "data.files": ("read_counts", "write_counts"),
    "confidence.bounds": ("ExpressionBounds", "expression_bounds"),
    "region.shapes": ("Polytope",),
    "region.conflict": ("Conflict",),
    "region.build": ("build_region", "project"),
    "relaxation.intervals": ("IntervalMDP", "instantiate"),
    "relaxation.relax": ("expression_wise", "interval_wise", "parameter_wise", "rectangular"),
    "solver.solution": ("Solution",),
    "solver.solve": ("solve",),
    "solver.evaluate": ("evaluate",),
    "result.policy_table": ("PolicyTable",),
    "result.certificate": ("Certificate",),
    "learning": ("Learned", "learn"),
    "pipeline": ("certify", "compare", "conclude"),
    "online": ("OnlineRecord", "learn_online", "simulator"),
    "case_studies": ("Benchmark", "CaseStudy", "benchmark", "case_study"),
    "summary": ("summarise",),
    "errors": ("DataError", "MissingExtra", "ModelError"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

_OLD_NAMES = ("Benchmark", "benchmark")  # of version 0.1; they stay

__all__ = [name for name in _MODULE if name not in _OLD_NAMES]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'plumdp' has no attribute {name!r}")
    value = getattr(import_module(f"plumdp.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
