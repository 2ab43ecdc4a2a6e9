"""How well the difference of two policies is known, beside the difference of their brackets and the delta method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.certifying.difference import difference
from plumdp.confidence.space_moments import moments
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray
from plumdp.model.objectives import Objective
from plumdp.model.policy import check_policy
from plumdp.model.question import Question
from plumdp.relaxation.intervals import instantiate
from plumdp.solver.at_points import PointSolver, move_inside
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.evaluate import evaluate
from studies.experiment import Experiment, prepare
from studies.limit import normal_half_width
from studies.markdown import distinct, grouped, markdown_table, mean, short
from studies.plots import WIDTH, finite, name_rows, new_figure
from studies.published import SMALL_INSTANCES
from studies.study import Cell, Plan, Row, Study

_SMALLER = ("aircraft:20,10", "betting:25", "engagement:20", "rover:10,10", "glider:11,9", "parallel:5")
_PILOT = "pilot"
_LOOKS = {"uniform": ("#0072b2", "o"), "middle": ("#d55e00", "^"), _PILOT: ("#009e73", "s")}


def _run(cell: Cell) -> list[Row]:
    """Return a row for each pair of the best policy at the true point and a rival."""
    experiment = prepare(cell.instance)
    study, best = experiment.study, experiment.truth.policy
    counts = experiment.draw(cell.runs, cell.seed)
    rows = []
    for name, rival, question, prespecified in pairs(experiment, counts):
        began = process_time()
        learned = learn(study.model, counts, objectives=[prespecified])
        limit = _limit(learned, question)
        if limit == 0:  # it does the same wherever the best one leads
            continue
        found = difference(learned, study.objective, best, rival)
        seconds = process_time() - began
        brackets = found.first.upper - found.first.lower + found.second.upper - found.second.lower
        true = _true_difference(experiment, best, rival)
        rows.append(
            {
                "rival": name,
                "true": true,
                "lower": found.lower,
                "upper": found.upper,
                "width": found.upper - found.lower,
                "brackets": brackets,
                "limit": limit,
                "holds": bool(found.lower <= true <= found.upper),
                "cpu_seconds": seconds,
            }
        )
    return rows


def pairs(
    experiment: Experiment, counts: TransitionCounts
) -> Iterator[tuple[str, npt.NDArray[Any], Question, Question | Objective]]:
    """Yield rivals of the best policy with their names, the question about the difference, and what is pre-specified.

    Bets must not look ahead, as the end of the pilot does: a rival that it leads to is not pre-specified.
    """
    study, best = experiment.study, experiment.truth.policy
    for name, rival in _rivals(experiment, None if counts.pilot is None else counts.pilot.counts).items():
        question = Question(study.model, study.objective, policy=best, against=rival)
        yield name, rival, question, study.objective if name == _PILOT else question


def _rivals(experiment: Experiment, pilot: npt.NDArray[np.int64] | None) -> Mapping[str, npt.NDArray[Any]]:
    """Return policies to compare with: uniform choices, and the best ones in the middle of the space and by a pilot."""
    model, objective = experiment.study.model, experiment.study.objective
    solver, middle = PointSolver(model, objective), moments(model.space)[0]
    rivals: dict[str, npt.NDArray[Any]] = {"uniform": check_policy(model.graph, "uniform")}
    rivals["middle"] = solver.policy_at(move_inside(model, middle, middle))
    if pilot is not None and pilot.any():
        from plumdp.confidence.estimates import law_of_pilot, law_of_space
        from plumdp.confidence.likelihood_table import likelihood_table

        table = likelihood_table(model)
        point = law_of_pilot(table, table.pool(pilot), law_of_space(model)).mean
        rivals[_PILOT] = solver.without_memory().policy_at(move_inside(model, point, middle))
    return rivals


def _true_difference(experiment: Experiment, *policies: npt.NDArray[Any]) -> float:
    study = experiment.study
    at, start = instantiate(study.model, study.true_point), study.model.graph.initial_state
    one, other = (float(evaluate(at, policy, study.objective).lower[start]) for policy in policies)
    return one - other


def _limit(learned: Learned, question: Question) -> float:
    """Return the width of the normal interval of the difference at the same confidence, which nothing proves."""
    point = learned.estimate
    slope = _gradient(question, question.policy, point) - _gradient(question, question.against, point)
    return 2 * normal_half_width(learned, slope)


def _gradient(question: Question, policy: Any, point: FloatArray) -> FloatArray:
    return policy_gradient(question.model, policy, question.objective, point)[1]


def _describe(rows: Sequence[Row]) -> list[str]:
    groups = grouped(rows, "instance", "rival")
    lines = []
    for instance in distinct(rows, "instance"):
        for rival in distinct([row for row in rows if row["instance"] == instance], "rival"):
            of_pair = groups[instance, rival]
            width = mean(of_pair, "width")
            over = [width / mean(of_pair, name) for name in ("brackets", "limit")]
            lines.append([instance, rival, *(short(mean(of_pair, name)) for name in ("true", "width", "limit"))])
            lines[-1] += [short(ratio) for ratio in over]
    header = ["instance", "rival", "true difference", "width", "normal interval", "over brackets", "over normal"]
    n = len(rows)
    return [
        "The best policy at the true point against a rival: uniform choices, the best policy in the middle of the "
        "space, both pre-specified before the data, and the best policy of the first runs, which is not. Means over "
        f"{len(distinct(rows, 'seed'))} seeds. The last columns are the width over that of the difference of both "
        "brackets, and over that of the normal interval of the difference, which nothing proves.",
        markdown_table(header, lines),
        f"The true difference lies in {sum(bool(row['holds']) for row in rows)} of {n} brackets.",
    ]


def _draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw the width of each difference over that of the normal interval."""
    groups, instances = grouped(rows, "instance", "rival"), distinct(rows, "instance")
    with new_figure(folder / "differences", (WIDTH, 0.36 * len(instances) + 1.8)) as figure:
        axes = figure.add_subplot()
        for rival, (colour, marker) in _LOOKS.items():
            places = [(height, groups.get((each, rival))) for height, each in enumerate(instances)]
            shown = [(height, of_pair) for height, of_pair in places if of_pair]
            ratios = [finite(mean(of_pair, "width") / mean(of_pair, "limit")) for _, of_pair in shown]
            heights = [height for height, _ in shown]
            axes.plot(ratios, heights, linestyle="none", marker=marker, color=colour, label=rival)
        axes.axvline(1.0, color="black", linewidth=0.8)
        name_rows(axes, instances)
        axes.set_xlabel("width of the difference over that of the normal interval, which nothing proves")
        figure.legend(loc="outside upper center", ncols=3)
    return [folder / "differences.png"]


DIFFERENCES = Study(
    name="differences",
    summary="differences of two policies beside those of their brackets and the delta method",
    plans={"quick": Plan(_SMALLER, (1,), 100_000), "full": Plan(SMALL_INSTANCES, (1, 2, 3), 100_000)},
    run=_run,
    describe=_describe,
    draw=_draw,
)
