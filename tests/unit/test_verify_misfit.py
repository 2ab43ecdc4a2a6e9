"""Bounds that allow for rows which are off are verified, for all such rows, and tampering is found."""

from itertools import product

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from support.results import files_of, result_of
from support.verified_results import (
    functions_of,
)

from plumdp_verify.chain import read_chain
from plumdp_verify.counts import sure_classes
from plumdp_verify.enclosure import Enclosure
from plumdp_verify.model_tolerance import log_tolerated, range_after
from plumdp_verify.polynomials import monomials, parse, size_of
from plumdp_verify.reading import Part, Rejected
from plumdp_verify.values import _check_end

MODEL_TOLERANCE = 0.01


@pytest.mark.slow
def test_intervals_with_a_misfit_are_tolerant():
    assert files_of(result_of("model_tolerance"))[0]["set"]["intervals"]["method"] == "tolerant"


def worst_and_best(chain, x, model_tolerance):
    """Return the values of a chain if every row may lose, or gain, the tolerance in each step, by sweeps in floats."""
    rows = [
        None
        if step is None
        else [float(sum(c * np.prod(np.power(x, e)) for e, c in at_point(f, chain))) for f in step.expressions]
        for step in chain.steps
    ]
    both = []
    for side in (-1, 1):
        values = np.array([float(chain.known.get(node, fmpq(0)).p) for node in range(len(chain.steps))])
        for _ in range(300):
            for node, step in chain.open_steps():
                after = values[step.successors]
                values[node] = side * moved(np.array(rows[node]), side * after, model_tolerance)
        both.append(values[chain.initial])
    return both


def at_point(f, chain):
    return [(e, float(c.p) / float(c.q)) for e, c in chain.expressions[f].items()]


def moved(row, after, model_tolerance):
    """Return the largest mean of a row that is off by the tolerance: mass goes to where most is."""
    row, left = row.copy(), model_tolerance
    best = int(np.argmax(after))
    for j in np.argsort(after):
        taken = min(left, row[j]) if j != best else 0.0
        row[j], row[best], left = row[j] - taken, row[best] + taken, left - taken
    return float(row @ after)


def test_functions_are_below_and_above_the_values_of_all_rows_that_are_off():
    """At points of the cube, against natures that move mass in every step, which sweeps find."""
    witness, _ = files_of(result_of("model_tolerance"))
    chain = read_chain(Part(witness["chain"], "chain"), witness["parameters"])
    root, values = witness["pieces"]["root"], functions_of(witness)
    start = chain.open.index(chain.initial)
    k = len(root["axes"])
    for x in product((-0.9, 0.4), repeat=k):
        point = np.array(root["centre"]) + np.array(x) @ np.array(root["axes"])
        powers = np.array([np.prod(np.power(x, e)) for e in monomials(k, values["degree"])])
        low, high = (float(np.array(values[name][start]) @ powers) for name in ("functions", "above"))
        worst, best = worst_and_best(chain, point, MODEL_TOLERANCE)
        assert low - values["margins"][start] <= worst + 1e-9
        assert best <= high + values["margins"][start] + 1e-9
        assert worst - low < 1e-3  # which is close


def test_runs_must_end_whatever_rows_that_are_off_do():
    """A loop that is left with a probability between 0.1 and 0.2: off by 0.12, it may never be left."""
    rows = [[0, [1, 0], [0, 1]], None]
    given = {"kind": "reach", "complement": False, "discount": "1", "initial": 0, "target": [1], "avoid": []}
    chain = read_chain(Part(given | {"expressions": ["p", "-p + 1"], "rows": rows}, "chain"), ["p"])
    forms = [{(0,): arb(0.15), (1,): arb(0.05)}, {(0,): arb(0.85), (1,): arb(-0.05)}]
    line = Enclosure([fmpq(0)], [[fmpq(1)]], [], [])
    for model_tolerance in (fmpq(0), fmpq(9, 100)):
        _check_end([arb(20)], chain, forms, line, model_tolerance)
    with pytest.raises(Rejected, match="it is not proved that runs end"):
        _check_end([arb(20)], chain, forms, line, fmpq(12, 100))


