"""The processes of the tests of a model at the true point, calculated from their definitions for all repetitions.

Drift: bets that the package's plans place on each transition, by the cell of its choice. Cells: for each row, or class
of tied rows, ln Π over classes of Γ(n/2) / Γ(n/2 + N) · Π Γ(½ + K) / Γ(½) - Σ K ln f(θ), by gamma functions on arrays.
"""

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np
from fit_game import SIDES, Game, Linear, Played, gains_of_outcomes, of_transitions, value_bets
from scipy.sparse import csr_array
from scipy.special import gammaln

from plumdp.confidence.constants import find_fixed_numbers, strongest_evidence
from plumdp.confidence.estimates import SPACE_AS_DATA, estimate, law_of_pilot
from plumdp.confidence.evidence import log_evidence
from plumdp.fit.drift import PilotView, _plans


def pilot_view(game: Game, pilot: np.ndarray) -> PilotView:
    """Return what a pilot has fixed."""
    space = game.law_of_space
    law = law_of_pilot(game.table, game.table.pool(pilot), space)
    return PilotView(game.table, pilot, law.mean, game.sizes.ratio, SPACE_AS_DATA * space.precision)


def plans_of(game: Game, view: PilotView, contrasts) -> list:
    """Return the drifts that a pilot can tell, as ``drift_tests`` plans them."""
    seen = game.table.pool_by_choice(view.counts)
    return [plan for contrast in contrasts for plan in _plans(view, seen, contrast)]


def drift_bets(game: Game, pilot: np.ndarray, *, error: float, divided: bool = True, view=None) -> Linear:
    """Return the processes of all drift tests that the pilot can tell, at an error for all of them together.

    If the error is not divided, every test has all of it, which is a mutant.
    """
    view = pilot_view(game, pilot) if view is None else view
    plans = plans_of(game, view, game.contrasts)
    weight = 1 / max(2 * len(plans), 1) if divided else 1.0
    found, names = [], []
    for plan in plans:
        for side in SIDES:
            scale = side * sqrt(-2 * log(weight * error)) / plan.spread
            found.append(gains_of_plan(game, plan, scale))
            names.append(f"{plan.contrast.name}: {plan.parameter} {side:+d}")
    return Linear(np.array(found).reshape(-1, game.graph.n_transitions), np.full(len(found), log(weight)), tuple(names))


def gains_of_plan(game: Game, plan, scale: float) -> np.ndarray:
    """Return what the bets of a plan gain at the true point (T): in each cell they are other bets on the outcomes."""
    cell = plan.contrast.cell[game.graph.choice_of_transition()]
    found = np.zeros(len(cell))
    for i, level in enumerate(plan.contrast.levels.tolist()):
        factors = np.exp((scale * (level * plan.slope - plan.rest)).clip(-0.5, 0.5))
        found = np.where(cell == i, of_transitions(game, gains_of_outcomes(game, factors)), found)
    return found


def together(*parts: Linear, weights: tuple[float, ...]) -> Linear:
    """Return several linear processes as one, each kind with a share of the error."""
    shares = [part.log_weights + log(weight) for part, weight in zip(parts, weights, strict=True)]
    names = tuple(name for part in parts for name in part.names)
    kind = np.repeat(np.arange(len(parts)), [len(part.gains) for part in parts])
    return Linear(np.vstack([part.gains for part in parts]), np.concatenate(shares), names, kind)


@dataclass(frozen=True, eq=False)
class Cells:
    """How counts of transitions make those of outcomes in cells, such as the rows of choices."""

    items: csr_array  # (T, n): how often a transition counts for an outcome in a cell
    pairs: csr_array  # (n, m): to which class in a cell it belongs
    cells: csr_array  # (m, n_cells)
    n_outcomes: np.ndarray  # (m)
    log_chance: np.ndarray  # (n): at the true point


