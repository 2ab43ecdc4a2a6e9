"""The runs themselves, step by step, and as the columns of a log in either of its two forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Form as Form
from plumdp.data.columns import needed_columns, next_columns, state_column
from plumdp.data.counts import CountArray, EventCounts, TransitionCounts, require_same_graph
from plumdp.data.pilots import is_wanted, planned_moments, planned_pilot
from plumdp.data.runs import Rng, RunPlan, make_plan, split
from plumdp.data.same_files import DataPart, new_parts
from plumdp.data.seen import Seen
from plumdp.data.time_parts import Recorder, runs_of_parts
from plumdp.model.events import find_events
from plumdp.model.gaps import refuse_gaps
from plumdp.model.graph import BoolArray, Graph, Indices, IntArray, owners_of, ranges, read_only
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import Policy
from plumdp.model.space import Point
from plumdp.model.text import number_of, one_line

Columns: TypeAlias = dict[str, npt.NDArray[Any]]

_MAX_BLOCK = 1 << 20  # steps in a block of runs, unless one run has more


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Runs of a model, one entry per step, ordered by run and step. A run without a step leaves no entry."""

    graph: Graph
    episode: CountArray  # (n_steps): number of the run
    step: IntArray  # (n_steps): 0, 1, … within each run
    transition: IntArray  # (n_steps)
    seed: str = ""  # of the plan of the runs, if plumdp made them

    def __repr__(self) -> str:
        return one_line(self, number_of(len(np.unique(self.episode)), "run"), number_of(len(self), "step"))

    def __len__(self) -> int:
        return len(self.transition)

    @property
    def choice(self) -> IntArray:
        """The choice of each step."""
        return owners_of(self.graph.first_transition, self.transition)

    def counts(self, *, pilot: bool = True) -> TransitionCounts:
        """Return the counts of transitions, and those after 4, 16, … runs that have a step, unless not wanted."""
        runs, n = np.unique(self.episode), self.graph.n_transitions
        sizes = planned_moments(len(runs), n_transitions=n) if is_wanted(pilot) else ()
        stage = np.searchsorted(runs[np.array(sizes, dtype=np.int64) - 1], self.episode)  # how many moments came before
        parts = np.bincount(stage * n + self.transition, minlength=(len(sizes) + 1) * n).reshape(-1, n)
        *moments, counts = parts.cumsum(axis=0)
        kept = planned_pilot([*map(Seen, moments)], len(runs), sizes=sizes) if moments else None
        recorder = Recorder(runs_of_parts(len(runs), sizes, n))
        last = runs[np.array(recorder.ends, dtype=np.int64) - 1]
        recorder.add(np.searchsorted(last, self.episode), self.transition)
        time = recorder.parts(len(runs)) if sizes else None
        return TransitionCounts(self.graph, counts, "trajectories", kept, parts=self._parts, time=time)

    @cached_property
    def _parts(self) -> tuple[DataPart, ...]:
        """What counts of these runs are made of, however often they are counted."""
        return new_parts(len(self), key=self.seed, is_simulated=True)

    def rows_with_ends(self) -> tuple[Indices, BoolArray]:
        """Return the steps with the last of each run twice, and which rows are these second ones: the ends of runs."""
        last = np.flatnonzero(np.append(self.episode[1:] != self.episode[:-1], True)[: len(self)])
        row = np.insert(np.arange(len(self)), last + 1, last)
        return row, np.insert(np.zeros(len(self), dtype=np.bool_), last + 1, True)

    def columns(self, form: Form = "transitions") -> Columns:
        """Return the runs as the columns of a log: ``episode``, ``step``, one per state variable, and ``action``.

        As "transitions", each row also has the next state, its variables with ``next_`` before their names. As
        "trajectories", each run has one more row behind its last step: the state it ended in, and None as action.
        A state variable that is itself called episode, step or action is named ``state_episode`` and so on.
        """
        if form not in get_args(Form):
            raise DataError(Option("form", form), f": choose one of {', '.join(map(repr, get_args(Form)))}")
        needed_columns(self.graph, form)  # raises an error if two of them have one name
        return self._with_next_state() if form == "transitions" else self._by_state()

    def _with_next_state(self) -> Columns:
        choice = self.choice
        return {
            "episode": self.episode,
            "step": self.step,
            **_state_columns(self.graph, owners_of(self.graph.first_choice, choice)),
            "action": _names(self.graph, self.graph.action[choice]),
            **{
                name: values[self.graph.successor[self.transition]]
                for name, values in zip(next_columns(self.graph), self.graph.states.values(), strict=True)
            },
        }

    def _by_state(self) -> Columns:
        row, is_end = self.rows_with_ends()
        choice = self.choice[row]
        state = np.where(is_end, self.graph.successor[self.transition[row]], owners_of(self.graph.first_choice, choice))
        return {
            "episode": self.episode[row],
            "step": self.step[row] + is_end,
            **_state_columns(self.graph, state),
            "action": _names(self.graph, np.where(is_end, -1, self.graph.action[choice])),
        }


