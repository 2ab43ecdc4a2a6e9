"""Checks a result from its counts to its sentence, layer by layer, with exact fractions and ball arithmetic alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from flint import ctx

from .all_policies import check_all, read_all
from .bets import check_bets, half_spaces_from_bets
from .bracket import Side, check_brackets, check_support
from .chain import read_chain
from .claim import (
    CERTIFICATE,
    WITNESS,
    Claim,
    about,
    check_budget,
    check_guarantee,
    check_sentence,
    read_files,
    spent_by_set,
)
from .comparison import check_same_question
from .counts import CountedRows, read_data
from .enclosure import read_enclosure
from .evidence import Likelihood, read_likelihood
from .half_spaces import HalfSpace, check_inside, half_spaces_from_space, half_spaces_from_tangents
from .intervals import ONCE, check_once, earlier_counts, half_spaces_from_intervals
from .laws import check_laws, check_points
from .misfit import check_parts
from .reading import Part, Rejected, limited_work, require
from .studies import check_studies, half_spaces_from_studies
from .table_check import TABLE_LAYERS, TABLE_ROWS, check_table
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
    "data": "counts, space and law are those of the data and the model in the folder",
    "log": "counts, their order and all settings are those that your data lead to, counted again by your model",
    "directions": "bets are along gradients that were found before the data they are used on",
    "trials": "no run of the model tries an event twice whose interval rests on that",
    "model": "space, rows, direction and the chain of the policy are those of your model, which was read again",
}
CHAIN = "that the chain is that of the property, the model and the policy in policy.csv"
SPACE = "that rows and parameter space are those of the model"
ALONE = "that there is no other policy, as the answer says what the value is"
COUNTS = "that the counts are those of the data"
SETTINGS = "that the settings of the method were fixed before the data (list in verify.md)"
AUTOMATON = "that the file with the automaton, which the objective names, is the one that was meant"
TRUSTED = (CHAIN, SPACE, COUNTS, SETTINGS)
ASKED = "that property, options and announced policies were chosen before the data were looked at"
SETTLED = {
    "model": (CHAIN, SPACE, TABLE_ROWS, ALONE, "policy.csv", "rival.csv"),
    "data": ("data.npz",),
    "log": ("data.npz", COUNTS, SETTINGS),
}
"""What need not be trusted, and is not unchecked any more, if a layer holds that not all reports have."""

OTHER_ENTRIES = "entries of certificate.json that are not printed here"
OFF = "those of one point of the space, in total variation, in the data as where the policy is run"
PAID = "the sums of rewards: that values lie within their ranges, with the means of the chain, wherever a step leads"


@dataclass
class Report:
    """The layers that hold, and the first step that does not."""

    passed: list[str] = field(default_factory=list)
    broken: Rejected | None = None
    sentence: str = ""
    objective: str = ""
    assumed: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)  # files, and what else a reader might take for checked
    kind: str = "parameters"  # of the witness

    def hold(self, name: str) -> None:
        """Note that a layer holds, and what it settles."""
        self.passed.append(name)
        self.trusted = [text for text in self.trusted if text not in SETTLED.get(name, ())]
        self.trusted += [ASKED] if name == "log" else []
        self.unchecked = [text for text in self.unchecked if text not in SETTLED.get(name, ())]

    def layer(self, name: str) -> AbstractContextManager[None]:
        """Return a context in which a step that does not hold is one of a layer, which holds otherwise."""
        return _layer(name, self)

    def to_dict(self) -> dict[str, object]:
        """Return it ready for JSON."""
        told = self.broken
        return {
            "schema": "plumdp/verification/1",
            "verified": self.broken is None,
            "passed": list(self.passed),
            "broken": None if told is None or not told.is_broken else {"layer": told.layer, "step": str(told)},
            "not_compared": None if told is None or told.is_broken else {"layer": told.layer, "step": str(told)},
            "sentence": self.sentence,
            "objective": self.objective,
            "assumed": list(self.assumed),
            "trusted": list(self.trusted),
            "not_checked": list(self.unchecked),
        }

    def __str__(self) -> str:
        argument = ARGUMENTS[self.kind]
        lines = [f"{name:10} ok  {argument.layers[name]}" for name in self.passed]
        if self.broken is not None:
            verdict = "BROKEN " if self.broken.is_broken else "could not compare:"
            return "\n".join([*lines, f"{self.broken.layer:10} {verdict} {self.broken}"])
        lines += [f"verified: {self.sentence}", f"of: {self.objective}"]
        lines += [f"assuming: {text}" for text in self.assumed]
        lines += [f"trusted: {text}" for text in self.trusted]
        return "\n".join([*lines, f"not checked: {', '.join([*self.unchecked, OTHER_ENTRIES])}"])


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
    report.hold(name)


def _verify(folder: Path, report: Report) -> None:
    with report.layer("files"):
        claim, witness = read_files(folder)
        report.unchecked = sorted(file.name for file in folder.iterdir() if file.name not in (CERTIFICATE, WITNESS))
    check_claim(claim, witness, report)


def check_claim(claim: Claim, witness: Part, report: Report) -> None:
    """Go through all layers after that of the files, by the argument for the kind of the witness."""
    kind = witness["kind"].text() if "kind" in witness else "parameters"
    if kind not in ARGUMENTS:
        raise Rejected(f"verify does not know witnesses of the kind {kind[:40]!r}", "files")
    report.kind, report.trusted, report.objective = kind, list(ARGUMENTS[kind].trusted), about(claim)
    report.trusted += [AUTOMATON] if "HOA" in report.objective else []
    with limited_work():
        proved = ARGUMENTS[kind].check(claim, witness, report)
    with report.layer("sentence"):
        report.sentence = check_sentence(proved, witness)


def check_parameters(claim: Claim, witness: Part, report: Report) -> Claim:
    """Return the claim that is proved by a set of parameters, and functions of them."""
    with report.layer("budget"):
        uses_order, is_fixed = _uses_order(witness["set"]), _needs_fixed(witness)
        report.assumed += check_guarantee(claim, witness["data"], uses_order=uses_order, is_fixed=is_fixed)
        check_budget(claim, witness, spent_by_set(witness))
    with report.layer("counts"):
        data = read_data(witness)
        parts = policies_of(claim, witness)
        chains = [read_chain(part["chain"], data.names) for part in parts]
        for other in parts[1:]:
            check_same_question(witness["chain"], other["chain"])
        everything = None if claim.all_policies is None else read_all(witness, data.names)
        report.trusted += _trusted(claim, witness, data)
    with report.layer("bets"):
        check_laws(witness["set"], data)
        if witness["set"]["bets"].value is not None:
            check_bets(witness["set"]["bets"], data)
            check_points(witness["set"]["bets"], data, witness["set"]["space_law"])
    with report.layer("set"):
        likelihoods = [read_likelihood(part, data) for part in witness["set"]["likelihoods"]]
        half_spaces = half_spaces_of(witness, data, likelihoods)
        intervals = witness["set"]["intervals"]
        rests = [check_once(intervals, data, chain) for chain in chains if intervals.value is not None]
        report.trusted += [ONCE] if any(rests) else []
        report.trusted += earlier_counts(intervals) if intervals.value is not None else ()
        enclosure = read_enclosure(witness["set"]["ball"], data, half_spaces, likelihoods)
        check_inside(witness["set"]["ball"], data, half_spaces, likelihoods)
    with report.layer("values"):
        sides = []
        for part, chain in zip(parts, chains, strict=True):
            sides.append(Side(chain, read_functions(part["values"], chain, enclosure.dimension)))
            check_functions(part["values"], chain, enclosure, sides[-1].functions, data.misfit)
        if everything is not None and claim.all_policies is not None:
            sides.append(check_all(witness["all_policies"], everything, enclosure, claim.all_policies, data.misfit))
    with report.layer("bracket"):
        if "support" in witness:
            check_support(witness["support"], data.names, enclosure, data.misfit)
        return check_brackets(witness, sides, enclosure, claim)


def _uses_order(part: Part) -> bool:
    """Return whether a set needs data in an order that is known."""
    return part["bets"].value is not None or "main" in [each["data"].text() for each in part["likelihoods"]]


def _needs_fixed(witness: Part) -> bool:
    """Return whether some part of the set needs numbers of trials, or of runs, that were fixed."""
    intervals = witness["set"]["intervals"]
    if intervals.value is None or intervals["method"].text() in ("beta-binomial", "tolerant"):
        return False
    is_independent = witness["data"]["sampling"].text() == "independent"
    return is_independent or any(item["once"].truth() for item in intervals["list"])


def _trusted(claim: Claim, witness: Part, data: CountedRows) -> Iterator[str]:
    """Yield what is trusted of some kinds of data only, after checks of what it is said of."""
    if "the value is" in claim.certificate.value.get("answer", {}).get("sentence", ""):
        yield ALONE
    if data.misfit:
        check_parts(witness)
        yield f"that no row is off by more than {float(data.misfit):g} from {OFF}"
    if data.rewards:
        yield PAID
    yield from check_studies(claim.certificate, witness, data.names)


def policies_of(claim: Claim, witness: Part) -> list[Part]:
    """Return the parts with a chain and its values: that of the policy, and of the one that it is compared with."""
    require("comparison" not in witness or claim.comparison is not None, "the certificate compares no policies")
    return [witness] if claim.comparison is None else [witness, witness["comparison"]]


def half_spaces_of(witness: Part, data: CountedRows, likelihoods: Sequence[Likelihood]) -> list[HalfSpace]:
    """Return the half-spaces of space, intervals, studies, bets and likelihoods, in the order that multipliers use."""
    part = witness["set"]
    drawn = half_spaces_from_intervals(part["intervals"], data) if part["intervals"].value is not None else ()
    studies = half_spaces_from_studies(part["studies"], data.names) if "studies" in part else ()
    bets = half_spaces_from_bets(part["bets"], data) if part["bets"].value is not None else ()
    tangents = half_spaces_from_tangents(part["tangents"], data, likelihoods)
    return [*half_spaces_from_space(witness, data.names), *drawn, *studies, *bets, *tangents]


@dataclass(frozen=True)
class Argument:
    """A function that proves the bracket of a claim layer by layer, the words of its layers, and what it trusts."""

    check: Callable[[Claim, Part, Report], Claim]
    layers: Mapping[str, str]
    trusted: Sequence[str]


ARGUMENTS = {
    "parameters": Argument(check_parameters, LAYERS, TRUSTED),
    "table": Argument(check_table, LAYERS | TABLE_LAYERS, (CHAIN, TABLE_ROWS, COUNTS, SETTINGS)),
}
"""The arguments by the kind of a witness, which is one of parameters if it does not say so."""
