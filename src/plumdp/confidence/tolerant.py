"""Makes the confidence set of the parameters if every row may be off by a model tolerance in total variation.

Given the past, the successor at a choice has a distribution within that distance of the row of the model at one point
of its space, the same point for all choices. Three kinds of sets hold that point jointly, at all times:

* Half-spaces from bets (``bets``), moved outward. A visit of a row multiplies the wealth by H, a function of its
  outcome with expectation one at the point. If the row is off by the tolerance, the expectation is at most 1 +
  tolerance · R, where R is the range of H. So Σ ln(1 + tolerance · R) over all visits is added to the offset. (The
  likelihood is left out, as the ratios that it multiplies have no bound.)
* An interval for each event of the model, from the trials of all rows that try it.
* An interval for each event and each single choice that tries it, which shows a row that is off by more than others.

docs/proofs/model_tolerance.md has the proofs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import inf

import numpy as np

from plumdp.base.error_budget import ErrorBudget, Share, equal_parts
from plumdp.base.errors import DataError, Option
from plumdp.confidence.bets import Directions
from plumdp.confidence.binomial import tolerant_interval
from plumdp.confidence.bounds import ExpressionBounds, expression_bounds
from plumdp.confidence.estimates import estimate_inside, law_of_space
from plumdp.confidence.likelihood import (
    LinearConstraints,
    Range,
    decided_before,
    guarantee_of,
    place_bets,
)
from plumdp.confidence.likelihood_table import LikelihoodTable, likelihood_table
from plumdp.confidence.sets import OF_SET, TESTS, Evidence, graph_alone, require_error
from plumdp.confidence.space_moments import is_nonnegative
from plumdp.data.counts import CountArray, Pilot, TransitionCounts, require_same_graph
from plumdp.model.events import Events
from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, owners, read_only, sum_by
from plumdp.model.parametric import ParametricMDP

_ROUNDING = 1e-9  # relative, of products of factors along a way; more than the rounding of sums of their logarithms


def tolerant_bounds(
    model: ParametricMDP, counts: TransitionCounts, *, error: float = 0.001, budget: ErrorBudget | None = None
) -> ExpressionBounds:
    """Return the intervals of a tolerant set, to be widened by a model tolerance, which then hold for all expressions.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> exact = tolerant_bounds(study.model, counts)
    >>> bool((exact.widened(0.01).lower < exact.lower).any())
    True
    """
    budget = budget or tolerant_shares(has_bets=False, has_drifts=False)
    return replace(_intervals(model, counts, budget, error), error=error)


def require_tolerance(model_tolerance: float) -> float:
    """Return the model tolerance, or refuse one that is not a number from 0 to less than 1."""
    if not isinstance(model_tolerance, int | float | np.number) or not 0 <= model_tolerance < 1:
        raise DataError(
            Option("model_tolerance", model_tolerance),
            ": give a number from 0 to less than 1, such as 0.01 if no transition distribution is off by more than "
            "0.01 in total variation",
        )
    return float(model_tolerance)


def tolerant_budget(pilot: Pilot | None, *, has_directions: bool) -> ErrorBudget:
    """Return the division of the error if rows may be off, given what is known of the order of the data."""
    has_pilot = pilot is not None
    return tolerant_shares(has_bets=has_pilot and has_directions, has_drifts=has_pilot)


def tolerant_shares(*, has_bets: bool, has_drifts: bool) -> ErrorBudget:
    """Return the budget if rows may be off by a model_tolerance: no likelihood, and drifts cut the region.

    Intervals have what half-spaces leave, which must not depend on how the data ended. So an empty pilot, of data
    that might have had one, leaves them no more than any other pilot would.
    """
    half_spaces, single = Fraction(4, 5) if has_bets else Fraction(0), Fraction(1, 40)
    of_set = (
        Share("half_spaces", half_spaces, "half-spaces across the objectives"),
        Share("intervals", OF_SET - single - half_spaces, "intervals of probabilities"),
        Share("single_choices", single, "intervals of single choices"),
    )
    drifts = Share("drifts", TESTS / 2 if has_drifts else Fraction(0), "tests of drifts")
    return ErrorBudget(of_set, (drifts,), graph_alone())


def tolerant_set(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    error: float = 0.001,
    directions: Directions | None = None,
    budget: ErrorBudget | None = None,
) -> Evidence:
    """Return the points that explain the data if rows are off by at most a model tolerance, without a likelihood.

    Once the evidence is widened by the tolerance, the point of the space from which no row is further is one of them,
    at all times, with probability at least 1 - error. ``directions`` and ``budget`` are as in ``likelihood_set``.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.bets import Direction
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> directions = lambda point: [Direction(np.ones(1))]
    >>> tolerant_set(study.model, counts, directions=directions).widened(0.01).method
    'half-spaces across the gradient and intervals that allow for rows off by 0.01'
    """
    require_error(error)
    require_same_graph(model.graph, counts.graph)
    table, space = likelihood_table(model), law_of_space(model)
    best = estimate_inside(table, table.pool(counts.counts), prior=space)[0]
    budget = budget or tolerant_budget(counts.pilot, has_directions=directions is not None)
    of_bets = budget.error_in_set("half_spaces", error)
    staged = None
    if directions is not None:
        is_safe = safe_groups(model, table)[table.group]
        staged = place_bets(table, space, best, counts, directions, of_bets, is_safe)
    placed = [] if staged is None else staged.placed
    ends = [*counts.pilot.moments, counts.counts] if counts.pilot is not None else []
    visits = [model.graph.sum_by_choice((after - before).astype(np.float64)) for before, after in pairwise(ends)]
    ranges = tuple(
        tuple(
            Range(share, of_stage, range_of_bets(model.graph, table, factors))
            for of_stage, part in zip(visits, each.parts, strict=False)  # of the first stages
            for share, factors in zip(part.shares.tolist(), part.factors, strict=True)
        )
        for each in placed
    )
    half_spaces = [each.left for each in placed]
    last = () if staged is None else staged.directions
    return Evidence(
        "likelihood",
        "half-spaces across the gradient and intervals" if placed else "intervals",
        guarantee_of(counts),
        error,
        budget,
        (
            LinearConstraints.of(half_spaces, len(table.names), of_bets, bets=staged and staged.bets, ranges=ranges),
            _intervals(model, counts, budget, error),
        ),
        estimate=read_only(best),
        directions=last,
        rests_on=decided_before(counts.pilot, last),
    )


def safe_groups(model: ParametricMDP, table: LikelihoodTable) -> BoolArray:
    """Return the groups (n_groups) whose outcomes are nowhere negative, so that Z is between the extremes of bets.

    Rows of affine expressions are such groups. A node of a tree may have a negative outcome where the row never reaches
    the node. That does no harm if rows are exact, but a row that is off may reach it.
    """
    is_safe = np.ones(len(table.is_class), dtype=np.bool_)
    if not model.expressions.is_affine.all():
        may_be_negative = [not is_nonnegative(f, model.space) for f in table.outcomes]
        is_safe[table.group[may_be_negative]] = False
    return is_safe


def range_of_bets(graph: Graph, table: LikelihoodTable, factors: FloatArray) -> FloatArray:
    """Return the largest spread, at any point, of the gains H of the outcomes of each choice (n_choices), rounded up.

    On the way to an outcome, H is the product of e / Z over the classes that are visited, and each Z is between the
    least and the largest e of its class. If all outcomes of a choice visit one class first, its Z is one number for all
    of them, and only its least value matters.
    """
    n = len(table.is_class)
    lowest, highest = np.full(n, inf), np.full(n, -inf)
    gains = np.log(factors)
    np.minimum.at(lowest, table.group, gains)
    np.maximum.at(highest, table.group, gains)
    group = table.group[table.counts_for]
    gain = gains[table.counts_for] * table.multiple
    n_ways = np.diff(table.first)
    most, least = (
        _sums(gain - bound[group] * table.multiple, table.first) for bound in (lowest, highest)
    )  # logarithms of H, for each outcome of tied rows
    root = np.where(n_ways > 0, np.append(group, -1)[table.first[:-1]], -1)[table.tied]
    starts = graph.first_transition[:-1]
    is_common = (np.minimum.reduceat(root, starts) == np.maximum.reduceat(root, starts)) & (root[starts] >= 0)
    first = np.where(is_common, root[starts], 0)
    common = np.where(is_common, highest[first] - lowest[first], 0.0) if n else np.zeros(len(starts))
    top = np.maximum.reduceat(most[table.tied], starts)
    bottom = np.minimum.reduceat(least[table.tied], starts) + common
    ranges = np.exp(top) * (1 + _ROUNDING) - np.exp(bottom) * (1 - _ROUNDING)
    return np.where((top == 0) & (bottom == 0), 0.0, np.maximum(ranges, 0.0))


def _sums(values: FloatArray, first: IntArray) -> FloatArray:
    """Return the sums of values from ``first[i]`` to ``first[i + 1]``."""
    return np.asarray(np.bincount(owners(first), values, len(first) - 1))


def _intervals(model: ParametricMDP, counts: TransitionCounts, budget: ErrorBudget, error: float) -> ExpressionBounds:
    """Return intervals of events from all trials, cut to those from single choices, to be widened by a tolerance."""
    of_events, of_choices = budget.error_in_set("intervals", error), budget.error_in_set("single_choices", error)
    adaptive = replace(counts, sampling="adaptive", pilot=None)
    pooled = expression_bounds(model, adaptive, error=of_events)
    events, n = pooled.events, len(pooled.events)
    lower, upper = tolerant_interval(pooled.successes, pooled.trials, equal_parts(of_events, n))
    is_tried_elsewhere = (np.bincount(events.tried, minlength=n) > 1)[events.tried]
    event, share = events.tried[is_tried_elsewhere], equal_parts(of_choices, int(is_tried_elsewhere.sum()))
    trials, successes = (numbers[is_tried_elsewhere] for numbers in _by_choice(events, counts))
    low, high = tolerant_interval(successes, trials, share)
    np.maximum.at(lower, event, low)
    np.minimum.at(upper, event, high)
    return replace(pooled.moved_to(lower, upper), error=of_events + of_choices, method="intervals", is_tolerant=True)


def _by_choice(events: Events, counts: TransitionCounts) -> tuple[CountArray, CountArray]:
    """Return trials and successes of each event at each single choice that tries it, in the order of ``tried``."""
    n, choice = len(events), events.choice_of_trial().astype(np.int64)
    happens = np.flatnonzero(events.success >= 0)
    transition = np.concatenate([happens, events.factors.transition])
    event = np.concatenate([events.success[happens], events.factors.event])
    keys = choice * n + events.tried
    order = np.argsort(keys)
    key = counts.graph.choice_of_transition()[transition].astype(np.int64) * n + event
    trial = order[np.searchsorted(keys, key, sorter=order)]
    return counts.visits[choice], sum_by(trial, counts.counts[transition], len(keys))
