"""How close bounds over a lifted region come to the true range of polynomials, beside the published construction.

    python -m studies.lift_tightness

Random polynomials, each within an interval about its value at a hidden point, as data would have it. The table shows
the width of the bounds relative to the true range, which a local search from many points of the region finds (from
inside: ratios can only be too large), as median and maximum. Published: one McCormick envelope for each product, along
a chain, and bound tightening, here with HiGHS and without any certificate. Ours: all factorisations, squares and
products of bound factors, certified; then with cells.
"""

from __future__ import annotations

import time
import warnings
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize

import plumdp as pl
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray
from plumdp.region import build as lift
from plumdp.region.build import build_region, project
from plumdp.region.shapes import Polytope

N_EXPRESSIONS, N_TERMS, N_JUDGED, N_PROBLEMS = 15, 4, 6, 4
CASES = ((1, 4), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2))  # parameters, degree
WIDTHS = (0.1, 0.01)


class Problem(NamedTuple):
    """Expressions on the unit cube, bounds on them, and a point within all bounds."""

    table: ExpressionTable
    lower: FloatArray
    upper: FloatArray
    point: FloatArray


def random_problem(rng: np.random.Generator, n: int, degree: int, width: float) -> Problem:
    """Return random polynomials with intervals of about the given half width."""
    names = tuple("abcd"[:n])
    polynomials: dict[Polynomial, None] = {}
    while len(polynomials) < N_EXPRESSIONS:
        total = Polynomial(0)
        for _ in range(N_TERMS):
            term = Polynomial(Fraction(int(rng.integers(-20, 21)), 20))
            for x, k in zip(
                pl.parameters(*names), rng.multinomial(rng.integers(0, degree + 1), [1 / n] * n), strict=True
            ):
                term *= x ** int(k)
            total += term
        if not total.is_constant:
            polynomials[total] = None
    table = ExpressionTable.build(list(polynomials), names)
    point = rng.uniform(0.1, 0.9, n)
    middle, half = table.evaluate(point[None])[:, 0], width * 10 ** rng.uniform(-0.5, 0.5, len(table))
    middle = middle + half * rng.uniform(-0.8, 0.8, len(table))
    return Problem(table, middle - half, middle + half, point)


