"""Intervals of events from their trials: an event is one or several outcomes of a row, and each visit tries it once.

Equal probabilities are one event wherever they occur, so that the visits of several rows count together. Beta-binomial
intervals hold at all times, whoever stops. Those of Clopper and Pearson need a number of trials that says nothing
about the outcomes: samples that are independent, or runs of which each tries the event at most once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from flint import arb, fmpq

from .chain import Chain
from .counts import CountedRows, Row
from .half_spaces import ProvedHalfSpace, between
from .polynomials import Key, Polynomial, add, constant, is_constant, key_of, multiply, parse
from .reading import Exact, Part, require, work

ANYTIME = "beta-binomial"
ONCE = "that no run tries an event twice whose interval says so (no path of the policy's chain does)"
_MOST_SUMMED = 6  # outcomes of a row, of which all sums are looked at


@dataclass(frozen=True)
class EventTrials:
    """What each event is, and the rows that try it in each visit, with the outcomes with which it happens."""

    events: list[Polynomial]
    rows: dict[Key, dict[int, frozenset[int]]]

    def of(self, event: Polynomial, data: CountedRows) -> dict[int, frozenset[int]]:
        """Return what tries an event; one that is not known may be the failure of one that is."""
        if key_of(event) in self.rows:
            return self.rows[key_of(event)]
        failed = self.rows.get(key_of(_failure(event, len(data.names))), {})
        return {i: frozenset(range(len(data.rows[i].outcomes))) - chosen for i, chosen in failed.items()}


def event_trials(data: CountedRows) -> EventTrials:
    """Return all events and all that tries them, which depend on the model alone: nobody may choose among them.

    Events are the outcomes of rows, and members of classes that rows draw from if they are sums of outcomes of a row of
    products, which has neither them nor their failure as an outcome. Sums that can be formed twice are no trials.
    """
    drawn = {group for row in data.rows for way in row.ways or () for group, _ in way}
    n, members = len(data.names), dict[Key, Polynomial]()
    for member in (each for each in data.members if each.group in drawn and any(each.slopes)):
        slopes = {tuple(int(i == j) for j in range(n)): b for i, b in enumerate(member.slopes) if b}
        polynomial = add(constant(member.constant, n), slopes)
        members[key_of(polynomial)] = polynomial
    found, rows = dict[Key, Polynomial](), dict[Key, dict[int, frozenset[int]]]()
    for number, row in enumerate(data.rows):
        keys = [key_of(f) for f in row.outcomes]
        single = Counter(key for key, f in zip(keys, row.outcomes, strict=True) if not is_constant(f))
        failures = {key_of(_failure(f, n)) for f in row.outcomes}
        for i, (key, f) in enumerate(zip(keys, row.outcomes, strict=True)):
            if single[key]:
                found[key] = f
                rows.setdefault(key, {})[number] = frozenset([i] if single[key] == 1 else [])
        for key, chosen in _sums(row):
            if key in members and key not in single and key not in failures:
                found[key] = members[key]
                is_second = number in rows.setdefault(key, {})
                rows[key][number] = frozenset() if is_second else chosen
    clear = {key: tried for key, tried in rows.items() if all(tried.values())}
    return EventTrials(list(found.values()), clear)


def _sums(row: Row) -> Iterator[tuple[Key, frozenset[int]]]:
    """Yield sums of some outcomes of a row of products."""
    k = len(row.outcomes)
    if k <= _MOST_SUMMED and any(sum(e) > 1 for f in row.outcomes for e in f):
        for size in range(2, k - 1):
            for chosen in combinations(range(k), size):
                yield key_of(add(*(row.outcomes[i] for i in chosen))), frozenset(chosen)


def half_spaces_from_intervals(part: Part, data: CountedRows) -> Iterator[ProvedHalfSpace]:
    """Yield both sides of the interval of each event, which is proved from its trials."""
    error, method, n = part["error"].number(), part["method"].text(), len(data.names)
    require(method in _EXCLUDED, f"{part.place}: verify does not know intervals by {method[:40]!r}")
    events, tries = [parse(item["polynomial"].text(), data.names) for item in part["list"]], event_trials(data)
    needed = n_events(tries.events, n) + len(events) - n_events(events, n)  # f and 1 - f may both be events
    require(part["number"].whole() >= needed, f"{part.place}: the error is divided among too few events")
    for item, event in zip(part["list"], events, strict=True):
        tried = trials_of(data, item["trials"], tries.of(event, data))
        once = item["once"].truth()
        require(not once or data.sampling == "trajectories", f"{item.place}: these data are not runs")
        is_anytime = method in FIXED and not once and data.sampling != "independent"
        is_excluded = _EXCLUDED[ANYTIME if is_anytime else method]
        lower, upper = item["lower"].number(), item["upper"].number()
        is_tried = tried[1] > 0  # a row that is not visited, or does not occur, need not have probabilities
        for end, is_trivial, side in ((lower, is_tried and lower <= 0, -1), (upper, is_tried and upper >= 1, 1)):
            holds = is_trivial or (0 < end < 1 and is_excluded(*tried, end, error, side))
            require(holds, f"{item.place}: the interval from {tried[1]} trials is too narrow")
        yield from between(lower, event, upper, n)


def trials_of(data: CountedRows, part: Part, tries: dict[int, frozenset[int]]) -> tuple[int, int]:
    """Return how often an event happened and was tried, given all rows that try it, which must be those of a part.

    Whoever may leave out some of them picks those that suit him.
    """
    given: dict[int, frozenset[int]] = {}
    for trial in part:
        number = trial[0].whole(len(data.rows))
        require(number not in given, f"{trial.place}: a visit is one trial of an event, not two")
        given[number] = frozenset(place.whole(len(data.rows[number].outcomes)) for place in trial[1])
        same = given[number] == tries.get(number, given[number])
        require(same, f"{trial.place}: these outcomes do not have the probability of the event")
    require(given == tries and len(given) > 0, f"{part.place}: these are not all rows that try the event, or others")
    seen = {number: data.rows[number].seen["all"] for number in given}
    return sum(seen[row][i] for row, chosen in given.items() for i in chosen), sum(map(sum, seen.values()))


def _failure(polynomial: Polynomial, n: int) -> Polynomial:
    """Return one minus a polynomial."""
    return add(constant(fmpq(1), n), {e: -c for e, c in polynomial.items()})


def n_events(polynomials: Iterable[Polynomial], n: int) -> int:
    """Return how many polynomials differ, where f and 1 - f are one."""
    return len({frozenset((key_of(f), key_of(_failure(f, n)))) for f in polynomials})


def excludes_by_bets(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
    """Return whether bets on all shares of successes, under Beta(1/2, 1/2), reach 1/error at an end and beyond it."""
    if side * (end * trials - successes) < 0:
        return False
    k, m, p = successes, trials - successes, arb(end)
    mixture = (arb(k) + 0.5).lgamma() + (arb(m) + 0.5).lgamma() - arb(trials + 1).lgamma() - arb.pi().log()
    return bool(mixture - k * p.log() - m * (-p).log1p() >= -arb(error).log())


def clopper_pearson(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
    """Return whether the tail of the binomial law at an end has at most half of the error."""
    k, m = (successes, trials - successes) if side < 0 else (trials - successes, successes)
    p = arb(end) if side < 0 else 1 - arb(end)
    return k > 0 and bool(p.beta_lower(arb(k), arb(m + 1), regularized=1) <= arb(error) / 2)


FIXED = ("clopper-pearson",)
_EXCLUDED: dict[str, Callable[[int, int, Exact, Exact, int], bool]] = {
    ANYTIME: excludes_by_bets,
    "clopper-pearson": clopper_pearson,
}


def check_once(part: Part, data: CountedRows, chain: Chain) -> bool:
    """Return whether some intervals rest on runs that try their event once, which the chain must not contradict.

    States of the chain try the events of the row that they have. What is tried after each state is collected until
    nothing is added, one bit for each event.
    """
    items = [item for item in part["list"] if item["once"].truth()]
    tries: dict[int, int] = {}
    for bit, item in enumerate(items):
        for trial in item["trials"]:
            number = trial[0].whole(len(data.rows))
            tries[number] = tries.get(number, 0) | 1 << bit
    number_of = {_merged(row.outcomes): number for number, row in enumerate(data.rows)}
    here, kinds = [0] * len(chain.steps), dict[tuple[int, ...], int]()
    for node, step in enumerate(chain.steps):
        key = tuple(sorted(step.expressions)) if step else ()
        if step and key not in kinds:
            number = number_of.get(_merged([chain.expressions[f] for f in key]), -1)
            kinds[key] = tries.get(number, 0)
        here[node] = kinds[key] if step else 0
    after = _collected(here, chain)
    twice = next((node for node, bits in enumerate(here) if bits & after[node]), None)
    require(twice is None, f"{part.place}: a run can try an event twice, from state {twice} on")
    return bool(items)


def _merged(row: list[Polynomial]) -> frozenset[tuple[Key, int]]:
    """Return what is the same for rows of which equal outcomes, and constants, were merged or not."""
    by_key = {key_of(f): f for f in row}
    times = Counter(key_of(f) for f in row if not is_constant(f))
    n = len(next(iter(row[0]), ())) if row else 0
    return frozenset(Counter(key_of(multiply(constant(fmpq(m), n), by_key[key])) for key, m in times.items()).items())


def _collected(here: list[int], chain: Chain) -> list[int]:
    """Return the bits of all states that may come after each."""
    before: list[list[int]] = [[] for _ in here]
    for node, step in enumerate(chain.steps):
        for successor in step.successors if step else ():
            before[successor].append(node)
    after, waiting = [0] * len(here), [node for node, bits in enumerate(here) if bits]
    while waiting:
        node = waiting.pop()
        work(1 + len(before[node]))
        bits = here[node] | after[node]
        for earlier in before[node]:
            if bits & ~after[earlier]:
                after[earlier] |= bits
                waiting.append(earlier)
    return after
