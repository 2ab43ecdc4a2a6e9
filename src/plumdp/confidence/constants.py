"""Tests of the numbers that the model fixes: which of them the data exclude.

Two kinds of numbers do not depend on parameters: the probability of a transition, if it is a constant; and the share
1/m of each of m transitions of a row with one and the same expression, among the visits that end in one of them. If the
model is right, every such visit is a trial with exactly this probability, whatever came before. Thus the number lies in
each interval that is valid for how the data were sampled, but for the error of the interval. Rows that fix the same
numbers are tested together as well: an error that is too small to be seen in any of them may be seen in all of them.

If rows may be off by a misfit in total variation, constants are tested with intervals that allow for it, and shares are
not tested: their trials are visits that end in one of some transitions, among which rows may be off by more.

What is tested is decided by the model alone, and the error is divided by the number of tests: if the model is right,
the probability that any of its numbers is excluded, at any time, is at most the error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, log, pi
from typing import NamedTuple

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.binomial import beta_binomial, clopper_pearson, tolerant_interval, widened
from plumdp.confidence.event_counts import sum_by, tried_once
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.model.check import distinct_rows, row_classes
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import float_above, float_below

ROW = NONE = -1
_NOTHING = np.zeros(0, dtype=np.int32)
_NAMED = 3  # so many excluded numbers are described, those first that the data speak against most


@dataclass(frozen=True, eq=False)
class FixedNumbers:
    """Transitions whose number is tested against the rest: of the row, or of those with the same expression.

    Rows with the same constants, and as many other transitions, are one class; so are all groups of m transitions with
    one expression. Equal constants of a row, and the members of a group, are told apart by their order in the row. If
    there are but two outcomes, one test is enough.
    """

    transition: IntArray  # (n)
    choice: IntArray  # (n)
    group: IntArray  # (n): the group whose visits are the trials, or ROW
    number: IntArray  # (n), index into numbers
    pooled: IntArray  # (n): the test of a class that it counts for as well, or NONE
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
        used, pooled = np.unique(self.pooled[kept], return_inverse=True)
        is_first_none = bool(len(used)) and used[0] == NONE
        nothing = read_only(_NOTHING)
        return replace(
            self,
            transition=_joined(self.transition[kept]),
            choice=_joined(self.choice[kept]),
            group=_joined(self.group[kept]),
            number=_joined(self.number[kept]),
            pooled=_joined(pooled - is_first_none),
            n_pooled=len(used) - is_first_none,
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
    """Fixed numbers of one kind in the distinct rows, in blocks: the constants of a row, or equal expressions."""

    row: Indices  # (n)
    position: Indices  # (n): within the row
    block: Indices  # (n)
    number: Indices  # (n), index into numbers
    is_test: BoolArray  # (n): not so for the second of two outcomes
    pooled: Indices  # (n)
    n_pooled: int
    numbers: list[Fraction]


def _in_distinct_rows(model: ParametricMDP) -> tuple[IntArray, _Part, _Part]:
    """Return for each choice its distinct row, and the constants and the shares of these."""
    first, unknown = model.graph.first_transition, model.expressions.is_unknown
    size = np.diff(first)
    may_fix = (size > 2) | ((size == 2) & ~unknown[model.expression[first[:-1]]])  # pairs (f, f) are constant
    row_of_choice, representative = row_classes(model) if may_fix.any() else (_NOTHING, _NOTHING)
    n_choices = np.bincount(row_of_choice, minlength=len(representative))
    rows = np.flatnonzero(may_fix[representative])
    size, start = size[representative[rows]], first[representative[rows]]
    row, position = np.repeat(rows, size), np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    expression = model.expression[np.repeat(start, size) + position]
    order = np.argsort(row * len(unknown) + expression, kind="stable")  # equal ones by position
    row, position, expression = row[order], position[order], expression[order]
    size = np.diff(first)[representative]
    known = ~unknown[expression]
    constants = _constants(model, row[known], position[known], expression[known], size, n_choices)
    return row_of_choice, constants, _shares(row[~known], position[~known], expression[~known], n_choices)


def _constants(
    model: ParametricMDP, row: Indices, position: Indices, expression: IntArray, size: Indices, n_choices: Indices
) -> _Part:
    """Return the constants of rows: a row is a block, and its class has the same constants and as many others."""
    start = np.flatnonzero(_is_new(row))
    n_constants, rows = np.diff(np.append(start, len(row))), row[start]
    items = np.insert(expression, start, len(model.expressions) + size[rows] - n_constants)
    first = np.append(start, len(row)) + np.arange(len(start) + 1)
    class_of_row, _ = distinct_rows(first.astype(np.int32), items)
    values, number = np.unique(expression, return_inverse=True)
    numbers = [model.expressions.polynomials[f].constant for f in values.tolist()]
    n_tests = np.where(size[rows] > 2, n_constants, 1)
    block = np.repeat(np.arange(len(start)), n_constants)
    return _Part(row, position, block, number, *_pooled(block, n_tests, class_of_row, n_choices[rows]), numbers)


def _shares(row: Indices, position: Indices, expression: IntArray, n_choices: Indices) -> _Part:
    """Return the transitions that share an expression: they are a block, and as many of them are its class."""
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
    """Return which numbers are tested, the test of its class that each counts for, and how many of these there are.

    Of each block the first ``n_tests`` are tested; ``n_choices`` have such a block, and a class needs two of them.
    """
    rank = np.arange(len(block)) - np.searchsorted(block, block)
    is_several = np.bincount(class_of_block, n_choices) > 1
    of_class = np.zeros(len(is_several), dtype=np.int64)
    of_class[class_of_block] = n_tests
    of_class[~is_several] = 0
    own, first = class_of_block[block], np.cumsum(of_class) - of_class
    return rank < n_tests[block], np.where(is_several[own], first[own] + rank, NONE), int(of_class.sum())


def _expand(part: _Part, row_of_choice: IntArray, which: BoolArray | None = None) -> tuple[IntArray, Indices]:
    """Return for each choice and each item of its distinct row, or only some of them, the choice and the item."""
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
    """Return which entries differ from the one before in some column; the first does."""
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
    misfit: float = 0.0,
) -> tuple[str, ...]:
    """Return in words which fixed numbers the data exclude; if all are right, nothing, but for at most the error.

    Intervals are Clopper–Pearson where the number of trials says nothing about outcomes, and beta-binomial otherwise,
    as in ``expression_bounds``. ``confidence`` is what the texts speak of, at most 1 - error. With a ``misfit``,
    constants are excluded if rows that are off by no more could not explain what was seen.

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
    fixed = fixed.constants_only() if misfit else fixed
    if not len(fixed):
        return ()
    of_alone, of_together = _errors(fixed, error)
    tests = _alone(fixed, counts)
    alone = _failures(fixed, counts, tests, of_alone, misfit)
    together = _failures(fixed, counts, _together(fixed, tests), of_together, misfit)
    is_unsaid = ~np.isin(together.test, fixed.pooled[alone.test])  # a class needs no words if one of its rows has some
    sure = f"{100 * confidence:.10g} %" + (f", if rows are off by at most {misfit:g}" if misfit else "")
    texts = [_describe(model, fixed, int(alone.test[i]), alone, i, sure) for i in _worst(alone.surprise)]
    for i in np.flatnonzero(is_unsaid)[_worst(together.surprise[is_unsaid])].tolist():
        members = np.flatnonzero(fixed.pooled == together.test[i])
        text = _describe(model, fixed, int(members[0]), together, i, sure)
        texts.append(f"{len(members):,} rows with the same fixed numbers together, such as {text}")
    more = len(alone.test) + int(is_unsaid.sum()) - len(texts)
    return (*texts, f"{more:,} more fixed numbers") if more else tuple(texts)


