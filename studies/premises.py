"""How often a bracket misses in silence if units differ or age, so that the model's first premise is false.

    python -m studies.premises [logs] [confidence] [laws] [units]
    python -m studies.premises right [logs] [confidence]             the same of right models

Units run for twelve steps and fail for good, by five laws: hazards alike (0.15), two kinds (0.05 and 0.3, or 0.1 and
0.2, half each), a few bad ones (0.05, and 0.4 for 15 %), and ageing (0.08, and a tenth of it more with each step). The
model has one hazard. Logs are read in order, as data that may have ended at will, with the number of units
pre-specified. "Missed": the share of logs whose bracket of the risk, without the test of memory, does not hold the true
risk of a new unit, and "width" how much wider a bracket is with it, in the first 40 logs. "Contradicted": that of logs
in which the model's test says so. "In silence": that of brackets which are claimed and miss, with limits by Clopper and
Pearson at 99 %. "ln e": the median of -ln p.
"Headline": the share of logs whose certificate beside whole runs has a bracket that does not hold the true risk, "*" if
that is more than 5 % by its lower limit, and "runs" how wide the bracket of whole runs is over a normal interval.

Right models are case studies, and tables that have the rows of one; logs are 100 runs of 25 steps, choices at random.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

import plumdp
from plumdp.data.context_counts import contexts_of
from plumdp.data.counts import TransitionCounts
from plumdp.data.pilots import moments_of, open_pilot
from plumdp.data.run_record import WholeRuns
from plumdp.data.seen import Seen
from plumdp.model.free_rows import free_rows
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import ask

STEPS, SIZES = 12, (300, 1000, 3000, 10_000)
_PLAIN = 40  # logs of which there are brackets without contexts as well
_BOTH_WAYS = 10  # logs of each right model of which there are both
RIGHT = (
    *("betting:5", "betting:10", "betting:25", "glider:11,9", "rover:10,10", "parallel:5"),
    *("engagement:5", "engagement:10", "engagement:20", "aircraft:20,10", "rows of betting:5", "rows of glider:11,9"),
)
ASKED = 'P=? [ F<=12 status="failed" ]'
LAWS: dict[str, tuple[tuple[float, ...], tuple[float, ...], float]] = {
    "alike": ((0.15,), (1.0,), 0.0),
    "two kinds": ((0.05, 0.3), (0.5, 0.5), 0.0),
    "two mild kinds": ((0.1, 0.2), (0.5, 0.5), 0.0),
    "few bad": ((0.05, 0.4), (0.85, 0.15), 0.0),
    "ageing": ((0.08,), (1.0,), 0.1),
}


def unit_model() -> ParametricMDP:
    """Return the model of a unit with one hazard."""
    (hazard,) = plumdp.parameters("hazard")

    def step(state: Any) -> dict[str, list[tuple[Any, Any]]]:
        if state.status == "failed":
            return {"stay": [(1, state)]}
        return {"run": [(hazard, state._replace(status="failed")), (1 - hazard, state)]}

    return plumdp.explore(step, {"status": "works"}, space=plumdp.ParameterSpace.unit("hazard"))


MODEL = unit_model()


def hazards(law: str, kind: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the hazard of units of some kinds at each step (n, 12)."""
    rates, _, growth = LAWS[law]
    return np.asarray(np.clip(np.array(rates)[kind, None] * (1 + growth * np.arange(STEPS)), 0, 1))


def true_risk(law: str) -> float:
    """Return the probability that a new unit fails within twelve steps."""
    shares = LAWS[law][1]
    survives = (1 - hazards(law, np.arange(len(shares)))).prod(axis=1)
    return float(1 - np.array(shares) @ survives)


