"""Draws a picture of a kind, from a result and its findings: new ones, or those that were read from a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.edge import replacing
from plumdp.base.errors import DataError, require_kind
from plumdp.fit.residual_counts import CellResiduals, Residuals
from plumdp.model.text import one_line
from plumdp.plots.curves import draw_difference, draw_ladder, draw_net_benefit, draw_online, draw_watch
from plumdp.plots.lists import draw_advice, draw_expressions, draw_residuals
from plumdp.plots.policy_map import axes_of_map, draw_policy
from plumdp.plots.region_outline import draw_region
from plumdp.plots.style import DOTS, require_format, styled, svg_of
from plumdp.plots.units import draw_units
from plumdp.result.advice import Advice
from plumdp.result.certificate import Certificate
from plumdp.result.findings import Findings, Outline, relaxed_of, require_own
from plumdp.result.policy_table import PolicyTable
from plumdp.result.telling_variables import telling_variables


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of matplotlib that shows itself in notebooks and knows how to save itself."""

    figure: Any  # matplotlib.figure.Figure
    kind: str = "picture"  # what it shows, in a word

    def __repr__(self) -> str:
        return one_line(self, self.kind)

    def save(self, path: Path | str) -> None:
        """Write the picture as PNG, SVG or PDF, whichever the name says."""
        write_figure(self.figure, path)

    @property
    def svg(self) -> str:
        """The picture as an element of a page."""
        return svg_of(self.figure)

    def _repr_svg_(self) -> str:
        return self.svg


def write_figure(figure: Any, path: Path | str) -> None:
    """Write a figure as PNG, SVG or PDF by the ending of its name. The same figure gives the same file."""
    path = Path(path)
    kind = require_format(path)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}[kind]
    with styled(), replacing(path) as fresh:
        figure.savefig(fresh, metadata=metadata, dpi=DOTS)