def strongest_evidence(fixed: FixedNumbers, counts: TransitionCounts, *, error: float) -> float:
    """Return by how much the data speak against the most suspicious number, in nats; above zero, it is excluded.

    A test is the Krichevsky–Trofimov mixture of trials against the number: its fortune reaches the inverse of its share
    of the error at any time with probability at most that share, however the data were sampled. Rounded down.
    """
    if not len(fixed):
        return -inf
    alone = _alone(fixed, counts)
    parts = zip((alone, _together(fixed, alone)), _errors(fixed, error), strict=True)
    return max(_largest_fortune(fixed, tests) + log(part) for tests, part in parts)


def _errors(fixed: FixedNumbers, error: float) -> tuple[float, float]:
    """Return the error of each test of a single row, and of each test of a class: both kinds have half of it."""
    half = equal_parts(error, 2 if fixed.n_pooled else 1)
    return equal_parts(half, len(fixed)), equal_parts(half, fixed.n_pooled)


def _largest_fortune(fixed: FixedNumbers, tests: _Tests) -> float:
    """Return the largest of ln B(k + 1/2, m + 1/2) - ln π - k ln x - m ln(1 - x), rounded down."""
    from scipy.special import betaln, xlogy

    seen = np.flatnonzero(tests.trials)
    k, m = tests.successes[seen].astype(np.float64), (tests.trials - tests.successes)[seen].astype(np.float64)
    number = tests.number[seen]
    mixture, lost = betaln(k + 0.5, m + 0.5), xlogy(k, fixed.above[number]) + xlogy(m, 1 - fixed.below[number])
    with np.errstate(invalid="ignore"):
        fortune = mixture - log(pi) - lost - 1e-13 * (np.abs(mixture) + np.abs(lost) + k + m)
    return float(np.nan_to_num(fortune, nan=-inf).max(initial=-inf))


