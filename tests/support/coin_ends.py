"""One coin whose throws end whenever an adversary likes, with pilots by several rules: how often the truth is missed.

For each end n there is a pilot: some of the first throws, or of the last. Bets on both sides are made by the pilot and
judged by the rest. The adversary takes the worst end of all. Ends are n = 40, …, 200,000, about evenly spaced in ln n.
"""

from collections.abc import Callable
from math import log
from typing import NamedTuple

import numpy as np
from bet_tables import place_bets
from row_models import row_model

import plumdp as pl
from plumdp.confidence.bets import half_space
from plumdp.confidence.estimates import information
from plumdp.confidence.likelihood_table import likelihood_table

(p,) = pl.parameters("p")
COIN = likelihood_table(row_model([[p, 1 - p]], pl.ParameterSpace.unit("p")))
HEADS, TAILS = COIN.outcomes.index(p), COIN.outcomes.index(1 - p)


class Rule(NamedTuple):
    """How many throws are the pilot of an end n, and the share of the error that its bets may use."""

    size: Callable[[int], int]
    weight: Callable[[int], float] = lambda n: 1.0
    ratio: float = 9.0  # of main to pilot data, as planned
    is_last: bool = False  # the pilot is taken from the end


def largest_power(n: int, *, n_powers: int = 6) -> int:
    """Return the largest of 16, 64, 256, …, so many of them, that is at most an eighth of n; zero if there is none."""
    return max((size for size in (16 * 4**i for i in range(n_powers)) if 8 * size <= n), default=0)


RULES = {
    "1,000 throws, planned": Rule(lambda n: 1000 if n > 1000 else 0),
    "20 throws, planned": Rule(lambda n: 20),
    "powers of four with weights": Rule(largest_power, lambda n: 1 / 6, 16.0),
    "many powers without weights": Rule(lambda n: 2 ** (n // 10).bit_length() // 2, ratio=13.0),
    "the first tenth": Rule(lambda n: n // 10),
    "the first twentieth": Rule(lambda n: n // 20, ratio=19.0),
    "the last tenth": Rule(lambda n: n // 10, is_last=True),
}


def ends(n_ends: int, first: int = 40, last: int = 200_000) -> np.ndarray:
    """Return different numbers of throws, about evenly spaced in their logarithms."""
    return np.unique(np.geomspace(first, last, n_ends).round().astype(np.int64))


def miss_rate(rule: Rule, chance: float, *, error: float, n_repetitions: int, n_ends: int, seed: int = 1) -> float:
    """Return the share of repetitions in which some end, with the pilot of that end, excludes the true chance."""
    rng = np.random.default_rng(seed)
    stops = ends(n_ends)
    sizes = np.array([rule.size(n) for n in stops.tolist()])
    cuts = stops - sizes if rule.is_last else sizes
    times = np.unique(np.concatenate([stops, cuts]))
    heads = np.cumsum(rng.binomial(np.diff(times, prepend=0), chance, (n_repetitions, len(times))), axis=1)
    missed = np.zeros(n_repetitions, dtype=bool)
    for n, size, cut in zip(stops.tolist(), sizes.tolist(), cuts.tolist(), strict=True):
        if 0 < size < n:
            until_cut, all_heads = (heads[:, np.searchsorted(times, t)] for t in (cut, n))
            pilot = all_heads - until_cut if rule.is_last else until_cut
            missed |= excluded(pilot, size, all_heads - pilot, n - size, chance, rule.weight(n) * error, rule.ratio)
    return float(missed.mean())


def excluded(pilot, size, heads, n, chance, error, ratio) -> np.ndarray:
    """Return where the bets of pilots (heads of size) exclude the chance, given the main data (heads of n)."""
    different, which = np.unique(pilot, return_inverse=True)
    found = np.zeros(len(pilot), dtype=bool)
    for side in (1, -1):
        factors = np.array([bets(k, size, error / 2, side, ratio) for k in different.tolist()])
        u, mean = np.log(factors), chance * factors[:, HEADS] + (1 - chance) * factors[:, TAILS]
        process = heads * u[which, HEADS] + (n - heads) * u[which, TAILS] - n * np.log(mean)[which]
        found |= process >= -log(error / 2)
    return found


def bets(heads: int, size: int, error: float, side: int, ratio: float) -> np.ndarray:
    """Return the factors (2) that a pilot of so many throws places; its estimate counts one more of each side."""
    point, seen = np.array([(heads + 1) / (size + 2)]), np.empty(2)
    seen[HEADS], seen[TAILS] = heads + 1, size - heads + 1
    return place_bets(COIN, point, ratio * information(COIN, seen, point), np.ones(1), error=error, side=side)


def excluded_by_half_spaces(pilot, size, heads, n, chance, error, ratio) -> bool:
    """Return what ``excluded`` does for one repetition, from half-spaces with tangents at the true chance."""
    seen = np.empty(2)
    seen[HEADS], seen[TAILS] = heads, n - heads
    for side in (1, -1):
        factors = bets(pilot, size, error / 2, side, ratio)
        found = half_space(COIN, seen, factors, near=np.array([chance]), error=error / 2)
        if found.row[0] * chance > found.offset:
            return True
    return False
