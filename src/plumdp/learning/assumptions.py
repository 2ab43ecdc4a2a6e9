"""Says in words what everything that follows from data rests on. No other module does, so that all claims say the same.

Each assumption is there if the proof needs it, given the model, the data and the options, and only then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from plumdp.base.vocabulary import Assumption, Group, Guarantee, NoContexts
from plumdp.confidence.likelihood import guarantee_of
from plumdp.data.censoring import told
from plumdp.data.counts import Sampling, TransitionCounts
from plumdp.data.pilots import IN_ORDER_OF_RUNS
from plumdp.data.run_record import WholeRuns
from plumdp.model.objectives import Objective, Reward
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import listing, number_of
from plumdp.model.unmodelled_exits import out_of_table_of
from plumdp.result.rungs import Ground

if TYPE_CHECKING:
    from plumdp.data.returns import Outcomes

_COMPLETE_MODEL = "no transition is missing"
_MARKOV = Assumption(
    "where a step leads depends only on the state and the action, both in the data and when the policy is used",
    Group.MODEL,
    "only state and action matter",
)
_NO_CONTEXTS: dict[NoContexts, str] = {
    "order": "the order of steps within runs is not known",
    "ties": "several rows of a run have one step",
    "unplaced": "rows do not say their run and step",
    "observations": "rows are observations with gaps between them",
    "independent": "samples were drawn for each state and action, not in runs",
    "size": "the model is too large to count what came before",
    "parts": "some of the data that were added do not tell what came before",
    "pilot": "data were added whose first part is not known by what came before",
    "file": "the file of the counts is older than this test",
}
_STRUCTURE = Assumption(
    f"the model has every transition that can happen, and {_MARKOV}",
    Group.MODEL,
    f"{_COMPLETE_MODEL}; only state and action matter",
)
_CORRECT = Assumption(
    "the model is correct for some values of its parameters",
    Group.MODEL,
    "some parameters are right",
)
_TIED = Assumption(
    "rows with the same name have the same probabilities, and the numbers you gave are correct",
    Group.MODEL,
    "shared distributions and given numbers are right",
)
_TIED_BY_EXPRESSIONS = Assumption(
    "rows with the same expressions or the same name have the same probabilities, the numbers you gave are correct, "
    "and the parameters lie in their space",
    Group.MODEL,
    "shared distributions, given numbers and limits are right",
)
_MEANS = Assumption(
    "the mean reward of a step depends only on its state and action, not on where it leads or what came before",
    Group.MODEL,
    "mean rewards depend on state and action alone",
)
_CHOSEN = Assumption(
    "the model (with parameters, ties and bins), the confidence and all other options were chosen before looking at "
    "these data",
    Group.PLAN,
    "model, options",
)
_UNCONFOUNDED = "actions were chosen without knowing more about {} than the state tells (no unmeasured confounding)"
_COMPLETE = "no step is missing because of its outcome{}"
_READABLE = "whether a row of the log is readable does not depend on the outcome of a step{}"
_NOTHING_MISSING = "nothing is missing because of its outcome"
_ONCE = Assumption(
    "no step is in the data twice, for instance in two overlapping files or under another run's name",
    Group.DATA,
    "no duplicates",
)
_PLANNED = Assumption(
    "you fixed the amount of data before looking at any; you may stop adding data whenever you like",
    Group.PLAN,
    "amount of data",
)
_RUNS = Assumption(
    "the runs were made after the policy was fixed; each is there once, and none is missing because of how it went",
    Group.DATA,
    f"no duplicates; {_NOTHING_MISSING}",
)
_ALIKE = Assumption(
    "runs are alike: what a run has to do comes by one law, and nothing changed from the first run to the last",
    Group.DATA,
    "runs are alike",
)
_SAMPLED: dict[Sampling, str] = {
    "independent": Assumption(
        "you fixed the number of samples of each state and action before looking at any",
        Group.PLAN,
        "number of samples",
    ),
    "trajectories": Assumption(
        "runs are independent and follow one policy, and you fixed their number before looking at any",
        Group.PLAN,
        "number of runs, which are independent and under one policy",
    ),
    "adaptive": Assumption(
        "what was sampled and when you stopped did not depend on the data (assumed; sampling= says how it was)",
        Group.PLAN,
        "what is sampled and when to stop",
    ),
}
_PLANNED_LOOKS = Assumption(
    "how many steps pass until the next observation, and what is done meanwhile, was decided by what observations had "
    "shown before, not by what happened since: one that was made early, or a death that was reported before the next "
    "observation, is in the data with the gap that was planned",
    brief="earlier observations alone decided when the next one is, and what is done meanwhile",
)
_NO_LOOK_MISSING = (
    "no observation is missing because of what it would have shown: no unit was lost because of where it was, and "
)
_PENDING_OBSERVATIONS = (
    "at the end of the data all observations that were still to come are left out, whatever is known of them"
)
_PARTIAL_LOOKS = (
    "at the end of the data all observations that were still to come are partial ones on a day that was fixed before, "
    "whether a unit has ended or not, or all are left out"
)
_BETWEEN = "between two observations each step takes the action of the first one wherever a state has several"
_UNITS = Assumption(
    "units (the runs of the log) move independently of each other",
    Group.DATA,
    "units move independently of each other",
)
_BY_UNIT = Assumption(
    "when a unit is looked at next was decided by what was seen of that unit, not of others",
    brief="what was seen of a unit decided when it is looked at next",
)


def assumptions_of_model(
    model: ParametricMDP, *, model_tolerance: float, is_contradicted: bool, about_rewards: bool
) -> tuple[str, ...]:
    """Return the assumptions of bounds about the model, in words, which tests of the model look at."""
    structure = _STRUCTURE if out_of_table_of(model) is None else _MARKOV
    rewards = _of_steps_out_of_table(model) if about_rewards else ()
    return (structure,) if is_contradicted else (structure, _of_rows(model, model_tolerance), *rewards)


def about_memory(counts: TransitionCounts) -> str:
    """Return whether the test of the model looks at what came before in runs, or why not, in words."""
    if counts.no_contexts is not None:
        return f"not tested: {_NO_CONTEXTS[counts.no_contexts]}"
    return "tested by what came before in each run"


def with_memory(assumptions: Sequence[str], counts: TransitionCounts, hidden: float | None) -> tuple[str, ...]:
    """Return assumptions whose first one is that of Markov, with what is known of it.

    ``hidden`` is by how much the answer might be moved by memory that hardly shows yet: an estimate, or None.
    """
    if not assumptions or not counts.total:
        return tuple(assumptions)
    about = "" if counts.contexts else about_memory(counts)
    if hidden is not None:
        about = (
            f"tested, but memory that moves the answer by less than about {hidden:.2g} would hardly show: an estimate"
        )
    return (Assumption.of(assumptions[0]).noting(about), *assumptions[1:])


def assumptions_of_data(
    model: ParametricMDP, counts: TransitionCounts, guarantee: Guarantee, rests_on: Sequence[str]
) -> tuple[str, ...]:
    """Return the assumptions of bounds and tests about the data, in words.

    ``rests_on`` is what the confidence set says itself. There are none if rows show what the graph says cannot happen,
    as nothing but that is claimed then.
    """
    if counts.report is not None and counts.report.contradicting:
        return ()
    if rests_on and guarantee == Guarantee.ANYTIME:  # a test of the model may need more than the set
        guarantee = guarantee_of(counts)
    rewards = _of_rewards(model) if len(counts.rewards) else ()
    observations = _of_observations(model, counts) if model.counted.gaps is not None else ()
    return (_CHOSEN, *_of_sampling(counts, guarantee), *rests_on, *rewards, *observations, *_of_rows_in(model, counts))


_TOGETHER = Assumption(
    "every run began with its first row, all of them in one period, so that nothing that came of them decided how many "
    "there are; nor did it decide by which names they are sorted, or when the log ends",
    Group.PLAN,
    "amount of data",
)

_TORN = (
    "which rows of runs are missing has nothing to do with what happened in them, and each row after the first is as "
    "likely to be missing as any other"
)


def assumptions_of_runs(runs: WholeRuns, outcomes: Outcomes, objective: Objective, ground: Ground) -> Iterator[str]:
    """Yield what bounds on means of whole runs rest on, in words, beside what was said of their policy or arms."""
    yield from (_RUNS, _ALIKE, *runs.rests_on)
    if runs.expected is not None:
        expected = f"you pre-specified {runs.expected:,.10g} runs before there were any; {IN_ORDER_OF_RUNS}"
        yield Assumption(expected, Group.PLAN, "number and order of runs")
    if runs.has_fixed_number:
        yield _TOGETHER
    if runs.missing is not None:
        torn = number_of(int((runs.missing[runs.first[1:] - 1] > 0).sum()), "run")
        yield Assumption(f"{_TORN} ({torn}, whose other rows count for those that are missing)", brief=_NOTHING_MISSING)
    begins = runs.label[runs.first[:-1]]
    is_late = ~np.isin(begins, (0, 1)) if begins.dtype.kind in "iuf" and not runs.only_ordered else np.zeros(0, bool)
    if is_late.any() and not runs.has_fixed_number:
        late = f"{number_of(int(is_late.sum()), 'run')}, whose first row is not step 0 or 1"
        yield f"no step is missing at the start of {late} (but {begins[np.argmax(is_late)]:g}, for one)"
    if outcomes.cap is not None:
        ends = f"above {outcomes.cap:,.10g}", f" or below {-outcomes.cap:,.10g}" * (outcomes.within[0] == -outcomes.cap)
        beyond = "" if ends[1] else "; without this limit, values by whole runs can only be larger"
        text = f"a run whose total is {''.join(ends)} counts as this amount, a limit fixed before these runs{beyond}"
        yield Assumption(text, Group.PLAN, "cap")
    elif isinstance(objective, Reward):
        low, high = (f"{each:,.10g}" for each in outcomes.within)
        yield Assumption(f"every return lies between {low} and {high}", brief=f"returns are {low} to {high}")
    if runs.only_ordered:
        yield "the rows of each run follow one another in the order of their steps, and none is missing"
    text = "a run stays in a state that the model says cannot be left"
    yield Assumption(text, Group.MODEL, _COMPLETE_MODEL)
    n = int((~outcomes.is_complete).sum())
    if ground == Ground.LIFE_TABLE:
        cut = number_of(n, "run")
        text = f"when runs are censored has nothing to do with anything that happens in them (as you stated, of {cut})"
        yield Assumption(text, brief="censoring has nothing to do with what happens in runs")
    elif n:
        early = f"{number_of(n, 'run')} ended too early and may have had any return that is still possible"
        yield Assumption(early, brief="")  # which the bounds allow for


def _of_rows(model: ParametricMDP, model_tolerance: float) -> str:
    if not model.is_table:
        off = f", up to {model_tolerance:g} for each state and action (in total variation)" if model_tolerance else ""
        return Assumption(f"{_CORRECT}{off}", Group.MODEL, f"{_CORRECT.brief}{off}")
    return _TIED if model.source is None else _TIED_BY_EXPRESSIONS


def _of_steps_out_of_table(model: ParametricMDP) -> Iterator[str]:
    """Yield what was said of rewards where a table knows nothing."""
    for name, reward in model.rewards.items() if out_of_table_of(model) is not None else ():
        if reward.out_of_table is not None:
            least, most = reward.out_of_table
            between = f"lies between {least:,g} and {most:,g}" if most < inf else f"is at least {least:,g}"
            text = f'the reward "{name}" of a step in a state that the table does not have {between}'
            yield Assumption(text, Group.MODEL)


def _of_sampling(counts: TransitionCounts, guarantee: Guarantee) -> Iterator[str]:
    """Yield how the data came about, as far as the confidence set needs it: not if they may have ended at any time."""
    if guarantee != Guarantee.ANYTIME:
        yield _PLANNED if guarantee == Guarantee.PLANNED else _SAMPLED[counts.sampling]


def _of_rewards(model: ParametricMDP) -> Iterator[str]:
    """Yield what bets on means of rewards need: these, and the range that every value lies in."""
    yield _MEANS
    for name, learned in model.learned_rewards.items():
        ends = dict.fromkeys((low, low + span) for low, span in zip(learned.low, learned.span, strict=True))
        ranges = listing([f"[{float(low):g}, {float(high):g}]" for low, high in ends])
        own = "its range, one of " if len(ends) > 1 else ""
        yield Assumption(f"every value of {name} lies in {own}{ranges}, also those that were not seen", Group.MODEL)


def _of_rows_in(model: ParametricMDP, counts: TransitionCounts) -> Iterator[str]:
    """Yield the assumptions about the data; plumdp needs fewer if it simulated them."""
    report = counts.report
    n_censored, n_copies = (0, 0) if report is None else (report.rows["censored"], report.rows["copy"])
    n_runs = 0 if report is None else report.n_runs
    ends = f"{n_censored:,} of {n_runs:,} runs end before the outcome of their last action"
    is_said = report is not None and report.censoring is not None
    has_rewards = bool(len(counts.rewards))
    if not all(part.is_simulated for part in counts.parts):
        yield _ONCE
        if not model.graph.is_chain and model.gaps is None:  # what observations rest on says this, too
            of = "the outcome of a step or its reward" if has_rewards else "the outcome of a step"
            yield Assumption(_UNCONFOUNDED.format(of), brief="no unmeasured confounding")
        complete = Assumption(_COMPLETE.format(" or its reward" if has_rewards else ""), brief=_NOTHING_MISSING)
        notable = () if report is None else report.censored_runs.notable()
        cut = told(notable) if notable else ""
        known = "; ".join(filter(None, [ends * bool(n_censored and not is_said), cut]))
        yield Assumption(complete.noting(known), brief=Assumption(complete.brief).noting(cut), kind=complete)
    if is_said:
        text = f"that {ends} has nothing to do with that outcome (assumed; censoring= says so)"
        kind = "why runs end has nothing to do with the outcome that is missing then (assumed; censoring= says so)"
        yield Assumption(text, brief="no run ended because of it", kind=kind)
    if n_copies:
        copies = "rows of the log with the same run, step and values are copies of one row"
        yield Assumption(f"{copies} ({_left_out(n_copies)})", brief="equal rows are copies", kind=copies)
    yield from () if report is None else report.assuming
    if report is not None and report.unreadable:
        readable = Assumption(_READABLE.format(" or its reward" if has_rewards else ""), brief=_NOTHING_MISSING)
        yield readable.noting(_left_out(report.unreadable))


def _left_out(n: int) -> str:
    return f"{number_of(n, 'row')} {'was' if n == 1 else 'were'} left out"


def _of_observations(model: ParametricMDP, counts: TransitionCounts) -> Iterator[str]:
    """Yield what counts of observations rest on, in words: all their classes are fixed before their outcomes are seen.

    A look is a step of a martingale if its gap was fixed given the past, of which it is part when it happens. If runs
    are said to be in order, observations are taken run by run, so that no gap may depend on runs that come later.
    """
    gaps = model.counted.gaps
    assert gaps is not None
    n = np.bincount(np.abs(gaps), counts.visits)
    seen = listing(
        [f"{100 * n[gap] / n.sum():.3g} % after {number_of(gap, 'step')}" for gap in np.flatnonzero(n).tolist()]
    )
    yield _PLANNED_LOOKS.noting(seen)
    text = _NO_LOOK_MISSING + (_PARTIAL_LOOKS if model.counted.ends else _PENDING_OBSERVATIONS)
    yield Assumption(
        text, brief="no observation is missing because of what it would have shown, those to come included"
    )
    yield from () if int((gaps == 1).sum()) == model.counted.graph.n_states else (_BETWEEN,)
    yield _UNITS
    yield from (_BY_UNIT,) if counts.pilot is not None else ()
