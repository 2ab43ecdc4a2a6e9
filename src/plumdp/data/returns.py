"""The returns of whole runs: what each was worth to an objective, or bounds on that if it is not complete.

What a state or a step counts is the objective's. Of the model, two facts are used and no probability: a run stays in a
state that it cannot leave, and rewards are no smaller and no larger than the smallest and largest of the policy.
Runs must begin where the value is, and follow the policy until they are decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.errors import DataError, ModelError, Option
from plumdp.base.rounding import UNIT, FloatArray, down, up
from plumdp.data.observing import never_left
from plumdp.data.run_record import WholeRuns
from plumdp.model.graph import BoolArray, Graph, Indices
from plumdp.model.objectives import Kind, Objective, Reach, Reward
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, policy_weights
from plumdp.model.unmodelled_exits import out_of_table_of
from plumdp.model.values import RowIndex

Range = tuple[float, float]

_LEAST_SHARE = 0.5  # of the rows of a run; of one with fewer, nothing is known


@dataclass(frozen=True, eq=False)
class Lives:
    """Runs in the order in which they were made: how long each was seen to be at risk, and whether it happened."""

    steps: Indices  # (n_runs): in which it was at risk, up to the number that is asked about
    is_ended: BoolArray  # (n_runs): whether it happened in the last of them
    n_steps: int
    complement: bool  # whether the probability that it does not happen is asked

    def seen(self, first: int, last: int) -> FloatArray:
        """Return how many of some runs were at risk in each step, and in how many it happened (2, n_steps)."""
        steps, ended = self.steps[first:last], self.is_ended[first:last]
        ends = np.bincount(steps, minlength=self.n_steps + 1)
        happened = np.bincount(steps[ended], minlength=self.n_steps + 1)[1:]
        return np.array([ends[::-1].cumsum()[::-1][1:], happened], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Bounds on what each run earned, between 0 and 1 where the range of all returns begins and ends."""

    lower: FloatArray  # (n_runs): rounded down, and the least that it may have earned if it is not complete
    upper: FloatArray  # (n_runs): likewise from above
    is_complete: BoolArray  # (n_runs)
    within: Range
    cap: float | None = None  # the amount that returns beyond it count as, if there may be any
    reach: tuple[FloatArray, FloatArray] | None = None  # (n_runs): between which they lie instead, if not all are there
    lives: Lives | None = None  # of a probability within some steps, if runs are cut off whatever happens in them

    def take(self, runs: Indices) -> Outcomes:
        """Return the outcomes of some runs, in their order."""
        reach = None if self.reach is None else (self.reach[0][runs], self.reach[1][runs])
        each = {name: getattr(self, name)[runs] for name in ("lower", "upper", "is_complete")}
        return replace(self, reach=reach, **each)

    def value(self, share: float, side: int) -> float:
        """Return the number at a share of the range, rounded down or up as the side says."""
        low, high = self.within
        rounded = (down if side < 0 else up)(np.array(low + share * (high - low)), np.array(abs(low) + abs(high)))
        return min(max(float(rounded), low), high)

    def difference(self, share: float, side: int) -> float:
        """Return the difference of two numbers whose shares differ by this, rounded as the side says."""
        low, high = self.within
        return float((down if side < 0 else up)(np.array(share * (high - low)), np.array(abs(low) + abs(high))))


