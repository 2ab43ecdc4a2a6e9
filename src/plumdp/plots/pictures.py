"""Whole pictures from live objects, one function for each question, each of which returns a ``Picture``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from plumdp.base.errors import DataError, require_kind
from plumdp.certifying.difference import Difference
from plumdp.certifying.improvement import Improvement
from plumdp.certifying.net_benefit import NetBenefit
from plumdp.certifying.pipeline import conclude
from plumdp.explaining.check import ModelCheck
from plumdp.explaining.finding import count_expressions, drawing, expression_rows, outlines, telling_variables
from plumdp.learning.learned import Learned, require_learned
from plumdp.model.language.property import as_objective
from plumdp.model.objective import Objective
from plumdp.model.policy import Policy
from plumdp.model.text import one_line
from plumdp.online.records import OnlineRun
from plumdp.plots.advice_bars import advice_figure, plot_advice
from plumdp.plots.bounds_ladder import ladder_figure, plot_ladder
from plumdp.plots.difference_bars import difference_figure, plot_difference
from plumdp.plots.expression_forest import forest_figure, plot_forest
from plumdp.plots.model_graph import model_figure, plot_model
from plumdp.plots.net_benefit_bands import net_benefit_figure, plot_net_benefit
from plumdp.plots.online_curve import online_figure, plot_online
from plumdp.plots.policy_map import axes_of_map, plot_policy, policy_figure
from plumdp.plots.region_outline import pair_of, plot_region, region_figure
from plumdp.plots.residual_panels import residual_figure
from plumdp.plots.style import styled, svg_of, write_figure
from plumdp.result.advice import Advice
from plumdp.result.certificate import Certificate
from plumdp.result.findings import Outline
from plumdp.result.policy_table import PolicyTable


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


def ladder(
    certificates: Certificate | Sequence[Certificate] | Mapping[str, Certificate],
    *,
    truth: float | None = None,
    axes: Any = None,
) -> Picture:
    """Return the picture of the bounds of certificates, such as those of ``compare``, from loose to tight.

    Bars are named by their relaxations, or as in a mapping such as ``{"best": one, "mine": other}``. ``truth`` is the
    value that is known, as in an experiment. As in all these functions, ``axes`` of your own are drawn into, if you
    give some.
    """
    if isinstance(certificates, Certificate):
        certificates = [certificates]
    require_kind(certificates, (Sequence, Mapping), "plots.ladder takes certificates")
    if not certificates:
        raise DataError("certificates: there are none to draw; give those that compare returns")
    shown = list(certificates.values() if isinstance(certificates, Mapping) else certificates)
    for each in shown:
        require_kind(each, Certificate, "plots.ladder takes certificates")
    rungs = [certificate.rung for certificate in shown]
    if isinstance(certificates, Mapping):
        rungs = [replace(rung, relaxation=name) for rung, name in zip(rungs, certificates, strict=True)]
    dots, texts = [certificate.estimated_value for certificate in shown], {each.objective for each in shown}
    options: dict[str, Any] = {"objective": " / ".join(sorted(texts)), "estimate": dots, "truth": truth}
    return _picture(partial(ladder_figure, rungs, **options), plot_ladder, axes, rungs, **options)


def difference(found: Difference | Improvement, *, axes: Any = None) -> Picture:
    """Return the picture of the bounds on two policies' values and on their difference.

    Into ``axes`` of your own, only the difference is drawn.
    """
    require_kind(found, (Difference, Improvement), "plots.difference takes what difference or improve returns")
    between = found.difference if isinstance(found, Improvement) else found
    draw = partial(difference_figure, between.comparison, objective=between.first.objective)
    return _picture(draw, plot_difference, axes, between.comparison)


def net_benefit(found: NetBenefit, *, axes: Any = None) -> Picture:
    """Return the picture of net benefits over the willingness to pay, and of where each policy is the best one."""
    require_kind(found, NetBenefit, "plots.net_benefit takes what decisions.net_benefit returns")
    return _picture(partial(net_benefit_figure, found), plot_net_benefit, axes, found)


def region(
    learned: Learned | Certificate,
    objective: Objective | str | None = None,
    *,
    policy: Policy | None = None,
    truth: Mapping[str, Any] | None = None,
    axes: Any = None,
) -> Picture:
    """Return the picture of the region, a strip of one parameter, an outline of two, or pairs of the main ones.

    The parameters that matter are found for the ``policy`` and ``objective``. Without a policy it is the pilot's. Of a
    certificate there is only the box around the region, which is drawn for one or two parameters.
    """
    if isinstance(learned, Certificate):
        shown = _box_of(learned)
    else:
        require_learned("plots.region", learned)
        asked = None if objective is None else as_objective(objective, learned.model)
        shown = outlines(learned, asked, policy)
    if not shown:
        raise DataError("there is no region to draw: the data contradict the model, or it has no parameters")
    if axes is not None and len(shown) > 1:
        raise DataError("axes: several panels are needed for more than two parameters; leave out axes")
    true_point = None
    if truth is not None:
        point = truth if isinstance(learned, Certificate) else learned.model.space.point(truth)
        true_point = {name: float(value) for name, value in point.items()}
    make = partial(region_figure, shown, learned.parameters, truth=true_point)
    return _picture(make, plot_region, axes, shown[0], truth=pair_of(true_point, shown[0]))


def _box_of(certificate: Certificate) -> tuple[Outline, ...]:
    """Return what a certificate says of one or two parameters: the box around the region, and the estimate."""
    names, ends = tuple(certificate.parameters), tuple(certificate.parameters.values())
    if len(names) > 2:
        raise DataError(
            f"a certificate keeps the bounds of its {len(names)} parameters, and not their region: give what learn "
            "returned, or figure_of('region', certificate, findings)"
        )
    if not names:
        return ()
    point = [certificate.estimate.get(name) for name in names]
    first, second = (point[0], point[-1] if len(names) == 2 else 0.0)
    estimate = None if first is None or second is None else (first, second)
    return (Outline((names[0], names[1] if len(names) == 2 else ""), estimate, (ends[0], ends[-1]), (), ()),)


def forest(learned: Learned, objective: Objective | str, *, policy: Policy | None = None, axes: Any = None) -> Picture:
    """Return the picture of each expression's interval, estimate, share in the data, and trials.

    Expressions come first whose intervals matter most to the value of the policy, by default the certified one.
    """
    require_learned("plots.forest", learned)
    asked = as_objective(objective, learned.model)
    rows = expression_rows(learned, asked, _policy(learned, asked, policy))
    if not rows:
        why = "the data contradict the model" if learned.conflict is not None else "the model has no parameters"
        raise DataError(f"there are no expressions to draw: {why}")
    make = partial(forest_figure, rows, count_expressions(learned))
    return _picture(make, plot_forest, axes, rows)


def online(
    records: OnlineRun | Sequence[Any] | Mapping[str, OnlineRun | Sequence[Any]],
    *,
    objective: str = "",
    truth: float | None = None,
    axes: Any = None,
) -> Picture:
    """Return the picture of bounds over runs: of an ``OnlineRun``, records of ``learn_online``, or several by name."""
    require_kind(records, (OnlineRun, Sequence, Mapping), "plots.online takes an OnlineRun, or its records")
    named = records if isinstance(records, Mapping) else {"": records}
    texts = {run.objective for run in named.values() if isinstance(run, OnlineRun)}
    lists = {name: run.records if isinstance(run, OnlineRun) else list(run) for name, run in named.items()}
    shown = lists if isinstance(records, Mapping) else lists[""]
    options: dict[str, Any] = {"objective": objective or " / ".join(sorted(texts)), "truth": truth}
    return _picture(partial(online_figure, shown, **options), plot_online, axes, shown, **options)


def policy(
    table: PolicyTable | Certificate,
    *,
    x: str | None = None,
    y: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    axes: Any = None,
) -> Picture:
    """Return the picture of a policy, such as a certificate's, over two state variables that it depends on most.

    Other variables have the values in ``fixed``, or those that most states have. The title says which.
    """
    table = table.policy if isinstance(table, Certificate) else table
    require_kind(table, PolicyTable, "plots.policy takes a PolicyTable, or a certificate, which has one")
    first, second = axes_of_map(telling_variables(table), x, y, fixed)
    columns = table.by_state()
    options: dict[str, Any] = {"fixed": fixed}
    return _picture(
        partial(policy_figure, columns, first, second, **options), plot_policy, axes, columns, first, second, **options
    )


def advice(found: Advice, *, most: int = 10, axes: Any = None) -> Picture:
    """Return the picture of choices at which the next data help most, with the visits so far."""
    require_kind(found, Advice, "plots.advice takes what advise(learned, objective) returns")
    content = found.to_dict(most)
    return _picture(partial(advice_figure, content), plot_advice, axes, content)


def model(learned: Learned, objective: Objective | str, *, policy: Policy | None = None, axes: Any = None) -> Picture:
    """Return the picture of a model of at most 400 states as a graph, with a policy, by default the certified one."""
    require_learned("plots.model", learned)
    asked = as_objective(objective, learned.model)
    graph = drawing(learned, _policy(learned, asked, policy), asked)
    if graph is None:
        raise DataError(f"{learned.model.graph.n_states:,} states are too many to be drawn: a picture has at most 400")
    return _picture(partial(model_figure, graph), plot_model, axes, graph)


def residuals(check: ModelCheck) -> Picture:
    """Return the picture of differences between data and model, over each state variable and over the actions."""
    require_kind(check, ModelCheck, "plots.residuals takes what check_model(model, counts) returns")
    return Picture(residual_figure(check), "residuals")


def _policy(learned: Learned, objective: Objective, policy: Policy | None) -> Policy:
    return conclude(learned, objective).policy if policy is None else policy


def _picture(make: Callable[[], Any], plot: Callable[..., Any], axes: Any, *content: Any, **options: Any) -> Picture:
    """Return a new figure, or that of axes that were drawn into."""
    with styled():
        figure = make() if axes is None else plot(axes, *content, **options).figure
    return Picture(figure, plot.__name__.removeprefix("plot_"))
