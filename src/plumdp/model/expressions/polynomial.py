"""Exact polynomials in the parameters, canonical and hashable, so that equal expressions tie.

Arithmetic is python-flint's over the rationals. Two polynomials are equal exactly if they have the same
terms, however they were written: ``0.3*p`` and ``3*p/10`` are one expression.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import comb
from numbers import Integral, Rational
from typing import Any, TypeAlias

from flint import fmpq, fmpq_mpoly, fmpq_mpoly_ctx

from plumdp.base.errors import ModelError

Number: TypeAlias = int | float | str | Fraction | Decimal
"""What may be written for an exact number: a float or a string is read as the decimal it shows."""

_MAX_EXPONENT = 4000  # of a decimal
_EXPONENT = re.compile(r"[eE][+-]?0*(\d+)")
_MAX_POWER_BITS = 1 << 16  # of a power of a number
_MAX_POWER_TERMS = 1 << 16  # of a power of an expression
MAX_DEGREE = 1 << 14  # of a power of an expression
_MAX_DIGITS = 15  # every decimal of up to 15 digits is the same after rounding to a float and back


def parameters(*names: str) -> tuple[Polynomial, ...]:
    """Return one unknown number per name, to write expressions with.

    Parameters
    ----------
    *names
        The names of the numbers.

    Returns
    -------
    tuple of Polynomial
        One for each name.

    Examples
    --------
    >>> p, q = parameters("p", "q")
    >>> p * (1 - q)
    Polynomial('-p*q + p')
    """
    for name in names:
        if not (name.isidentifier() and name.isascii()):
            raise ModelError(f"parameter name {name!r}: write it like a variable name (letters, digits, underscore)")
    if len(set(names)) < len(names):
        raise ModelError(f"parameters {', '.join(names)}: a name appears twice")
    ordered = sorted(names)
    context, index = _context(tuple(ordered)), {name: i for i, name in enumerate(ordered)}
    return tuple(Polynomial(context.gen(index[name])) for name in names)


def exact(number: Number) -> Fraction:
    """Return the rational number that a number was written as: the float 0.3 is 3/10.

    >>> exact(0.3), exact("1/3")
    (Fraction(3, 10), Fraction(1, 3))
    """
    if type(number) is Fraction:
        return number
    if isinstance(number, float):
        return _from_float(number)
    if isinstance(number, str | Decimal):
        exponent = _EXPONENT.search(str(number))
        if exponent and (len(exponent[1]) > 5 or int(exponent[1]) > _MAX_EXPONENT):
            shown = str(number) if len(str(number)) <= 60 else f"{str(number)[:57]}..."
            raise ModelError(f"{shown!r} is not a number of reasonable size: its exponent is beyond {_MAX_EXPONENT}")
        try:
            return Fraction(number)
        except (ValueError, OverflowError, ZeroDivisionError):
            raise ModelError(f"{number!r} is not a number; write it like 3, 0.3 or 3/10") from None
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))
    if isinstance(number, Integral):  # NumPy's integers, which are not instances of Rational
        return Fraction(int(number))
    raise ModelError(f"{number!r} ({type(number).__name__}) is not a number; use an int, a Fraction or a short decimal")


_OWN_VALUE = (
    "give the whole a parameter of its own; for a hazard ratio exp(b), write h * p with a parameter h, such as between "
    "0.2 and 5"
)
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


class Polynomial:
    """An exact polynomial in named parameters with rational coefficients, immutable, canonical and hashable."""

    __slots__ = ("_affine", "_complement", "_hash", "_text", "_value")
    _value: Any  # python-flint's fmpq_mpoly, in the context of its sorted names
    _text: str | None
    _hash: int | None
    _complement: Polynomial | None
    _affine: tuple[Fraction, Mapping[str, Fraction]] | None

    def __init__(self, value: Any) -> None:
        if not isinstance(value, fmpq_mpoly):
            value = _context(()).constant(_fmpq(exact(value)))
        self._value = value
        self._text = self._hash = self._complement = self._affine = None

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that occur, sorted."""
        return tuple(
            name
            for name, degree in zip(self._value.context().names(), self._value.degrees(), strict=True)
            if degree > 0  # -1 for zero
        )

    @property
    def degree(self) -> int:
        """The total degree, which is 0 for constants, zero included."""
        return max(int(self._value.total_degree()), 0)

    @property
    def is_constant(self) -> bool:
        """Whether no parameter occurs."""
        return bool(self._value.is_constant())

    @property
    def is_affine(self) -> bool:
        """Whether no monomial is of degree two or more."""
        return bool(self._value.total_degree() <= 1)

    @property
    def constant(self) -> Fraction:
        """The value of a constant polynomial."""
        if not self.is_constant:
            raise ModelError(f"{self} is not a constant")
        return _fraction(self._value.coeffs()[0]) if len(self._value) else Fraction(0)

    @property
    def complement(self) -> Polynomial:
        """One minus this polynomial, the other outcome of a binary choice, calculated once."""
        if self._complement is None:
            self._complement = Polynomial(1 - self._value)
            self._complement._complement = self
        return self._complement

    def terms(self, names: tuple[str, ...]) -> dict[tuple[int, ...], Fraction]:
        """Return exponents (in the order of ``names``) → coefficient."""
        of_value = self._value.context().names()
        position = [of_value.index(name) if name in of_value else -1 for name in names]
        missing = [name for name in self.names if name not in names]
        if missing:
            raise ModelError(f"{self}: no column for {', '.join(missing)}")
        return {
            tuple(int(exponents[i]) if i >= 0 else 0 for i in position): _fraction(coefficient)
            for exponents, coefficient in self._value.to_dict().items()
        }

    def affine_terms(self) -> tuple[Fraction, Mapping[str, Fraction]]:
        """Return the constant and, for each parameter that occurs, the coefficient of an affine polynomial, kept.

        >>> p, q = parameters("p", "q")
        >>> (p / 2 + 1).affine_terms()
        (Fraction(1, 1), {'p': Fraction(1, 2)})
        """
        if self._affine is not None:
            return self._affine
        if not self.is_affine:
            raise ModelError(f"{self} is not affine")
        names, constant, coefficients = self._value.context().names(), Fraction(0), {}
        for exponents, coefficient in zip(self._value.monoms(), self._value.coeffs(), strict=True):
            if any(exponents):
                coefficients[names[exponents.index(1)]] = _fraction(coefficient)
            else:
                constant = _fraction(coefficient)
        self._affine = constant, coefficients
        return self._affine

    def evaluate(self, point: Mapping[str, Fraction]) -> Fraction:
        """Return the exact value at a point."""
        used = set(self.names)
        values = [_fmpq(point[name]) if name in used else fmpq(0) for name in self._value.context().names()]
        return _fraction(self._value(*values)) if values else self.constant

    def factors(self) -> tuple[Fraction, tuple[tuple[Polynomial, int], ...]]:
        """Return a constant and irreducible polynomials with their powers, whose product is this polynomial.

        >>> p, q = parameters("p", "q")
        >>> (p * p * (1 - q) / 2).factors()
        (Fraction(-1, 2), ((Polynomial('q - 1'), 1), (Polynomial('p'), 2)))
        """
        constant, factors = self._value.factor()
        return _fraction(constant), tuple((Polynomial(factor), int(power)) for factor, power in factors)

    def quotient(self, divisor: Polynomial) -> Polynomial | None:
        """Return the polynomial that times the divisor is this one, or None if there is none."""
        a, b = _in_one_context(self._value, divisor._value)
        quotient, rest = divmod(a, b)
        return None if rest else Polynomial(quotient)

    def monic(self) -> Polynomial:
        """Return the multiple of a polynomial, not zero, whose leading coefficient is one."""
        return Polynomial(self._value / self._value.leading_coefficient())

    def __add__(self, other: object) -> Polynomial:
        return _combine(self, other, fmpq_mpoly.__add__)

    def __sub__(self, other: object) -> Polynomial:
        return _combine(self, other, fmpq_mpoly.__sub__)

    def __mul__(self, other: object) -> Polynomial:
        return _combine(self, other, fmpq_mpoly.__mul__)

    def __rsub__(self, other: object) -> Polynomial:
        if type(other) is int and other == 1:
            return self.complement
        return _combine(-self, other, fmpq_mpoly.__add__)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Polynomial:
        return Polynomial(-self._value)

    def __truediv__(self, other: object) -> Polynomial:
        if not isinstance(other, Polynomial | float | Rational | Decimal | Integral):
            return NotImplemented
        divisor = other.constant if isinstance(other, Polynomial) and other.is_constant else other
        if isinstance(divisor, Polynomial):
            advice = "divide by numbers only, or give the quotient a parameter of its own"
            raise ModelError(f"({self}) / ({divisor}) is not a polynomial; {advice}")
        number = exact(divisor)  # type: ignore[arg-type]  # exact() refuses by name what is not a number
        if not number:
            raise ModelError(f"({self}) / 0: division by zero")
        return Polynomial(self._value * _fmpq(1 / number))

    def __rtruediv__(self, other: object) -> Polynomial:
        return Polynomial(other) / self

    def __pow__(self, exponent: int) -> Polynomial:
        if not isinstance(exponent, Integral) or exponent < 0:
            advice = "" if isinstance(exponent, Integral) else ", so give the power a parameter of its own"
            raise ModelError(f"({self}) ** {exponent} is not a polynomial; exponents are 0, 1, 2, …{advice}")
        _refuse_large_power(self, int(exponent))
        return Polynomial(self._value ** int(exponent))

    def __rpow__(self, base: object) -> Polynomial:
        raise ModelError(f"{base} ** ({self}) is not a polynomial; {_OWN_VALUE}")

    def __float__(self) -> float:  # which functions of math ask for
        if not self.is_constant:
            raise ModelError(f"({self}) has no value, and a function such as exp of it is no polynomial; {_OWN_VALUE}")
        return float(self.constant)

    def __array_ufunc__(self, function: Any, method: str, *given: Any, **options: Any) -> Any:
        """Return a sum or product with a number of NumPy, which must not make object arrays of polynomials."""
        operation = _OPERATIONS.get(function.__name__) if method == "__call__" and not options else None
        if len(given) == 1:
            raise ModelError(f"{function.__name__} of ({self}) is not a polynomial; {_OWN_VALUE}")
        if operation is None or any(getattr(each, "ndim", 0) for each in given):
            return NotImplemented
        return operation(*(each.item() if hasattr(each, "item") else each for each in given))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Polynomial):
            if self._value.context() is other._value.context():
                return bool(self._value == other._value)
            return str(self) == str(other)
        if isinstance(other, Integral):
            other = int(other)
        return isinstance(other, int | float | Fraction) and self.is_constant and self.constant == other

    def __hash__(self) -> int:
        if self._hash is None:  # a constant hashes like its number, to which it is equal
            self._hash = hash(self.constant) if self.is_constant else hash(str(self))
        return self._hash

    def __bool__(self) -> bool:
        return not self._value.is_zero()

    def __str__(self) -> str:
        """Return the canonical text, with sorted names and a fixed order of terms, the same for equal polynomials."""
        if self._text is None:
            self._text = str(self._value)
        return self._text

    def __repr__(self) -> str:
        text = str(self)
        return f"Polynomial({(text if len(text) <= 120 else f'{text[:100]}… ({len(self._value):,} terms)')!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        names = self.names
        return from_terms, (names, self.terms(names))


