"""Comparisons of two policies: the bounds on the first's value less the second's, and the sentence they lead to.

The certificate is of one of them. The witness has the chain of the other in its part ``comparison``, with functions for
its values, so that a difference of functions bounds the difference of values at every point of the set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .reading import Exact, Part, require
from .words import one_by_one, shortest

Ends: TypeAlias = tuple[Exact | None, Exact | None]
"""The lower and the upper end of a bracket; None is one that claims nothing."""

_LONGEST_NAME, _SHOWN = 300, 60
_IN_NAMES = " _-.,:;/\\()[]{}<>=+*&|!?@#~^'"  # besides letters and digits: neither quotation marks nor %
_ORDINALS = ("the first policy", "the second policy")
_PLAIN = (*_ORDINALS, "the recommended policy", "the baseline", "practice")
_NAMED = {"names", "margin", "first", "second", "difference", "policy", "assuming"}


@dataclass(frozen=True)
class Comparison:
    """What a certificate says of another policy."""

    sign: int  # 1 if the certificate is of the first policy, -1 if of the second
    other: Ends  # of the value of the other one
    difference: Ends  # of the value of the first less that of the second
    margin: Exact  # how much worse a policy may be without being called worse


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
    others, margin = set(part.names()) - _NAMED, part["margin"].number()
    require(not others, f"{part.place}: verify does not know {', '.join(sorted(others))[:40]}")
    require(margin >= 0, f"{part.place}: the margin is negative")
    sign, other = (1, ends["second"]) if which == "first" else (-1, ends["first"])
    return Comparison(sign, other, ends["difference"], margin)


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


def comparison_in_words(compared: Comparison, names: list[str], direction: str, *, is_share: bool, unit: str) -> str:
    """Return which policy has the larger value and by how much, and what that means for both, in words."""
    (lower, upper), (first, second) = compared.difference, map(quoted, names)
    least, most = (lower, upper) if direction == "max" else turned(lower, upper)
    is_better, is_worse = least is not None and least > 0, most is not None and most < 0
    margin, is_near = compared.margin, least is not None and least > -compared.margin
    is_same = is_near and most is not None and most < margin
    within = f"{shortest(margin)}{unit}"
    known = f"{first} is better than {second}" if is_better else f"{second} is better than {first}" if is_worse else ""
    if is_same:
        known = f"{known}, but only within {within}" if known else f"{first} and {second} are the same within {within}"
    elif is_near and not known:
        known = f"{first} is not worse than {second} by more than {within}"
    if upper is not None and upper <= 0:
        first, second, (lower, upper) = second, first, turned(lower, upper)
    words = f" percentage points{unit}" if is_share else unit
    low, high = one_by_one(
        *(None if end is None else end * (100 if is_share else 1) for end in (lower, upper)), is_share=False
    )
    if lower is not None and lower >= 0:
        ends = f"{low} to {high}{words} larger" if high is not None else f"at least {low}{words} larger"
    else:
        low, high = ("any number" if end is None else f"{end.lstrip('-')}{words}" for end in (low, high))
        ends = f"between {low} smaller and {high} larger"
    return f"{known or 'Inconclusive'}: under {first} the value is {ends} than under {second}"


def turned(lower: Exact | None, upper: Exact | None) -> Ends:
    """Return the bracket of the negative."""
    return None if upper is None else -upper, None if lower is None else -lower
