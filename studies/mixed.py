"""Unknown rows beside parameters: widths of both views, of intervals, and of what is taken by default.

    python -m studies.mixed [nodes:every:steps …]

A walk has three successors in each row, as those of the study ``tables`` do. With ``every`` = 6, every sixth row
has expressions in two parameters, (u + c, v - c, 1 - u - v) with a number c of its own, and the others are unknown.
With -10, every tenth row is unknown, and with 0, every row has two parameters of its own. Half widths at 0.95, with the
processor time of each certificate; all have data of the same runs.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np

import plumdp as pl
from plumdp.learning.methods import Sets, default_set
from plumdp.model.parametric import ParametricMDP
from plumdp.tables.views import as_table, n_unknown
from studies.free_rows import table_of

CASES = (
    *("10:2:1e5", "30:6:1e5", "30:6:1e6", "30:2:1e5", "30:2:1e6", "50:-10:1e5", "50:-10:1e6", "60:-3:1e6"),
    *("20:0:1e6", "56:0:1e6", "56:0:1e7"),
)
_SETS: tuple[Sets, ...] = ("table", "likelihood", "interval")


def walk(n: int, every: int) -> tuple[ParametricMDP, Any]:
    """Return a walk of n nodes, and its true point."""
    table, truth = table_of(f"walk:{n}")
    row = {
        int(s): truth[t : t + 3]
        for s, t in zip(table.graph.states["state"], table.graph.first_transition, strict=False)
    }
    names = ("u", "v") if every else tuple(f"{name}{i}" for i in range(n) for name in "uv")
    symbol = dict(zip(names, pl.parameters(*names), strict=True))

    def has_expressions(x: int) -> bool:
        return x % every == 0 if every > 0 else every == 0 or x % -every != 0

    def step(s: Any) -> Any:
        if s.x >= n:
            return {"stay": [(1, s)]}
        to = [s._replace(x=x) for x in sorted({s.x, s.x + 1 if s.x + 1 < n else n + 1, s.x - 1 if s.x else n})]
        if not has_expressions(s.x):
            return {"go": pl.unknown(*to)}
        u, v = (symbol[name] if every else symbol[f"{name}{s.x}"] for name in "uv")
        c = Fraction(s.x - n // 2, 25 * n) if every else 0
        return {"go": [*zip([u + c, v - c, 1 - u - v], to, strict=True)]}

    ends = (Fraction(1, 5), Fraction(2, 5)) if every else (0, 1)
    space = pl.ParameterSpace.box(dict.fromkeys(names, ends))
    model = pl.explore(step, {"x": n // 2}, space=space, labels={"good": lambda s: s.x == n, "end": lambda s: s.x >= n})
    own = {f"{name}{x}": float(row[x][i]) for x in range(n) for i, name in enumerate("uv")}
    if not every:
        return model, own
    state = model.graph.states["x"][model.graph.state_of_choice()]
    rows = [row[int(x)] if x < n else np.ones(1) for x in state]
    return model, ({"u": 0.33, "v": 0.33}, np.concatenate(rows))


def measure(case: str) -> None:
    """Print a row of the table."""
    n, every, steps = case.split(":")
    model, truth = walk(int(n), int(every))
    options: Any = {"max_steps": 400, "stop": model.labels["end"]}
    few = pl.simulate(model, truth, 1000, rng=1, **options)
    counts = pl.simulate(model, truth, round(1000 * float(steps) / few.total), rng=2, **options)
    cells = [
        n,
        every,
        f"{n_unknown(model):,}",
        f"{n_unknown(as_table(model)):,}",
        f"{counts.total:.1e}",
        default_set(model),
    ]
    for kind in _SETS:
        began = process_time()
        found = pl.certify(model, counts, 'Pmax=? [ F "good" ]', confidence=0.95, confidence_set=kind)
        cells.append(f"{(found.upper - found.lower) / 2:.3g} ({process_time() - began:.1f} s)")
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    print("| nodes | every | D | T | steps | default | table | likelihood | interval |")
    print("|---|---|---|---|---|---|---|---|---|")
    for each in sys.argv[1:] or CASES:
        measure(each)
