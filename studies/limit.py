"""How far certificates are from what the same data allow at best: every kind of set beside the normal interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np

from plumdp.base.vocabulary import Relaxation
from plumdp.certifying.pipeline import conclude
from plumdp.confidence.estimates import information
from plumdp.data.counts import Pilot
from plumdp.data.pilots import moments_of, open_pilot
from plumdp.data.simulate import simulate
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray
from plumdp.result.certificate import Certificate
from plumdp.solver.coupled.gradient import policy_gradient
from studies.experiment import Experiment, held_against_truth, learn_with, prepare
from studies.markdown import distinct, grouped, markdown_table, mean, middle, short, short_seconds
from studies.plots import WIDTH, finite, line, name_rows, new_figure
from studies.published import INSTANCES, SMALL_INSTANCES
from studies.study import Cell, Plan, Row, Study

LIMIT_METHOD = "normal interval, not valid"
_FEWER_RUNS = (1_000, 10_000)  # for the small instances, besides those of the plan
_NOT_LARGE = 100  # times the limit: a gap beyond that is drawn at the edge

_METHODS: Mapping[str, tuple[str, str, Relaxation]] = {  # name → what is known of order, set, relaxation
    "published P_R": ("none", "published-interval", "rectangular"),
    "intervals P_R": ("none", "interval", "rectangular"),
    "ellipsoid P_R": ("none", "ellipsoid", "rectangular"),
    "likelihood, no order": ("none", "likelihood", "coupled"),
    "likelihood, in order": ("open", "likelihood", "coupled"),
    "likelihood, expected": ("expected", "likelihood", "coupled"),
    "likelihood P_R": ("planned", "likelihood", "rectangular"),
    "likelihood, coupled": ("planned", "likelihood", "coupled"),
}
_LOOKS = {
    "published P_R": ("#999999", "s"),
    "intervals P_R": ("#e69f00", "D"),
    "ellipsoid P_R": ("#56b4e9", "v"),
    "likelihood, no order": ("#009e73", "o"),
    "likelihood, in order": ("#cc79a7", "p"),
    "likelihood, expected": ("#882255", "h"),
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
    for method, (order, sets, relaxation) in _METHODS.items():
        began = process_time()
        data = replace(counts, pilot=_known(counts.pilot, order, runs))
        learned = learn_with(study.model, data, sets, objectives=[study.objective])
        certificate = conclude(learned, study.objective, relaxation=relaxation)
        rows.append(_row(experiment, method, runs, certificate, process_time() - began))
        last = learned, certificate
    assert last is not None
    return [*rows, _limit(experiment, runs, *last)]


def _known(pilot: Pilot | None, order: str, runs: int) -> Pilot | None:
    """Return the bets that were placed, given what is known: the length, the order alone, or neither."""
    if order == "none" or pilot is None:
        return None
    if order == "planned":
        return pilot
    seen = [seen for seen, n in zip(pilot.seen_at_moments, pilot.lengths, strict=True) if n in moments_of(runs)]
    return open_pilot(seen, runs, seen[0] - seen[0], expected=float(runs) if order == "expected" else None)


def _limit(experiment: Experiment, runs: int, learned: Learned, certificate: Certificate) -> Row:
    """Return the row of the two-sided normal interval of the value of the tightest certificate's policy.

    Its standard deviation is that of the most likely value, to first order: what an estimate from all data, with its
    standard error, would claim. Nothing proves it.
    """
    began, study = process_time(), experiment.study
    value, gradient = policy_gradient(study.model, certificate.policy.choice, study.objective, learned.estimate)
    half = normal_half_width(learned, gradient)
    ends = replace(certificate.claim, lower=value - half, upper=value + half)
    limit = replace(certificate, claim=ends)
    return _row(experiment, LIMIT_METHOD, runs, limit, process_time() - began)


def normal_half_width(learned: Learned, gradient: FloatArray) -> float:
    """Return half the width of the normal interval of a value with a gradient at the estimate, by the delta method."""
    from scipy.stats import norm

    table = learned.table
    seen = (
        table.basis.T
        @ information(table, table.pool_seen(learned.counts.seen).outcome_counts, learned.estimate)
        @ table.basis
    )
    slope = table.basis.T @ gradient
    return float(norm.isf(learned.error / 2) * np.sqrt(slope @ np.linalg.solve(seen, slope)))


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
        "is the normal interval of the value of the policy before it, at the same confidence: a yardstick that nothing "
        "proves. Order: none; in order, whenever the data stopped; likewise, with the length expected; planned length "
        "(the last two)."
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
        name_rows(axes, instances)
        axes.grid(axis="x", linewidth=0.3)
        what = "gap over that of the normal interval, which nothing proves"
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
