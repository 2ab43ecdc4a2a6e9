"""The pictures of a report, as SVG inside the page, from parts of findings: saved results are drawn as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from plumdp import plots
from plumdp.explaining.residual_table import CellResiduals
from plumdp.plots.from_findings import cells_from
from plumdp.plots.residual_panels import legend_of_marks
from plumdp.plots.style import new_figure, styled, svg_of
from plumdp.reporting.parts import InlinePicture
from plumdp.result.certificate import Certificate
from plumdp.result.findings import Findings

_SHOWN = 20  # expressions in the forest; the table has more
_STATES = 120  # of a model; more than that is for ``plumdp plot``
_PANELS = 12  # of residuals
_CELLS = 60  # values of a variable in a picture of residuals


def ladder(certificate: Certificate, findings: Findings) -> list[InlinePicture]:
    """Return the bounds of each relaxation."""
    rungs, asked, estimate = findings.ladder, certificate.objective, certificate.estimated_value
    draw = partial(plots.ladder_figure, rungs, objective=asked, estimate=estimate)
    return [_drawn(draw, "bounds of each relaxation")]


def difference(certificate: Certificate) -> list[InlinePicture]:
    """Return the bounds on the values of two policies, and on their difference."""
    draw = partial(plots.difference_figure, certificate.comparison, objective=certificate.objective)
    return [_drawn(draw, "bounds of both policies and of their difference")]


def advice(findings: Findings) -> list[InlinePicture]:
    """Return where one more run helps most."""
    given = findings.advice
    return [_drawn(lambda: plots.advice_figure(given), "where one more run helps most")] if given.get("choices") else []


def region(certificate: Certificate, findings: Findings) -> list[InlinePicture]:
    """Return the region of the parameters, as pairs of them see it."""
    outlines = findings.outlines
    if not outlines:
        return []
    names = {name for outline in outlines for name in outline.names}
    draw = partial(plots.region_figure, outlines, certificate.parameters)
    drawn = _drawn(draw, "region of the parameters")
    return [replace(drawn, is_wide=len(names) > 3)]


def forest(certificate: Certificate, findings: Findings) -> list[InlinePicture]:
    """Return the bounds of the probabilities that matter most."""
    rows, n = findings.expressions[:_SHOWN], findings.n_expressions
    draw = partial(plots.forest_figure, rows, n)
    return [_drawn(draw, "bounds of unknown probabilities")] if rows else []


def residuals(findings: Findings) -> list[InlinePicture]:
    """Return by how much the data differ from the model, over each state variable and over the actions."""
    cells = [cells_from(each) for each in findings.residuals.get("cells", ())[:_PANELS]]
    return [_residual(each) for each in cells if len(each.cells) <= _CELLS]


def _residual(cells: CellResiduals) -> InlinePicture:
    def draw() -> Any:
        figure = new_figure(height=3.2)
        plots.plot_residuals(figure.add_subplot(), cells)
        legend_of_marks(figure)
        return figure

    return _drawn(draw, f"residuals over {cells.name}")


def policy_map(certificate: Certificate, findings: Findings) -> list[InlinePicture]:
    """Return the policy over the two state variables that it depends on most."""
    names = findings.variables[:2]
    if not names:
        return []
    columns = certificate.policy.by_state()
    return [_drawn(lambda: plots.policy_figure(columns, *names), f"policy over {' and '.join(names)}")]


def model(findings: Findings) -> list[InlinePicture]:
    """Return a small model as a graph."""
    drawing = findings.drawing
    if drawing is None or len(drawing.states) > _STATES:
        return []
    return [replace(_drawn(lambda: plots.model_figure(drawing), "the model as a graph"), is_wide=True)]


def _drawn(draw: Callable[[], Any], label: str) -> InlinePicture:
    with styled():
        return InlinePicture(svg_of(draw(), label=label))