def polynomial(value: Polynomial | Number) -> Polynomial:
    """Return an expression as a polynomial, with a number as a constant."""
    return value if isinstance(value, Polynomial) else Polynomial(value)


def whole_terms(
    polynomials: Sequence[Polynomial],
) -> tuple[tuple[str, ...], list[list[tuple[tuple[int, ...], int, int]]]]:
    """Return the sorted names of all parameters, and the terms (exponents, numerator, denominator) of each polynomial.

    >>> p, q = parameters("p", "q")
    >>> whole_terms([p * q / 3 + 1])
    (('p', 'q'), [[((1, 1), 1, 3), ((0, 0), 1, 1)]])
    """
    contexts = {id(f._value.context()): f._value.context() for f in polynomials}
    common = _context(tuple(sorted({name for context in contexts.values() for name in context.names()})))
    result = []
    for f in polynomials:
        value = f._value if f._value.context() is common else f._value.project_to_context(common)
        terms = zip(value.monoms(), value.coeffs(), strict=True)  # faster than to_dict
        result.append([(exponents, int(c.p), int(c.q)) for exponents, c in terms])
    return tuple(common.names()), result


def _refuse_large_power(base: Polynomial, exponent: int) -> None:
    """Refuse a power that would fill the memory, before it is calculated."""
    if base.is_constant:
        number = base.constant
        bits = abs(number.numerator).bit_length() + number.denominator.bit_length() - 2
        is_large = bits * exponent > _MAX_POWER_BITS
    else:
        n_terms = len(base._value)
        is_large = base.degree * exponent > MAX_DEGREE or comb(n_terms - 1 + exponent, exponent) > _MAX_POWER_TERMS
    if is_large:
        shown = str(base) if len(str(base)) <= 60 else f"{str(base)[:57]}..."
        raise ModelError(f"({shown}) ** {exponent} is too large to calculate with")


