"""The claim of a result: its files, what it says, the kinds of results that verify knows, and the printed sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from flint import fmpq

from .answers import Answer, check_verdict, read_answer, threshold_of
from .comparison import (
    Comparison,
    Ends,
    called,
    check_name,
    named_files,
    names_of,
    numbers_in,
    quoted,
    read_comparison,
    read_ends,
    read_sentence,
)
from .reading import Exact, Part, Rejected, read_bytes, read_json, require
from .report import ALONE, OTHER_CHAIN

CERTIFICATE, WITNESS, RIVAL = "certificate.json", "witness.json", "rival.csv"
_FILES = {CERTIFICATE, WITNESS, "policy.csv", "findings.json", "data.npz"}
FORMAT = "plumdp/witness/2"
N_PILOTS = 6  # that data which may have ended at will might have had; each has an equal part of the error
_VALUES = (  # what the sentence of a value says of it
    "{subject} value lies between {lower} and {upper}{unit} with confidence {confidence} %.",
    "{subject} value is {lower}{unit} with confidence {confidence} %.",
    "Inconclusive: the bounds do not exclude the worst value, {worst} "
    "(between {lower} and {upper}{unit}, confidence {confidence} %).",
)
_OBJECTIVE = re.compile(
    r'(?:"[^"]*" *: *)?((?:P|S|LRA|R *(?:\{ *"[^"]*" *\})?) *(max|min)? *(?:max|min)? *= *\? *\[.*\]) *;?', re.DOTALL
)
_MAX_TEXT = 10_000
_DECIMAL = re.compile(r"-?(?:\d{1,400}|\d{1,3}(?:,\d{3}){1,99})(?:\.(\d{1,400}))?(?:e([+-]\d{1,3}))?", re.ASCII)
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
    for name in ("ground", "rungs"):  # runs are not among the files, so that nothing shows what they earned
        require(name not in certificate, f"verify does not know bounds by whole runs ({name})")
    model_tolerance = witness["model_tolerance"].number() if "model_tolerance" in witness else fmpq(0)
    require(
        certificate["model_tolerance"].number() == model_tolerance,
        f"{WITNESS} is of another claim: model tolerance differs",
    )
    answer = _read_answer(certificate) if "answer" in certificate else None
    unit = certificate["unit"].text() if "unit" in certificate else ""
    if unit:
        check_name(unit, f"{CERTIFICATE}: unit", "%°²³€$£¥")
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
    is_alone = not direction or (answer is not None and answer.about == "alone")
    comparison = read_comparison(certificate["comparison"], ends) if "comparison" in certificate else None
    return Claim(*ends, confidence, certificate, comparison, is_alone, unit)


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
    if "answer" in claim.certificate and _read_answer(claim.certificate).about == "found":
        yield called("policy.csv", "the recommended policy")
    if claim.comparison is not None:
        yield OTHER_CHAIN
        yield from (called(*each) for each in named_files(claim.certificate["comparison"]))


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


def check_sentence(claim: Claim, witness: Part) -> str:
    """Return the printed sentences, whose numbers are the bounds and the confidence, rounded to the safe side."""
    sentence, certificate = _check_value(claim, witness["claim"]["sentence"].text()), claim.certificate
    if "answer" in certificate:
        sentence = _check_answer(claim, certificate["answer"])
    if claim.comparison is not None:
        sentence = f"{sentence} {_check_comparison(claim, claim.comparison, certificate['comparison'])}"
    return sentence


def _check_value(claim: Claim, sentence: str) -> str:
    """Return the sentence about the policy's value, which follows from the bracket."""
    certificate, unit = claim.certificate, claim.unit and f" {claim.unit}"
    subject = "The policy's" if read_objective(certificate["objective"].text())[1] else "The"
    found = [numbers_in(sentence, form, subject=subject, unit=unit) for form in _VALUES]
    told = next((each for each in found if each is not None), None)
    is_certified = told is not None and "worst" not in told
    require((certificate["status"].text() == "certified") == is_certified, "the sentence is not that of the status")
    if told is None:
        reason = f"Inconclusive: {certificate['reason'].text()}."
        require(sentence == reason, "the sentence is not one that verify knows")
        return "Inconclusive."  # the reason is not checked, and so it is not repeated
    lower, upper, confidence = told["lower"], told.get("upper", told["lower"]), told["confidence"]
    worst = lower if certificate["direction"].text() == "max" else upper
    require(told.get("worst", worst) == worst, "the worst value is not an end of the bracket")
    _check_all_said(claim, lower, upper, confidence)
    form = _VALUES["upper" not in told]  # that an end is the worst value is not proved, and so it is not repeated
    said = form.format(subject=subject, unit=unit and f' "{claim.unit}"', **told)
    return said if is_certified else f"Inconclusive: {said[0].lower()}{said[1:]}"


