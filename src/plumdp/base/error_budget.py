"""The ErrorBudget divides the error of a certificate among its parts, so that all of them hold jointly.

A certificate with the confidence 1 - error says many things at once: that the parameters lie in a region, that bounds
hold at all of its points, that no number of the model is wrong. Each is the work of a part, such as a half-space, an
interval or a test, and each part fails on an event of its own, with a probability of at most its share of the error.
Whatever these events have to do with one another, the probability of their union is at most the sum:

    P(something said is wrong)  <=  Σ P(a part fails)  <=  Σ share · error  <=  error.

So two facts carry the confidence. The shares sum to at most one: no ``ErrorBudget`` exists of which that is not true.
And every share is fixed before the data that its part looks at, by the model, by what is known of the order of the data
and by the objectives, never by the data.

There are two cases. If the model is right, a certificate is wrong only if a part fails that holds the true point or
tests the model: their shares are added up. If the model is wrong, a certificate that assumes it claims nothing, and one
that contradicts it claims bounds that rest on the graph alone. Their share is not added to the others, as the two cases
exclude each other.

Confidence sets and tests bring their shares, each with a name and words. Here they are only added up. A share that is
divided further, among objectives, directions, events or rows, is divided equally (``equal_parts``). If
data may end at will, parts that are placed by a pilot divide theirs among all pilots that the data might have had
(``Pilot.weight``). docs/proofs/shares.md has the statements.

Shares are exact fractions; what parts are handed are floats. The confidence set has its share rounded down, which makes
up for the roundings of all others, and a product is off by 2^-53 of itself. So everything that is handed out sums to at
most the error times 1 + 2^-51.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import nextafter
from typing import NamedTuple


class Share(NamedTuple):
    """The share of the error that a part may spend: the probability, relative to the error, with which it may fail."""

    name: str  # by which the part asks for its error
    fraction: Fraction
    words: str  # what is paid for


@dataclass(frozen=True)
class ErrorBudget:
    """The shares of the error that the parts of a certificate may spend.

    >>> half_spaces = Share("half_spaces", Fraction(4, 5), "half-spaces across the objectives")
    >>> tests = Share("tests", Fraction(1, 10), "tests of the model")
    >>> budget = ErrorBudget((half_spaces,), (tests,))
    >>> budget["half_spaces"], budget.total, budget.error_of("tests", 0.01)
    (Fraction(4, 5), Fraction(9, 10), 0.001)
    """

    of_set: tuple[Share, ...]  # parts of the confidence set
    beside: tuple[Share, ...] = ()  # tests of the model, and bets on whole runs
    if_wrong: tuple[Share, ...] = ()  # bounds that are claimed of contradicted models only

    def __post_init__(self) -> None:
        """Refuse shares for which the sum of the module's docstring does not hold."""
        is_negative = any(share.fraction < 0 for share in self._all)
        if is_negative or self.total > 1 or sum(share.fraction for share in self.if_wrong) > 1:
            raise ValueError(f"shares of an error must not be negative and sum to at most one: {self}")

    def __getitem__(self, name: str) -> Fraction:
        return sum((share.fraction for share in self._all if share.name == name), Fraction(0))

    @property
    def _all(self) -> tuple[Share, ...]:
        return *self.of_set, *self.beside, *self.if_wrong

    @property
    def confidence_set(self) -> Fraction:
        """The share of all parts of the confidence set, which is handed to it as one error."""
        return sum((share.fraction for share in self.of_set), Fraction(0))

    @property
    def total(self) -> Fraction:
        """The sum of the shares that are spent if the model is right: at most one."""
        return self.confidence_set + sum(share.fraction for share in self.beside)

    def parts(self) -> tuple[tuple[str, Fraction], ...]:
        """Return the parts of the error in words, each with its share; those without one are left out."""
        return tuple((share.words, share.fraction) for share in self._all if share.fraction)

    def error_of_set(self, error: float) -> float:
        """Return the error of the confidence set, given that of the certificate: its share is rounded down."""
        share = float(self.confidence_set)
        return (share if share <= self.confidence_set else nextafter(share, 0.0)) * error

    def error_in_set(self, part: str, error: float) -> float:
        """Return the error of a part of the confidence set, given that of the set.

        The quotient is that of per cents, nearly all of which are floats without rounding.
        """
        return float(100 * self[part]) / float(100 * self.confidence_set) * error

    def error_of(self, part: str, error: float) -> float:
        """Return the error of a part beside the confidence set, given that of the certificate."""
        return float(self[part]) * error


def equal_parts(error: float, n: int) -> float:
    """Return the error of each of n events that share an error equally, whether or not data were seen of them.

    >>> equal_parts(0.001, 4)
    0.00025
    """
    return error / max(n, 1)


def favoured_parts(error: float, n: int, *, part: int = 10) -> tuple[float, ...]:
    """Return the errors of n events that share an error: a tenth, or another part, for all but the first, alike.

    >>> favoured_parts(0.001, 1), favoured_parts(0.001, 3)
    ((0.001,), (0.0009, 5e-05, 5e-05))
    """
    others = [equal_parts(error / part, n - 1)] * (n - 1)
    return (error - sum(others), *others)