def outcomes_of(
    objective: Objective,
    model: ParametricMDP,
    runs: WholeRuns,
    graph: Graph,
    policy: Policy,
    *,
    return_range: Range | None = None,
) -> Outcomes:
    """Return the outcomes of runs from the initial state that follow a policy of a graph until they are decided.

    Returns that are beyond the cap of runs, in either direction, are taken to be this amount.
    """
    require_start(model, runs)
    within = range_of_returns(objective, model, graph, policy, return_range)
    assert runs.missing is None or counts_torn(objective)
    ends = ends_of(objective, runs, model.graph, out_of_table_of(model))
    choice = choices_of(graph, policy, model, runs, ends)
    share = np.ones(len(runs)) if runs.missing is None else share_there(objective, runs, ends)
    if isinstance(objective, Reward):
        may_take = taken_somewhere(graph, policy, model)
        returns = reward_returns(objective, runs, ends, choice, model.graph, may_take, share)
        returns = returns.where(share >= _LEAST_SHARE, within)
    else:
        assert isinstance(objective, Reach)
        returns = reach_returns(objective, runs, ends)
    _require_within(returns, runs, within, was_given=return_range is not None)
    cap, cut = None, within if runs.cap is None else (max(within[0], -runs.cap), min(within[1], runs.cap))
    least, most = np.full(len(runs), cut[0]), np.full(len(runs), cut[1])
    if cut != within and cut[0] < cut[1]:
        torn = np.flatnonzero((share >= _LEAST_SHARE) & (share < 1))  # the limit of a part of a run is farther away
        least[torn] = np.maximum(within[1] - (within[1] - cut[0]) / share[torn], within[0])
        most[torn] = np.minimum(within[0] + (cut[1] - within[0]) / share[torn], within[1])
        within, cap = cut, runs.cap
    reach = (
        np.where(least < within[0], _placed(least, within, down), 0.0),
        np.where(most > within[1], _placed(most, within, up), 1.0),
    )
    lower = np.clip(_placed(np.clip(returns.lower, least, within[1]), within, down), reach[0], 1.0)
    upper = np.clip(_placed(np.clip(returns.upper, within[0], most), within, up), 0.0, reach[1])
    lives = _lives(objective, model, runs, ends) if cap is None else None
    return Outcomes(lower, upper, returns.is_complete, within, cap, reach, lives)


def counts_torn(objective: Objective) -> bool:
    """Return whether runs count of which rows are missing: if each of so many steps counts alike."""
    return isinstance(objective, Reward) and objective.target is None and objective.discount is None


def share_there(objective: Objective, runs: WholeRuns, ends: ReturnEnds) -> FloatArray:
    """Return the share that is there of the rows after the first one of each run, up to its end."""
    assert objective.n_steps is not None
    all_rows = np.minimum(runs.time[ends.row], objective.n_steps) - 1
    there = ends.row - runs.first[:-1] - 1
    return np.where(all_rows > 0, there / np.maximum(all_rows, 1), 1.0)


def _lives(objective: Objective, model: ParametricMDP, runs: WholeRuns, ends: ReturnEnds) -> Lives | None:
    """Return how long runs were at risk of their target, if nothing else decides them before a number of steps.

    Whether that is so, the model says: as soon as there are two ways to be in the middle of a run, or to be out of it,
    a run that is at risk has several pasts.
    """
    has_number = runs.expected is not None or runs.has_fixed_number
    if runs.censoring != "independent" or not has_number or not isinstance(objective, Reach) or objective.steps is None:
        return None
    (first, last), initial = objective.steps, model.graph.initial_state
    others = (objective.avoid | never_left(model.graph)) & ~objective.target
    if first or not last or objective.target[initial] or others.any() or out_of_table_of(model) is not None:
        return None
    time = runs.time[ends.row]
    return Lives(np.minimum(time, last), _is_reached(objective, runs.state[ends.row], time), last, objective.complement)


def range_of_returns(
    objective: Objective, model: ParametricMDP, graph: Graph, policy: Policy, given: Range | None
) -> Range:
    """Return the range of returns: the given one, or that which the model allows."""
    refuse({Trait.RUNS, objective.kind is Kind.AVERAGE and Trait.AVERAGE})
    if given is None:
        within = range_of(objective, model.graph, taken_somewhere(graph, policy, model))
        if not isfinite(within[0]) or not isfinite(within[1]):
            raise DataError(
                "sums of rewards have no largest value here: say between which numbers all returns lie, with ",
                Option("return_range"),
            )
        return (within[0], within[1]) if within[0] < within[1] else (within[0] - 0.5, within[1] + 0.5)
    if not isinstance(objective, Reward):
        raise DataError(Option("return_range"), ": returns of probabilities are 0 or 1; leave it out")
    low, high = given
    if not (isfinite(low) and isfinite(high) and low < high):
        raise DataError(Option("return_range"), ": give two numbers, the smaller one first")
    return float(low), float(high)