def test_the_range_of_functions_is_bounded_at_points():
    rng, zero = np.random.default_rng(1), (0, 0)
    order = monomials(2, 2)
    for _ in range(15):
        values = [dict(zip(order, map(arb, (0.3 * rng.normal(size=6)).tolist()), strict=True)) for _ in range(4)]
        margins = [arb(m) for m in (0.1 * rng.random(4)).tolist()]
        sign = int(rng.choice([-1, 1]))
        polynomial, beyond = range_after(values, margins, [0, 1, 2, 3], sign, zero, lambda p: size_of(p, None))
        for _ in range(8):
            x = rng.normal(size=2)
            x *= rng.random() / np.linalg.norm(x)
            h = [value_at(f, x) + sign * float(m) for f, m in zip(values, margins, strict=True)]
            assert max(h) - min(h) <= value_at(polynomial, x) + float(beyond) + 1e-12


def value_at(polynomial, x):
    return sum(float(c) * float(np.prod(np.power(x, e))) for e, c in polynomial.items())


def test_bets_on_rows_that_are_off_have_a_mean_of_at_most_what_is_tolerated():
    """A row of a coin p and, if it shows p, a coin q, moved by the model tolerance in the worst direction."""
    rng, ctx.prec = np.random.default_rng(2), 128
    ways = [((0, 0), (1, 0)), ((0, 0), (1, 1)), ((0, 1),)]
    for _ in range(200):
        p, q, model_tolerance = rng.random(), rng.random(), 0.2 * rng.random()
        bets = {
            step: float(u) for step, u in zip(((0, 0), (0, 1), (1, 0), (1, 1)), 0.4 * rng.normal(size=4), strict=True)
        }
        means = [
            p * np.exp(bets[0, 0]) + (1 - p) * np.exp(bets[0, 1]),
            q * np.exp(bets[1, 0]) + (1 - q) * np.exp(bets[1, 1]),
        ]
        gains = np.array([np.prod([np.exp(bets[step]) / means[step[0]] for step in way]) for way in ways])
        row = np.array([p * q, p * (1 - q), 1 - p])
        assert row @ gains == pytest.approx(1)
        most = float(
            log_tolerated(ways, {step: arb(u) for step, u in bets.items()}, fmpq(*model_tolerance.as_integer_ratio()))
        )
        assert np.log(moved(row, gains, model_tolerance)) <= most + 1e-12


def test_classes_that_may_be_negative_are_not_bet_on():
    """Of a row that throws p, and then q / p: the second class is negative where q is more than p, in the box."""
    names = ["p", "q"]
    classes = [[parse(text, names) for text in texts] for texts in (("p", "1 - p"), ("p - q", "1 - p + q"))]
    ways = [((0, 0), (1, 0)), ((0, 0), (1, 1)), ((0, 1),)]
    unit, apart = [(fmpq(0), fmpq(1))] * 2, [(fmpq(1, 2), fmpq(1)), (fmpq(0), fmpq(1, 2))]
    assert sure_classes([ways], classes, unit) == {0}
    assert sure_classes([ways], classes, apart) == {0, 1}
    assert sure_classes([ways, [((1, 0),), ((1, 1),)]], classes, unit) == {0, 1}
    assert sure_classes([ways], classes, [(None, None)] * 2) == {0}


def test_a_policy_that_never_ends_hides_no_action():
    """The policy stays where it is, so that its own value is zero, but another action reaches the target."""
    chain = {
        "kind": "reach", "complement": False, "discount": "1", "initial": 0, "target": [1], "avoid": [],
        "expressions": ["1", "p", "-p + 1"], "rows": [[0.0, [0], [0]], None], "states": {"x": [0, 1]}, "step": None,
    }  # fmt: skip
    assert read_chain(Part(chain, "chain"), ["p"]).known == {0: 0, 1: 1}
    others = Part([[0, [0.0, [0, 1], [1, 2]]]], "others")
    assert read_chain(Part(chain, "chain"), ["p"], others).known == {1: 1}
    with pytest.raises(Rejected, match="nothing can be done"):
        read_chain(Part(chain, "chain"), ["p"], Part([[1, [0.0, [0], [0]]]], "others"))
