"""Lists all kinds of confidence sets in the table ``SETS``, and checks the options that choose one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy.typing as npt

from plumdp.base.combinations import refuse
from plumdp.base.errors import DataError, Option
from plumdp.base.kinds import Kinds
from plumdp.base.vocabulary import Sets as Sets
from plumdp.base.vocabulary import Trait, having
from plumdp.confidence.bounds import expression_bounds
from plumdp.confidence.likelihood import likelihood_budget, likelihood_set
from plumdp.confidence.sets import Counted, Evidence, whole_set
from plumdp.confidence.tolerant import (
    require_tolerance,
    tolerant_bounds,
    tolerant_budget,
    tolerant_set,
    tolerant_shares,
)
from plumdp.data.counts import TransitionCounts
from plumdp.data.same_files import together
from plumdp.fit.fit_record import ModelFit
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question
from plumdp.model.views import as_parametric

Ranked: TypeAlias = list[tuple[float, npt.NDArray[Any]]]
"""Policies with estimates of their values, by the sign that makes larger ones better, the best first."""


@dataclass(frozen=True)
class SetKind:
    """A kind of confidence set: how it sees a model, what it makes of counts, and which traits it is made for."""

    make: Callable[[Counted], Evidence]
    goes_with: frozenset[Trait] = frozenset()  # of ``NEEDED``
    view: Callable[[ParametricMDP], ParametricMDP] = as_parametric
    is_best: Callable[[ParametricMDP], bool] = lambda _: False  # of all kinds, unless options are about parameters
    test: Callable[[ParametricMDP, TransitionCounts], ModelFit] | None = None  # of the model, if it is another one
    policies: Callable[[Evidence, Question], Ranked | None] = lambda *_: None  # that bets were placed on, if there are
    normal_values: Callable[..., list[tuple[float, float]]] | None = None  # with variances, if no point has them
    has_bets: bool = False  # which a pilot places on what is pre-specified
    has_level_set: bool = False  # of the likelihood, with bets in cells of the space, and of rows with hidden paths

    @property
    def is_of_tables(self) -> bool:
        """Whether all rows that have parameters are unknown to it."""
        return Trait.TABLE in self.goes_with

    def refuse(self, traits: Iterable[Trait], **options: object) -> None:
        """Refuse a model and options with traits that it is not made for, or that do not go together."""
        given = frozenset(traits)
        refuse({self.is_of_tables and Trait.TABLE not in given and Trait.VIEW, *given}, **options)
        refuse({Trait.OTHER_SET} | (given & NEEDED) - self.goes_with, **options)


def interval_evidence(given: Counted) -> Evidence:
    """Return evidence of intervals of the events of a model, made for rows that vary if there is a model tolerance."""
    if given.model_tolerance:
        budget = given.divided(tolerant_shares(has_bets=False, has_drifts=False))
        error = budget.error_of_set(given.error)
        return Evidence.of("interval", tolerant_bounds(given.model, given.counts, error=error), budget)
    budget = given.divided(whole_set())
    error = budget.error_of_set(given.error)
    found = expression_bounds(given.model, given.counts, error=error)
    return Evidence.of("interval", found, budget)


def likelihood_evidence(given: Counted) -> Evidence:
    """Return evidence of the likelihood, bets and intervals, and with a model tolerance bets and intervals alone."""
    counts, is_asked = given.counts, given.directions is not None
    if given.model_tolerance:
        budget = given.divided(tolerant_budget(counts.pilot, has_directions=is_asked))
        error = budget.error_of_set(given.error)
        return tolerant_set(given.model, counts, error=error, directions=given.directions, budget=budget)
    known = {"has_directions": is_asked, "has_time": counts.time is not None, "has_cells": given.has_cells}
    known |= {"has_paths": given.has_paths, "has_contexts": bool(counts.contexts)}
    budget = given.divided(likelihood_budget(given.cache, counts.pilot, **known))
    return likelihood_set(
        given.model,
        counts,
        error=budget.error_of_set(given.error),
        directions=given.directions,
        cache=given.cache,
        budget=budget,
    )


NEEDED = frozenset({Trait.GAPS, Trait.TABLE, Trait.DISK, Trait.MODEL_TOLERANCE, Trait.LEARNED_REWARDS, Trait.RUNS})
"""The traits that a set must be made for."""

SETS: Kinds[Sets, SetKind] = Kinds(
    {
        "interval": SetKind(interval_evidence, frozenset({Trait.GAPS, Trait.DISK, Trait.MODEL_TOLERANCE})),
        "likelihood": SetKind(
            likelihood_evidence,
            frozenset({Trait.GAPS, Trait.DISK, Trait.MODEL_TOLERANCE, Trait.LEARNED_REWARDS, Trait.RUNS}),
            has_bets=True,
            has_level_set=True,
        ),
    }
)
"""The kinds of confidence sets by name; others are added (Sections 2.3, 2.4 and 3 of the paper)."""


def error_of(confidence: float) -> float:
    """Return the error 1 - confidence, or refuse a confidence that is not between 0 and 1."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise DataError(Option("confidence", confidence), ": give a number between 0 and 1, such as 0.999")
    return 1 - confidence


