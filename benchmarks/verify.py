"""What it costs to write a witness and to verify it, in processor seconds beside those of certify.

Run ``python benchmarks/verify.py [--runs 10000] [instance …]``; by default one instance of each published family. With
``--tables`` the instances are those of ``plumdp bench tables``, each with a tenth of the steps and with all.
"""

import argparse
import json
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import plumdp
from plumdp.base.errors import DataError
from plumdp.data.counts import TransitionCounts
from plumdp.decisions import verify
from plumdp.experiments.free_rows import TABLES, data_of, table_of
from plumdp.experiments.published import SMALL_INSTANCES
from plumdp.experiments.study import Cell
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Asked
from plumdp.verifying.witness import propose_witness


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*", default=SMALL_INSTANCES)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        of_tables()
        return
    print("| instance | open states | parameters | degree | certify, s | witness, s | verify, s | MB | broken |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.instances:
        print(measured(name, options.runs), flush=True)


def of_tables() -> None:
    """Print the table for tables of unknown rows, with and without bets."""
    print("| table | steps | bets | open nodes | by | certify, s | witness, s | verify, s | MB | broken |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    plan = TABLES.plans["quick"]
    for name, part in product(plan.instances, (10, 1)):
        model, point = table_of(name)
        counts = data_of(Cell("tables", name, 1, plan.runs), model, point, part)
        for data in (counts, replace(counts, pilot=None, sampling="adaptive")):
            try:
                text, rest = timed(model, data, 'Pmax=? [ F "good" ]', confidence=0.95)
            except DataError as error:
                print(f"| {name} | {counts.total:.1e} | {error} |", flush=True)
                continue
            witness = json.loads(text)
            bets, values = witness["bets"], witness["values"]
            by = "intervals" if bets is None else "bets" if bets["joint"] is None else "bets, all rows in one norm"
            about = [name, f"{counts.total:.1e}", "yes" if data is counts else "no", len(values["lower"][0]), by]
            print(f"| {' | '.join(map(str, about))} | {rest}", flush=True)


def measured(name: str, runs: int) -> str:
    """Return a row of the table."""
    study = plumdp.case_study(name)
    counts = plumdp.simulate(study.model, study.true_point, runs, rng=1, max_steps=study.max_steps)
    text, rest = timed(study.model, counts, study.objective)
    values = json.loads(text)["values"]
    return f"| {name} | {len(values['margins'])} | {len(study.model.space.names)} | {values['degree']} | {rest}"


def timed(model: ParametricMDP, counts: TransitionCounts, objective: Asked, **options: Any) -> tuple[str, str]:
    """Return a witness and the end of a row of the table, after a first certificate that compiles kernels."""
    plumdp.certify(model, counts, objective, **options)
    clock = [process_time()]
    learned = plumdp.learn(model, counts, objectives=[objective], **options)
    certificate = plumdp.conclude(learned, objective)
    clock.append(process_time())
    text, _ = propose_witness(learned, certificate)
    clock.append(process_time())
    with TemporaryDirectory() as folder:
        certificate.save(Path(folder) / "result", witness=text)
        broken = verify(Path(folder) / "result").broken
    clock.append(process_time())
    found = [*(f"{after - before:.1f}" for before, after in pairwise(clock)), f"{len(text) / 1e6:.1f}"]
    return text, f"{' | '.join(found)} | {'' if broken is None else f'{broken.layer}: {broken}'} |"


if __name__ == "__main__":
    main()
