# The public names, in the order of the pipeline: the only list of them. Each is loaded when it is first used (SPEC 1).
# ruff: noqa: I001

__version__: str

from .model.expressions.polynomial import Polynomial as Polynomial
from .model.expressions.polynomial import parameters as parameters
from .model.expressions.arrays import PolynomialArray as PolynomialArray
from .model.expressions.arrays import tabulate as tabulate
from .model.space import ParameterSpace as ParameterSpace
from .model.graph import Graph as Graph
from .model.parametric import ParametricMDP as ParametricMDP
from .model.parametric import RewardStructure as RewardStructure
from .model.explore import explore as explore
from .model.explore import explore_batch as explore_batch
from .model.readers.read import read_model as read_model
from .model.readers.storm import read_prism as read_prism
from .model.objective import Reach as Reach
from .model.objective import Reward as Reward
from .model.language.property import parse_predicate as parse_predicate
from .model.language.property import parse_property as parse_property
from .model.check import Issue as Issue
from .model.check import check as check
from .model.events import Events as Events
from .model.events import find_events as find_events
from .data.counts import EventCounts as EventCounts
from .data.counts import Pilot as Pilot
from .data.counts import PilotEnd as PilotEnd
from .data.counts import TransitionCounts as TransitionCounts
from .data.simulate import first_visits as first_visits
from .data.simulate import simulate as simulate
from .data.trajectories import Trajectories as Trajectories
from .data.trajectories import record as record
from .data.trajectories import record_blocks as record_blocks
from .data.simulators import as_env as as_env
from .data.simulators import gym_environment as gym_environment
from .data.simulators import sample_env as sample_env
from .data.logs import Log as Log
from .data.logs import read_log as read_log
from .data.report import IngestionReport as IngestionReport
from .data.sql import counts_query as counts_query
from .data.files import read_counts as read_counts
from .data.files import write_counts as write_counts
from .confidence.bounds import ExpressionBounds as ExpressionBounds
from .confidence.bounds import expression_bounds as expression_bounds
from .region.shapes import Polytope as Polytope
from .region.conflict import Conflict as Conflict
from .region.build import build_region as build_region
from .region.build import project as project
from .relaxation.intervals import IntervalMDP as IntervalMDP
from .relaxation.intervals import instantiate as instantiate
from .relaxation.relax import expression_wise as expression_wise
from .relaxation.relax import interval_wise as interval_wise
from .relaxation.relax import parameter_wise as parameter_wise
from .relaxation.relax import rectangular as rectangular
from .solver.solution import Solution as Solution
from .solver.solve import solve as solve
from .solver.evaluate import evaluate as evaluate
from .result.policy_table import PolicyTable as PolicyTable
from .result.certificate import Certificate as Certificate
from .learning import Learned as Learned
from .learning import learn as learn
from .pipeline import certify as certify
from .pipeline import compare as compare
from .pipeline import conclude as conclude
from .online import OnlineRecord as OnlineRecord
from .online import learn_online as learn_online
from .online import simulator as simulator
from .case_studies import CaseStudy as CaseStudy
from .case_studies import case_study as case_study
from .summary import summarise as summarise
from .errors import DataError as DataError
from .errors import MissingExtra as MissingExtra
from .errors import ModelError as ModelError

# names of version 0.1, which stay and are not advertised
from .case_studies import Benchmark as Benchmark
from .case_studies import benchmark as benchmark
