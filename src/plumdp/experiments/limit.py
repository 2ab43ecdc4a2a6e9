"""How far certificates are from what the same data allow at best: every kind of set beside the chi-square limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from plumdp.confidence.estimates import information
from plumdp.confidence.likelihood import LikelihoodSet
from plumdp.data.simulate import simulate
from plumdp.experiments.experiment import Experiment, held_against_truth, prepare
from plumdp.experiments.markdown import distinct, grouped, markdown_table, mean, middle, short, short_seconds
from plumdp.experiments.plots import WIDTH, finite, line, new_figure
from plumdp.experiments.published import INSTANCES, SMALL_INSTANCES
from plumdp.experiments.study import Cell, Plan, Row, Study
from plumdp.learning import Learned, learn
from plumdp.model.graph import FloatArray
from plumdp.pipeline import conclude
from plumdp.region.build import build_region
from plumdp.region.ellipsoid import build_ellipsoid
from plumdp.region.shapes import Polytope
from plumdp.result.certificate import Certificate

LIMIT_METHOD = "chi-square, not valid"
_FEWER_RUNS = (1_000, 10_000)  # for the small instances, besides those of the plan
_NOT_LARGE = 100  # times the limit: a gap beyond that is drawn at the edge

_METHODS: Mapping[
    str, tuple[bool, Mapping[str, Any], str]
] = {  # name → whether with pilot, what is learned, relaxation
    "published P_R": (False, {"confidence_set": "interval", "as_published": True}, "rectangular"),
    "intervals P_R": (False, {"confidence_set": "interval"}, "rectangular"),
    "ellipsoid P_R": (False, {"confidence_set": "ellipsoid"}, "rectangular"),
    "likelihood, no pilot": (False, {"confidence_set": "likelihood"}, "coupled"),
    "likelihood P_R": (True, {"confidence_set": "likelihood"}, "rectangular"),
    "likelihood, coupled": (True, {"confidence_set": "likelihood"}, "coupled"),
}
_LOOKS = {
    "published P_R": ("#999999", "s"),
    "intervals P_R": ("#e69f00", "D"),
    "ellipsoid P_R": ("#56b4e9", "v"),
    "likelihood, no pilot": ("#009e73", "o"),
    "likelihood P_R": ("#0072b2", "^"),
    "likelihood, coupled": ("#d55e00", "*"),
}


def _run(cell: Cell) -> list[Row]:
    """Return a row per method and number of runs: small instances with fewer runs as well."""
    experiment = prepare(cell.instance)
    fewer = [runs for runs in _FEWER_RUNS if cell.instance in SMALL_INSTANCES and runs < cell.runs]
    return [row for runs in (*fewer, cell.runs) for row in _rows(experiment, runs, cell.seed)]


def _rows(experiment: Experiment, runs: int, seed: int) -> list[Row]:
    study = experiment.study
    counts = simulate(study.model, study.true_point, runs, rng=seed, max_steps=study.max_steps + 1)
    rows, last = [], None
    for method, (has_pilot, options, relaxation) in _METHODS.items():
        began = process_time()
        data = counts if has_pilot else replace(counts, pilot=None)
        learned = learn(study.model, data, objectives=[study.objective], **options)
        certificate = conclude(learned, study.objective, relaxation=relaxation)  # type: ignore[arg-type]
        rows.append(_row(experiment, method, runs, certificate, process_time() - began))
        last = learned, certificate
    assert last is not None
    return [*rows, _limit(experiment, runs, *last)]


def _limit(experiment: Experiment, runs: int, learned: Learned, certificate: Certificate) -> Row:
    """Return the row of the asymptotic ellipsoid, for the policy of the tightest certificate: nothing proves it."""
    began = process_time()
    found = learned.bounds
    assert isinstance(found, LikelihoodSet)
    everything = found.table.pool(learned.counts.counts)
    region = _asymptotic(learned, found, information(found.table, everything, learned.estimate))
    bare = replace(learned, region=region, bounds=replace(found, strips=None))
    limit = conclude(bare, experiment.study.objective, relaxation="coupled", policy=certificate.policy)
    return _row(experiment, LIMIT_METHOD, runs, limit, process_time() - began)


def _asymptotic(learned: Learned, found: LikelihoodSet, matrix: FloatArray) -> Any:
    """Return the chi-square ellipsoid about the estimate, unbounded where nothing depends on the parameters."""
    from scipy.stats import chi2

    whole = build_region(learned.model.space, (), (), ())
    assert isinstance(whole, Polytope)
    k, d = found.table.basis.shape[1], len(matrix)
    square = float(chi2.isf(learned.error, k))
    if k < d:
        size = float(((whole.upper - whole.lower) ** 2).sum())
        rest = np.eye(d) - found.table.basis @ found.table.basis.T
        matrix, square = matrix + 0.005 * square / size * rest, 1.005 * square
    return build_ellipsoid(learned.estimate, (matrix + matrix.T) / 2, float(np.sqrt(square)), within=whole)


def _row(experiment: Experiment, method: str, runs: int, certificate: Certificate, seconds: float) -> Row:
    study = experiment.study
    found = held_against_truth(study.model, study.true_point, study.objective, certificate)
    return {"method": method, "runs": runs} | found | {"cpu_seconds": seconds, "status": str(certificate.status)}


def _describe(rows: Sequence[Row]) -> list[str]:
    groups = grouped(rows, "runs", "instance", "method")
    methods = distinct(rows, "method")
    parts = [
        "Gap: distance of the bounds over the true value of the certified policy; mean over "
        f"{len(distinct(rows, 'seed'))} seeds. Every method certifies the policy that it finds best. The last column "
        "is the asymptotic ellipsoid, for the policy before it: a yardstick that nothing proves."
    ]
    for runs in sorted(distinct(rows, "runs"), reverse=True):
        lines = [
            [instance, *(short(mean(groups[runs, instance, method], "gap")) for method in methods)]
            for instance in distinct([row for row in rows if row["runs"] == runs], "instance")
        ]
        parts += [f"## Relative gap, {runs:,} runs", markdown_table(["instance", *methods], lines)]
    most = max(distinct(rows, "runs"))
    seconds = [
        [i, *(short_seconds(middle(groups[most, i, method], "cpu_seconds")) for method in methods)]
        for i in distinct(rows, "instance")
    ]
    valid = [row for row in rows if row["method"] != LIMIT_METHOD]
    missed = [f"{row['instance']} {row['method']} (seed {row['seed']})" for row in valid if not row["holds"]]
    return [
        *parts,
        "## Processor seconds of the certificate, model and runs not counted",
        markdown_table(["instance", *methods], seconds),
        f"The true value of the certified policy lies in {len(valid) - len(missed)} of {len(valid)} brackets"
        + (f"; not in those of {', '.join(missed)}." if missed else "."),
    ]


def _draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw the gap of each method over the limit, one line per instance."""
    most = max(distinct(rows, "runs"))
    groups = grouped([row for row in rows if row["runs"] == most], "instance", "method")
    instances = distinct(rows, "instance")
    gap = partial(mean, name="gap")
    with new_figure(folder / "limit", (WIDTH, 0.36 * len(instances) + 2.2)) as figure:
        axes = figure.add_subplot()
        for height, instance in enumerate(instances):
            limit = gap(groups[instance, LIMIT_METHOD])
            for method, (colour, marker) in _LOOKS.items():
                ratio = finite(gap(groups[instance, method]) / limit)
                axes.plot(ratio, height, linestyle="none", marker=marker, color=colour, markersize=6)
        axes.axvline(1.0, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlim(right=min(axes.get_xlim()[1], _NOT_LARGE))
        shown = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50) if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
        axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
        axes.set_xticks([], minor=True)
        axes.set_yticks(range(len(instances)), instances)
        axes.set_ylim(len(instances) - 0.5, -0.5)
        axes.grid(axis="x", linewidth=0.3)
        what = "gap over that of the chi-square ellipsoid, which nothing proves"
        axes.set_xlabel(f"{what};\n{most:,} runs; 1: the statistical limit")
        words = {name: name.replace(" P_R", ", rectangular") for name in _LOOKS}
        marks = [line("none", words[method], colour=c, marker=m) for method, (c, m) in _LOOKS.items()]
        figure.legend(handles=marks, loc="outside upper center", ncols=2)
    return [folder / "limit.png"]


LIMIT = Study(
    name="limit",
    summary="every kind of set beside the statistical limit",
    plans={"quick": Plan(SMALL_INSTANCES, (1,), 100_000), "full": Plan(INSTANCES, (1, 2, 3), 100_000)},
    run=_run,
    describe=_describe,
    draw=_draw,
)
