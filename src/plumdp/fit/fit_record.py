"""The record of a test of the model as a whole: its p-value, and the tests that speak against it most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import Literal, TypeAlias

import numpy as np

from plumdp.confidence.bets import LARGEST_BET, HalfSpace
from plumdp.confidence.contrasts import Contrast
from plumdp.data.counts import TransitionCounts
from plumdp.model.graph import FloatArray
from plumdp.model.text import one_line

TestKind: TypeAlias = Literal["direction", "likelihood", "class", "row", "drift", "number", "time", "memory"]

SHARES_OF_ROWS = 40  # one of so many shares of the error is that of rows, about


@dataclass(frozen=True, eq=False)
class Drift:
    """The half-space that bets on one side of a drift have left."""

    contrast: Contrast
    parameter: str  # which drifts, in words; none if it is the probability of an outcome
    side: int  # +1: the bets are that it is larger where the number of the contrast is
    left: HalfSpace
    slope: FloatArray  # (n_outcomes): logarithms of the factors are ``level * slope - rest``, but for the largest bet
    rest: FloatArray  # (n_outcomes)

    @property
    def subject(self) -> str:
        """The variable or action that it drifts with, in words."""
        contrast = self.contrast
        return f"{contrast.name} under action {contrast.action!r}" if contrast.action else contrast.name

    def factors(self, cell: int) -> FloatArray:
        """Return the factors (n_outcomes) of the bets on visits in a cell of the contrast."""
        return bet_factors(self.contrast.levels[cell] * self.slope - self.rest)


@dataclass(frozen=True, eq=False)
class FitTest:
    """One test of a model at the point where all tests agree best."""

    kind: TestKind
    subject: str  # the state variable, action, row or expression, in words
    parameter: str  # which drifts, if one does
    sign: int  # +1: it is larger where the variable is large; 0 for other tests
    evidence: float  # ln wealth + ln share: beyond ln(1 / error) it speaks against the point at this error
    multiplier: float  # in the proof that no point agrees with all tests; zero if it is not needed


@dataclass(frozen=True, eq=False)
class ModelFit:
    """A p-value for the model as a whole, valid at any time, and the tests that speak against it most."""

    p_value: float
    point: FloatArray  # (n_parameters): where the tests agree best
    name_tests: Callable[[], tuple[FitTest, ...]]  # those with the most evidence, these first, once they are asked for
    drifts: tuple[Drift, ...] = ()  # those that the proof of a contradiction needs
    p_of_time: float = 1.0  # by tests of changes over time alone, if there is a contradiction
    p_without_time: float = 1.0  # by all others
    change: str = ""  # how rows seem to have changed, if tests over time contradict that they did not
    p_of_memory: float = 1.0  # by what came before in runs, whatever expressions rows have, if there is a contradiction
    p_without_memory: float = 1.0  # by all tests but those of memory

    @property
    def tests(self) -> tuple[FitTest, ...]:
        """The tests with the most evidence, these first."""
        return self.name_tests()

    def is_over_time(self, error: float) -> bool:
        """Return whether the model is contradicted at an error as rows changed, or as nothing else contradicts it."""
        return self.p_value <= error and (self.p_of_time <= error or self.p_without_time > error)

    def is_of_memory(self, error: float) -> bool:
        """Return whether the model is contradicted at an error by what came before in runs, or by nothing else."""
        return self.p_value <= error and (self.p_of_memory <= error or self.p_without_memory > error)

    def __repr__(self) -> str:
        return one_line(self, f"p = {self.p_value:.3g}")


def bet_factors(bets: FloatArray) -> FloatArray:
    """Return the factors of bets, which are clipped to the largest bet."""
    return np.asarray(np.exp(bets.clip(-LARGEST_BET, LARGEST_BET)))


def visible_error(counts: TransitionCounts, error: float) -> float | None:
    """Return about how far off the most visited row must be so that a test of the model shows it: an estimate.

    Smaller errors hardly ever show, and larger ones may not either if parameters can make up for them. A row has a
    share of the error, and n visits win about n x^2 / 2 v nats, if x is the error and v the variance of an outcome,
    less half the logarithm of n, as the row has to be learned.
    """
    first = counts.graph.first_transition
    visits = np.where(np.diff(first) > 1, counts.visits, 0)
    n = int(visits.max(initial=0))
    if not n:
        return None
    row = int(np.argmax(visits))
    shares = counts.counts[first[row] : first[row + 1]] / n
    nats = -log(error) + log(SHARES_OF_ROWS * np.count_nonzero(visits)) + log(n) / 2
    return min(1.0, sqrt(2 * float((shares * (1 - shares)).max()) * nats / n) + nats / (3 * n))
