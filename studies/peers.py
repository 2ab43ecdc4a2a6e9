"""Interval MDPs solved by Storm and by us: the same models in one run, as a Markdown table.

    python -m studies.peers              four models against Storm (some minutes)
    python -m studies.peers --sweeps     one sweep against scipy's product of a sparse matrix with a vector
    python -m studies.peers --scale      acyclic models of 10^6, 10^7 and 10^8 transitions (needs 20 GB)

Each measurement runs in a process of its own, in seconds of its processor time, so that other work on the machine
counts little; Storm and we take turns. Given are the shortest time of each, their ratio, and the median ratio of all
pairs. Storm reads the model from a UMB archive; its clock covers the call of ``model_checking`` with its default
precision (values change by less than 10^-6, relative, from below). Ours covers ``solve(precision=1e-6)``, which proves
both sides; kernels are compiled before on a small model of the same kind. Neither clock covers building the model.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import plumdp as pl
from plumdp.exchange.write_intervals import write_umb
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP
from studies import timing

MOST = 14  # successors of a choice
PER_SIZE = 80  # intervals for each number of successors: about 1000 in all


@dataclass(frozen=True, eq=False)
class Problem:
    """An interval MDP, what is asked in our words and in Storm's, and the labels and rewards that Storm needs."""

    imdp: IntervalMDP
    objective: pl.model.Reach | pl.model.Reward
    formula: str
    labels: Mapping[str, npt.NDArray[np.bool_]]
    rewards: Mapping[str, RewardStructure]


def reach_problem(imdp: IntervalMDP, goal: npt.NDArray[np.bool_]) -> Problem:
    """Return the question for the largest probability to reach the goal."""
    return Problem(imdp, pl.model.Reach(goal, np.zeros_like(goal), "max"), 'Pmax=? [ F "goal" ]', {"goal": goal}, {})


def cost_problem(imdp: IntervalMDP, goal: npt.NDArray[np.bool_], cost: RewardStructure) -> Problem:
    """Return the question for the smallest expected cost until the goal."""
    formula = 'R{"cost"}min=? [ F "goal" ]'
    return Problem(imdp, pl.model.Reward(cost, "min", target=goal), formula, {"goal": goal}, {"cost": cost})


def interval_table(rng: np.random.Generator) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return bounds for rows of 1, 2, … successors, the same number for each size; any of them fit together."""
    share = 1 / np.repeat(np.arange(1, MOST + 1), PER_SIZE)
    lower, upper = share * rng.uniform(0.7, 0.95, len(share)), share * rng.uniform(1.05, 1.3, len(share))
    lower[:PER_SIZE] = upper[:PER_SIZE] = 1
    return lower, upper


def offsets(sizes: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Return where each group starts, and where the last one ends."""
    result = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=result[1:])
    return result


