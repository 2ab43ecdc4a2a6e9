# The public names of this room, each loaded when it is first used.
# ruff: noqa: I001

from .records import read_record as read_record
from .loop import simulator as simulator
