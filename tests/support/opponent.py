"""An opponent who knows the truth and wants plumdp to say something wrong about a model that is right.

In a game data come in batches. The opponent chooses by what was seen which rows are visited next, or under which policy
runs are made, tries to count data twice, and looks at whatever end of the data suits: as all claims hold at all times,
it may play to the last batch and then go back to the ends at which the data are most misleading. A look is
``learn``, often ``like=`` an earlier look, of this game or another one. It wins in three ways: the true point is
outside of the set, the value of the returned policy is outside of its bracket, or the model is contradicted.

The shares of all sets and tests sum to the error, so that in at most a share ``ERROR`` of the games anything is wrong.
That is tested while games are played (``Evidence``): a right package fails with a probability of at most 10⁻⁴, however
long they go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, log
from typing import NamedTuple

import numpy as np
import opponent_data
from opponent_data import deviations
from opponent_models import CASES, Case

import plumdp as pl
from plumdp.data.counts import TransitionCounts

ERROR = 0.1
LEVEL = 1e-4  # probability that a right package fails
N_LOOKS = 8


class Regime(NamedTuple):
    """How data come about, and how far rows may be off; none of them is."""

    data: Callable[[Case, np.random.Generator], list[TransitionCounts]]
    misfit: float = 0.0


REGIMES = {
    "no order": Regime(opponent_data.no_order),
    "open": Regime(opponent_data.open_end),
    "expected": Regime(opponent_data.badly_expected),
    "planned": Regime(opponent_data.planned),
    "independent": Regime(opponent_data.independent),
    "misfit": Regime(opponent_data.open_end, 0.02),
}


# Looks


def misleading(case: Case, seen: np.ndarray) -> tuple[float, float, float]:
    """Return how far the data are off the truth: along the value, in all parameters, and in single rows."""
    table, chance = case.ground.table, case.outcome_chances
    slopes = np.where(chance > 0, 1 / np.where(chance > 0, chance, 1.0), 0.0)[:, None] * table.coefficients
    amount = table.pool(seen)
    score, inverse = (
        amount @ slopes,
        np.linalg.pinv(slopes.T @ (amount[:, None] * slopes) + 1e-6 * np.eye(len(case.theta))),
    )
    along, size = case.gradient @ inverse @ score, case.gradient @ inverse @ case.gradient
    return abs(along) / max(size, 1e-300) ** 0.5, float(score @ inverse @ score), float(deviations(case, seen).max())


def choose_looks(case: Case, data: Sequence[TransitionCounts], rng: np.random.Generator) -> list[int]:
    """Return which ends of the data to look at, in order: the worst of both halves, the last, and some at random."""
    if len(data) <= N_LOOKS:
        return list(range(len(data)))
    off, half = np.array([misleading(case, counts.counts) for counts in data]), len(data) // 2
    found = {len(data) - 1, *off[:half].argmax(axis=0).tolist(), *(half + off[half:].argmax(axis=0)).tolist()}
    others = rng.permutation([i for i in range(len(data)) if i not in found]).tolist()
    return sorted([*found, *others[: N_LOOKS - len(found)]])


class Wins(NamedTuple):
    """Which claims were ever wrong in a game."""

    excluded: bool = False
    missed: bool = False
    contradicted: bool = False

    def __or__(self, other: Wins) -> Wins:
        return Wins(*(a or b for a, b in zip(self, other, strict=True)))


@dataclass
class Opponent:
    """Plays games with a case; whatever was learned in a look may be of use in a later one."""

    case: Case
    memory: list[pl.Learned] = field(default_factory=list)

    def play(self, regime: Regime, rng: np.random.Generator) -> Wins:
        """Return what was ever wrong in one game."""
        data, wins = regime.data(self.case, rng), Wins()
        looks = choose_looks(self.case, data, rng)
        for i in looks:
            wins |= self.look(data[i], regime.misfit, rng, is_last=i == looks[-1])
        return wins

    def look(self, counts: TransitionCounts, misfit: float, rng: np.random.Generator, *, is_last: bool) -> Wins:
        """Return what is wrong at one look. A policy is asked for at the last, if all is not well, and at random."""
        learned = self.learn(counts, misfit, rng)
        excluded, contradicted = is_outside(self.case, learned), learned.conflict is not None
        if not (excluded or contradicted or is_last or rng.random() < 0.25):
            return Wins()
        certificate = pl.conclude(learned, self.case.objective)
        value = self.case.value(tuple(certificate.policy.choice.tolist()))
        return Wins(excluded, not _exact(certificate.lower) <= value <= _exact(certificate.upper), contradicted)

    def learn(self, counts: TransitionCounts, misfit: float, rng: np.random.Generator) -> pl.Learned:
        """Return what the data say, half of the time like any of the last looks."""
        case, is_like = self.case, len(self.memory) > 0 and rng.random() < 0.5
        like = self.memory[rng.integers(len(self.memory))] if is_like else case.known
        options = {"confidence": 1 - ERROR, "misfit": misfit, "like": like}
        learned = pl.learn(case.model, counts, objectives=[case.objective], **options)
        self.memory = [*self.memory[-9:], learned]
        return learned

    def wins_at_worst(self, data: Sequence[TransitionCounts], rng: np.random.Generator) -> bool:
        """Return whether a set or a test is wrong at the last or one of the most misleading ends, and stop there."""
        off = np.array([misleading(self.case, counts.counts) for counts in data])
        worst = dict.fromkeys([len(data) - 1, *off.argmax(axis=0).tolist()])
        return any(
            learned.conflict is not None or is_outside(self.case, learned)
            for learned in (self.learn(data[i], 0.0, rng) for i in worst)
        )


def _exact(bound: float) -> Fraction | float:
    return Fraction(bound) if abs(bound) < inf else bound


def is_outside(case: Case, learned: pl.Learned) -> bool:
    """Return whether the true point is outside of the set or of the region, without any tolerance."""
    found, theta, region = learned.bounds, case.theta, learned.region
    happened = found.seen > 0
    likelihood = float(found.seen[happened] @ np.log(case.outcome_chances[happened]))
    by_outcomes = () if found.outcome_rows is None else found.outcome_rows @ theta > found.outcome_offsets
    events = found.strips
    return bool(
        likelihood < found.threshold
        or np.any(found.rows @ theta > found.offsets)
        or np.any(by_outcomes)
        or np.any((case.event_chances < events.event_lower) | (case.event_chances > events.event_upper))
        or (
            learned.conflict is None
            and np.any((region.lower[: len(theta)] > theta) | (region.upper[: len(theta)] < theta))
        )
    )


# Protocol


class Evidence:
    """Whether something happens in more than a share of all games, as a fortune that is fair if it does not.

    Bets that the rate is q multiply it by q / rate if it happens and (1 - q) / (1 - rate) if not: for every rate that
    is not larger, the expectation is at most one. So the mean over some q ever reaches 1 / level with probability at
    most the level (Ville 1939).

    >>> always = Evidence()
    >>> for game in range(6):
    ...     always.see(True)
    >>> always, always.is_refuted
    (6 of 6, True)
    """

    def __init__(self, rate: float = ERROR, level: float = LEVEL) -> None:
        self.rate, self.level, self.n, self.happened = rate, level, 0, 0
        self._supposed = np.array([q for q in rate * np.array([1.25, 1.5, 2.0, 3.0, 5.0, 8.0]) if q < 1])

    def see(self, has_happened: bool) -> None:
        """Count one more game."""
        self.n, self.happened = self.n + 1, self.happened + bool(has_happened)

    @property
    def fortune(self) -> float:
        """What the bets have made of one."""
        q, k = self._supposed, self.happened
        return float(np.exp(k * np.log(q / self.rate) + (self.n - k) * np.log((1 - q) / (1 - self.rate))).mean())

    @property
    def is_refuted(self) -> bool:
        """Whether the fortune is large; whoever goes on playing after that may see it fall again."""
        return self.fortune >= 1 / self.level

    def __repr__(self) -> str:
        return f"{self.happened} of {self.n}"


class Protocol:
    """Plays games of all cases and regimes in turn, and keeps the score: of all, of each case, regime and pair."""

    def __init__(self, seed: int = 1) -> None:
        self.seed, self.opponents = seed, {name: Opponent(build()) for name, build in CASES.items()}
        self.cells = {(name, regime): Counter() for name in CASES for regime in REGIMES}
        groups = ["all", *CASES, *REGIMES, *self.cells]
        self.evidence = {group: Evidence(level=LEVEL / len(groups)) for group in groups}

    def play(self, n_games: int) -> None:
        """Play so many games, or until it is clear that too much is wrong."""
        names, regimes = list(CASES), list(REGIMES)
        for game in range(n_games):
            name, regime = names[game % len(names)], regimes[(game + game // len(names)) % len(regimes)]
            wins = self.opponents[name].play(REGIMES[regime], np.random.default_rng([self.seed, game]))
            self.cells[name, regime].update(
                games=1, **{claim: int(has_won) for claim, has_won in wins._asdict().items()}
            )
            for group in ("all", name, regime, (name, regime)):
                self.evidence[group].see(any(wins))
            if self.refuted:
                return

    @property
    def refuted(self) -> dict:
        """Where too much is wrong."""
        return {group: evidence for group, evidence in self.evidence.items() if evidence.is_refuted}

    def report(self) -> str:
        """Return the games of each case and regime, and in how many of them each of the claims was wrong."""
        keys, width = ("games", *Wins._fields), 16
        lines = ["".join(f"{regime:>{width}}" for regime in ("", *REGIMES, "all"))]
        for name in (*CASES, "all"):
            of_case = {cell: seen for cell, seen in self.cells.items() if name in (cell[0], "all")}
            sums = [
                sum((seen for cell, seen in of_case.items() if regime in (cell[1], "all")), Counter())
                for regime in (*REGIMES, "all")
            ]
            lines.append(
                "".join(
                    f"{text:>{width}}" for text in (name, *(" ".join(str(each[key]) for key in keys) for each in sums))
                )
            )
        return "\n".join([*lines, f"each: {', '.join(keys)}; anything wrong in {self.evidence['all']} games"])
