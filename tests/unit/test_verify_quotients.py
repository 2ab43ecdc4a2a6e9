"""Half-spaces that follow from bounds on products hold wherever these do."""

import numpy as np
import pytest
from flint import arb, fmpq

from plumdp_verify.half_spaces import below
from plumdp_verify.polynomials import parse
from plumdp_verify.quotients import of_quotients
from plumdp_verify.reading import Part, Rejected


@pytest.mark.parametrize("side", [1, -1])
def test_quotients_hold_wherever_their_bounds_do(side):
    """For random bounds on p (q - 2), or on minus that, and on p, at points in exact fractions."""
    rng, names = np.random.default_rng(1), ["p", "q"]
    product = parse("p*q - 2*p" if side > 0 else "-p*q + 2*p", names)
    for _ in range(10):
        low, high = sorted(map(int, rng.integers(1, 99, 2)))
        end = int(rng.integers(1, 99))
        sides = [below(parse(text, names), fmpq(number, 100), 2) for text, number in (("-p", -low), ("p", high))]
        item = {"bound": 2, "quotient": "q - 2", "divisors": [["p", 0, 1]]}
        before = [*sides, below(product, fmpq(side * end, 100), 2)]
        (quotient,) = of_quotients(Part([item], "quotients"), names, before)
        for p in (low, high, (low + high) // 2):
            for q in range(-100, 500, 7):
                holds = side * p * (q - 200) <= side * end * 100
                assert not holds or bool(arb(fmpq(side * q, 100)) <= quotient.offset)


def test_factors_that_may_be_zero_divide_nothing():
    names = ["p", "q"]
    sides = [below(parse("-p", names), fmpq(0), 2), below(parse("p", names), fmpq(1), 2)]
    item = {"bound": 2, "quotient": "q", "divisors": [["p", 0, 1]]}
    with pytest.raises(Rejected, match="not surely positive"):
        list(of_quotients(Part([item], "quotients"), names, [*sides, below(parse("p*q", names), fmpq(1, 2), 2)]))
