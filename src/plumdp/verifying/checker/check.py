"""Checks a result from its counts to its sentence, layer by layer, with exact fractions and ball arithmetic alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from flint import ctx

from .balls import of_balls
from .bets import check_bets, of_bets
from .bracket import check_bracket
from .chain import read_chain
from .claim import Claim, check_budget, check_sentence, read_files
from .counts import Data, read_data
from .enclosure import read_enclosure
from .evidence import Likelihood, read_likelihood
from .half_spaces import HalfSpace, of_space, of_tangents
from .intervals import ONCE, check_once, of_intervals
from .laws import check_laws, check_points
from .least_squares import of_ellipsoid
from .quotients import of_quotients
from .reading import Part, Rejected
from .values import check_functions, read_functions

_BITS = 128

LAYERS = {
    "files": "files are those that were written, and the kind of result is known",
    "budget": "the error is divided, and no part spends more than its share",
    "counts": "rows and classes have probabilities that sum to one, and are counted once",
    "bets": "bets and laws follow from what was seen before the data they are used on",
    "set": "the set of parameters follows from the counts",
    "values": "the functions are below and above the policy's value at every point of the set",
    "bracket": "the bracket follows from the functions and the set",
    "sentence": "the printed sentence follows from the bracket",
    "directions": "bets are along gradients that were found before the data they are used on",
    "trials": "no run of the model tries an event twice whose interval rests on that",
    "model": "the chain is that of the model, which was read again, at random points",
}
TRUSTED = (
    "that the chain is that of the model under this policy, and the space that of the model",
    "the counts: that they are those of the data, and the data as the certificate's assumptions say",
    "that the law of the space, the directions of bets and the events that are counted were fixed by the model and by "
    "what was seen before",
)


@dataclass
class Report:
    """The layers that hold, and the first step that does not."""

    passed: list[str] = field(default_factory=list)
    broken: Rejected | None = None
    sentence: str = ""
    trusted: list[str] = field(default_factory=lambda: list(TRUSTED))

    def to_dict(self) -> dict[str, object]:
        """Return it ready for JSON."""
        return {
            "schema": "plumdp/verification/1",
            "verified": self.broken is None,
            "passed": list(self.passed),
            "broken": None if self.broken is None else {"layer": self.broken.layer, "step": str(self.broken)},
            "sentence": self.sentence,
            "trusted": list(self.trusted),
        }

    def __str__(self) -> str:
        lines = [f"{name:10} ok  {LAYERS[name]}" for name in self.passed]
        if self.broken is not None:
            return "\n".join([*lines, f"{self.broken.layer:10} BROKEN  {self.broken}"])
        return "\n".join([*lines, f"verified: {self.sentence}", *(f"trusted: {text}" for text in self.trusted)])


def verify(folder: Path | str) -> Report:
    """Return which layers of the proof in the folder of a result hold."""
    report = Report()
    with exactly():
        try:
            _verify(Path(folder), report)
        except Rejected as error:
            report.broken = error
        except RecursionError:
            report.broken = Rejected("something is nested too deeply", "counts")
    return report


@contextmanager
def exactly() -> Iterator[None]:
    """Calculate with as many bits as proofs need, here and nowhere else."""
    bits, ctx.prec = ctx.prec, _BITS
    try:
        yield
    finally:
        ctx.prec = bits


@contextmanager
def _layer(name: str, report: Report) -> Iterator[None]:
    try:
        yield
    except Rejected as error:
        error.layer = error.layer or name
        raise
    report.passed.append(name)


def _verify(folder: Path, report: Report) -> None:
    with _layer("files", report):
        claim, witness = read_files(folder)
    check_claim(claim, witness, report)


def check_claim(claim: Claim, witness: Part, report: Report) -> None:
    """Go through all layers after that of the files."""
    with _layer("budget", report):
        check_budget(claim, witness)
    with _layer("counts", report):
        data = read_data(witness)
        chain = read_chain(witness["chain"], data.names)
    with _layer("bets", report):
        check_laws(witness["set"], data)
        if witness["set"]["bets"].value is not None:
            check_bets(witness["set"]["bets"], data)
            check_points(witness["set"]["bets"], data, witness["set"]["space_law"])
    with _layer("set", report):
        likelihoods = [read_likelihood(part, data) for part in witness["set"]["likelihoods"]]
        half_spaces = half_spaces_of(witness, data, likelihoods)
        intervals = witness["set"]["intervals"]
        report.trusted += [ONCE] if intervals.value is not None and check_once(intervals, data, chain) else []
        enclosure = read_enclosure(witness["set"]["ball"], data, half_spaces, likelihoods)
    with _layer("values", report):
        functions = read_functions(witness["values"], chain, enclosure.dimension)
        check_functions(witness["values"], chain, enclosure, functions)
    with _layer("bracket", report):
        proved = check_bracket(witness["bracket"], chain, enclosure, functions, claim)
    with _layer("sentence", report):
        report.sentence = check_sentence(proved, witness)


def half_spaces_of(witness: Part, data: Data, likelihoods: Sequence[Likelihood]) -> list[HalfSpace]:
    """Return the half-spaces of space, data, bets and likelihoods, in the order that multipliers use."""
    part, half_spaces = witness["set"], half_spaces_of_data(witness, data)
    half_spaces += of_quotients(part["quotients"], data.names, half_spaces)
    half_spaces += of_bets(part["bets"], data) if part["bets"].value is not None else []
    return [*half_spaces, *of_tangents(part["tangents"], data, likelihoods)]


def half_spaces_of_data(witness: Part, data: Data) -> list[HalfSpace]:
    """Return those of the space, and of sets that are drawn from the counts at once, some of which are curved."""
    part, space = witness["set"], list(of_space(witness, data.names))
    drawn = of_intervals(part["intervals"], data) if part["intervals"].value is not None else ()
    balls = of_balls(part["balls"], data) if part["balls"].value is not None else ()
    ellipsoid = of_ellipsoid(part["ellipsoid"], data, space) if part["ellipsoid"].value is not None else ()
    return [*space, *drawn, *balls, *ellipsoid]
