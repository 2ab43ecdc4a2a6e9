"""Random chains of tables with data, and exact evaluations of everything that is bet on in them."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np

from plumdp.solver.coupled.chain import PolicyChain
from plumdp.tables.bracket import BetMoments, Errors
from plumdp.tables.chain import KNOWN, OpenChain
from plumdp.tables.values import side_by_side

ERRORS = Errors(of_side=0.025, rows=0.005, ball=0.005)


def make_table(rows, *, known=(1.0, 0.0), reward=None, discount=1.0, start=0, numbers=None):
    """Return the chain of rows, each a list of pairs of successor and place; nodes from len(rows) on are closed.

    ``numbers`` has the probabilities of rows that are known, by node; their places are left out.
    """
    n, numbers = len(rows), numbers or {}
    pairs = [pair for row in rows for pair in row]
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    place = np.array([KNOWN if p is None else p for _, p in pairs])
    number = np.zeros(len(pairs))
    for node, row in numbers.items():
        number[first[node] : first[node + 1]] = row
    chain = PolicyChain(
        np.arange(n + len(known), dtype=np.int32),
        first,
        np.array([successor for successor, _ in pairs], dtype=np.int32),
        np.zeros(len(pairs), dtype=np.int64),
        np.zeros(n) if reward is None else np.asarray(reward, dtype=np.float64),
        np.asarray(known, dtype=np.float64),
        start,
        False,
        discount,
    )
    return OpenChain(chain, place, number, int(place.max()) + 1)


@dataclass(frozen=True, eq=False)
class Case:
    """A chain with its true probabilities, and what had been seen at some moments."""

    table: OpenChain
    truth: np.ndarray  # (n_transitions)
    moments: BetMoments

    @property
    def later(self):
        """What was seen after the pilot (n_places)."""
        return self.moments.counts[-1] - self.moments.counts[0]


def random_table(rng):
    """Return a chain of 4 to 13 rows like a walk, with leaks, ties, known rows, rewards or a discount, and truth."""
    n, kind = int(rng.integers(4, 14)), rng.choice(["reach", "reward", "discounted"], p=[0.6, 0.2, 0.2])
    good, bad = n, n + 1
    is_tied, n_places = rng.random() < 0.4, 0
    classes, rows, numbers, truth = {}, [], {}, []
    for s in range(n):
        successors = [s + 1 if s + 1 < n else good, s - 1 if s else bad]
        if rng.random() < 0.5:
            successors.append(int(rng.choice([good, bad])) if not {good, bad} & {*successors} else s)
        if rng.random() < 0.3:
            successors += [t for t in (int(rng.integers(n)),) if t not in successors]
        size = len(successors)
        key = (size, int(rng.integers(2))) if is_tied and rng.random() < 0.7 else ("own", s)
        row = classes[key][1] if key in classes else np.maximum(rng.dirichlet(np.full(size, 1.5)), 0.01)
        row = row / row.sum()
        truth.append(row)
        if rng.random() < 0.12 and key not in classes and s:
            numbers[s] = row
            rows.append([(t, None) for t in successors])
            continue
        if key not in classes:
            classes[key] = (n_places, row)
            n_places += size
        rows.append([(t, classes[key][0] + i) for i, t in enumerate(successors)])
    reward = rng.uniform(0, 2, n) * (rng.random(n) < 0.7) if kind != "reach" else None
    known = (1.0, 0.0) if kind == "reach" else (float(rng.choice([0, 3])), 0.0)
    discount = float(rng.uniform(0.5, 0.98)) if kind == "discounted" else 1.0
    table = make_table(rows, known=known, reward=reward, discount=discount, start=int(rng.integers(n)), numbers=numbers)
    return table, np.concatenate(truth)


def of_class(table, truth):
    """Return the probability of each place (n_places)."""
    result = np.zeros(table.n_places)
    free = table.place >= 0
    result[table.place[free]] = truth[free]
    return result


def row_of_place(table):
    """Return a number for each place (n_places) that places of one row share."""
    result = np.zeros(table.n_places, dtype=np.int64)
    free = table.place >= 0
    result[table.place[free]] = table.place[table.chain.first[:-1]][table.owner][free]
    return result


def compositions(total, parts):
    """Yield all ways to divide a number of visits among places."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in compositions(total - first, parts - 1))


