# The public names of this room, each loaded when it is first used.
# ruff: noqa: I001

from .expressions.polynomial import Polynomial as Polynomial
from .expressions.arrays import PolynomialArray as PolynomialArray
from .expressions.arrays import tabulate as tabulate
from .graph import Graph as Graph
from .parametric import ParametricMDP as ParametricMDP
from .parametric import RewardStructure as RewardStructure
from .language.property import parse_predicate as parse_predicate
from .check import Issue as Issue
from .check import validate as validate
from .events import Events as Events
from .events import find_events as find_events
from .summary import summarise as summarise
from .question import Question as Question
from .question import ask as ask
from .parametric import Lift as Lift
from .free_rows import free_rows as free_rows
from .table_model import table_model as table_model
