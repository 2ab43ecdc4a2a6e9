"""The plan of runs of a model, and how they are walked: all that decides them, before anything is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.combinations import Trait, refuse
from plumdp.base.errors import DataError, Option
from plumdp.data import kernels
from plumdp.data.kernels import WalkTables
from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, forget, read_only
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import UNIFORM, Policy, check_policy
from plumdp.model.space import Point

Rng: TypeAlias = np.random.Generator | int

_SEGMENT = 64  # steps at least before runs that have ended are put aside; even, as random words come for two steps
_TOGETHER = 1 << 16  # steps in a segment of all runs that advance side by side: they fit the cache of one core
_MIN_RUNS = 16  # that advance side by side, however long they are: one works while others wait for memory
_FORGOTTEN = 8  # steps after which what was read of a stored model is given back; even as well
_NOTHING = read_only(np.empty(0, dtype=np.int32))
_MAX_BLOCK = 1 << 22  # steps in a block of runs, if they need not be fewer than that


@dataclass(frozen=True, eq=False)
class RunPlan:
    """All that decides the runs: tables of a model at a point, a policy, where runs end, and a key for randomness."""

    graph: Graph
    tables: WalkTables
    key: npt.NDArray[np.uint64]  # (2)
    trajectories: int
    max_steps: int
    initial: int  # the state in which runs begin, which is one of a product if the policy has memory

    @property
    def seed(self) -> str:
        """The key as a text: two plans with one key draw the same numbers."""
        return self.key.tobytes().hex()

    @property
    def block_size(self) -> int:
        """The number of runs that advance side by side."""
        return min(_TOGETHER // min(self.max_steps, _SEGMENT), max(_MIN_RUNS, _MAX_BLOCK // self.max_steps))

    def walk(self, block: range) -> Iterator[tuple[npt.NDArray[np.uint64], IntArray]]:
        """Yield some runs segment by segment: their numbers, and their transitions (steps, runs), -1 behind an end."""
        initial = self.initial
        runs = np.arange(block.start, block.stop, dtype=np.uint64)
        state = np.full(len(block), -1 if self.tables.stop[initial] else initial, dtype=np.int32)
        step = 0
        while step < self.max_steps and (is_running := state >= 0).any():
            runs, state = runs[is_running], state[is_running]
            length = max(_SEGMENT, _TOGETHER // len(runs) // 2 * 2)
            steps = np.empty((min(length, self.max_steps - step), len(runs)), dtype=np.int32)
            self._advance(step, runs, state, steps)
            yield runs, steps
            step += len(steps)

    def _advance(self, first_step: int, runs: npt.NDArray[np.uint64], state: IntArray, steps: IntArray) -> None:
        """Write the next steps of some runs; of a stored model only what a few steps touch is in memory at once."""
        together = _FORGOTTEN if len(self.tables.row) else len(steps)
        for i in range(0, len(steps), together):
            kernels.walk(self.tables, self.key, first_step + i, runs, state, steps[i : i + together])
            for array in self.tables if len(self.tables.row) else ():
                forget(array)


def make_plan(
    model: ParametricMDP,
    point: Point,
    trajectories: int,
    rng: Rng,
    max_steps: int,
    policy: Policy,
    stop: npt.ArrayLike | None,
    *,
    by_row: bool = False,
) -> RunPlan:
    """Return the plan of the runs, with every argument checked.

    Runs of a model that is stored on disk can only be counted ``by_row``: as transitions of its distinct rows.
    """
    require_model("a simulation", model)
    if not by_row:
        refuse({Trait.RECORDED, Trait.EVERY_STEP, *model.traits}, "record")
    require_positive("trajectories", trajectories)
    require_positive("max_steps", max_steps)
    walked = _walked(model, policy)
    tables = _tables(model, walked, point, policy, stop)
    key = generator_of(rng).integers(0, 2**64, size=2, dtype=np.uint64)
    return RunPlan(model.graph, tables, key, int(trajectories), int(max_steps), walked.initial_state)


def _walked(model: ParametricMDP, policy: Policy) -> Graph:
    """Return the graph that runs walk on: that of the model, or the product of it that a policy with memory is for."""
    product: Graph | None = getattr(policy, "graph", None)
    if product is None or product.memory is None or product.memory.graph.fingerprint != model.graph.fingerprint:
        return model.graph
    return product


def _tables(model: ParametricMDP, graph: Graph, point: Point, policy: Policy, stop: npt.ArrayLike | None) -> WalkTables:
    """Return the sampler of steps; the arrays of a stored model stay where they are."""
    rows, lift = model.counted, model.lift
    ends = stop_mask(model.graph, stop)
    memory = None if graph is model.graph else graph.memory
    row = _NOTHING if lift is None else np.asarray(lift.choice)
    if memory is not None:
        row, ends = memory.choice if lift is None else row[memory.choice], read_only(ends[memory.state])
    first = rows.graph.first_transition
    chosen, weights = _policy_tables(graph, policy)
    refuse({Trait.SIMULATED, len(weights) > 0 and Trait.DRAWS, *model.traits})
    return WalkTables(
        first_choice=np.asarray(graph.first_choice),
        first_transition=np.asarray(graph.first_transition),
        successor=np.asarray(graph.successor),
        row=row,
        first_of_row=first,
        cumulative=running_sums(first, rows.probabilities(point)[rows.expression]),
        chosen=chosen,
        weights=weights,
        stop=ends,
    )


def _policy_tables(graph: Graph, policy: Policy) -> tuple[IntArray, FloatArray]:
    """Return the choice of each state, or the running sums of a policy that draws them; neither for the uniform one."""
    none_drawn = read_only(np.empty(0))
    if isinstance(policy, str) and policy == UNIFORM:
        return _NOTHING, none_drawn
    checked = check_policy(graph, policy)
    if checked.dtype.kind == "f":
        return _NOTHING, running_sums(graph.first_choice, checked.astype(np.float64))
    return read_only(np.array(checked, dtype=np.int32)), none_drawn


def generator_of(rng: Rng) -> np.random.Generator:
    """Return the generator that a seed makes, or the one that is given."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise DataError(Option("rng", rng), ": give a whole number, at least 0, or a generator of NumPy") from None


def require_positive(name: str, value: int) -> None:
    """Refuse anything but a whole number above 0."""
    if not isinstance(value, int | np.integer) or value < 1:
        raise DataError(Option(name, value), ": give a whole number, at least 1")


def split(start: int, end: int, size: int) -> list[range]:
    """Return the numbers from ``start`` to ``end`` as blocks of at most so many."""
    return [range(i, min(i + size, end)) for i in range(start, end, size)]


def running_sums(first: IntArray, probability: FloatArray) -> FloatArray:
    """Return the sums that draws within each group are made with, see ``kernels.cumulate``."""
    cumulative = np.empty(len(probability))
    kernels.cumulate(first, probability, cumulative)
    return read_only(cumulative)


def stop_mask(graph: Graph, stop: npt.ArrayLike | None) -> BoolArray:
    """Return the mask of the states in which a run ends, checked."""
    mask = np.zeros(graph.n_states, dtype=np.bool_) if stop is None else np.array(stop)
    if mask.shape != (graph.n_states,):
        raise DataError(f"stop has shape {mask.shape}, but the model has {graph.n_states} states")
    if mask.dtype != np.bool_:
        raise DataError(f"stop must be true or false for each state, not {mask.dtype}")
    return read_only(mask)