class _Tests(NamedTuple):
    """Trials of fixed numbers, and from which choices they come: ``choice[i]`` tries ``tried[i]``."""

    number: IntArray  # (n)
    trials: CountArray  # (n)
    successes: CountArray  # (n)
    choice: IntArray
    tried: Indices


class _Failures(NamedTuple):
    """Tests that failed: what was seen, and between what bounds the probability lies, unlike the fixed number."""

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


def _together(fixed: FixedNumbers, own: _Tests) -> _Tests:
    """Return one test for each number of each class of several rows, given those of single rows."""
    in_class = np.flatnonzero(fixed.pooled != NONE)
    test = fixed.pooled[in_class]
    number = np.zeros(fixed.n_pooled, dtype=np.int32)
    number[test] = own.number[in_class]
    trials, successes = (sum_by(test, seen[in_class], fixed.n_pooled) for seen in (own.trials, own.successes))
    return _Tests(number, trials, successes, fixed.choice[in_class], test)


def _failures(fixed: FixedNumbers, counts: TransitionCounts, tests: _Tests, error: float, misfit: float) -> _Failures:
    """Return the tests whose interval, at the given error, does not hold their number; with a misfit, a wider one.

    Most numbers are close to what was seen, and no interval is calculated for them. If an interval at this error leaves
    out the number, what was seen has a probability below the error under it (Clopper–Pearson), or it is more than that
    many times as likely under another (beta-binomial); and its probability is at least exp(-surprise) / sqrt(2 trials).
    """
    seen = np.flatnonzero(tests.trials)
    surprise = _surprise(fixed, tests, seen)
    doubt = np.log(2 * tests.trials[seen]) / 2 + 1 + 1e-14 * tests.trials[seen]  # the last two: more than rounding does
    is_suspect = surprise + doubt > -np.log(error)
    suspect, surprise = seen[is_suspect], surprise[is_suspect]
    number, trials, successes = tests.number[suspect], tests.trials[suspect], tests.successes[suspect]
    lower, upper = np.empty(len(suspect)), np.empty(len(suspect))
    if misfit:
        lower, upper = widened(*tolerant_interval(successes, trials, error), misfit)
    else:
        is_fixed = _is_fixed_sample(counts, tests, suspect)
        for method, part in ((clopper_pearson, is_fixed), (beta_binomial, ~is_fixed)):
            lower[part], upper[part] = method(successes[part], trials[part], error)
    is_out = (fixed.above[number] < lower) | (fixed.below[number] > upper)
    return _Failures(*(column[is_out] for column in (suspect, trials, successes, lower, upper, surprise)))


