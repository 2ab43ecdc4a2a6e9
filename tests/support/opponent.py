"""An adversary who knows the truth and wants plumdp to say something wrong about a model that is right.

In a game, data come in batches. The adversary decides by what it has seen which rows are visited next, or under which
policy runs are made, tries to count data twice, and stops when it suits. As all claims hold at all times, it may play
to the last batch and then go back to the ends at which the data are most misleading. A look is ``learn``, often
``like=`` an earlier look, of this game or another one; at the last look a policy is asked for as well. The adversary
wins in three ways: the true point is outside the set, the value of the policy is outside its bracket, or the model is
contradicted.

The shares of all sets and tests sum to the error, so anything is wrong in at most a share ``ERROR`` of the games. A
right package fails the test of that (``Evidence``) with probability at most 10⁻⁴, however many games are played.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
import opponent_data
from coupled_points import exact_value
from evidence import LEVEL, Evidence, until_refuted
from opponent_models import CASES, Case
from set_points import satisfies, set_of

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learned import Learned

ERROR = 0.1
REGIMES = {  # how data come about, and by how much rows may be off; none of them is
    "no order": (opponent_data.no_order, 0.0),
    "open": (opponent_data.open_end, 0.0),
    "expected": (opponent_data.badly_expected, 0.0),
    "planned": (opponent_data.planned, 0.0),
    "independent": (opponent_data.independent, 0.0),
    "model_tolerance": (opponent_data.open_end, 0.02),
}


class Wins(NamedTuple):
    """Which claims were ever wrong in a game."""

    excluded: bool = False
    missed: bool = False
    contradicted: bool = False


@dataclass
class Opponent:
    """Plays games with a case; whatever was learned at a look may be of use at a later one."""

    case: Case
    memory: list[Learned] = field(default_factory=list)

    def play(self, data: Sequence[TransitionCounts], model_tolerance: float, rng: np.random.Generator) -> Wins:
        """Return what was wrong at the most misleading ends of the data, at one at random, or at the last."""
        off = np.array([misleading(self.case, counts.counts) for counts in data])
        ends = sorted({*off.argmax(axis=0).tolist(), int(rng.integers(len(data))), len(data) - 1})
        looks = [self.look(data[i], model_tolerance, rng, is_last=i == ends[-1]) for i in ends]
        return Wins(*map(any, zip(*looks, strict=True)))

    def look(
        self, counts: TransitionCounts, model_tolerance: float, rng: np.random.Generator, *, is_last: bool
    ) -> Wins:
        """Return what is wrong at one look, which half of the time is ``like=`` one of the ten looks before."""
        case, is_like = self.case, len(self.memory) > 0 and rng.random() < 0.5
        like = self.memory[rng.integers(len(self.memory))] if is_like else case.known
        options = {"confidence": 1 - ERROR, "model_tolerance": model_tolerance, "like": like}
        learned = pl.learn(case.model, counts, objectives=[case.objective], **options)
        self.memory = [*self.memory[-9:], learned]
        excluded, contradicted = is_outside(case, learned), learned.conflict is not None
        if not (excluded or contradicted or is_last):
            return Wins()
        certificate = pl.conclude(learned, case.objective)
        value = exact_value(case.model, certificate.policy.choice, case.objective, case.truth)
        return Wins(excluded, not certificate.lower <= value <= certificate.upper, contradicted)


def misleading(case: Case, seen: np.ndarray) -> tuple[float, float, float]:
    """Return how far the data are off the truth: along the value, in all parameters, and in single rows."""
    chance, amount = case.outcome_chances, case.table.pool(seen)
    slopes = np.where(chance > 0, 1 / np.where(chance > 0, chance, 1.0), 0.0)[:, None] * case.table.coefficients
    score, noise = amount @ slopes, 1e-6 * np.eye(len(case.truth))
    inverse = np.linalg.pinv(slopes.T @ (amount[:, None] * slopes) + noise)
    along, size = case.gradient @ inverse @ score, case.gradient @ inverse @ case.gradient
    rows = opponent_data.deviations(case, seen).max()
    return float(abs(along) / max(size, 1e-300) ** 0.5), float(score @ inverse @ score), float(rows)


def is_outside(case: Case, learned: Learned) -> bool:
    """Return whether the true point is outside the set or the region."""
    is_inside, region = satisfies(set_of(learned), case.truth), learned.region
    if learned.conflict is None:  # otherwise there is no region
        is_inside &= all(a <= x <= b for x, a, b in zip(case.truth.values(), region.lower, region.upper, strict=False))
    return not is_inside


def play_until_refuted(game: Callable[[np.random.Generator], bool], n_games: int, *, rate: float = ERROR) -> Evidence:
    """Return how often something happens in so many games, or in as many as show that it happens too often."""
    return until_refuted((game(np.random.default_rng([1, i])) for i in range(n_games)), rate=rate)


class Protocol:
    """Games with all cases and regimes in turn."""

    def __init__(self, n_games: int) -> None:
        adversaries, regimes = [(name, Opponent(build())) for name, build in CASES.items()], [*REGIMES]
        self.played: dict[tuple[str, str], list[Wins]] = {(name, regime): [] for name in CASES for regime in REGIMES}
        for game in range(n_games):
            turn, i = divmod(game, len(adversaries))
            (name, adversary), regime = adversaries[i], regimes[(turn + i) % len(regimes)]
            (data, model_tolerance), rng = REGIMES[regime], np.random.default_rng([1, game])
            self.played[name, regime].append(adversary.play(data(adversary.case, rng), model_tolerance, rng))

    def games(self, name: str, regime: str) -> list[Wins]:
        """Return the games with a case and a regime, or with "all" of them."""
        return [
            w
            for cell, wins in self.played.items()
            if name in (cell[0], "all") and regime in (cell[1], "all")
            for w in wins
        ]

    def refuted(self) -> dict[tuple[str, str], Evidence]:
        """Return where anything is wrong too often: in all games, or with a case, a regime or a pair of them."""
        groups = list(product([*CASES, "all"], [*REGIMES, "all"]))
        found = {
            group: Evidence(sum(map(any, g := self.games(*group))), len(g), ERROR, LEVEL / len(groups))
            for group in groups
        }
        return {group: evidence for group, evidence in found.items() if evidence.is_refuted}

    def report(self) -> str:
        """Return the number of games with each case and regime, and in how many of them each claim was wrong."""
        regimes, lines = [*REGIMES, "all"], []
        for name in [*CASES, "all"]:
            cells = [
                [len(games), *map(sum, zip(*games, strict=True))] for games in (self.games(name, r) for r in regimes)
            ]
            lines.append([name, *(" ".join(map(str, cell)) for cell in cells)])
        table = ["".join(f"{text:>13}" for text in line) for line in (["", *regimes], *lines)]
        return "\n".join([*table, f"each: games, {', '.join(Wins._fields)}"])