def scaled(values: FloatArray, within: Range, rounded: Callable[..., FloatArray]) -> FloatArray:
    """Return values between 0 and 1 instead of those in a range, rounded outward."""
    return np.clip(_placed(np.clip(values, *within), within, rounded), 0.0, 1.0)


def _placed(values: FloatArray, within: Range, rounded: Callable[..., FloatArray]) -> FloatArray:
    """Return values as they lie to a range, whose ends are 0 and 1, rounded outward."""
    low, high = within
    width = high - low
    return values if within == (0.0, 1.0) else rounded((values - low) / width, (np.abs(values) + abs(low)) / width)


def _require_within(returns: Returns, runs: WholeRuns, within: Range, *, was_given: bool) -> None:
    is_outside = (returns.lower > within[1]) | (returns.upper < within[0])
    if not is_outside.any():
        return
    run = int(np.argmax(is_outside))
    value = returns.lower[run] if returns.lower[run] > within[1] else returns.upper[run]
    problem = "is infinite" if np.isinf(value) else f"is {value:.6g}"
    place = f"run {runs.names[run]}: its return {problem}, which is not between {within[0]:g} and {within[1]:g}"
    raise DataError(
        place, "; give a range that holds for all runs, " if was_given else "; say ", Option("return_range")
    )


@dataclass(frozen=True, eq=False)
class Returns:
    """Bounds on the return of each run, and which runs are complete."""

    lower: FloatArray  # (n_runs)
    upper: FloatArray  # (n_runs)
    is_complete: BoolArray  # (n_runs)

    def where(self, is_known: BoolArray, within: Range) -> Returns:
        """Return the same of some runs; of the others nothing is known."""
        lower, upper = np.where(is_known, self.lower, within[0]), np.where(is_known, self.upper, within[1])
        return Returns(lower, upper, self.is_complete & is_known)


@dataclass(frozen=True, eq=False)
class ReturnEnds:
    """The row up to which each run counts, and whether its return is decided there, whatever comes later."""

    row: Indices  # (n_runs): the first row in which it is decided, or the last one that is known
    is_decided: BoolArray  # (n_runs)
    stays: BoolArray  # (n_runs): not decided, but in a state that the model never leaves


def ends_of(objective: Objective, runs: WholeRuns, graph: Graph, out_of_table: int | None) -> ReturnEnds:
    """Return the row at which each run is decided, by the property or its number of steps, if it is decided."""
    if not isinstance(objective, Reach | Reward):
        raise ModelError(f"returns of runs are known for Reach and Reward, not for {type(objective).__name__}")
    state, time = runs.state, runs.time
    decided = np.zeros(len(state), dtype=np.bool_)
    if objective.n_steps is not None:
        decided |= time >= objective.n_steps
    if isinstance(objective, Reach):
        decided |= objective.avoid[state] | _is_reached(objective, state, time)
    elif objective.target is not None:
        decided |= objective.target[state]
    is_lost = np.zeros(len(state), dtype=np.bool_) if out_of_table is None else state == out_of_table
    if isinstance(objective, Reach) or objective.target is not None:
        decided &= ~is_lost  # no set of states says anything of a state that the table does not have
    candidates = np.where(decided | is_lost, np.arange(len(state)), len(state))
    row = np.minimum(np.minimum.reduceat(candidates, runs.first[:-1]), runs.first[1:] - 1)
    is_decided = decided[row]
    return ReturnEnds(row, is_decided, ~is_decided & ~is_lost[row] & never_left(graph)[state[row]])


