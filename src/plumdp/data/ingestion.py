"""Counts the transitions of a log while it is read, and what became of its other rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Assumption, LogForm, Steps
from plumdp.data.censoring import LENGTH, CensoredRuns
from plumdp.data.columns import (
    ACTION,
    CONTEXT,
    COUNT,
    FIRST_COUNT,
    KNOWN,
    N_COPIES,
    N_RUNS,
    N_UNORDERED,
    PLACE,
    STAGE,
    STEP,
    Source,
    column_of,
    next_columns,
    state_columns,
)
from plumdp.data.contexts import MOST_VALUES, Context, ContextKind
from plumdp.data.counts import CountArray, exact_sum, require_countable
from plumdp.data.duckdb_engine import Block
from plumdp.data.log_pilots import Moments
from plumdp.data.mappings import StateMapping
from plumdp.data.matching import Kinds, Matcher, numbered_actions, row_counts
from plumdp.data.observations import PartialObservations
from plumdp.data.observing import never_left
from plumdp.data.pilots import SIZES
from plumdp.data.report import KINDS, NAMED, REJECTED, BrokenEpisode, IngestionReport, Kind, RepeatedStep
from plumdp.data.reward_values import RewardFault, add_sums, find_fault
from plumdp.data.seen import Seen
from plumdp.data.time_parts import Recorder
from plumdp.model.graph import BoolArray, Graph, Indices
from plumdp.model.learned_rewards import LearnedRewards
from plumdp.model.values import action_hint, shown, state_hint

_FOLLOWED = 100_000  # different offenders of each kind; of more, the rare ones are forgotten


class Offender(NamedTuple):
    """Rejected rows that are alike: the values of some columns, what they are called, and how many there are."""

    kind: Kind
    values: Mapping[str, Any]
    name: str
    n: int


class TransitionCounter:
    """The counts of transitions and of kinds of rows, while a log is read block by block.

    ``moments`` is what had been seen at each of some moments, if the blocks say so: by the stage of each row, or by the
    columns that ready-made counts have for it. ``stages`` says when these stages begin, if they are also those of parts
    by which it is tested whether rows changed.
    """

    _has_next = False  # whether the number of a step is one more than the one before

    def __init__(
        self,
        graph: Graph,
        mapping: StateMapping | None = None,
        *,
        n_moments: int = 0,
        stages: Moments | None = None,
        steps: Steps | None = None,
        out_of_table: int | None = None,
        rewards: Mapping[str, LearnedRewards] | None = None,
        partial: PartialObservations | None = None,
        known: Sequence[str] = (),
    ) -> None:
        self.known = known
        self._of_known: list[tuple[Indices, Block]] = []  # transitions of rows, with what was known of their runs
        self._rewards = rewards or {}
        self.fault: tuple[RewardFault, Offender] | None = None  # the first value of a reward that cannot be
        self._graph, self._mapping, self._steps = graph, mapping or StateMapping(), steps
        self._elsewhere = out_of_table
        self.seen, *self.moments = (self.nothing() for _ in range(1 + n_moments))
        self.sizes = SIZES if stages is None else stages.sizes  # of the moments: runs or rows
        self._stage_of_moment: Sequence[int] = range(n_moments)
        self.recorder: Recorder | None = None  # of what was seen between boundaries
        if stages is not None and stages.ends:
            self.recorder = Recorder(stages.ends)
            self._stage_of_moment = [stages.stages.index(size) for size in stages.sizes]
            self._part_of_stage = np.searchsorted(stages.ends, [0, *stages.stages], side="right")
        self.n_runs: set[Any] = set()  # that ready-made counts say
        self._rows = np.zeros(len(KINDS), dtype=np.int64)
        self.n_rows = 0
        self.pasts: list[Block] = []  # rows by the past of their runs, if an engine counted them so
        self._waiting: list[Block] = []  # rows of which all rows decide what they are
        self.is_ordered = False  # whether rows were counted whose steps only put them in order
        self._n_repeated = 0  # rows of steps that have several which differ
        self._n_different = 0  # all rows but copies
        self.is_shared = False  # whether the log was seen to have names that stand for several runs
        self._matcher = Matcher(graph, self._mapping.action_names, out_of_table, partial)
        self._has_names = False  # whether an action has a name
        self.has_action_numbers = False  # whether numbers are taken for actions
        self._offenders: dict[Kind, Counter[tuple[Any, ...]]] = {}
        state, after = state_columns(graph), next_columns(graph)
        self._about: dict[Kind, list[str]] = {
            "unknown state": state,
            "unknown next state": after,
            "unknown action": [ACTION],
            "impossible transition": [*state, ACTION, *after],
            "unreadable state": [*state, ACTION, *after],
        }
        self._variables = [*graph.states]

    def add(self, block: Block) -> None:
        """Add the rows of a block; some wait until ``settle`` is called.

        These are rows of which there are copies, rows whose step is followed by one that is not the next number, and
        rows whose action is a number.
        """
        waits = self._has_number(block)
        if N_COPIES in block:
            waits |= row_counts(block, N_COPIES) > 0
        n = row_counts(block)
        self._n_different += exact_sum(n)
        if PLACE in block:
            self._n_repeated += exact_sum(n[block[PLACE] == "duplicate"])
            self._has_next |= bool((block[PLACE] == "step").any())
            waits |= block[PLACE] == "apart"
        if waits.any():
            self._waiting.append({name: values[waits] for name, values in block.items()})
            block = {name: values[~waits] for name, values in block.items()}
        self._add(block)

    def without_pasts(self, block: Block) -> Block:
        """Return the rows of a block that are counted whatever came before; keep the others for contexts."""
        if CONTEXT not in block:
            return block
        is_all = np.asarray(block[CONTEXT] == "all")
        self.pasts.append({name: values[~is_all] for name, values in block.items()})
        return {name: values[is_all] for name, values in block.items()}

    def settle(self) -> None:
        """Add the rows that wait.

        Rows of which there are copies count once; or as repeated steps, if names of runs stand for several of them:
        rows that are alike may then be steps of different runs.
        """
        if self.has_action_numbers and not self._has_names:
            self._matcher.take_numbers()
        self.has_action_numbers &= not self._has_names
        waiting, self._waiting = [self._placed(block) for block in self._waiting], []
        for block in waiting:
            n, copies = row_counts(block), _copies(block)
            total = sum(map(mul, n.tolist(), copies.tolist()))
            require_countable(self.n_rows + exact_sum(n) + total)
            if self.shares_names and total:
                place = np.where(copies > 0, "duplicate", block[PLACE]).astype(np.object_)
                self._add(block | {COUNT: n * (1 + copies), PLACE: place})
            else:
                self._add(block)
                self.n_rows += total
                self._rows[KINDS.index("copy")] += total

    def _has_number(self, block: Block) -> BoolArray:
        """Return the rows whose action is a number, where numbers may stand for actions."""
        actions = block[ACTION].tolist()
        if not self._mapping.names_no_action or self._elsewhere is not None:
            return np.zeros(len(actions), dtype=np.bool_)
        numbers = self._matcher.action_numbers(block)
        words = {action for action in actions if isinstance(action, str)}
        self._has_names |= any(word.strip() for word in words - numbers)
        if not numbers or not self._numbers:
            return np.zeros(len(actions), dtype=np.bool_)
        self.has_action_numbers = True
        is_plain = (isinstance(action, str | int | float) and action in numbers for action in actions)
        return np.fromiter(is_plain, np.bool_, len(actions))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return numbered_actions(self._graph)

    def _placed(self, block: Block) -> Block:
        """Return a block in which rows whose next number is not one more are steps, or have a gap after them.

        Numbers that are never consecutive only order the rows, unless somebody says otherwise.
        """
        is_apart = block[PLACE] == "apart" if PLACE in block else np.zeros(0, dtype=np.bool_)
        if not is_apart.any() or self._steps == "consecutive" or (self._steps is None and self._has_next):
            return block
        self.is_ordered = True
        return block | {PLACE: np.where(is_apart, "step", block[PLACE]).astype(np.object_)}

    def _add(self, block: Block) -> None:
        kinds, transition = self._matcher.match(block)
        n = row_counts(block)
        self.n_rows += exact_sum(n)
        require_countable(self.n_rows)
        self._check_rewards(block, transition, n)
        self._add_to(self.seen, block, transition)
        if self.known:
            rows = np.flatnonzero(transition >= 0)
            self._of_known.append((transition[rows], {name: values[rows] for name, values in block.items()}))
        for number, seen in enumerate(self.moments):
            self._add_to(seen, block, transition, number)
        if self.recorder is not None:
            rows = np.flatnonzero((transition >= 0) & (n > 0))
            part = self._part_of_stage[np.asarray(block[STAGE], dtype=np.int64)]
            self.recorder.add(part[rows], transition[rows], n[rows])
        self.n_runs |= {n for name in (N_RUNS, N_UNORDERED) if name in block for n in block[name].tolist()} - {None}
        np.add.at(self._rows, kinds, n)
        for kind, columns in self._about.items():
            self._follow(
                kind, [block[name] for name in columns], np.flatnonzero((kinds == KINDS.index(kind)) & (n > 0)), n
            )

    def nothing(self) -> Seen:
        """Return empty counts, to be added to."""
        return Seen.nothing(self._graph.n_transitions, len(self._rewards))

    def _add_to(self, seen: Seen, block: Block, transition: Indices, number: int | None = None) -> None:
        """Add what the rows of a block show, or what they had shown at a moment of this number."""
        n, first = self.times(block, number)
        rows = np.flatnonzero((transition >= 0) & (n > 0))
        np.add.at(seen.counts, transition[rows], n[rows])
        add_sums(seen.rewards, self._rewards, block, rows, transition[rows], first)

    def times(self, block: Block, number: int | None) -> tuple[CountArray, int | None]:
        """Return how often each row was seen, or had been at a moment, and the runs until then that columns name."""
        n = row_counts(block)
        if number is None:
            return n, None
        if STAGE in block:
            return np.where(block[STAGE] <= self._stage_of_moment[number], n, 0), None
        name = f"{FIRST_COUNT}{self.sizes[number]}"
        return (row_counts(block, name), self.sizes[number]) if name in block else (n, None)

    def known_contexts(self, number: int | None) -> Iterator[Context]:
        """Yield the contexts that were known before runs began; the pilot ends at a moment, or there is none."""
        for name in self.known:
            words = [
                np.ma.filled(block[f"{KNOWN}{name}"].astype(np.object_), "").astype(str) for _, block in self._of_known
            ]
            values = sorted({word for each in words for word in each.tolist()}) or [""]
            if len(values) > MOST_VALUES:
                more = f": {name} has {len(values)} values, and at most {MOST_VALUES} are told apart"
                raise DataError(Option("known", [*self.known]), more)
            total, pilot = np.zeros((2, len(values), self._graph.n_transitions), dtype=np.int64)
            for each, (transition, block) in zip(words, self._of_known, strict=True):
                cell = np.searchsorted(values, each), transition
                np.add.at(total, cell, row_counts(block))
                if number is not None:
                    np.add.at(pilot, cell, self.times(block, number)[0])
            shown = [word or "missing" for word in values]
            yield Context.of(ContextKind.KNOWN, total - pilot, pilot, name=name, values=shown)

    def _check_rewards(self, block: Block, transition: Indices, n: CountArray) -> None:
        """Note the first value of a reward that is missing, or is not in its range."""
        if not self._rewards or self.fault is not None:
            return
        choice = np.where((transition < 0) | (n == 0), -1, self._graph.choice_of_transition()[transition])
        fault, columns = find_fault(self._rewards, block, choice, _plain), self._about["impossible transition"]
        if fault is not None:
            described = self._name("impossible transition", tuple(block[each][fault.row] for each in columns))
            where = {each: _plain(block[each][fault.row]) for each in columns} | fault.where
            self.fault = fault, Offender("matched", where, described, 1)

    def kinds(self, block: Block) -> Kinds:
        """Return the kinds of some rows, each of which is by itself in the block."""
        block = self._placed(block)
        if self.shares_names and N_COPIES in block:
            place = np.where(row_counts(block, N_COPIES) > 0, "duplicate", block[PLACE])
            block = block | {PLACE: place.astype(np.object_)}
        return self._matcher.match(block)[0]

    def find(self, block: Block) -> tuple[Indices, Indices, Indices]:
        """Return the transitions of some rows, their states and choices, -1 where the model does not have them."""
        return self._matcher.match(self._placed(block))[1], *self._matcher.find_choices(block)

    @property
    def has_repeated_steps(self) -> bool:
        """Whether a step has several rows that differ."""
        return self._n_repeated > 0

    @property
    def shares_names(self) -> bool:
        """Whether names of runs stand for several of them, as they also do if most rows contradict others."""
        return self.is_shared or 2 * self._n_repeated > self._n_different

    @property
    def has_alike(self) -> bool:
        """Whether several rows are of the same step of a run."""
        return self.has_repeated_steps or bool(self._rows[KINDS.index("copy")])

    @property
    def is_irregular(self) -> bool:
        """Whether a report has to name rows: some are rejected or alike, or their steps only put them in order."""
        is_rejected = any(self._rows[KINDS.index(kind)] for kind in REJECTED)
        return is_rejected or self.has_alike or self.is_ordered or self.fault is not None

    def censored_runs(self, block: Block | None) -> CensoredRuns:
        """Return the ends of runs, given a block of their last states and of their numbers of steps."""
        if block is None or self.shares_names:
            return CensoredRuns()
        return ends_of_runs(
            self._graph, self.seen.counts, self.states(block), row_counts(block, LENGTH), row_counts(block)
        )

    def states(self, block: Block) -> Indices:
        """Return the states of rows, or -1."""
        return self._matcher.find_states(block, state_columns(self._graph))[0].astype(np.int64)

    @property
    def found_steps(self) -> Steps | None:
        """How the numbers of steps are read, if rows showed it."""
        return "consecutive" if self._has_next else "ordered" if self.is_ordered else None

    @property
    def has_action_names(self) -> bool | None:
        """Whether actions are named, and not numbered, if rows showed it."""
        return False if self.has_action_numbers else True if self._has_names else None

    def report(
        self,
        form: LogForm,
        broken: Sequence[BrokenEpisode] = (),
        repeated: Sequence[RepeatedStep] = (),
        unread: str = "",
        find: Callable[[Sequence[Offender]], Sequence[str]] | None = None,
    ) -> IngestionReport:
        """Return the report; ``broken`` are examples of episodes with gaps, ``repeated`` are examples of such steps.

        ``unread`` is a step that is neither a number nor a date, as the log has it.
        ``find`` says in which row each of some offenders is found first, or nothing where that is not known.
        """
        offenders = [each for kind, found in self._offenders.items() for each in self._worst(kind, found)]
        worst: dict[Kind, tuple[str, ...]] = dict.fromkeys(self._offenders, ())
        rows = find(offenders) if find is not None and offenders else [""] * len(offenders)
        for each, row in zip(offenders, rows, strict=True):
            first = f", {'first in ' if each.n > 1 else ''}{row}" if row else ""
            worst[each.kind] += (f"{each.name} ({each.n:,}×{first})",)
        worst["gap in steps"] = tuple(map(str, broken))
        worst["repeated step"] = tuple(map(str, repeated))
        worst["no episode or step"] = (unread,) if unread else ()
        rows_of_kinds = dict(zip(KINDS, self._rows.tolist(), strict=True))
        went = 0 if self._elsewhere is None else int(self.seen.counts[self._graph.successor == self._elsewhere].sum())
        return IngestionReport(form, rows_of_kinds, worst, hints=self._hints(offenders), out_of_table=went)

    def assumptions(self, columns: Mapping[str, Source], spacing: str = "") -> Iterator[str]:
        """Yield what was taken for granted of the log, beyond what its rows show; ``spacing`` speaks against it."""
        if self.is_ordered:
            step = f"column {column_of(columns[STEP])}" if STEP in columns else "their steps"
            but = f", although {spacing}" if spacing else ""
            text = f"the rows of each run follow one another in the order of {step}, and none in between is missing"
            yield Assumption(f"{text}{but}", kind=text)
        if self.shares_names:
            yield "which steps have several rows does not depend on where steps led"
        elif self.has_repeated_steps:
            yield (
                "rows with the same run and step are records of one step, and whether they contradict each other does "
                "not depend on where steps led"
            )
        if self.known:
            yield f"what the log says of {', '.join(self.known)} was known before each run began"
        if self._elsewhere is not None:
            yield (
                "the successors of each row in the table come from other data than these; every other step left the "
                "table, and the bounds hold whatever happens or is done after that"
            )
        if self.has_action_numbers:
            names = [f"{number} is {self._graph.action_names[code]}" for number, code in self._numbers.items()]
            yield f"actions are numbered in the order of the model: {', '.join(names)}"

    @property
    def has_gaps(self) -> bool:
        """Whether steps are missing."""
        return bool(self._rows[KINDS.index("gap in steps")])

    @property
    def has_unplaced(self) -> bool:
        """Whether rows have no run, or no step that can be read."""
        return bool(self._rows[KINDS.index("no episode or step")])

    def _follow(self, kind: Kind, columns: list[npt.NDArray[Any]], which: Indices, n: CountArray) -> None:
        if not len(which):
            return
        offenders = self._offenders.setdefault(kind, Counter())
        rows = zip(*(column[which].tolist() for column in columns), strict=True)
        for values, times in zip(rows, n[which].tolist(), strict=True):
            offenders[values] += times
        if len(offenders) > _FOLLOWED:
            self._offenders[kind] = Counter(dict(offenders.most_common(_FOLLOWED // 10)))

    def _worst(self, kind: Kind, found: Counter[tuple[Any, ...]]) -> list[Offender]:
        """Return those with the most rows, the same ones in whatever order an engine gives the rows."""
        named: Counter[str] = Counter()
        examples: dict[str, tuple[Any, ...]] = {}
        for values, n in sorted(found.items(), key=lambda item: (-item[1], str(item[0]))):
            name = self._name(kind, values)
            named[name] += n  # different values may look alike: null and NaN
            examples.setdefault(name, values)
        columns = self._about[kind]
        return [
            Offender(kind, dict(zip(columns, examples[name], strict=True)), name, n)
            for name, n in named.most_common(NAMED)
        ]

    def _hints(self, offenders: Sequence[Offender]) -> dict[Kind, str]:
        """Return a guess at what the worst offender of some kinds was meant to be."""
        hints: dict[Kind, str] = {}
        for each in reversed(offenders):
            if each.kind == "unknown action":
                hints[each.kind] = action_hint(self._graph, each.values[ACTION])
            elif each.kind in ("unknown state", "unknown next state"):
                hints[each.kind] = state_hint(self._graph, [*each.values.values()])
        return {kind: hint for kind, hint in hints.items() if hint}

    def _name(self, kind: Kind, values: tuple[Any, ...]) -> str:
        if kind == "unknown action":
            return _quoted(values[0])
        size = len(self._variables)
        move = f" {_quoted(values[size])} → {self._valuation(values[size + 1 :])}" if len(values) > size else ""
        return self._valuation(values[:size]) + move

    def _valuation(self, values: Sequence[Any]) -> str:
        pairs = zip(self._variables, values, strict=True)
        return f"({', '.join(f'{name}={self._mapping.shown(name, value)}' for name, value in pairs)})"


def ends_of_runs(graph: Graph, counts: CountArray, states: Indices, lengths: Indices, n: CountArray) -> CensoredRuns:
    """Return the ends of n runs each, given their last states and numbers of steps, and what was counted in all."""
    goes_on = np.bincount(graph.state_of_choice()[graph.choice_of_transition()], counts, graph.n_states)
    is_cut = (states >= 0) & ((goes_on > 0) & ~never_left(graph))[states]
    return CensoredRuns.of(lengths, is_cut, n)


def _copies(block: Block) -> CountArray:
    return row_counts(block, N_COPIES) if N_COPIES in block else np.zeros(len(block[COUNT]), dtype=np.int64)


def _plain(value: Any) -> Any:
    """Return a value as Python has it, None if it is missing."""
    return None if value is np.ma.masked else value.item() if isinstance(value, np.generic) else value


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else shown(value)