def _check_all_said(claim: Claim, low: str, high: str, confidence: str) -> None:
    _check_said(claim, "at least", low)
    _check_said(claim, "at most", high)
    _check_confidence(claim, confidence)


def _check_comparison(claim: Claim, comparison: Comparison, part: Part) -> str:
    """Return the sentence of a comparison, which follows from the bracket of the difference."""
    direction, (lower, upper) = claim.certificate["direction"].text(), comparison.difference
    said, (least, most) = (
        read_sentence(part, direction, claim.unit),
        _turned(lower, upper, 1 if direction == "max" else -1),
    )
    if said.margin is not None:  # of what the first policy gains
        margin = _printed(said.margin)
        is_near = least is not None and -margin <= least
        is_near = is_near and (not said.is_same or (most is not None and most <= margin))
        require(is_near, f"{part.place}: it does not follow that a policy is within the margin")
    lower, upper = _turned(lower, upper, said.sign)
    is_known = not said.is_better or (lower is not None and lower > 0)
    require(is_known, f"{part.place}: it does not follow that a policy is better")
    _check_all_said(replace(claim, lower=lower, upper=upper), said.lower, said.upper, said.confidence)
    return said.text


def _turned(lower: Exact | None, upper: Exact | None, sign: int) -> Ends:
    """Return a bracket, or with the sign -1 that of the negative."""
    if sign > 0:
        return lower, upper
    return None if upper is None else -upper, None if lower is None else -lower


def _read_answer(certificate: Part) -> Answer:
    is_given = certificate["options"]["policy"].value == "given"
    return read_answer(certificate["answer"], certificate["objective"].text(), is_given)


def _check_answer(claim: Claim, part: Part) -> str:
    """Return the sentence of an answer to a threshold, which follows from the bracket."""
    answer = _read_answer(claim.certificate)
    for side, number in answer.said:
        _check_said(claim, side, number)
    _check_confidence(claim, answer.confidence)
    check_verdict(part, _printed(threshold_of(part["question"])), claim.lower, claim.upper)
    return part["sentence"].text()


def _check_said(claim: Claim, side: str, number: str) -> None:
    """Require that a printed number is an end of the bracket, or beyond it."""
    if side == "at least":
        holds = number == "-infinity" if claim.lower is None else _printed(number) <= claim.lower
        require(holds, "the sentence says a larger lower end than the certificate")
    else:
        holds = number == "infinity" if claim.upper is None else _printed(number) >= claim.upper
        require(holds, "the sentence says a smaller upper end than the certificate")


def _check_confidence(claim: Claim, percent: str) -> None:
    tiny = fmpq(1, 10**8)  # a confidence such as 0.999 is printed as 99.9 %, and stored to the nearest float
    is_safe = 1 - _printed(percent) / 100 >= (1 - claim.confidence) * (1 - tiny)
    require(is_safe, "the sentence says more confidence than the certificate")


def _printed(text: str) -> Exact:
    """Return a decimal number exactly."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise Rejected("the sentence has something else in place of a number")
    digits, places = re.sub("[,.]", "", text.partition("e")[0]), len(found[1] or "")
    power = int(found[2] or 0) - places
    return fmpq(int(digits)) * (fmpq(10) ** power if power >= 0 else 1 / fmpq(10) ** -power)


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
