"""Comparisons of two policies: the bounds on the first's value less the second's, and the sentence that follows.

The certificate is of one of them. The witness has the chain of the other in its part ``comparison``, with functions for
its values, so that a difference of functions bounds the difference of values at every point of the set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from .reading import Exact, Part, require

Ends: TypeAlias = tuple[Exact | None, Exact | None]
"""The lower and the upper end of a bracket; None is one that claims nothing."""

_LONGEST_NAME, _SHOWN = 300, 60
_IN_NAMES = " _-.,:;/\\()[]{}<>=+*&|!?@#~^'"  # besides letters and digits: neither quotation marks nor %
_PLAIN = ("the first policy", "the second policy", "the policy found", "the baseline", "today's practice")
_AMOUNT = (
    r" is better(?:, but only within the margin of (?P<margin>\S+))?: its value is (?P<word>larger|smaller) "
    r"by at least (?P<lower>\S+) and at most (?P<upper>\S+), with confidence (?P<confidence>\S+) %\."
)
_BEGINNINGS = {  # a margin, and both names
    "unknown": "Not yet known: the value of {1} less that of {2} lies",
    "same": "{1} and {2} are the same within {0}: the value of {1} less that of {2} lies",
    "not worse": "{1} is not worse than {2} by more than {0}: the value of {1} less that of {2} lies",
}
_BETWEEN = r" between (?P<lower>\S+) and (?P<upper>\S+), with confidence (?P<confidence>\S+) %\."
_MARGIN = "\0"  # not in names


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
    for name in names:
        is_name = 0 < len(name) <= _LONGEST_NAME and all(c.isalnum() or c in _IN_NAMES for c in name)
        require(is_name, f"{part.place}: {name[:40]!r} is not a name")
    return names


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


def read_sentence(part: Part, direction: str) -> ComparisonClaim:
    """Return what the sentence of a comparison says; the better policy is the one whose value is on the right side."""
    sentence, names = part["sentence"].text(), names_of(part)
    shown = [quoted(name) for name in names]
    for kind, form in _BEGINNINGS.items():
        begin = re.escape(_capital(form.format(_MARGIN, *names))).replace(_MARGIN, r"(?P<margin>\S+)")
        found = re.fullmatch(f"(?P<begin>{begin}){_BETWEEN}", sentence)
        if found is not None:
            margin = found.groupdict().get("margin")
            text = _capital(form.format(margin, *shown)) + sentence[found.end("begin") :]
            ends = found["lower"], found["upper"], found["confidence"]
            return ComparisonClaim(1, False, *ends, text, margin, kind == "same")
    better = [re.fullmatch(re.escape(_capital(name)) + _AMOUNT, sentence) for name in names]
    said, which = better[0] or better[1], 0 if better[0] else 1
    if said is None:
        part["sentence"].refuse("the sentence is not one that verify knows")
    word = "larger" if direction == "max" else "smaller"
    require(said["word"] == word, f"{part.place}: the sentence calls the wrong side better")
    sign, ends = (-1) ** which * (1 if direction == "max" else -1), (said["lower"], said["upper"], said["confidence"])
    text = _capital(shown[which]) + sentence[len(names[which]) :]
    return ComparisonClaim(sign, True, *ends, text, said["margin"], said["margin"] is not None)


def _capital(name: str) -> str:
    return "The " + name[4:] if name.startswith("the ") else name