def default_set(model: ParametricMDP, *, is_about_parameters: bool = False) -> Sets:
    """Return the default confidence set, which the model and the options decide.

    It is the likelihood. A model with unknown rows, or with many parameters that tie no rows, is seen as a table,
    unless options are about parameters (``model_tolerance``).

    >>> from plumdp import case_study
    >>> model = case_study("betting:5").model
    >>> default_set(model)
    'likelihood'
    """
    if not model.counted.is_table and is_about_parameters:
        return "likelihood"
    return next((name for name, kind in SETS.items() if kind.is_best(model)), "likelihood")


def chosen_kind(model: ParametricMDP, confidence_set: Sets | None, model_tolerance: float) -> Sets:
    """Return the kind of confidence set, or refuse options that exclude each other."""
    kind = confidence_set
    if kind is None:
        kind = default_set(model, is_about_parameters=bool(model_tolerance))
    require_tolerance(model_tolerance)
    if kind not in tuple(SETS):
        raise DataError(Option("confidence_set", kind), f": choose one of {', '.join(map(repr, SETS))}")
    options = having(bool(model_tolerance) and Trait.MODEL_TOLERANCE)
    SETS[kind].refuse(model.traits | options, model_tolerance=model_tolerance, confidence_set=kind)
    return kind


def refuse_chosen(question: Question, counts: TransitionCounts, *, is_table: bool) -> None:
    """Refuse to pre-specify policies that these counts led to, unless it was those of a table before the first bets.

    Bets of a stage must not know what came later (Statement 7b), and those of parameters begin with the first runs.
    """
    # a policy that the first data chose was not there when whole runs of it began
    pilot, parts = counts.pilot if is_table and question.runs is None else None, counts.parts
    first = None if pilot is None else pilot.first_bets
    most = 0.0 if first is None or pilot is None else pilot.lengths[first]
    # the pilot is that of the parts that came first, but for a planned sum, whose is that of all
    is_of_all = pilot is not None and pilot.is_planned_sum
    began = [parts[:size] for size in range(len(parts) if is_of_all else 1, len(parts) + 1)]
    may_choose = {(part.mark, together(those)) for those in began for part in those}
    own = {part.mark: part.name for part in parts} | {counts.fingerprint: "these counts"}
    for mark in sorted(question.chosen_by):
        origin, n, of_parts = (*mark.split(":"), "", "")[:3]
        if origin in own and not (n and float(n) <= most and (origin, of_parts) in may_choose):
            by_first = ", or choose it by the data before the first bets (counts.before_bets())"
            raise DataError(
                f"the policy comes from a certificate of {own[origin]}, so it cannot be pre-specified for these data. "
                "Without that word, its value is bounded all the same; for bets, give a policy that you chose before, "
                f"as you made it{by_first if question.runs is None else ''}"
            )
