# The public names, in the order of the pipeline: the only list of them. Each is loaded when it is first used (SPEC 1).
# ruff: noqa: I001

__version__: str

from .model.expressions.polynomial import parameters as parameters
from .model.space import ParameterSpace as ParameterSpace
from .model.free_rows import unknown as unknown
from .model.explore import explore as explore
from .model.gaps import with_gaps as with_gaps
from .model.readers.read import read_model as read_model
from .model.language.property import parse_property as parse_property
from .data.counts import TransitionCounts as TransitionCounts
from .data.simulate import simulate as simulate
from .starting.start import start as start
from .data.log_format import LogFormat as LogFormat
from .data.logs import read_log as read_log
from .data.files import read_counts as read_counts
from .data.files import write_counts as write_counts
from .result.policy_table import PolicyTable as PolicyTable
from .result.policy_table import read_policy as read_policy
from .learning.learn import learn as learn
from .certifying.pipeline import certify as certify
from .certifying.pipeline import compare as compare
from .certifying.pipeline import conclude as conclude
from .certifying.thresholds import decide as decide
from .watching.units import certify_each as certify_each
from .certifying.difference import difference as difference
from .explaining.check import check_model as check_model
from .explaining.advice import advise as advise
from .explaining.explain import explain as explain
from .watching.watch import watch as watch
from .plots.draw import draw as draw
from .reporting.page import write_report as write_report
from .result.folder import write_result as write_result
from .reporting.read import read_result as read_result
from .online.loop import learn_online as learn_online
from . import data as data
from . import decisions as decisions
from . import exchange as exchange
from . import model as model
from . import online as online
from . import stages as stages
from .case_studies import case_study as case_study
from .base.errors import DataError as DataError
from .base.errors import ModelError as ModelError
