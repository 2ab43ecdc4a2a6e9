"""The solver of models that are stored on disk, level by level from the last one, a chunk of states at a time.

Each state leads to the next level or stays as it is, so one pass is exact up to rounding. The rows of a chunk are
copied into memory in the order of the model and swept as those of any other model. Values and policy are files beside
the model. States that the graph alone decides need no search: the value of a state that stays follows from the kind of
the objective, and all other states follow from their rows, zero and infinity included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.errors import ModelError
from plumdp.base.progress import tell_share
from plumdp.base.threads import n_threads
from plumdp.model.graph import (
    BoolArray,
    FloatArray,
    Graph,
    Indices,
    IntArray,
    Levels,
    forget,
    offset_type,
    ranges,
    read_only,
)
from plumdp.model.objectives import Kind, Nature, Objective
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.game import wanted_by
from plumdp.solver.nature import Rows, loops_for
from plumdp.solver.problem import Solution, SolverStatus, gap_of

_CHUNK = 1 << 22  # transitions whose rows are in memory at once, of each thread
_KINDS = (Kind.END, Kind.UNTIL_END, Kind.FOREVER)


def solve_levels(imdp: IntervalMDP, objective: Objective, nature: Nature, precision: float) -> Solution:
    """Return the best policy of a stored model, and bounds on the values of all states.

    They are files that vanish with the solution.
    """
    levels = _require_solvable(imdp, objective)
    n_states, n_choices = imdp.graph.n_states, imdp.graph.n_choices
    policy = levels.scratch(n_states, offset_type(n_choices))
    (values,) = _sweep_levels(imdp, objective, [nature], policy, is_given=False)
    return values.solution(policy, precision)


def evaluate_levels(
    imdp: IntervalMDP, policy: Indices, objective: Objective, natures: Sequence[Nature], precision: float
) -> list[Solution]:
    """Return bounds on the values of a policy of a stored model, for each nature."""
    _require_solvable(imdp, objective)
    of_natures = _sweep_levels(imdp, objective, natures, policy, is_given=True)
    return [values.solution(policy, precision) for values in of_natures]


@dataclass(frozen=True, eq=False)
class _LevelBounds:
    """Bounds on the values of all states with one nature, and their gaps."""

    nature: float
    low: FloatArray
    high: FloatArray
    gaps: list[float]

    def solution(self, policy: Indices, precision: float) -> Solution:
        status = SolverStatus.CONVERGED if max(self.gaps) <= precision else SolverStatus.OPEN
        return Solution(read_only(self.low), read_only(self.high), read_only(policy), status, 1)


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Some states of a level with the rows that they may take, ready to be swept."""

    states: slice
    first_row: int  # the model's number of row 0, if all rows are there
    rows: Rows
    is_known: BoolArray  # (n): which values follow from the objective alone
    known: FloatArray  # (n)
    longest: int  # number of transitions in a row

    def sweep(self, values: _LevelBounds, cap: float) -> IntArray:
        """Write the bounds of the states, given those of the next level, and return the agent's best rows.

        Sweeps sort the transitions of each row, in a copy, so that the bits are the same whatever was swept before.
        """
        successor, expression = self.rows.successor.copy(), self.rows.expression.copy()
        rows = self.rows._replace(successor=successor, expression=expression, nature=values.nature)
        first_row = rows.first_choice[:-1].astype(np.int32)
        best_row = first_row.copy()
        low, high = values.low[self.states], values.high[self.states]
        # bounds that hold for every state, which the backups tighten
        low[:], high[:] = 0.0, cap
        loops = loops_for(None, rows, self.longest, n_kept=0)
        for side, source, result in ((-1.0, values.low, low), (1.0, values.high, high)):
            loops.module.backup(0, len(low), 1, rows, side, 0.0, cap, source, result, best_row, *loops.extra)
        low[self.is_known] = high[self.is_known] = self.known[self.is_known]
        values.gaps.append(gap_of(low, high))
        return np.where(self.is_known, first_row, best_row)


def _sweep_levels(
    imdp: IntervalMDP,
    objective: Objective,
    natures: Sequence[Nature],
    policy: Indices,
    *,
    is_given: bool,
) -> list[_LevelBounds]:
    """Return the values for each nature. The policy is followed if it is given, and otherwise written."""
    graph, agent = imdp.graph, 1.0 if objective.direction == "max" else -1.0
    levels = graph.levels
    assert levels is not None
    wanted = [wanted_by(nature, agent) for nature in natures]
    of_natures = [_LevelBounds(nature, _scratch(levels, graph), _scratch(levels, graph), [0.0]) for nature in wanted]
    load = partial(_load, imdp, objective, agent, policy if is_given else None)

    def work(states: slice) -> None:
        chunk = load(states)
        for values in of_natures:
            best_row = chunk.sweep(values, objective.cap)
            if not is_given:
                policy[states] = chunk.first_row + best_row

    swept = [array for values in of_natures for array in (values.low, values.high)]
    _walk_levels(imdp, levels, work, [*swept, policy])
    return of_natures


