"""How wide brackets are from 30 to 3,000 runs of small models, over the normal interval of the same policy and data.

    python -m studies.widths                                      every case, planned and open ends, and no order
    python -m studies.widths agent --runs 30,300 --confidence 0.95,0.999    cases with this word in their names
    python -m studies.widths --against ../before/src              beside another checkout, in turns
    python -m studies.widths --against ../before/src --keep before.json     ask the other checkout once only

A policy that was pre-specified is valued from the first runs of one log: their number was planned, or the end was open
but the order of the runs is told, or nothing is told. The normal interval is that of the delta method at the same
confidence, from all data, at the most likely point: a yardstick that nothing proves. What is printed is a page of
Markdown, with medians over seeds, and the processor time of learning and valuing on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

import plumdp
import plumdp.stages
from plumdp.model.text import number_of

pl: Any = plumdp  # that of another checkout may have other signatures
HERE = Path(__file__).parents[1]
ANSWER = "--answer"
Row: TypeAlias = dict[str, Any]
FAMILIES = ("betting:25", "aircraft:20,10", "rover:10,10", "glider:11,9", "engagement:20")
ORDERS: Mapping[str, Mapping[str, str]] = {
    "planned": {"sampling": "trajectories"},
    "open": {"order": "runs"},
    "no order": {},
}


@dataclass(frozen=True, eq=False)
class Problem:
    """A policy to value, or two to compare, and how data come about."""

    model: Any  # that is certified
    twin: Any  # the same with parameters, where the model has unknown rows
    point: Mapping[str, Any]  # the truth
    objective: str
    policy: Any
    against: Any = None
    arms: tuple[Any, ...] = ("uniform",)  # each run is under one of these policies, drawn at random
    max_steps: int = 100
    stop: Any = None  # where runs end; without it, at the label "end"

    @property
    def true_value(self) -> float:
        """The value of the policy, less that of the other one, at the true point."""
        return self._value(self.policy) - (0.0 if self.against is None else self._value(self.against))

    @property
    def asked(self) -> Any:
        """The objective."""
        return pl.parse_property(self.objective, self.model)

    def _value(self, policy: Any) -> float:
        at, asked = pl.stages.instantiate(self.twin, self.point), pl.parse_property(self.objective, self.twin)
        worth = pl.stages.evaluate(at, policy, asked, precision=1e-9)
        start = self.twin.graph.initial_state
        return float(worth.lower[start] + worth.upper[start]) / 2

    def draw(self, runs: int, seed: int, path: Path) -> pd.DataFrame:
        """Return a log of runs, each under an arm of its own, which the file keeps."""
        if not path.exists():
            stop = self.twin.labels.get("end") if self.stop is None else self.stop
            options = {"max_steps": self.max_steps, "stop": stop}
            of_run, parts = np.random.default_rng([seed, 1]).integers(len(self.arms), size=runs), []
            for number, arm in enumerate(self.arms):
                pl.data.write_runs(self.twin, self.point, runs, path, rng=[seed, number], policy=arm, **options)
                frame = pd.read_parquet(path)
                parts.append(frame[of_run[frame["episode"]] == number])
            pd.concat(parts).sort_values(["episode", "step"]).to_parquet(path, index=False)
        return pd.read_parquet(path)


def family(name: str) -> Problem:
    """Return the best policy of a case study."""
    study = pl.case_study(name)
    truth = pl.stages.solve(pl.stages.instantiate(study.model, study.true_point), study.objective, precision=1e-9)
    stop = np.isin(truth.lower, (0.0, study.objective.cap)) & (truth.lower == truth.upper)
    text, steps = study.objective.text, study.max_steps + 1
    return Problem(study.model, study.model, study.true_point, text, truth.policy, max_steps=steps, stop=stop)


def maintenance() -> Problem:
    """Return the cost in the long run of a machine that wears in three stages, and is renewed when it has failed."""
    chances = pl.parameters("a", "b", "c")

    def month(s: Any) -> Any:
        if s.wear == 3:
            return {"renew": [(1, s._replace(wear=0))]}
        return {"run": [(chances[s.wear], s._replace(wear=s.wear + 1)), (1 - chances[s.wear], s)]}

    space = pl.ParameterSpace.box(dict.fromkeys("abc", (0.001, 0.999)))
    cost = {"cost": lambda s: (0.0, 20.0, 60.0, 2000.0)[s.wear]}
    model = pl.explore(month, {"wear": 0}, space=space, rewards=cost)
    point = {"a": 0.12, "b": 0.2, "c": 0.3}
    return Problem(model, model, point, 'R{"cost"}min=? [ LRA ]', "uniform", max_steps=44)


def agent(*, tied: bool, arms: str = "AB") -> Problem:
    """Return an agent that plans, searches, codes and tests, with a prompt A or B in each run; B passes more tests.

    If rows are tied, the prompts share all but the test.
    """
    chances = {"plan": (0.7,), "search": (0.6, 0.25), "code": (0.9,)}
    after = {"plan": ("search", "code"), "search": ("code", "search", "plan"), "code": ("test", "fail")}
    tests = {"A": (0.55, 0.4), "B": (0.65, 0.3)}
    point: dict[str, float] = {}

    def step_with(row: Callable[[str, int, list[Any]], Any]) -> Callable[[Any], Any]:
        def step(s: Any) -> Any:
            if s.tool in ("done", "fail"):
                return {"end": [(1, s)]}
            names = {arm: s.tool if tied and s.tool != "test" else f"{s.tool} {arm}" for arm in arms}
            next_tools = after.get(s.tool, ("done", "code", "fail"))
            for arm, name in names.items():
                numbers = chances.get(s.tool, tests[arm])
                point.update({f"{name}{i}".replace(" ", "_"): p for i, p in enumerate(numbers)})
            to = [s._replace(tool=tool) for tool in next_tools]
            return {arm: row(name.replace(" ", "_"), len(to), to) for arm, name in names.items()}

        return step

    labels = {"done": lambda s: s.tool == "done", "end": lambda s: s.tool in ("done", "fail")}
    model, twin = both_kinds(step_with, {"tool": "plan"}, labels, point)
    return Problem(
        model, twin, point, 'Pmax=? [ F "done" ]', acting(arms[-1]), acting(arms[0]) if arms[1:] else None,
        arms=tuple(map(acting, arms)), max_steps=1000,
    )  # fmt: skip


def acting(arm: str) -> Callable[..., str]:
    """Return the policy that takes one action until the run ends."""
    return lambda tool: "end" if tool in ("done", "fail") else arm


def walk(n: int) -> Problem:
    """Return a walk of n places, each with a coin of its own, which ends above or below."""
    chances, point = np.random.default_rng(0).uniform(0.45, 0.6, n), {}

    def step_with(row: Callable[[str, int, list[Any]], Any]) -> Callable[[Any], Any]:
        def step(s: Any) -> Any:
            if s.x in (-1, n):
                return {"end": [(1, s)]}
            point[f"up_{s.x}0"] = float(chances[s.x])
            return {"go": row(f"up_{s.x}", 2, [s._replace(x=s.x + 1), s._replace(x=s.x - 1)])}

        return step

    labels = {"top": lambda s: s.x == n, "end": lambda s: s.x in (-1, n)}
    model, twin = both_kinds(step_with, {"x": n // 2}, labels, point)
    return Problem(model, twin, point, 'Pmax=? [ F "top" ]', "uniform", max_steps=2000)


def both_kinds(
    step_with: Any, initial: Any, labels: Any, point: Mapping[str, float], **rewards: Any
) -> tuple[Any, Any]:
    """Return a table of unknown rows, and the model with a parameter for each number but the last of a row."""
    table = pl.explore(step_with(lambda name, _, to: pl.unknown(*to, row=name)), initial, labels=labels, **rewards)
    known = {name: pl.parameters(name)[0] for name in point}

    def row(name: str, size: int, to: list[Any]) -> list[Any]:
        numbers = [known[f"{name}{i}"] for i in range(size - 1)]
        return list(zip([*numbers, 1 - sum(numbers[1:], start=numbers[0])], to, strict=True))

    rests = {name: [known[each] for each in point if each[:-1] == name] for name in {each[:-1] for each in point}}
    sums = [1 - sum(each[1:], start=each[0]) for each in rests.values() if len(each) > 1]
    space = pl.ParameterSpace.box(dict.fromkeys(point, (0, 1)), constraints=sums)
    return table, pl.explore(step_with(row), initial, space=space, labels=labels, **rewards)


def trial(*, compared: bool) -> Problem:
    """Return the quality-adjusted years of a drug, or how many more these are than those of the standard.

    Patients enter at five ages, are seen each quarter for six years, and die of other causes as life tables say.
    """
    truth = {"A": (0.05, 0.008, 0.06), "S": (0.08, 0.010, 0.09)}
    kinds = ("worse", "dies_stable", "dies_worse")
    point = {f"{kind}_{arm}": p for arm, numbers in truth.items() for kind, p in zip(kinds, numbers, strict=True)}
    chance = dict(zip(point, pl.parameters(*point), strict=True))
    ages, last = (55, 60, 65, 70, 75), 4 * 88

    def quarter(s: Any) -> Any:
        if s.status == "new":
            return {f"age {age}": [(1, s._replace(quarter=4 * age, status="stable"))] for age in ages}
        if s.status == "dead" or s.quarter >= last:
            return {"end": [(1, s)]}
        return {arm: later(s, arm) for arm in truth}

    def later(s: Any, arm: str) -> Any:
        known, after = round(0.0015 * 1.09 ** (s.quarter // 4 - 55), 6), s._replace(quarter=s.quarter + 1)
        dies = known + (1 - known) * chance[f"dies_{s.status}_{arm}"]
        dead = (dies, after._replace(status="dead"))
        if s.status == "worse":
            return [dead, (1 - dies, after)]
        worse = chance[f"worse_{arm}"]
        return [dead, (worse, after._replace(status="worse")), (1 - dies - worse, after)]

    weights = {"stable": 0.2, "worse": 0.1375}
    model = pl.explore(
        quarter,
        {"quarter": 0, "status": "new"},
        space=pl.ParameterSpace.box(dict.fromkeys(point, (0, 0.5))),
        labels={"end": lambda s: s.status == "dead" or s.quarter >= last},
        rewards={"qaly": lambda s: weights.get(s.status, 0) * (s.quarter < last)},
    )
    cohort = [treating(arm, {"age 60": 1.0}) for arm in truth]
    arms = tuple(treating(arm, {f"age {age}": 1 / len(ages) for age in ages}) for arm in truth)
    asked = 'R{"qaly"}max=? [ F "end" ]'
    return Problem(model, model, point, asked, cohort[0], cohort[1] if compared else None, arms=arms, max_steps=25)


def treating(arm: str, entry: Mapping[str, float]) -> Callable[..., Any]:
    """Return the policy of one arm, with chances of ages at entry."""
    return lambda quarter, status: entry if status == "new" else "end" if status == "dead" or quarter >= 4 * 88 else arm


CASES: Mapping[str, Callable[[], Problem]] = {
    **{name: partial(family, name) for name in FAMILIES},
    "maintenance, long run": maintenance,
    "table, agent": partial(agent, tied=False, arms="B"),
    "table, walk of 8": partial(walk, 8),
    "trial, drug": partial(trial, compared=False),
    "trial, difference": partial(trial, compared=True),
    "difference, agent tied": partial(agent, tied=True),
    "difference, agent free": partial(agent, tied=False),
}


@cache
def problem_of(case: str) -> Problem:
    """Return a case."""
    return CASES[case]()


@cache
def log_of(case: str, seed: int, most: int, folder: str) -> pd.DataFrame:
    """Return the log of a case."""
    name = f"{case}-{seed}".replace(":", "-").replace(",", "-")
    return problem_of(case).draw(most, seed, Path(folder) / f"{name}.parquet")


@cache
def true_value(case: str) -> float:
    """Return the value that brackets should hold."""
    return problem_of(case).true_value


@dataclass(frozen=True)
class Setting:
    """One bracket: a case, how much is known of its data, and the confidence."""

    case: str
    seed: int
    runs: int
    order: str
    confidence: float
    most: int  # runs in the log of which these are the first
    folder: str  # in which logs are kept

    def counts(self, model: Any, order: str | None = None) -> Any:
        """Return the counts of the first runs, given what is told of their order."""
        log = log_of(self.case, self.seed, self.most, self.folder)
        return pl.read_log(model, log[log["episode"] < self.runs], **ORDERS[order or self.order]).counts


def bracket(setting: Setting) -> Row:
    """Return the bounds of a setting, and the processor time of learning and valuing."""
    problem = problem_of(setting.case)
    model, counts, asked = problem.model, setting.counts(problem.model), problem.asked
    began = process_time()
    question = pl.model.Question(model, asked, policy=problem.policy, against=problem.against)
    learned = pl.learn(model, counts, objectives=[question], confidence=setting.confidence)
    if problem.against is None:
        found = pl.conclude(learned, asked, policy=problem.policy)
    else:
        found = pl.difference(learned, asked, problem.policy, problem.against)
    return {"lower": found.lower, "upper": found.upper, "seconds": process_time() - began}


def standard_error(setting: Setting) -> float:
    """Return the standard error of the value at the most likely point, by the delta method."""
    from scipy.stats import norm

    from plumdp.model.policy import check_policy
    from plumdp.solver.coupled.gradient import policy_gradient
    from studies.limit import normal_half_width

    problem = problem_of(setting.case)
    twin = problem.twin
    learned, asked = pl.learn(twin, setting.counts(twin, "no order")), pl.parse_property(problem.objective, twin)
    policies = [check_policy(twin.graph, each) for each in (problem.policy, problem.against) if each is not None]
    slopes = [policy_gradient(twin, each, asked, learned.estimate)[1] for each in policies]
    slope = slopes[0] - slopes[1] if problem.against is not None else slopes[0]
    return normal_half_width(learned, slope) / float(norm.isf(learned.error / 2))


def answer() -> None:
    """Print the bracket of each setting that is read."""
    warm = set()
    for line in sys.stdin:
        setting = Setting(**json.loads(line))
        if setting.case not in warm:  # kernels are compiled and loaded before seconds are counted
            bracket(setting)
            warm.add(setting.case)
        print(json.dumps(bracket(setting)), flush=True)


@dataclass(frozen=True, eq=False)
class Checkout:
    """A package that answers from a process of its own, and the answers that are known already."""

    source: Path
    keep: Path | None = None  # a file of answers

    @cached_property
    def process(self) -> subprocess.Popen[str]:
        """The process."""
        environment = {**os.environ, "PYTHONPATH": f"{self.source}{os.pathsep}{HERE}", "PLUMDP_THREADS": "1"}
        command = [sys.executable, "-m", "studies.widths", ANSWER]
        return subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @cached_property
    def answers(self) -> dict[str, Row]:
        """The answers, by setting."""
        known: dict[str, Row] = json.loads(self.keep.read_text()) if self.keep and self.keep.exists() else {}
        return known

    def ask(self, setting: Setting) -> Row:
        """Return the bracket of a setting."""
        name = json.dumps([*asdict(setting).values()][:-1])  # without the folder
        if name not in self.answers:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            print(json.dumps(asdict(setting)), file=self.process.stdin, flush=True)
            self.answers[name] = json.loads(self.process.stdout.readline())
            if self.keep:
                self.keep.write_text(json.dumps(self.answers))
        return self.answers[name]


def measured(options: argparse.Namespace, folder: str) -> Iterator[Row]:
    """Yield a row for each bracket, of each checkout in turn."""
    from scipy.stats import norm

    before = [] if options.against is None else [Checkout(options.against.resolve(), options.keep)]
    checkouts = [*before, Checkout(HERE / "src")]
    cases = [case for case in CASES if not options.cases or any(word in case for word in options.cases)]
    for case, seed, runs in product(cases, range(options.seeds), options.runs):
        truth, error = true_value(case), None
        for order, confidence in product(ORDERS, options.confidence):
            setting = Setting(case, seed, runs, order, confidence, max(options.runs), folder)
            error = standard_error(setting) if error is None else error
            width = 2 * error * norm.isf((1 - confidence) / 2)
            for number, checkout in enumerate(checkouts):
                row = asdict(setting) | checkout.ask(setting)
                ratio, holds = (row["upper"] - row["lower"]) / width, row["lower"] <= truth <= row["upper"]
                yield row | {"checkout": number, "ratio": ratio, "holds": holds}


def table(rows: Sequence[Row], confidence: float) -> str:
    """Return the ratios at a confidence, a line for each case and order, with what was before an arrow."""
    from studies.markdown import (
        distinct,
        grouped,
        markdown_table,
        mean,
        middle,
        short_seconds,
    )  # those of this checkout

    rows = [row for row in rows if row["confidence"] == confidence]
    groups, lines = grouped(rows, "case", "order", "runs", "checkout"), []
    numbers, checkouts = distinct(rows, "runs"), sorted(distinct(rows, "checkout"))
    for case, order in product(distinct(rows, "case"), ORDERS):
        of_line = grouped([row for row in rows if (row["case"], row["order"]) == (case, order)], "checkout")
        ratios = [
            " → ".join(f"{middle(groups[case, order, runs, c], 'ratio'):.2f}" for c in checkouts) for runs in numbers
        ]
        lines.append(
            [case, order, *ratios, " → ".join(short_seconds(mean(of_line[(c,)], "seconds")) for c in checkouts)]
        )
    return markdown_table(["case", "data", *(f"{runs:,} runs" for runs in numbers), "CPU s"], lines)


def page(rows: Sequence[Row], words: Sequence[str]) -> str:
    """Return all tables, with how they were made."""
    from studies.markdown import distinct
    from studies.report import provenance

    n_seeds, n_held = len(distinct(rows, "seed")), sum(row["holds"] for row in rows)
    parts = ["# Widths from few runs", provenance(shlex.join(["python", "-m", "studies.widths", *_shown(words)]))]
    parts += [
        "The width of a bracket over that of the two-sided normal interval of the same policy and data, by the delta "
        "method, which nothing proves. The policy, or both compared, were pre-specified. *Planned*: the number "
        "of runs was fixed beforehand; *open*: their order is told, and the data may have ended at will; *no order*: "
        f"nothing is told. Medians over {number_of(n_seeds, 'seed')}. The last column is the mean processor time of "
        "learning and valuing. Few runs may give ratios below 1, where the parameter space or [0, 1] cuts the bracket."
        + ("" if len(distinct(rows, "checkout")) == 1 else " Before an arrow is what it was at an earlier commit."),
    ]
    for confidence in distinct(rows, "confidence"):
        parts += [f"## Confidence {confidence:g}", table(rows, confidence)]
    return "\n\n".join([*parts, f"The true value lies in {n_held:,} of {len(rows):,} brackets."]) + "\n"


def main(words: Sequence[str]) -> None:
    """Measure, and print or write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.widths", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"words, of which a case has one in its name: {'; '.join(CASES)}")
    parser.add_argument("--runs", type=_list_of(int), default=[30, 100, 300, 1000, 3000], help="numbers of runs")
    parser.add_argument("--confidence", type=_list_of(float), default=[0.95], help="confidences")
    parser.add_argument("--seeds", type=int, default=3, help="logs of each case; 3, the default")
    parser.add_argument("--against", type=Path, help="the source folder of another checkout")
    parser.add_argument("--keep", type=Path, help="a file in which the answers of the other checkout are kept")
    options, rows = parser.parse_args(words), []
    with TemporaryDirectory() as folder:
        for row in measured(options, folder):
            rows.append(row)
            told = (row[name] for name in ("case", "seed", "runs", "order", "confidence", "checkout"))
            print(*told, f"{row['ratio']:.2f}", f"{row['seconds']:.2f} s", file=sys.stderr)
    print(page(rows, words))


def _shown(words: Sequence[str]) -> list[str]:
    """Return the words of a command without those that name places on one machine."""
    places = [i for i, word in enumerate(words) if word in ("--against", "--keep")]
    return [word for i, word in enumerate(words) if i not in places and i - 1 not in places]


def _list_of(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    return lambda text: [kind(each) for each in text.split(",")]


if __name__ == "__main__":
    if sys.argv[1:] == [ANSWER]:
        answer()
    else:
        main(sys.argv[1:])
