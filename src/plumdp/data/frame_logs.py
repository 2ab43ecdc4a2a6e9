"""Logs in data frames of any library: the only importer of Narwhals. Each is counted by its own engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.data.columns import ACTION, COUNT, EPISODE, PLACE, STEP, BrokenEpisode, LogForm, not_steps, state_columns
from plumdp.data.sql import keys
from plumdp.data.tables import Block
from plumdp.model.graph import Graph
from plumdp.errors import DataError
