"""The options of learning, in the one place where they are declared, defaulted, explained and checked.

``learn``, and every function that learns first, takes them all: a new option is one line in ``LearningOptions``, and
what ``learn`` makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Annotated, Any, TypedDict

from plumdp.base.errors import DataError
from plumdp.base.keywords import Option
from plumdp.confidence.bounds import Intervals
from plumdp.confidence.sets import ConfidenceSet
from plumdp.confidence.tolerant import require_misfit
from plumdp.learning.methods import SETS, ConfidenceMethod, Sets
from plumdp.model.events import Events


class LearningOptions(TypedDict, total=False):
    """The options of ``learn`` that say how sure results must be, and what is drawn around the data."""

    confidence: Annotated[float, Option(0.999, "How sure everything that follows must be, jointly.")]
    confidence_set: Annotated[
        Sets | None,
        Option(
            None,
            'What is drawn around the data: "interval", "l1", "ellipsoid" or "likelihood". By default the likelihood, '
            "or intervals if one of the next three options is given, which are about intervals.",
        ),
    ]
    interval_method: Annotated[
        Intervals | None, Option(None, "For other intervals than the narrowest valid ones, see ``expression_bounds``.")
    ]
    events: Annotated[
        Events | None, Option(None, "For intervals of other events than those of the model, see ``find_events``.")
    ]
    as_published: Annotated[
        bool,
        Option(
            False,
            "Draw what the paper publishes, for comparison: without guarantee, and without tests of fixed numbers.",
        ),
    ]
    misfit: Annotated[
        float,
        Option(
            0.0,
            "How far every row of the model may be off, in total variation: what follows stays valid then. Sets are "
            '"interval" or "likelihood", which here means half-spaces and intervals, without a likelihood.',
        ),
    ]


def error_of(confidence: float) -> float:
    """Return how often the bounds may fail, if the confidence is one."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise DataError(f"confidence={confidence!r}: give a number between 0 and 1, such as 0.999")
    return 1 - confidence


def default_set(options: LearningOptions) -> Sets:
    """Return the confidence set that is taken if none is named: the likelihood.

    Options that are about intervals (``interval_method``, ``events``) ask for intervals, and so does ``as_published``,
    since those are what the paper is about.

    >>> default_set({}), default_set({"interval_method": "hoeffding"})
    ('likelihood', 'interval')
    """
    return "interval" if _of_intervals(options) or options.get("as_published") else "likelihood"


def _of_intervals(options: LearningOptions) -> dict[str, Any]:
    """Return the options about intervals that were given."""
    asked = {"interval_method": options.get("interval_method"), "events": options.get("events")}
    return {name: value for name, value in asked.items() if value is not None}


def chosen_method(options: LearningOptions) -> tuple[Sets, ConfidenceMethod[Any], Callable[..., ConfidenceSet]]:
    """Return the kind of confidence set, its entry in ``SETS``, and how to measure; refuse options that differ."""
    kind, about_intervals = options["confidence_set"], _of_intervals(options)
    if kind is None:
        kind = default_set(options)
    require_misfit(options["misfit"])
    if kind not in tuple(SETS):
        raise DataError(f"confidence_set={kind!r}: choose one of {', '.join(map(repr, SETS))}")
    method = SETS[kind]
    if about_intervals and not method.options:
        raise DataError(f"confidence_set={kind!r}: interval_method and events are for confidence_set='interval'")
    if about_intervals and options["as_published"]:
        raise DataError("as_published=True chooses intervals and events itself: leave out as_published, or the others")
    if options["misfit"]:
        return kind, method, _tolerant_measure(kind, options)
    if not options["as_published"]:
        return kind, method, partial(method.measure, **about_intervals)
    if method.published is None:
        raise DataError(
            f"confidence_set={kind!r}: the paper does not say how it makes such sets; leave out as_published, or "
            "choose another confidence_set"
        )
    return kind, method, method.published


def _tolerant_measure(kind: Sets, options: LearningOptions) -> Callable[..., ConfidenceSet]:
    """Return how the data are measured if rows may be off; refuse what has no proof then."""
    misfit, tolerant = float(options["misfit"]), SETS[kind].tolerant
    if options["as_published"]:
        raise DataError(
            f"misfit={misfit:g}: what the paper publishes has no tolerance; leave out as_published or misfit"
        )
    if _of_intervals(options):
        raise DataError(f"misfit={misfit:g} chooses intervals and events itself: leave out interval_method and events")
    if tolerant is None:
        known = " or ".join(repr(name) for name, each in SETS.items() if each.tolerant is not None)
        raise DataError(f"misfit={misfit:g}: there is no tolerant set of the kind {kind!r}; choose {known}")
    return partial(tolerant, misfit=misfit)
