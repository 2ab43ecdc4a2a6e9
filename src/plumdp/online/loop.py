"""Learns while acting, by following the optimistic policy and certifying the robust one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, ModelError
from plumdp.certifying.claims import status_of
from plumdp.certifying.pipeline import conclude, relax
from plumdp.certifying.valuation import with_looser
from plumdp.confidence.bounds import ExpressionBounds, expression_bounds, intersect
from plumdp.confidence.sets import Counted, Evidence, ModelCache, whole_set_of_updates
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.data.observing import Act, Observe
from plumdp.data.pilots import moments_for, open_pilot
from plumdp.data.runs import Rng
from plumdp.data.same_files import new_parts
from plumdp.data.seen import Seen
from plumdp.learning.learn import check_fixed_numbers, learn, learned_from
from plumdp.learning.learned import Learned
from plumdp.learning.methods import error_of
from plumdp.model.gaps import refuse_gaps
from plumdp.model.graph import FloatArray, Graph, IntArray, read_only
from plumdp.model.language.property import as_objective
from plumdp.model.objectives import Objective, digest
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import check_policy
from plumdp.model.question import Question
from plumdp.model.text import cut, number_of, one_line
from plumdp.online.environments import Environment, as_environment
from plumdp.online.environments import simulator as simulator
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import Relaxation
from plumdp.result.certificate import Status
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.evaluate import evaluate_all
from plumdp.solver.prepared import Prepared, prepare
from plumdp.solver.problem import Solution, SolverStatus
from plumdp.solver.solve import solve


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
    moments: CountArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))  # (m, n_transitions)

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
                names = [each for each in OnlineState.__dataclass_fields__ if each != "moments" or each in file]
                arrays = {name: file[name] for name in names}
        except (OSError, ValueError, TypeError, LookupError, EOFError, MemoryError, BadZipFile) as problem:
            raise damaged(path, f"{type(problem).__name__}: {problem}") from None
        for name, kind in (("purpose", "U"), ("episodes", "i"), ("seconds", "f")):
            if arrays[name].shape != () or arrays[name].dtype.kind != kind:
                raise damaged(path, f"its {name} are {arrays[name].dtype} of shape {arrays[name].shape}")
            arrays[name] = arrays[name].item()
        return OnlineState(**arrays)

    def problem(self, graph: Graph, n_events: int) -> str:
        """Return the reason why a model does not have this state, or an empty text."""
        shapes: dict[str, tuple[npt.DTypeLike, set[tuple[int, ...]]]] = {
            "counts": (np.int64, {(graph.n_transitions,)}),
            "event_lower": (np.float64, {(n_events,)}),
            "event_upper": (np.float64, {(n_events,)}),
            "ends": (np.int64, {(2, 2, n_events)}),
            "values": (np.float64, {(0, graph.n_states), (2, graph.n_states)}),
            "policies": (np.int32, {(len(self.values), graph.n_states)}),
            "moments": (np.int64, {(0, 0), (len(self.moments), graph.n_transitions)}),
        }
        for name, (dtype, possible) in shapes.items():
            array = getattr(self, name)
            if array.dtype != dtype or array.shape not in possible:
                return f"its {name} are {array.dtype} of shape {array.shape}"
        if not (self.episodes >= 0 and 0 <= self.seconds < np.inf):
            return f"it has {self.episodes} episodes in {self.seconds} seconds"
        if (self.counts < 0).any() or self.counts.sum(dtype=np.float64) >= 2.0**62:
            return "its counts are not possible"
        stages = [*self.moments, self.counts]
        if any((later < earlier).any() for earlier, later in pairwise([0 * self.counts, *stages])):
            return "its moments are not possible"
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


@dataclass(frozen=True, eq=False)
class OnlineRecord:
    """The certified bound and its policy after some episodes."""

    episodes: int
    steps: int
    bound: float  # certified value of the safe policy: at least this for max, at most for min
    optimistic_bound: float  # no policy is better than this
    true_value: float | None  # of the safe policy, if the environment knows it
    policy: PolicyTable  # the safe one
    width: float  # mean width of the intervals of unknown expressions
    status: Status  # as of a ``Certificate``
    seconds: float  # since the start, without the environment
    learned: Learned  # what ``conclude`` makes a certificate of the policy from, which holds jointly with all records

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
    relaxation: Relaxation = "rectangular",
    growth: float = 2.0,
    spacing: float = 1.05,
    exploration: float = 0.0,
    precision: float = 1e-6,
    checkpoint: str | Path | None = None,
    rng: Rng | None = None,
    max_steps: int | None = None,
    observe: Observe | None = None,
    act: Act | None = None,
) -> Iterator[OnlineRecord]:
    """Yield a record after each update, with the bound that is certified so far and its policy.

    Between updates it follows the policy that is best with nature at its best (optimism in the face of uncertainty),
    except for a share ``exploration`` of uniform choices. The intervals are updated when some choice has been taken
    ``growth`` times as often as at the last update, and the episodes are ``spacing`` times as many. Data are adaptive,
    so the intervals are beta-binomial and hold at all updates at once, and each update keeps the earlier intervals as
    well.

    With ``relaxation="coupled"`` it stands on the same ground as ``certify``: likelihood sets with bets that are placed
    after 4, 16, 64, … episodes, one point for the whole run, and the test of the model. They hold at any time, and so
    at all updates at once. An update then takes longer, so that a larger ``spacing`` helps. Otherwise it keeps
    intervals and the relaxations of the paper, by default rectangular, without a pilot.

    With a ``checkpoint`` file, learning goes on where it stopped, by a crash or by hand, and ends with the same result
    if the environment repeats an episode exactly. A checkpoint of another model (graph, expressions or space),
    objective or option is refused, and only ``episodes`` may change. The objective may be given as text, see
    ``parse_property``.

    ``environment`` is a Gymnasium environment, or one such as ``simulator`` makes. In a Gymnasium environment, each
    episode starts with a seed that follows from ``rng`` (by default 0) and its number, and ``max_steps``, ``observe``
    and ``act`` are as in ``sample_env``.

    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> environment = simulator(study.model, study.true_point, rng=1, max_steps=26)
    >>> records = list(learn_online(study.model, environment, study.objective, episodes=1000))
    >>> records[-1].episodes, records[-1].bound <= records[-1].optimistic_bound
    (1000, True)
    """
    require_model("learn_online", model)
    refuse_gaps("learn_online", model)
    place = as_environment(environment, model, rng=rng, max_steps=max_steps, observe=observe, act=act)
    objective = as_objective(objective, model)
    if not (growth > 1 and spacing >= 1 and 0 <= exploration <= 1):
        raise DataError("growth must be above 1, spacing at least 1, and exploration a share from 0 to 1")
    error = error_of(confidence)
    cache = ModelCache(model)
    path = None if checkpoint is None else Path(checkpoint)
    settings = (
        f"objective {digest(objective)[:16]}, {relaxation=}, {growth=}, {spacing=}, {exploration=}, {precision=}, "
        f"{confidence=}"
    )
    sizes = _moments(model) if relaxation == "coupled" else ()
    state = _start(model, 0 if sizes else len(cache.events), settings, path)
    before: _Update | None = None
    while True:
        began = perf_counter()
        if sizes:
            update = _update_like_certify(model, state, objective, error, precision, before, sizes)
        else:
            update = _update(cache, state, objective, error, relaxation, precision, before)
        if SolverStatus.INTERRUPTED in (update.optimistic.status, update.safe.status):
            raise KeyboardInterrupt  # a checkpoint has the last complete update, so that learning can go on from there
        before, bounds = update, update.bounds
        state = replace(state, seconds=state.seconds + perf_counter() - began)
        if bounds is not None:
            ends = state.ends if bounds.ends is None else bounds.ends
            state = replace(state, event_lower=bounds.event_lower, event_upper=bounds.event_upper, ends=ends)
        if path is not None:
            state.save(path)
        yield _record(update, state, objective, place.true_value(update.safe.policy, objective))
        if state.episodes >= episodes:
            return
        values = np.stack([update.optimistic.lower, update.safe.lower])
        state = replace(state, values=values, policies=np.stack([update.optimistic.policy, update.safe.policy]))
        state = _act(model.graph, place, state, update.optimistic.policy, episodes, growth, spacing, exploration, sizes)


class _Update(NamedTuple):
    """What is certified after some episodes, and what the next ones follow."""

    learned: Learned
    bounds: ExpressionBounds | None  # intervals that are kept, if the set is made of these
    optimistic: Solution  # the best policy with nature at its best: no policy is better
    safe: Solution  # the policy of the record, with nature at its worst
    width: float
    prepared: Prepared


def _moments(model: ParametricMDP) -> tuple[int, ...]:
    """Return after how many episodes bets are placed anew, however many there will be."""
    return moments_for(2**62, is_table=model.counted.is_table, is_planned=False)


def _update_like_certify(
    model: ParametricMDP,
    state: OnlineState,
    objective: Objective,
    error: float,
    precision: float,
    before: _Update | None,
    sizes: Sequence[int],
) -> _Update:
    """Return what ``learn`` and ``conclude`` say of the episodes so far.

    The first moment at which a region misses is a time to stop at like any other. So what holds whenever somebody stops
    holds at all updates at once.
    """
    nothing, seen = Seen.nothing(len(state.counts)), [*map(Seen, state.moments)]
    kept = seen[: sum(size < state.episodes for size in sizes)]
    pilot = open_pilot(kept, state.episodes, nothing, is_table=model.counted.is_table)
    parts = new_parts(int(state.counts.sum()), is_simulated=True)
    counts = TransitionCounts(model.graph, state.counts, "adaptive", pilot, parts=parts)
    like = None if before is None else before.learned
    learned = learn(model, counts, objectives=[objective], like=like, confidence=1 - error)
    certificate = conclude(learned, objective, memory=False, precision=precision)
    uncertain = relax(learned, "interval" if learned.model.counted.is_table else "rectangular")
    prepared = prepare(uncertain, objective, "optimistic", like=None if before is None else before.prepared)
    optimistic = solve(uncertain, objective, nature="optimistic", precision=precision, prepared=prepared)
    lower, upper = (np.full(model.graph.n_states, end) for end in (certificate.lower, certificate.upper))
    safe = Solution(lower, upper, certificate.policy.choice, SolverStatus.CONVERGED, 0)
    return _Update(learned, None, optimistic, safe, _width(learned, uncertain.upper - uncertain.lower), prepared)


def _update(
    cache: ModelCache,
    state: OnlineState,
    objective: Objective,
    error: float,
    relaxation: Relaxation,
    precision: float,
    before: _Update | None,
) -> _Update:
    """Return what intervals that hold at all updates say of the episodes so far."""
    learned, bounds = _learn(cache, state, error)
    uncertain = relax(learned, relaxation)
    best_start, worst_start = state.starts()
    prepared = prepare(uncertain, objective, "optimistic", like=None if before is None else before.prepared)
    optimistic = solve(
        uncertain, objective, nature="optimistic", precision=precision, start=best_start, prepared=prepared
    )
    safe = _safe(uncertain, objective, precision, worst_start, prepared)
    return _Update(learned, bounds, optimistic, safe, _width(learned, bounds.upper - bounds.lower), prepared)


def _width(learned: Learned, widths: FloatArray) -> float:
    """Return the mean width of the intervals of unknown expressions."""
    unknown = (
        widths > 0 if learned.conflict is not None else learned.model.expressions.is_unknown
    )  # else rows are apart
    return float(widths[unknown].mean()) if unknown.any() else 0.0


def _start(model: ParametricMDP, n_events: int, settings: str, path: Path | None) -> OnlineState:
    """Return the state of a checkpoint with the same model and settings, or an initial state without one."""
    graph = model.graph
    purpose = f"model {model.fingerprint[:16]}, {settings}"
    if path is None or not path.exists():
        nothing = np.zeros(graph.n_transitions, dtype=np.int64)
        no_values, no_policies = np.zeros((0, graph.n_states)), np.zeros((0, graph.n_states), dtype=np.int32)
        no_ends = np.zeros((2, 2, n_events), dtype=np.int64)
        whole = np.zeros(n_events), np.ones(n_events)
        return OnlineState(purpose, 0, nothing, *whole, no_ends, no_values, no_policies, 0.0)
    state = OnlineState.load(path)
    if state.purpose != purpose:
        raise DataError(
            f"{path} is of another run ({cut(state.purpose, 400)}), not of this one ({purpose}); name another file"
        )
    if problem := state.problem(graph, n_events):
        raise damaged(path, problem)
    return state


def _learn(cache: ModelCache, state: OnlineState, error: float) -> tuple[Learned, ExpressionBounds]:
    """Return the region and the bounds after an update, with tests of the fixed numbers if there are any."""
    model, seen = cache.model, new_parts(int(state.counts.sum()), is_simulated=True)
    counts = TransitionCounts(model.graph, state.counts, "adaptive", parts=seen)
    budget = Counted(cache, counts, error).divided(whole_set_of_updates())
    now = expression_bounds(model, counts, error=budget.error_of_set(error), events=cache.events)
    # beta-binomial intervals hold at all updates at once, so that the earlier ones still hold
    bounds = intersect(now, state.event_lower, state.event_upper, state.ends)
    learned = learned_from(model, counts, Evidence.of("interval", bounds, budget), error)
    return check_fixed_numbers(replace(learned, cache=cache), cache.fixed), bounds


def _safe(
    uncertain: IntervalMDP, objective: Objective, precision: float, start: Solution | None, prepared: Prepared
) -> Solution:
    """Return the best policy against nature at its worst, with values that are proved for it."""
    best = solve(uncertain, objective, nature="robust", precision=precision, start=start, prepared=prepared)
    if best.status == SolverStatus.INTERRUPTED:
        return best
    relaxations = with_looser(uncertain)
    (worst,) = evaluate_all(
        relaxations, best.policy, objective, ("robust",), precision=precision, start=best, within=prepared
    )
    return worst


def _act(
    graph: Graph,
    environment: Environment,
    state: OnlineState,
    policy: IntArray,
    episodes: int,
    growth: float,
    spacing: float,
    exploration: float,
    sizes: Sequence[int],
) -> OnlineState:
    """Return the state after following the policy until it is time for an update; ``sizes`` are moments of bets."""
    n_choices = np.diff(graph.first_choice)[graph.state_of_choice()]
    weights = exploration / n_choices
    weights[policy] += 1 - exploration
    before = TransitionCounts(graph, state.counts, "adaptive").visits
    limits = np.maximum(np.ceil((growth - 1) * before), 1).astype(np.int64)
    counts, done = state.counts.copy(), state.episodes
    earliest = min(episodes, max(done + 1, int(np.ceil(spacing * done))))
    no_limits, visits = np.full(graph.n_choices, np.iinfo(np.int64).max), 0 * before
    moments = [*state.moments]
    while done < earliest or (done < episodes and not (visits >= limits).any()):
        ends = (earliest if done < earliest else episodes, *sizes[len(moments) :][:1])
        done = environment.run(weights, done, min(ends), no_limits if done < earliest else limits - visits, counts)
        visits = TransitionCounts(graph, counts - state.counts, "adaptive").visits
        if done in sizes:
            moments.append(counts.copy())
    return replace(
        state, episodes=done, counts=read_only(counts), moments=np.array(moments) if moments else state.moments
    )


def _record(update: _Update, state: OnlineState, objective: Objective, true_value: float | None) -> OnlineRecord:
    about = {"confidence_set": update.learned.kind, "events": False, "misfit": 0.0, "evidence": None}
    questions = (Question(update.learned.model, objective),)
    learned = replace(update.learned, questions=questions, options=about | {"episodes": state.episodes})
    start = learned.model.graph.initial_state
    is_max = objective.direction == "max"
    bound = float((update.safe.lower if is_max else update.safe.upper)[start])
    best = float((update.optimistic.upper if is_max else update.optimistic.lower)[start])
    return OnlineRecord(
        episodes=state.episodes,
        steps=int(state.counts.sum()),
        bound=bound,
        optimistic_bound=best,
        true_value=true_value,
        policy=PolicyTable(learned.model.graph, update.safe.policy, frozenset([learned.counts.fingerprint])),
        width=update.width,
        status=status_of(learned, objective, min(bound, best), max(bound, best)),
        seconds=state.seconds,
        learned=learned,
    )