def _walk_levels(
    imdp: IntervalMDP,
    levels: Levels,
    work: Callable[[slice], None],
    written: Sequence[Any],
) -> None:
    """Do the work of each chunk of states, the last level first, and the chunks of a level on all cores."""
    graph = imdp.graph
    threads = n_threads()
    passed, held = 0, [graph.first_choice, graph.first_transition, graph.successor, imdp.expression, *written]
    with ThreadPoolExecutor(threads) as pool:
        for level in range(len(levels) - 1, -1, -1):
            start, end = int(levels.first_state[level]), int(levels.first_state[level + 1])
            for _ in pool.map(work, _chunks(graph, start, end)):
                pass
            passed += int(_transitions_before(graph, end) - _transitions_before(graph, start))
            if passed > _CHUNK * threads or level == 0:  # what was read is not needed again; memory is for others
                passed = 0
                for array in held:
                    forget(array)
            tell_share("solving", graph.n_states - start, graph.n_states)


def _scratch(levels: Levels, graph: Graph) -> FloatArray:
    return np.asarray(levels.scratch(graph.n_states, np.float64))


def _transitions_before(graph: Graph, state: int) -> Any:
    return graph.first_transition[graph.first_choice[state]]


def _chunks(graph: Graph, start: int, end: int) -> Iterator[slice]:
    """Yield the states from start to end as chunks with about as many transitions as may be in memory at once."""
    before = graph.first_transition[graph.first_choice[start : end + 1]].astype(np.int64)
    at = 0
    while start + at < end:
        stop = max(at + 1, int(np.searchsorted(before, before[at] + _CHUNK, side="right")) - 1)
        yield slice(start + at, start + stop)
        at = stop


def _load(imdp: IntervalMDP, objective: Objective, agent: float, policy: Indices | None, states: slice) -> _Chunk:
    """Return some states with all their rows, or with those of a policy, in memory."""
    graph = imdp.graph
    first_choice: Any = graph.first_choice[states.start : states.stop + 1].astype(np.int64)
    choices = slice(int(first_choice[0]), int(first_choice[-1]))
    first: Any = graph.first_transition[choices.start : choices.stop + 1].astype(np.int64)
    transitions = slice(int(first[0]), int(first[-1]))
    successor, expression = graph.successor[transitions], imdp.expression[transitions]
    first_choice, first = first_choice - choices.start, first - transitions.start
    part = _part_of(objective, graph, states, choices)
    stays = successor[first[first_choice[:-1]]] == np.arange(states.start, states.stop)
    if policy is not None:
        chosen = policy[states].astype(np.int64) - choices.start
        kept = ranges(first[chosen], first[chosen + 1])
        successor, expression, part = successor[kept], expression[kept], part.restricted_to(chosen)
        first = np.concatenate([[0], np.cumsum(first[chosen + 1] - first[chosen])])
        first_choice = np.arange(len(chosen) + 1)
    small = replace(graph, first_choice=first_choice, first_transition=first, levels=None)
    reward, discount, is_end, value, _ = part.terms(small)
    _refuse_endless_rewards(objective, reward, stays & ~is_end, first_choice)
    known = np.where(is_end, value, np.inf if objective.kind is Kind.UNTIL_END else 0.0)
    new_first_choice, new_first, new_successor, new_expression = (
        array.astype(np.uint32) for array in (first_choice, first, successor, expression)
    )
    bounds = imdp.lower, imdp.upper
    rows = Rows(
        new_first_choice, new_first, new_successor, new_expression, *bounds, reward, discount, agent, nature=0.0
    )
    longest = int(np.diff(first).max(initial=1))
    return _Chunk(states, choices.start, rows, is_end | stays, known, longest)


def _part_of(objective: Objective, graph: Graph, states: slice, choices: slice) -> Objective:
    """Return the objective on some states of a model with their choices, with arrays of all states cut to these."""

    def cut(value: Any) -> Any:
        if isinstance(value, RewardStructure):
            of_state, of_choice = value.state, value.choice
            return RewardStructure(
                None if of_state is None else of_state[states], None if of_choice is None else of_choice[choices]
            )
        return value[states] if isinstance(value, np.ndarray) and value.shape == (graph.n_states,) else value

    changed = {field.name: cut(getattr(objective, field.name)) for field in fields(objective) if field.init}
    return replace(objective, **changed)


def _refuse_endless_rewards(objective: Objective, reward: FloatArray, stays: BoolArray, first_choice: Indices) -> None:
    """Refuse total rewards that go on forever.

    Rewards until a target are infinite there in any case.
    """
    if objective.kind is Kind.FOREVER and (np.add.reduceat(reward != 0, first_choice[:-1])[stays] > 0).any():
        raise ModelError("a state that is never left has a reward; ask a stored model for rewards until a target")


def _require_solvable(imdp: IntervalMDP, objective: Objective) -> Levels:
    levels = imdp.graph.levels
    assert levels is not None
    if imdp.region is not None:
        raise ModelError("a model that is stored on disk is solved within intervals whose transitions may vanish")
    is_of_levels = objective.n_steps is None and objective.kind in _KINDS
    refuse({Trait.DISK, not is_of_levels and Trait.STEPS})
    return levels
