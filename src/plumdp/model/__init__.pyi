# The public names of this room, each loaded when it is first used.
# ruff: noqa: I001

from .explore import explore_batch as explore_batch
from .expressions.arrays import tabulate as tabulate
from .free_rows import free_rows as free_rows
from .table_model import table_model as table_model
from .check import validate as validate
from .objectives import Reach as Reach
from .objectives import Reward as Reward
from .question import Question as Question
