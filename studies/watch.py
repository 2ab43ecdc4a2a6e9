"""What a watch promises, and what it costs: run lengths, delays, certificates about now, and ten years of days.

    python -m studies.watch [games] [part ...]

Parts are "runs" (lengths up to false alarms), "delays", "value", "now" and "years". A part of the data is 20 throws of
a coin, but for the last one, in which it is a day of a press. Delays are means over games after a change, in parts, and
over ln(1,000)/KL, about the least that any rule with one false alarm in 1,000 parts needs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import NormalDist
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from coin_model import COIN
from watch_games import COIN_ROWS

import plumdp
from plumdp.data.seen import Seen
from plumdp.fit.time_tests import weight_of
from plumdp.watching.detectors import ValueBets
from plumdp.watching.plan import Plan, WatchState
from plumdp.watching.rows import watched_rows
from plumdp.watching.stream import Stream
from plumdp.watching.watch import since_part

N = 20
KNOWN = (np.array([0.1, 0.9]), np.array([0.1, 0.9]))


def divergence(p: float, q: float) -> float:
    """Return the divergence of a coin from another, in nats."""
    return float(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)))


def thrown(rng: np.random.Generator, rate: float, n: int = N) -> Seen:
    """Return the throws of one part."""
    heads = int(rng.binomial(n, rate))
    return Seen(np.array([heads, n - heads]))


def alarm_of(plan: Plan, rng: np.random.Generator, rates: list[float], first: int = 0) -> int | None:
    """Return after how many parts rows give an alarm, which is looked at after some first ones, or None."""
    stream, enough = WatchState.begin(plan).stream, np.log(plan.thresholds["rows"])
    for number, rate in enumerate(rates, start=1):
        stream = stream.add(f"{number}", thrown(rng, rate))
        if number > first and plan.of_rows(stream).log_sum >= enough:
            return number
    return None


def value_alarm(rng: np.random.Generator, limit: float, rates: list[float], threshold: float) -> int | None:
    """Return after how many parts the value gives an alarm, or None."""
    bets = ValueBets.against(limit)
    for number, rate in enumerate(rates, start=1):
        bets = bets.add(f"{number}", (rng.random(N) < rate).astype(np.float64))
        if bets.evidence >= np.log(threshold):
            return number
    return None


def runs(games: int) -> None:
    """Print how long it takes up to a false alarm."""
    rng = np.random.default_rng(1)
    for level in (50, 100, 200):
        lengths = [alarm_of(Plan(COIN_ROWS, level, KNOWN), rng, [0.1] * 10 * level) or 10 * level for _ in range(games)]
        print(f"known reference, 1/α = {level}: mean length {np.mean(lengths) / level:.2f} / α", flush=True)
        lengths = [value_alarm(rng, 0.1, [0.1] * 10 * level, level) or 10 * level for _ in range(games)]
        print(f"value at its limit, 1/α = {level}: mean length {np.mean(lengths) / level:.2f} / α", flush=True)
    plan = Plan(COIN_ROWS, 100)  # 1/α is 200
    ends = [alarm_of(plan, rng, [0.1] * 200) for _ in range(games)]
    shares = {n: np.mean([end is not None and end <= n for end in ends]) for n in (32, 64, 128, 200)}
    print(
        "learned, 1/α = 200, alarm by part n (at most αn):", {n: f"{x:.3f} ({n / 200:.2f})" for n, x in shares.items()}
    )


def delays(games: int) -> None:
    """Print how soon changes of rows are found, beside an oracle and rules that always or never fire."""
    print(f"{'0.1 to':>8}{'bound':>8}{'oracle':>8}{'known':>14}{'learned, 1,000 quiet':>24}{'100 quiet (found)':>22}")
    for later in (0.3, 0.2, 0.15, 0.05):
        rng, bound = np.random.default_rng(2), np.log(1000) / (N * divergence(later, 0.1))
        most = int(12 * bound) + 20
        oracle = np.mean([_cusum(rng, later, most) for _ in range(4 * games)])
        known = [(alarm_of(Plan(COIN_ROWS, 1000, KNOWN), rng, [0.1] * 50 + [later] * most, 50) or 50 + most) - 50 for _ in range(games)]  # fmt: skip  # noqa: E501
        long = [(alarm_of(Plan(COIN_ROWS, 1000), rng, [0.1] * 1000 + [later] * most, 1000) or 1000 + most) - 1000 for _ in range(max(games // 4, 10))]  # fmt: skip  # noqa: E501
        short = [alarm_of(Plan(COIN_ROWS, 1000), rng, [0.1] * 100 + [later] * most, 100) for _ in range(max(games // 2, 10))]  # fmt: skip  # noqa: E501
        found = [end - 100 for end in short if end]
        shown = f"{np.mean(found):.1f} ({len(found) / len(short):.2f})" if found else "-"
        print(
            f"{later:8.2f}{bound:8.1f}{oracle:8.1f}{np.mean(known):8.1f} {np.mean(known) / bound:4.2f}"
            f"{np.mean(long):16.1f} {np.mean(long) / bound:4.2f}{shown:>24}",
            flush=True,
        )
    print("always fires: delay 1, a false alarm in every part; never fires: none, and no delay ends")


def _cusum(rng: np.random.Generator, later: float, most: int) -> int:
    """Return the delay of the rule that knows both chances, with one false alarm in about 1,000 parts."""
    up, down = np.log(later / 0.1), np.log((1 - later) / 0.9)
    total = 0.0
    for number in range(1, most + 1):
        heads = int(rng.binomial(N, later))
        total = max(total, 0.0) + heads * up + (N - heads) * down
        if total >= np.log(1000) - 1.2:  # about, as steps overshoot
            return number
    return most


def value(games: int) -> None:
    """Print how soon runs tell that a value no longer holds, and how often neutral and better systems give an alarm."""
    rng = np.random.default_rng(3)
    for limit, later in ((0.13, 0.2), (0.13, 0.3), (0.25, 0.35)):
        bound = np.log(1000) / (N * divergence(later, limit))
        ends = [value_alarm(rng, limit, [later] * 400, 2000) or 400 for _ in range(games)]
        alone = [value_alarm(rng, limit, [later] * 400, 1000) or 400 for _ in range(games)]
        medians = np.median(alone), np.median(ends)
        print(f"loss {later} for a limit of {limit}: median {medians[0]:.0f} parts ({medians[0] / bound:.2f} times "
              f"ln(1,000)/KL), beside rows {medians[1]:.0f} ({medians[1] / bound:.2f})", flush=True)  # fmt: skip
    steps = np.array([value_alarm(rng, 0.119, [0.2] * 400, 50_000) or 400 for _ in range(games)]) * N
    print(f"one false alarm in 10^6 runs, 0.10 to 0.20, limit 0.119: median {np.median(steps):.0f} runs, 90 % {np.quantile(steps, 0.9):.0f}")  # fmt: skip  # noqa: E501
    for name, rates in (
        ("better", [0.2 * (1 - i / 1000) for i in range(500)]),
        ("neutral: every run has the limit, given the past", [0.2] * 500),
    ):
        number = np.mean([value_alarm(rng, 0.2, rates, 1000) is not None for _ in range(games)])
        print(f"{name}: alarm within 500 parts at 1/α = 1,000: {number:.3f} (at most 0.5)", flush=True)


def now(games: int) -> None:
    """Print how often certificates about now hold, after one and two changes, and how wide they are."""
    rng, rows = np.random.default_rng(4), watched_rows(COIN)
    held: dict[str, list[bool]] = {"since": [], "window": [], "all data": []}
    wide: list[float] = []
    first = COIN.graph.first_transition[0]
    for game in range(games):
        changes = sorted(rng.choice(np.arange(10, 60), 1 + game % 2, replace=False).tolist())
        rates = rng.permutation([0.1, 0.2, 0.3])
        stream = Stream(rows)
        for number in range(80):
            rate = rates[sum(number >= change for change in changes)]
            counts = np.zeros(COIN.graph.n_transitions, dtype=np.int64)
            counts[first : first + 2] = thrown(rng, rate).counts
            stream = stream.add(f"part {number + 1}", Seen(counts))
        after = next(i for i, end in enumerate(stream.ends) if end >= changes[-1])  # the first that is kept
        asked = 'P=? [ F "heads" ]'
        of = {
            "since": since_part(COIN, stream, after, asked, None, 0.999, is_chosen=True),
            "window": since_part(COIN, stream, len(stream.parts) - 10, asked, None, 0.999, is_chosen=False),
            "all data": since_part(COIN, stream, 0, asked, None, 0.999, is_chosen=True),
        }
        for name, found in of.items():
            held[name].append(found.lower <= rate <= found.upper)
        width, n = of["since"].upper - of["since"].lower, (80 - stream.ends[after]) * N
        for error in (0.001, 0.001 * weight_of(stream.ends[after] + 1)):  # of all starts, and of this one
            deviations = NormalDist().inv_cdf(1 - error / 2)
            wide.append(width / (2 * deviations * np.sqrt(rate * (1 - rate) / n)))
    all_starts, own = np.median(wide[::2]), np.median(wide[1::2])
    print({name: f"{np.mean(each):.3f}" for name, each in held.items()}, end=" ")
    print(f"width over normal: {all_starts:.2f}, with the error that this start has by itself {own:.2f}")


def years(_games: int) -> None:
    """Print what 3,650 days of one press cost."""
    import resource

    (fault,) = plumdp.parameters("fault")

    def press(state: Any) -> Any:
        if state.part != "raw":
            return {"wait": [(1, state)]}
        good, scrap = state._replace(part="good"), state._replace(part="scrap")
        fast, slow = [(1 - fault, good), (fault, scrap)], [(1 - fault / 2, good), (fault / 2, scrap)]
        return {"fast": fast, "slow": slow}

    model = plumdp.explore(press, {"part": "raw"}, space=plumdp.ParameterSpace.unit("fault"))
    days = [plumdp.simulate(model, {"fault": 0.1}, 50, rng=day, max_steps=1).counts for day in range(365)]
    parts = [plumdp.TransitionCounts(model.graph, days[day % 365], "adaptive") for day in range(3650)]
    start = time.process_time()
    found = plumdp.watch(model, parts)
    seconds, size = time.process_time() - start, len(found.state.to_text())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"3,650 days: {seconds:.1f} CPU s, {memory:.0f} MB, state {size:,} bytes, {found.sentence}", flush=True)


PARTS = {"runs": runs, "delays": delays, "value": value, "now": now, "years": years}


def main(games: str = "100", *parts: str) -> None:
    """Print the tables of some parts, or of all."""
    for name in parts or PARTS:
        PARTS[name](int(games))


if __name__ == "__main__":
    main(*sys.argv[1:])
