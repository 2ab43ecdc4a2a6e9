"""The ErrorBudget divides the error of a certificate among its parts, so that all of them hold jointly.

A certificate with the confidence 1 - error says many things at once: that the parameters lie in a region, that bounds
hold at all of its points, that no number of the model is wrong. Each is the work of a part, such as a half-space, an
interval or a test, and each part fails on an event of its own, with a probability of at most its share of the error.
Whatever these events have to do with one another, the probability of their union is at most the sum:

    P(something said is wrong)  <=  Σ P(a part fails)  <=  Σ share · error  <=  error.

So two facts carry the confidence. The shares sum to at most one: no ``ErrorBudget`` exists of which that is not true.
And every share is fixed before the data that its part looks at, by the model, by what is known of the order of the data
and by what is asked, never by what was seen.

There are two cases. If the model is right, a certificate is wrong only if a part fails that holds the true point or
tests the model: their shares are added up. If the model is wrong, a certificate that assumes it claims nothing, and one
that contradicts it claims bounds that rest on the graph alone. These have ``graph_alone``, which is not added to the
others, as the two cases exclude each other.

A share that is divided further, among objectives, directions, events or rows, is divided equally (``equal_parts``). If
data may end at will, parts that are placed by a pilot divide theirs among all pilots that the data might have had
(``Pilot.weight``). The page "Certificates at the statistical limit" has the statements and their proofs.

Shares are exact fractions; what parts are handed are floats. The confidence set has its share rounded down, which makes
up for the roundings of all others, and a product is off by 2^-53 of itself. So everything that is handed out sums to at
most the error times 1 + 2^-51.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import nextafter
from typing import Literal, TypeAlias, get_args

Order: TypeAlias = Literal["unknown", "planned", "short", "open"]
"""The order of the data: not known, of a length that was planned, planned too short for a pilot, or ended at will."""

SetPart: TypeAlias = Literal[
    "half_spaces",
    "outcome_half_spaces",
    "likelihood_after_pilot",
    "likelihood_against_space",
    "intervals",
    "single_choices",
    "value_bets",
    "row_bets",
    "joint_bets",
    "whole_set",
]
"""The parts of a confidence set."""

OtherPart: TypeAlias = Literal[
    "evidence", "drifts", "time", "rows", "classes", "predicted_numbers", "fixed_numbers", "model_test", "graph_alone"
]
"""The parts beside a confidence set: other studies, tests of the model, and what is left if one of these fails."""

_NOTHING = Fraction(0)  # of a part that a path does not need
_TESTS = Fraction(1, 40)  # of the model as a whole
_NUMBERS = Fraction(1, 40)  # of the numbers that it fixes, once as intervals and once as predictions
_GRAPH = Fraction(1, 20)  # of bounds on the graph alone, half of it beside tests of fixed numbers
_INTERVALS, _MORE_INTERVALS = Fraction(1, 40), Fraction(3, 10)  # more, where rows have nothing else
_SET = 1 - _TESTS - 2 * _NUMBERS  # of a confidence set beside all of these

_PERCENT: dict[Order, dict[str, tuple[int, int, int, int]]] = {
    # half-spaces, those across outcomes, likelihood after the pilot, likelihood against the space
    "unknown": {"nothing": (0, 0, 0, 90), "few": (0, 0, 0, 90), "many": (0, 0, 0, 90)},
    "planned": {"nothing": (0, 0, 90, 0), "few": (80, 0, 10, 0), "many": (60, 20, 10, 0)},
    "short": {"nothing": (0, 0, 0, 90), "few": (80, 0, 0, 10), "many": (60, 20, 0, 10)},
    "open": {"nothing": (0, 0, 45, 45), "few": (50, 0, 10, 30), "many": (45, 20, 20, 5)},
}

_WORDS: dict[SetPart | OtherPart, str] = {
    "half_spaces": "half-spaces across what is asked",
    "outcome_half_spaces": "half-spaces across outcomes",
    "likelihood_after_pilot": "likelihood after the pilot",
    "likelihood_against_space": "likelihood against the space",
    "intervals": "intervals of probabilities",
    "single_choices": "intervals of single choices",
    "value_bets": "bets on the values of a table",
    "row_bets": "bets on single rows of a table",
    "joint_bets": "bets on all rows of a table together",
    "whole_set": "confidence set",
    "evidence": "evidence from other studies",
    "drifts": "tests of drifts",
    "time": "tests of changes over time",
    "rows": "tests of rows",
    "classes": "tests of tied rows",
    "predicted_numbers": "predictions of fixed numbers",
    "fixed_numbers": "intervals of fixed numbers",
    "model_test": "test of the model",
    "graph_alone": "bounds on the graph alone, if the model is wrong",
}


@dataclass(frozen=True)
class ErrorBudget:
    """The share of the error that each part of a certificate may spend, each with the event that it pays for.

    >>> budget = ErrorBudget.of_likelihood("planned", is_asked=True)
    >>> budget.half_spaces, budget.confidence_set, budget.total
    (Fraction(4, 5), Fraction(37, 40), Fraction(19, 20))
    >>> budget.error_of("graph_alone", 0.001)
    5e-05
    """

    half_spaces: Fraction = _NOTHING
    """Bets across the values that are asked for win so much that a half-space excludes the true point."""

    outcome_half_spaces: Fraction = _NOTHING
    """The same of bets across the probabilities of all outcomes, which models with many parameters have."""

    likelihood_after_pilot: Fraction = _NOTHING
    """The data after the pilot are too unlikely at the true point, against what the pilot leads to expect."""

    likelihood_against_space: Fraction = _NOTHING
    """All data are too unlikely at the true point, against their average over the space."""

    intervals: Fraction = _NOTHING
    """The interval of an event, from all of its trials, misses the probability at the true point."""

    single_choices: Fraction = _NOTHING
    """The interval of an event at one choice, widened by the misfit, misses the probability at the true point."""

    value_bets: Fraction = _NOTHING
    """Bets on temporal differences along the value that is asked for win too much at the true values of a table."""

    row_bets: Fraction = _NOTHING
    """The same of bets on the temporal differences of single rows."""

    joint_bets: Fraction = _NOTHING
    """The same of a mixture of bets on all rows together."""

    whole_set: Fraction = _NOTHING
    """A set that is drawn at once misses: intervals of all events, balls of all rows, or an ellipsoid."""

    evidence: Fraction = _NOTHING
    """The interval from the counts of another study misses the value of its expression at the true point."""

    drifts: Fraction = _NOTHING
    """Bets that a parameter drifts with a state variable or an action win although none does."""

    time: Fraction = _NOTHING
    """Bets that a row changed while the data were collected win although none did."""

    rows: Fraction = _NOTHING
    """A row is found to differ from the expressions although it does not."""

    classes: Fraction = _NOTHING
    """Rows with the same expressions are together found to differ from them although they do not."""

    predicted_numbers: Fraction = _NOTHING
    """Predictions, which are part of the p-value, reject a number that the model fixes and that is right."""

    fixed_numbers: Fraction = _NOTHING
    """An interval excludes a number that the model fixes and that is right."""

    model_test: Fraction = _NOTHING
    """The p-value of a model that is right is at most this share of the error, beside a set that is no test itself."""

    graph_alone: Fraction = _NOTHING
    """The interval of a transition misses its probability: these bounds are claimed of contradicted models only."""

    def __post_init__(self) -> None:
        """Refuse shares for which the sum of the module's docstring does not hold."""
        if any(share < 0 for _, share in self.parts()) or self.total > 1 or self.graph_alone > 1:
            raise ValueError(f"shares of an error must not be negative and sum to at most one: {self}")

    @property
    def confidence_set(self) -> Fraction:
        """The share of all parts of the confidence set, which is handed to it as one error."""
        likelihoods = self.likelihood_after_pilot + self.likelihood_against_space
        half_spaces, intervals = self.half_spaces + self.outcome_half_spaces, self.intervals + self.single_choices
        bets = self.value_bets + self.row_bets + self.joint_bets
        return half_spaces + likelihoods + intervals + bets + self.whole_set

    @property
    def total(self) -> Fraction:
        """The sum of the shares that are spent if the model is right: at most one."""
        tests = self.drifts + self.time + self.rows + self.classes + self.model_test
        return self.confidence_set + self.evidence + tests + self.predicted_numbers + self.fixed_numbers

    def parts(self) -> tuple[tuple[str, Fraction], ...]:
        """Return what is paid for, in words, each with its share; what has none is left out."""
        return tuple((words, getattr(self, part)) for part, words in _WORDS.items() if getattr(self, part))

    def error_of_set(self, error: float) -> float:
        """Return the error of the confidence set, given that of the certificate: its share is rounded down."""
        share = float(self.confidence_set)
        return (share if share <= self.confidence_set else nextafter(share, 0.0)) * error

    def error_in_set(self, part: SetPart, error: float) -> float:
        """Return the error of a part of the confidence set, given that of the set.

        The quotient is that of per cents, nearly all of which are floats without rounding.
        """
        share: Fraction = getattr(self, part)
        return float(100 * share) / float(100 * self.confidence_set) * error

    def error_of(self, part: OtherPart, error: float) -> float:
        """Return the error of a part beside the confidence set, given that of the certificate."""
        share: Fraction = getattr(self, part)
        return float(share) * error

    def with_fixed_numbers(self) -> ErrorBudget:
        """Return the budget of a model that fixes numbers, which are then tested.

        Predictions are tests beside those of a likelihood set. Other sets have them in their test of the model.
        """
        predicted = _NUMBERS if self.classes else _NOTHING
        return replace(self, fixed_numbers=_NUMBERS, predicted_numbers=predicted, graph_alone=_GRAPH / 2)

    def with_evidence(self) -> ErrorBudget:
        """Return the budget beside evidence from other studies, which has half of the largest part of the set."""
        part = max(get_args(SetPart), key=lambda name: getattr(self, name))
        half: Fraction = getattr(self, part) / 2
        return replace(self, evidence=half, **{part: half})

    @staticmethod
    def of_one_set() -> ErrorBudget:
        """Return the budget of a set that is drawn at once, beside a test of the model with a share of its own."""
        return ErrorBudget(whole_set=_SET, model_test=_TESTS, graph_alone=_GRAPH)

    @staticmethod
    def of_likelihood(
        order: Order,
        *,
        is_asked: bool,
        has_many_parameters: bool = False,
        leaves_rows_out: bool = False,
        has_time: bool = False,
    ) -> ErrorBudget:
        """Return the budget of a likelihood set, which is itself some of the tests of the model.

        If the length of the data was planned, half-spaces across what is asked take most. If not, they pay for all
        lengths that the data might have, and the likelihood against the space, which needs no order, has a good part:
        so a known order is of use with little data as well. Rows that the likelihood leaves out have nothing but
        intervals, which then have more. ``has_time`` says that parts of the data are kept as they are read, however
        many there are in the end: tests over time then have half of what those of drifts have without.
        """
        asked = "nothing" if not is_asked else "many" if has_many_parameters else "few"
        intervals = _MORE_INTERVALS if leaves_rows_out else _INTERVALS
        left = (_SET - intervals) / (_SET - _INTERVALS)
        half_spaces, outcomes, after_pilot, against_space = (
            Fraction(percent, 100) * left for percent in _PERCENT[order][asked]
        )
        drifts = _NOTHING if order == "unknown" else _TESTS / 4 if has_time else _TESTS / 2
        time = _TESTS / 4 if has_time else _NOTHING
        return ErrorBudget(
            half_spaces=half_spaces,
            outcome_half_spaces=outcomes,
            likelihood_after_pilot=after_pilot,
            likelihood_against_space=against_space,
            intervals=intervals,
            drifts=drifts,
            time=time,
            rows=(_TESTS - drifts - time) / 2,
            classes=(_TESTS - drifts - time) / 2,
            graph_alone=_GRAPH,
        )

    @staticmethod
    def of_tolerant_set(*, has_bets: bool, has_drifts: bool) -> ErrorBudget:
        """Return the budget if rows may be off by a misfit: no likelihood, and drifts cut the region.

        Intervals have what half-spaces leave, which must not depend on how the data ended. So an empty pilot, of data
        that might have had one, leaves them no more than any other pilot would.
        """
        half_spaces = Fraction(4, 5) if has_bets else _NOTHING
        return ErrorBudget(
            half_spaces=half_spaces,
            intervals=_SET - _INTERVALS - half_spaces,
            single_choices=_INTERVALS,
            drifts=_TESTS / 2 if has_drifts else _NOTHING,
            graph_alone=_GRAPH,
        )

    @staticmethod
    def of_table(*, has_bets: bool) -> ErrorBudget:
        """Return the budget of a table of unknown rows: intervals of all rows, and bets if it is known what came first.

        Intervals keep so much that they are at most a few per cent wider than alone, for where bets say nothing.
        """
        bets = Fraction(1, 2) if has_bets else _NOTHING
        of_rows = Fraction(1, 20) if has_bets else _NOTHING
        intervals = _SET - bets - 2 * of_rows
        return ErrorBudget(
            intervals=intervals,
            value_bets=bets,
            row_bets=of_rows,
            joint_bets=of_rows,
            model_test=_TESTS,
            graph_alone=_GRAPH,
        )

    @staticmethod
    def of_updates() -> ErrorBudget:
        """Return the budget of learning while acting: intervals that hold at all updates at once, and no other test."""
        return ErrorBudget(whole_set=1 - 2 * _NUMBERS, graph_alone=_GRAPH)

    @staticmethod
    def of_published_set() -> ErrorBudget:
        """Return the budget of what the paper publishes: its sets have the whole error, and nothing is tested."""
        return ErrorBudget(whole_set=Fraction(1), graph_alone=_GRAPH)


def equal_parts(error: float, n: int) -> float:
    """Return the error of each of n events that share an error equally, whether or not data were seen of them.

    >>> equal_parts(0.001, 4)
    0.00025
    """
    return error / max(n, 1)


def favoured_parts(error: float, n: int) -> tuple[float, ...]:
    """Return the errors of n events that share an error: nine tenths for the first, and the others alike.

    >>> favoured_parts(0.001, 1), favoured_parts(0.001, 3)
    ((0.001,), (0.0009, 5e-05, 5e-05))
    """
    others = [equal_parts(error / 10, n - 1)] * (n - 1)
    return (error - sum(others), *others)
