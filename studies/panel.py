"""Looks that are steps apart: widths over normal intervals, and how often bounds ever miss the truth.

    python -m studies.panel                         widths and CPU seconds with 100, 1,000 and 5,000 units
    python -m studies.panel --model panel --units 1000
    python -m studies.panel --games 200 --error 0.5

Units enter one after another, and each is looked at several times, after gaps that are drawn beforehand. A game looks
after each quarter of the units, and is lost if the truth is ever outside the set.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
import pandas as pd
from set_points import satisfies

import plumdp as pl
from plumdp.confidence.sets import Counted, ModelCache
from plumdp.learning.learned import DirectionsAnywhere
from plumdp.learning.methods import SETS
from plumdp.model import Question
from plumdp.model.question import as_objective

A, B, C, R, H, M, Q = pl.parameters("a", "b", "c", "r", "h", "m", "q")
LOOKS = 4  # in a game, after equal shares of the units


@dataclass(frozen=True)
class Chain:
    """A chain whose last state is never left, how it is looked at, and what is asked."""

    rows: Mapping[int, Sequence[tuple[Any, int]]]
    truth: Mapping[str, str]
    most: Mapping[str, str]  # the largest values of parameters
    gaps: Sequence[int]  # drawn with equal chances
    looks: int  # that a unit has
    starts: Sequence[int]
    asked: str
    is_exact: bool = False  # whether the step is known at which the last state is entered

    @property
    def last(self) -> int:
        """The state that is never left."""
        return max(self.rows) + 1

    def model(self) -> Any:
        """Return the model as it is seen."""
        rows = {**self.rows, self.last: [(1, self.last)]}

        def step(state: Any) -> Any:
            return {"run": [(p, state._replace(x=x)) for p, x in rows[state.x]]}

        space = pl.ParameterSpace.box({name: ("0.001", self.most[name]) for name in self.truth})
        chain = pl.explore(step, {"x": 0}, space=space, labels={"end": lambda state: state.x == self.last})
        return pl.with_gaps(chain, sorted({*self.gaps}), exact='"end"' if self.is_exact else None)

    def matrix(self) -> Any:
        """Return the true probabilities of single steps."""
        found, truth = np.eye(self.last + 1), {name: Fraction(value) for name, value in self.truth.items()}
        for state, row in self.rows.items():
            found[state] = 0
            for p, after in row:
                found[state, after] = float(p.evaluate({name: truth[name] for name in p.names}))
        return found

    def log(self, n: int, rng: np.random.Generator, gaps: Sequence[int] = ()) -> pd.DataFrame:
        """Return the looks at units, one unit after the other."""
        moves, rows = self.matrix().cumsum(1), list[pd.DataFrame]()
        at, unit, given = rng.choice(self.starts, n), np.arange(n), gaps or self.gaps
        for look in range(self.looks):
            gap, before, after = rng.choice(given, len(unit)), at.copy(), np.zeros(len(unit), dtype=int)
            for step in range(1, max(given) + 1):
                is_moved = (step <= gap) & (at < self.last)
                draws = rng.random(len(unit))[:, None]
                at = np.where(is_moved, (draws > moves[at]).sum(1), at)
                after = np.where(is_moved, step, after)
            seen = {"episode": unit, "step": look, "x": before, "gap": gap, "next_x": at}
            rows.append(pd.DataFrame(seen | ({"after": after, "partial": False} if self.is_exact else {})))
            at, unit = at[at < self.last], unit[at < self.last]
        return pd.concat(rows).sort_values(["episode", "step"], ignore_index=True)


WEAR = {0: [(1 - A, 0), (A, 1)], 1: [(1 - B - C / 4, 1), (B, 2), (C / 4, 3)], 2: [(R, 0), (1 - C - R, 2), (C, 3)]}
IN_ORDER = {0: [(1 - A, 0), (A, 1)], 1: [(1 - B, 1), (B, 2)], 2: [(1 - C, 2), (C, 3)]}
FALLS_ILL = {0: [(1 - A - M, 0), (A, 1), (M, 2)], 1: [(R, 0), (1 - R - H, 1), (H, 2)]}
FIVE = {0: [(1 - A, 0), (A, 1)], 1: [(1 - B, 1), (B, 2)], 2: [(1 - C, 2), (C, 3)], 3: [(R, 0), (1 - H - R, 3), (H, 4)]}
SIX = {**FIVE, 2: [(Q, 1), (1 - C - Q, 2), (C, 3)]}
TRUE_SIX = dict(zip("abchrq", ("0.08", "0.1", "0.12", "0.1", "0.15", "0.08"), strict=True))
TRUE_WEAR, MOST_WEAR = dict(zip("abcr", ("0.08", "0.1", "0.06", "0.15"), strict=True)), dict.fromkeys("abcr", "0.4")
WEARS = (WEAR, TRUE_WEAR, MOST_WEAR)
CHAINS = {
    "panel": Chain(
        IN_ORDER,
        dict(zip("abc", ("0.1", "0.15", "0.2"), strict=True)),
        dict.fromkeys("abc", "0.95"),
        (1, 2, 2, 3),
        30,
        (0,),
        'P=? [ F<=10 "end" ]',
    ),
    "maintenance, gaps 1 to 3": Chain(*WEARS, (1, 2, 3), 6, (0, 1, 2), 'P=? [ F<=24 "end" ]'),
    "maintenance, gaps 1 to 6": Chain(*WEARS, (1, 2, 3, 4, 5, 6), 6, (0, 1, 2), 'P=? [ F<=24 "end" ]'),
    "illness and death": Chain(
        FALLS_ILL,
        dict(zip("armh", ("0.03", "0.02", "0.004", "0.03"), strict=True)),
        dict(zip("armh", ("0.15", "0.15", "0.05", "0.15"), strict=True)),
        (3, 6, 6, 12),
        8,
        (0, 0, 0, 1, 1),
        'P=? [ F<=60 "end" ]',
        is_exact=True,
    ),
    **{
        f"{name} parameters": Chain(
            rows,
            {letter: TRUE_SIX[letter] for letter in letters},
            dict.fromkeys(letters, "0.4"),
            (1, 2, 3),
            6,
            (0, 1, 2, 3),
            'P=? [ F<=24 "end" ]',
        )
        for name, letters, rows in (("five", "abchr", FIVE), ("six", "abchrq", SIX))
    },
}


def learned_from(chain: Chain, model: Any, frame: pd.DataFrame, error: float, **claims: Any) -> tuple[Any, Question]:
    """Return what looks tell if the question was pre-specified, and the question."""
    question = Question(model, as_objective(chain.asked, model))
    log = pl.read_log(model, frame, pl.LogFormat(form="transitions"), **claims)
    return pl.learn(model, log, objectives=[question], confidence=1 - error), question


def widths_of(chain: Chain, n: int, seeds: int, error: float, gaps: Sequence[int] = ()) -> dict[str, float]:
    """Return the mean width, and what it is over that of the usual approximate interval, and CPU seconds."""
    model, found = chain.model(), list[dict[str, float]]()
    for seed in range(seeds):
        frame, start = chain.log(n, np.random.default_rng(seed), gaps), time.process_time()
        learned, question = learned_from(chain, model, frame, error, sampling="trajectories")
        read = time.process_time() - start
        certificate = pl.conclude(learned, question.objective)
        low, high = certificate.beside.approximate or (np.nan, np.nan)
        width, seconds = certificate.upper - certificate.lower, time.process_time() - start
        found.append({"width": width, "over normal": width / (high - low), "CPU s": seconds, "of these to learn": read})
    return {str(name): float(mean) for name, mean in pd.DataFrame(found).mean().items()}


def misses(chain: Chain, n: int, error: float, seeds: Sequence[int]) -> int:
    """Return in how many games the set ever misses the true point, if one stops at the worst of several moments."""
    model, truth, missed = chain.model(), {name: Fraction(value) for name, value in chain.truth.items()}, 0
    question, cache = Question(model, as_objective(chain.asked, model)), ModelCache(model.counted)
    directions = DirectionsAnywhere([question], {})
    for seed in seeds:
        frame = chain.log(n, np.random.default_rng([seed, 7]))
        for look in range(1, LOOKS + 1):
            log = pl.read_log(
                model, frame[frame.episode * LOOKS < look * n], pl.LogFormat(form="transitions"), order="runs"
            )
            given = Counted(cache, log.counts, error, (question,), directions, has_paths=True)
            if not satisfies(SETS["likelihood"].make(given), truth):  # as in learn, without the region
                missed += 1
                break
    return missed


def main() -> None:
    """Print widths, or how many games were missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=[*CHAINS], nargs="*", default=[*CHAINS])
    parser.add_argument("--units", type=int, nargs="*", default=[100, 1_000, 5_000])
    parser.add_argument("--error", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--games", type=int, default=0)
    given = parser.parse_args()
    for name in given.model:
        for n in given.units:
            if given.games:
                missed = misses(CHAINS[name], n, given.error, range(given.games))
                print(f"{name}, {n:,} units: {missed} of {given.games} missed at {given.error}", flush=True)
            else:
                found = widths_of(CHAINS[name], n, given.seeds, given.error)
                print(f"{name}, {n:,} units:", ", ".join(f"{k} {v:.3g}" for k, v in found.items()), flush=True)


if __name__ == "__main__":
    main()
