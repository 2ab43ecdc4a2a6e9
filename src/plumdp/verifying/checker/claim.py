"""The claim of a result: its files, what it says, the kinds of results that verify knows, and the printed sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from flint import fmpq

from .answers import check_verdict, read_answer, threshold_of
from .reading import Exact, Part, Rejected, read_bytes, read_json, require

CERTIFICATE, WITNESS = "certificate.json", "witness.json"
FORMAT = "plumdp/witness/1"
N_PILOTS = 6  # that data which may have ended at will might have had; each has an equal part of the error
_SENTENCE = re.compile(r"The policy's value (?:lies between (\S+) and (\S+)|is (\S+)) with confidence (\S+) %\.")
_DECIMAL = re.compile(r"-?\d{1,400}(?:\.(\d{1,400}))?(?:e([+-]\d{1,3}))?")


@dataclass(frozen=True)
class Claim:
    """What a certificate says; None is an end that claims nothing."""

    lower: Exact | None
    upper: Exact | None
    confidence: Exact
    certificate: Part


def read_files(folder: Path) -> tuple[Claim, Part]:
    """Return the claim and its witness from the files of a result, whose hashes agree."""
    require(folder.is_dir(), f"{folder} is not a folder with a result")
    certificate = read_json(read_bytes(folder / CERTIFICATE), CERTIFICATE)
    hashes = certificate["hashes"]
    here = {file.name for file in folder.iterdir()} - {"report.html"}
    require(WITNESS in here, "there is no witness.json: certify again with --witness")
    listed = set(hashes.names())
    require(here <= listed, f"the certificate does not list {', '.join(sorted(here - listed))}")
    content = {}
    for name in sorted(listed - {CERTIFICATE}):
        require("/" not in name and "\\" not in name and name in here, f"{name[:60]} is listed, but not there")
        content[name] = read_bytes(folder / name)
        require(_digest(content[name]) == hashes[name].text(), f"{name} was changed since it was written")
    rest = {name: value for name, value in certificate.value.items() if name != "hashes"}
    own = _digest(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())
    require(own == hashes[CERTIFICATE].text(), f"{CERTIFICATE} was changed since it was written")
    witness = read_json(content[WITNESS], WITNESS)
    require(witness["format"].text() == FORMAT, f"{WITNESS}: the format is not {FORMAT}")
    return read_claim(certificate, witness), witness


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def read_claim(certificate: Part, witness: Part) -> Claim:
    """Return the claim, after refusing all kinds that are not known, and a witness of another claim."""
    require(certificate["status"].text() in ("certified", "nothing certified"), _unknown(certificate["status"].text()))
    require(certificate["misfit"].number() == 0, _unknown("bounds with a misfit"))
    options = certificate["options"]
    require(options["evidence"].value is None, _unknown("evidence from other studies"))
    require("comparison" not in certificate, _unknown("comparisons with another policy"))
    if "answer" in certificate:
        _read_answer(certificate)
    for name in ("objective", "direction", "lower", "upper", "confidence"):
        same = certificate[name].value == witness["claim"][name].value
        require(same, f"{WITNESS} is of another claim: {name} differs")
    confidence = certificate["confidence"].number()
    require(0 < confidence < 1, "certificate.json: the confidence is not between 0 and 1")
    lower, upper = _end(certificate["lower"], "-infinity"), _end(certificate["upper"], "infinity")
    require(lower is None or upper is None or lower <= upper, "certificate.json: lower is above upper")
    return Claim(lower, upper, confidence, certificate)


def _unknown(what: str) -> str:
    return f"verify does not know {what}"


def _end(part: Part, nothing: str) -> Exact | None:
    return None if part.value == nothing else part.number()


def check_sentence(claim: Claim, witness: Part) -> str:
    """Return the printed sentence, whose numbers are the bounds and the confidence, rounded to the safe side."""
    sentence = witness["claim"]["sentence"].text()
    found = _SENTENCE.fullmatch(sentence)
    if found is None:
        require(sentence.startswith("Nothing certified: "), "the sentence is not one that verify knows")
        require(claim.certificate["status"].text() == "nothing certified", "the sentence is not that of the status")
        return sentence
    require(claim.certificate["status"].text() == "certified", "the sentence is not that of the status")
    low, high = (found[1], found[2]) if found[3] is None else (found[3], found[3])
    _check_said(claim, "at least", low)
    _check_said(claim, "at most", high)
    _check_confidence(claim, found[4])
    return sentence if "answer" not in claim.certificate else _check_answer(claim, claim.certificate["answer"])


def _read_answer(certificate: Part) -> tuple[list[tuple[str, str]], str]:
    is_given = certificate["options"]["policy"].value == "given"
    return read_answer(certificate["answer"], certificate["objective"].text(), is_given)


def _check_answer(claim: Claim, answer: Part) -> str:
    """Return the sentence of an answer to a threshold, which follows from the bracket."""
    said, confidence = _read_answer(claim.certificate)
    for side, number in said:
        _check_said(claim, side, number)
    _check_confidence(claim, confidence)
    check_verdict(answer, _printed(threshold_of(answer["question"])), claim.lower, claim.upper)
    return answer["sentence"].text()


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
    digits, places = text.partition("e")[0].replace(".", ""), len(found[1] or "")
    power = int(found[2] or 0) - places
    return fmpq(int(digits)) * (fmpq(10) ** power if power >= 0 else 1 / fmpq(10) ** -power)


def check_budget(claim: Claim, witness: Part) -> None:
    """Require that shares sum to at most one, and that no part of the set spends more than its share."""
    error, shares = witness["budget"]["error"].number(), witness["budget"]["shares"]
    rounding = 1 + fmpq(1, 10**12)  # of shares to floats
    require(0 < error <= (1 - claim.confidence) * rounding, "the error is larger than one minus the confidence")
    parts = {name: shares[name].fraction() for name in shares.names()}
    require(sum(parts.values(), start=fmpq(0)) <= 1, "the shares of the error sum to more than one")
    left = {name: share * error * rounding for name, share in parts.items()}
    for name, number, of_each in _spent(witness["set"], witness["data"]["order"].text()):
        words = name.replace("_", " ")
        require(name in parts, f"{words}: there is no share of the error")
        require(of_each > 0, f"{words}: the error is not positive")
        left[name] -= number * of_each  # several parts may have a share together
        require(left[name] >= 0, f"{words}: more is spent than the share")


def _spent(part: Part, order: str) -> Iterator[tuple[str, int, Exact]]:
    """Yield the parts of the set, how many events each has, and the error of each event."""
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
    if part["balls"].value is not None:
        yield "whole_set", part["balls"]["number"].whole(), part["balls"]["error"].number()
    if part["ellipsoid"].value is not None:
        yield "whole_set", 1, part["ellipsoid"]["error"].number()
