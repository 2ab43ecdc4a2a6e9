"""Evidence from other studies: successes and trials of an event whose probability is affine in the parameters.

The number of trials of a study was fixed, so that its interval is that of Clopper and Pearson, with a part of the error
of its own. That the expression has the same value in the study as in the data is trusted, and said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .half_spaces import ProvedHalfSpace, between
from .intervals import clopper_pearson
from .polynomials import parse
from .reading import Part, Rejected, require

_LONGEST = 1000  # characters of an expression


def check_studies(certificate: Part, witness: Part, names: list[str]) -> list[str]:
    """Return what is trusted of each study, after checks that they are those that the certificate lists."""
    listed = certificate["options"]["evidence"]
    counts = {} if listed.value is None else {text: listed[text].wholes(2) for text in listed.names()}
    given, trusted = set(), []
    for study in witness["set"]["studies"]["list"] if "studies" in witness["set"] else ():
        text, successes, trials = study["text"].text(), study["successes"].whole(), study["trials"].whole()
        require(_is_expression(text, names), f"{study.place}: the text is not an expression of the parameters")
        require(text not in given, f"{study.place}: the study of {text} is given twice")
        given.add(text)
        same = counts.get(text) == [successes, trials]
        require(same, f"{study.place}: the certificate does not list this study of {text}")
        require(successes <= trials, f"{study.place}: there are more successes than trials")
        polynomial = study["polynomial"].text()
        require(_is_same(text, polynomial, names), f"{study.place}: {text} is not {polynomial[:60]}")
        what = text if text == polynomial else f"{text}, or {polynomial},"
        trusted.append(
            f"that {what} is the same in another study as in these data, with {successes:,} successes "
            f"in {trials:,} independent trials, whose number was fixed"
        )
    require(given == set(counts), "the certificate lists a study that the witness does not have")
    return trusted


def _is_expression(text: str, names: list[str]) -> bool:
    """Return whether a text is short, and has names of parameters, numbers and signs alone."""
    is_plain = len(text) <= _LONGEST and all(c.isalnum() or c in "_ .+-*/^()" for c in text)
    return is_plain and set(re.findall(r"(?<!\w)[^\W\d]\w*", text)) <= set(names)


def _is_same(text: str, polynomial: str, names: list[str]) -> bool:
    """Return whether a text may be a polynomial: one that is not written as polynomials are here is trusted."""
    found = parse(polynomial, names)
    try:
        return parse(text, names) == found
    except Rejected:
        return True


def half_spaces_from_studies(part: Part, names: list[str]) -> Iterator[ProvedHalfSpace]:
    """Yield both sides of the interval of each study, which is proved from its trials."""
    error = part["error"].number()
    for study in part["list"]:
        successes, trials = study["successes"].whole(), study["trials"].whole()
        lower, upper = study["lower"].number(), study["upper"].number()
        for end, is_trivial, side in ((lower, lower <= 0, -1), (upper, upper >= 1, 1)):
            holds = is_trivial or (0 < end < 1 and clopper_pearson(successes, trials, end, error, side))
            require(holds, f"{study.place}: the interval from {trials} trials is too narrow")
        yield from between(lower, parse(study["polynomial"].text(), names), upper, len(names))
