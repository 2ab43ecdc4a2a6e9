"""What a fleet costs in a night, that it goes on after being killed, and how many of its names are wrong.

    python -m studies.fleets [games] [part ...]

Parts are "night" (10,000 units, the 60th night, from counts in memory and from files), "killed" (the same fleet,
stopped in the middle of a night and begun again), "names" (games of 200 units, of which some change, with all nights
of lists fixed), "value" (the same for certified values) and "cluster" (Dask and Ray run the units, if installed). A
unit is a press: a part is a day of 20 of its runs.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import plumdp
from plumdp.watching.fleets import Fleet, Lists, watch_many
from plumdp.watching.watch import AlarmRules

RUNS = 20
ASKED = 'Pmin=? [ F "scrap" ]'
LABELS = {"scrap": lambda state: state.part == "scrap"}


def press() -> Any:
    """Return the model of a press that makes scrap with an unknown probability."""
    (fault,) = plumdp.parameters("fault")

    def steps(state: Any) -> Any:
        if state.part != "raw":
            return {"wait": [(1, state)]}
        return {"press": [(1 - fault, state._replace(part="good")), (fault, state._replace(part="scrap"))]}

    return plumdp.explore(steps, {"part": "raw"}, space=plumdp.ParameterSpace.unit("fault"), labels=LABELS)


MODEL = press()
(RAW,) = (state for state in range(MODEL.graph.n_states) if state == MODEL.graph.initial_state)
DAYS: dict[int, plumdp.TransitionCounts] = {}


def day(scrap: int) -> plumdp.TransitionCounts:
    """Return the counts of a day with so many pieces of scrap."""
    if scrap not in DAYS:
        counts = np.zeros(MODEL.graph.n_transitions, dtype=np.int64)
        first = MODEL.graph.first_transition[MODEL.graph.first_choice[RAW]]
        counts[first : first + 2] = RUNS - scrap, scrap
        DAYS[scrap] = plumdp.TransitionCounts(MODEL.graph, counts, "adaptive")
    return DAYS[scrap]


def thrown(rng: np.random.Generator, rates: list[float]) -> list[plumdp.TransitionCounts]:
    """Return the days of a press at these rates of scrap."""
    return [day(int(rng.binomial(RUNS, rate))) for rate in rates]


def cost(work: Any) -> tuple[Any, float, float]:
    """Return what work returns, the seconds of processor time that it took with its children, and the memory in MB."""
    start = sum(os.times()[:4])
    done = work()
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return done, sum(os.times()[:4]) - start, max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024


def written(root: Path, units: int, days: int, first: int = 0) -> Path:
    """Write a folder of files of counts for each unit: hard links to one file for each number of pieces of scrap."""
    rng, files = np.random.default_rng(1), root / "files"
    files.mkdir(exist_ok=True)
    for unit in range(units):
        folder = root / "units" / f"press-{unit:05}"
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(first, first + days):
            rate = 0.3 if unit % 100 == 0 and number >= 45 else 0.1
            scrap = int(rng.binomial(RUNS, rate))
            file = files / f"{scrap}-{number}.parquet"
            if not file.exists():
                plumdp.write_counts(day(scrap), file)
            os.link(file, folder / f"{number + 1:03}.parquet")
    return root / "units"


def night(_games: int, units: int = 10_000) -> None:
    """Print what the 60th night of many units costs: with all days in memory, and with files from the 58th day on."""
    rng = np.random.default_rng(1)
    rates = {unit: [0.1] * 45 + [0.3 if unit % 100 == 0 else 0.1] * 15 for unit in range(units)}
    parts: dict[str, Any] = {f"press-{unit:05}": thrown(rng, rates[unit]) for unit in range(units)}
    with tempfile.TemporaryDirectory() as root:
        state = Path(root) / "states"
        before = {name: days[:59] for name, days in parts.items()}
        _, first, _ = cost(lambda: watch_many(MODEL, before, state=state))
        found, again, memory = cost(lambda: watch_many(MODEL, parts, state=state))
        size = np.mean([file.stat().st_size for file in state.iterdir()])
        wrong = sum(int(unit.name[-5:]) % 100 != 0 for unit in found.named)
        print(
            f"{units:,} units: 59 nights {first:.0f} CPU s, the 60th {again:.0f} CPU s, {memory:.0f} MB, "
            f"{size:,.0f} bytes of state a unit; {found.sentence} {wrong} of these names are wrong",
            flush=True,
        )
        folder = written(Path(root), units, 2)
        cost(lambda: watch_many(MODEL, folder, state=Path(root) / "of files"))
        written(Path(root), units, 1, first=2)
        _, seconds, memory = cost(lambda: watch_many(MODEL, folder, state=Path(root) / "of files"))
        print(f"{units:,} units, one new file each: {seconds:.0f} CPU s, {memory:.0f} MB", flush=True)


KILLED = """
import sys
from pathlib import Path
from studies.fleets import MODEL, watch_many
watch_many(MODEL, Path(sys.argv[1]), state=Path(sys.argv[2]))
"""


def killed(_games: int, units: int = 1000) -> None:
    """Print whether a fleet that is killed in the middle of a night, and begun again, ends with the same numbers."""
    with tempfile.TemporaryDirectory() as root:
        folder, states = written(Path(root), units, 5), Path(root) / "states"
        whole = watch_many(MODEL, folder, state=Path(root) / "whole")
        with subprocess.Popen([sys.executable, "-c", KILLED, str(folder), str(states)]) as job:
            while not states.is_dir() or len(list(states.iterdir())) < units / 2:
                time.sleep(0.05)
            job.send_signal(signal.SIGKILL)
        n_done = len(list(states.iterdir()))
        again = watch_many(MODEL, folder, state=states)
        print(f"killed with {n_done:,} of {units:,} states written: the same units, e-values and names: "
              f"{again.units == whole.units and again.named == whole.named}", flush=True)  # fmt: skip


def judged(fleet: Fleet, changed: set[str]) -> tuple[float, float]:
    """Return the share of wrong names, and that of units that changed and were named."""
    named = {unit.name for unit in fleet.named}
    return len(named - changed) / max(len(named), 1), len(named & changed) / max(len(changed), 1)


def names(games: int, units: int = 200) -> None:
    """Print how many names are wrong, night by night, through watches of the package, level 0.1."""
    for reference, at in (("learned", None), ("known", {"fault": 0.1})):
        for n_changed in (0, 4, 40):
            shares: dict[int, list[tuple[float, float]]] = {25: [], 30: [], 40: []}
            for game in range(games):
                rng = np.random.default_rng(1000 * game + n_changed)
                rates = [[0.1] * 20 + [0.3 if unit < n_changed else 0.1] * 20 for unit in range(units)]
                parts = {f"{unit:03}": thrown(rng, rates[unit]) for unit in range(units)}
                changed = {f"{unit:03}" for unit in range(n_changed)}
                with tempfile.TemporaryDirectory() as state:
                    for n, rows in shares.items():
                        until = {name: days[:n] for name, days in parts.items()}
                        found = watch_many(
                            MODEL, until, lists=Lists(level=0.1), rules=AlarmRules(reference=at), state=state
                        )
                        rows.append(judged(found, changed))
            told = "; ".join(
                f"night {n}: wrong {np.mean([w for w, _ in rows]):.3f}, found {np.mean([f for _, f in rows]):.2f}"
                for n, rows in shares.items()
            )
            print(f"{reference} reference, {n_changed} of {units} change, {games} games: {told}", flush=True)


def value(games: int, units: int = 40) -> None:
    """Print how many names are wrong of units whose certified value is said to hold no longer, level 0.1."""
    import pandas

    def runs(rng: np.random.Generator, first: int, rate: float) -> pandas.DataFrame:
        ends = np.where(rng.random(RUNS) < rate, "scrap", "good")
        return pandas.DataFrame(
            {
                "episode": np.repeat(first + np.arange(RUNS), 2),
                "step": np.tile([0, 1], RUNS),
                "part": np.stack([np.full(RUNS, "raw"), ends], axis=1).ravel(),
                "action": np.tile(["press", "wait"], RUNS),
            }
        )

    earlier = plumdp.TransitionCounts(MODEL.graph, 100 * day(2).counts, "adaptive")
    certificate = plumdp.certify(MODEL, earlier, ASKED)
    limit = certificate.upper
    for n_changed in (0, 8):
        rows = []
        for game in range(games):
            rng = np.random.default_rng(1000 * game + n_changed)
            rates = [[limit] * 10 + [0.45 if unit < n_changed else limit] * 10 for unit in range(units)]
            parts = {f"{u:03}": [runs(rng, RUNS * i, rate) for i, rate in enumerate(rates[u])] for u in range(units)}
            found = watch_many(MODEL, parts, certificate, lists=Lists(level=0.1, alarm="value"))
            rows.append(judged(found, {f"{unit:03}" for unit in range(n_changed)}))
        wrong, hit = np.mean(rows, axis=0)
        print(f"value, {n_changed} of {units} change, {games} games: wrong {wrong:.3f}, found {hit:.2f}", flush=True)


def cluster(_games: int, units: int = 320) -> None:
    """Print whether Dask and Ray end with the same numbers as processes of this computer."""
    rng = np.random.default_rng(1)
    parts = {f"{unit:03}": thrown(rng, [0.1] * 20 + [0.3 * (unit < 20) + 0.1] * 10) for unit in range(units)}
    alone = watch_many(MODEL, parts)
    for backend, mapped in MAPS.items():
        try:
            found = watch_many(MODEL, parts, map=mapped)
        except ImportError as problem:
            print(f"{backend}: {problem}", flush=True)
            continue
        print(f"{backend}: the same units, e-values and names: {found.units == alone.units}", flush=True)


def of_joblib(work: Any, batches: Any) -> Any:
    """Return what processes of joblib make of batches."""
    joblib = import_module("joblib")
    return joblib.Parallel(2)(joblib.delayed(work)(batch) for batch in batches)


def of_dask(work: Any, batches: Any) -> Any:
    """Return what workers of Dask make of batches."""
    with import_module("dask.distributed").Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        return client.gather(client.map(work, batches))


def of_ray(work: Any, batches: Any) -> Any:
    """Return what processes of Ray make of batches."""
    with import_module("ray.util.multiprocessing").Pool(2) as pool:
        return pool.map(work, batches)


MAPS = {"joblib": of_joblib, "dask": of_dask, "ray": of_ray}
PARTS = {"night": night, "killed": killed, "names": names, "value": value, "cluster": cluster}


def main(games: str = "50", *parts: str) -> None:
    """Print what some parts find, or all."""
    for name in parts or PARTS:
        PARTS[name](int(games))


if __name__ == "__main__":
    main(*sys.argv[1:])
