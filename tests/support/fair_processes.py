"""Every process that data are bet on with, and the expectation of what one visit does to it at the truth, in fractions.

A case is a model of random rows, with ties, equal outcomes, trees of coins, factors and constants, a true point, and
what a pilot has seen. A process yields expectations of one visit's factor at each choice; if it is fair, none is above
one. Counts come from the package's own pooling of a single visit, so that what is bet on is what is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from math import log, prod

import numpy as np
from cell_models import cell_model

import plumdp as pl
from plumdp.confidence import constants, observations, run_bets, tolerant
from plumdp.confidence.cells import LENGTHS, Cells, Partition
from plumdp.confidence.estimates import SPACE_AS_DATA, law_of_pilot, law_of_space
from plumdp.confidence.likelihood_table import CellCounts
from plumdp.confidence.path_evidence import PathEvidence
from plumdp.confidence.reward_coins import Pooled
from plumdp.confidence.sets import ModelCache
from plumdp.confidence.staged_bets import find_horizons, find_stages, staged_half_spaces
from plumdp.data.contexts import Context, ContextKind
from plumdp.data.counts import Pilot
from plumdp.data.seen import Seen
from plumdp.fit import context_tests
from plumdp.fit import model_fit as fit
from plumdp.fit.cell_tests import cell_tests
from plumdp.fit.context_tests import directed_bets, memory_tests
from plumdp.fit.drift import PilotView, drift_tests
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.parametric import ParametricMDP

NAMES = ("p", "q")
HALF = Fraction(1, 2)
ROWS_PER_CASE = 6  # three cells with two rows each
_MISFITS = (0.01, 0.2)


# Rows


def random_row(rng, variables):
    """Return a row: outcomes are split at random, by coins, by fixed shares and into equal parts, in random order."""
    if rng.random() < 0.1:
        return list(rng.permutation(np.array(_without_tree(rng, variables), dtype=object)))
    row = [Polynomial(1)]
    for _ in range(int(rng.integers(1, 4))):
        f = row.pop(int(rng.integers(len(row))))
        row += [f * part for part in _parts(rng, variables)]
    row = row if any(not f.is_constant for f in row) else [f * g for f in row for g in _coin(rng, variables)]
    return [row[i] for i in rng.permutation(len(row))]


def _parts(rng, variables):
    kind = rng.integers(4)
    if kind == 0:  # 1/2, 1/4, 1/8, 1/8: sums of equal ones meet equal ones
        n = int(rng.integers(1, 5))
        return [Polynomial(HALF**i) for i in (*range(1, n + 1), n)]
    if kind == 1:
        share = Fraction(1, int(rng.integers(2, 5)))
        return [Polynomial(share), Polynomial(1 - share)]
    return _coin(rng, variables)


def _coin(rng, variables):
    x = variables[int(rng.integers(len(variables)))]
    f = x if rng.random() < 0.6 else (x + int(rng.integers(2))) / 2
    return [f, 1 - f]


def _without_tree(rng, variables):
    a, b = (variables[int(rng.integers(len(variables)))] for _ in range(2))
    rows = [a**2, 2 * a * (1 - a), (1 - a) ** 2], [a * b, 1 - a * b], [a * (1 - b), b * (1 - a), 1 - a - b + 2 * a * b]
    return rows[int(rng.integers(3))]


# Cases


@dataclass(frozen=True, eq=False)
class Case:
    """A model, the truth, and what the pilot has seen."""

    model: ParametricMDP
    truth: dict[str, Fraction]
    pilot: np.ndarray  # (n_transitions)
    rng: np.random.Generator

    @cached_property
    def cache(self):
        return ModelCache(self.model)

    @property
    def table(self):
        return self.cache.table

    @cached_property
    def chance(self) -> list[Fraction]:
        """The probability of each transition."""
        return self.at(self.truth, [self.model.expressions.polynomials[f] for f in self.model.expression.tolist()])

    @cached_property
    def outcome_chance(self) -> list[Fraction]:
        """The probability of each outcome of the table."""
        return self.at(self.truth, self.table.outcomes)

    @staticmethod
    def at(point, polynomials) -> list[Fraction]:
        return [f.evaluate({name: point[name] for name in f.names}) for f in polynomials]

    @cached_property
    def rows(self) -> list[tuple[int, range]]:
        """The choices that have something to draw, and their transitions."""
        first = pairwise(self.model.graph.first_transition.tolist())
        return [(choice, range(a, b)) for choice, (a, b) in enumerate(first) if b - a > 1]

    @cached_property
    def visit(self) -> list[dict[int, int]]:
        """For each transition, how often each outcome of the table is counted if it is seen once."""
        return self.visit_in(self.table)

    def visit_in(self, table) -> list[dict[int, int]]:
        pooled = (table.pool(self.once(t)) for t in range(self.model.graph.n_transitions))
        return [{j: int(seen[j]) for j in np.flatnonzero(seen).tolist()} for seen in pooled]

    def once(self, *transitions) -> np.ndarray:
        """Return counts in which each of the transitions was seen as often as it is given."""
        return np.bincount(transitions, minlength=self.model.graph.n_transitions).astype(np.int64)

    def counts(self, *transitions) -> pl.TransitionCounts:
        return pl.TransitionCounts(self.model.graph, self.once(*transitions), "adaptive")

    def expectation(self, row: range, gain) -> Fraction:
        """Return the mean of what a visit gains, given a function of the transition."""
        return sum((self.chance[t] * gain(t) for t in row if self.chance[t]), Fraction(0))

    def fairness(self, ratio: list[Fraction]) -> Iterator[Fraction]:
        """Yield the mean of a visit's product of ratios, one for each outcome of the table, at each choice."""
        for _, row in self.rows:
            yield self.expectation(row, lambda t: prod((ratio[j] ** m for j, m in self.visit[t].items()), start=1))

    def of_bets(self, factors: np.ndarray, table=None, chances=None) -> list[Fraction]:
        """Return what outcomes gain: e / Z with Z of their class at the truth; one where nothing is bet."""
        table, exact = table or self.table, [Fraction(x) for x in factors.tolist()]
        means = [Fraction(0)] * len(table.is_class)
        for group, f, e in zip(table.group.tolist(), chances or self.outcome_chance, exact, strict=True):
            means[group] += f * e
        groups = table.group.tolist()
        is_bet_on = {g for g, e in zip(groups, exact, strict=True) if e != 1}
        return [e / means[g] if g in is_bet_on else Fraction(1) for g, e in zip(groups, exact, strict=True)]

    @cached_property
    def view(self) -> PilotView:
        space = law_of_space(self.model)
        law = law_of_pilot(self.table, self.table.pool(self.pilot), space)
        return PilotView(self.table, self.pilot, law.mean, 9.0, SPACE_AS_DATA * space.precision)

    @cached_property
    def bets(self) -> list[np.ndarray]:
        """The factors of bets along a random direction and along the coefficients of outcomes, in two stages."""
        return self.bets_on(self.table, law_of_space(self.model), self.view.point)

    def bets_on(self, table, space, near) -> list[np.ndarray]:
        moments, main = (self.pilot // 4, self.pilot), self.pilot + 10 * (self.pilot // 3)
        expected = 200.0 if self.rng.random() < 0.5 else None  # for which sizes are renewed
        kept = Pilot(self.pilot, "power of four", moments=moments, lengths=(16, 64), expected=expected)
        counts = pl.TransitionCounts(self.model.graph, main, "adaptive", kept)
        across = [self.rng.normal(size=len(table.names)), *table.coefficients[table.direction >= 0][:2]]
        placed = staged_half_spaces(
            table,
            find_stages(table, counts, space),
            np.array([across, across]),
            find_horizons(kept, counts.total),
            space,
            near=near,
            error=0.001,
            texts=[""] * len(across),
        )
        return [factors for each in placed for part in each.parts for factors in part.factors]

    @cached_property
    def drifts(self) -> list:
        """All drifts that the pilot can tell, at an error of 0.001."""
        counts = pl.TransitionCounts(self.model.graph, self.pilot, "adaptive", Pilot(self.pilot))
        return drift_tests(self.view, counts, self.cache.contrasts, near=self.view.point, error=0.001)


def random_case(seed: int) -> Case:
    """Return a case; rows are often the same in several places, as they are in models with parameters."""
    rng = np.random.default_rng(seed)
    names = NAMES[: int(rng.integers(1, 3))]
    variables = pl.parameters(*names)
    shared = random_row(rng, variables)
    rows = [[shared if rng.random() < 0.4 else random_row(rng, variables) for _ in range(2)] for _ in range(3)]
    model = cell_model(rows, pl.ParameterSpace.unit(*names))
    truth = {name: Fraction(int(rng.integers(1, 20)), 20) for name in names}
    case = Case(model, truth, np.zeros(0), rng)
    pilot = np.zeros(model.graph.n_transitions, dtype=np.int64)
    for _, row in case.rows:
        chance = np.array([float(case.chance[t]) for t in row])
        pilot[list(row)] = rng.multinomial(rng.choice([3, 40, 200]), chance / chance.sum())
    return Case(model, truth, pilot, rng)


# Processes: each yields what must not be above one


def likelihood(case: Case) -> Iterator[Fraction]:
    """Statement 1: ratios of the likelihood at points at which no member of a group that is visited is negative."""
    for _ in range(2):
        point = {name: Fraction(int(case.rng.integers(-4, 25)), 20) for name in case.table.names}
        there, groups = case.at(point, case.table.outcomes), case.table.group
        negative = {int(g) for g, f in zip(groups, there, strict=True) if f < 0}
        ratio = [w / f if f else Fraction(0) for w, f in zip(there, case.outcome_chance, strict=True)]
        for (_, row), mean in zip(case.rows, case.fairness(ratio), strict=True):
            if not negative.intersection(int(groups[j]) for t in row for j in case.visit[t]):
                yield mean


def likelihoods_of_blocks(case: Case) -> Iterator[Fraction]:
    """Statement 1, for the groups about one block of parameters."""
    point = {name: Fraction(int(case.rng.integers(1, 20)), 20) for name in case.table.names}
    there = case.at(point, case.table.outcomes)
    for _, is_about in case.table.blocks:
        pairs = zip(there, case.outcome_chance, is_about.tolist(), strict=True)
        ratio = [Fraction(1) if not counts else w / f if f else Fraction(0) for w, f, counts in pairs]
        if min(there) >= 0:
            yield from case.fairness(ratio)


def bets(case: Case) -> Iterator[Fraction]:
    """Statement 7b: bets across a gradient, and across outcomes, that are renewed."""
    for factors in case.bets:
        yield from case.fairness(case.of_bets(factors))


def path_likelihood(case: Case) -> Iterator[Fraction]:
    """Statement 1, for rows with hidden paths, at points at which no factor of a row is negative, nor any ratio."""
    paths = case.table.paths
    if paths is None:
        yield Fraction(1)  # nothing changes
        return
    for _ in range(4):
        point = {name: Fraction(int(case.rng.integers(-4, 25)), 20) for name in case.table.names}
        there = case.at(point, paths.table.outcomes)
        groups = paths.table.group[paths.visit]
        negative = {int(g) for g, f in zip(paths.table.group, there, strict=True) if f < 0}
        ratio = {
            (r, i): abs(w / f) if f else Fraction(0)
            for r, row in enumerate(paths.rows)
            for i, (w, f) in enumerate(zip(case.at(point, row), case.at(case.truth, row), strict=True))
        }
        first = [int(np.flatnonzero(paths.row == r)[0]) for r in range(len(paths.rows))]
        for _, row in case.rows:
            seen = {t: np.flatnonzero(paths.pool(Seen(case.once(t)))[1]) for t in row}
            if any(len(o) and int(groups[paths.row[o[0]]]) in negative for o in seen.values()):
                yield Fraction(1)  # which is not a point of the average
                continue
            number = {t: (int(r := paths.row[o[0]]), int(o[0]) - first[r]) for t, o in seen.items() if len(o)}
            yield case.expectation(row, lambda t, number=number, ratio=ratio: ratio[number[t]] if t in number else 1)


def path_bets(case: Case) -> Iterator[Fraction]:
    """Statement 7b, for bets on outcomes of rows with hidden paths."""
    paths = case.table.paths
    if paths is None:
        yield Fraction(1)
        return
    nothing = pl.TransitionCounts(case.model.graph, np.zeros_like(case.pilot), "adaptive")
    table, space, near = PathEvidence(paths, nothing, law_of_space(case.model), case.view.point, 0.1).bet_on
    lifted = dict(zip(table.names[len(case.truth) :], case.at(case.truth, table.lifts.polynomials), strict=True))
    chances, visit = case.at(case.truth | lifted, table.outcomes), case.visit_in(table)
    for factors in case.bets_on(table, space, near):
        ratio = case.of_bets(factors, table, chances)
        for _, row in case.rows:
            yield case.expectation(row, lambda t, r=ratio: prod((r[j] ** m for j, m in visit[t].items()), start=1))


def bets_in_cells(case: Case) -> Iterator[Fraction]:
    """Statement 7d: bets in the cell of the truth, and the likelihood, with their weights."""
    table, truth = case.table, np.array([float(case.truth[name]) for name in case.table.names])
    nothing, gradients = (
        Pooled(np.zeros(len(table.outcomes)), np.zeros(len(table.is_class))),
        case.rng.normal(size=(2, len(truth))),
    )
    cells = Cells(Partition(case.model, table), nothing, 0.0, lambda _: [], truth, 0.03, 0.02)
    found = cells.partition.meeting(truth, truth)
    placed = [each for _, each in cells.place(found[0], gradients, np.arange(len(LENGTHS)))]
    if placed:
        # what a visit makes of a likelihood ratio is at most one (Statement 1)
        means = [Fraction(float(placed[0].weights[-1]))] * len(case.rows)
        for each in placed:
            for weight, factors in zip(each.weights.tolist(), each.factors, strict=False):
                of_rows = case.fairness(case.of_bets(factors))
                means = [mean + Fraction(weight) * of_row for mean, of_row in zip(means, of_rows, strict=True)]
        yield from means


def drifts(case: Case) -> Iterator[Fraction]:
    """Statement F2: bets that differ from cell to cell; twelve of the drifts, on either side."""
    for drift in case.drifts[:: max(1, len(case.drifts) // 12)]:
        cells = drift.contrast.at(np.array([choice for choice, _ in case.rows])).tolist()
        for cell in sorted({cell for cell in cells if cell >= 0}):
            means = case.fairness(case.of_bets(drift.factors(cell)))
            yield from (mean for own, mean in zip(cells, means, strict=True) if own == cell)


def _contexts(case: Case, once: int | None = None) -> list[Context]:
    """Return contexts whose values the pilot has at random, and a visit with this transition after it at the first."""
    n = case.model.graph.n_transitions
    main = np.zeros((8, n), dtype=np.int64)
    if once is not None:
        main[2, once] = 1
    rng = np.random.default_rng(case.pilot.sum())  # the same for every visit
    drawn = [np.array([rng.multinomial(k, np.ones(8) / 8) for k in case.pilot]).T for _ in range(2)]
    return [
        Context.of(kind, main, pilot) for kind, pilot in zip((ContextKind.STEP, ContextKind.LAST), drawn, strict=True)
    ]


def memory_bets(case: Case) -> Iterator[Fraction]:
    """Statement F2: bets that differ with the value of a context; some of the bets, on either side."""
    bets = directed_bets(case.view, _contexts(case), error=0.001)
    assert sum(Fraction(bet.share) for bet in bets) <= 1 + SLACK
    outcomes = np.arange(len(case.table.outcomes))
    for bet in bets[:: max(1, len(bets) // 12)]:
        for level in np.unique(bet.levels):
            yield from case.fairness(case.of_bets(bet.factors(np.full(len(outcomes), level), outcomes)))


def memory_half_space(case: Case) -> Iterator[Fraction]:
    """The affine function below the mean of bets on memory, at the truth after one visit, as a float."""
    truth = np.array([float(case.truth[name]) for name in case.table.names])
    _, row = case.rows[int(case.rng.integers(len(case.rows)))]
    kept, wealth = Pilot(case.pilot, ratio=9.0), {}
    for t in row:
        shares = {"of_bets": 0.001, "of_rows": 0.001}
        found = memory_tests(case.table, _contexts(case, t), case.view, kept, near=truth, **shares)
        wealth[t] = Fraction(float(np.exp(found.affine.slopes @ truth + found.affine.constants).sum() / 0.001))
    yield case.expectation(row, lambda t: wealth[t] / (1 + SLACK))


def drift_half_spaces(case: Case) -> Iterator[Fraction]:
    """The half-space of a drift after one visit, at the truth: the wealth that its offset stands for, as a float.

    With tangents at the truth, row · truth - offset is the logarithm of the wealth times the share of the error; it is
    rounded, so that a mean of one may be exceeded by a little.
    """
    truth = np.array([float(case.truth[name]) for name in case.table.names])
    _, row = case.rows[int(case.rng.integers(len(case.rows)))]
    left = {}
    for t in row:
        seen = pl.TransitionCounts(
            case.model.graph, case.pilot + case.once(t), "adaptive", Pilot(case.pilot, ratio=9.0)
        )
        left[t] = drift_tests(case.view, seen, case.cache.contrasts, near=truth, error=0.001)
    for i, drift in enumerate(left[row[0]]):
        share = 0.001 / len(left[row[0]])
        assert drift.side == left[row[-1]][i].side
        yield case.expectation(
            row,
            lambda t, i=i, share=share: (
                Fraction(float(np.exp(left[t][i].left.row @ truth - left[t][i].left.offset) / share)) / (1 + SLACK)
            ),
        )


SLACK = Fraction(1, 10**9)  # of what is calculated in floats


def rows(case: Case) -> Iterator[Fraction]:
    """Statement F1: predictions of each row."""
    yield from _means_of_predictions(case, case.table.pool_by_choice)


def classes(case: Case) -> Iterator[Fraction]:
    """Statement F1: predictions of each class of tied rows."""

    def pooled(seen):
        amount = case.table.pool(seen)
        which = np.flatnonzero(amount)
        return CellCounts(case.table.group[which], which, amount[which])

    yield from _means_of_predictions(case, pooled)


def _means_of_predictions(case: Case, pooled) -> Iterator[Fraction]:
    """Yield the mean of the product of all wealths after one visit of each choice, and after two of one of them.

    What the package calculates must be the logarithm of Dirichlet's law, rounded down: that law is taken exactly.
    """
    twice = int(case.rng.integers(len(case.rows)))
    for i, (_, row) in enumerate(case.rows):
        mean = Fraction(0)
        for seen in product([t for t in row if case.chance[t]], repeat=1 + (i == twice)):
            mean += prod((case.chance[t] for t in seen), start=Fraction(1)) * _wealth(case, pooled(case.once(*seen)))
        yield mean


def _wealth(case: Case, cells: CellCounts) -> Fraction:
    """Return the product of the wealths of all cells: each bets on visits of its own."""
    tests, wealth = cell_tests(case.table, cells), Fraction(1)
    for i, cell in enumerate(tests.cell.tolist()):
        own = cells.cell == cell
        exact = _dirichlet(case.table, cells.outcome[own], cells.counts[own])
        assert log(exact) - 1e-9 < tests.gained[i] <= log(exact) + 1e-13
        which = slice(tests.first[i], tests.first[i + 1])
        chances = [case.outcome_chance[j] for j in tests.outcome[which].tolist()]
        wealth *= exact / prod((f ** int(k) for f, k in zip(chances, tests.seen[which], strict=True)), start=1)
    return wealth


def _dirichlet(table, outcome, seen) -> Fraction:
    """Return the probability of one order of outcomes, by the law with weights ½, for each class that was visited."""
    found, sizes = Fraction(1), np.bincount(table.group)
    for group in set(table.group[outcome[table.is_class[table.group[outcome]]]].tolist()):
        own = seen[table.group[outcome] == group]
        found *= prod((HALF + i for k in own for i in range(int(k))), start=Fraction(1))
        found /= prod((HALF * int(sizes[group]) + i for i in range(int(own.sum()))), start=Fraction(1))
    return found


def memory_laws(case: Case) -> Iterator[Fraction]:
    """Statement F1: predictions of each class, and of each row, after each value of a context.

    Visits have the value 0 first, and then one that their last outcome decides.
    """
    twice, n = int(case.rng.integers(len(case.rows))), 8
    for i, (choice, row) in enumerate(case.rows):
        means = [Fraction(0), Fraction(0)]
        for seen in product([t for t in row if case.chance[t]], repeat=1 + (i == twice)):
            values = [0, *(1 + (t - row[0]) % (n - 1) for t in seen[:-1])]
            counts = np.zeros((n, case.model.graph.n_transitions), dtype=np.int64)
            np.add.at(counts, (values, list(seen)), 1)
            context = Context.of(ContextKind.LAST, counts, 0 * counts)
            found = context_tests._laws_of_their_own(case.table, context, 1.0)
            cells = case.table.pool_by_cell(context.transition, context.value, context.count)
            keys = case.table.group[cells.outcome].astype(int), np.full(len(cells.cell), choice)
            chance = prod((case.chance[t] for t in seen), start=Fraction(1))
            for k, (tests, owner, m) in enumerate(
                zip(found, keys, (len(case.table.is_class), case.table.n_tied), strict=True)
            ):
                means[k] += chance * _wealth_of_owners(case, tests, owner, cells, m)
        yield from means


def _wealth_of_owners(case: Case, tests, owner, cells: CellCounts, m: int) -> Fraction:
    """Return the product of the wealths of all owners, each with laws of its own after each value of a context."""
    wealth, is_class = Fraction(1), case.table.is_class[case.table.group[cells.outcome]]
    for i, own in enumerate(tests.cell.tolist()):
        parts = [(owner == own) & (cells.cell == value) & is_class for value in set(cells.cell.tolist())]
        exact = prod((_dirichlet(case.table, cells.outcome[part], cells.counts[part]) for part in parts), start=1)
        assert log(exact) - 1e-9 < tests.gained[i] + log(max(m, 1)) <= log(exact) + 1e-12
        which = slice(tests.first[i], tests.first[i + 1])
        chances = [case.outcome_chance[j] for j in tests.outcome[which].tolist()]
        wealth *= exact / prod((f ** int(k) for f, k in zip(chances, tests.seen[which], strict=True)), start=1)
    return wealth


def fixed_numbers(case: Case) -> Iterator[Fraction]:
    """Statement F4: trials of numbers that the model fixes, alone and in classes of rows."""
    fixed = case.cache.fixed
    if not len(fixed):
        return
    of_visit = {t: _tests_of_numbers(fixed, case.counts(t)) for _, row in case.rows for t in row}
    for _, row in case.rows:
        for kind in range(2):
            number = of_visit[row[0]][kind].number
            for i in np.flatnonzero(sum(of_visit[t][kind].trials for t in row)).tolist():
                x = fixed.numbers[number[i]]
                yield case.expectation(
                    row, lambda t, i=i, x=x, kind=kind: _first_trial(*_trial(of_visit[t][kind], i), x)
                )


def _tests_of_numbers(fixed, counts):
    alone = constants._alone(fixed, counts)
    return alone, constants._together(fixed, alone)


def _trial(tests, i) -> tuple[int, int]:
    return int(tests.trials[i]), int(tests.successes[i])


def _first_trial(trials: int, successes: int, chance: Fraction) -> Fraction:
    """Return the wealth of at most one trial that is predicted with one half."""
    assert 0 <= successes <= trials <= 1
    return (HALF / chance if successes else HALF / (1 - chance)) if trials else Fraction(1)


def strips(case: Case) -> Iterator[Fraction]:
    """The beta-binomial martingale of docs/proofs/intervals.md: trials of events, for the intervals of expressions."""
    events, pooled = case.cache.events, observations.pool
    of_visit = {t: pooled(case.cache.events, case.counts(t)) for _, row in case.rows for t in row}
    chance = case.at(case.truth, events.polynomials)
    for _, row in case.rows:
        for i in np.flatnonzero(sum(of_visit[t].trials for t in row)).tolist():
            yield case.expectation(
                row, lambda t, i=i: _first_trial(int(of_visit[t].trials[i]), int(of_visit[t].successes[i]), chance[i])
            )


def tolerant_bets(case: Case) -> Iterator[Fraction]:
    """Statement M1: bets and drifts on rows off by a tolerance in the worst direction, less what is charged."""
    is_safe = tolerant.safe_groups(case.model, case.table)[case.table.group]
    placed = [(np.where(is_safe, factors, 1.0), None) for factors in case.bets]
    placed += [(drift.factors(cell), (drift, cell)) for drift in case.drifts[:4] for cell in _cells(drift)]
    for factors, where in placed:
        if (factors[~is_safe] != 1).any():
            continue
        ratio = case.of_bets(factors)
        ranges = tolerant.range_of_bets(case.model.graph, case.table, factors)
        for choice, row in case.rows:
            if where is None or where[0].contrast.at(np.array([choice]))[0] == where[1]:
                gains = [prod((ratio[j] ** m for j, m in case.visit[t].items()), start=Fraction(1)) for t in row]
                for model_tolerance in _MISFITS:
                    worst = _worst_mean([case.chance[t] for t in row], gains, Fraction(model_tolerance))
                    yield worst / (1 + Fraction(model_tolerance) * Fraction(ranges[choice]))


def _cells(drift):
    return range(len(drift.contrast.levels))


def _worst_mean(chances, gains, model_tolerance) -> Fraction:
    """Return the largest mean of gains under rows that are off by the tolerance: mass moves to the largest gain."""
    order, left, chances = sorted(range(len(gains)), key=lambda i: gains[i]), model_tolerance, list(chances)
    for i in order[:-1]:
        taken = min(chances[i], left)
        chances[i], chances[order[-1]], left = chances[i] - taken, chances[order[-1]] + taken, left - taken
    return sum((f * gain for f, gain in zip(chances, gains, strict=True)), Fraction(0))


def arms(case: Case) -> Iterator[Fraction]:
    """Statement R3: both ends of the difference of drawn arms, and of the value of one, for tasks with any chances."""
    rng, n, n_tasks = case.rng, 12, int(case.rng.integers(1, 4))
    chance, is_named = rng.choice([0.02, 0.3, 0.5, 0.9], n_tasks), rng.random() < 0.5
    rate = [[Fraction(int(k), 10) for k in rng.integers(0, 11, 2)] for _ in range(n_tasks)]
    task, is_first = rng.integers(0, n_tasks, n), rng.random(n) < 0.5
    earned = (rng.random(n) < 0.5).astype(float)
    after = [
        (t, arm, float(y), Fraction(1, n_tasks) * drawn * (mean if y else 1 - mean))
        for t in range(n_tasks)
        for p in (Fraction(chance[t]),)
        for arm, drawn, mean in ((True, p, rate[t][0]), (False, 1 - p, rate[t][1]))
        for y in (0, 1)
    ]
    for is_value, side in product((False, True), (1, -1)):
        truth = side * sum(((a - (0 if is_value else b)) for a, b in rate), Fraction(0)) / n_tasks
        mean = np.nextafter(float(truth), 2)  # above the truth, whose float may be below it
        means = [Fraction(0), Fraction(0)]
        for t, arm, y, weight in after:
            tasks, arms = np.append(task, t), np.append(is_first, arm)
            outcome = np.where(arms, np.append(earned, y), 0.0) if is_value else np.append(earned, y)
            draws = run_bets.Draws(arms, chance[tasks], tasks if is_named else np.zeros(n + 1, np.int64))
            score, least = run_bets.scores_of(outcome if side > 0 else 1 - outcome, draws)
            sizes = np.zeros((2, n + 1))
            run_bets.bet_against(score, least, mean, 1e6, 15.0, np.array([0.0, 1.0]), sizes)
            factors = [1 + Fraction(bet) * (Fraction(score[n]) - Fraction(mean)) for bet in sizes[:, n]]
            assert min(factors) > 0
            means = [each + weight * factor for each, factor in zip(means, factors, strict=True)]
        yield from means


PROCESSES = (
    likelihood,
    likelihoods_of_blocks,
    bets,
    path_likelihood,
    path_bets,
    bets_in_cells,
    drifts,
    drift_half_spaces,
    memory_bets,
    memory_half_space,
    memory_laws,
    rows,
    classes,
    fixed_numbers,
    strips,
    tolerant_bets,
    arms,
)

assert fit.drift_tests is drift_tests  # what is tested here is what the test of a model uses