def from_terms(names: tuple[str, ...], terms: dict[tuple[int, ...], Fraction]) -> Polynomial:
    """Return the polynomial of the given terms, exponents in the order of the sorted names → coefficient."""
    return Polynomial(_context(names).from_dict({key: _fmpq(value) for key, value in terms.items()}))


@cache
def _context(names: tuple[str, ...]) -> Any:
    return fmpq_mpoly_ctx.get(names, "lex")


_NUMBERS = _context(())


@cache
def _common_context(names: tuple[str, ...], others: tuple[str, ...]) -> Any:
    return _context(tuple(sorted({*names, *others})))


def _combine(left: Polynomial, other: object, operation: Any) -> Polynomial:
    a = left._value
    if type(other) is int:
        return Polynomial(operation(a, other))
    if type(other) is Fraction:
        return Polynomial(operation(a, _fmpq(other)))
    if not isinstance(other, Polynomial):
        if not isinstance(other, float | Rational | Decimal | Integral):
            return NotImplemented  # type: ignore[no-any-return]  # Python then asks the other operand
        return Polynomial(operation(a, _fmpq(exact(other))))  # type: ignore[arg-type]
    return Polynomial(operation(*_in_one_context(a, other._value)))


def _in_one_context(a: Any, b: Any) -> tuple[Any, Any]:
    """Return both of python-flint's polynomials in a context with the names of both."""
    left, right = a.context(), b.context()
    if left is right:
        return a, b
    if left is _NUMBERS or right is _NUMBERS:  # projecting a number takes several times as long as multiplying by it
        return (_number_in(right, a), b) if left is _NUMBERS else (a, _number_in(left, b))
    common = _common_context(left.names(), right.names())
    return a.project_to_context(common), b.project_to_context(common)


def _number_in(context: Any, constant: Any) -> Any:
    return context.constant(constant.coeffs()[0] if len(constant) else 0)


def _fmpq(number: Fraction) -> Any:
    return fmpq(number.numerator, number.denominator)


def _fraction(number: Any) -> Fraction:
    return Fraction(int(number.p), int(number.q))


def _from_float(number: float) -> Fraction:
    if number != number or number in (float("inf"), float("-inf")):
        raise ModelError(f"{number} cannot be part of an expression")
    decimal = Decimal(repr(float(number))).normalize()  # without the ".0" of whole numbers
    if len(decimal.as_tuple().digits) > _MAX_DIGITS:
        raise ModelError(
            f"the float {float(number)!r} looks like the rounded result of a calculation, and would not tie with the "
            "exact number; calculate with fractions.Fraction "
            f"(or give Fraction({float(number)!r}) to mean exactly this float)"
        )
    return Fraction(decimal)
