"""Certificates with 4 to 200 parameters: layered models, with the likelihood beside intervals and ellipsoids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.certifying.pipeline import certify
from plumdp.data.simulate import simulate
from studies.experiment import held_against_truth
from studies.layered import KINDS, layered_model
from studies.markdown import distinct, grouped, markdown_table, mean, short, short_seconds
from studies.plots import WIDTH, fine_ticks, finite, line, new_figure
from studies.study import Cell, Plan, Row, Study

_ELLIPSOID = "ellipsoid P_R"
_MOST_PRODUCTS = 8  # parameters for which an ellipsoid of products ends within minutes
_METHODS: dict[str, tuple[bool, dict[str, Any]]] = {  # name → whether with pilot, and how to certify
    "intervals P_Λ": (False, {"confidence_set": "interval", "relaxation": "expression"}),
    "intervals P_R": (False, {"confidence_set": "interval", "relaxation": "rectangular"}),
    _ELLIPSOID: (False, {"confidence_set": "ellipsoid", "relaxation": "rectangular"}),
    "likelihood, no pilot": (False, {"confidence_set": "likelihood", "relaxation": "coupled"}),
    "likelihood, coupled": (True, {"confidence_set": "likelihood", "relaxation": "coupled"}),
}
_COLOURS = {"mixture": "#0072b2", "sparse": "#d55e00", "bilinear": "#009e73", "blocks": "#cc79a7"}


def _check(instance: str) -> None:
    """Refuse an instance that is not a kind and a number of parameters, such as ``mixture:20``."""
    kind, _, number = instance.partition(":")
    if kind not in KINDS or not number.isdecimal() or int(number) < 2:
        raise DataError(f"{instance!r}: give one of {', '.join(KINDS)} and a number of parameters, such as mixture:20")


def _run(cell: Cell) -> list[Row]:
    """Return a row per method for one kind of model and number of parameters."""
    kind, _, number = cell.instance.partition(":")
    made = layered_model(kind, int(number))
    counts = simulate(made.model, made.true_point, cell.runs, rng=cell.seed, max_steps=made.max_steps)
    rows = []
    for method, (has_pilot, options) in _METHODS.items():
        if method == _ELLIPSOID and (kind == "blocks" or (kind == "bilinear" and int(number) > _MOST_PRODUCTS)):
            continue
        began = process_time()
        data = counts if has_pilot else replace(counts, pilot=None)
        certificate = certify(made.model, data, made.objective, **options)
        seconds = process_time() - began
        found = held_against_truth(made.model, made.true_point, made.objective, certificate)
        rows.append({"method": method} | found | {"cpu_seconds": seconds})
    return rows


def _describe(rows: Sequence[Row]) -> list[str]:
    groups, methods = grouped(rows, "instance", "method"), list(_METHODS)
    lines = [
        [
            instance,
            *(_entry(groups.get((instance, method), [])) for method in methods),
        ]
        for instance in distinct(rows, "instance")
    ]
    held = sum(row["holds"] for row in rows)
    return [
        "Layered models of about 9,400 states (see `studies.layered`); kind and number of parameters. Gap: "
        "distance of the bounds over the true value of the certified policy, and processor seconds of the certificate; "
        f"means over {len(distinct(rows, 'seed'))} seeds. Ellipsoids of blocks, and of products with more than "
        f"{_MOST_PRODUCTS} parameters, are left out, as they take too long.",
        markdown_table(["model", *methods], lines),
        f"The true value of the certified policy lies in {held} of {len(rows)} brackets.",
    ]


def _entry(rows: Sequence[Row]) -> str:
    """Return gap and seconds of a method, or a dash if it was left out."""
    return f"{short(mean(rows, 'gap'))} ({short_seconds(mean(rows, 'cpu_seconds'))} s)" if rows else "–"


def _draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw the gap against the number of parameters, one line per kind and method."""
    groups = grouped(rows, "instance", "method")
    styles = dict(zip(_METHODS, (":", "-.", (0, (1, 4)), "--", "-"), strict=True))
    with new_figure(folder / "many-parameters", (WIDTH, 5.0)) as figure:
        axes = figure.add_subplot()
        for kind, colour in _COLOURS.items():
            names = [name for name in distinct(rows, "instance") if name.startswith(kind)]
            numbers = [int(name.partition(":")[2]) for name in names]
            for method, style in styles.items():
                gaps = finite([mean(groups.get((name, method), [{"gap": np.nan}]), "gap") for name in names])
                axes.plot(numbers, gaps, color=colour, linestyle=style, marker="o", markersize=3)
        axes.set_xscale("log")
        axes.set_yscale("log")
        ticks = sorted({int(name.partition(":")[2]) for name in distinct(rows, "instance")})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("parameters")
        axes.set_ylabel("relative gap")
        fine_ticks(axes.yaxis)
        axes.grid(linewidth=0.3)
        marks = [line("-", kind, colour=colour) for kind, colour in _COLOURS.items()]
        words = {name: name.replace(" P_R", ", rectangular").replace(" P_Λ", "") for name in _METHODS}
        marks += [line(style, words[method]) for method, style in styles.items()]
        figure.legend(handles=marks, loc="outside upper center", ncols=2)
    return [folder / "many-parameters.png"]


_NUMBERS = (4, 8, 12, 20, 50)
_ONE_BLOCK = ("mixture", "sparse", "bilinear")

PARAMETERS = Study(
    name="parameters",
    summary="certificates with 4 to 200 parameters",
    plans={
        "quick": Plan((*(f"{kind}:{d}" for kind in _ONE_BLOCK for d in (4, 8)), "blocks:20"), (1,), 10_000),
        "full": Plan(
            (*(f"{kind}:{d}" for kind in _ONE_BLOCK for d in _NUMBERS), "blocks:40", "blocks:200"), (1, 2, 3), 10_000
        ),
    },
    run=_run,
    describe=_describe,
    draw=_draw,
    check=_check,
)
