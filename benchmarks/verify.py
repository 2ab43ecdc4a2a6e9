"""What it costs to write a witness and to verify it, in processor seconds beside those of certify.

Run ``python benchmarks/verify.py [--runs 10000] [instance …]``; by default one instance of each published family.
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import plumdp
from plumdp.decisions import verify
from plumdp.experiments.published import SMALL_INSTANCES
from plumdp.verifying.witness import propose_witness


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*", default=SMALL_INSTANCES)
    parser.add_argument("--runs", type=int, default=10_000)
    options = parser.parse_args()
    print("| instance | open states | parameters | degree | certify, s | witness, s | verify, s | MB | broken |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.instances:
        print(measured(name, options.runs), flush=True)


def measured(name: str, runs: int) -> str:
    """Return a row of the table, after a first certificate that compiles kernels."""
    study = plumdp.case_study(name)
    counts = plumdp.simulate(study.model, study.true_point, runs, rng=1, max_steps=study.max_steps)
    plumdp.certify(study.model, counts, study.objective)
    clock = [process_time()]
    learned = plumdp.learn(study.model, counts, objectives=[study.objective])
    certificate = plumdp.conclude(learned, study.objective)
    clock.append(process_time())
    text, _ = propose_witness(learned, certificate)
    clock.append(process_time())
    with TemporaryDirectory() as folder:
        certificate.save(Path(folder) / "result", witness=text)
        broken = verify(Path(folder) / "result").broken
    clock.append(process_time())
    seconds = [f"{after - before:.1f}" for before, after in pairwise(clock)]
    values = json.loads(text)["values"]
    found = [len(values["margins"]), len(study.model.space.names), values["degree"], *seconds, f"{len(text) / 1e6:.1f}"]
    return f"| {name} | {' | '.join(map(str, found))} | {'' if broken is None else f'{broken.layer}: {broken}'} |"


if __name__ == "__main__":
    main()
