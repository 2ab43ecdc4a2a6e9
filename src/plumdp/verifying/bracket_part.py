"""Finds functions that bound the values of policies on a ball, and multipliers that prove brackets from them.

A bracket is of the value of one policy, or of that of one less that of another. All of it is a proposal, in floats. The
checker decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, inf, isfinite
from typing import Any

import numpy as np
from flint import fmpq

from plumdp.base.errors import DataError
from plumdp.model.graph import FloatArray
from plumdp.verifying.ball import LikelihoodForm, find_optimum
from plumdp.verifying.cuts import Cuts, cuts_ball
from plumdp.verifying.expansion import Expansion, expand
from plumdp.verifying.multipliers import Multipliers, bound_polynomial
from plumdp_verify.bracket import range_of
from plumdp_verify.chain import Chain
from plumdp_verify.enclosure import Enclosure
from plumdp_verify.polynomials import monomials, parse

DEGREES = (2, 3, 4, 6, 8, 10, 12, 16)  # of expansions, until one proves the bounds
_ENOUGH, _SMALL = 4, 0.01  # degree, and share of what is missing in margins, from which on no other degree is tried
_EXACT = 1e-12  # relative width of bounds that leave no room for rounding
_ROOM = 5e-10  # by which ends may be proved with less, relative; the checker allows twice as much
_SPARE = 1e-6  # of a bracket's width, that bounds must be better by
_POSITIVE = 1e-9  # a lower bound on a probability that is enough
_MOST = 2_000_000  # coefficients of an expansion beyond which no higher degree is tried


@dataclass(frozen=True)
class Wanted:
    """Bounds on a sum of the values of chains, each with a sign; infinite ends claim nothing."""

    terms: tuple[tuple[int, int], ...]  # signs, and places of chains
    lower: float
    upper: float

    @property
    def is_exact(self) -> bool:
        """Whether the bounds leave no room for rounding."""
        width = self.upper - self.lower
        return isfinite(width) and width <= _EXACT * max(abs(self.lower), abs(self.upper))

    def sum(self, below: Sequence[FloatArray], above: Sequence[FloatArray]) -> FloatArray:
        """Return the sum of arrays with these signs, of each chain that below if it is added, or else that above."""
        parts = (below[i] if sign > 0 else -above[i] for sign, i in self.terms)
        return np.asarray(sum(parts, start=0 * below[0]))


@dataclass(frozen=True)
class _Claimed:
    """Coefficients of functions below and above what is claimed of a chain, but for a margin."""

    below: FloatArray
    above: FloatArray
    margin: float

    @staticmethod
    def of(chain: Chain, expansion: Expansion) -> _Claimed:
        below, above, margin = expansion.start(chain)
        if chain.complement:
            one = np.eye(1, len(below))[0]
            below, above = one - above, one - below
        return _Claimed(below, above, margin)


def at_optima(
    chains: Sequence[Chain], wanted: Sequence[Wanted], enclosure: Enclosure, forms: Sequence[LikelihoodForm]
) -> list[dict[str, Any]]:
    """Return points of the set where sums are about the least and the largest, on the border of likelihoods."""
    expansions = _expansions(chains, wanted, enclosure, 2) if enclosure.dimension else None
    if expansions is None:
        return []
    found = [_Claimed.of(chain, expansion).below for chain, expansion in zip(chains, expansions, strict=True)]
    cuts, _ = _cuts(enclosure)
    rows, offsets = cuts.rows[cuts.is_flat], cuts.offsets[cuts.is_flat]
    centre, axes = (
        np.array([[as_float(a) for a in row] for row in rows_]) for rows_ in ([enclosure.centre], enclosure.axes)
    )
    sums = [numbers for numbers in (each.sum(found, found) for each in wanted) if numbers[1:].any()]
    points = [
        find_optimum(side * numbers, rows, offsets, forms, centre[0], axes.T) for numbers in sums for side in (1, -1)
    ]
    return [
        {"likelihood": i, "point": point.tolist()}
        for i, form in enumerate(forms)
        for point in points
        if form.value(point) > -np.inf
    ]


def _cuts(enclosure: Enclosure) -> tuple[Cuts, list[int]]:
    """Return what cuts a ball, in floats, and the numbers of these cuts."""
    lefts = [{e: as_float(c) for e, c in (cut.left or {}).items()} for cut in enclosure.cuts]
    usable = [i for i, left in enumerate(lefts) if left and cuts_ball(left)]
    return Cuts.of([lefts[i] for i in usable], enclosure.dimension), usable


def as_float(number: Any) -> float:
    """Return a ball or a fraction as a float that is close to it."""
    return float(number.mid()) if hasattr(number, "mid") else int(number.p) / int(number.q)


def prove_brackets(
    chains: Sequence[Chain], wanted: Sequence[Wanted], enclosure: Enclosure, misfit: float = 0.0
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
    """Return functions of each chain, of the least degree that seems to prove all brackets, and their multipliers.

    If none does, they are of the largest degree that was tried. The first brackets are those of the chains. The last
    number is about how much is missing.
    """
    degrees, last = DEGREES if enclosure.dimension else (0,), [inf] * len(wanted)
    for degree in degrees:
        expansions = _expansions(chains, wanted, enclosure, degree, misfit)
        if expansions is None:
            continue
        n_next = sum(len(chain.open) for chain in chains) * comb(enclosure.dimension + degree + 2, enclosure.dimension)
        is_last, brackets, most = degree == degrees[-1] or n_next > _MOST, [], 0.0
        for i, each in reversed(list(enumerate(wanted))):  # a difference has the narrowest
            bracket, missing, margin = bracket_of(each, chains, expansions, enclosure)
            is_small = margin < _SMALL * missing  # so that a smaller one would not help
            is_hopeless, last[i] = degree >= _ENOUGH and (is_small or margin >= last[i]), margin
            if missing > 0 and not is_hopeless and not is_last:
                break
            brackets.append(bracket)
            most = max(most, missing)
        else:
            return [written_values(each) for each in expansions], brackets[::-1], most
    raise DataError("no functions that bound the policy's value on all of the ball were found, so there is no witness")


def _expansions(
    chains: Sequence[Chain], wanted: Sequence[Wanted], enclosure: Enclosure, degree: int, misfit: float = 0.0
) -> list[Expansion] | None:
    """Return expansions of the values of all chains, whose brackets come first, or None if one has none."""
    found = []
    for chain, its in zip(chains, wanted, strict=False):
        expansion = expand(chain, enclosure, degree, is_exact=its.is_exact, misfit=misfit)
        if expansion is None:
            return None
        found.append(expansion)
    return found


def written_values(expansion: Expansion) -> dict[str, Any]:
    """Return functions, margins and numbers of steps as the witness has them."""
    return {
        "degree": expansion.degree,
        "functions": expansion.coefficients.tolist(),
        "margins": expansion.margins.tolist(),
        "steps": expansion.steps.tolist(),
        "average": None if expansion.average is None else expansion.average.tolist(),
        **({} if expansion.above is None else {"above": expansion.above.tolist()}),
        **({} if expansion.above_average is None else {"above_average": expansion.above_average.tolist()}),
    }


def bracket_of(
    wanted: Wanted, chains: Sequence[Chain], expansions: Sequence[Expansion], enclosure: Enclosure
) -> tuple[dict[str, Any], float, float]:
    """Return multipliers of both ends, about how much is missing to prove them, and the margin in that."""
    cuts, usable = _cuts(enclosure)
    of_chains = [_Claimed.of(chain, expansion) for chain, expansion in zip(chains, expansions, strict=True)]
    below, above, degree = [each.below for each in of_chains], [each.above for each in of_chains], expansions[0].degree
    margin = sum(of_chains[i].margin for _, i in wanted.terms)
    least, most = range_of([(sign, chains[i]) for sign, i in wanted.terms])
    needed = (
        -inf if least is not None and wanted.lower <= as_float(least) else wanted.lower,
        -inf if most is not None and wanted.upper >= as_float(most) else -wanted.upper,
    )
    width = -sum(needed)
    is_hopeless = 2 * margin > width  # so that any multipliers do
    spare = -inf if is_hopeless else _SPARE * width if isfinite(width) else 0.0
    found = [
        bound_polynomial(numbers, degree, cuts, enough=end + margin + spare)
        for numbers, end in zip((wanted.sum(below, above), -wanted.sum(above, below)), needed, strict=True)
    ]
    room = [_ROOM * abs(end) if isfinite(end) else 0.0 for end in needed]  # see the checker's ``_proved``
    ends = zip(needed, found, room, strict=True)
    missing = max(end + margin - each.bound - spared for end, each, spared in ends)
    missing = 0.0 if wanted.is_exact else margin if is_hopeless else missing
    low, high = found
    return {"lower": _written(low, usable), "upper": _written(high, usable)}, missing, margin


def prove_support(
    polynomials: Sequence[str], names: list[str], enclosure: Enclosure, misfit: float
) -> list[dict[str, Any]]:
    """Return multipliers that prove polynomials to be positive on the set, though rows may be off."""
    (cuts, usable), found = _cuts(enclosure), []
    for text in dict.fromkeys(polynomials):
        moved = enclosure.transform(parse(text, names), text)
        degree = max(map(sum, moved), default=0)
        numbers = np.array([as_float(moved.get(e, fmpq(0))) for e in monomials(enclosure.dimension, degree)])
        proof = bound_polynomial(numbers, degree, cuts, enough=misfit + _POSITIVE)
        found.append({"polynomial": text, **_written(proof, usable)})
    return found


def _written(found: Multipliers, usable: list[int]) -> dict[str, Any]:
    pairs: list[Any] = [[usable[i], list(y)] for i, y in sorted(found.cuts.items())]
    pairs += [[[usable[i] for i in pair], list(y)] for pair, y in sorted(found.products.items())]
    return {"multipliers": pairs, "ball": found.ball}
