"""Defines what data say about a model: ``Evidence``, made of constraints, from what was ``Counted``.

A confidence set is a function from ``Counted`` to ``Evidence``, and an entry in the table
``plumdp.learning.methods.SETS``. It brings the shares of the error that its constraints spend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Protocol, TypeVar

from plumdp.base.error_budget import ErrorBudget, Share
from plumdp.base.errors import DataError, WhyNot
from plumdp.base.vocabulary import Guarantee, Sets
from plumdp.confidence.bets import Direction, Directions, HalfSpace
from plumdp.confidence.cells import Partition
from plumdp.confidence.constants import FixedNumbers, find_fixed_numbers
from plumdp.confidence.contrasts import Contrast, find_contrasts, parts_by_action
from plumdp.confidence.likelihood_table import LikelihoodTable, likelihood_table
from plumdp.data.counts import TransitionCounts
from plumdp.model.events import Events, find_events
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question
from plumdp.model.text import one_line

TESTS = Fraction(1, 40)  # of the error, for tests of the model as a whole
MEMORY = Fraction(1, 8)  # for tests of memory, from the share of a set, if contexts were counted
_NUMBERS = Fraction(1, 40)  # of the numbers that it fixes, once as intervals and once as predictions
_OF_RUNS = Fraction(4, 5)  # of the error of a set, as what whole runs say comes first
_OF_RIVAL = Fraction(1, 5)  # if the model says the rest of what is asked: the value of another policy
_CONTROLLED = Fraction(3, 4)  # if a difference is bounded by both together: for that, and for what runs say alone
_OF_CONTROL = Fraction(1, 20)
OF_SET = 1 - TESTS - 2 * _NUMBERS  # of a confidence set beside all of these
NOT_PRESPECIFIED = WhyNot(
    "bets are placed on policies that the first data name, and on those that you pre-specify, chosen before looking at "
    "these data or from those before the first bets only",
    code="not pre-specified",
)


class Constraint(Protocol):
    """A set that holds the true point with probability at least 1 - ``error``, as it follows from the data."""

    @property
    def error(self) -> float:
        """The error that it spends."""

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray] | None:
        """The lower and the upper bound of each expression, or None if it does not bound single ones."""

    def half_spaces(self, names: tuple[str, ...]) -> Sequence[HalfSpace]:
        """Return half-spaces around the set in the parameters with these names, rounded outward."""

    def widened(self, by: float) -> Constraint | None:
        """Return the set if rows may be off by so much in total variation, or None if nothing is proved then."""


class DrawnAtOnce(Constraint, Protocol):
    """A constraint that is a confidence set by itself."""

    @property
    def method(self) -> str:
        """The method by which it was made, in words."""

    @property
    def guarantee(self) -> Guarantee:
        """The assumption that its confidence rests on."""


OneKind = TypeVar("OneKind")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Constraints on the parameters that hold jointly with probability at least 1 - ``error``."""

    kind: Sets  # by its name in ``SETS``
    method: str  # in words
    guarantee: Guarantee
    error: float
    budget: ErrorBudget  # of the certificate, of whose error the constraints have their shares
    constraints: tuple[Constraint, ...] = ()
    estimate: FloatArray | None = None  # (n_parameters): where the data are most likely; nothing is claimed about it
    directions: tuple[Direction, ...] = ()  # in which it was made narrow
    rests_on: tuple[str, ...] = ()  # assumptions besides the model and the sampling, in words

    @staticmethod
    def of(kind: Sets, found: DrawnAtOnce, budget: ErrorBudget) -> Evidence:
        """Return the evidence of one constraint, which has all of the error of the set."""
        return Evidence(kind, found.method, found.guarantee, found.error, budget, (found,))

    def __repr__(self) -> str:
        return one_line(self, self.method, f"error {self.error:g}", f"guarantee: {self.guarantee}")

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray] | None:
        """The lower and the upper bound of each expression, or None if no constraint bounds single ones."""
        return next((each.intervals for each in self.constraints if each.intervals is not None), None)

    def of_kind(self, kind: type[OneKind]) -> list[OneKind]:
        """Return the constraints of one kind."""
        return [each for each in self.constraints if isinstance(each, kind)]

    def half_spaces(self, names: tuple[str, ...]) -> list[HalfSpace]:
        """Return half-spaces around the points that it leaves, in the parameters with these names."""
        return [side for each in self.constraints for side in each.half_spaces(names)]

    def widened(self, by: float) -> Evidence:
        """Return the evidence if every row may be off by a model tolerance, of a kind of set that goes with one."""
        wider = [each.widened(by) for each in self.constraints]
        kept = tuple(each for each in wider if each is not None)
        assert len(kept) == len(wider)
        method = f"{self.method} that allow for rows off by {by:g}"
        return replace(self, constraints=kept, method=method)


