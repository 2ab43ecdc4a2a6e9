"""What certificates say if the model is wrong: missed in silence, conflict found, and what the diagnosis names.

    python -m studies.wrong_models [repetitions] [model …]

Data come from processes that the model has at no point (``tests/support/wrong_models.py``): smooth errors, size ·
tanh((h - centre) / scale) of a state variable h; one wrong row, visited much; one wrong channel of the rover; one wrong
constant. 20,000 runs under the uniform policy, confidence 99.9 %. Three ways to learn: intervals and the rectangular
relaxation; likelihood and coupled evaluation without the test of the model; and with it. "Missed": the share of
repetitions whose bracket misses the true value of its policy, and nothing is said. "Conflict": the share in which the
data contradict the model. "Named": of these, the share in which the first sentence of the diagnosis names the variable,
the action or the row that is wrong.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import wrong_models

N_RUNS = 20_000

Row = tuple[str, str, Callable[[float], Any], Sequence[float]]

SMOOTH_SIZES = {
    "betting:25": (0, 0.005, 0.01, 0.02, 0.04),
    "rover:10,10": (0, 0.01, 0.02, 0.05),
    "aircraft:20,10": (0, 0.01, 0.02, 0.04),
    "engagement:20": (0, 0.01, 0.02, 0.04),
    "glider:11,9": (0, 0.02, 0.05, 0.1),
    "parallel:5": (0, 0.02, 0.04, 0.08),
}
ROW_SIZES = {
    "betting:25": (0.1, 0.2),
    "rover:10,10": (0.05, 0.1, 0.2),
    "engagement:20": (0.05,),
    "glider:11,9": (0.02,),
}

ROWS: list[Row] = [
    *(
        (name, f"smooth, {wrong_models.SMOOTH[name]['variable']}", partial(wrong_models.smooth_error, name), sizes)
        for name, sizes in SMOOTH_SIZES.items()
    ),
    *((name, "one row", partial(wrong_models.wrong_row, name), sizes) for name, sizes in ROW_SIZES.items()),
    ("rover:10,10", "channel L, factor", wrong_models.wrong_channel, (1.05, 1.1, 1.2)),
    ("machine", "one constant", wrong_models.one_constant, (0, 0.01, 0.02, 0.05)),
]


def share(found: Sequence[bool]) -> float:
    """Return the share of what is true."""
    return sum(found) / max(len(found), 1)


def print_row(model: str, kind: str, size: float, wrong: Any, repetitions: int) -> None:
    """Print what certificates said of one error, and to the standard error the sentences that name nothing guilty."""
    start, found = time.perf_counter(), wrong_models.repeat(wrong, N_RUNS, repetitions)
    cells = []
    for outcomes in found.values():
        silent, conflict = (share([getattr(o, what) for o in outcomes]) for what in ("is_silent_miss", "has_conflict"))
        cells.append(f"{silent:.2f} / {conflict:.2f}")
    detected = [o for o in found[wrong_models.TESTED] if o.has_conflict]
    named = f"{share([o.is_named for o in detected]):.2f}" if detected and wrong.guilty else ""
    seconds = time.perf_counter() - start
    print(f"| {model} | {kind} | {size:g} | " + " | ".join(cells) + f" | {named} | {seconds:.0f} |", flush=True)
    for sentence, n in Counter(o.first_sentence for o in detected if not o.is_named).most_common(3):
        print(f"    {n} of {len(detected)}: {sentence[:240]}", file=sys.stderr, flush=True)


def main(repetitions: int, models: Sequence[str]) -> None:
    """Print the table."""
    print(f"{repetitions} repetitions; missed in silence / conflict found\n")
    print("| model | error | size | " + " | ".join(wrong_models.RELAXATION) + " | named | seconds |\n|" + "---|" * 8)
    for model, kind, make, sizes in ROWS:
        for size in sizes if not models or model in models else ():
            wrong = make(size)
            print_row(model, kind, size, wrong if size else wrong_models.right(wrong.case), repetitions)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:])
