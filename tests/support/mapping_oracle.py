"""Random mapping expressions, each with a slow evaluation in plain Python: unknown is None."""

import math
import operator

from hypothesis import strategies as st

COLUMNS = {"lon": "number", "count": "whole", "level": "number", "word": "text", "flag": "truth"}
NUMBERS = [0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 0.1, 10.0, 1e308]
WORDS = ["rain", "sun", "it's", "", "1", "yes"]
COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def known(value):
    """Return a number, or None if it is not finite."""
    return value if value is not None and math.isfinite(value) else None


def lifted(function):
    """Return a function that is unknown where an argument is."""
    return lambda *values: None if None in values else function(*values)


def rounded(function):
    return lifted(lambda value: float(function(value)) if math.isfinite(value) else value)


def quotient(dividend, divisor):
    divisor = known(divisor)
    return None if dividend is None or not divisor else dividend / divisor


def modulo(dividend, divisor):
    divisor = known(divisor)
    if dividend is None or not divisor:
        return None
    whole = dividend / divisor
    return dividend - divisor * (float(math.trunc(whole)) if math.isfinite(whole) else whole)


def extreme(function):
    def choose(*values):
        values = [known(value) for value in values]
        return None if None in values else function(values)

    return choose


def both(one, other):
    return False if one is False or other is False else None if None in (one, other) else True


def either(one, other):
    return True if one is True or other is True else None if None in (one, other) else False


def chosen(condition, then, otherwise):
    return None if condition is None else then if condition else otherwise


ROUND = {"floor": rounded(math.floor), "ceil": rounded(math.ceil), "abs": lifted(abs)}
ROUND["round"] = rounded(lambda value: math.copysign(math.floor(abs(value) + 0.5), value))
ARITHMETIC = {
    "+": lifted(operator.add), "-": lifted(operator.sub), "*": lifted(operator.mul), "/": quotient, "%": modulo,
}  # fmt: skip


def column(name):
    return st.just((name, lambda row, name=name: row[name]))


def number_literals():
    return st.sampled_from(NUMBERS).map(lambda value: (repr(value), lambda row, value=value: value))


def combined(text, function, *parts):
    """Return an expression of others: its text, and its evaluation."""
    return text.format(*(part[0] for part in parts)), lambda row: function(*(part[1](row) for part in parts))


def with_numbers(numbers, truths):
    """Return strategies of numbers that are made of smaller expressions."""
    return st.one_of(
        st.tuples(st.sampled_from([*ARITHMETIC]), numbers, numbers).map(
            lambda t: combined(f"({{}} {t[0]} {{}})", ARITHMETIC[t[0]], t[1], t[2])
        ),
        st.tuples(st.sampled_from([*ROUND]), numbers).map(lambda t: combined(f"{t[0]}({{}})", ROUND[t[0]], t[1])),
        numbers.map(lambda part: combined("(-{})", lifted(operator.neg), part)),
        st.tuples(st.sampled_from(["least", "greatest"]), numbers, numbers).map(
            lambda t: combined(f"{t[0]}({{}}, {{}})", extreme({"least": min, "greatest": max}[t[0]]), t[1], t[2])
        ),
        st.tuples(truths, numbers, numbers).map(lambda t: combined("if({}, {}, {})", chosen, *t)),
        st.tuples(truths, numbers, numbers).map(lambda t: combined("(case when {} then {} else {} end)", chosen, *t)),
    )


def comparisons(numbers):
    """Return strategies of truth values from numbers, texts and truth columns."""

    def compare(name):
        return lambda a, b: lifted(COMPARE[name])(known(a), known(b))

    words = st.sampled_from(WORDS).map(lambda word: ("'" + word.replace("'", "''") + "'", lambda row: word))
    return st.one_of(
        column("flag"),
        st.tuples(st.sampled_from([*COMPARE]), numbers, numbers).map(
            lambda t: combined(f"({{}} {t[0]} {{}})", compare(t[0]), t[1], t[2])
        ),
        st.tuples(st.sampled_from(["=", "!="]), column("word"), words).map(
            lambda t: combined(f"({{}} {t[0]} {{}})", lifted(COMPARE[t[0]]), t[1], t[2])
        ),
    )


def truths_of(numbers):
    """Return strategies of truth values."""
    simple = comparisons(numbers)
    return st.one_of(
        simple,
        st.tuples(st.sampled_from(["and", "or"]), simple, simple).map(
            lambda t: combined(f"({{}} {t[0]} {{}})", both if t[0] == "and" else either, t[1], t[2])
        ),
        simple.map(lambda part: combined("(not {})", lifted(operator.not_), part)),
    )


LEAVES = st.one_of(*(column(name) for name in ("lon", "count", "level")), number_literals())
EXPRESSIONS = st.recursive(LEAVES, lambda numbers: with_numbers(numbers, truths_of(numbers)), max_leaves=8)


def bin_of(value, edges):
    """Return the number of the bin, or how a value lies outside: the definition, edge by edge."""
    value = known(value)
    if value is None:
        return None
    if value < edges[0] or value > edges[-1]:
        return "below" if value < edges[0] else "above"
    return max(i for i in range(len(edges) - 1) if edges[i] <= value)