def all_batches(table, truth, visits):
    """Yield all counts (n_places) of a batch with their exact probabilities."""
    rows = [np.flatnonzero(row_of_place(table) == first) for first in np.unique(row_of_place(table))]
    choices = [list(compositions(n, len(places))) for n, places in zip(visits, rows, strict=True)]
    for seen in product(*choices):
        counts, chance = [0] * table.n_places, Fraction(1)
        for places, numbers in zip(rows, seen, strict=True):
            left = sum(numbers)
            for place, number in zip(places, numbers, strict=True):
                counts[place] = number
                chance *= comb(left, number) * truth[place] ** number
                left -= number
        yield np.array(counts, dtype=np.float64), chance


def draw(table, truth, visits, rng):
    """Return counts (n_places) of so many visits of each unknown row, given by the first place of it."""
    probability, counts = of_class(table, truth), np.zeros(table.n_places)
    for first, number in visits.items():
        places = np.flatnonzero(row_of_place(table) == first)
        p = probability[places]
        counts[places] = rng.multinomial(int(number), p / p.sum())
    return counts


def drawn_table(rng):
    """Return the chain of a walk of 3 to 7 states in which each action is drawn from two, each with its own row."""
    n = int(rng.integers(3, 8))
    good, bad = 3 * n, 3 * n + 1
    share = rng.uniform(0.05, 0.95, n)
    numbers = {s: np.array([share[s], 1 - share[s]]) for s in range(n)}
    rows, truth = [[(n + 2 * s, None), (n + 2 * s + 1, None)] for s in range(n)], [*numbers.values()]
    for s in np.repeat(np.arange(n), 2):
        successors = [int(s) + 1 if s + 1 < n else good, int(s) - 1 if s else bad, *([int(s)] * int(rng.integers(2)))]
        rows.append([(t, sum(map(len, rows[n:])) + i) for i, t in enumerate(successors)])
        row = np.maximum(rng.dirichlet(np.full(len(successors), 1.5)), 0.02)
        truth.append(row / row.sum())
    return make_table(rows, start=int(rng.integers(n)), numbers=numbers), np.concatenate(truth)


def labels_of(table):
    """Return a label of the probability of each transition; numbers that are equal have one."""
    numbers = {number: -1 - i for i, number in enumerate(np.unique(table.number))}
    return np.where(table.place >= 0, table.place, [numbers[x] for x in table.number])


def random_pair(rng):
    """Return the chains of two policies, of which the second has rows of its own here and there, and truth of both."""
    one, truth = random_table(rng)
    first, n_places = one.chain.first, one.n_places
    rows, numbers, chances = [], {}, []
    for s in range(one.n):
        part = slice(first[s], first[s + 1])
        place, chance = one.place[part], truth[part]
        if rng.random() < 0.3:  # a row of its own
            place, n_places = n_places + np.arange(len(place)), n_places + len(place)
            chance = np.maximum(rng.dirichlet(np.full(len(place), 1.5)), 0.02)
            chance = chance / chance.sum()
        elif place[0] < 0:
            numbers[s] = chance
        rows.append([(t, None if p < 0 else int(p)) for t, p in zip(one.successor[part].tolist(), place, strict=True)])
        chances.append(chance)
    c = one.chain
    other = make_table(rows, known=c.known, reward=c.reward, discount=c.discount, start=c.initial, numbers=numbers)
    one, other = (replace(each, n_places=n_places) for each in (one, other))
    return one, other, truth, np.concatenate(chances)


def paired_table(rng):
    """Return two policies side by side, and truth."""
    while True:
        one, other, *truth = random_pair(rng)
        table, own = side_by_side(one, other, labels_of(one), labels_of(other))
        if table.start.any():
            kept = np.isin(other.owner, own)
            return table, np.concatenate([truth[0], truth[1][kept]])


def random_case(seed, *, make=random_table, least=3e3, most=1e6, few=False):
    """Return a random chain with data of three batches; with few, pilots have 1 to 3 visits of each row."""
    rng = np.random.default_rng(seed)
    table, truth = make(rng)
    firsts = np.unique(row_of_place(table))
    steps = np.exp(rng.uniform(np.log(least), np.log(most))) / len(firsts)
    weight = np.exp(rng.uniform(-1.5, 0, len(firsts)))
    parts = [0.1, 0.75, 0.15] if rng.random() < 0.7 else [0.1, 0.9]
    counts = np.zeros(table.n_places)
    cumulative = []
    for i, part in enumerate(parts):
        each = np.ceil(part * steps * weight)
        if few and i == 0:
            each = rng.integers(1, 4, len(firsts))
        counts = counts + draw(table, truth, dict(zip(firsts.tolist(), each.tolist(), strict=True)), rng)
        cumulative.append(counts)
    lengths = [float(each.sum()) for each in cumulative]
    return Case(table, truth, BetMoments(tuple(cumulative), tuple(lengths[:-1]), lengths[-1]))


