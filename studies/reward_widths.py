"""How well the mean of a reward is known from n values, as the width of a certificate of one step.

    python -m studies.reward_widths                    1,000 and 10^5 values of three laws, at 95 % (a minute)
    python -m studies.reward_widths --values 1000 --repeats 20

Beside the certificate are bets on each value with fractions of the capital (``confidence/bounded_means.py``), the
empirical Bernstein bound with predictable plug-ins (Waudby-Smith and Ramdas 2024, Theorem 2), which both hold at any
time, and the width of a normal approximation, which holds for n fixed beforehand and large. Widths are means.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import plumdp as pl
from plumdp.confidence.bounded_means import Tally, mean_bounds
from plumdp.data.counts import TransitionCounts
from plumdp.data.pilots import planned_moments, planned_pilot
from plumdp.data.seen import SQUARES, Seen
from plumdp.model.parametric import ParametricMDP

ERROR = 0.05
Values = npt.NDArray[np.float64]
LAWS: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "coin 0.3": lambda rng, n: (rng.random(n) < 0.3).astype(np.float64),
    "uniform": lambda rng, n: rng.random(n),
    "beta(30, 30)": lambda rng, n: rng.beta(30, 30, n),
}


def model_of_one_step() -> ParametricMDP:
    """Return a model of one step, whose cost has an unknown mean from 0 to 1."""
    (pay,) = pl.parameters("pay")
    return pl.explore(
        lambda s: {"go": [(1, s._replace(x=1))]} if s.x == 0 else {"stop": [(1, s)]},
        {"x": 0},
        space=pl.ParameterSpace.unit("pay"),
        labels={"done": lambda s: s.x == 1},
        choice_rewards={"cost": lambda s, action: pay if action == "go" else 0},
    )


def certificate(model: ParametricMDP, values: Values) -> float:
    """Return the width of the certificate of runs of one step, whose number was planned."""
    units = np.rint(values * model.learned_rewards["cost"].per_unit).astype(np.int64)

    def until(n: int) -> Seen:
        seen = Seen.nothing(model.graph.n_transitions, 1)
        seen.counts[0] = n
        seen.rewards[0, :, 0] = units[:n].sum(), *(part[:n].sum() for part in np.divmod(units**2, SQUARES))
        return seen

    seen, n = until(len(values)), len(values)
    pilot = planned_pilot([*map(until, planned_moments(n))], n, sizes=planned_moments(n))
    counts = TransitionCounts(model.graph, seen.counts, "trajectories", pilot, rewards=seen.rewards)
    found = pl.certify(model, counts, 'R{"cost"}min=? [ F "done" ]', confidence=1 - ERROR)
    return found.upper - found.lower


def fractions(values: Values) -> float:
    """Return the width by bets on each value."""
    lower, upper = mean_bounds(Tally.of(values), Tally.of(values), ERROR)
    return upper - lower


def empirical_bernstein(values: Values) -> float:
    """Return the width of the empirical Bernstein bound, with bets for the number of values that there are."""
    t = np.arange(1, len(values) + 1)
    mean = (0.5 + np.cumsum(values)) / (t + 1)
    variance = (0.25 + np.cumsum((values - mean) ** 2)) / (t + 1)
    before, spread = np.concatenate([[0.5], mean[:-1]]), np.concatenate([[0.25], variance[:-1]])
    bet = np.minimum(np.sqrt(2 * np.log(2 / ERROR) / (spread * len(values))), 0.5)
    lost = 4 * (values - before) ** 2 * (-np.log1p(-bet) - bet) / 4
    return float(2 * (np.log(2 / ERROR) + lost.sum()) / bet.sum())


def normal(values: Values) -> float:
    """Return the width of the normal approximation."""
    return float(2 * 1.959964 * values.std() / np.sqrt(len(values)))


def main() -> None:
    """Print the mean widths."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--values", type=lambda text: int(float(text)), nargs="+", default=[1000, 100_000])
    arguments.add_argument("--repeats", type=int, default=5)
    given, model = arguments.parse_args(), model_of_one_step()
    print(f"{'values':>8} {'law':14} {'certificate':>12} {'fractions':>12} {'Bernstein':>12} {'normal':>12}")
    for n in given.values:
        for name, law in LAWS.items():
            drawn = [law(np.random.default_rng(seed), n) for seed in range(given.repeats)]
            ways = (lambda values: certificate(model, values), fractions, empirical_bernstein, normal)
            widths = [np.mean([way(values) for values in drawn]) for way in ways]
            print(f"{n:8} {name:14}" + "".join(f" {width:12.5f}" for width in widths), flush=True)


if __name__ == "__main__":
    main()
