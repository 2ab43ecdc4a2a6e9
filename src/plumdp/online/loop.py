"""Learns while acting, by policies that are optimistic or narrow the bounds, and certifies the robust one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.edge import replacing
from plumdp.base.errors import DataError, fault_of
from plumdp.base.vocabulary import Status
from plumdp.certifying.pipeline import conclude, relax
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.data.pilots import moments_for, open_pilot
from plumdp.data.same_files import new_parts
from plumdp.data.seen import Seen
from plumdp.explaining.advice import plan_next
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned
from plumdp.learning.methods import error_of
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.objectives import Objective, digest
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import policy_weights
from plumdp.model.question import Question, as_objective, ask
from plumdp.model.text import cut, number_of, one_line
from plumdp.online.environments import Environment, as_environment
from plumdp.online.environments import simulator as simulator
from plumdp.result.certificate import Certificate
from plumdp.result.data_file import PROBLEMS
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.prepared import Prepared, prepare
from plumdp.solver.problem import Solution, SolverStatus
from plumdp.solver.solve import solve


@dataclass(frozen=True, eq=False)
class OnlineState:
    """The data that learning needs to go on after an interruption."""

    purpose: str  # the model and the settings, in words
    episodes: int
    counts: CountArray  # (n_transitions)
    moments: CountArray  # (m, n_transitions): what had been counted when bets were placed anew
    seconds: float

    def save(self, path: Path) -> None:
        """Write the state to a file such that a crash leaves either the old file or the new one."""
        with replacing(path) as fresh, fresh.open("wb") as file:
            np.savez(file, **{name: getattr(self, name) for name in self.__dataclass_fields__})

    @staticmethod
    def load(path: Path) -> OnlineState:
        """Return the state in a file, without executing anything in it, or refuse a damaged file."""
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in OnlineState.__dataclass_fields__}
        except PROBLEMS as problem:
            raise damaged(path, fault_of(problem)) from None
        for name, kind in (("purpose", "U"), ("episodes", "i"), ("seconds", "f")):
            if arrays[name].shape != () or arrays[name].dtype.kind != kind:
                raise damaged(path, f"its {name} are {arrays[name].dtype} of shape {arrays[name].shape}")
            arrays[name] = arrays[name].item()
        return OnlineState(**arrays)

    def problem(self, n_transitions: int, sizes: Sequence[int]) -> str:
        """Return the reason why a model whose bets are placed after so many episodes does not have this state."""
        if not (self.episodes >= 0 and 0 <= self.seconds < inf):
            return f"it has {self.episodes} episodes in {self.seconds} seconds"
        n_moments = sum(size <= self.episodes for size in sizes)
        for name, shape in (("counts", (n_transitions,)), ("moments", (n_moments, n_transitions))):
            array = getattr(self, name)
            if array.dtype != np.int64 or array.shape != shape:
                return f"its {name} are {array.dtype} of shape {array.shape}"
        if (self.counts < 0).any() or self.counts.sum(dtype=np.float64) >= 2.0**62:
            return "its counts are not possible"
        if any((later < earlier).any() for earlier, later in pairwise([0 * self.counts, *self.moments, self.counts])):
            return "its moments are not possible"
        return ""


def damaged(path: Path, why: str) -> DataError:
    """Return the error for a file that is not a checkpoint."""
    return DataError(f"{path} is not a checkpoint of learn_online, or damaged ({why}); delete it or name another file")


@dataclass(frozen=True, eq=False)
class OnlineRecord:
    """The certificate of the best policy after some episodes."""

    episodes: int
    steps: int
    certificate: Certificate  # of the safe policy, which holds jointly with those of all records
    optimistic_bound: float  # no policy is better than this
    true_value: float | None  # of the safe policy, if the environment knows it
    width: float  # mean width of the intervals of unknown expressions
    seconds: float  # since the start, without the environment
    learned: Learned  # what the certificate follows from

    @property
    def bound(self) -> float:
        """The certified value of the safe policy: at least this for max, at most for min."""
        return self.certificate.claim.bound

    @property
    def gap(self) -> float:
        """How much better than certified some policy may be: the distance between both bounds."""
        gap = abs(self.optimistic_bound - self.bound)
        return inf if gap != gap else gap  # two infinite bounds

    @property
    def policy(self) -> PolicyTable:
        """The safe policy."""
        return self.certificate.policy

    @property
    def status(self) -> Status:
        """The status of the certificate."""
        return self.certificate.status

    def __repr__(self) -> str:
        values = f"bound {self.bound:.6g}", f"optimistic bound {self.optimistic_bound:.6g}"
        return one_line(self, number_of(self.episodes, "episode"), number_of(self.steps, "step"), *values, self.status)


def learn_online(
    model: ParametricMDP,
    environment: Any,
    objective: Objective | str,
    *,
    episodes: int,
    confidence: float = 0.999,
    spacing: float = 2.0,
    exploration: float = 0.0,
    precision: float = 1e-6,
    checkpoint: str | Path | None = None,
) -> Iterator[OnlineRecord]:
    """Yield a record after each update, with a certificate of the best policy so far.

    Each update is what ``learn`` and ``conclude`` say of the episodes so far. Half of the episodes until the next one
    follow the policy that is best with nature at its best, the others one that narrows the bounds on the safe policy,
    as ``advise`` plans it. All records hold jointly with the given confidence, so you may stop at any of them.

    Parameters
    ----------
    model
        The parametric model.
    environment
        A Gymnasium environment, or one such as ``simulator`` makes; ``gym_environment`` says how observations and
        actions are read, and from which seed those of episodes follow.
    objective
        The question, or its text.
    episodes
        How many there are in all.
    confidence
        As in ``certify``.
    spacing
        An update comes when there are so many times as many episodes as at the last one.
    exploration
        The share of choices that are uniform.
    precision
        As in ``conclude``.
    checkpoint
        A file with which learning goes on where it stopped, with the same result if the environment repeats an episode
        exactly. One of another model, objective or option is refused; only ``episodes`` may change.

    Yields
    ------
    OnlineRecord
        The episodes so far, the bounds, and a certificate of the best policy.

    Examples
    --------
    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> environment = simulator(study.model, study.true_point, rng=1, max_steps=26)
    >>> records = list(learn_online(study.model, environment, study.objective, episodes=1000))
    >>> records[-1].episodes, records[-1].bound <= records[-1].optimistic_bound
    (1000, True)
    """
    require_model("learn_online", model)
    refuse({Trait.EVERY_STEP, *model.traits}, "learn_online")
    place = as_environment(environment, model)
    question = ask(as_objective(objective, model), model, memory=False)
    if question.model is not model:
        raise DataError(f"{question.objective.text}: this needs memory, and learn_online follows policies without any")
    if not (spacing >= 1 and 0 <= exploration <= 1):
        raise DataError("spacing must be at least 1, and exploration a share from 0 to 1")
    error_of(confidence)
    path = None if checkpoint is None else Path(checkpoint)
    settings = f"objective {digest(question.objective)[:16]}, {spacing=}, {exploration=}, {precision=}, {confidence=}"
    sizes = moments_for(2**62, is_table=model.counted.is_table, is_planned=False)  # however many there will be
    state = _start(model, settings, path, sizes)
    before: _Update | None = None
    while True:
        began = perf_counter()
        before = update = _update(model, state, question, confidence, precision, before)
        if SolverStatus.INTERRUPTED in (update.optimistic.status, update.certificate.how.solver):
            raise KeyboardInterrupt  # a checkpoint has the last complete update, so that learning can go on from there
        state = replace(state, seconds=state.seconds + perf_counter() - began)
        if path is not None:
            state.save(path)
        yield _record(update, state, question, place)
        if state.episodes >= episodes:
            return
        until = min(episodes, max(state.episodes + 1, int(np.ceil(spacing * state.episodes))))
        state = _act(place, state, _policies(update, question, exploration, until - state.episodes), until, sizes)


class _Update(NamedTuple):
    """What is certified after some episodes, and what the next ones follow."""

    learned: Learned
    certificate: Certificate
    optimistic: Solution  # the best policy with nature at its best: no policy is better
    width: float
    prepared: Prepared


def _update(
    model: ParametricMDP,
    state: OnlineState,
    question: Question,
    confidence: float,
    precision: float,
    before: _Update | None,
) -> _Update:
    """Return what ``learn`` and ``conclude`` say of the episodes so far."""
    is_table, nothing = model.counted.is_table, Seen.nothing(len(state.counts))
    sizes = moments_for(state.episodes, is_table=is_table, is_planned=False)
    pilot = open_pilot([*map(Seen, state.moments[: len(sizes)])], state.episodes, nothing, is_table=is_table)
    parts = new_parts(int(state.counts.sum()), is_simulated=True)
    counts = TransitionCounts(model.graph, state.counts, "adaptive", pilot, parts=parts)
    like = None if before is None else before.learned
    learned = learn(model, counts, objectives=[question], like=like, confidence=confidence)
    certificate = conclude(learned, question, memory=False, precision=precision)
    uncertain = relax(learned, "interval" if learned.model.counted.is_table else "rectangular")
    prepared = prepare(uncertain, question.objective, "optimistic", like=None if before is None else before.prepared)
    optimistic = solve(uncertain, question.objective, nature="optimistic", precision=precision, prepared=prepared)
    widths, is_unknown = uncertain.upper - uncertain.lower, learned.model.expressions.is_unknown
    unknown = widths[widths > 0 if learned.conflict is not None else is_unknown]  # of a conflict, rows are apart
    return _Update(learned, certificate, optimistic, float(unknown.mean()) if len(unknown) else 0.0, prepared)


def _start(model: ParametricMDP, settings: str, path: Path | None, sizes: Sequence[int]) -> OnlineState:
    """Return the state of a checkpoint with the same model and settings, or an initial state without one."""
    purpose, n = f"model {model.fingerprint[:16]}, {settings}", model.graph.n_transitions
    if path is None or not path.exists():
        return OnlineState(purpose, 0, np.zeros(n, dtype=np.int64), np.zeros((0, n), dtype=np.int64), 0.0)
    state = OnlineState.load(path)
    if state.purpose != purpose:
        raise DataError(
            f"{path} is of another run ({cut(state.purpose, 400)}), not of this one ({purpose}); name another file"
        )
    if problem := state.problem(n, sizes):
        raise damaged(path, problem)
    return state


def _policies(update: _Update, question: Question, exploration: float, runs: int) -> tuple[FloatArray, FloatArray]:
    """Return the weights of two policies for so many episodes: the optimistic one, and one that narrows the bounds."""
    graph, asked = question.model.graph, ask(question, update.learned.model)
    uniform = 1 / np.diff(graph.first_choice)[graph.state_of_choice()]
    optimistic = policy_weights(graph, update.optimistic.policy)
    planned = plan_next(update.learned, asked, update.certificate.policy.choice, runs)
    both = optimistic, optimistic if planned is None else planned
    first, second = ((1 - exploration) * weights + exploration * uniform for weights in both)
    return first, second


def _act(
    environment: Environment,
    state: OnlineState,
    policies: tuple[FloatArray, FloatArray],
    until: int,
    sizes: Sequence[int],
) -> OnlineState:
    """Return the state after following each policy in half of some more episodes; ``sizes`` are moments of bets."""
    counts, moments, done = state.counts.copy(), [*state.moments], state.episodes
    half = (done + until + 1) // 2
    for end in sorted({half, until, *(size for size in sizes if done < size < until)}):
        environment.run(policies[done >= half], done, end, counts)
        done = end
        if done in sizes:
            moments.append(counts.copy())
    kept = np.array(moments) if moments else state.moments
    return replace(state, episodes=done, counts=read_only(counts), moments=kept)


def _record(update: _Update, state: OnlineState, question: Question, place: Environment) -> OnlineRecord:
    objective, certificate = question.objective, update.certificate
    ends = update.optimistic.upper if objective.direction == "max" else update.optimistic.lower
    return OnlineRecord(
        episodes=state.episodes,
        steps=int(state.counts.sum()),
        certificate=certificate,
        optimistic_bound=float(ends[question.model.graph.initial_state]),
        true_value=place.true_value(certificate.policy.choice, objective),
        width=update.width,
        seconds=state.seconds,
        learned=update.learned,
    )
