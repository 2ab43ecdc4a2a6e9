"""Intervals of events from their trials: an event is one or several outcomes of a row, and each visit tries it once.

Equal probabilities are one event wherever they occur, so that the visits of several rows count together. Beta-binomial
intervals hold at all times, whoever stops. Those of Clopper and Pearson, and of Hoeffding, need a number of trials that
says nothing about the outcomes: samples that are independent, or runs of which each tries the event at most once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

from flint import arb, fmpq

from .chain import Chain
from .counts import Data
from .half_spaces import HalfSpace, below
from .polynomials import Exponents, Polynomial, add, constant, is_constant, multiply, parse
from .reading import Exact, Part, require

Key: TypeAlias = frozenset[tuple[Exponents, str]]
ANYTIME = "beta-binomial"
ONCE = "that no run tries an event twice whose interval says so (no path of the policy's chain does)"


def of_intervals(part: Part, data: Data) -> Iterator[HalfSpace]:
    """Yield both sides of the interval of each event, which is proved from its trials."""
    error, method, n = part["error"].number(), part["method"].text(), len(data.names)
    require(method in _EXCLUDED, f"{part.place}: verify does not know intervals by {method[:40]!r}")
    events = [parse(item["polynomial"].text(), data.names) for item in part["list"]]
    outcomes = [f for row in data.rows for f in row.outcomes]
    needed = n_events([*outcomes, *events], n) + len(events) - n_events(events, n)  # f and 1 - f may both be events
    require(part["number"].whole() >= needed, f"{part.place}: the error is divided among too few events")
    rows_with: dict[Key, set[int]] = {}
    for number, row in enumerate(data.rows):
        for f in row.outcomes:
            rows_with.setdefault(key_of(f), set()).add(number)
    for item, event in zip(part["list"], events, strict=True):
        successes, trials = trials_of(data, event, item["trials"], rows_with.get(key_of(event), set()))
        once = item["once"].truth()
        require(not once or data.sampling == "trajectories", f"{item.place}: these data are not runs")
        is_excluded = _EXCLUDED[method if once or data.sampling == "independent" else ANYTIME]
        lower, upper = item["lower"].number(), item["upper"].number()
        for end, is_trivial, side in ((lower, lower <= 0, -1), (upper, upper >= 1, 1)):
            holds = is_trivial or (0 < end < 1 and is_excluded(successes, trials, end, error, side))
            require(holds, f"{item.place}: the interval from {trials} trials is too narrow")
        yield below(event, upper, n)
        yield below(multiply(constant(fmpq(-1), n), event), -lower, n)


def trials_of(data: Data, event: Polynomial, part: Part, needed: set[int]) -> tuple[int, int]:
    """Return how often an event with this probability happened and was tried, given rows and outcomes of each.

    Rows that have it as an outcome are needed.
    """
    successes = total = 0
    used: set[int] = set()
    for trial in part:
        number = trial[0].whole(len(data.rows))
        require(number not in used, f"{trial.place}: a visit is one trial of an event, not two")
        used.add(number)
        row = data.rows[number]
        happens = {place.whole(len(row.outcomes)) for place in trial[1]}
        same = add(*(row.outcomes[i] for i in happens)) == event
        require(same, f"{trial.place}: these outcomes do not have the probability of the event")
        successes, total = successes + sum(row.seen["all"][i] for i in happens), total + sum(row.seen["all"])
    require(needed <= used, f"{part.place}: rows that try the event are left out")
    return successes, total


def key_of(polynomial: Polynomial) -> Key:
    """Return what is equal exactly for equal polynomials."""
    return frozenset((exponents, str(c)) for exponents, c in polynomial.items())


def n_events(polynomials: list[Polynomial], n: int) -> int:
    """Return how many polynomials depend on parameters and differ, where f and 1 - f are one."""
    minus, one = constant(fmpq(-1), n), constant(fmpq(1), n)
    pairs = {frozenset((key_of(f), key_of(add(one, multiply(minus, f))))) for f in polynomials if not is_constant(f)}
    return len(pairs)


def _beta_binomial(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
    """Return whether bets on all shares of successes, under Beta(1/2, 1/2), reach 1/error at an end and beyond it."""
    if side * (end * trials - successes) < 0:
        return False
    k, m, p = successes, trials - successes, arb(end)
    mixture = (arb(k) + 0.5).lgamma() + (arb(m) + 0.5).lgamma() - arb(trials + 1).lgamma() - arb.pi().log()
    return bool(mixture - k * p.log() - m * (-p).log1p() >= -arb(error).log())


def _clopper_pearson(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
    """Return whether the tail of the binomial law at an end has at most half of the error."""
    k, m = (successes, trials - successes) if side < 0 else (trials - successes, successes)
    p = arb(end) if side < 0 else 1 - arb(end)
    return k > 0 and bool(p.beta_lower(arb(k), arb(m + 1), regularized=1) <= arb(error) / 2)


def _hoeffding(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
    """Return whether an end is at least sqrt(ln(2 / error) / (2 trials)) away from the share of successes."""
    away = side * (end * trials - successes)
    return away > 0 and bool(arb(away * away) >= trials * (2 / arb(error)).log() / 2)


_EXCLUDED: dict[str, Callable[[int, int, Exact, Exact, int], bool]] = {
    ANYTIME: _beta_binomial,
    "clopper-pearson": _clopper_pearson,
    "hoeffding": _hoeffding,
}


def check_once(part: Part, data: Data, chain: Chain) -> bool:
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
        bits = here[node] | after[node]
        for earlier in before[node]:
            if bits & ~after[earlier]:
                after[earlier] |= bits
                waiting.append(earlier)
    return after