def _surprise(fixed: FixedNumbers, tests: _Tests, which: Indices) -> FloatArray:
    """Return n kl(k/n, number) for some tests, or slightly more, up to rounding."""
    from scipy.special import rel_entr

    trials, successes, number = tests.trials[which], tests.successes[which], tests.number[which]
    happens = rel_entr(successes, trials * fixed.below[number])
    return np.asarray(happens + rel_entr(trials - successes, trials * fixed.rest[number]))


def _is_fixed_sample(counts: TransitionCounts, tests: _Tests, which: Indices) -> BoolArray:
    """Return for some tests whether the number of their trials says nothing about the outcomes."""
    if counts.sampling != "trajectories" or not len(which):
        return np.full(len(which), counts.sampling == "independent")
    return tried_once(counts.graph, tests.choice, tests.tried, len(tests.number))[which]


def _worst(surprise: FloatArray) -> list[int]:
    worst: list[int] = np.argsort(-surprise, kind="stable")[:_NAMED].tolist()
    return worst


def _describe(model: ParametricMDP, fixed: FixedNumbers, i: int, failed: _Failures, which: int, sure: str) -> str:
    """Return a fixed number in words, and what was seen instead."""
    graph, transition, number = model.graph, fixed.transition[i], fixed.numbers[fixed.number[i]]
    successor = graph.describe_state(int(graph.successor[transition]))
    where = f"{graph.describe_choice(int(fixed.choice[i]))}, successor ({successor})"
    says = f"the model says {_decimal(number)}"
    if fixed.group[i] != ROW:
        expression = model.expressions.polynomials[model.expression[transition]]
        says += f" of the visits of {number.denominator} successors with the probability {expression} each"
    seen = f"seen {failed.successes[which]:,} of {failed.trials[which]:,} times"
    between = "between {} and {}".format(*_printed(failed.lower[which], failed.upper[which], number))
    return f"{where}: {says}, {seen} ({between} with confidence {sure})"


def _printed(lower: float, upper: float, number: Fraction) -> tuple[str, str]:
    """Return both bounds, rounded outward to as few digits, three at least, as leave the number outside."""
    for digits in range(3, 18):
        low = Context(prec=digits, rounding=ROUND_FLOOR).plus(Decimal(float(lower))).normalize()
        high = Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(float(upper))).normalize()
        if not Fraction(low) <= number <= Fraction(high):
            break
    return f"{low:f}", f"{high:f}"


def _decimal(number: Fraction) -> str:
    """Return a number as a decimal if it is a short one, otherwise as a fraction."""
    short = f"{float(number):.6g}"
    return short if Fraction(short) == number else str(number)


def number_surprises(fixed: FixedNumbers, counts: TransitionCounts) -> tuple[FloatArray, FloatArray]:
    """Return by how many nats other values than the fixed numbers make the data more likely: (n) and (n_pooled).

    The first are for single rows, the second for all rows of a class together.
    """
    if not len(fixed):
        return np.zeros(0), np.zeros(0)
    own = _alone(fixed, counts)
    both = []
    for tests in (own, _together(fixed, own)):
        seen = np.flatnonzero(tests.trials)
        surprise = np.zeros(len(tests.trials))
        surprise[seen] = _surprise(fixed, tests, seen)
        both.append(surprise)
    return both[0], both[1]
