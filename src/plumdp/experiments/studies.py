"""The studies: each is a function from a cell, which is one instance with one seed, to rows of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from plumdp.case_studies import case_study
from plumdp.data.counts import TransitionCounts
from plumdp.data.simulate import simulate
from plumdp.experiments.experiment import Experiment, forget_peak_memory, peak_memory, prepare, warm_up
from plumdp.learning import Clock, Sets
from plumdp.online import learn_online, simulator
from plumdp.pipeline import compare, relaxations_for
from plumdp.result.certificate import Certificate

Study: TypeAlias = Literal["table", "online", "ellipsoid", "scaling"]
Size: TypeAlias = Literal["quick", "full"]
Row: TypeAlias = dict[str, Any]  # of text and numbers

RELAXATIONS = relaxations_for("interval")  # all
EXPLORATION = 0.1  # share of other choices than the optimistic one, as published

_SMALL = ("aircraft:50,10", "betting:50", "engagement:100", "rover:50,50", "glider:21,17", "parallel:5")
_ALL = (
    *("aircraft:50,10", "aircraft:100,20", "aircraft:200,40"),
    *("betting:50", "betting:100", "betting:135", "betting:150"),
    *("engagement:100", "engagement:300", "engagement:1000"),
    *("rover:50,50", "rover:75,75", "rover:125,125"),
    *("glider:21,17", "glider:51,47", "glider:71,67"),
    *("parallel:5", "parallel:10", "parallel:20"),
)
_ONLINE = ("aircraft:20,10", "betting:25", "engagement:50", "rover:10,10", "glider:11,9", "parallel:6")
_GROWING = (
    *("aircraft:20,10", "aircraft:50,10", "aircraft:100,20"),
    *("betting:25", "betting:50", "betting:100"),
    *("engagement:50", "engagement:100", "engagement:300"),
    *("rover:10,10", "rover:20,20,7", "rover:50,50"),
    *("glider:11,9", "glider:21,17", "glider:51,47"),
    *("parallel:5", "parallel:6", "parallel:10"),
)
_LARGE = (
    *("aircraft:200,40", "betting:150", "engagement:1000"),
    *("rover:75,75", "rover:125,125", "glider:71,67", "parallel:20"),
)


@dataclass(frozen=True)
class Plan:
    """What a study runs unless told otherwise."""

    instances: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: int  # trajectories, or episodes


PLANS: Mapping[tuple[Study, Size], Plan] = {
    ("table", "quick"): Plan(_SMALL, (1,), 100_000),
    ("table", "full"): Plan(_ALL, (1,), 100_000),
    ("online", "quick"): Plan(_ONLINE, (1, 2), 10_000),
    ("online", "full"): Plan(_ONLINE, (1, 2, 3, 4, 5), 100_000),
    ("ellipsoid", "quick"): Plan(_SMALL, (1,), 100_000),
    ("ellipsoid", "full"): Plan(_ALL, (1,), 100_000),
    ("scaling", "quick"): Plan(_GROWING, (1,), 10_000),
    ("scaling", "full"): Plan((*_GROWING, *_LARGE), (1,), 10_000),
}


@dataclass(frozen=True)
class Cell:
    """The smallest part of a study that is run, and kept, on its own."""

    study: Study
    instance: str
    seed: int
    runs: int

    @property
    def name(self) -> str:
        """A name for its file."""
        return f"{self.instance.replace(':', '-').replace(',', '-')}_seed-{self.seed}_runs-{self.runs}"


def run_cell(cell: Cell) -> list[Row]:
    """Return the rows of a cell, which depend on nothing else, except for seconds and memory."""
    warm_up()
    forget_peak_memory()
    rows = _STUDIES[cell.study](cell)
    common: Row = {"instance": cell.instance, "seed": cell.seed, "runs": cell.runs}
    memory = peak_memory()
    return [common | row | {"memory": memory} for row in rows]


def _table(cell: Cell) -> list[Row]:
    """The published table, with the published intervals and with those that plumdp vouches for."""
    experiment = prepare(cell.instance)
    counts = experiment.draw(cell.runs, cell.seed)
    return [*_certified(experiment, counts, "interval", paper=True), *_certified(experiment, counts, "interval")]


def _ellipsoid(cell: Cell) -> list[Row]:
    """The three kinds of sets, and the published ellipsoid."""
    experiment = prepare(cell.instance)
    counts = experiment.draw(cell.runs, cell.seed)
    ours = [row for sets in get_args(Sets) for row in _certified(experiment, counts, sets)]
    return [*ours, *_certified(experiment, counts, "ellipsoid", paper=True)]


def _certified(experiment: Experiment, counts: TransitionCounts, sets: Sets, *, paper: bool = False) -> list[Row]:
    """Return one row per relaxation: bounds on the value of the policy that is optimal at the true point."""
    study = experiment.study
    relaxations, policy = relaxations_for(sets), experiment.truth.policy
    certificates = compare(
        study.model,
        counts,
        study.objective,
        relaxations=relaxations,
        confidence_set=sets,
        as_published=paper,
        policy=policy,
    )
    known: Row = {"sets": sets, "paper": int(paper), "value": experiment.value, "steps": counts.total}
    return [
        known | {"relaxation": relaxation} | _bounds(certificate, experiment)
        for relaxation, certificate in zip(relaxations, certificates, strict=True)
    ]


def _bounds(certificate: Certificate, experiment: Experiment) -> Row:
    """Return the bounds of a certificate, whether the truth lies between them, and its seconds."""
    start, truth = experiment.study.model.graph.initial_state, experiment.truth
    seconds = certificate.seconds
    return {
        "lower": certificate.lower,
        "upper": certificate.upper,
        "gap": (certificate.upper - certificate.lower) / experiment.value,
        "holds": int(certificate.lower <= truth.upper[start] and truth.lower[start] <= certificate.upper),
        "build_seconds": sum(time for stage, time in seconds.items() if stage != "solver"),
        "solve_seconds": seconds["solver"],
        "status": str(certificate.status),
        "solver": certificate.solver,
    }


def _online(cell: Cell) -> list[Row]:
    """Learning curves: one row per update, for each relaxation with data of its own."""
    experiment = prepare(cell.instance)
    study, rows = experiment.study, []
    for relaxation in RELAXATIONS:
        environment = simulator(
            study.model, study.true_point, rng=cell.seed, max_steps=study.max_steps + 1, stop=experiment.stop
        )
        for record in learn_online(
            study.model,
            environment,
            study.objective,
            episodes=cell.runs,
            relaxation=relaxation,
            exploration=EXPLORATION,
        ):
            row: Row = {"relaxation": relaxation, "direction": study.objective.direction, "value": experiment.value}
            row |= {name: getattr(record, name) for name in ("episodes", "steps", "bound")}
            row |= {"hope": record.optimistic_bound, "width": record.width, "status": str(record.status)}
            assert record.true_value is not None
            rows.append(row | {"true_value": record.true_value, "seconds": record.seconds})
    return rows


def _scaling(cell: Cell) -> list[Row]:
    """What each stage costs, from the model to the certificate of the policy that it makes."""
    clock = Clock()
    study = case_study(cell.instance)
    clock.lap("model")
    model, steps = study.model, study.max_steps + 1
    counts = simulate(model, study.true_point, cell.runs, rng=cell.seed, max_steps=steps)
    clock.lap("runs")
    sizes: Row = {
        "states": model.graph.n_states,
        "transitions": model.graph.n_transitions,
        "expressions": len(model.expressions),
        "parameters": model.space.dimension,
    }
    certificates = compare(model, counts, study.objective, relaxations=RELAXATIONS)
    return [
        sizes
        | {"relaxation": name}
        | {f"{stage}_seconds": time for stage, time in (clock.laps | dict(c.seconds)).items()}
        for name, c in zip(RELAXATIONS, certificates, strict=True)
    ]


_STUDIES: Mapping[Study, Callable[[Cell], list[Row]]] = {
    "table": _table,
    "online": _online,
    "ellipsoid": _ellipsoid,
    "scaling": _scaling,
}
