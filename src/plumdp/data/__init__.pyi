# The public names of this room, each loaded when it is first used.
# ruff: noqa: I001

from .trajectories import record as record
from .trajectories import write_runs as write_runs
from .whole_runs import read_whole_runs as read_whole_runs
from .sql import counts_query as counts_query
from .simulators import sample_env as sample_env
from .simulators import as_env as as_env
from .raw_logs import raw_log as raw_log
from .log_models import model_from_log as model_from_log
from .log_models import table_from_env as table_from_env
