"""Figures of a certificate from its findings, whether they are new or were read from a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.explaining.residual_table import CellResiduals
from plumdp.fit.residuals import Residuals
from plumdp.plots.advice_bars import advice_figure
from plumdp.plots.bounds_ladder import ladder_figure
from plumdp.plots.expression_forest import forest_figure
from plumdp.plots.model_graph import model_figure
from plumdp.plots.policy_map import axes_of_map, policy_figure
from plumdp.plots.region_outline import region_figure
from plumdp.plots.residual_panels import cells_figure
from plumdp.plots.style import styled
from plumdp.result.certificate import Certificate
from plumdp.result.findings import Findings

_TOO_LARGE = "the model has too many states to be drawn: a picture has at most 400"


def figure_of(
    kind: str,
    certificate: Certificate,
    findings: Findings,
    *,
    truth: Any = None,
    x: str | None = None,
    y: str | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Any:
    """Return the picture of a kind, which is ladder, region, expressions, policy, advice, model or residuals.

    ``truth`` is a value for the ladder, and a point by name for the region. ``x``, ``y`` and ``fixed`` are for the
    policy. A picture of findings that are missing, or were not saved, is refused in words.
    """
    certificate.require_own(findings)
    if kind not in _FIGURES:
        raise DataError(f"kind={kind!r}: choose one of {', '.join(map(repr, _FIGURES))}")
    with styled():
        if kind == "policy":
            return _policy(certificate, findings, x, y, fixed)
        return _FIGURES[kind](certificate, findings, truth)


def _ladder(certificate: Certificate, findings: Findings, truth: float | None) -> Any:
    rungs = findings.ladder
    if not rungs:
        raise DataError("this result has no ladder: it was saved without, or no bound is claimed")
    return ladder_figure(rungs, objective=certificate.objective, estimate=certificate.estimated_value, truth=truth)


def _region(certificate: Certificate, findings: Findings, truth: Mapping[str, float] | None) -> Any:
    if not findings.outlines:
        raise DataError("there is no region to draw: the data contradict the model, or it has no parameters")
    return region_figure(findings.outlines, certificate.parameters, truth=truth)


def _expressions(certificate: Certificate, findings: Findings, _: Any) -> Any:
    if not findings.expressions:
        raise DataError("there are no expressions to draw: the data contradict the model, or it has no parameters")
    return forest_figure(findings.expressions, findings.n_expressions)


def _policy(
    certificate: Certificate, findings: Findings, x: str | None, y: str | None, fixed: Mapping[str, Any] | None
) -> Any:
    columns, ranked = certificate.policy.by_state(), findings.variables
    return policy_figure(columns, *axes_of_map(ranked or list(columns)[:-1], x, y, fixed), fixed=fixed)


def _advice(certificate: Certificate, findings: Findings, _: Any) -> Any:
    given = findings.advice
    if not given.get("choices"):
        raise DataError(f"there is no advice to draw: {given.get('none') or 'it was not saved'}")
    return advice_figure(given)


def _model(certificate: Certificate, findings: Findings, _: Any) -> Any:
    drawing = findings.drawing
    if drawing is None:
        raise DataError(_TOO_LARGE)
    return model_figure(drawing)


def _residuals(certificate: Certificate, findings: Findings, _: Any) -> Any:
    given = findings.residuals
    cells = [cells_from(each) for each in given.get("cells", ())]
    if not cells:
        raise DataError("there are no residuals to draw: the model was not tested, or nothing with outcomes was seen")
    return cells_figure(cells, "Residuals at the most likely parameters")


def cells_from(given: Mapping[str, Any]) -> CellResiduals:
    """Return the residuals of a variable as they were saved."""
    arrays = {name: np.array(given[name], dtype=np.float64) for name in Residuals.__dataclass_fields__}
    return CellResiduals(given["kind"], given["name"], given["change"], tuple(given["cells"]), Residuals(**arrays))


PARTS_OF: Mapping[str, Sequence[str]] = {
    "ladder": ["ladder"],
    "region": ["outlines"],
    "expressions": ["expressions", "n_expressions"],
    "policy": ["variables"],
    "advice": ["advice"],
    "model": ["drawing"],
    "residuals": ["residuals"],
}
"""Which parts of the findings a kind of picture shows."""

_FIGURES: Mapping[str, Callable[..., Any]] = {
    "ladder": _ladder,
    "region": _region,
    "expressions": _expressions,
    "policy": _policy,
    "advice": _advice,
    "model": _model,
    "residuals": _residuals,
}
