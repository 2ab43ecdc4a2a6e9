"""Values in tables of unknown rows, beside the delta method and intervals: walks, ladders, grids, random graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log
from pathlib import Path
from time import process_time
from typing import TypeAlias

import numpy as np

from plumdp.base.errors import DataError, WhyNot
from plumdp.certifying.pipeline import certify
from plumdp.data.counts import TransitionCounts
from plumdp.data.simulate import simulate
from plumdp.model.graph import FloatArray, Indices
from plumdp.model.language.property import parse_property
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.table_model import table_model
from plumdp.solver.coupled.chain import policy_chain
from plumdp.tables.chain import pooled, table_chain
from plumdp.tables.plan import make_plan
from studies.experiment import held_against_truth
from studies.markdown import brackets_held, grouped, markdown_table, mean, short, short_seconds
from studies.plots import WIDTH, fine_ticks, new_figure, plain_ticks
from studies.study import Cell, Plan, Row, Study

Chain: TypeAlias = tuple[Indices, FloatArray, int]  # successors and probabilities (n, k), and the first node

_CONFIDENCE = 0.95
_PARTS = (10, 1)  # of the steps: a tenth of them, and all
_STEPS_PER_VISIT, _MOST_VISITS = 25, 40_000  # of each row, where all rows are visited equally often
_MOST_STEPS = 400  # of a run
_EXIT = 0.05


def _walk(n: int) -> Chain:
    """Return a line of nodes with rows up, down and stay, which ends well at the bottom."""
    node = np.arange(n)
    up, down = np.where(node + 1 < n, node + 1, n + 1), np.where(node > 0, node - 1, n)
    return np.stack([up, down, node], 1), np.random.default_rng(1).dirichlet([20.0] * 3, n), n // 2


def _exits(n: int) -> Chain:
    """Return the same with a chance of a twentieth in each row to end at once."""
    rng = np.random.default_rng(1)
    step, well = rng.dirichlet([20.0] * 3, n), _EXIT * rng.uniform(0.2, 0.8, n)
    ends = np.broadcast_to([n, n + 1], (n, 2))
    return np.hstack([_walk(n)[0], ends]), np.column_stack([step * (1 - _EXIT), well, _EXIT - well]), n // 2


def _rare(n: int) -> Chain:
    """Return a ladder on which each rung leads on, back to the start, or to the end; one run in a hundred climbs it."""
    rng, node = np.random.default_rng(1), np.arange(n)
    on = 0.01 ** (1 / n) * rng.uniform(0.85, 1.1, n)
    back = (1 - on) * rng.uniform(0.2, 0.5, n)
    return (
        np.stack([np.minimum(node + 1, n), 0 * node, 0 * node + n + 1], 1),
        np.column_stack([on, back, 1 - on - back]),
        0,
    )


def _sparse(n: int, *, reach: int | None = None) -> Chain:
    """Return rows with three successors, anywhere or not further away than a reach, and a chance of a tenth to end."""
    rng, far = np.random.default_rng(5), reach or n // 2
    gap = np.sort(rng.integers(-far, far - 1, (n, 3)), axis=1) + np.arange(3)  # three that differ
    end, well = 0.1 * rng.uniform(0.5, 1.5, n), rng.beta(2, 1, n)
    row = np.column_stack([rng.dirichlet(np.ones(3), n) * (1 - end)[:, None], end * well, end * (1 - well)])
    return np.hstack([(np.arange(n)[:, None] + gap) % n, np.broadcast_to([n, n + 1], (n, 2))]), row, n // 2


def _grid(size: int) -> Chain:
    """Return the best policy's chain in a grid with holes, where each cell and move has its own slips and hazard."""
    from scipy.ndimage import label

    rng, parts = np.random.default_rng(3), np.zeros((size, size))
    while not parts[-1, -1] or parts[0, 0] != parts[-1, -1]:
        is_hole = rng.random((size, size)) < 0.15
        is_hole[0, 0] = is_hole[-1, -1] = False
        parts = label(~is_hole)[0]
    x, y = np.nonzero(parts == parts[0, 0])
    x, y, n = x[:-1], y[:-1], len(x) - 1  # the goal is the last cell
    number = np.full((size, size), n + 1)
    number[x, y], number[-1, -1] = np.arange(n), n
    turn, dx, dy = np.array([0, -1, 1]), np.array([0, 1, 0, -1]), np.array([-1, 0, 1, 0])
    move = (np.arange(4)[:, None] + turn) % 4
    to_x, to_y = x[:, None, None] + dx[move], y[:, None, None] + dy[move]
    is_in = (to_x >= 0) & (to_x < size) & (to_y >= 0) & (to_y < size)
    place = number[np.where(is_in, to_x, x[:, None, None]), np.where(is_in, to_y, y[:, None, None])]
    slip, hazard = rng.dirichlet([32.0, 4, 4], (n, 4)), rng.uniform(0, 0.02, (n, 4, 1))
    place = np.concatenate([place, np.full((n, 4, 1), n + 1)], 2)
    row = np.concatenate([slip * (1 - hazard), hazard], 2)
    value, worth = np.zeros(n), np.zeros((n, 4))
    for _ in range(3000):
        worth = (row * np.concatenate([value, [1.0, 0.0]])[place]).sum(2)
        value = worth.max(1)
    best = np.arange(n), worth.argmax(1)
    return place[best], row[best], 0


