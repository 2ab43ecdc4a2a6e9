"""Lists all kinds of confidence sets in the table ``SETS``: functions from what was counted to evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from plumdp.base.vocabulary import Sets as Sets
from plumdp.confidence.bounds import expression_bounds
from plumdp.confidence.least_squares import least_squares
from plumdp.confidence.likelihood import likelihood_budget, likelihood_set
from plumdp.confidence.multinomial import row_bounds
from plumdp.confidence.sets import Counted, Evidence, whole_set
from plumdp.confidence.tolerant import tolerant_bounds, tolerant_budget, tolerant_set, tolerant_shares
from plumdp.model.parametric import ParametricMDP
from plumdp.model.views import as_parametric, as_table
from plumdp.tables.table_set import table_evidence

ConfidenceMethod: TypeAlias = Callable[[Counted], Evidence]

TABLE: Sets = "table"
PLACED: tuple[Sets, ...] = ("likelihood", TABLE)  # kinds with bets, which a pilot places on what is announced


def view_of(model: ParametricMDP, kind: Sets) -> ParametricMDP:
    """Return a model as a kind of set sees it, as a table or with parameters in place of unknown rows."""
    return as_table(model) if kind == TABLE else as_parametric(model)


def interval_evidence(given: Counted) -> Evidence:
    """Return evidence of intervals of the events of a model, made for rows that vary if there is a misfit."""
    if given.misfit:
        budget = given.divided(tolerant_shares(has_bets=False, has_drifts=False))
        error = budget.error_of_set(given.error)
        return Evidence.of("interval", tolerant_bounds(given.model, given.counts, error=error), budget)
    budget = given.divided(whole_set())
    error = budget.error_of_set(given.error)
    found = expression_bounds(given.model, given.counts, error=error, events=given.events)
    return Evidence.of("interval", found, budget)


def l1_evidence(given: Counted) -> Evidence:
    """Return evidence of L1 balls of the rows of a model."""
    budget = given.divided(whole_set())
    return Evidence.of("l1", row_bounds(given.model, given.counts, error=budget.error_of_set(given.error)), budget)


def ellipsoid_evidence(given: Counted) -> Evidence:
    """Return evidence of an ellipsoid about the least-squares estimate."""
    budget = given.divided(whole_set())
    found = least_squares(given.model, given.counts, error=budget.error_of_set(given.error))
    return Evidence.of("ellipsoid", found, budget)


def likelihood_evidence(given: Counted) -> Evidence:
    """Return evidence of the likelihood, bets and intervals, and with a misfit bets and intervals alone."""
    counts, is_asked = given.counts, given.directions is not None
    if given.misfit:
        budget = given.divided(tolerant_budget(counts.pilot, has_directions=is_asked))
        error = budget.error_of_set(given.error)
        return tolerant_set(given.model, counts, error=error, directions=given.directions, budget=budget)
    shares = likelihood_budget(given.cache, counts.pilot, has_directions=is_asked, has_time=counts.time is not None)
    budget = given.divided(shares)
    return likelihood_set(
        given.model,
        counts,
        error=budget.error_of_set(given.error),
        directions=given.directions,
        cache=given.cache,
        budget=budget,
    )


SETS: Mapping[Sets, ConfidenceMethod] = {
    "interval": interval_evidence,
    "l1": l1_evidence,
    "ellipsoid": ellipsoid_evidence,
    "likelihood": likelihood_evidence,
    TABLE: table_evidence,
}
"""The kinds of confidence sets by their names (Sections 2.3, 2.4, 3 and 3.4 of the paper)."""
