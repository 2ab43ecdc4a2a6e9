# The public names of this room, each loaded when it is first used.
# ruff: noqa: I001

from .read_intervals import read_interval_model as read_interval_model
from .write_intervals import write_interval_model as write_interval_model
from .read_intervals import interval_model as interval_model
from .policy_files import write_policy as write_policy