def draw(law: str, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the step at which each of n units fails, or 12 if it does not."""
    kind = rng.choice(len(LAWS[law][1]), n, p=LAWS[law][1])
    fails = rng.random((n, STEPS)) < hazards(law, kind)
    return np.where(fails.any(axis=1), fails.argmax(axis=1), STEPS)


def counted(ends: npt.NDArray[np.int64]) -> TransitionCounts:
    """Return the counts of a log of units in order, their number pre-specified."""
    graph, n = MODEL.graph, len(ends)
    row = graph.first_choice[graph.initial_state]
    first, last = graph.first_transition[row : row + 2].tolist()
    fails = first + int(np.argmax(graph.successor[first:last] != graph.initial_state))
    lasts = np.minimum(ends + 1, STEPS)
    run = np.repeat(np.arange(n), lasts)
    step = np.arange(len(run)) - np.repeat(np.cumsum(lasts) - lasts, lasts)
    transition = np.where(step == ends[run], fails, first + last - 1 - fails)

    def seen(units: int) -> Seen:
        return Seen(np.bincount(transition[run < units], minlength=graph.n_transitions).astype(np.int64))

    pilot = open_pilot([*map(seen, moments_of(n))], n, seen(0), expected=float(n))
    n_pilot = int(np.searchsorted(np.cumsum(lasts), pilot.total)) + 1 if pilot.total else 0
    contexts = contexts_of(graph, run, transition, n_pilot)
    return TransitionCounts(graph, seen(n).counts, "adaptive", pilot, contexts=contexts)


def whole_runs(ends: npt.NDArray[np.int64]) -> WholeRuns:
    """Return the same units as whole runs, their number pre-specified."""
    graph, lasts = MODEL.graph, np.minimum(ends + 1, STEPS)
    row = graph.first_choice[graph.initial_state]
    first, last = graph.first_transition[row : row + 2].tolist()
    (failed,) = {*graph.successor[first:last].tolist()} - {graph.initial_state}
    bounds = np.append(0, np.cumsum(lasts + 1))
    state, action = np.full(bounds[-1], graph.initial_state), np.full(bounds[-1], graph.action[row])
    state[bounds[1:] - 1], action[bounds[1:] - 1] = np.where(ends < STEPS, failed, graph.initial_state), -1
    step = np.arange(bounds[-1]) - np.repeat(bounds[:-1], lasts + 1)
    return WholeRuns(np.arange(len(ends)), bounds, step, state, action, only_ordered=False, expected=float(len(ends)))


def limits(misses: int, n: int) -> tuple[float, float]:
    """Return the limits of a share by Clopper and Pearson at 99 %."""
    low = float(beta.ppf(0.005, misses, n - misses + 1)) if misses else 0.0
    return low, float(beta.ppf(0.995, misses + 1, n - misses)) if misses < n else 1.0


def play(law: str, n: int, rng: np.random.Generator, confidence: float, *, has_plain: bool) -> list[float]:
    """Return whether the plain bracket misses, whether the model is contradicted or missed in silence, and more."""
    ends = draw(law, n, rng)
    counts, true = counted(ends), true_risk(law)
    told = plumdp.certify(MODEL, counts, ASKED, confidence=confidence)
    is_claimed = told.status == "certified"
    silent = is_claimed and not told.lower <= true <= told.upper
    missed = wider = np.nan
    if has_plain:
        plain = plumdp.certify(MODEL, replace(counts, contexts=()), ASKED, confidence=confidence)
        missed = not plain.lower <= true <= plain.upper
        wider = (told.upper - told.lower) / (plain.upper - plain.lower) if is_claimed else np.nan
    asked = replace(ask(ASKED, MODEL), runs=whole_runs(ends))
    first = plumdp.conclude(plumdp.learn(MODEL, counts, objectives=[asked], confidence=confidence), asked)
    runs, off = first.claim.rungs[0], not first.lower <= true <= first.upper
    width = (runs.upper - runs.lower) / (2 * 1.96 * np.sqrt(true * (1 - true) / n)) if runs.is_claim else np.nan
    is_rejected, evidence = told.status == "model rejected", -np.log(told.beside.p_value or 1.0)
    return [missed, is_rejected, silent, wider, evidence, off, width]


def right_models(logs: int = 200, confidence: float = 0.95) -> None:
    """Print how often right models are contradicted, and how much wider brackets are with the test of memory."""
    print(f"{'model':22}{'contradicted':>13}{'limits':>14}{'width':>8}{'widest':>8}")
    for name in RIGHT:
        study = plumdp.case_study(name.removeprefix("rows of "))
        model = free_rows(study.model) if name.startswith("rows") else study.model
        contradicted, wider = 0, list[float]()
        for seed in range(logs):
            seen = plumdp.simulate(study.model, study.true_point, 100, rng=seed, max_steps=25)
            counts = replace(seen, graph=model.graph)
            learned = plumdp.learn(model, counts, objectives=[study.objective], confidence=confidence)
            contradicted += learned.conflict is not None
            if learned.conflict is None and len(wider) < _BOTH_WAYS:
                told = plumdp.conclude(learned, study.objective)
                plain = plumdp.certify(model, replace(counts, contexts=()), study.objective, confidence=confidence)
                if plain.upper - plain.lower < np.inf:
                    wider.append((told.upper - told.lower) / (plain.upper - plain.lower))
        low, high = limits(contradicted, logs)
        width = f"{np.median(wider):8.3f}{max(wider):8.3f}" if wider else ""
        print(f"{name:22}{contradicted / logs:13.3f}{low:8.3f}-{high:.3f}{width}", flush=True)


def main(logs: int = 200, confidence: float = 0.95, laws: str = ",".join(LAWS), sizes: str = "") -> None:
    """Print the table."""
    titles = "law", "units", "missed", "contradicted", "in silence", "limits", "width", "ln e", "headline", "runs"
    print("{:16}{:>7}{:>8}{:>14}{:>12}{:>16}{:>7}{:>8}{:>10}{:>7}".format(*titles))
    for law in laws.split(","):
        for n in map(int, sizes.split(",")) if sizes else SIZES:
            rng = np.random.default_rng(n)
            found = [play(law, n, rng, confidence, has_plain=i < _PLAIN) for i in range(logs)]
            missed, contradicted, silent, wider, evidence, off, over = np.array(found, dtype=float).T
            is_more = "*" if limits(int(off.sum()), logs)[0] > 0.05 else " "
            low, high = limits(int(silent.sum()), logs)
            width = f"{np.nanmedian(wider):.3f}" if (~np.isnan(wider)).any() else "-"
            print(
                f"{law:16}{n:7,}{np.nanmean(missed):8.3f}{contradicted.mean():14.3f}{silent.mean():12.3f}"
                f"{low:9.3f}-{high:.3f}{width:>7}{np.median(evidence):8.1f}"
                f"{off.mean():9.3f}{is_more}{np.nanmean(over):7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    is_right = sys.argv[1:2] == ["right"]
    given_words = zip((int, float, str, str), sys.argv[1 + is_right :], strict=False)
    (right_models if is_right else main)(*(kind(given) for kind, given in given_words))