def reach_returns(objective: Reach, runs: WholeRuns, ends: ReturnEnds) -> Returns:
    """Return 1 for runs that reach the target, 0 for those that do not, and both for those of which it is not known."""
    state, time = runs.state[ends.row], runs.time[ends.row]
    # a run that stays in a target before the first step that counts will be there at that step
    is_won = _is_reached(objective, state, time) | (ends.stays & objective.target[state])
    is_complete = ends.is_decided | ends.stays
    lower, upper = (is_won & is_complete).astype(np.float64), (is_won | ~is_complete).astype(np.float64)
    return Returns(1 - upper, 1 - lower, is_complete) if objective.complement else Returns(lower, upper, is_complete)


def reward_returns(
    objective: Reward,
    runs: WholeRuns,
    ends: ReturnEnds,
    choice: Indices,
    graph: Graph,
    may_take: BoolArray,
    share: FloatArray | None = None,
) -> Returns:
    """Return bounds on the sums of rewards, given the choice of each row before the end of its run, and -1 elsewhere.

    Rows after the first one also count for those that are missing: of all of them, ``share`` is there. A term passes as
    many roundings as its power of the discount has factors, and a sum as many as it has terms.
    """
    reward, time, run = objective.terms(graph).reward, runs.time, runs.run
    counted = np.flatnonzero(choice >= 0)
    terms = reward[choice[counted]] * float(objective.discount or 1) ** time[counted]
    if share is not None:
        terms /= np.where(time[counted] > 0, np.maximum(share, _LEAST_SHARE)[run[counted]], 1.0)
    total, size = (np.bincount(run[counted], each, len(runs)) for each in (terms, np.abs(terms)))
    later = _weight_from(objective, time[ends.row])
    rest = [np.zeros(len(runs)), np.zeros(len(runs))]
    for side, (anywhere, there) in enumerate(_reward_ranges(objective, reward, graph, may_take)):
        each = np.where(ends.stays, there[runs.state[ends.row]], anywhere)
        rest[side] = np.where(ends.is_decided | (each == 0), 0.0, each * np.where(each == 0, 0.0, later))
    if objective.target is not None and objective.steps is None:
        rest[0][ends.stays] = rest[1][ends.stays] = np.inf  # the target is missed
    longest = np.maximum(time[ends.row], objective.steps or 0)
    off = [4 * UNIT * (longest + 4) * (size + np.abs(np.where(np.isinf(each), 0.0, each))) for each in rest]
    return Returns(total + rest[0] - off[0], total + rest[1] + off[1], ends.is_decided | ends.stays)


def range_of(objective: Objective, graph: Graph, may_take: BoolArray) -> tuple[float, float]:
    """Return numbers between which all returns lie, which may be infinite."""
    if not isinstance(objective, Reward):
        return 0.0, 1.0
    reward, all_steps = objective.terms(graph).reward, float(_weight_from(objective, np.zeros(1, dtype=np.int64))[0])
    (least, _), (most, _) = _reward_ranges(objective, reward, graph, may_take)
    bounds = (least * all_steps if least else 0.0), (most * all_steps if most else 0.0)
    off = 4 * UNIT * ((objective.steps or 0) + 4)
    return bounds[0] - off * abs(bounds[0]), bounds[1] + off * abs(bounds[1])


def _is_reached(objective: Reach, state: Indices, time: Indices) -> BoolArray:
    first, last = objective.steps or (0, None)
    is_late = False if last is None else time > last
    return np.asarray(objective.target[state] & (time >= first) & ~np.asarray(is_late))


def _weight_from(objective: Reward, time: Indices) -> FloatArray:
    """Return by what a reward of one in each step from a time on would be summed up."""
    discount, steps = objective.discount, objective.steps
    if steps is not None:
        powers = float(discount or 1) ** np.arange(steps)
        return np.append(np.cumsum(powers[::-1])[::-1], 0.0)[np.minimum(time, steps)]
    if discount is None:
        return np.full(len(time), np.inf)
    return np.asarray(float(discount) ** time * float(1 / (1 - discount)))


