"""What it costs to write a witness and to verify it, in processor seconds beside those of certify.

Run ``python -m studies.verify [--runs 10000] [instance …]``; by default one instance of each published family. With
``--differences``, the pairs of policies of the study ``differences`` are compared, on its smaller instances.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import plumdp
from plumdp.certifying.difference import Difference
from plumdp.decisions import verify
from plumdp.learning.learned import Learned
from plumdp.result.certificate import Certificate
from plumdp.result.folder import write_result
from plumdp.verifying.witness import propose_witness
from studies.differences import DIFFERENCES, pairs
from studies.experiment import prepare
from studies.published import SMALL_INSTANCES

COSTS = ["certify, s", "witness, s", "verify, s", "MB", "broken"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--differences", action="store_true")
    options = parser.parse_args()
    measure: Callable[[str, int], Iterator[list[str]]]
    header = ["instance", "open states", "parameters", "parts", "degree"]
    instances: Sequence[str]
    measure, instances = values, SMALL_INSTANCES
    if options.differences:
        measure, instances = differences, DIFFERENCES.plans["quick"].instances
    print(f"| {' | '.join([*header, *COSTS])} |\n|{'---|' * len([*header, *COSTS])}")
    for name in options.instances or instances:
        for cells in measure(name, options.runs):
            print(f"| {' | '.join(cells)} |", flush=True)


def values(name: str, runs: int) -> Iterator[list[str]]:
    """Yield the row of an instance, after a first certificate that compiles kernels."""
    study = plumdp.case_study(name)
    counts = plumdp.simulate(study.model, study.true_point, runs, rng=1, max_steps=study.max_steps)
    plumdp.certify(study.model, counts, study.objective)
    conclude = partial(plumdp.conclude, objective=study.objective)
    witness, costs = measured(lambda: plumdp.learn(study.model, counts, objectives=[study.objective]), conclude)
    yield [name, *sizes(witness), *costs]


def differences(name: str, runs: int) -> Iterator[list[str]]:
    """Yield a row for each rival of the best policy."""
    experiment = prepare(name)
    study, best, counts = experiment.study, experiment.truth.policy, experiment.draw(runs, 1)
    for named, rival, _, prespecified in pairs(experiment, counts):
        learn = partial(plumdp.learn, study.model, counts, objectives=[prespecified])
        compare = partial(plumdp.difference, objective=study.objective, first=best, second=rival)
        witness, costs = measured(learn, compare)
        yield [f"{name}, {named}", *sizes(witness), *costs]


def measured(
    learn: Callable[[], Learned], conclude: Callable[[Learned], Certificate | Difference]
) -> tuple[dict[str, Any], list[str]]:
    """Return a witness, and the cells of its costs."""
    clock = [process_time()]
    learned = learn()
    found = conclude(learned)
    certificate = found.with_comparison() if isinstance(found, Difference) else found
    clock.append(process_time())
    text, _ = propose_witness(learned, certificate)
    clock.append(process_time())
    with TemporaryDirectory() as folder:
        write_result(certificate, Path(folder) / "result", witness=text)
        broken = verify(Path(folder) / "result").broken
    clock.append(process_time())
    seconds = [f"{after - before:.1f}" for before, after in pairwise(clock)]
    return json.loads(text), [*seconds, f"{len(text) / 1e6:.1f}", "" if broken is None else f"{broken.layer}: {broken}"]


def sizes(witness: dict[str, Any]) -> list[str]:
    """Return the numbers of open states, parameters and parts of the cube, and the largest degree of functions."""
    parts = [witness["pieces"]["tree"]]
    for part in parts:
        parts += part.get("halves", [])[1:]
    values = [part["values"] for part in parts if "values" in part]
    n_open = " and ".join(str(len(each["functions"])) for each in values[0])
    n_parts = sum("halves" not in part for part in parts)
    degree = max(each["degree"] for of_part in values for each in of_part)
    return [n_open, str(len(witness["parameters"])), str(n_parts), str(degree)]


if __name__ == "__main__":
    main()