@dataclass(frozen=True, eq=False)
class ModelCache:
    """Parts that depend on a model alone, each of which is found when it is first asked for, and kept."""

    model: ParametricMDP

    @cached_property
    def events(self) -> Events:
        """The events of the model, with factors."""
        return find_events(self.model, factors=True)

    @cached_property
    def table(self) -> LikelihoodTable:
        """The likelihood as a table of affine outcomes."""
        return likelihood_table(self.model)

    @cached_property
    def partition(self) -> Partition:
        """The cells of its space."""
        return Partition(self.model, self.table)

    @cached_property
    def fixed(self) -> FixedNumbers:
        """The numbers that the model fixes."""
        return find_fixed_numbers(self.model)

    @cached_property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The ways in which rows may differ, also for single actions."""
        contrasts = find_contrasts(self.model)
        return (*contrasts, *parts_by_action(self.model, contrasts))


@dataclass(frozen=True, eq=False)
class Counted:
    """The input of a confidence set: counts of a model, and what was stated before looking at them."""

    cache: ModelCache  # of the model
    counts: TransitionCounts
    error: float  # of the certificate
    questions: tuple[Question, ...] = ()  # that were pre-specified
    directions: Directions | None = None  # in which to be narrow, for the questions
    model_tolerance: float = 0.0  # constraints are widened by it later, and must be made for that
    has_cells: bool = False  # whether bets are placed in cells of the space
    has_paths: bool = False  # whether there is a likelihood of rows with hidden paths

    @property
    def model(self) -> ParametricMDP:
        """The model that was counted."""
        return self.cache.model

    def divided(self, budget: ErrorBudget) -> ErrorBudget:
        """Return the budget of a set beside tests of the numbers that the model fixes, and beside whole runs."""
        budget = with_fixed_numbers(budget) if len(self.cache.fixed) else budget
        if not any(question.runs is not None for question in self.questions):
            return budget
        if any(question.is_controlled for question in self.questions):
            return beside_runs(budget, _OF_CONTROL, _CONTROLLED)
        return beside_runs(budget, _OF_RUNS if all(question.is_of_runs for question in self.questions) else _OF_RIVAL)


def require_error(error: float) -> None:
    """Refuse an error that is not a probability between 0 and 1."""
    if not 0 < error < 1:
        raise DataError(f"error={error}: give a probability between 0 and 1, such as 0.001 for a confidence of 99.9 %")


def graph_alone(fraction: Fraction = Fraction(1, 20)) -> tuple[Share, ...]:
    """Return the share of intervals of single transitions, which are claimed of contradicted models only."""
    return (Share("graph_alone", fraction, "bounds on the graph alone, if the model is wrong"),)


def whole_set(fraction: Fraction = OF_SET, *, tests: Fraction = TESTS) -> ErrorBudget:
    """Return the budget of a set that is drawn at once, beside a test of the model with a share of its own."""
    test = (Share("model_test", tests, "test of the model"),)
    return ErrorBudget((Share("whole_set", fraction, "confidence set"),), test, graph_alone())


def with_fixed_numbers(budget: ErrorBudget) -> ErrorBudget:
    """Return the budget of a model that fixes numbers, which are then tested by intervals.

    Predictions are tests beside those of a likelihood set. Other sets have them in their test of the model.
    """
    if budget["fixed_numbers"]:
        return budget
    predictions = (Share("predicted_numbers", _NUMBERS, "predictions of fixed numbers"),) if budget["classes"] else ()
    intervals = Share("fixed_numbers", _NUMBERS, "intervals of fixed numbers")
    if_wrong = graph_alone(budget["graph_alone"] / 2)  # half of it beside tests of fixed numbers
    return replace(budget, beside=(*budget.beside, *predictions, intervals), if_wrong=if_wrong)


def beside_runs(budget: ErrorBudget, share: Fraction, controlled: Fraction = Fraction(0)) -> ErrorBudget:
    """Return the budget beside bets on whole runs, which have a share of its error, however many runs there are.

    So have bets on runs and rows together, if a difference is asked that both bound.
    """
    of_set = tuple(each._replace(fraction=(1 - share - controlled) * each.fraction) for each in budget.of_set)
    of_runs = [Share("run_bets", share * budget.confidence_set, "bets on whole runs")]
    if controlled:
        of_runs.append(Share("controlled", controlled * budget.confidence_set, "bets on whole runs and rows together"))
    return replace(budget, of_set=of_set, beside=(*of_runs, *budget.beside))
