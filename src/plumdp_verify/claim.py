"""The claim of a result: its files, what it says, the kinds of results that verify knows, and the printed sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from flint import fmpq

from .answers import Answer, answer_in_words, check_verdict, read_answer
from .comparison import (
    Comparison,
    called,
    check_name,
    comparison_in_words,
    named_files,
    names_of,
    quoted,
    read_comparison,
    read_ends,
)
from .reading import Exact, Part, Rejected, read_bytes, read_json, require
from .report import ALONE, OTHER_CHAIN
from .words import in_words, percent

CERTIFICATE, WITNESS, RIVAL = "certificate.json", "witness.json", "rival.csv"
_FILES = {CERTIFICATE, WITNESS, "policy.csv", "findings.json", "data.npz"}
FORMAT = "plumdp/witness/3"
N_PILOTS = 6  # that data which may have ended at will might have had; each has an equal part of the error
_OBJECTIVE = re.compile(
    r'(?:"[^"]*" *: *)?((?:P|S|LRA|R *(?:\{ *"[^"]*" *\})?) *(max|min)? *(?:max|min)? *= *\? *\[.*\]) *;?', re.DOTALL
)
_MAX_TEXT = 10_000
_MAX_SHARES = 50  # of the error
_MAX_TOTAL = 1_000_000_000  # bytes of all files
_GUARANTEES = ("finite-sample, anytime", "finite-sample, planned", "finite-sample, fixed N")  # each assumes more

_ASSUMED = (
    "the model is right for some values of its unknown numbers, both in the data and where the policy is run",
    "no step is missing because of its outcome, and actions were chosen from the state alone",
)
_PLANNED = "the amount of data was planned before any were seen"
_FIXED = {
    "independent": "the number of samples of each choice was fixed before any were seen",
    "trajectories": "runs are independent, all under one policy, and their number was fixed before any were seen",
    "adaptive": "what was sampled, and when it ended, did not depend on the data",
}


@dataclass(frozen=True)
class Claim:
    """What a certificate says; None is an end that claims nothing."""

    lower: Exact | None
    upper: Exact | None
    confidence: Exact
    certificate: Part
    comparison: Comparison | None = None  # with another policy
    answer: Answer | None = None  # to a threshold
    is_alone: bool = False  # whether it says of one policy what the value is, as if there were no other
    unit: str = ""  # in which it says that values are


def read_files(folder: Path) -> tuple[Claim, Part]:
    """Return the claim and its witness from the files of a result, whose hashes agree."""
    require(folder.is_dir(), f"{folder} is not a folder with a result")
    certificate = read_json(read_bytes(folder / CERTIFICATE), CERTIFICATE)
    hashes = certificate["hashes"]
    try:
        here = {file.name for file in folder.iterdir()} - {"report.html"}
    except OSError as error:
        raise Rejected(f"{folder} cannot be read: {error.strerror}") from None
    if WITNESS not in here:
        missing = Rejected("there is no witness.json: certify again with --witness")
        missing.is_broken = False  # nothing is claimed to be proved
        raise missing
    listed = set(hashes.names())
    require(here <= listed, f"the certificate does not list {', '.join(sorted(here - listed))}")
    others = sorted(here - _FILES - ({RIVAL} if "comparison" in certificate else set()))  # names would be printed
    require(not others, f"{', '.join(others)}: a result has no such file")
    content, total = b"", 0
    for name in [*sorted(listed - {CERTIFICATE, WITNESS}), WITNESS]:
        require("/" not in name and "\\" not in name and name in here, f"{name[:60]} is listed, but not there")
        content = read_bytes(folder / name)
        total += len(content)
        require(total <= _MAX_TOTAL, f"the files have more than {_MAX_TOTAL:,} bytes")
        require(_digest(content) == hashes[name].text(), f"{name} was changed since it was written")
    rest = {name: value for name, value in certificate.value.items() if name != "hashes"}
    own = _digest(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())
    require(own == hashes[CERTIFICATE].text(), f"{CERTIFICATE} was changed since it was written")
    witness = read_json(content, WITNESS)
    require(witness["format"].text() == FORMAT, f"{WITNESS}: the format is not {FORMAT}")
    return read_claim(certificate, witness), witness


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def read_claim(certificate: Part, witness: Part) -> Claim:
    """Return the claim, after refusing all kinds that are not known, and a witness of another claim."""
    status = certificate["status"].text()
    require(status in ("certified", "inconclusive"), f"verify does not know {status}")
    for name in ("ground", "rungs", "cap"):  # runs are not among the files, so that nothing shows what they earned
        require(name not in certificate, f"verify does not know bounds by whole runs ({name})")
    require(not certificate["model_tolerance"].number(), "verify does not know a model tolerance")
    answer = _read_answer(certificate) if "answer" in certificate else None
    unit = certificate["unit"].text() if "unit" in certificate else ""
    if unit:
        check_name(unit, f"{CERTIFICATE}: unit", "%°²³€$£¥")
        require(not certificate["objective"].text().startswith("P"), f"{CERTIFICATE}: probabilities have no unit")
    for name in ("objective", "direction", "lower", "upper", "confidence"):
        same = certificate[name].value == witness["claim"][name].value
        require(same, f"{WITNESS} is of another claim: {name} differs")
    _, direction = read_objective(certificate["objective"].text())
    require(
        certificate["direction"].text() == (direction or "max"),
        f"{CERTIFICATE}: the direction is not that of the objective",
    )
    require(len(certificate["assumptions"]) > 0, f"{CERTIFICATE}: there are no assumptions, and every result has some")
    confidence = certificate["confidence"].number()
    require(0 < confidence < 1, "certificate.json: the confidence is not between 0 and 1")
    ends = read_ends(certificate["lower"], certificate["upper"])
    is_alone = not direction or (answer is not None and answer.about == "only")
    comparison = read_comparison(certificate["comparison"], ends) if "comparison" in certificate else None
    return Claim(*ends, confidence, certificate, comparison, answer, is_alone, unit)


def _read_answer(certificate: Part) -> Answer:
    is_given = certificate["options"]["policy"].value == "given"
    return read_answer(certificate["answer"], certificate["objective"].text(), is_given)


def read_objective(objective: str) -> tuple[str, str]:
    """Return the text of an objective in one line, without a name, and its direction: none if there are no choices."""
    found = _OBJECTIVE.fullmatch(" ".join(objective.split())) if len(objective) <= _MAX_TEXT else None
    if found is None or not found[1].isprintable() or "//" in "".join(objective.split('"')[::2]):  # a comment
        raise Rejected(f"{CERTIFICATE}: the objective is not one that verify knows")
    return found[1], found[2] or ""


def trusted_words(claim: Claim) -> Iterator[str]:
    """Yield what nothing in a result proves of the words in its sentence."""
    yield from [ALONE] * claim.is_alone
    if claim.unit:
        yield f'that values are counted in "{claim.unit}"'
    yield from (called(*each) for each in files_named(claim))
    if claim.comparison is not None:
        yield OTHER_CHAIN


def files_named(claim: Claim) -> list[tuple[str, str]]:
    """Return the files of policies with what a result calls them, which nothing in it proves."""
    options, found = claim.certificate["options"], "the recommended policy"
    named = [] if options["policy"].value == "given" else [("policy.csv", found)]
    if "practice" in options and options["practice"].truth():
        require(not named, f"{CERTIFICATE}: practice is a policy that was given")
        named = [("policy.csv", "practice")]
    if claim.comparison is not None:
        named += named_files(claim.certificate["comparison"])
    return [*dict.fromkeys(named)]


def about(claim: Claim) -> str:
    """Return what a claim is about: the objective, the question, and which policy is called what."""
    certificate = claim.certificate
    text = read_objective(certificate["objective"].text())[0]
    if "answer" in certificate:
        asked, is_given = certificate["answer"]["question"].text(), certificate["options"]["policy"].value == "given"
        text = f"{text}, asked {'of policy.csv ' if is_given else ''}whether {' '.join(asked.split())}"
    if claim.comparison is not None:
        first, second = map(quoted, names_of(certificate["comparison"]))
        files = ("policy.csv", "rival.csv") if claim.comparison.sign > 0 else ("rival.csv", "policy.csv")
        text = f"{text}, where {first} is {files[0]} and {second} is {files[1]}"
    return text


def sentence_of(claim: Claim) -> str:
    """Return what is proved in a sentence, written from numbers and kinds: no sentence of a result is repeated in it.

    The bracket is the proved one, rounded outward, and what is said of it follows from that.
    """
    certificate, unit = claim.certificate, claim.unit and f' "{claim.unit}"'
    asked, direction = read_objective(certificate["objective"].text())
    is_share, sure = asked.startswith("P"), f"(confidence {percent(claim.confidence)})"
    _check_status(claim, is_share=is_share)
    if claim.answer is not None:
        question, own = " ".join(claim.answer.question.split()), (claim.lower, claim.upper)
        check_verdict(claim.answer, certificate["answer"].place, *own)
        proved = answer_in_words(claim.answer, *own, is_share=is_share, unit=unit)
        return f"{claim.answer.verdict.capitalize()} {sure}: {proved}; {question} was asked."
    policy = "" if claim.is_alone else " under policy.csv"
    said = f"{asked} is {in_words(claim.lower, claim.upper, is_share=is_share)}{unit}{policy} {sure}."
    if claim.comparison is None:
        return said
    names = names_of(certificate["comparison"])
    compared = comparison_in_words(claim.comparison, names, direction or "max", is_share=is_share, unit=unit)
    return f"{compared} {sure}. {said}"


def _check_status(claim: Claim, *, is_share: bool) -> None:
    """Require that a bracket which excludes values is not called inconclusive, nor one that excludes none certified.

    Of rewards it is not known here whether 0 is the least that there can be.
    """
    (lower, upper), certificate = (claim.lower, claim.upper), claim.certificate
    no_high = upper is None or (is_share and upper >= 1)
    certified, inconclusive = ((lower is None or (is_known and lower <= 0), no_high) for is_known in (is_share, True))
    if certificate["options"]["policy"].value == "given":  # either end answers
        is_empty, may_be_empty = all(certified), all(inconclusive)
    else:
        is_min = certificate["direction"].text() == "min"
        is_empty, may_be_empty = certified[is_min], inconclusive[is_min]
    is_certified = certificate["status"].text() == "certified"
    fits = not is_empty or lower == upper if is_certified else may_be_empty
    require(fits, "the status is not that of the bracket")


def check_budget(claim: Claim, witness: Part, spent: Iterable[tuple[str, int, Exact]]) -> None:
    """Require that shares sum to at most one, and that no part spends more: name, number of events, error of each."""
    error, shares = witness["budget"]["error"].number(), witness["budget"]["shares"]
    rounding = 1 + fmpq(1, 10**12)  # of shares to floats
    require(0 < error <= (1 - claim.confidence) * rounding, "the error is larger than one minus the confidence")
    require(len(shares.names()) <= _MAX_SHARES, f"the error is divided among more than {_MAX_SHARES} parts")
    parts = {name: shares[name].fraction() for name in shares.names()}
    require(sum(parts.values(), start=fmpq(0)) <= 1, "the shares of the error sum to more than one")
    left = {name: share * error * rounding for name, share in parts.items()}
    for name, number, of_each in spent:
        words = name.replace("_", " ")
        require(name in parts, f"{words}: there is no share of the error")
        require(of_each > 0, f"{words}: the error is not positive")
        left[name] -= number * of_each  # several parts may have a share together
        require(left[name] >= 0, f"{words}: more is spent than the share")


def check_guarantee(claim: Claim, data: Part, *, uses_order: bool, is_fixed: bool) -> list[str]:
    """Return what is assumed of the data, after a check that the certificate says so if their amount was planned."""
    is_planned = uses_order and data["order"].text() in ("planned", "short")
    said, sampling = claim.certificate["guarantee"].text(), data["sampling"].text()
    is_said = said in _GUARANTEES[2 if is_fixed else int(is_planned) :]
    require(is_said, "the proof needs data of a planned amount, and the certificate does not say so")
    require(sampling in _FIXED, f"data: the sampling {sampling[:40]!r} is not known")
    return [*_ASSUMED, *([_FIXED[sampling]] if is_fixed else [_PLANNED] if is_planned else [])]


def spent_by_set(witness: Part) -> Iterator[tuple[str, int, Exact]]:
    """Yield the parts of the set, how many events each has, and the error of each event."""
    part, order = witness["set"], witness["data"]["order"].text()
    for likelihood in part["likelihoods"]:
        is_main = likelihood["data"].text() == "main"
        name = "likelihood_after_pilot" if is_main else "likelihood_against_space"
        yield name, N_PILOTS if is_main and order == "open" else 1, likelihood["error"].number()
    if part["bets"].value is not None:
        yield "half_spaces", part["bets"]["directions"].whole(), part["bets"]["error"].number()
    if part["intervals"].value is not None:
        name = part["intervals"]["part"].text()
        require(name in ("intervals", "whole_set"), f"intervals have no part of the budget called {name[:40]!r}")
        yield name, part["intervals"]["number"].whole(), part["intervals"]["error"].number()
