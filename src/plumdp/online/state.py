"""The state of learning while acting, which a checkpoint keeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, ModelError
from plumdp.data.counts import CountArray
from plumdp.model.graph import FloatArray, Graph, IntArray
from plumdp.model.policy import check_policy
from plumdp.solver.problem import Solution, SolverStatus


@dataclass(frozen=True, eq=False)
class OnlineState:
    """The data and results that learning needs to go on after an interruption."""

    purpose: str  # the model and the settings, in words
    episodes: int
    counts: CountArray  # (n_transitions)
    event_lower: FloatArray  # (n_events): the intersection of all intervals so far
    event_upper: FloatArray
    ends: CountArray  # (2, 2, n_events): successes and trials that gave the lower end, and the upper one
    values: FloatArray  # (2, n_states): of the last update, nature at its best and at its worst; (0, n_states) at first
    policies: IntArray  # likewise
    seconds: float

    def starts(self) -> list[Solution] | list[None]:
        """Return the solutions that the next ones start from, with nature at its best and at its worst."""
        pairs = zip(self.values, self.policies, strict=True)
        return [Solution(values, values, policy, SolverStatus.OPEN, 0) for values, policy in pairs] or [None, None]

    def save(self, path: Path) -> None:
        """Write the state to a file such that a crash leaves either the old file or the new one."""
        temporary = path.with_suffix(".tmp.npz")
        np.savez(temporary, **{name: getattr(self, name) for name in self.__dataclass_fields__})
        temporary.replace(path)

    @staticmethod
    def load(path: Path) -> OnlineState:
        """Return the state in a file, without executing anything in it, or refuse a damaged file."""
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in OnlineState.__dataclass_fields__}
        except (OSError, ValueError, TypeError, LookupError, EOFError, MemoryError, BadZipFile) as problem:
            raise damaged(path, f"{type(problem).__name__}: {problem}") from None
        for name, kind in (("purpose", "U"), ("episodes", "i"), ("seconds", "f")):
            if arrays[name].shape != () or arrays[name].dtype.kind != kind:
                raise damaged(path, f"its {name} are {arrays[name].dtype} of shape {arrays[name].shape}")
            arrays[name] = arrays[name].item()
        return OnlineState(**arrays)

    def problem(self, graph: Graph, n_events: int) -> str:
        """Return what is wrong with this state for a model, or an empty text."""
        shapes: dict[str, tuple[npt.DTypeLike, set[tuple[int, ...]]]] = {
            "counts": (np.int64, {(graph.n_transitions,)}),
            "event_lower": (np.float64, {(n_events,)}),
            "event_upper": (np.float64, {(n_events,)}),
            "ends": (np.int64, {(2, 2, n_events)}),
            "values": (np.float64, {(0, graph.n_states), (2, graph.n_states)}),
            "policies": (np.int32, {(len(self.values), graph.n_states)}),
        }
        for name, (dtype, possible) in shapes.items():
            array = getattr(self, name)
            if array.dtype != dtype or array.shape not in possible:
                return f"its {name} are {array.dtype} of shape {array.shape}"
        if not (self.episodes >= 0 and 0 <= self.seconds < np.inf):
            return f"it has {self.episodes} episodes in {self.seconds} seconds"
        if (self.counts < 0).any() or self.counts.sum(dtype=np.float64) >= 2.0**62:
            return "its counts are not possible"
        if (self.ends < 0).any() or (self.ends[:, 0] > self.ends[:, 1]).any():
            return "its ends are not possible"
        if not ((self.event_lower >= 0) & (self.event_upper <= 1)).all() or np.isnan(self.values).any():
            return "its bounds or values are not possible"
        try:
            for policy in self.policies:
                check_policy(graph, policy)
        except ModelError as problem:
            return str(problem)
        return ""


def damaged(path: Path, why: str) -> DataError:
    """Return the error for a file that is not a checkpoint."""
    return DataError(f"{path} is not a checkpoint of learn_online, or damaged ({why}); delete it or name another file")
