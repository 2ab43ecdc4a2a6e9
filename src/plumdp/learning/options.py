"""Checks the options of ``learn`` that choose the confidence and the confidence set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

from plumdp.base.errors import DataError, Option
from plumdp.confidence.bounds import Intervals
from plumdp.confidence.sets import ConfidenceSet
from plumdp.confidence.tolerant import require_misfit
from plumdp.learning.methods import SETS, Sets
from plumdp.model.events import Events
from plumdp.model.parametric import ParametricMDP


def error_of(confidence: float) -> float:
    """Return the error 1 - confidence, or refuse a confidence that is not between 0 and 1."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise DataError(Option("confidence", confidence), ": give a number between 0 and 1, such as 0.999")
    return 1 - confidence


def default_set(interval_method: Intervals | None, events: Events | None) -> Sets:
    """Return the default confidence set of a model with parameters, which is the likelihood.

    With options that are about intervals (``interval_method``, ``events``), the default is intervals.

    >>> default_set(None, None), default_set("hoeffding", None)
    ('likelihood', 'interval')
    """
    return "likelihood" if interval_method is None and events is None else "interval"


def chosen_method(
    model: ParametricMDP,
    confidence_set: Sets | None,
    interval_method: Intervals | None,
    events: Events | None,
    misfit: float,
) -> tuple[Sets, Callable[..., ConfidenceSet]]:
    """Return the kind of confidence set and the function that makes it, or refuse options that exclude each other."""
    default: Sets = "table" if model.is_table else default_set(interval_method, events)
    kind = default if confidence_set is None else confidence_set
    given = {"interval_method": interval_method, "events": events}
    about_intervals = {name: value for name, value in given.items() if value is not None}
    require_misfit(misfit)
    if kind not in tuple(SETS):
        raise DataError(Option("confidence_set", kind), f": choose one of {', '.join(map(repr, SETS))}")
    method = SETS[kind]
    if method.is_for_tables != model.is_table:
        rows = "unknown, without parameters" if model.is_table else "given by expressions"
        raise DataError(Option("confidence_set", kind), f": the rows of this model are {rows}; leave it out")
    if misfit and model.is_table:
        off = Option("misfit", misfit)
        raise DataError(off, ": the rows of this model are unknown, and cannot be off; leave it out")
    if about_intervals and not method.options:
        are = " are for " if len(about_intervals) > 1 else " is for "
        interval = Option("confidence_set", "interval")
        raise DataError(Option("confidence_set", kind), ": ", *_listed(about_intervals), are, interval)
    if misfit:
        return kind, _tolerant_measure(kind, about_intervals, float(misfit))
    return kind, partial(method.measure, **about_intervals)


def _tolerant_measure(kind: Sets, about_intervals: dict[str, Any], misfit: float) -> Callable[..., ConfidenceSet]:
    """Return the function that makes the set if rows may be off, or refuse options for which nothing is proved."""
    off, tolerant = Option("misfit", misfit), SETS[kind].tolerant
    if about_intervals:
        raise DataError(off, " chooses intervals and events itself: leave out ", *_listed(about_intervals))
    if tolerant is None:
        kinds = " or ".join(repr(name) for name, method in SETS.items() if method.tolerant is not None)
        raise DataError(off, f": there is no tolerant set of the kind {kind!r}; choose {kinds}")
    return partial(tolerant.measure, misfit=misfit)


def _listed(names: dict[str, Any]) -> list[str | Option]:
    """Return the names of options as parts of a message, with "and" between them."""
    return [part for name in names for part in (" and ", Option(name))][1:]
