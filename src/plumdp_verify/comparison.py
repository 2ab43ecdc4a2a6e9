"""Comparisons of two policies: the bounds on the first's value less the second's, and the sentence that follows.

The certificate is of one of them. The witness has the chain of the other in its part ``comparison``, with functions for
its values, so that a difference of functions bounds the difference of values at every point of the set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from .reading import Exact, Part, Rejected, require

Ends: TypeAlias = tuple[Exact | None, Exact | None]
"""The lower and the upper end of a bracket; None is one that claims nothing."""

_LONGEST_NAME, _SHOWN = 300, 60
_IN_NAMES = " _-.,:;/\\()[]{}<>=+*&|!?@#~^'"  # besides letters and digits: neither quotation marks nor %
_ORDINALS = ("the first policy", "the second policy")
_PLAIN = (*_ORDINALS, "the recommended policy", "the baseline", "today's practice")
_KNOWN = {  # without an end: what is said of policies of which neither is better
    "unknown": "Inconclusive",
    "same": "{first} and {second} are the same within {margin}{unit}",
    "not worse": "{first} is not worse than {second} by more than {margin}{unit}",
}
_LIES = ": the value of {first} less that of {second} lies between {lower} and {upper}{unit}"
_SPOKEN = ": {first} {verb} between {lower}{unit} less and {upper}{unit} more than {second}"  # {lower} is its negative
_ONLY = ", but only within the margin of {margin}{unit}"
_BETTER = (
    "{first} is better{only}: its value is {larger} by at least {lower} and at most {upper}",
    "{first} is better{only}: it {verb} {lower} to {upper}{unit} {more} than {second}",
)
_SURELY = ", with confidence {confidence} %."
_NUMBERS = ("margin", "lower", "upper", "confidence", "worst")


@dataclass(frozen=True)
class Comparison:
    """What a certificate says of another policy."""

    sign: int  # 1 if the certificate is of the first policy, -1 if of the second
    other: Ends  # of the value of the other one
    difference: Ends  # of the value of the first less that of the second


@dataclass(frozen=True)
class ComparisonClaim:
    """What the sentence of a comparison says of the value of one policy less that of another."""

    sign: int  # -1 if it is that of the second less the first
    is_better: bool  # whether it calls the policy better whose value comes first
    lower: str
    upper: str
    confidence: str
    text: str  # the sentence, with names in quotation marks
    margin: str | None = None  # by more than which the first policy is not worse
    is_same: bool = False  # nor better


def read_ends(lower: Part, upper: Part) -> Ends:
    """Return the ends of a bracket, in their order."""
    low = None if lower.value == "-infinity" else lower.number()
    high = None if upper.value == "infinity" else upper.number()
    require(low is None or high is None or low <= high, f"{lower.place.rpartition(':')[0]}: lower is above upper")
    return low, high


def read_comparison(part: Part, own: Ends) -> Comparison:
    """Return a comparison with another policy, in which the certificate's own bounds are those of the certificate."""
    which = part["policy"].text()
    require(which in ("first", "second"), f"{part.place}: the policy is neither the first nor the second")
    ends = {name: read_ends(part[name][0], part[name][1]) for name in ("first", "second", "difference")}
    require(ends[which] == own, f"{part.place}: the bounds of the {which} policy are not those of the certificate")
    names_of(part)
    return Comparison(*((1, ends["second"]) if which == "first" else (-1, ends["first"])), ends["difference"])


def names_of(part: Part) -> list[str]:
    """Return the names of both policies, which differ, and in which no other sentence hides."""
    names = [name.text() for name in part["names"]]
    require(len(set(names)) == len(names) == 2, f"{part.place}: two policies need two names")
    for name, other in zip(names, reversed(_ORDINALS), strict=True):
        check_name(name, part.place)
        require(name != other, f"{part.place}: {name} is in the place of the other one")
    return names


def check_name(name: str, place: str, more: str = "") -> None:
    """Require that a name, or a unit, has no characters in which another sentence may hide."""
    is_name = 0 < len(name) <= _LONGEST_NAME and all(c.isalnum() or c in _IN_NAMES + more for c in name)
    require(is_name, f"{place}: {name[:40]!r} is not a name")


def named_files(part: Part) -> list[tuple[str, str]]:
    """Return the file of each policy with its name, if that says more than which one comes first."""
    files = ("policy.csv", "rival.csv") if part["policy"].text() == "first" else ("rival.csv", "policy.csv")
    return [(file, name) for file, name in zip(files, names_of(part), strict=True) if name not in _ORDINALS]


