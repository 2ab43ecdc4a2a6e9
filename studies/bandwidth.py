"""How fast a sweep reads memory: bytes per transition and GB per second, beside a plain copy and SciPy's product.

    python -m studies.bandwidth                     10^7 transitions (half a minute, 1 GB)
    python -m studies.bandwidth --transitions 1e8

What a sweep reads are the arrays that it runs over, from the first to the last entry, once: successors, expressions and
what is kept for each transition, offsets of rows and states. Values of successors and bounds of expressions come on
top; they lie in caches here, as successors are near. The copy reads and writes an array of 512 MB by NumPy, on one core
like the sweep; all ways take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import plumdp as pl
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.game import plain_game
from plumdp.solver.layout import lay_out
from studies import peers, timing


def arrays(part: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays in tuples of tuples."""
    if isinstance(part, np.ndarray):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from arrays(each)


def swept_bytes(imdp: IntervalMDP) -> int:
    """Return the size of all that a sweep runs over."""
    nowhere = np.zeros(imdp.graph.n_states, dtype=np.bool_)
    layout = lay_out(plain_game(imdp, pl.model.Reach(nowhere, nowhere, "max"), "robust"))
    return sum(array.nbytes for array in arrays((layout.rows, layout.loops.extra)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transitions", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    source = np.ones(1 << 26)
    target = np.empty_like(source)
    print("| rows of | bytes per transition | sweep, ns each | sweep, GB/s | copy, GB/s | sweep / SciPy product |")
    print("|---|---|---|---|---|---|")
    for size in (2, 4, 9):
        imdp = peers.local_model(int(options.transitions), size, size)
        n, swept = imdp.graph.n_transitions, swept_bytes(imdp)
        sweep, product = peers.sweep_and_product(imdp)
        ways = {"sweep": sweep, "product": product, "copy": lambda: np.copyto(target, source)}
        found = timing.take_turns(
            {name: partial(timing.seconds_of, way) for name, way in ways.items()}, options.repeats
        )
        least = {name: min(seconds) for name, seconds in found.items()}
        speeds = f"{swept / least['sweep'] / 1e9:.2f} | {2 * source.nbytes / least['copy'] / 1e9:.2f}"
        ratio = timing.Ratio(tuple(found["sweep"]), tuple(found["product"]))
        print(
            f"| {size} | {swept / n:.1f} | {1e9 * least['sweep'] / n:.2f} | {speeds} | {ratio.least:.2f} |", flush=True
        )


if __name__ == "__main__":
    main()
