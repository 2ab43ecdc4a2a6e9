"""Tests of the probabilities that the model fixes: which numbers in it the data exclude.

A fixed number is the probability of a transition that no parameter changes. If the model is right, every visit of its
row is a trial with exactly this probability, whatever came before: it lies in each interval that is valid for how the
data were sampled, but for the error of the interval. Rows that fix the same numbers are tested together as well, so
that an error that is too small to be seen in any of them is found in all of them.

What is tested is decided by the model alone. The error is divided by the number of tests, of the rows and of the
classes of rows: if the model is right, the probability that any number of it is ever excluded is at most the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from plumdp.confidence.binomial import beta_binomial, clopper_pearson
from plumdp.confidence.events import sum_by, tried_once
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.model.check import distinct_rows
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, IntArray, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import float_above, float_below

NONE = -1
_NAMED = 3  # so many excluded numbers are named, those first that the data speak against most


@dataclass(frozen=True, eq=False)
class FixedNumbers:
    """The transitions whose fixed probabilities are tested, each against the rest of its row, and in which classes.

    Rows with the same fixed numbers, and as many others, are one class. Equal numbers within a row are told apart by
    their order. In a row of two transitions one test is enough.
    """

    transition: IntArray  # (n_numbers)
    pooled: IntArray  # (n_numbers): the outcome of a class of several rows that it counts for as well, or NONE
    n_pooled: int
    below: FloatArray  # (n_expressions): the largest float that is at most the fixed number; 0 for other expressions
    above: FloatArray  # (n_expressions): the smallest float that is at least the fixed number
    rest: FloatArray  # (n_expressions): the largest float that is at most one minus the fixed number

    def __len__(self) -> int:
        return len(self.transition)


def find_fixed_numbers(model: ParametricMDP) -> FixedNumbers:
    """Return the fixed numbers of a model that data can contradict: those in rows of at least two transitions.

    >>> from plumdp import benchmark
    >>> len(find_fixed_numbers(benchmark("betting:25").model))  # all rows but those of one transition have parameters
    0
    """
    graph, n_expressions = model.graph, len(model.expressions)
    size = np.diff(graph.first_transition)
    is_fixed = ~model.expressions.is_unknown[model.expression]
    transition = np.flatnonzero(is_fixed & np.repeat(size > 1, size)).astype(np.int32)
    choice = choices_of(graph, transition)
    order = np.lexsort((model.expression[transition], choice))  # by position where numbers are equal
    transition, choice = transition[order], choice[order]
    rows, start, n_fixed = np.unique(choice, return_index=True, return_counts=True)
    row = np.repeat(np.arange(len(rows)), n_fixed)
    rank = np.arange(len(transition)) - start[row]
    items = np.insert(model.expression[transition], start, n_expressions + size[rows] - n_fixed)
    first = np.append(start, len(transition)) + np.arange(len(rows) + 1)
    row_class, _ = distinct_rows(first.astype(np.int32), items)
    is_test = (size[choice] > 2) | (rank == 0)
    pooled, n_pooled = _pooled(row_class, np.where(size[rows] > 2, n_fixed, 1), row, rank)
    floats = _floats(model, model.expression[transition])
    return FixedNumbers(read_only(transition[is_test]), read_only(pooled[is_test]), n_pooled, *floats)


def _floats(model: ParametricMDP, expression: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the floats below and above the given constants, and below one minus them, by expression."""
    below, above, rest = np.zeros((3, len(model.expressions)))
    for f in np.flatnonzero(np.bincount(expression, minlength=len(below))).tolist():
        number = model.expressions.polynomials[f].constant
        below[f], above[f], rest[f] = float_below(number), float_above(number), float_below(1 - number)
    return read_only(below), read_only(above), read_only(rest)


def _pooled(row_class: IntArray, n_tests: Indices, row: Indices, rank: Indices) -> tuple[IntArray, int]:
    """Return the number of each outcome in classes of several rows, NONE in the others; and how many there are."""
    n_rows = np.bincount(row_class)
    tests_of_class = np.zeros(len(n_rows), dtype=np.int64)
    tests_of_class[row_class] = n_tests
    tests_of_class[n_rows == 1] = 0
    first = np.cumsum(tests_of_class) - tests_of_class
    own = row_class[row]
    return np.where(n_rows[own] > 1, first[own] + rank, NONE).astype(np.int32), int(tests_of_class.sum())


def excluded_numbers(
    model: ParametricMDP, fixed: FixedNumbers, counts: TransitionCounts, *, error: float, confidence: float
) -> tuple[str, ...]:
    """Return in words which fixed numbers the data exclude; if all are right, nothing, but for at most the error.

    Intervals are Clopper–Pearson where the number of trials says nothing about outcomes, and beta-binomial otherwise,
    as in ``expression_bounds``. ``confidence`` is what the texts speak of, at most 1 - error.

    >>> from plumdp import ParameterSpace, explore
    >>> def toss(state):
    ...     return {"toss": [(0.5, state._replace(heads=True)), (0.5, state._replace(heads=False))]}
    >>> coin = explore(toss, {"heads": False}, space=ParameterSpace.unit())
    >>> seen = TransitionCounts(coin.graph, np.array([90, 10, 25, 25]), "adaptive")
    >>> for text in excluded_numbers(coin, find_fixed_numbers(coin), seen, error=0.001, confidence=0.999):
    ...     print(text)  # doctest: +NORMALIZE_WHITESPACE
    state (heads=false), action 'toss', successor (heads=true): the model says 0.5, seen 90 of 100 times
    (between 0.708 and 0.985 with confidence 99.9 %)
    """
    if not len(fixed):
        return ()
    share = error / 2 if fixed.n_pooled else error
    every, in_class = np.arange(len(fixed)), np.flatnonzero(fixed.pooled != NONE)
    single = _failures(model, fixed, counts, every, every, share / len(fixed))
    several = _failures(model, fixed, counts, in_class, fixed.pooled[in_class], share / max(fixed.n_pooled, 1))
    is_news = ~np.isin(several.test, fixed.pooled[single.test])  # a class with such a row needs no words of its own
    texts = [_describe(model, single, i, fixed.transition[single.test[i]], confidence) for i in _worst(single.surprise)]
    for i in np.flatnonzero(is_news)[_worst(several.surprise[is_news])].tolist():
        members = fixed.transition[fixed.pooled == several.test[i]]
        text = _describe(model, several, i, members[0], confidence)
        texts.append(f"{len(members):,} rows with the same fixed numbers together, such as {text}")
    more = len(single.test) + int(is_news.sum()) - len(texts)
    return (*texts, f"{more:,} more fixed numbers") if more else tuple(texts)