def _reward_ranges(
    objective: Reward, reward: FloatArray, graph: Graph, may_take: BoolArray
) -> list[tuple[float, FloatArray]]:
    """Return the smallest and then the largest reward of a step: of all that may be taken, and of each state."""
    taken, first, can_end = reward[may_take], graph.first_choice[:-1], objective.target is not None
    taken = np.append(taken, objective.reward.out_of_table or ())  # of states that a table does not have
    return [
        (min(taken.min(), 0.0) if can_end else float(taken.min()), np.minimum.reduceat(reward, first)),
        (max(taken.max(), 0.0) if can_end else float(taken.max()), np.maximum.reduceat(reward, first)),
    ]


def require_start(model: ParametricMDP, runs: WholeRuns) -> None:
    """Refuse runs that begin in another state than the initial one, whose value is certified."""
    begins, initial = runs.state[runs.first[:-1]], model.graph.initial_state
    if (begins != initial).any():
        row = int(runs.first[np.argmax(begins != initial)])
        start, expected = (model.graph.describe_state(int(each)) for each in (runs.state[row], initial))
        raise DataError(
            f"{runs.place(row)}: the run begins in ({start}), but the value is that of runs from ({expected})"
        )


def taken_somewhere(graph: Graph, policy: Policy, model: ParametricMDP) -> BoolArray:
    """Return which choices of the model the policy takes somewhere."""
    memory, taken = graph.memory, np.flatnonzero(policy_weights(graph, policy))
    may_take = np.zeros(model.graph.n_choices, dtype=np.bool_)
    may_take[taken if memory is None else memory.choice[taken]] = True
    return may_take


def choices_of(graph: Graph, policy: Policy, model: ParametricMDP, runs: WholeRuns, ends: ReturnEnds) -> Indices:
    """Return the model's choice in each row before the end of its run, and -1 elsewhere; refuse other actions."""
    memory, weights = graph.memory, policy_weights(graph, policy)
    counted = np.flatnonzero(np.arange(len(runs.state)) < ends.row[runs.run])
    place = runs.state[counted]
    if memory is not None:  # which is the number of steps, as long as the run is not decided
        steps = graph.states[memory.names[0]]
        index = RowIndex([memory.graph.n_states, int(steps.max()) + 1], [memory.state, steps])
        place = index.find([place, np.minimum(runs.time[counted], int(steps.max()))])
        if (place < 0).any():
            row = int(counted[np.argmax(place < 0)])
            where = model.graph.describe_state(int(runs.state[row]))
            raise DataError(f"{runs.place(row)}: the policy has no action for ({where}) after so many steps")
    taken = np.flatnonzero(weights)
    index = RowIndex([graph.n_states, len(graph.action_names)], [graph.state_of_choice()[taken], graph.action[taken]])
    if len(index.repeated):
        raise DataError(
            f"{graph.describe_choice(int(taken[index.repeated[0]]))}: the policy draws two actions so named"
        )
    rows = index.find([place, runs.action[counted]])
    if (rows < 0).any():
        raise _other_action(graph, weights, runs, int(counted[np.argmax(rows < 0)]), int(place[np.argmax(rows < 0)]))
    choice = np.full(len(runs.state), -1, dtype=np.int64)
    choice[counted] = taken[rows] if memory is None else memory.choice[taken[rows]]
    return choice


def _other_action(graph: Graph, weights: FloatArray, runs: WholeRuns, row: int, state: int) -> DataError:
    """Return the error for a step with another action than the policy's."""
    choices = np.arange(*graph.first_choice[state : state + 2])
    actions = " or ".join(repr(graph.action_names[graph.action[each]]) for each in choices[weights[choices] > 0])
    code = int(runs.action[row])
    did = repr(graph.action_names[code]) if code >= 0 else "none that the model has"
    return DataError(
        f"{runs.place(row)}: in state ({graph.describe_state(state)}) the action is {did}, but the policy's is "
        f"{actions}; this needs runs under the policy alone"
    )
