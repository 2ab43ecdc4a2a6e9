"""Values of the policy at every point of the cube, by functions that one step cannot lower, or raise.

Runs must end at every point of the cube, by the graph alone, or because every step lowers a number of steps T(s) >= 0:

    T(s)  >  Σ f(x) T(successor)     in every open state.

For the expected number of steps is then at most T over the least surplus. Discounted values need no end. The witness
also gives for each open state s a polynomial u(s, x) and a margin m(s). If at all points of the cube

    reward + discount · Σ f(x) (u - m)(successor)  >=  (u - m)(s)      in every open state,

with known values where runs are over, then u - m is below the value: in n steps, u - m is at most what is earned until
then plus what u - m is worth there, which is bounded, and counts less and less as runs end. In the same way u + m is
above the value, if one step does not raise it. Constants that one step keeps are exact, in fractions.

Points of the cube need not be parameters at which rows are probabilities. That the inequality holds at those too is
more than is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, fmpq

from .chain import Chain, Step
from .enclosure import Enclosure
from .polynomials import Exponents, Polynomial, add, constant, monomials, multiply
from .reading import Ball, Exact, Part, require, work

_MAX_DEGREE = 16


@dataclass(frozen=True)
class Functions:
    """Polynomials in x, and margins, of all states; known values are constants without a margin.

    ``value`` and ``margin`` are those of the initial state.
    """

    values: list[dict[Exponents, Ball]]
    margins: list[Ball]
    value: dict[Exponents, Ball]
    margin: Ball


def read_functions(part: Part, chain: Chain, dimension: int) -> Functions:
    """Return the functions that the witness gives."""
    degree = part["degree"].whole(_MAX_DEGREE + 1)
    order = monomials(dimension, degree)
    margins = part["margins"].balls(len(chain.open))
    require(all(bool(m >= 0) for m in margins), f"{part.place}: a margin is negative")
    all_margins = [arb(0)] * len(chain.steps)
    values = _of_states(part["functions"], chain, order)
    for node, margin in zip(chain.open, margins, strict=True):
        all_margins[node] = margin
    start = chain.initial
    return Functions(values, all_margins, values[start], all_margins[start])


def _of_states(part: Part, chain: Chain, order: list[Exponents]) -> list[dict[Exponents, Ball]]:
    require(len(part) == len(chain.open), f"{part.place}: there must be a function for each open state")
    values: list[dict[Exponents, Ball]] = [{} for _ in chain.steps]
    for node, number in chain.known.items():
        values[node] = {order[0]: arb(number)} if number else {}
    for node, given in zip(chain.open, part, strict=True):
        values[node] = _polynomial(given, order)
    return values


def _polynomial(part: Part, order: list[Exponents]) -> dict[Exponents, Ball]:
    return {e: x for e, x in zip(order, part.balls(len(order)), strict=True) if not x.is_zero()}


def check_functions(part: Part, chain: Chain, enclosure: Enclosure, functions: Functions) -> None:
    """Require that runs end, and that one step does not lower u - m nor raise u + m at any point of the cube."""
    discount, zero = arb(chain.discount), (0,) * enclosure.dimension
    forms = [
        {e: discount * arb(c) for e, c in enclosure.transform(f, f"expressions[{i}]").items()}
        for i, f in enumerate(chain.expressions)
    ]
    if chain.kind != "discounted" and not chain.is_acyclic:
        _check_end(part["steps"].balls(len(chain.open)), chain, forms, enclosure)
    join, n = _Sums(), len(enclosure.centre)
    for node, step in chain.open_steps():
        reward = enclosure.transform(step.reward, f"rows[{node}][0]") if step.reward else {}
        change, margin = _one_step(node, step, reward, forms, functions.values, functions.margins, join, zero)
        for sign in (-1, 1):
            left = {e: -sign * change.get(e, arb(0)) - margin.get(e, arb(0)) for e in change.keys() | margin.keys()}
            surplus = left.pop(zero, arb(0)) - enclosure.size(left)
            words = f"does not stay {'below' if sign < 0 else 'above'} the value in one step"
            if not surplus >= 0:
                is_fixed = _is_fixed(node, step, chain, functions.values, functions.margins, n)
                require(is_fixed, f"state {node}: the function {words}")


def _check_end(numbers: list[Ball], chain: Chain, forms: list[dict[Exponents, Ball]], enclosure: Enclosure) -> None:
    """Require numbers of steps that every step lowers at all points of the cube."""
    require(all(bool(number >= 0) for number in numbers), "a number of steps is negative")
    zero, steps_left = (0,) * enclosure.dimension, dict(zip(chain.open, numbers, strict=True))
    for node, step in chain.open_steps():
        left: dict[Exponents, Ball] = {zero: -steps_left[node]}
        for successor, f in zip(step.successors, step.expressions, strict=True):
            if successor in steps_left:
                for e, c in forms[f].items():
                    left[e] = left.get(e, arb(0)) + c * steps_left[successor]
        surplus = -left.pop(zero) - enclosure.size(left)
        require(bool(surplus > 0), f"state {node}: it is not proved that runs end")


def _is_fixed(
    node: int,
    step: Step,
    chain: Chain,
    values: list[dict[Exponents, Ball]],
    margins: list[Ball],
    n: int,
) -> bool:
    """Return whether one step keeps constants exactly, in fractions, as where the target is surely reached."""
    around = (node, *step.successors)
    if any(any(map(any, values[s])) or not margins[s].is_zero() for s in around):
        return False
    here, *after = (_fraction(sum(values[s].values(), start=arb(0))) for s in around)
    moved = [
        multiply(constant(chain.discount * value, n), chain.expressions[f])
        for value, f in zip(after, step.expressions, strict=True)
    ]
    return add(step.reward, *moved) == constant(here, n)


def _fraction(number: Ball) -> Exact:
    """Return a ball without a radius as a fraction."""
    digits, power = number.mid().man_exp()
    return fmpq(int(digits)) * fmpq(2) ** int(power)


def _one_step(
    node: int,
    step: Step,
    reward: Polynomial,
    forms: list[dict[Exponents, Ball]],
    values: list[dict[Exponents, Ball]],
    margins: list[Ball],
    join: _Sums,
    zero: Exponents,
) -> tuple[dict[Exponents, Ball], dict[Exponents, Ball]]:
    """Return reward + Σ f u(successor) - u(node), and Σ f m(successor) - m(node), as polynomials in x."""
    change: dict[Exponents, Ball] = {e: -c for e, c in values[node].items()}
    for e, c in reward.items():
        change[e] = change.get(e, arb(0)) + arb(c)
    margin: dict[Exponents, Ball] = {zero: -margins[node]}
    for successor, f in zip(step.successors, step.expressions, strict=True):
        work(len(forms[f]) * (1 + len(values[successor])))
        value, its_margin = values[successor].items(), margins[successor]
        for a, x in forms[f].items():
            after = join[a]
            for b, y in value:
                e = after[b]
                change[e] = change[e] + x * y if e in change else x * y
            margin[a] = margin[a] + x * its_margin if a in margin else x * its_margin
    return change, margin


class _Sums(dict[Exponents, "_SumsWith"]):
    """Sums of exponents that were needed before."""

    def __missing__(self, a: Exponents) -> _SumsWith:
        return self.setdefault(a, _SumsWith(a))


class _SumsWith(dict[Exponents, Exponents]):
    def __init__(self, a: Exponents) -> None:
        self._a = a

    def __missing__(self, b: Exponents) -> Exponents:
        return self.setdefault(b, tuple(map(sum, zip(self._a, b, strict=True))))