def layered(n_transitions: int) -> Problem:
    """Return an acyclic model: layers of up to 1000 states, two choices each, 4 to 14 successors in the next layer."""
    rng = np.random.default_rng(1)
    width = min(1000, n_transitions // 100)
    n_layers = n_transitions // (width * 2 * 9)
    n_inner = width * n_layers
    sizes = np.concatenate([rng.integers(4, MOST + 1, 2 * n_inner), np.ones(width, dtype=np.int64)])
    strides = np.cumsum(rng.integers(1, width // MOST, (2 * n_inner, MOST)), axis=1)
    inside = (rng.integers(0, width, (2 * n_inner, 1)) + strides) % width
    next_layer = (np.arange(2 * n_inner) // (2 * width) + 1) * width
    is_used = np.arange(MOST) < sizes[: 2 * n_inner, None]
    last_layer = np.arange(n_inner, n_inner + width)
    successor = np.concatenate([(next_layer[:, None] + inside)[is_used], last_layer])
    size_of_row = np.repeat(sizes, sizes)
    lower, upper = interval_table(rng)
    imdp = IntervalMDP.from_arrays(
        offsets(np.repeat([2, 1], [n_inner, width])),
        offsets(sizes),
        successor,
        lower,
        upper,
        expression=(size_of_row - 1) * PER_SIZE + rng.integers(0, PER_SIZE, len(successor)),
    )
    goal = np.zeros(n_inner + width, dtype=np.bool_)
    goal[n_inner::2] = True
    return reach_problem(imdp, goal)


def grid(n_transitions: int, *, traps: float) -> tuple[IntervalMDP, npt.NDArray[np.bool_]]:
    """Return a square grid and its goal, the last corner: four moves that may slip to any neighbour or stay.

    The borders have no neighbours beyond; a share of all cells are traps.
    """
    rng = np.random.default_rng(2)
    side = int((n_transitions / 20) ** 0.5)
    n_states = side * side
    x, y = np.divmod(np.arange(n_states), side)
    dx, dy = np.array([1, 0, -1, 0, 0]), np.array([0, 1, 0, -1, 0])
    to_x, to_y = x[:, None] + dx, y[:, None] + dy
    is_end = rng.random(n_states) < traps
    is_end[0], is_end[-1] = False, True
    is_choice = ~is_end[:, None] | (np.arange(4) == 0)
    is_inside = (to_x >= 0) & (to_x < side) & (to_y >= 0) & (to_y < side)
    is_inside = np.where(is_end[:, None], np.arange(5) == 4, is_inside)
    is_used = is_choice[:, :, None] & is_inside[:, None, :]
    weight = np.where(np.eye(4, 5, dtype=np.bool_), 0.7, 0.075) * is_used * rng.uniform(0.8, 1.2, is_used.shape)
    probability = (weight / np.maximum(weight.sum(axis=2, keepdims=True), 1e-9))[is_used]
    is_sure = probability == 1
    width = np.where(is_sure, 0, rng.uniform(0.02, 0.1, len(probability)))
    successor = np.broadcast_to((to_x * side + to_y)[:, None, :], is_used.shape)[is_used]
    imdp = IntervalMDP.from_arrays(
        offsets(is_choice.sum(axis=1)),
        offsets(is_used.sum(axis=2)[is_choice]),
        successor,
        probability * (1 - width),
        np.minimum(probability * (1 + width), 1),
    )
    return imdp, np.arange(n_states) == n_states - 1


def trap_grid(n_transitions: int) -> Problem:
    """Return the grid with 2 % traps: how likely is the goal?"""
    return reach_problem(*grid(n_transitions, traps=0.02))


def cost_grid(n_transitions: int) -> Problem:
    """Return the grid without traps: how many steps to the goal?"""
    imdp, goal = grid(n_transitions, traps=0)
    return cost_problem(imdp, goal, RewardStructure((~goal).astype(np.float64), None))


def engagement(levels: int) -> Problem:
    """Return Engagement around its true point, with widths of about 0.01 as data would leave them."""
    study = pl.case_study(f"engagement:{levels}")
    truth = pl.stages.instantiate(study.model, study.true_point)
    width = np.random.default_rng(3).uniform(0.005, 0.015, len(truth.lower))
    is_unsure = truth.lower < 1
    lower = np.where(is_unsure, np.maximum(truth.lower - width, 1e-4), 1)
    upper = np.where(is_unsure, np.minimum(truth.upper + width, 1 - 1e-4), 1)
    assert isinstance(study.objective, pl.model.Reward)
    assert study.objective.target is not None
    return cost_problem(replace(truth, lower=lower, upper=upper), study.objective.target, study.objective.reward)


MODELS: dict[str, tuple[Callable[[int], Problem], int, int]] = {  # how, how large, how large to warm up
    "layered": (layered, 5_000_000, 30_000),
    "grid with traps": (trap_grid, 1_000_000, 5_000),
    "grid with costs": (cost_grid, 1_000_000, 5_000),
    "Engagement (1000)": (engagement, 1000, 30),
}


def storm(path: str, formula: str) -> dict[str, Any]:
    """Return seconds and value of Storm's answer for one archive."""
    import stormpy
    import stormpy.developer

    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    model = stormpy.build_model_from_umb(path)
    asked = stormpy.parse_property(formula)  # Storm does not keep it alive
    robust = stormpy.UncertaintyResolutionMode.ROBUST
    seconds, result = timing.timed(lambda: stormpy.model_checking(model, asked, uncertainty_resolution_mode=robust))
    return {"seconds": seconds, "value": result.get_value_vector()[model.initial_states[0]]}


def ours(name: str) -> dict[str, Any]:
    """Return seconds and bracket of our answer for one model."""
    from plumdp.solver.solve import solve

    make, size, small = MODELS[name]
    warm_up = make(small)
    solve(warm_up.imdp, warm_up.objective, nature="robust", precision=1e-6)
    problem = make(size)
    seconds, solution = timing.timed(lambda: solve(problem.imdp, problem.objective, nature="robust", precision=1e-6))
    initial = problem.imdp.graph.initial_state
    reached = np.isfinite(solution.upper) & (solution.upper > 0)
    widths = (solution.upper - solution.lower)[reached] / solution.upper[reached]
    return {
        "seconds": seconds,
        "lower": float(solution.lower[initial]),
        "upper": float(solution.upper[initial]),
        "widest": float(widths.max(initial=0)),
        "status": solution.status,
        "sweeps": solution.sweeps,
    }


def sweep(kind: str) -> dict[str, Any]:
    """Return the seconds of one sweep and of one sparse product, and the number of transitions."""
    sizes = {"2": (2, 2), "4": (4, 4), "9": (9, 9), "mixed 2-16": (2, 16)}[kind]
    imdp = local_model(4_000_000, *sizes)
    found = timing.compare(*sweep_and_product(imdp), repeats=12)
    return {"sweep": found.ours, "product": found.theirs, "transitions": imdp.graph.n_transitions}


def local_model(n_transitions: int, least: int, most: int) -> IntervalMDP:
    """Return a cyclic model with two choices per state and successors up to 2000 places away."""
    rng = np.random.default_rng(4)
    n_states = n_transitions // (least + most)
    sizes = rng.integers(least, most + 1, 2 * n_states)
    stride = np.cumsum(rng.integers(1, 4000 // most, (2 * n_states, most)), axis=1) - 2000
    successor = (np.repeat(np.arange(n_states), 2)[:, None] + stride) % n_states
    is_used = np.arange(most) < sizes[:, None]
    share = 1 / np.repeat(np.arange(least, most + 1), PER_SIZE)
    own = (np.repeat(sizes, sizes) - least) * PER_SIZE
    return IntervalMDP.from_arrays(
        2 * np.arange(n_states + 1),
        offsets(sizes),
        successor[is_used],
        share * rng.uniform(0.7, 0.95, len(share)),
        np.minimum(share * rng.uniform(1.05, 1.3, len(share)), 1),
        expression=own + rng.integers(0, PER_SIZE, len(own)),
    )


def sweep_and_product(imdp: IntervalMDP) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return one sweep over all rows, once they are in nature's order, and scipy's product.

    scipy gets the board's own rows, so that both read the same memory in the same order.
    """
    from scipy.sparse import csr_array

    from plumdp.solver.game import plain_game
    from plumdp.solver.layout import lay_out

    graph = imdp.graph
    nowhere = np.zeros(graph.n_states, dtype=np.bool_)
    board = lay_out(plain_game(imdp, pl.model.Reach(nowhere, nowhere, "max"), "robust"))
    first, successor, expression = (np.array(part, dtype=np.int32) for part in board.rows[1:4])
    matrix = csr_array((imdp.lower[expression], successor, first), shape=(graph.n_choices, graph.n_states))
    values = np.random.default_rng(5).random(graph.n_states)
    result, best_row = np.empty(graph.n_states), np.zeros(graph.n_states, dtype=np.int32)

    def one_sweep() -> None:
        result[:] = -np.inf
        board.sweep(0, graph.n_states, values, result, best_row, side=-1.0)

    one_sweep()
    return one_sweep, lambda: matrix @ values


def scale(size: str) -> dict[str, Any]:
    """Return the seconds to build and to solve an acyclic model of the given size, and the peak memory."""
    from plumdp.solver.solve import solve

    warm_up = forward(10_000)
    solve(warm_up.imdp, warm_up.objective, nature="robust", precision=1e-6)
    build, problem = timing.timed(lambda: forward(int(size)))
    solved, solution = timing.timed(lambda: solve(problem.imdp, problem.objective, nature="robust", precision=1e-6))
    return {
        "transitions": problem.imdp.graph.n_transitions,
        "states": problem.imdp.graph.n_states,
        "build": build,
        "solve": solved,
        "peak": timing.peak_gigabytes(),
        "lower": float(solution.lower[0]),
        "upper": float(solution.upper[0]),
        "status": solution.status,
    }


def forward(n_transitions: int) -> Problem:
    """Return an acyclic model, written in place: two choices per state, 4 to 14 successors each, all further on.

    The last states, more than a jump can pass, have a self-loop; every second of them is a goal.
    """
    rng = np.random.default_rng(6)
    longest = 200  # between two successors of a row
    n_inner, n_last = n_transitions // 18, longest * MOST
    sizes = np.ones(2 * n_inner + n_last, dtype=np.int8)
    sizes[: 2 * n_inner] = rng.integers(4, MOST + 1, 2 * n_inner, dtype=np.int8)
    first_transition = offsets(sizes)
    successor, expression = (np.empty(first_transition[-1], dtype=np.int32) for _ in range(2))
    for start in range(0, 2 * n_inner, 1 << 16):
        end = min(start + (1 << 16), 2 * n_inner)
        part = slice(first_transition[start], first_transition[end])
        strides = np.cumsum(rng.integers(1, longest, (end - start, MOST), dtype=np.int32), axis=1, dtype=np.int32)
        strides += np.arange(start, end, dtype=np.int32)[:, None] // 2
        successor[part] = strides[np.arange(MOST) < sizes[start:end, None]]
        row_size = np.repeat(sizes[start:end].astype(np.int32), sizes[start:end])
        expression[part] = (row_size - 1) * PER_SIZE + rng.integers(0, PER_SIZE, len(row_size), dtype=np.int32)
    successor[-n_last:] = np.arange(n_inner, n_inner + n_last)
    expression[-n_last:] = 0
    first_choice = offsets(np.repeat(np.array([2, 1], dtype=np.int8), [n_inner, n_last]))
    lower, upper = interval_table(rng)
    imdp = IntervalMDP.from_arrays(first_choice, first_transition, successor, lower, upper, expression=expression)
    goal = np.zeros(n_inner + n_last, dtype=np.bool_)
    goal[n_inner::2] = True
    return reach_problem(imdp, goal)


def measure(what: str, *arguments: str) -> dict[str, Any]:
    """Return one measurement of this process."""
    ways: dict[str, Callable[..., dict[str, Any]]] = {"storm": storm, "ours": ours, "sweep": sweep, "scale": scale}
    return ways[what](*arguments)


def peer_runs(problem: Problem, name: str, repeats: int) -> dict[str, list[dict[str, Any]]]:
    """Return measurements of Storm and of ours on one model, which take turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.umb"
        write_umb(problem.imdp, path, labels=problem.labels, rewards=problem.rewards)
        ways = {
            "storm": lambda: timing.in_own_process(__file__, "storm", str(path), problem.formula),
            "ours": lambda: timing.in_own_process(__file__, "ours", name),
        }
        return timing.take_turns(ways, repeats)


def print_peers(names: list[str], repeats: int) -> None:
    """Print the table of the named models."""
    columns = (
        "model | transitions | Storm, s | plumdp, s | min/min | median of pairs | Storm's value | our bracket | "
        "widest, relative | status"
    )
    print(f"| {columns} |\n|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        make, size, _ = MODELS[name]
        problem = make(size)
        runs = peer_runs(problem, name, repeats)
        theirs, our = timing.fastest(runs["storm"]), timing.fastest(runs["ours"])
        ratio = timing.ratio_of(runs["ours"], runs["storm"])
        seconds = f"{theirs['seconds']:.3f} | {our['seconds']:.3f} | {ratio.least:.3f} | {ratio.median:.3f}"
        bracket = f"[{our['lower']:.9g}, {our['upper']:.9g}] | {our['widest']:.1e} | {our['status']}"
        n_transitions = problem.imdp.graph.n_transitions
        print(f"| {name} | {n_transitions} | {seconds} | {theirs['value']:.9g} | {bracket} |", flush=True)


def print_sweeps(against: str | None) -> None:
    """Print the table of sweeps, with those of another checkout before ours if its source folder is given."""
    print("| successors | checkout | transitions | sweep, ns each | scipy, ns each | min/min | median of pairs |")
    print("|---|---|---|---|---|---|---|")
    for kind in ("2", "4", "9", "mixed 2-16"):
        for source in [against, None] if against else [None]:
            run = timing.in_own_process(__file__, "sweep", kind, source=source)
            ratio = timing.Ratio(run["sweep"], run["product"])
            each = [1e9 * min(side) / run["transitions"] for side in (ratio.ours, ratio.theirs)]
            figures = f"{each[0]:.2f} | {each[1]:.2f} | {ratio.least:.2f} | {ratio.median:.2f}"
            print(f"| {kind} | {source or 'this one'} | {run['transitions']} | {figures} |", flush=True)


def print_scale(sizes: list[int]) -> None:
    """Print the table of sizes."""
    columns = "transitions | states | build, s | solve, s | solve, ns per transition | peak GB | bracket | status"
    print(f"| {columns} |\n|---|---|---|---|---|---|---|---|")
    for size in sizes:
        run = timing.in_own_process(__file__, "scale", str(size))
        seconds = f"{run['build']:.2f} | {run['solve']:.2f} | {1e9 * run['solve'] / run['transitions']:.1f}"
        bracket = f"[{run['lower']:.9g}, {run['upper']:.9g}] | {run['status']}"
        print(f"| {run['transitions']} | {run['states']} | {seconds} | {run['peak']:.2f} | {bracket} |", flush=True)


def main() -> None:
    """Print the table that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweeps", action="store_true", help="one sweep against a sparse product")
    parser.add_argument("--against", help="for --sweeps: the source folder of another checkout, which takes turns")
    parser.add_argument("--scale", action="store_true", help="acyclic models of growing size")
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e6, 1e7, 1e8], help="for --scale")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="against Storm")
    options = parser.parse_args()
    if options.sweeps:
        print_sweeps(options.against)
    elif options.scale:
        print_scale([int(size) for size in options.sizes])
    else:
        print_peers(options.models, options.repeats)


if __name__ == "__main__":
    if not timing.is_measured(measure):
        main()
