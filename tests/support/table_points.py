"""Tables that all bets of a bracket leave possible, found by tilting frequencies as far as the bets let them."""

from dataclasses import dataclass
from unittest import mock

import numpy as np
from table_cases import ERRORS, log_of_bets, log_of_mixture, log_of_rows, values_at

from plumdp.tables import bracket
from plumdp.tables.joint import joined

_HALVINGS = 7


@dataclass(frozen=True, eq=False)
class Parts:
    """What ``table_bounds`` made on its way to a bracket."""

    found: bracket.TableBounds
    plan: object
    reference: object
    near: object
    joint: object  # the bound in a norm, also if row by row is good enough; None if nothing is proved
    stages: dict  # by sign
    expansions: dict  # by sign: the centre, and the expansion there
    box: tuple


def parts_of(case, lower, upper, errors=ERRORS):
    """Return the bracket of a case and its parts, or None if there is none."""
    contract, end, expand = bracket.contract, bracket.bracket_end, bracket._expand
    seen, stages_of, expansions = {}, {}, {}

    def contracted(plan, reference, *args):
        seen.update(plan=plan, reference=reference)
        return contract(plan, reference, *args)

    def ended(plan, stages, near, sign, *joint):
        def expanded(table, stages, near, centre, *joint):
            expansions[sign] = (centre, expand(table, stages, near, centre, *joint))
            return expansions[sign][1]

        stages_of[sign], seen["near"] = stages, near
        with mock.patch.object(bracket, "_expand", expanded):
            return end(plan, stages, near, sign, *joint)

    with mock.patch.object(bracket, "contract", contracted), mock.patch.object(bracket, "bracket_end", ended):
        found = bracket.table_bounds(case.table, case.moments, errors, lower, upper)
    if isinstance(found, str):
        return None
    joint = joined(seen["near"])
    return Parts(found, joint=joint, stages=stages_of, expansions=expansions, box=(lower, upper), **seen)


def random_box(case, rng):
    """Return bounds on all values that hold at the frequencies; points are asked to keep to them."""
    table = case.table
    values = values_at(table, table.frequencies(case.moments.counts[-1]))
    every = np.concatenate([values, table.chain.known])
    width = rng.uniform(0.05, 1) * (every.max() - every.min())
    lower, upper = values - width * rng.uniform(0.3, 1, table.n), values + width * rng.uniform(0.3, 1, table.n)
    return np.maximum(lower, 0), upper if table.chain.reward.any() else np.minimum(upper, 1)


def is_near(parts, case, values):
    """Return whether values keep to the box, and no bet on rows excludes them: what ``contract`` makes use of."""
    return bool(
        (values >= parts.box[0]).all()
        and (values <= parts.box[1]).all()
        and log_of_rows(parts.plan, parts.reference, case.later, values) < parts.reference.log_rows
        and log_of_mixture(case.table, parts.reference, case.later, values, 81) < parts.reference.log_ball
    )


def has_won_little(parts, case, values):
    """Return whether no bet on the value of the first node excludes values, at the end of any stage."""
    prefixes = (stages[:b] for stages in parts.stages.values() for b in range(1, 1 + len(stages)))
    return all(log_of_bets(case.table, stages, values) < parts.plan.log_error for stages in prefixes)


def members(parts, case, rng, n_lines):
    """Yield values of tables that are members, on lines of tilted frequencies, each up to where it leaves the set.

    Every other line goes on to where bets on rows alone end it. With the values comes whether all bets allow them.
    """
    table = case.table
    middle = table.frequencies(case.later)
    values = values_at(table, middle)
    occupancy = parts.near.equations.solve_transposed(table.start)
    visits = np.maximum(table.by_place(table.visits(case.later)[table.owner]), 1.0)
    visits /= np.maximum(np.bincount(table.place[table.place >= 0], minlength=table.n_places), 1)
    along = table.by_place(occupancy[table.owner] * table.differences(values)) * parts.plan.scale / visits
    for line in range(n_lines):
        noise = rng.choice([0, 0.1, 0.3, 1, 3]) * rng.standard_normal(table.n_places) / np.sqrt(visits)
        tilt = rng.choice([-1, 1]) * along + noise
        low, high = 0.0, 2.0 + line % 2
        for _ in range(_HALVINGS):
            size = (low + high) / 2
            weight = np.where(
                table.place >= 0, middle * np.exp(np.clip(size * table.of_places(tilt), -4, 4)), table.number
            )
            at = values_at(table, weight / table.sums(weight)[table.owner])
            is_full = has_won_little(parts, case, at)
            if (is_full or line % 2) and is_near(parts, case, at):
                low = size
                yield at, is_full
            else:
                high = size


def broken(parts, case, values, *, is_full):
    """Return the names of the bounds that are wrong at the values of a member, of those that have to hold there."""
    table, near, value = case.table, parts.near, float(case.table.start @ values)
    gap = values - near.values
    mean = np.where(near.is_known, table.sums(near.frequency * table.differences(values)), -gap)
    ahead = table.ahead(gap, closed=0.0)
    deviation = table.deviations(parts.reference.probability, ahead)
    small = 1e-12 * (1 + np.abs(values).max())
    variance = table.deviations(near.frequency, ahead) ** 2
    ends = parts.found
    checks = {
        "distance": (np.abs(gap) <= near.distance + small).all(),
        "deviation": (deviation <= near.deviation + small).all(),
        "size": (np.abs(mean) <= near.size + small).all(),
        "variance": (variance <= bracket._variance(near) + small)[near.is_known].all(),
        "norm": parts.joint is None or _norm(parts.joint, deviation) <= parts.joint.relative + small,
        "low": not is_full or ends.low is None or value >= ends.low.value - small,
        "high": not is_full or ends.high is None or value <= ends.high.value + small,
        "expansion": all(_is_above(parts, case, values, sign) for sign in (-1, 1)),
        "estimate": abs(value - ends.estimate) <= ends.distance + small,
    }
    return [name for name, holds in checks.items() if not holds]


def _norm(joint, deviation):
    """Return the norm of the deviations of D over all known rows (Statement 4)."""
    return np.linalg.norm((deviation / joint.unit)[joint.near.is_known])


def _is_above(parts, case, values, sign):
    """Return whether the logarithm of the bets is at least what its expansion at the centre says."""
    centre, at = parts.expansions.get(sign, (None, None))
    if at is None:
        return True
    least = at.log_product + at.gradient @ (values - centre) - at.twice_remainder / 2
    return log_of_bets(case.table, parts.stages[sign], values) >= least - 1e-9 * (1 + abs(least))


def reach(parts, case, values):
    """Return how much of the way from the estimate to the end of the bracket a value goes."""
    ends, value = parts.found, float(case.table.start @ values)
    end = ends.high if value > ends.estimate else ends.low
    return 0.0 if end is None else (value - ends.estimate) / (end.value - ends.estimate)
