"""CPU seconds of a certificate by stage, and of further questions about the same graph, beside another checkout.

    python benchmarks/questions.py                             acyclic case studies of the README
    python benchmarks/questions.py rover:50,50 betting:25      others
    python benchmarks/questions.py --against ../before/src     before and after in one run

The model is there, 10,000 runs were counted, and kernels are compiled when the clock starts. A certificate is that of
``certify(relaxation="expression")``. Each further question is asked of what was learned for it: another relaxation
(other bounds), nature at its best, the value of another policy, another confidence, and one update of online learning.
Figures are least process seconds over rounds in which the checkouts take turns, each in a process of its own; "pairs"
is the median ratio of all rounds. The last lines compare the bits of all bounds and policies, and the peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

HERE = str(Path(__file__).parents[1] / "src")
INSTANCES = ("rover:125,125", "aircraft:200,40", "betting:100", "parallel:20")
SMALL = {"rover": "rover:10,10", "aircraft": "aircraft:20,10", "betting": "betting:25", "parallel": "parallel:5"}
MEASURE = "--measure"
STAGES = ("intervals", "region", "tests", "relaxation", "solver")
RUNS = 10_000
EPISODES = 60


class Asked:
    """Seconds and answers of the questions asked so far in this process."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.answers: dict[str, list[Any]] = {}

    def ask(self, name: str, question: Callable[[], Any]) -> Any:
        """Ask a question, and keep its seconds and the bits of its answer."""
        start = time.process_time()
        answer = question()
        self.seconds[name] = time.process_time() - start
        policy = np.asarray(getattr(answer.policy, "choice", answer.policy))
        lower, upper = np.asarray(answer.lower), np.asarray(answer.upper)
        bits = blake2b(np.ascontiguousarray(policy).tobytes(), digest_size=8).hexdigest()
        self.answers[name] = [lower.ravel()[0].hex(), upper.ravel()[0].hex(), bits]
        return answer


def ask_all(name: str, runs: int, episodes: int = EPISODES) -> Asked:
    """Return seconds and answers of all questions about a case study."""
    import plumdp as pl
    from plumdp.certifying.pipeline import relax

    study, asked = pl.case_study(name), Asked()
    model, objective = study.model, study.objective
    counts = pl.simulate(model, study.true_point, runs, rng=1, max_steps=study.max_steps)
    certificate = asked.ask("certificate", lambda: pl.certify(model, counts, objective, relaxation="expression"))
    known = {stage: certificate.seconds.get(stage, 0.0) for stage in STAGES}
    asked.seconds |= {f"certificate: {stage}": seconds for stage, seconds in known.items()}
    asked.seconds["certificate: words, hashes"] = asked.seconds["certificate"] - sum(known.values())
    learned = pl.learn(model, counts, objectives=[objective])
    pl.conclude(learned, objective, relaxation="expression")
    asked.ask("other bounds", lambda: pl.conclude(learned, objective, relaxation="parameter"))
    first = model.graph.first_choice[:-1]
    asked.ask("another policy", lambda: pl.conclude(learned, objective, relaxation="expression", policy=first))
    uncertain, options = relax(learned, "expression"), _options(learned, objective)
    asked.ask("other nature", lambda: pl.stages.solve(uncertain, objective, nature="optimistic", **options))
    again = {"confidence": 0.99, "objectives": [objective], "like": learned}
    asked.ask(
        "other confidence",
        lambda: pl.conclude(pl.learn(model, counts, **again), objective, relaxation="expression"),
    )
    _ask_online(asked, study, episodes)
    return asked


def _options(learned: Any, objective: Any) -> dict[str, Any]:
    from plumdp.model.question import Question

    prepared = getattr(learned.at_points(Question(learned.model, objective)), "prepared", None)
    return {} if prepared is None else {"prepared": prepared}


def _ask_online(asked: Asked, study: Any, episodes: int) -> None:
    """Enter the median seconds of an update of online learning, and its last bounds."""
    import plumdp as pl

    model = study.model
    environment = pl.online.simulator(model, study.true_point, rng=1, max_steps=study.max_steps)
    options: dict[str, Any] = {"episodes": episodes, "relaxation": "expression", "spacing": 4.0}
    records = list(pl.learn_online(model, environment, study.objective, **options))
    seconds = np.diff([0.0, *(record.seconds for record in records)])
    asked.seconds["online update"] = float(np.median(seconds[1:]))
    last = records[-1]
    bits = blake2b(np.ascontiguousarray(last.policy.choice).tobytes(), digest_size=8).hexdigest()
    asked.answers["online update"] = [float(last.bound).hex(), float(last.optimistic_bound).hex(), bits]


def measure(name: str) -> dict[str, Any]:
    """Return seconds, answers and peak memory of this process, after one round with a small model."""
    import plumdp.base.clock
    import plumdp.online.loop

    for module in (plumdp.base.clock, plumdp.online.loop):
        module.perf_counter = time.process_time  # so that stages are told in process time
    plumdp.base.clock.seconds_of_compiling = lambda: 0.0  # those are other seconds
    ask_all(SMALL.get(name.split(":")[0], name), 1000, 50)
    asked = ask_all(name, RUNS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": asked.seconds, "answers": asked.answers, "peak": peak}


def in_process(source: str, name: str) -> dict[str, Any]:
    """Return a measurement with the package from the given folder."""
    command = [sys.executable, __file__, MEASURE, name]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source})
    if ran.returncode:
        raise SystemExit(ran.stderr)
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def report(name: str, rounds: list[dict[str, dict[str, Any]]]) -> list[str]:
    """Return the lines of the table for one instance."""
    lines = []
    for question in rounds[0]["now"]["seconds"]:
        now = [one["now"]["seconds"][question] for one in rounds]
        before = [one["before"]["seconds"][question] for one in rounds if "before" in one]
        figures = f"– | {min(now):.3f} | – | –"
        if before:
            pairs = statistics.median(new / max(old, 1e-9) for new, old in zip(now, before, strict=True))
            figures = f"{min(before):.3f} | {min(now):.3f} | {min(now) / max(min(before), 1e-9):.2f} | {pairs:.2f}"
        lines.append(f"| {name} | {question} | {figures} |")
    peak = {label: min(one[label]["peak"] for one in rounds) for label in rounds[0]}
    lines += [f"| {name} | peak memory, GB, {label} | {most:.2f} | | | |" for label, most in peak.items()]
    if "before" in rounds[0]:
        both = [rounds[0][label]["answers"] for label in ("before", "now")]
        lines += [f"| {name} | {question}: {_compared(*(b[question] for b in both))} | | | | |" for question in both[0]]
    return lines


def _compared(before: list[str], now: list[str]) -> str:
    if before == now:
        return "same bits"
    off = max(
        abs(float.fromhex(a) - float.fromhex(b)) / max(abs(float.fromhex(a)), 1e-300)
        for a, b in zip(before[:2], now[:2], strict=True)
    )
    return f"bounds differ by {off:.1e} relative, {'same policy' if before[2] == now[2] else 'another policy'}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="*", default=INSTANCES)
    parser.add_argument("--against", help="the source folder of another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sources = {"before": options.against, "now": HERE} if options.against else {"now": HERE}
    print("| instance | question | before, CPU s | now, CPU s | ratio | pairs |\n|---|---|---|---|---|---|")
    for name in options.instances:
        rounds = [{label: in_process(source, name) for label, source in sources.items()} for _ in range(options.rounds)]
        print("\n".join(report(name, rounds)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [MEASURE]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        main()
