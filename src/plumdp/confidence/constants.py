"""Tests the numbers that a model fixes, and says which of them the data exclude.

Two kinds of numbers do not depend on parameters. One is the probability of a transition, if it is a constant. The other
is the share 1/m of each of m transitions of a row with the same expression, among the visits that end in one of them.
If the model is right, every such visit is a trial with exactly this probability, whatever came before. Thus the number
lies in each interval that is valid for how the data were sampled, but for the error of the interval. Rows that fix the
same numbers are tested together as well, because an error too small to be seen in any of them may be seen in all.

If rows may be off by a tolerance in total variation, constants are tested with intervals that allow for it. Shares are
not tested then, as their trials are visits that end in one of some transitions, among which rows may be off by more.

The model alone decides what is tested, and the error is divided by the number of tests. So if the model is right, the
probability that any of its numbers is ever excluded is at most the error (union bound).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, log, pi
from typing import NamedTuple

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.binomial import sampled_interval, tolerant_interval, widened
from plumdp.confidence.observations import tried_once
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, read_only, sum_by
from plumdp.model.parametric import ParametricMDP, find_row_classes
from plumdp.model.space import float_above, float_below
from plumdp.model.text import number_of

ROW = NONE = -1
_NOTHING = np.zeros(0, dtype=np.int32)
_NAMED = 3  # excluded numbers that are described, those with the most evidence against them


@dataclass(frozen=True, eq=False)
class FixedNumbers:
    """Transitions with a fixed probability among the visits of their row, or of transitions with the same expression.

    Rows with the same constants, and as many other transitions, are one class. So are all groups of m transitions with
    one expression. Equal constants of a row, and the members of a group, are told apart by their order in the row. If
    there are only two outcomes, one test is enough.
    """

    transition: IntArray  # (n)
    choice: IntArray  # (n)
    group: IntArray  # (n): the group whose visits are the trials, or ROW
    number: IntArray  # (n), index into numbers
    pooled: IntArray  # (n): the test of its class that it also counts for, or NONE
    n_pooled: int
    members: IntArray  # (n_members): the transitions of all groups
    group_of_member: IntArray  # (n_members)
    numbers: tuple[Fraction, ...]
    below: FloatArray  # (n_numbers): the largest float that is at most the number
    above: FloatArray  # (n_numbers): the smallest float that is at least the number
    rest: FloatArray  # (n_numbers): the largest float that is at most one minus the number

    def __len__(self) -> int:
        return len(self.transition)

    def constants_only(self) -> FixedNumbers:
        """Return the constants alone, without the shares of equal expressions."""
        kept = self.group == ROW
        if kept.all():
            return self
        tests, pooled = np.unique(self.pooled[kept], return_inverse=True)
        is_first_none = bool(len(tests)) and tests[0] == NONE
        nothing = read_only(_NOTHING)
        return replace(
            self,
            transition=_joined(self.transition[kept]),
            choice=_joined(self.choice[kept]),
            group=_joined(self.group[kept]),
            number=_joined(self.number[kept]),
            pooled=_joined(pooled - is_first_none),
            n_pooled=len(tests) - is_first_none,
            members=nothing,
            group_of_member=nothing,
        )

    def trials(self, counts: TransitionCounts) -> CountArray:
        """Return the number of trials of each number (n)."""
        visits = counts.visits[self.choice]
        if not len(self.members):
            return visits
        of_group = sum_by(self.group_of_member, counts.counts[self.members], int(self.group_of_member[-1]) + 1)
        return np.where(self.group == ROW, visits, of_group[self.group])


def find_fixed_numbers(model: ParametricMDP) -> FixedNumbers:
    """Return the numbers of a model that no parameter changes and that data can contradict.

    >>> from plumdp import case_study
    >>> len(find_fixed_numbers(case_study("betting:25").model))  # rows are (f, 1 - f), or a single transition
    0
    """
    row_of_choice, constants, shares = _in_distinct_rows(model)
    first = model.graph.first_transition
    n_tests = constants.n_pooled
    choice, item = _expand(constants, row_of_choice, constants.is_test)
    of_group, member = _expand(shares, row_of_choice)
    group = np.cumsum(_is_new(of_group, shares.block[member]), dtype=np.int32) - 1
    members, is_test = first[of_group] + shares.position[member], shares.is_test[member]
    pooled = np.where(shares.pooled == NONE, NONE, shares.pooled + n_tests)
    numbers = (*constants.numbers, *shares.numbers)
    return FixedNumbers(
        _joined(first[choice] + constants.position[item], members[is_test]),
        _joined(choice, of_group[is_test]),
        _joined(np.full(len(item), ROW), group[is_test]),
        _joined(constants.number[item], (shares.number + len(constants.numbers))[member[is_test]]),
        _joined(constants.pooled[item], pooled[member[is_test]]),
        n_tests + shares.n_pooled,
        _joined(members),
        _joined(group),
        numbers,
        read_only(np.array([float_below(x) for x in numbers])),
        read_only(np.array([float_above(x) for x in numbers])),
        read_only(np.array([float_below(1 - x) for x in numbers])),
    )


class _Part(NamedTuple):
    """Fixed numbers of one kind in the distinct rows, in blocks of constants or of equal expressions."""

    row: Indices  # (n)
    position: Indices  # (n): within the row
    block: Indices  # (n)
    number: Indices  # (n), index into numbers
    is_test: BoolArray  # (n): not so for the second of two outcomes
    pooled: Indices  # (n)
    n_pooled: int
    numbers: list[Fraction]


def _in_distinct_rows(model: ParametricMDP) -> tuple[IntArray, _Part, _Part]:
    """Return the distinct row of each choice, and the constants and the shares of distinct rows."""
    first, unknown = model.graph.first_transition, model.expressions.is_unknown
    size = np.diff(first)
    may_fix = (size > 2) | ((size == 2) & ~unknown[model.expression[first[:-1]]])  # pairs (f, f) are constant
    distinct = (model.rows.number, model.rows.representative) if may_fix.any() else (_NOTHING, _NOTHING)
    row_of_choice, representative = distinct
    n_choices = np.bincount(row_of_choice, minlength=len(representative))
    rows = np.flatnonzero(may_fix[representative])
    size, start = size[representative[rows]], first[representative[rows]]
    row, position = np.repeat(rows, size), np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    expression = model.expression[np.repeat(start, size) + position]
    order = np.argsort(row * len(unknown) + expression, kind="stable")  # equal ones by position
    row, position, expression = row[order], position[order], expression[order]
    size = np.diff(first)[representative]
    is_constant = ~unknown[expression]
    fixed, shared = ((row[part], position[part], expression[part]) for part in (is_constant, ~is_constant))
    return row_of_choice, _constants(model, *fixed, size, n_choices), _shares(*shared, n_choices)


def _constants(
    model: ParametricMDP, row: Indices, position: Indices, expression: IntArray, size: Indices, n_choices: Indices
) -> _Part:
    """Return the constants of rows, where a row is a block and its class has the same constants and as many others."""
    start = np.flatnonzero(_is_new(row))
    n_constants, rows = np.diff(np.append(start, len(row))), row[start]
    items = np.insert(expression, start, len(model.expressions) + size[rows] - n_constants)
    first = np.append(start, len(row)) + np.arange(len(start) + 1)
    class_of_row = find_row_classes(first.astype(np.int32), items).number
    values, number = np.unique(expression, return_inverse=True)
    numbers = [model.expressions.polynomials[f].constant for f in values.tolist()]
    n_tests = np.where(size[rows] > 2, n_constants, 1)
    block = np.repeat(np.arange(len(start)), n_constants)
    return _Part(row, position, block, number, *_pooled(block, n_tests, class_of_row, n_choices[rows]), numbers)


def _shares(row: Indices, position: Indices, expression: IntArray, n_choices: Indices) -> _Part:
    """Return the blocks of transitions that share an expression, where blocks of one size are a class."""
    size = np.diff(np.append(np.flatnonzero(_is_new(row, expression)), len(row)))
    is_shared = np.repeat(size > 1, size)
    row, position, size = row[is_shared], position[is_shared], size[size > 1]
    block = np.repeat(np.arange(len(size)), size)
    sizes, class_of_block = np.unique(size, return_inverse=True)
    rows = row[np.cumsum(size) - size]
    tests = _pooled(block, np.where(size > 2, size, 1), class_of_block, n_choices[rows])
    return _Part(row, position, block, class_of_block[block], *tests, [Fraction(1, m) for m in sizes.tolist()])


def _pooled(
    block: Indices, n_tests: Indices, class_of_block: Indices, n_choices: Indices
) -> tuple[BoolArray, Indices, int]:
    """Return which numbers are tested, the test of its class that each counts for, and the number of these tests.

    The first ``n_tests`` of each block are tested. A class is tested if at least two choices have such a block.
    """
    rank = np.arange(len(block)) - np.searchsorted(block, block)
    is_several = np.bincount(class_of_block, n_choices) > 1
    of_class = np.zeros(len(is_several), dtype=np.int64)
    of_class[class_of_block] = n_tests
    of_class[~is_several] = 0
    classes, first = class_of_block[block], np.cumsum(of_class) - of_class
    return rank < n_tests[block], np.where(is_several[classes], first[classes] + rank, NONE), int(of_class.sum())


def _expand(part: _Part, row_of_choice: IntArray, which: BoolArray | None = None) -> tuple[IntArray, Indices]:
    """Return all pairs of a choice and an item, or one of some items, of its distinct row."""
    items = np.arange(len(part.row)) if which is None else np.flatnonzero(which)
    n_items = np.bincount(part.row[items], minlength=int(row_of_choice.max(initial=-1)) + 1).astype(np.int32)
    first = np.cumsum(n_items, dtype=np.int32) - n_items
    has_items = np.flatnonzero((n_items > 0)[row_of_choice]) if len(items) else _NOTHING
    row = row_of_choice[has_items]
    skipped = first[row] - (np.cumsum(n_items[row], dtype=np.int32) - n_items[row])
    item = np.repeat(skipped, n_items[row])
    item += np.arange(len(item), dtype=np.int32)
    return np.repeat(has_items.astype(np.int32), n_items[row]), items[item]


def _is_new(*columns: Indices) -> BoolArray:
    """Return which entries are the first, or differ from the one before in some column."""
    is_new = np.ones(len(columns[0]), dtype=np.bool_)
    is_new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return is_new


def _joined(*parts: Indices) -> IntArray:
    return read_only(np.concatenate(parts).astype(np.int32, copy=False))


def excluded_numbers(
    model: ParametricMDP,
    fixed: FixedNumbers,
    counts: TransitionCounts,
    *,
    error: float,
    confidence: float,
    model_tolerance: float = 0.0,
) -> tuple[str, ...]:
    """Return in words the fixed numbers that the data exclude.

    If all are right, the probability that one is ever excluded is at most the error.

    Intervals are Clopper–Pearson where the number of trials says nothing about outcomes, and beta-binomial otherwise,
    as in ``expression_bounds``. The texts name ``confidence``, which is at most 1 - error. With a ``model_tolerance``,
    constants are excluded if rows that are off by no more than that could not explain the data.

    >>> from plumdp import ParameterSpace, explore
    >>> def toss(state):
    ...     return {"toss": [(0.5, state._replace(heads=True)), (0.5, state._replace(heads=False))]}
    >>> coin = explore(toss, {"heads": False}, space=ParameterSpace.unit())
    >>> counts = TransitionCounts(coin.graph, np.array([90, 10, 25, 25]), "adaptive")
    >>> for text in excluded_numbers(coin, find_fixed_numbers(coin), counts, error=0.001, confidence=0.999):
    ...     print(text)  # doctest: +NORMALIZE_WHITESPACE
    state (heads=false), action 'toss', successor (heads=true): the model says 0.5, seen 90 of 100 times
    (between 0.708 and 0.985 with confidence 99.9 %)
    """
    fixed = fixed.constants_only() if model_tolerance else fixed
    if not len(fixed):
        return ()
    of_alone, of_together = _errors(fixed, error)
    tests = _alone(fixed, counts)
    alone = _failures(fixed, counts, tests, of_alone, model_tolerance)
    together = _failures(fixed, counts, _together(fixed, tests), of_together, model_tolerance)
    is_new = ~np.isin(together.test, fixed.pooled[alone.test])  # a class is described unless one of its rows is
    sure = f"{100 * confidence:.10g} %" + (
        f", if rows are off by at most {model_tolerance:g}" if model_tolerance else ""
    )
    texts = [_describe(model, fixed, int(alone.test[i]), alone, i, sure) for i in _worst(alone.surprise)]
    for i in np.flatnonzero(is_new)[_worst(together.surprise[is_new])].tolist():
        members = np.flatnonzero(fixed.pooled == together.test[i])
        example = _describe(model, fixed, int(members[0]), together, i, sure)
        texts.append(f"{len(members):,} rows with the same fixed numbers together, such as {example}")
    more = len(alone.test) + int(is_new.sum()) - len(texts)
    return (*texts, number_of(more, "more fixed number")) if more else tuple(texts)


def strongest_evidence(fixed: FixedNumbers, counts: TransitionCounts, *, error: float) -> float:
    """Return the evidence in nats against the most suspicious number, rounded down; above zero, it is excluded.

    A test is the Krichevsky–Trofimov mixture of trials against the number. Its wealth reaches the inverse of its share
    of the error at any time with probability at most that share (Ville's inequality), however the data were sampled.
    """
    if not len(fixed):
        return -inf
    alone = _alone(fixed, counts)
    parts = zip((alone, _together(fixed, alone)), _errors(fixed, error), strict=True)
    return max(_largest_wealth(fixed, tests) + log(part) for tests, part in parts)


def _errors(fixed: FixedNumbers, error: float) -> tuple[float, float]:
    """Return the error of each test of a single row and that of each test of a class, which have half of it each."""
    half = equal_parts(error, 2 if fixed.n_pooled else 1)
    return equal_parts(half, len(fixed)), equal_parts(half, fixed.n_pooled)


def _largest_wealth(fixed: FixedNumbers, tests: _Tests) -> float:
    """Return the largest of ln B(k + 1/2, m + 1/2) - ln π - k ln x - m ln(1 - x), rounded down."""
    from scipy.special import betaln, xlogy

    tried = np.flatnonzero(tests.trials)
    k, m = tests.successes[tried].astype(np.float64), (tests.trials - tests.successes)[tried].astype(np.float64)
    number = tests.number[tried]
    mixture, lost = betaln(k + 0.5, m + 0.5), xlogy(k, fixed.above[number]) + xlogy(m, 1 - fixed.below[number])
    with np.errstate(invalid="ignore"):
        wealth = mixture - log(pi) - lost - 1e-13 * (np.abs(mixture) + np.abs(lost) + k + m)
    return float(np.nan_to_num(wealth, nan=-inf).max(initial=-inf))


class _Tests(NamedTuple):
    """Trials of fixed numbers, and the choices they come from, where ``choice[i]`` tries ``tried[i]``."""

    number: IntArray  # (n)
    trials: CountArray  # (n)
    successes: CountArray  # (n)
    choice: IntArray
    tried: Indices


class _Failures(NamedTuple):
    """Tests that failed, with the bounds on the probability that do not hold the fixed number."""

    test: Indices  # (n)
    trials: CountArray  # (n)
    successes: CountArray  # (n)
    lower: FloatArray  # (n)
    upper: FloatArray  # (n)
    surprise: FloatArray  # (n): the log-likelihood of the best probability less that of the fixed number


def _alone(fixed: FixedNumbers, counts: TransitionCounts) -> _Tests:
    """Return one test for each fixed number."""
    successes = counts.counts[fixed.transition]
    return _Tests(fixed.number, fixed.trials(counts), successes, fixed.choice, np.arange(len(fixed)))


def _together(fixed: FixedNumbers, alone: _Tests) -> _Tests:
    """Return one test for each number of each class of several rows, given those of single rows."""
    in_class = np.flatnonzero(fixed.pooled != NONE)
    test = fixed.pooled[in_class]
    number = np.zeros(fixed.n_pooled, dtype=np.int32)
    number[test] = alone.number[in_class]
    trials, successes = (sum_by(test, counts[in_class], fixed.n_pooled) for counts in (alone.trials, alone.successes))
    return _Tests(number, trials, successes, fixed.choice[in_class], test)


def _failures(
    fixed: FixedNumbers, counts: TransitionCounts, tests: _Tests, error: float, model_tolerance: float
) -> _Failures:
    """Return the tests whose interval, at the given error and widened by a model tolerance, does not hold their number.

    Most numbers are close to the observed share, and no interval is calculated for them. If an interval at this error
    leaves out the number, the data have a probability below the error under it (Clopper–Pearson), or they are more
    than 1 / error times as likely under another number (beta-binomial). Their probability under the number is at least
    exp(-surprise) / sqrt(2 trials).
    """
    tried = np.flatnonzero(tests.trials)
    surprise = _surprise(fixed, tests, tried)
    doubt = np.log(2 * tests.trials[tried]) / 2 + 1 + 1e-14 * tests.trials[tried]  # the last two exceed all rounding
    is_suspect = surprise + doubt > -np.log(error)
    suspect, surprise = tried[is_suspect], surprise[is_suspect]
    number, trials, successes = tests.number[suspect], tests.trials[suspect], tests.successes[suspect]
    if model_tolerance:
        lower, upper = widened(*tolerant_interval(successes, trials, error), model_tolerance)
    else:
        lower, upper = sampled_interval(successes, trials, error, _is_fixed_sample(counts, tests, suspect))
    is_out = (fixed.above[number] < lower) | (fixed.below[number] > upper)
    return _Failures(*(column[is_out] for column in (suspect, trials, successes, lower, upper, surprise)))


def _surprise(fixed: FixedNumbers, tests: _Tests, which: Indices) -> FloatArray:
    """Return n kl(k/n, number) for some tests, or slightly more, but for rounding."""
    from scipy.special import rel_entr

    trials, successes, number = tests.trials[which], tests.successes[which], tests.number[which]
    happens = rel_entr(successes, trials * fixed.below[number])
    return np.asarray(happens + rel_entr(trials - successes, trials * fixed.rest[number]))


def _is_fixed_sample(counts: TransitionCounts, tests: _Tests, which: Indices) -> BoolArray:
    """Return whether the number of trials says nothing about the outcomes, for some tests."""
    if counts.sampling != "trajectories" or not len(which):
        return np.full(len(which), counts.sampling == "independent")
    return tried_once(counts.graph, tests.choice, tests.tried, len(tests.number))[which]


def _worst(surprise: FloatArray) -> list[int]:
    worst: list[int] = np.argsort(-surprise, kind="stable")[:_NAMED].tolist()
    return worst


def _describe(model: ParametricMDP, fixed: FixedNumbers, i: int, failed: _Failures, which: int, sure: str) -> str:
    """Return a sentence that compares a fixed number with the data."""
    graph, transition, number = model.graph, fixed.transition[i], fixed.numbers[fixed.number[i]]
    successor = graph.describe_state(int(graph.successor[transition]))
    where = f"{graph.describe_choice(int(fixed.choice[i]))}, successor ({successor})"
    says = f"the model says {_decimal(number)}"
    if fixed.group[i] != ROW:
        expression = model.expressions.polynomials[model.expression[transition]]
        says += f" of the visits of {number.denominator} successors with the probability {expression} each"
    share = f"seen {failed.successes[which]:,} of {failed.trials[which]:,} times"
    between = "between {} and {}".format(*_printed(failed.lower[which], failed.upper[which], number))
    return f"{where}: {says}, {share} ({between} with confidence {sure})"


def _printed(lower: float, upper: float, number: Fraction) -> tuple[str, str]:
    """Return both bounds, rounded outward to the fewest digits, at least three, that leave the number outside."""
    for digits in range(3, 18):
        low = Context(prec=digits, rounding=ROUND_FLOOR).plus(Decimal(float(lower))).normalize()
        high = Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(float(upper))).normalize()
        if not Fraction(low) <= number <= Fraction(high):
            break
    return f"{low:f}", f"{high:f}"


def _decimal(number: Fraction) -> str:
    """Return a number as a decimal if that is short, and as a fraction otherwise."""
    short = f"{float(number):.6g}"
    return short if Fraction(short) == number else str(number)


def number_surprises(fixed: FixedNumbers, counts: TransitionCounts) -> tuple[FloatArray, FloatArray]:
    """Return the most nats by which other values than the fixed numbers make the data more likely.

    The first array (n) is for single rows, the second (n_pooled) for all rows of a class together.
    """
    if not len(fixed):
        return np.zeros(0), np.zeros(0)
    alone = _alone(fixed, counts)
    together = _together(fixed, alone)
    surprises = np.zeros(len(alone.trials)), np.zeros(len(together.trials))
    for tests, surprise in zip((alone, together), surprises, strict=True):
        tried = np.flatnonzero(tests.trials)
        surprise[tried] = _surprise(fixed, tests, tried)
    return surprises