_KINDS: Mapping[str, tuple[Callable[[int], Chain], bool]] = {  # name → chain, and whether data are runs
    "walk": (_walk, True),
    "rare": (_rare, True),
    "grid": (_grid, True),
    "sparse": (_sparse, True),
    "exits": (_exits, False),
    "near": (partial(_sparse, reach=40), False),
}


def _check(instance: str) -> None:
    """Refuse an instance that is not a kind and a size, such as ``walk:20``."""
    kind, _, number = instance.partition(":")
    if kind not in _KINDS or not number.isdecimal() or int(number) < 4:
        raise DataError(f"{instance!r}: give one of {', '.join(_KINDS)} and a number of at least 4, such as walk:20")


def table_of(instance: str) -> tuple[ParametricMDP, FloatArray]:
    """Return the table of an instance, and its true point.

    >>> table_of("walk:6")[0]
    ParametricMDP(8 states, 20 transitions, 6 unknown rows)
    """
    kind, _, number = instance.partition(":")
    successor, probability, start = _KINDS[kind][0](int(number))
    n, k = successor.shape
    pair, place = np.unique(np.repeat(np.arange(n), k) * (n + 2) + successor.ravel(), return_inverse=True)
    model = table_model(
        pair // (n + 2),
        np.full(len(pair), "go"),
        pair % (n + 2),
        initial=start,
        labels={"good": lambda s: s.state == n},
    )
    row = np.bincount(place, probability.ravel())
    return model, np.concatenate([row / np.bincount(pair // (n + 2), row)[pair // (n + 2)], [1.0, 1.0]])


def data_of(cell: Cell, model: ParametricMDP, point: FloatArray, part: int) -> TransitionCounts:
    """Return data of about so many steps in runs, or of equally many visits of each row."""
    graph, is_end, steps, seed = model.graph, model.labels["deadlock"], cell.runs // part, cell.seed
    if _KINDS[cell.instance.partition(":")[0]][1]:
        few = simulate(model, point, 1000, rng=seed, max_steps=_MOST_STEPS, stop=is_end)
        runs = round(1000 * steps / few.total)
        return simulate(model, point, runs, rng=seed + 1, max_steps=_MOST_STEPS, stop=is_end)
    visits = np.where(is_end, 0, min(cell.runs // _STEPS_PER_VISIT, _MOST_VISITS) // part)
    rng = np.random.default_rng(seed)
    drawn = [
        rng.multinomial(n, row) for n, row in zip(visits, np.split(point, graph.first_transition[1:-1]), strict=True)
    ]
    return TransitionCounts(graph, np.concatenate(drawn), "independent")


def _limit(model: ParametricMDP, counts: TransitionCounts, objective: Objective) -> float:
    """Return the half width of the delta method, with √(2 ln(2 / error)) in place of a normal quantile."""
    chain = policy_chain(model, np.arange(model.graph.n_states), objective)
    if isinstance(chain, WhyNot):
        return float("nan")
    log_error = log(2 / (1 - _CONFIDENCE))
    plan = make_plan(table_chain(model, chain), pooled(model, counts.counts), 1.0, log_error)
    return float("nan") if plan is None else 2 * log_error / plan.scale


def _run(cell: Cell) -> list[Row]:
    """Return a row for a tenth of the steps, and for all."""
    model, point = table_of(cell.instance)
    objective = parse_property('Pmax=? [ F "good" ]', model)
    rows = []
    for part in _PARTS:
        counts = data_of(cell, model, point, part)
        began = process_time()
        certificate = certify(model, counts, objective, confidence=_CONFIDENCE)
        seconds = process_time() - began
        plain = certify(model, replace(counts, pilot=None, sampling="adaptive"), objective, confidence=_CONFIDENCE)
        found = held_against_truth(model, point, objective, certificate)
        row: Row = {
            "part": part,
            "parameters": int(model.graph.n_transitions - model.graph.n_choices),
            "steps": counts.total,
        }
        row |= {"limit": _limit(model, counts, objective), "half": (found["upper"] - found["lower"]) / 2}
        rows.append(row | found | {"intervals": (plain.upper - plain.lower) / 2, "cpu_seconds": seconds})
    return rows


def _describe(rows: Sequence[Row]) -> list[str]:
    header = ["table", "parameters", "steps", "value", "limit", "ours", "times", "intervals", "CPU s"]
    lines = []
    for (instance, parameters, _), group in grouped(rows, "instance", "parameters", "part").items():
        limit, half = mean(group, "limit"), mean(group, "half")
        lines.append([instance, f"{parameters:,}", f"{mean(group, 'steps'):.1e}", short(mean(group, "value"))])
        lines[-1] += [short(limit), short(half), f"{half / limit:.2f}", short(mean(group, "intervals"))]
        lines[-1].append(short_seconds(mean(group, "cpu_seconds")))
    return [
        f"Half widths at {_CONFIDENCE:g}. Limit: the delta method with √(2 ln(2/error)) standard deviations; "
        "nothing proves it. Ours: what `certify` does by default, with half of the error for the bets. "
        "Intervals: the same without bets. Data of `walk`, `rare`, `grid` and `sparse` are runs; in `exits` and `near` "
        "all rows were visited equally often, and the certificate draws its pilot.",
        markdown_table(header, lines),
        brackets_held(rows, "instance"),
    ]


def _draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw how many times the limit both kinds of bounds are, against the number of parameters."""
    looks = {"intervals": ("#e69f00", "D", "intervals"), "half": ("#d55e00", "*", "bets on temporal differences")}
    with new_figure(folder / "tables", (WIDTH, 4.2)) as figure:
        axes = figure.add_subplot(xscale="log", yscale="log", xlabel="parameters", ylabel="half width over the limit")
        for name, (colour, marker, words) in looks.items():
            ratio = [row[name] / row["limit"] for row in rows]
            look = {"color": colour, "marker": marker, "linestyle": "none", "label": words}
            axes.plot([row["parameters"] for row in rows], ratio, **look)
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.grid(linewidth=0.3)
        plain_ticks(axes.xaxis, is_log=True)
        fine_ticks(axes.yaxis)
        figure.legend(loc="outside upper center", ncols=2)
    return [folder / "tables.png"]


_SMALL = ("walk:6", "walk:20", "walk:56", "rare:6", "grid:8", "sparse:700")

TABLES = Study(
    name="tables",
    summary="tables of unknown rows beside the delta method and intervals",
    plans={
        "quick": Plan((*_SMALL, "exits:500", "exits:2500"), (1,), 1_000_000),
        "full": Plan(
            (*_SMALL, "exits:500", "exits:2500", "exits:25000", "near:1000", "near:10000", "near:100000"),
            (1,),
            10_000_000,
        ),
    },
    run=_run,
    describe=_describe,
    draw=_draw,
    check=_check,
)
