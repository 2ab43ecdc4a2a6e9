"""Tables that no bet excludes have their values in the bracket, and keep to every bound on the way to it.

The values of random tables are exact up to linear solves, and so is what each bet won at them; the mixture is a sum
over 81 bets. Frequencies are tilted along the gradient until a bet excludes the table, so that many tables are at the
edge.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from mixed_models import mixed_table
from table_cases import drawn_table, paired_table, random_case, small_case
from table_points import broken, members, parts_of, random_box, reach
from tiers import size

from plumdp.tables import bracket, contraction, joint

KINDS = {  # in which part of the cases a table is near an end, and which part of the tables has a bound in the norm
    "walks": (random_case, 0.25, 0.3),
    "walks with a short pilot": (lambda seed: random_case(seed, few=True), 0.02, 0.3),
    "few rows with an unlucky pilot": (small_case, 0.02, 0.0),
    "walks whose actions are drawn": (lambda seed: random_case(seed, make=drawn_table), 0.25, 0.15),
    "two policies side by side": (lambda seed: random_case(seed, make=paired_table), 0.25, 0.15),
    "walks with expressions beside unknown rows": (lambda seed: random_case(seed, make=mixed_table), 0.25, 0.15),
}


def look(make, seeds, n_lines=4):
    """Return how often each bound is wrong, and how many members, norms of them and cases near an end there are."""
    n, wrong = Counter(), Counter()
    for seed in seeds:
        case, rng = make(seed), np.random.default_rng(10**6 + seed)
        parts = parts_of(case, *random_box(case, rng))
        furthest = 0.0
        for values, is_full in members(parts, case, rng, n_lines) if parts is not None else ():
            n["members"] += 1
            n["norms"] += parts.joint is not None
            wrong.update(broken(parts, case, values, is_full=is_full))
            furthest = max(furthest, reach(parts, case, values) if is_full else 0.0)
        n["near"] += furthest > 0.9
    return wrong, n


@pytest.mark.slow
@pytest.mark.parametrize("part", range(size(1, 10)))
@pytest.mark.parametrize("kind", KINDS)
def test_values_that_no_bet_excludes_keep_to_every_bound(kind, part):
    """At night these are 10^5 tables in all; of walks, in every fourth case one is within a tenth of an end."""
    make, near, in_norm = KINDS[kind]
    n_cases = size(15, 230)
    wrong, n = look(make, range(n_cases * part, n_cases * (part + 1)))
    assert not wrong
    assert n["members"] > 8 * n_cases
    assert n["near"] >= int(near * n_cases)
    assert n["norms"] >= in_norm * n["members"]


# What each of these gets wrong is found by a few cases


def a_share_counts_twice(patch):
    """Each side has the error of both."""
    end = bracket.bracket_end
    doubled = lambda plan, *args: end(replace(plan, log_error=plan.log_error - np.log(2)), *args)  # noqa: E731
    patch.setattr(bracket, "bracket_end", doubled)


def what_the_direction_misses_is_left_out(patch):
    patch.setattr(contraction.Contraction, "functional", lambda near, weight: 0.0)


def curvature_is_left_out(patch):
    patch.setattr(bracket, "curvature", lambda t: 0 * t)


def means_are_left_out_of_the_curvature(patch):
    expand = bracket._expand
    patch.setattr(bracket, "_expand", lambda t, s, near, *args: expand(t, s, replace(near, size=0 * near.size), *args))


def variance_is_that_of_the_reference(patch):
    """Frequencies that are larger than the reference cost nothing in the curvature."""
    variance = bracket._variance
    capped = lambda near: replace(near, rows=replace(near.rows, psi=np.minimum(near.rows.psi, 1)))  # noqa: E731
    patch.setattr(bracket, "_variance", lambda near: variance(capped(near)))


def rows_bet_as_if_frequencies_were_the_reference(patch):
    """Frequencies that are larger than the reference cost nothing in bounds on rows."""
    row_bounds = contraction.row_bounds

    def mistaken(plan, reference, counts, is_known):
        table = plan.table
        frequency = table.of_places(counts) / np.maximum(table.visits(counts), 1)[table.owner]
        larger = np.maximum(reference.probability, frequency)
        return row_bounds(plan, replace(reference, probability=larger), counts, is_known)

    patch.setattr(contraction, "row_bounds", mistaken)


def rows_outside_of_the_core_are_left_out_of_the_norm(patch):
    patch.setattr(joint, "_far", lambda *args: 0.0)


def the_ball_is_left_out_of_the_norm(patch):
    norms = joint._norms
    patch.setattr(joint, "_norms", lambda *args: (0.0, norms(*args)[1]))


FINDS = {  # by which kind of case, which seeds, and which bounds it is found
    a_share_counts_twice: ("walks", (1, 3, 8), {"low", "high"}),
    what_the_direction_misses_is_left_out: ("walks with a short pilot", (11, 12, 13), {"low", "high"}),
    curvature_is_left_out: ("few rows with an unlucky pilot", (13, 29, 37, 38), {"high", "low", "expansion"}),
    means_are_left_out_of_the_curvature: ("walks", (1, 7, 13), {"expansion"}),
    variance_is_that_of_the_reference: ("few rows with an unlucky pilot", (14, 22, 25, 38), {"variance"}),
    rows_bet_as_if_frequencies_were_the_reference: ("walks with a short pilot", (3, 13, 35), {"size", "distance"}),
    rows_outside_of_the_core_are_left_out_of_the_norm: ("walks", (15,), {"norm"}),
    the_ball_is_left_out_of_the_norm: ("walks", (1, 2, 4), {"norm"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("plant", FINDS)
def test_a_planted_error_is_found(plant, monkeypatch):
    kind, seeds, found = FINDS[plant]
    make = KINDS[kind][0]
    assert not look(make, seeds)[0]
    plant(monkeypatch)
    assert found <= {*look(make, seeds)[0]}