def called(file: str, name: str) -> str:
    """Return in words that a file has the policy of a name, which nothing in a result proves."""
    return f"that {file} is the policy that is called {quoted(name)}"


def quoted(name: str) -> str:
    """Return a name as it is printed: one that somebody gave is in quotation marks, so that it ends where they end."""
    return name if name in _PLAIN else f'"{name[:_SHOWN]}{"…" if len(name) > _SHOWN else ""}"'


def check_same_question(one: Part, other: Part) -> None:
    """Require that two chains ask the same: of the same kind, from the same state, with runs that are over in the same.

    States with the same values of all variables, at the same step, are the same.
    """
    for name in ("kind", "complement", "discount"):
        require(one[name].value == other[name].value, f"{other.place}: {name} is not that of the other chain")
    states, others = _states(one), _states(other)
    start, its = (each[part["initial"].whole(len(each))] for each, part in ((states, one), (others, other)))
    require(start == its, f"{other.place}: the initial state is not that of the other chain")
    ends, its_ends = _ends(one, states), _ends(other, others)
    for state in ends.keys() & its_ends.keys():
        require(ends[state] == its_ends[state], f"{other.place}: runs are over in other states than in the other chain")


def _states(part: Part) -> list[str]:
    """Return what tells the states of a chain apart."""
    n, columns = len(part["rows"]), {name: part["states"][name] for name in sorted(part["states"].names())}
    if part["step"].value is not None:
        columns["number of the step"] = part["step"]
    for column in columns.values():
        require(len(column) == n, f"{column.place}: expected {n} items, found {len(column)}")
    return [repr([(name, column.value[i]) for name, column in columns.items()]) for i in range(n)]


def _ends(part: Part, states: list[str]) -> dict[str, str]:
    """Return how runs end in each state: in a target, in a state to avoid, or not."""
    result = dict.fromkeys(states, "")
    for name in ("target", "avoid"):
        result |= {states[node.whole(len(states))]: name for node in part[name]}
    return result


def read_sentence(part: Part, direction: str, unit: str) -> ComparisonClaim:
    """Return what the sentence of a comparison says; the better policy is the one whose value is on the right side.

    It must be one that is written here from the names, the unit and four numbers.
    """
    sentence, names, is_max = part["sentence"].text(), names_of(part), direction == "max"
    words = {"verb": "yields" if is_max else "costs", "more": "more" if is_max else "less"}
    words |= {"larger": "larger" if is_max else "smaller"}
    forms = [(kind, 0, known + end) for kind, known in _KNOWN.items() for end in (_LIES, _SPOKEN)[: 1 + bool(unit)]]
    for which, only in ((0, ""), (1, ""), (0, _ONLY), (1, _ONLY)):
        forms += [("better", which, form.replace("{only}", only)) for form in _BETTER[: 1 + bool(unit)]]
    for kind, which, form in forms:
        both, shown = ((each[::-1] if which else each) for each in (names, [quoted(name) for name in names]))
        told = numbers_in(sentence, form + _SURELY, first=both[0], second=both[1], unit=unit and f" {unit}", **words)
        if told is None:
            continue
        said = words | told | {"first": shown[0], "second": shown[1], "unit": unit and f' "{unit}"'}
        lower = f"-{told['lower']}" if _SPOKEN in form else told["lower"]
        sign = (-1) ** which * (1 if is_max or kind != "better" else -1)
        is_same = kind == "same" or (kind == "better" and "margin" in told)
        ends, text = (lower, told["upper"], told["confidence"]), _capital((form + _SURELY).format(**said))
        return ComparisonClaim(sign, kind == "better", *ends, text, told.get("margin"), is_same)
    raise Rejected(f"{part.place}: the sentence is not one that verify knows")


def numbers_in(sentence: str, form: str, **words: str) -> dict[str, str] | None:
    """Return the numbers in a sentence by their names, or None if it is not written in a form with some words."""
    marks = {name: chr(i) for i, name in enumerate(_NUMBERS)}  # which no words have
    pattern = re.escape(_capital(form.format(**marks, **words)))
    for name, mark in marks.items():
        pattern = pattern.replace(mark, f"(?P<{name}>\\S+)")
    found = re.fullmatch(pattern, sentence)
    return None if found is None else found.groupdict()


def _capital(name: str) -> str:
    return "The " + name[4:] if name.startswith("the ") else name