def cells_of(game: Game, kind: str) -> Cells:
    """Return the cells of tests of single rows ("row"), or of classes of tied rows ("class")."""
    table, graph = game.table, game.graph
    n_outcomes, n_groups = len(table.outcomes), len(table.is_class)
    length = np.diff(table.first)[table.tied]
    transition = np.repeat(np.arange(graph.n_transitions), length)
    way = np.concatenate([np.arange(table.first[t], table.first[t + 1]) for t in table.tied]).astype(int)
    outcome = table.counts_for[way]
    used = table.is_class[table.group[outcome]]
    transition, outcome, multiple = transition[used], outcome[used], table.multiple[way][used]
    cell = graph.choice_of_transition()[transition] if kind == "row" else table.group[outcome]
    item, of_item = np.unique(cell.astype(np.int64) * n_outcomes + outcome, return_inverse=True)
    item_cell, item_outcome = item // n_outcomes, item % n_outcomes
    pair, of_pair = np.unique(item_cell * n_groups + table.group[item_outcome], return_inverse=True)
    cells, of_cell = np.unique(pair // n_groups, return_inverse=True)
    chance = table.constants + table.coefficients @ game.truth
    return Cells(
        csr_array((multiple, (transition, of_item)), shape=(graph.n_transitions, len(item))),
        csr_array((np.ones(len(item)), (np.arange(len(item)), of_pair)), shape=(len(item), len(pair))),
        csr_array((np.ones(len(pair)), (np.arange(len(pair)), of_cell)), shape=(len(pair), len(cells))),
        np.bincount(table.group)[pair % n_groups],
        np.log(chance[item_outcome]),
    )


def cell_processes(cells: Cells, seen: np.ndarray, *, is_mixed: bool = True) -> np.ndarray:
    """Return the logarithm of the wealth of each cell (rows, n_cells), given counts of transitions (rows, T).

    If it is not mixed, the largest likelihood stands in place of the Dirichlet law's mean, which is a mutant.
    """
    counts = seen @ cells.items
    visits, weight = counts @ cells.pairs, cells.n_outcomes / 2
    if is_mixed:
        gained = gammaln(0.5 + counts) - gammaln(0.5)
        rest = (gammaln(weight) - gammaln(weight + visits)) @ cells.cells
    else:
        gained = counts * np.log(np.maximum(counts, 1))
        rest = -(visits * np.log(np.maximum(visits, 1))) @ cells.cells
    return (gained - counts * cells.log_chance) @ cells.pairs @ cells.cells + rest


def largest_cell(cells: Cells, played: Played, *, is_mixed: bool = True, weight: float | None = None) -> np.ndarray:
    """Return the largest process of any cell plus the logarithm of its weight (repetitions, batches), pilot included.

    Each cell has the same weight unless one is given.
    """
    n = cells.cells.shape[1]
    weight = 1 / n if weight is None else weight
    found = []
    for pilot, batches in zip(played.pilots, played.batches, strict=True):
        until = pilot + np.cumsum(batches, axis=0, dtype=np.float64)
        found.append(cell_processes(cells, until, is_mixed=is_mixed).max(axis=1) + log(weight))
    return np.array(found)


# All tests, with the shares that the package gives them

HALF_SPACES, LIKELIHOOD, DRIFT, ROWS, CLASSES, NUMBERS = 0.8, 0.1, 0.0125, 0.00625, 0.00625, 0.025


def package_bets(game: Game, pilot: np.ndarray, *, error: float) -> Linear:
    """Return all linear processes of ``fit_model`` at an error, across values and for drifts.

    Their weights are those of an adversary who takes both kinds for equally important: half of the error for each.
    """
    parts = value_bets(game, pilot, error=HALF_SPACES * error), drift_bets(game, pilot, error=DRIFT * error)
    return together(*parts, weights=(0.5, 0.5))


@dataclass(frozen=True, eq=False)
class Largest:
    """The largest processes plus ln weight (repetitions, batches) of each kind, if it has the whole error."""

    values: np.ndarray
    drifts: np.ndarray
    rows: np.ndarray
    classes: np.ndarray

    @property
    def together(self) -> np.ndarray:
        """All of them with the shares of the package."""
        shares = (self.values, HALF_SPACES), (self.drifts, DRIFT), (self.rows, ROWS), (self.classes, CLASSES)
        return np.max([found + log(share) for found, share in shares], axis=0)


def largest_by_kind(game: Game, played: Played) -> Largest:
    """Return the largest processes of each kind, given bets of ``package_bets``."""
    bets = np.full((2, *played.batches.shape[:2]), -np.inf)
    for r, own in enumerate(played.linear):
        processes = played.processes(r) + log(2)
        for kind in (0, 1):
            bets[kind, r] = processes[:, own.kind == kind].max(axis=1, initial=-np.inf)
    cells = (largest_cell(cells_of(game, kind), played) for kind in ("row", "class"))
    return Largest(*bets, *cells)


def largest_of_rest(game: Game, pilot: np.ndarray, main: np.ndarray, *, error: float, least: float = -np.inf) -> float:
    """Return the larger of likelihood and fixed numbers plus ln weight at one moment.

    The mean of a likelihood is at most its maximum. Where that says that the first is less than ``least``, it is left
    out.
    """
    table, counts = game.table, game.counts(pilot, main)
    seen = table.pool(counts.main)
    chances = table.constants + table.coefficients @ game.truth
    at_truth = seen @ np.log(np.where(seen > 0, chances, 1.0))
    fixed = find_fixed_numbers(game.case.model)
    numbers = strongest_evidence(fixed, counts, error=NUMBERS * error) - log(error)
    best = table.values(estimate(replace(table, middle=game.truth), seen))[0]
    most = seen @ np.log(np.where((seen > 0) & (best > 0), best, 1.0)) - at_truth + log(LIKELIHOOD)
    if most < least - 0.1:  # the estimate is as good as that
        return numbers
    law = law_of_pilot(table, table.pool(pilot), game.law_of_space)
    return max(log_evidence(table, seen, *law) - at_truth + log(LIKELIHOOD), numbers)