def true_range(rng: np.random.Generator, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Return values of the first expressions that points within all bounds attain, as far apart as a search finds."""
    table, lower, upper, point = problem
    n, coefficients, exponents = len(table.names), table.coefficients.toarray(), table.monomials

    def value(x: FloatArray) -> FloatArray:
        return np.asarray(coefficients @ np.prod(x**exponents, axis=1))

    def slope(x: FloatArray) -> FloatArray:
        less = [np.maximum(exponents - (np.arange(n) == j), 0) for j in range(n)]
        columns = [exponents[:, j] * np.prod(x ** less[j], axis=1) for j in range(n)]
        return np.asarray(coefficients @ np.stack(columns, axis=1))

    near = [np.clip(point + s * rng.normal(size=(4000, n)), 0, 1) for s in (0.3, 0.1, 0.03, 0.01, 0.003)]
    points = np.vstack([point[None], *near])
    values = table.evaluate(points)
    inside = ((values >= lower[:, None]) & (values <= upper[:, None])).all(axis=0)
    points, values = points[inside], values[:, inside]
    within = {
        "type": "ineq",
        "fun": lambda x: np.append(value(x) - lower, upper - value(x)),
        "jac": lambda x: np.vstack([slope(x), -slope(x)]),
    }
    ends = []
    for f in range(N_JUDGED):
        for sign in (1, -1):
            best = (sign * values[f]).min()
            for start in points[np.argsort(sign * values[f])[[0, 1, 2, len(points) // 2, -1]] % len(points)]:
                found = minimize(
                    lambda x, f=f, sign=sign: sign * value(x)[f],
                    start,
                    jac=lambda x, f=f, sign=sign: sign * slope(x)[f],
                    bounds=[(0, 1)] * n,
                    constraints=[within],
                    method="SLSQP",
                )
                at = value(np.clip(found.x, 0, 1))
                if (at >= lower - 1e-10).all() and (at <= upper + 1e-10).all():
                    best = min(best, sign * at[f])
            ends.append(sign * best)
    return np.array(ends[::2]), np.array(ends[1::2])


def chain_mccormick(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the first expressions as published: m = x · (m / x), one envelope each, and bound tightening."""
    table, lower, upper, _ = problem
    factors = chain(table)
    number = {e: i for i, e in enumerate([*map(tuple, np.eye(len(table.names), dtype=int).tolist()), *factors])}
    forms, constants = np.zeros((len(table), len(number))), np.zeros(len(table))
    for e, column in zip(table.monomials.tolist(), table.coefficients.toarray().T, strict=True):
        if sum(e):
            forms[:, number[tuple(e)]] = column
        else:
            constants = column
    low, high = np.zeros(len(number)), np.ones(len(number))

    def solve(objective: FloatArray) -> float:
        rows, offsets = [*forms, *-forms], [*(upper - constants), *(constants - lower)]
        for e, (a, b) in factors.items():
            i, j = number[a], number[b]
            for x, y, sign in ((low, low, -1), (high, high, -1), (low, high, 1), (high, low, 1)):
                row = np.zeros(len(number))  # sign · (m - x b - y a + x y) <= 0
                row[number[e]] += sign
                row[j] -= sign * x[i]
                row[i] -= sign * y[j]
                rows.append(row)
                offsets.append(-sign * x[i] * y[j])
        return float(linprog(objective, np.array(rows), offsets, bounds=np.stack([low, high], axis=1)).fun)

    for _ in range(4):
        low, high = np.array([(solve(axis), -solve(-axis)) for axis in np.eye(len(number))]).T
    ends = [[s * solve(s * forms[f]) + constants[f] for f in range(N_JUDGED)] for s in (1, -1)]
    return np.array(ends[0]), np.array(ends[1])


def chain(table: ExpressionTable) -> dict[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return two factors of each product in the table, one of them a parameter, and so on for the other one."""
    left, factors = [tuple(e) for e in table.monomials.tolist() if sum(e) > 1], {}
    while left:
        e = left.pop()
        j = next(i for i, k in enumerate(e) if k)
        rest = tuple(k - (i == j) for i, k in enumerate(e))
        factors[e] = tuple(int(i == j) for i in range(len(e))), rest
        left += [rest] if sum(rest) > 1 else []
    return factors


class Certified(NamedTuple):
    """Our bounds of the first expressions."""

    lower: FloatArray
    upper: FloatArray
    seconds: float
    variables: int


def certified(problem: Problem, *, cells: bool) -> Certified:
    """Return our bounds, with or without cells."""
    table, lower, upper, _ = problem
    began, kept = time.perf_counter(), lift._CELLS
    try:
        lift._CELLS = kept if cells else {}
        region = build_region(pl.ParameterSpace.unit(*table.names), table, lower, upper)
    finally:
        lift._CELLS = kept
    assert isinstance(region, Polytope)  # the point lies within all bounds
    low, high = project(region, table)
    return Certified(low[:N_JUDGED], high[:N_JUDGED], time.perf_counter() - began, len(region.names))


def measure(n: int, degree: int, width: float) -> str:
    """Return a row of the table."""
    ratios: tuple[list[float], ...] = ([], [], [])
    seconds, variables = [], 0
    for seed in range(N_PROBLEMS):
        rng = np.random.default_rng([n, degree, seed])
        problem = random_problem(rng, n, degree, width)
        low, high = true_range(rng, problem)
        plain, ours = certified(problem, cells=False), certified(problem, cells=True)
        for found in (plain, ours):
            assert (found.lower <= low + 1e-9).all(), (n, degree, width, seed)
            assert (found.upper >= high - 1e-9).all(), (n, degree, width, seed)
        for ratio, (below, above) in zip(ratios, (chain_mccormick(problem), plain[:2], ours[:2]), strict=True):
            ratio.extend((above - below) / (high - low))
        seconds.append(ours.seconds)
        variables = max(variables, ours.variables)
    cells = " | ".join(f"{np.median(ratio):.3f} / {np.max(ratio):.2f}" for ratio in ratios)
    return f"| {n} | {degree} | {2 * width} | {variables} | {cells} | {np.median(seconds):.2f} |"


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")  # of the local search
    certified(random_problem(np.random.default_rng(0), 1, 2, 0.1), cells=True)  # compiles
    print("| parameters | degree | interval width | variables | published | ours without cells | ours | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for n, degree in CASES:
        for width in WIDTHS:
            print(measure(n, degree, width), flush=True)


if __name__ == "__main__":
    main()
