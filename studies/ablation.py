"""What each part is worth: how much wider brackets are without it, on small models, logs of users, and tables.

    python -m studies.ablation --keep found.jsonl                  every case and part but what is kept
    python -m studies.ablation --keep found.jsonl --parts cells    parts with one of these words
    python -m studies.ablation --keep found.jsonl --table          the table of what was found

A part is switched off by a patch of the functions that use it, and is asked about only where a bracket enters it. The
gain of a group, which is a case, what is told of the order, and a number of runs, is the median over seeds of the width
without the part over that with it, less one. What narrows no group by 5 % is not worth its lines.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import gettempdir
from time import process_time
from typing import Any, TypeAlias

import numpy as np

import plumdp
from studies import corpus, mixed, panel, widths
from studies.parts import PARTS, Part, Patch, patched
from studies.users import USERS

pl: Any = plumdp
SIZES, SEEDS, CONFIDENCE, WORTH_IT = (1_000, 100, 10_000), (1, 2), 0.95, 0.05
Row: TypeAlias = dict[str, Any]
Ask: TypeAlias = Callable[[], Row]


FAMILIES = (
    *("aircraft:6,4,1", "aircraft:20,10", "betting:10", "betting:25", "rover:5,5,2", "rover:10,10", "glider:11,9"),
    *("engagement:10", "engagement:20", "parallel:3,1"),
)


def uniform_point(n: int) -> dict[str, float]:
    """Return the point of the layered model at which all outcomes are alike."""
    return {f"t{i}": 1 / (n + 1) for i in range(n)}


def case_study_of(name: str) -> widths.Problem:
    """Return the problem of a case study with the best policy."""
    return replace(widths.family(name), policy=None)


LOGS: Mapping[str, Mapping[str, Callable[[], widths.Problem]]] = {
    "case study": {name: partial(case_study_of, name) for name in FAMILIES},
    "user": USERS,
    "table": {name: make for name, make in widths.CASES.items() if ":" not in name},
}
POINTS: Mapping[str, tuple[Callable[[], Any], Any, str, Row]] = {
    "walk": (corpus.walk, {"p": 0.6, "q": 0.3}, 'Pmax=? [ F "goal" ]', {}),
    "walk, tolerance": (corpus.walk, {"p": 0.6, "q": 0.3}, 'R{"time"}min=? [ F "end" ]', {"model_tolerance": 0.01}),
    "patrol": (corpus.patrol, {"p": 0.3, "q": 0.4}, "Rmax=? [ LRA ]", {}),
    "coins": (corpus.coins, {"p": 0.4, "q": 0.7}, "Rmax=? [ C ]", {}),
    "paid": (corpus.paid, {"well": 0.6, "visit": 50}, 'R{"cost"}min=? [ F "end" ]', {}),
    **{
        f"layered {n}": (partial(corpus.layered, n), uniform_point(n), 'Pmax=? [ F "goal" ]', {}) for n in (12, 30)
    },
    **{f"mixed {n}:{m}": (partial(mixed.walk, n, m), None, 'Pmax=? [ F "good" ]', {}) for n, m in ((10, 2), (30, 6))},
}  # fmt: skip
PANELS = ("panel", "maintenance, gaps 1 to 3")


def entered(ask: Ask) -> tuple[Row, set[str]]:
    """Return an answer, and the names of the parts that it uses."""
    names = set[str]()

    def watch(name: str) -> Patch:
        def change(was: Any) -> Any:
            def seen(*args: Any, **options: Any) -> Any:
                names.add(name)
                return was(*args, **options)

            return seen

        return change

    with patched({next(iter(part.off)): watch(part.name) for part in PARTS}):
        return ask(), names


def bracket(model: Any, counts: Any, asked: Any, policy: Any, against: Any, **options: Any) -> Row:
    """Return the bounds on what is asked, and processor seconds."""
    began = process_time()
    question = pl.model.Question(model, asked, policy=policy, against=against)
    learned = pl.learn(model, counts, objectives=[question], confidence=CONFIDENCE, **options)
    found = pl.difference(learned, asked, policy, against) if against else pl.conclude(learned, asked, policy=policy)
    return {"lower": found.lower, "upper": found.upper, "seconds": process_time() - began}


@cache
def problem_of(study: str, name: str) -> widths.Problem:
    """Return a problem with a log."""
    return LOGS[study][name]()


def question_of(study: str, name: str, order: str, runs: int, seed: int) -> Ask:
    """Return a question about the first runs of a log, or of runs that are simulated."""
    if study == "model":
        make, point, text, options = POINTS[name]
        model, second = make()
        more = {"max_steps": 100, "stop": model.labels.get("end"), "pilot": order != "no order"}
        counts = pl.simulate(model, point or second, runs, rng=seed, **more)
        return partial(bracket, model, counts, pl.parse_property(text, model), None, None, **options)
    if study == "panel data":
        chain, told = panel.CHAINS[name], widths.ORDERS[order]
        model, frame = chain.model(), chain.log(runs, np.random.default_rng(seed))
        counts = pl.read_log(model, frame, pl.LogFormat(form="transitions"), **told).counts
        return partial(bracket, model, counts, pl.parse_property(chain.asked, model), None, None)
    problem = problem_of(study, name)
    log = problem.draw(max(SIZES), seed, Path(gettempdir()) / f"{study} {name} {seed}.parquet")
    counts = pl.read_log(problem.model, log[log["episode"] < runs], **widths.ORDERS[order]).counts
    return partial(bracket, problem.model, counts, problem.asked, problem.policy, problem.against)


def answer_without(part: Part, ask: Ask) -> Row:
    """Return the answer without a part, or what went wrong."""
    with patched(part.off):
        try:
            return ask()
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}


def measure(kept: Path, words: Sequence[str]) -> None:
    """Ask everything that is not kept."""
    known = {tuple(json.loads(line)["key"]) for line in kept.read_text().splitlines()} if kept.exists() else set()
    names = [
        (study, name) for study, those in [*LOGS.items(), ("model", POINTS), ("panel data", PANELS)] for name in those
    ]
    for seed, runs, about, order in product(SEEDS, SIZES, names, widths.ORDERS):
        key = (*about, order, runs, seed)
        if key in known:
            continue
        ask = question_of(*key)
        base, used = entered(ask)
        asked = [
            part for part in PARTS if part.name in used and (not words or any(word in part.name for word in words))
        ]
        line = {"key": key, "with": base, "without": {part.name: answer_without(part, ask) for part in asked}}
        with kept.open("a") as file:
            file.write(json.dumps(line) + "\n")


def table(kept: Path) -> None:
    """Print a row for each part."""
    print("| part | groups that use it | narrower by 5 % | best | where | CPU without |\n|---|---|---|---|---|---|")
    for part in PARTS:
        groups: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
        for row in map(json.loads, kept.read_text().splitlines()):
            other, base = row["without"].get(part.name, {"error": ""}), row["with"]
            if "error" not in other and base["upper"] > base["lower"]:
                gain = (other["upper"] - other["lower"]) / (base["upper"] - base["lower"]) - 1
                groups.setdefault(tuple(row["key"][:-1]), []).append((gain, other["seconds"] / base["seconds"]))
        gains = {group: median(gain for gain, _ in each) for group, each in groups.items()}
        best = max(gains, key=lambda group: gains[group], default=())
        seconds = median([ratio for each in groups.values() for _, ratio in each] or [1.0])
        worth = sum(gain >= WORTH_IT for gain in gains.values())
        where = ", ".join(map(str, best))
        print(f"| {part.name} | {len(groups)} | {worth} | {gains.get(best, 0):.0%} | {where} | {seconds:.2f} |")


def main() -> None:
    """Measure, or print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True, help="a file with a line for each case, in JSON")
    parser.add_argument("--parts", nargs="*", default=[], help="parts with one of these words alone")
    parser.add_argument("--table", action="store_true", help="print the table of what is kept")
    options = parser.parse_args()
    table(options.keep) if options.table else measure(options.keep, options.parts)


if __name__ == "__main__":
    main()
