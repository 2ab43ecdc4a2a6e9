"""``Findings``, which a report shows besides the certificate: each part answers one question.

Pictures take these parts rather than models and regions, so that a saved result is drawn as a fresh one is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from plumdp.base.errors import DataError
from plumdp.base.json_values import json_value, read_as
from plumdp.result.certificate import Certificate, fingerprint_of

Point = tuple[float, float]
SCHEMA = "plumdp/findings/1"


@dataclass(frozen=True)
class Relaxed:
    """The bounds that one relaxation certifies from the same data."""

    relaxation: str
    lower: float
    upper: float
    status: str


def relaxed_of(certificate: Certificate) -> Relaxed:
    """Return the rung of a certificate in a ladder of relaxations."""
    by_model = certificate.claim.rungs[-1] if certificate.claim.rungs else certificate.claim
    return Relaxed(certificate.how.relaxation, by_model.lower, by_model.upper, str(by_model.status))


@dataclass(frozen=True)
class HalfPlane:
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
    cuts: tuple[HalfPlane, ...] = ()  # only of regions in exactly these two parameters


@dataclass(frozen=True)
class ExpressionRow:
    """Bounds on one unknown expression, which hold jointly with the confidence of the certificate."""

    text: str
    lower: float
    upper: float
    estimate: float | None  # at the most likely point
    trials: int
    successes: int


@dataclass(frozen=True)
class _Choice:
    """A choice at which more data help, as pictures and pages show it."""

    state: Mapping[str, Any]
    action: str
    rate: float
    visits: float
    visits_per_run: float


@dataclass(frozen=True)
class _Residual:
    """A residual, as pages show it."""

    where: str
    what: str
    observations: float
    difference: float
    standardised: float
    evidence: float


@dataclass(frozen=True)
class _Cells:
    """Residuals over a variable or over the actions, as pictures show them."""

    kind: str
    name: str
    change: str
    cells: tuple[str, ...]
    observed: tuple[float, ...]
    expected: tuple[float, ...]
    observations: tuple[float, ...]
    deviation: tuple[float, ...]


@dataclass(frozen=True)
class Findings:
    """Explanations of a certificate; parts that were not requested, or have no answer, are empty.

    ``explain`` makes them from what was learned; they are plain data, which ``write_result`` keeps and
    ``write_report`` shows.
    """

    about: str  # the fingerprint of the certificate
    ladder: tuple[Relaxed, ...] = ()  # from loose to tight
    outlines: tuple[Outline, ...] = ()
    expressions: tuple[ExpressionRow, ...] = ()  # those that matter most come first
    n_expressions: int = 0  # unknown ones in the model
    advice: Mapping[str, Any] = field(default_factory=dict)  # ``Advice.to_dict``, and its ``sentences``
    residuals: Mapping[str, Any] = field(default_factory=dict)  # ``ModelCheck.to_dict``
    variables: tuple[str, ...] = ()  # of states, those that the policy depends on most first

    def to_json(self) -> str:
        """Return all of it as JSON; infinite numbers as text."""
        content = {"schema": SCHEMA, **json_value(self)}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, content: Any) -> Findings:
        """Return the findings that ``to_json`` wrote, from parsed JSON; anything else is refused.

        >>> findings = Findings("6c1f", ladder=(Relaxed("coupled", 0.5, float("inf"), "certified"),), n_expressions=3)
        >>> Findings.from_dict(json.loads(findings.to_json())) == findings
        True
        """
        read_as({"schema": Literal["plumdp/findings/1"]}, content)
        found: Findings = read_as(cls, content, optional=())
        for name, kinds in (("advice", _ADVICE), ("residuals", _RESIDUALS)):
            read_as({key: kind for key, kind in kinds.items() if key in content[name]}, content[name], name)
        return found


_ADVICE: Mapping[str, Any] = {"none": str, "sentences": tuple[str, ...], "choices": tuple[_Choice, ...]}
_RESIDUALS: Mapping[str, Any] = {
    "rejected": bool,
    "diagnosis": tuple[str, ...],
    "suspicion": str | None,
    "residuals": tuple[_Residual, ...],
    "cells": tuple[_Cells, ...],
}


def require_own(certificate: Certificate, findings: Findings) -> None:
    """Refuse the findings about another certificate."""
    if findings.about != fingerprint_of(certificate):
        raise DataError("these findings are about another certificate: give those that explain made of this one")