class _Failures(NamedTuple):
    """Tests that failed: what was seen, and between what bounds the probability lies, unlike the fixed number."""

    test: Indices  # (n)
    trials: CountArray  # (n)
    successes: CountArray  # (n)
    lower: FloatArray  # (n)
    upper: FloatArray  # (n)
    surprise: FloatArray  # (n): the log-likelihood of the best probability less that of the fixed number


def _failures(
    model: ParametricMDP, fixed: FixedNumbers, counts: TransitionCounts, of: Indices, test: Indices, error: float
) -> _Failures:
    """Return the tests whose interval, at the given error, does not hold their number.

    Fixed number ``of[i]`` counts for test ``test[i]``; those of one test are equal, and their trials are pooled.

    Most numbers are close to what was seen, and no interval is calculated for them. If an interval at this error leaves
    out the number, what was seen has a probability below the error under it (Clopper–Pearson), or it is that many times
    as likely under another (beta-binomial); and its probability is at least exp(-surprise) / sqrt(2 n) (Ash 1965).
    """
    transition, n_tests = fixed.transition[of], int(test.max(initial=-1)) + 1
    choice = choices_of(model.graph, transition)
    trials = sum_by(test, counts.visits[choice], n_tests)
    successes = sum_by(test, counts.counts[transition], n_tests)
    expression = np.zeros(n_tests, dtype=np.int32)
    expression[test] = model.expression[transition]
    surprise = _surprise(fixed, expression, trials, successes)
    doubt = np.log(2 * np.maximum(trials, 1)) / 2 + 1 + 1e-14 * trials  # and what rounding may be off
    suspect = np.flatnonzero(surprise + doubt > -np.log(error))
    is_fixed = _is_fixed_sample(counts, choice, test, suspect)
    lower, upper = np.empty(len(suspect)), np.empty(len(suspect))
    for method, part in ((clopper_pearson, is_fixed), (beta_binomial, ~is_fixed)):
        lower[part], upper[part] = method(successes[suspect[part]], trials[suspect[part]], error)
    out = (fixed.above[expression[suspect]] < lower) | (fixed.below[expression[suspect]] > upper)
    found = suspect[out]
    return _Failures(found, trials[found], successes[found], lower[out], upper[out], surprise[found])


def _surprise(fixed: FixedNumbers, expression: IntArray, trials: CountArray, successes: CountArray) -> FloatArray:
    """Return n kl(k/n, number) for each test, or slightly more, up to rounding."""
    from scipy.special import rel_entr

    happens = rel_entr(successes, trials * fixed.below[expression])
    fails = rel_entr(trials - successes, trials * fixed.rest[expression])
    return np.asarray(happens + fails)


def _is_fixed_sample(counts: TransitionCounts, choice: IntArray, test: Indices, which: Indices) -> BoolArray:
    """Return for some tests whether the number of their trials says nothing about the outcomes."""
    if counts.sampling != "trajectories" or not len(which):
        return np.full(len(which), counts.sampling == "independent")
    return tried_once(counts.graph, choice, test, int(test.max()) + 1)[which]


def _worst(surprise: FloatArray) -> list[int]:
    worst: list[int] = np.argsort(-surprise, kind="stable")[:_NAMED].tolist()
    return worst


def _describe(model: ParametricMDP, failed: _Failures, i: int, transition: int, confidence: float) -> str:
    graph = model.graph
    number = model.expressions.polynomials[model.expression[transition]].constant
    where = f"{graph.describe_choice(int(choices_of(graph, np.array([transition]))[0]))}"
    successor = f"successor ({graph.describe_state(int(graph.successor[transition]))})"
    low, high = _printed(failed.lower[i], failed.upper[i], number)
    seen = f"seen {failed.successes[i]:,} of {failed.trials[i]:,} times"
    return (
        f"{where}, {successor}: the model says {_decimal(number)}, {seen} "
        f"(between {low} and {high} with confidence {100 * confidence:.10g} %)"
    )


def _printed(lower: float, upper: float, number: Fraction) -> tuple[str, str]:
    """Return both bounds, rounded outward to as few digits, three at least, as leave the number outside."""
    for digits in range(3, 18):
        low = Context(prec=digits, rounding=ROUND_FLOOR).plus(Decimal(lower)).normalize()
        high = Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(upper)).normalize()
        if not low <= Decimal(number.numerator) / Decimal(number.denominator) <= high:
            break
    return f"{low:f}", f"{high:f}"


def _decimal(number: Fraction) -> str:
    """Return a number as a decimal if it is a short one, otherwise as a fraction."""
    short = f"{float(number):.6g}"
    return short if Fraction(short) == number else str(number)


def choices_of(graph: Graph, transition: Indices) -> IntArray:
    """Return the choice of each of some transitions."""
    return (np.searchsorted(graph.first_transition, transition, side="right") - 1).astype(np.int32)
