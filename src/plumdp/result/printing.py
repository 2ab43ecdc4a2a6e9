"""Numbers and verdicts of a certificate as people read them; bounds are rounded outward."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from math import floor, isfinite, log10

from plumdp.base.vocabulary import Guarantee, Status

GUARANTEES = {
    Guarantee.ANYTIME: "proved for any number of samples, whenever you stopped",
    Guarantee.PLANNED: "proved for the amount of data that you fixed beforehand, and for whatever you add to it, "
    "whenever you stop adding",
    Guarantee.FIXED: "proved for any number of samples that was fixed beforehand",
    Guarantee.NONE: "without a proof",
}

_FEW = 3  # digits of a number in a sentence
_PER_MILLION, _ONE_MILLIONTH = 1e-3, 1e-6  # probabilities below are out of a million, or of a power of ten
_NEARLY = 0.01  # probabilities that are closer to one have digits of what is missing
DOUBT = 0.05  # smaller p-values are worth a word
_MISSES, _VISITED = "misses errors below about", "in the most visited distribution"


def outward(value: float, side: int, digits: int = 6) -> str:
    """Return a bound with some digits, rounded down (side -1) or up (side 1): what is printed is a bound as well.

    >>> outward(0.12345678, -1), outward(0.12345678, 1, digits=3)
    ('0.123456', '0.124')
    """
    if abs(value) == float("inf"):
        return "infinity" if value > 0 else "-infinity"
    rounding = ROUND_CEILING if side > 0 else ROUND_FLOOR
    rounded = Context(prec=digits, rounding=rounding).plus(Decimal(value)).normalize()
    return f"{rounded:f}" if 1e-6 <= abs(value) < 1e12 or not value else str(rounded).lower()


def plain_bounds(lower: float, upper: float, *, is_probability: bool) -> tuple[str, str]:
    """Return both bounds as people write them, rounded outward, with as many digits as tell them apart.

    >>> plain_bounds(0.283198, 0.295223, is_probability=True), plain_bounds(1234.5, 98765.4, is_probability=False)
    (('28.3 %', '29.6 %'), ('1,230', '98,800'))
    >>> plain_bounds(6.59654e-13, 2.87337e-11, is_probability=True), plain_bounds(0.0002, 0.3, is_probability=True)
    (('6.5 in 10¹³', '2.9 in 10¹¹'), ('0.02 %', '30 %'))
    """
    width, size = upper - lower, max(abs(lower), abs(upper))
    digits = min(max(_FEW, 2 + floor(log10(size / width))), 6) if isfinite(width) and 0 < width <= size else _FEW
    smallest = _ONE_MILLIONTH if upper >= _PER_MILLION else _PER_MILLION  # in per cent, as the upper bound is
    low = plain_number(lower, -1, is_probability=is_probability, digits=digits, smallest=smallest)
    return low, plain_number(upper, 1, is_probability=is_probability, digits=digits)


def bracket(lower: float, upper: float, unit: str = "", *, is_probability: bool = False) -> str:
    """Return both bounds in words, rounded outward, with as many digits as tell them apart.

    >>> bracket(0.2831, 0.2952, is_probability=True), bracket(3, float("inf"), "€"), bracket(0, 0)
    ('28.3 % to 29.6 %', 'at least 3 €', '0')
    """
    low, high = plain_bounds(lower, upper, is_probability=is_probability)
    both = low if low == high else f"{low} to {high}"
    if lower < upper == float("inf"):
        both = f"at least {low}" if isfinite(lower) else "unbounded"
    elif lower == -float("inf") < upper:
        both = f"at most {high}"
    return f"{both} {unit}".rstrip()


def plain_number(
    value: float, side: int, *, is_probability: bool, digits: int = _FEW, smallest: float = _PER_MILLION
) -> str:
    """Return a number as people write it, rounded down (side -1), up (side 1) or to the nearest (side 0).

    Probabilities are in per cent, and those below ``smallest`` out of a million, or of a power of ten.

    >>> [plain_number(value, 1, is_probability=True) for value in (0.0, 0.5, 0.99971, 0.0000241, 1.0)]
    ['0 %', '50 %', '99.971 %', '25 in a million', '100 %']
    """
    if not isfinite(value):
        return "infinite" if value > 0 else "-infinite"
    if not is_probability:
        return _grouped(_rounded(Decimal(value), side, digits))
    if value <= 0 or value >= smallest:
        return f"{_percentage(value, side, digits):f} %"
    if value >= _ONE_MILLIONTH:
        return f"{_rounded(Decimal(value).scaleb(6), side, digits - 1):f} in a million"
    mantissa = _rounded(Decimal(value), side, digits - 1)
    return f"{mantissa.scaleb(-mantissa.adjusted()).normalize():f} in 10{_raised(-mantissa.adjusted())}"


def _percentage(value: float, side: int, digits: int) -> Decimal:
    """Return a probability in per cent, with enough digits to tell it from certainty."""
    share, rest = 100 * Decimal(value), 1 - value
    if value <= 0 or rest <= 0:
        return share.normalize() if value != 1 else Decimal(100)
    last = digits - 1 - floor(log10(100 * value)) if rest >= _NEARLY else digits - 2 - floor(log10(100 * rest))
    return _rounded(share, side, max(last, 0) + share.adjusted() + 1)


def _rounded(value: Decimal, side: int, digits: int) -> Decimal:
    rounding = {-1: ROUND_FLOOR, 0: ROUND_HALF_EVEN, 1: ROUND_CEILING}[side]
    return Context(prec=max(digits, 1), rounding=rounding).plus(value).normalize()


def _grouped(number: Decimal) -> str:
    """Return a number with separators, or with a power of ten if it is very large or small."""
    if not number or -6 < number.adjusted() < 12:
        return f"{number:,f}"
    return f"{number.scaleb(-number.adjusted()).normalize():f} × 10{_raised(number.adjusted())}"


def _raised(exponent: int) -> str:
    return f"{exponent}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


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


def verdict_on_model(
    p_value: float, status: Status, error: float, model_tolerance: float, visible_error: float | None = None
) -> tuple[str, str]:
    """Return the meaning of a p-value for the model, in words, and the evidence; what is contradicted was decided.

    Intervals contradict a model at their own share of the error, so that the p-value need not be small; and the share
    that tests have beside them is smaller than the error. Rows that may be off may be off at some times only, so that
    with a model tolerance no test looks at changes over time.

    >>> "".join(verdict_on_model(1.0, Status.CERTIFIED, 0.001, 0.0))
    'the data show no sign that the model is wrong (p = 1)'
    """
    text, untested = (
        f"p = {outward(p_value, 1, 2).lower()}",
        "; with a model tolerance, changes over time are not tested",
    )
    if model_tolerance and p_value <= error:
        return "no parameters explain the data", f" ({text}); the bounds allow for rows that are off{untested}"
    if status == Status.REJECTED:
        unseen = ", though no test of a row or a drift shows it" if p_value > DOUBT else ""
        return f"no parameters explain the data{unseen}", f" ({text})"
    if p_value <= DOUBT:
        look = "but not enough to reject it; plumdp check-model says where to look"
        return "some doubt whether the model is right", f" ({text}), {look}{untested if model_tolerance else ''}"
    small = "" if visible_error is None else f"; {_MISSES} {visible_error:.2g} {_VISITED}, by an estimate"
    return f"the data show no sign that the model is wrong{small}", f" ({text}){untested if model_tolerance else ''}"


def passed(p_value: float, visible_error: float | None) -> str:
    """Return that a test of the model was passed, in words, and which errors it would hardly show: an estimate.

    >>> passed(1.0, 0.0194)
    'passed (p = 1); misses errors below about 0.019 in the most visited distribution'
    """
    text = f"passed (p = {outward(p_value, 1, 2).lower()})"
    return text if visible_error is None else f"{text}; {_MISSES} {visible_error:.2g} {_VISITED}"


def approximately(interval: tuple[float, float], *, is_probability: bool = False) -> str:
    """Return the usual approximate interval in words, with as many digits as its width tells apart.

    >>> approximately((0.28431234, 0.29387654))
    '0.2843 to 0.2939 by the normal approximation'
    >>> approximately((0.28431234, 0.29387654), is_probability=True)
    '28.43 % to 29.39 % by the normal approximation'
    """
    low, high = (100 * end for end in interval) if is_probability else interval
    width = high - low
    places = 1 - floor(log10(width)) if width > 0 else 6
    ends = [f"{round(end, places):,.{max(places, 0)}f}" for end in (low, high)]
    sign = " %" if is_probability else ""
    return f"{ends[0]}{sign} to {ends[1]}{sign} by the normal approximation"