def record(
    model: ParametricMDP,
    point: Point,
    trajectories: int,
    *,
    rng: Rng,
    max_steps: int,
    policy: Policy = "uniform",
    stop: npt.ArrayLike | None = None,
) -> Trajectories:
    """Return the runs that ``simulate`` counts with the same arguments.

    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> runs = record(study.model, study.true_point, 2, rng=1, max_steps=25)
    >>> len(runs), sorted(runs.columns())
    (50, ['action', 'episode', 'money', 'next_money', 'next_step', 'state_step', 'step'])
    """
    return joined([*recorded_blocks(make_plan(model, point, trajectories, rng, max_steps, policy, stop))])


def first_visits(model: ParametricMDP, runs: Trajectories) -> EventCounts:
    """Return for each event of the model in how many runs it was tried, and in how many its first trial succeeded.

    Only the first step of a run that tries an event counts for it: such trials are independent, as runs are.

    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> events = first_visits(study.model, record(study.model, study.true_point, 1000, rng=1, max_steps=25))
    >>> int(events.trials.max()) <= 1000, bool((events.successes <= events.trials).all())
    (True, True)
    """
    require_model("first_visits", model)
    refuse_gaps("first_visits", model)
    require_same_graph(model.graph, runs.graph)
    events, choice = find_events(model), runs.choice
    start, end = events.first_trial[choice], events.first_trial[choice + 1]
    event, step = events.tried[ranges(start, end)], np.repeat(np.arange(len(runs)), end - start)
    # entries are ordered by run and step: the first one with a run and an event is its first trial
    _, first = np.unique(runs.episode[step] * len(events) + event, return_index=True)
    event, step = event[first], step[first]
    is_success = events.success[runs.transition[step]] == event
    trials, successes = (np.bincount(each, minlength=len(events)) for each in (event, event[is_success]))
    return EventCounts(read_only(trials), read_only(successes), "independent")


def joined(blocks: Sequence[Trajectories]) -> Trajectories:
    """Return the runs of several blocks, at least one, as one."""
    fields = ("episode", "step", "transition")
    episode, step, transition = (
        read_only(np.concatenate([getattr(block, field) for block in blocks])) for field in fields
    )
    return Trajectories(blocks[0].graph, episode, step, transition, blocks[0].seed)


def recorded_blocks(plan: RunPlan) -> Iterator[Trajectories]:
    """Yield the runs of a plan block by block: whole runs, about a million steps at most."""
    for block in split(0, plan.trajectories, max(1, min(plan.block_size, _MAX_BLOCK // plan.max_steps))):
        parts = []
        for runs, steps in plan.walk(block):
            part = np.full((len(block), len(steps)), -1, dtype=np.int32)
            part[runs - np.uint64(block.start)] = steps.T
            parts.append(part)
        taken = np.hstack(parts) if parts else np.empty((0, 0), dtype=np.int32)
        episode, step = np.nonzero(taken >= 0)
        yield Trajectories(
            plan.graph,
            read_only(episode.astype(np.int64) + block.start),
            read_only(step.astype(np.int32)),
            read_only(taken[episode, step]),
            plan.seed,
        )


def _state_columns(graph: Graph, states: Indices) -> Columns:
    return {state_column(name): values[states] for name, values in graph.states.items()}


def _names(graph: Graph, action: Indices) -> npt.NDArray[Any]:
    """Return the names of actions as Python strings; None for the action -1."""
    return np.array([*graph.action_names, None], dtype=object)[action]
