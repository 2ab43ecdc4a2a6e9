"""What limits a result, in words: what the distance of the bounds is made of, and what would narrow it."""

from __future__ import annotations

from collections.abc import Sequence

from plumdp.model.language.words import is_probability
from plumdp.result.certificate import Certificate, Status, outward
from plumdp.result.findings import Findings, Rung

_PARTS = {
    "statistics": "what the data leave open about the parameters: more data narrow it",
    "remainder": "how much the value bends over the region of the parameters: it shrinks by itself, and faster, as "
    "more data make the region smaller",
    "rounding": "rounding and the precision of the solver",
    "relaxation": "that nature may pick other parameters in each state, at an end where the bounds with one point for "
    "all states are not the tighter ones",
}
_PARTS_OF_TABLES = {
    "statistics": "what the data leave open about the rows that matter: more data narrow it",
    "remainder": "what is lost because the data are too few for the method to be exact: it falls faster than the rest "
    "with more data",
    "rounding": _PARTS["rounding"],
    "relaxation": "that each row may be anywhere within its intervals, at an end where bets say less: that shrinks "
    "quickly once each row that matters was seen often enough",
}
_PER_CENT = 1e-3  # widths of probabilities from here on are in percentage points
_SMALLEST = 1e-3  # share of the width that is worth a sentence


def limits(certificate: Certificate, findings: Findings) -> list[str]:
    """Return what limits the result, the largest part first."""
    if certificate.status == Status.CONTRADICTED:
        return []
    parts = _parts_of_gap(certificate)
    parts += _tighter(certificate, findings.ladder)
    if certificate.not_coupled and certificate.is_of_table:
        parts.append(
            f"There are no bets on the value of this policy: {certificate.not_coupled}. The bounds let each row be "
            "anywhere within its intervals, which is safe but looser."
        )
    elif certificate.not_coupled:
        parts.append(
            f"There are no bounds with one point for all states: {certificate.not_coupled}. The bounds let "
            "nature pick other parameters in each state, which is safe but looser."
        )
    if certificate.not_in_likelihood:
        keyword = 'confidence_set="interval", on the command line --confidence-set interval'
        parts.append(f"The likelihood ignores {certificate.not_in_likelihood}.")
        parts.append(f"On new data, bounds may be tighter with {keyword}.")
    if certificate.misfit:
        off = f"The bounds allow for rows that are off by {certificate.misfit:g}"
        parts.append(f"{off}: that costs width which no data win back.")
    if certificate.jointly:
        others = "1 other property" if len(certificate.jointly) == 1 else f"{len(certificate.jointly)} other properties"
        parts.append(f"The confidence is shared with {others}: one property alone would have narrower bounds.")
    if certificate.remark:
        parts.append(f"About the policy: {certificate.remark}.")
    if certificate.left_out:
        parts.append(f"To save time, some of what the data say was left out: {certificate.left_out}.")
    if certificate.solver != "converged":
        parts.append(f"The solver ended before its bounds met ({certificate.solver}).")
    return parts


def _parts_of_gap(certificate: Certificate) -> list[str]:
    total = sum(certificate.gap.values())
    if not total or total == float("inf"):
        return []
    ordered = sorted(certificate.gap.items(), key=lambda part: -part[1])
    width, points = certificate.upper - certificate.lower, ""
    if is_probability(certificate.objective) and width >= _PER_CENT:
        width, points = 100 * width, " percentage points"
    words = _PARTS_OF_TABLES if certificate.is_of_table else _PARTS
    return [f"The bounds are {outward(width, 1, 3)}{points} apart."] + [
        f"{100 * part / total:.3g} % of that is {words[name]}."
        for name, part in ordered
        if part / total >= _SMALLEST and name in words
    ]


def _tighter(certificate: Certificate, ladder: Sequence[Rung]) -> list[str]:
    """Return the relaxation that certifies a better value than this one, if there is one."""
    sign = 1 if certificate.direction == "max" else -1
    best = max(ladder, key=lambda rung: sign * _bound(rung, sign), default=None)
    if best is None or not sign * _bound(best, sign) > sign * certificate.bound:
        return []
    between = f"between {outward(best.lower, -1)} and {outward(best.upper, 1)}"
    return [f'The relaxation "{best.relaxation}" certifies a better policy from the same data: {between}.']


def _bound(rung: Rung, sign: int) -> float:
    return rung.lower if sign > 0 else rung.upper