def draw(
    kind: str,
    of: Any,
    findings: Findings | None = None,
    *,
    axes: Any = None,
    truth: Any = None,
    x: str | None = None,
    y: str | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Picture:
    """Return a picture of a result.

    Parameters
    ----------
    kind
        "ladder" (what each relaxation certifies), "region" (the parameters that explain the data), "expressions" (each
        unknown probability), "policy" (over two state variables), "advice" (where more data help), "residuals" (where
        data and model differ), "difference" (of two policies), "net benefit" (over the willingness to pay), "online"
        (bounds over runs while learning), "watch" (evidence of changes), or "units" (brackets of many units).
    of
        A certificate. Besides: several, in a list or by names of your own, for "ladder"; a ``PolicyTable``; what
        ``advise``, ``check_model``, ``difference``, ``improve``, ``net_benefit``, ``learn_online``, ``watch``,
        ``certify_each`` or, of its table, ``share_worse`` returned.
    findings
        What ``explain(learned, certificate, parts=[kind])`` returned, for what a certificate does not say itself.
    axes
        Axes of your own, which are drawn into.
    truth
        What is known to be true, as in an experiment: a value for "ladder" and "online", a point for "region".
    x, y, fixed
        For "policy": the variables to the right and upwards, by default those that it depends on most, and values of
        others, by default those that most states have.

    Returns
    -------
    Picture
        The figure, which notebooks show; ``save`` writes it.

    Examples
    --------
    >>> from plumdp import case_study, conclude, explain, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> certificate = conclude(learned, study.objective)
    >>> draw("ladder", certificate, explain(learned, certificate, parts=["ladder"])).svg[:4]
    '<svg'
    """
    if kind not in _KINDS:
        raise DataError(f"kind={kind!r}: choose one of {', '.join(map(repr, _KINDS))}")
    if findings is not None:
        require_kind(
            of, Certificate, f"draw takes a certificate before findings: draw({kind!r}, certificate, findings)"
        )
        require_kind(findings, Findings, "draw takes findings, which explain returns, after the certificate")
        require_own(of, findings)
    options = {"truth": truth, "x": x, "y": y, "fixed": fixed}
    given = {name: value for name, value in options.items() if value is not None}
    other = next((name for name in given if name not in _OPTIONS.get(kind, ())), None)
    if other is not None:
        raise DataError(f"{other}: a picture of the kind {kind!r} has no such option; leave it out")
    with styled():
        return Picture(_KINDS[kind](axes, of, findings, **given), kind)


def _ladder(axes: Any, of: Any, findings: Findings | None, *, truth: float | None = None) -> Any:
    if isinstance(of, Certificate) and findings is not None:
        if not findings.ladder:
            raise DataError("this result has no ladder: it was saved without, or no bound is claimed")
        return draw_ladder(
            axes, findings.ladder, objective=of.claim.objective, estimate=of.beside.estimated_value, truth=truth
        )
    of = [of] if isinstance(of, Certificate) else of
    require_kind(of, (Sequence, Mapping), "draw('ladder', certificates) takes certificates")
    shown = list(of.values() if isinstance(of, Mapping) else of)
    if not shown:
        raise DataError("certificates: there are none to draw; give those that compare returns")
    for each in shown:
        require_kind(each, Certificate, "draw('ladder', certificates) takes certificates")
    names = list(of) if isinstance(of, Mapping) else [each.how.relaxation for each in shown]
    rungs = [replace(relaxed_of(each), relaxation=name) for each, name in zip(shown, names, strict=True)]
    asked, dots = (
        " / ".join(sorted({each.claim.objective for each in shown})),
        [each.beside.estimated_value for each in shown],
    )
    return draw_ladder(axes, rungs, objective=asked, estimate=dots, truth=truth)


def _region(axes: Any, of: Any, findings: Findings | None, *, truth: Mapping[str, Any] | None = None) -> Any:
    require_kind(of, Certificate, "draw('region', certificate, findings) takes a certificate")
    shown = _box_of(of) if findings is None else findings.outlines
    if not shown:
        raise DataError("there is no region to draw: the data reject the model, or it has no parameters")
    point = None if truth is None else {name: float(value) for name, value in truth.items()}
    return draw_region(axes, shown, of.rests_on.parameters, truth=point)


def _box_of(certificate: Certificate) -> tuple[Outline, ...]:
    """Return the box around the region of one or two parameters, and the estimate."""
    names, ends = tuple(certificate.rests_on.parameters), tuple(certificate.rests_on.parameters.values())
    if len(names) > 2:
        keeps = f"a certificate keeps the bounds of its {len(names)} parameters, and not their region"
        raise DataError(f"{keeps}: {_with_findings('region')}")
    if not names:
        return ()
    point = [certificate.beside.estimate.get(name) for name in names]
    first, second = (point[0], point[-1] if len(names) == 2 else 0.0)
    estimate = None if first is None or second is None else (first, second)
    return (Outline((names[0], names[1] if len(names) == 2 else ""), estimate, (ends[0], ends[-1]), (), ()),)


def _with_findings(kind: str) -> str:
    return f"write draw({kind!r}, certificate, explain(learned, certificate, parts=[{kind!r}]))"


def _expressions(axes: Any, of: Certificate, findings: Findings | None) -> Any:
    shown = _needed("expressions", findings)
    if not shown.expressions:
        raise DataError("there are no expressions to draw: the data reject the model, or it has no parameters")
    return draw_expressions(axes, shown.expressions, shown.n_expressions)


def _needed(kind: str, findings: Findings | None) -> Findings:
    if findings is None:
        raise DataError(f"a picture of the kind {kind!r} shows findings: {_with_findings(kind)}")
    return findings


def _policy(axes: Any, of: Any, findings: Findings | None, *, x: str | None = None, y: str | None = None,
            fixed: Mapping[str, Any] | None = None) -> Any:  # fmt: skip
    table = of.policy if isinstance(of, Certificate) else of
    require_kind(table, PolicyTable, "draw('policy', policy) takes a PolicyTable, or a certificate, which has one")
    columns = table.by_state()
    ranked = (telling_variables(table) if findings is None else findings.variables) or list(columns)[:-1]
    return draw_policy(axes, columns, *axes_of_map(ranked, x, y, fixed), fixed=fixed)


def _advice(axes: Any, of: Any, findings: Findings | None) -> Any:
    given = of.to_dict() if isinstance(of, Advice) else _needed("advice", findings).advice
    if not given.get("choices"):
        raise DataError(f"there is no advice to draw: {given.get('none') or 'it was not saved'}")
    return draw_advice(axes, given)


def _residuals(axes: Any, of: Any, findings: Findings | None) -> Any:
    is_check = _is_shown_as("residuals", of)
    headline = of.headline if is_check else "Residuals at the most likely parameters"
    cells = of.cells if is_check else cells_in(_needed("residuals", findings))
    if not cells:
        where = "at two values of a variable or under two actions"
        raise DataError(f"there is nothing to draw: no choice with several outcomes was seen {where}")
    return draw_residuals(axes, cells, headline)


def cells_in(findings: Findings) -> list[CellResiduals]:
    """Return the residuals of variables and actions in findings."""
    names = Residuals.__dataclass_fields__
    return [
        CellResiduals(
            each["kind"],
            each["name"],
            each["change"],
            tuple(each["cells"]),
            Residuals(**{name: np.array(each[name], dtype=np.float64) for name in names}),
        )
        for each in findings.residuals.get("cells", ())
    ]


def _difference(axes: Any, of: Any, findings: Findings | None) -> Any:
    if not isinstance(of, Certificate):
        _require_shown_as("difference", of, "draw('difference', found) takes what difference or improve returns")
    between = of.difference if hasattr(of, "difference") else of  # that of an improvement
    asked = (of if isinstance(of, Certificate) else between.first).claim.objective
    told = of.comparison.difference if isinstance(of, Certificate) else between.comparison
    if not told:
        raise DataError("this certificate has no comparison: give what difference or improve returned")
    return draw_difference(axes, told, objective=asked)


def _net_benefit(axes: Any, of: Any, findings: Findings | None) -> Any:
    _require_shown_as("net benefit", of, "draw('net benefit', found) takes what net_benefit returns")
    return draw_net_benefit(axes, of)


def _online(axes: Any, of: Any, findings: Findings | None, *, truth: float | None = None) -> Any:
    if not isinstance(of, Sequence | Mapping):
        _require_shown_as("online", of, "draw('online', run) takes an OnlineRun, or its records")
    named = of if isinstance(of, Mapping) else {"": of}
    texts = {run.objective for run in named.values() if _is_shown_as("online", run)}
    lists = {name: run.records if _is_shown_as("online", run) else list(run) for name, run in named.items()}
    shown = lists if isinstance(of, Mapping) else lists[""]
    return draw_online(axes, shown, objective=" / ".join(sorted(texts)), truth=truth)


def _watch(axes: Any, of: Any, findings: Findings | None) -> Any:
    _require_shown_as("watch", of, "draw('watch', watch) takes what watch returned")
    return draw_watch(axes, of)


def _units(axes: Any, of: Any, findings: Findings | None) -> Any:
    _require_shown_as("units", of, "draw('units', table) takes what certify_each returned, or share_worse of its table")
    table, reached = of.shown
    is_max = table.direction == "max"
    return draw_units(axes, table.rows, objective=table.question, is_max=is_max, reached=reached)


def _is_shown_as(kind: str, of: Any) -> bool:
    """Return whether a result says that this picture shows it, so that pictures need not know who makes results."""
    return getattr(of, "picture", None) == kind


def _require_shown_as(kind: str, of: Any, wanted: str) -> None:
    if not _is_shown_as(kind, of):
        raise DataError(f"{wanted}, not {type(of).__name__}")


_KINDS: Mapping[str, Callable[..., Any]] = {
    "ladder": _ladder,
    "region": _region,
    "expressions": _expressions,
    "policy": _policy,
    "advice": _advice,
    "residuals": _residuals,
    "difference": _difference,
    "net benefit": _net_benefit,
    "online": _online,
    "watch": _watch,
    "units": _units,
}
"""The function that draws each kind of picture, into axes or a new figure."""

_OPTIONS = dict.fromkeys(("ladder", "region", "online"), ("truth",)) | {"policy": ("x", "y", "fixed")}
