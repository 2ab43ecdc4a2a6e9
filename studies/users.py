"""The models of four users with small logs: pumps, prompts on tasks, walks on ice, and units that fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from studies.widths import Problem, both_kinds

Rows = Callable[[str, int, list[Any]], Any]

_WEAR = {"aqua": ((0.94, 0.055), (0, 0.88, 0.1), (0, 0, 0.82)), "brunn": ((0.86, 0.13), (0, 0.72, 0.23), (0, 0, 0.65))}
_SERVICE = ((0.99, 0.01), (0.7, 0.28, 0.02), (0.25, 0.45, 0.25), (0.5, 0.3, 0.2))
_CONDITIONS = ("good", "worn", "bad", "failed")
_PRACTICE: Mapping[str, Mapping[str, float]] = {
    "good": {"none": 0.95, "service": 0.05},
    "worn": {"none": 0.6, "service": 0.3, "replace": 0.1},
    "bad": {"none": 0.25, "service": 0.4, "replace": 0.35},
    "failed": {"replace": 0.93, "service": 0.07},
}
_COST = {"none": 0, "service": 260, "replace": 900, "enter": 0}


def pumps() -> Problem:
    """Return the yearly cost of pumps that are replaced when worn, less that of today's practice."""
    point: dict[str, float] = {}

    def step_with(row: Rows) -> Callable[[Any], Any]:
        def step(s: Any) -> Any:
            if s.brand == "new":
                return {"enter": [("1/2", s._replace(brand=brand)) for brand in _WEAR]}
            at, to = _CONDITIONS.index(s.condition), [s._replace(condition=each) for each in _CONDITIONS]
            of_action = {"service": _SERVICE[at], "replace": (0.97, 0.03, 0)}
            of_action |= {} if at == 3 else {"none": _WEAR[s.brand][at]}
            found = {}
            for action, chances in of_action.items():
                name = f"{action}_{s.brand}_{s.condition}_"
                point.update({f"{name}{i}": p for i, p in enumerate((*chances, 0, 0)[:3])})
                found[action] = row(name, 4, to)
            return found

        return step

    cost = {"cost": lambda s, action: _COST[action] + (1_500 * (s.condition == "failed") if action != "enter" else 0)}
    model, twin = both_kinds(step_with, {"brand": "new", "condition": "good"}, {}, point, choice_rewards=cost)

    def rule(s: Any) -> str:
        return "enter" if s.brand == "new" else "none" if s.condition == "good" else "replace"

    def practice(s: Any) -> Any:
        return "enter" if s.brand == "new" else dict(_PRACTICE[s.condition])

    asked = 'R{"cost"}min=? [ C<=53 ]'
    return Problem(model, twin, point, asked, rule, practice, arms=(practice,), max_steps=53, stop=[False] * 9)


def prompts() -> Problem:
    """Return how much more often prompt B solves a task of three types than prompt A."""
    solved = {"retail": (0.7, 0.78), "airline": (0.45, 0.55), "code": (0.3, 0.32)}
    point: dict[str, float] = {"type0": 0.5, "type1": 0.3}

    def step_with(row: Rows) -> Callable[[Any], Any]:
        def step(s: Any) -> Any:
            if s.task == "new":
                return {"draw": row("type", 3, [s._replace(task=each) for each in solved])}
            if s.task not in solved:
                return {"end": [(1, s)]}
            point.update({f"{arm}_{s.task}0": p for arm, p in zip("AB", solved[s.task], strict=True)})
            to = [s._replace(task=each) for each in ("success", "failure")]
            return {arm: row(f"{arm}_{s.task}", 2, to) for arm in "AB"}

        return step

    labels = {"success": lambda s: s.task == "success", "end": lambda s: s.task in ("success", "failure")}
    model, twin = both_kinds(step_with, {"task": "new"}, labels, point)

    def acting(arm: str) -> Callable[[str], str]:
        return lambda task: "draw" if task == "new" else arm if task in solved else "end"

    return Problem(model, twin, point, 'Pmax=? [ F "success" ]', acting("B"), acting("A"), ("uniform",), 4)


def ice() -> Problem:
    """Return the discounted value of a good policy on a frozen lake of sixteen cells, where a step may slip aside."""
    holes, moves, target = (5, 7, 11, 12), (-1, 4, 1, -4), (0, 3, 3, 3, 0, 0, 2, 0, 3, 1, 0, 0, 0, 2, 1, 0)
    point: dict[str, float] = {}

    def after(cell: int, move: int) -> int:
        column = cell % 4 + (move if abs(move) == 1 else 0)
        return cell + move if 0 <= column < 4 and 0 <= cell + move < 16 else cell

    def step_with(row: Rows) -> Callable[[Any], Any]:
        def step(s: Any) -> Any:
            if s.cell == 99 or s.cell in holes or s.cell == 15:
                return {"stay": [(1, s._replace(cell=99))]}
            found = {}
            for a in range(4):
                to = [after(s.cell, moves[(a + turn) % 4]) for turn in (-1, 0, 1)]
                cells = sorted(set(to))
                name = f"cell{s.cell}_{a}_"
                point.update({f"{name}{i}": to.count(cell) / 3 for i, cell in enumerate(cells[:-1])})
                found[str(a)] = row(name, len(cells), [s._replace(cell=cell) for cell in cells])
            return found

        return step

    rewards = {"": lambda s: 1.0 * (s.cell == 15)}
    model, twin = both_kinds(step_with, {"cell": 0}, {"end": lambda s: s.cell == 99}, point, rewards=rewards)

    def acting(cell: int) -> Any:
        return "stay" if cell in (*holes, 15, 99) else str(target[cell])

    def drawn(cell: int) -> Any:
        if cell in (*holes, 15, 99):
            return "stay"
        return {str(a): 0.05 + 0.8 * (a == target[cell]) for a in range(4)}

    return Problem(model, twin, point, "Rmax=? [ C{0.95} ]", acting, None, (drawn,), 100)


def units() -> Problem:
    """Return the chance that a unit, looked at each month for two years, fails within the first."""

    def step_with(row: Rows) -> Callable[[Any], Any]:
        def step(s: Any) -> Any:
            if s.status == "failed":
                return {"end": [(1, s)]}
            return {"go": row("ok", 2, [s._replace(status="failed"), s])}

        return step

    labels = {"failed": lambda s: s.status == "failed", "end": lambda s: s.status == "failed"}
    model, twin = both_kinds(step_with, {"status": "ok"}, labels, {"ok0": 0.04})
    return Problem(model, twin, {"ok0": 0.04}, 'Pmax=? [ F<=12 "failed" ]', "uniform", max_steps=24)


USERS: Mapping[str, Callable[[], Problem]] = {"pumps": pumps, "prompts": prompts, "ice": ice, "units": units}
