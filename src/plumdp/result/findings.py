"""What a report shows besides the certificate: each part answers one question, and can be drawn from a file.

Pictures take these parts rather than models and regions, so that a saved result is drawn as a fresh one is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from plumdp.base.errors import DataError
from plumdp.result import shapes
from plumdp.result.json_values import json_value, python_value

Point = tuple[float, float]
SCHEMA = "plumdp/findings/1"

_Part = TypeVar("_Part", bound="Rung | ExpressionRow | Edge")


@dataclass(frozen=True)
class Rung:
    """What one relaxation certifies from the same data."""

    relaxation: str
    lower: float
    upper: float
    status: str


@dataclass(frozen=True)
class Cut:
    """A half-space in two parameters: points with normal @ point <= offset; ``origin`` says in words what drew it."""

    normal: Point
    offset: float
    origin: str


@dataclass(frozen=True)
class Outline:
    """The region as two parameters see it: outlines are closed polygons around the projection of what they draw."""

    names: tuple[str, str]
    estimate: Point | None
    box: tuple[Point, Point]  # of the first parameter, and of the second
    space: tuple[Point, ...]  # what is known before any data
    region: tuple[Point, ...]
    ellipse: tuple[Point, ...] = ()
    cuts: tuple[Cut, ...] = ()  # only of regions in exactly these two parameters


@dataclass(frozen=True)
class ExpressionRow:
    """What is known of one unknown expression: bounds hold jointly, with the confidence of the certificate."""

    text: str
    lower: float
    upper: float
    estimate: float | None  # at the most likely point
    trials: int
    successes: int


@dataclass(frozen=True)
class Edge:
    """A transition in the picture of a small model."""

    source: int
    target: int
    action: str
    expression: str
    probability: float | None  # at the most likely point
    is_chosen: bool  # by the policy


@dataclass(frozen=True)
class Drawing:
    """A model that is small enough to be drawn: its states in words, and its transitions."""

    states: tuple[str, ...]
    initial: int
    targets: tuple[int, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Findings:
    """What a report shows besides the certificate; parts that were not asked for, or have no answer, are empty.

    ``explain`` makes them from what was learned; they are plain data, which ``Certificate.save`` keeps and
    ``write_report`` shows.
    """

    about: str  # the fingerprint of the certificate
    ladder: tuple[Rung, ...] = ()  # from loose to tight
    outlines: tuple[Outline, ...] = ()
    expressions: tuple[ExpressionRow, ...] = ()  # those that matter most come first
    n_expressions: int = 0  # unknown ones in the model
    advice: Mapping[str, Any] = field(default_factory=dict)  # ``Advice.to_dict``, and its ``sentences``
    residuals: Mapping[str, Any] = field(default_factory=dict)  # ``ModelCheck.to_dict``
    drawing: Drawing | None = None
    variables: tuple[str, ...] = ()  # of states, those that the policy depends on most first

    def to_json(self) -> str:
        """Return all of it as JSON; infinite numbers as text."""
        content = {"schema": SCHEMA, **json_value(asdict(self))}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, content: Any) -> Findings:
        """Return what ``to_json`` wrote, once it was read; what has not the shape of findings is refused.

        >>> findings = Findings("6c1f", ladder=(Rung("coupled", 0.5, float("inf"), "certified"),), n_expressions=3)
        >>> Findings.from_dict(json.loads(findings.to_json())) == findings
        True
        """
        for shape in _PARTS:
            problem = shape(content, "")
            if problem:
                raise DataError(problem)
        drawing = content["drawing"]
        # other parts have texts of users, which may be "infinity", and no infinite numbers
        numbers = {name: python_value(content[name]) for name in ("ladder", "advice", "residuals")}
        return cls(
            about=content["about"],
            ladder=tuple(_made(Rung, each) for each in numbers["ladder"]),
            outlines=tuple(_outline(each) for each in content["outlines"]),
            expressions=tuple(_made(ExpressionRow, each) for each in content["expressions"]),
            n_expressions=content["n_expressions"],
            advice=numbers["advice"],
            residuals=numbers["residuals"],
            drawing=None if drawing is None else _drawing(drawing),
            variables=tuple(content["variables"]),
        )


def _outline(content: dict[str, Any]) -> Outline:
    cuts = tuple(Cut(tuple(cut["normal"]), cut["offset"], cut["origin"]) for cut in content["cuts"])
    points: dict[str, Any] = {name: tuple(map(tuple, content[name])) for name in ("box", "space", "region", "ellipse")}
    estimate = None if content["estimate"] is None else tuple(content["estimate"])
    return Outline(names=tuple(content["names"]), estimate=estimate, cuts=cuts, **points)


def _drawing(content: dict[str, Any]) -> Drawing:
    edges = tuple(_made(Edge, each) for each in content["edges"])
    return Drawing(tuple(content["states"]), content["initial"], tuple(content["targets"]), edges)


def _made(kind: type[_Part], content: dict[str, Any]) -> _Part:
    """Return a part of its entries; others are left out."""
    return kind(**{each.name: content[each.name] for each in fields(kind)})


_NUMBERS = dict.fromkeys(("observed", "expected", "observations", "deviation"), shapes.listed(shapes.bound))
_ADVICE = {
    "none": shapes.text,
    "sentences": shapes.listed(shapes.text),
    "choices": shapes.listed(
        shapes.record(
            {"state": shapes.each(shapes.anything), "action": shapes.text}
            | dict.fromkeys(("rate", "visits", "visits_per_run"), shapes.bound)
        )
    ),
}
_RESIDUALS = {
    "contradicted": shapes.truth,
    "diagnosis": shapes.listed(shapes.text),
    "suspicion": shapes.nullable(shapes.text),
    "residuals": shapes.listed(
        shapes.record(
            {"where": shapes.text, "what": shapes.text}
            | dict.fromkeys(("observations", "difference", "standardised", "evidence"), shapes.bound)
        )
    ),
    "cells": shapes.listed(
        shapes.record(
            {"kind": shapes.text, "name": shapes.text, "change": shapes.text, "cells": shapes.listed(shapes.text)}
            | _NUMBERS
        )
    ),
}
_PARTS = (
    shapes.record({"schema": shapes.one_of(SCHEMA)}),
    shapes.shape_of(Findings),
    shapes.record({"advice": shapes.record({}, _ADVICE), "residuals": shapes.record({}, _RESIDUALS)}),
)