def values_at(table, probability):
    """Return the values of a chain at probabilities (n_transitions), and whether they were found."""
    n = table.n
    moves = np.zeros((n, table.chain.n_nodes))
    np.add.at(moves, (table.owner, table.successor), table.discount * probability)
    return np.linalg.solve(np.eye(n) - moves[:, :n], table.chain.reward + moves[:, n:] @ table.chain.known)


def log_of_bets(table, stages, values):
    """Return the logarithm of the product of bets at values, with bets made smaller where values range too far."""
    ranges, total = table.ranges(table.ahead(values)), 0.0
    for stage in stages:
        most = table.by_place(np.abs(stage.weight[table.owner]) * ranges[table.owner])
        largest = np.maximum.reduceat(table.of_places(most), table.chain.first[:-1])
        scale = np.where(
            largest > 0.5, 0.5 / np.maximum(largest, 0.5), 1.0
        )  # one for each class: all nodes of it agree
        payoff = table.by_place((stage.weight * scale)[table.owner] * table.differences(values))
        total += float((stage.counts * np.log1p(payoff)).sum())
    return total


def units(table, reference, values):
    """Return temporal differences in units of their deviation (n_transitions), 0 where there is none."""
    deviation = table.deviations(reference.probability, table.ahead(values))[table.owner]
    return np.where(deviation > 0, table.differences(values) / np.where(deviation > 0, deviation, 1.0), 0.0)


def log_of_rows(plan, reference, counts, values):
    """Return the largest logarithm of all bets on single rows."""
    table, x = plan.table, units(plan.table, reference, values)
    seen, kept = table.of_places(counts), plan.is_kept & table.is_free
    logs = [
        table.sums(seen * np.log1p(sign * size[table.owner] * x))[kept] for size in reference.sizes for sign in (-1, 1)
    ]
    return max((float(each.max()) for each in logs if len(each)), default=-np.inf)


def log_of_mixture(table, reference, counts, values, n_points=201):
    """Return the logarithm of the mixture of bets on all rows, by quadrature."""
    x, seen, total = units(table, reference, values), table.of_places(counts), 0.0
    theta = np.linspace(-1, 1, n_points)
    for s in np.flatnonzero(reference.is_mixed):
        part = slice(table.chain.first[s], table.chain.first[s + 1])
        bets = theta * reference.cut[s]
        weight = np.exp(-(bets**2) / (2 * reference.spread[s] ** 2))
        logs = np.log1p(bets[:, None] * x[part]) @ seen[part]
        total += logs.max() + np.log((weight * np.exp(logs - logs.max())).sum() / weight.sum())
    return total


def small_case(seed):
    """Return a chain of one to three rows that often stay where they are, with a pilot of 1 to 6 unlucky visits."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    rows, truth, counts = [], [], []
    for s in range(n):
        successors = [s, n, n + 1, *(t for t in range(n) if t != s and rng.random() < 0.5)]
        rows.append([(t, len(truth) + i) for i, t in enumerate(successors)])
        row = rng.dirichlet(np.where(np.asarray(successors) < n, 2.0, 0.7))
        truth += (np.maximum(row, 0.01) / np.maximum(row, 0.01).sum()).tolist()
        pilot = np.zeros(len(successors))
        pilot[int(rng.integers(1, 3))] = rng.integers(1, 7)
        counts += pilot.tolist()
    table, probability = make_table(rows), np.array(truth)
    firsts = np.unique(row_of_place(table))
    pilot, steps = np.array(counts), np.exp(rng.uniform(np.log(100), np.log(1e5)))
    cumulative = [pilot]
    for part in (0.8, 0.2):
        visits = {int(first): np.ceil(part * steps * rng.uniform(0.3, 1)) for first in firsts}
        cumulative.append(cumulative[-1] + draw(table, probability, visits, rng))
    lengths = [float(each.sum()) for each in cumulative]
    return Case(table, probability, BetMoments(tuple(cumulative), tuple(lengths[:-1]), lengths[-1]))
