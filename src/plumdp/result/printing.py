"""Numbers and verdicts of a certificate as people read them; bounds are rounded outward."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from plumdp.base.vocabulary import Status
from plumdp.confidence.sets import Guarantee

GUARANTEES = {
    Guarantee.ANYTIME: "proved for any number of samples, whenever you stopped",
    Guarantee.PLANNED: "proved for any number of samples that was planned, and whatever was added to them",
    Guarantee.FIXED: "proved for any number of samples that was fixed beforehand",
    Guarantee.ASYMPTOTIC: "proved in the limit of many samples, not for any number of them",
    Guarantee.NONE: "without a proof",
}

_DOUBT = 0.05  # smaller p-values are worth a word


def outward(value: float, side: int, digits: int = 6) -> str:
    """Return a bound with some digits, rounded down (side -1) or up (side 1): what is printed is a bound as well.

    >>> outward(0.12345678, -1), outward(0.12345678, 1, digits=3)
    ('0.123456', '0.124')
    """
    if abs(value) == float("inf"):
        return "infinity" if value > 0 else "-infinity"
    rounding = ROUND_CEILING if side > 0 else ROUND_FLOOR
    rounded = Context(prec=digits, rounding=rounding).plus(Decimal(value)).normalize()
    return f"{rounded:f}" if 1e-6 <= abs(value) < 1e12 or not value else str(rounded)


def percent(confidence: float) -> str:
    """Return a confidence in per cent with ten digits, or as many as it takes to tell it from certainty.

    >>> percent(0.999), percent(1 - 1e-13)
    ('99.9 %', '99.99999999999 %')
    """
    text = f"{100 * confidence:.10g}"
    return f"{text} %" if float(text) < 100 else f"{(100 * Decimal(repr(confidence))).normalize():f} %"


def shares(parts: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the share of each part of a sum in per cent, in words; parts below a thousandth are left out."""
    total = sum(parts.values())
    return [(name, f"{100 * part / total:.3g} %") for name, part in parts.items() if total and part / total >= 1e-3]


def verdict_on_model(p_value: float, status: Status, error: float, misfit: float) -> str:
    """Return what a p-value says of the model, in words; whether that is contradicted has been decided.

    Intervals contradict a model at their own share of the error, so that the p-value need not be small; and the share
    that tests have beside them is smaller than the error.

    >>> verdict_on_model(1.0, Status.CERTIFIED, 0.001, 0.0)
    'the data show no sign that the model is wrong (p = 1)'
    """
    text = f"p = {outward(p_value, 1, 2).lower()}"
    if misfit and p_value <= error:
        return f"no parameters explain the data ({text}); the bounds allow for rows that are off"
    if status == Status.CONTRADICTED:
        unseen = ", though tests of rows and drifts show no sign of it" if p_value > _DOUBT else ""
        return f"no parameters explain the data{unseen} ({text})"
    if p_value <= _DOUBT:
        return f"some doubt whether the model is right ({text}), but not enough to reject it"
    return f"the data show no sign that the model is wrong ({text})"
