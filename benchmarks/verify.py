"""What it costs to write a witness and to verify it, in processor seconds beside those of certify.

Run ``python benchmarks/verify.py [--runs 10000] [instance …]``; by default one instance of each published family. With
``--differences``, the pairs of policies of ``plumdp bench differences`` are compared, on its smaller instances.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import plumdp
from plumdp.certifying.difference import Difference
from plumdp.data.counts import TransitionCounts
from plumdp.decisions import verify
from plumdp.experiments.differences import DIFFERENCES, pairs
from plumdp.experiments.experiment import prepare
from plumdp.experiments.published import SMALL_INSTANCES
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question
from plumdp.result.certificate import Certificate
from plumdp.verifying.witness import propose_witness

HEADER = ["open states", "parameters", "degree", "certify, s", "witness, s", "verify, s", "MB", "broken"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--differences", action="store_true")
    options = parser.parse_args()
    print(f"| instance | {' | '.join(HEADER)} |\n|{'---|' * (len(HEADER) + 1)}")
    measure, instances = (
        (differences, DIFFERENCES.plans["quick"].instances) if options.differences else (values, SMALL_INSTANCES)
    )
    for name in options.instances or instances:
        for what, cells in measure(name, options.runs):
            print(f"| {what} | {' | '.join(cells)} |", flush=True)


def values(name: str, runs: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the row of an instance, after a first certificate that compiles kernels."""
    study = plumdp.case_study(name)
    counts = plumdp.simulate(study.model, study.true_point, runs, rng=1, max_steps=study.max_steps)
    plumdp.certify(study.model, counts, study.objective)
    yield name, measured(counts, study.objective, partial(plumdp.conclude, objective=study.objective), study.model)


def differences(name: str, runs: int) -> Iterator[tuple[str, list[str]]]:
    """Yield a row for each rival of the best policy."""
    experiment = prepare(name)
    study, best, counts = experiment.study, experiment.truth.policy, experiment.draw(runs, 1)
    for named, rival, _, announced in pairs(experiment, counts):
        compare = partial(plumdp.difference, objective=study.objective, first=best, second=rival)
        yield f"{name}, {named}", measured(counts, announced, compare, study.model)


def measured(
    counts: TransitionCounts,
    announced: Question | Objective,
    conclude: Callable[[plumdp.Learned], Certificate | Difference],
    model: ParametricMDP,
) -> list[str]:
    """Return the cells of a row."""
    clock = [process_time()]
    learned = plumdp.learn(model, counts, objectives=[announced])
    found = conclude(learned)
    certificate = found.with_comparison() if isinstance(found, Difference) else found
    clock.append(process_time())
    text, _ = propose_witness(learned, certificate)
    clock.append(process_time())
    with TemporaryDirectory() as folder:
        certificate.save(Path(folder) / "result", witness=text)
        broken = verify(Path(folder) / "result").broken
    clock.append(process_time())
    seconds = [f"{after - before:.1f}" for before, after in pairwise(clock)]
    witness = json.loads(text)
    sides = [witness, *([witness["comparison"]] if "comparison" in witness else [])]
    n_open = " and ".join(str(len(side["values"]["functions"])) for side in sides)
    numbers = [len(model.space.names), witness["values"]["degree"]]
    told = "" if broken is None else f"{broken.layer}: {broken}"
    return [n_open, *map(str, numbers), *seconds, f"{len(text) / 1e6:.1f}", told]


if __name__ == "__main__":
    main()
