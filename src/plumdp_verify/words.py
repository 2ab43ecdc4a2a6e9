"""Writes numbers of a proof as people read them: brackets rounded outward, to digits that tell the ends apart."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from flint import fmpq

from .reading import Exact

_PLACES = 18  # most digits after the point
_DIGITS = 3  # of the larger end, at least
_TINY = fmpq(1, 10**8)  # a confidence such as 0.999 is stored as the nearest float


def decimal(value: Exact, side: int, places: int) -> str:
    """Return a number with digits after the point, or zeros before it, rounded down (side -1) or up (side 1)."""
    context = Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_FLOOR if side < 0 else ROUND_CEILING)
    scaled = value * fmpq(10) ** places
    whole = scaled.floor() if side < 0 else scaled.ceil()
    number = context.scaleb(Decimal(int(whole)), -places)
    text = f"{number:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def in_words(lower: Exact | None, upper: Exact | None, *, is_share: bool) -> str:
    """Return a bracket rounded outward, in per cent if it is one of probabilities; None is an end that claims nothing.

    >>> in_words(fmpq(2, 3), fmpq(7, 10), is_share=True), in_words(fmpq(99), None, is_share=False)
    ('66.6 % to 70 %', 'at least 99')
    """
    low, high = one_by_one(lower, upper, is_share=is_share)
    if low is None or high is None:
        return f"at least {low}" if low is not None else "unbounded" if high is None else f"at most {high}"
    return low if low == high else f"{low} to {high}"


def one_by_one(lower: Exact | None, upper: Exact | None, *, is_share: bool) -> tuple[str | None, str | None]:
    """Return both ends of a bracket in words, or None for one that claims nothing."""
    ends: list[Exact] = [None if end is None else end * (100 if is_share else 1) for end in (lower, upper)]
    sizes = [_power(abs(end)) for end in ends if end is not None]
    places = _DIGITS - 1 - max(sizes, default=0)
    if None not in ends:
        places = max(places, 1 - _power(ends[1] - ends[0])) if ends[0] != ends[1] else _PLACES
    sign = " %" if is_share else ""
    written = [
        None if end is None else decimal(end, side, min(places, _PLACES))
        for end, side in zip(ends, (-1, 1), strict=True)
    ]
    low, high = (None if text is None else f"{text}{sign}" for text in written)
    return low, high


def _power(value: Exact) -> int:
    """Return the largest power of ten that is not above a number; of 0 it is 0."""
    power = 0
    while value and value >= fmpq(10) ** (power + 1):
        power += 1
    while value and value < fmpq(10) ** power:
        power -= 1
    return power


def shortest(value: Exact) -> str:
    """Return a float with the digits that tell it from other floats."""
    return f"{Decimal(repr(int(value.p) / int(value.q))).normalize():f}"


def percent(confidence: Exact) -> str:
    """Return a confidence in per cent, of which no more is said than there is.

    >>> percent(fmpq(*(0.999).as_integer_ratio())), percent(1 - fmpq(1, 10**13))
    ('99.9 %', '99.99999999999 %')
    """
    for places in range(_PLACES):
        shown = (confidence * 100 * fmpq(10) ** places + fmpq(1, 2)).floor() / fmpq(10) ** places
        if 0 <= (shown / 100 - confidence) <= (1 - confidence) * _TINY:
            return f"{decimal(shown, -1, places)} %"
    return f"{decimal(confidence * 100, -1, _PLACES)} %"
