"""Writes the witness of a certificate, all that a checker needs to prove it again from the counts.

One more pass: the set is written with what proves it, a cube is drawn around it, and the values of the policy are
expanded about its centre, or about those of its parts. Whatever is written here is a proposal, and nothing of it is
trusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from typing import Any

import numpy as np

from plumdp.base.combinations import Trait, why_not
from plumdp.base.errors import DataError, ModelError
from plumdp.base.json_values import json_value, python_value
from plumdp.confidence.cells import Cells
from plumdp.confidence.estimates import estimate_inside, law_of_space
from plumdp.confidence.likelihood import LevelSet
from plumdp.confidence.path_likelihood import PathLevelSet
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.objectives import digest
from plumdp.model.policy import memory_of
from plumdp.model.question import Question, ask
from plumdp.result.certificate import Certificate
from plumdp.verifying.boundary import Boundary, LikelihoodForm, coordinates_of
from plumdp.verifying.chain_part import chain_part
from plumdp.verifying.expansion import Wanted
from plumdp.verifying.pieces_part import Writer, pieces_part
from plumdp.verifying.set_proof import KINDS, counted_part, set_part, shares_part, space_part
from plumdp_verify.bets import half_spaces_from_bets, stages_of
from plumdp_verify.chain import Chain, read_chain
from plumdp_verify.check import check_claim, exactly, policies_of
from plumdp_verify.claim import CERTIFICATE, FORMAT, WITNESS, Claim, read_claim
from plumdp_verify.counts import CountedRows, read_data
from plumdp_verify.half_spaces import ProvedHalfSpace, between, half_spaces_from_space
from plumdp_verify.polynomials import parse
from plumdp_verify.reading import Part, Rejected, read_json
from plumdp_verify.report import Report

_NO_PROOF = "no proof of these bounds was found, so there is no witness ({})"


@of_learned
def make_witness(learned: Learned, certificate: Certificate) -> str:
    """Return the witness of a certificate as JSON, so that others can check it.

    Parameters
    ----------
    learned
        What the certificate was concluded from.
    certificate
        What ``conclude`` returned.

    Returns
    -------
    str
        The witness, for ``write_result(…, witness=…)``.

    Raises
    ------
    DataError
        If certificates of this kind have no witness yet.

    Examples
    --------
    >>> from plumdp import case_study, conclude, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> len(make_witness(learned, conclude(learned, study.objective))) > 1000
    True
    """
    text, broken = propose_witness(learned, certificate)
    if broken is not None and broken.layer == "files":  # this kind of result is not known
        raise DataError(f"{broken}, so there is no witness of this certificate")
    if broken is not None:
        raise DataError(_NO_PROOF.format(f"{broken.layer}: {broken}"))
    return text


def propose_witness(learned: Learned, certificate: Certificate) -> tuple[str, Rejected | None]:
    """Return the best witness that is found, and the first step that the checker does not accept, if there is one."""
    question = _question_of(learned, certificate)
    content: dict[str, Any] = {
        "format": FORMAT,
        "claim": {
            "objective": certificate.claim.objective,
            "direction": certificate.claim.direction,
            "lower": json_value(certificate.lower),
            "upper": json_value(certificate.upper),
            "confidence": certificate.confidence,
        },
    }
    _refuse_unknown(learned, question, content, certificate)
    model = learned.model
    content |= {
        "budget": {"error": learned.error, "shares": shares_part(learned.budget)},
        "parameters": list(model.space.names),
        "space": space_part(model.space),
        **counted_part(model, learned.counts, learned.table),
        "chain": chain_part(question, certificate.policy),
    }
    if certificate.comparison.rival is not None:
        content["comparison"] = {"chain": chain_part(question, certificate.comparison.rival)}
    reason = ""
    with exactly():
        with suppress(Rejected):  # what is missing then is found below
            reason = _prove(content, learned, certificate)
        text, broken = _checked(content, certificate)
    return text, Rejected(reason, broken.layer) if broken is not None and reason else broken


def _checked(content: dict[str, Any], certificate: Certificate) -> tuple[str, Rejected | None]:
    """Return a witness as JSON, and the first step that the checker does not accept."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
    return text, _first_broken(text, certificate)


def _first_broken(text: str, certificate: Certificate) -> Rejected | None:
    """Return the first step of a witness that the checker does not accept, by its own arithmetic."""
    witness = read_json(text.encode(), WITNESS)
    try:
        check_claim(_claim(certificate, witness), witness, Report())
    except Rejected as error:
        return error
    return None


def _claim(certificate: Certificate, witness: Part) -> Claim:
    return read_claim(read_json(json.dumps(certificate.to_dict()).encode(), CERTIFICATE), witness)


def _question_of(learned: Learned, certificate: Certificate) -> Question:
    """Return the question that a certificate answers, pre-specified or not: the set is the same for all of them."""
    asked, about = certificate.rests_on.provenance.get("objective"), certificate.rests_on.provenance.get("counts")
    with suppress(ModelError):  # an objective of Python code need not have a text
        for question in _questions(learned, certificate):
            if digest(question.objective) == asked and about == learned.counts.fingerprint:
                return question
    raise DataError(
        "make_witness takes what learn returned, and a certificate of a pre-specified objective, or that has a text"
    )


def _questions(learned: Learned, certificate: Certificate) -> Iterator[Question]:
    """Yield the pre-specified questions, and that of the certificate, with as much memory as the policy has."""
    yield from learned.questions
    yield ask(certificate.claim.objective, learned.model, memory=memory_of(certificate.policy))


def _refuse_unknown(learned: Learned, question: Question, content: dict[str, Any], certificate: Certificate) -> None:
    if broken := why_not(Trait.WITNESS, *question.traits, bool(learned.model_tolerance) and Trait.MODEL_TOLERANCE):
        raise DataError(f"{broken}, so there is no witness of this certificate")
    unknown = {
        "bounds by whole runs": bool(learned.budget["run_bets"]),
        "bets in cells of the space": bool(learned.bounds.of_kind(Cells)),
        "rows with hidden paths": bool(learned.bounds.of_kind(PathLevelSet)),
        "contradicted models": learned.conflict is not None or not certificate.claim.claims_bounds,
        f"{learned.kind!r} sets (those of the kinds 'likelihood' and 'interval' have witnesses)": (
            learned.kind not in KINDS
        ),
    }
    if certificate.comparison.difference and certificate.comparison.rival is None:
        raise DataError("make_witness needs both policies of a comparison: give Difference.with_comparison()")
    if what := next((what for what, is_so in unknown.items() if is_so), ""):
        raise DataError(f"verify does not know {what}, so there is no witness of this certificate")
    try:
        _claim(certificate, Part(content, WITNESS))
    except Rejected as error:
        raise DataError(f"{error}, so there is no witness of this certificate") from None


def _prove(content: dict[str, Any], learned: Learned, certificate: Certificate) -> str:
    """Add the set, its pieces, functions and brackets to a witness, and return why no proof was found, if so."""
    witness = Part(json.loads(json.dumps(content)), WITNESS)
    try:
        data = read_data(witness)
    except Rejected:  # for which the checker will say why
        content["set"] = set_part(learned, None)
        return ""
    content["set"] = set_part(learned, data)
    witness.value["set"] = json.loads(json.dumps(content["set"]))
    chains = [read_chain(part["chain"], data.names) for part in policies_of(_claim(certificate, witness), witness)]
    wanted = _wanted(certificate, chains)
    half_spaces = [*half_spaces_from_space(witness, data.names), *_half_spaces(witness["set"], data)]
    bets = witness["set"]["bets"]
    half_spaces += half_spaces_from_bets(bets, data, stages_of(bets, data)) if bets.value is not None else ()
    is_whole = all(row["ways"] is not None for row in content["rows"])
    ways = coordinates_of(learned.table, is_whole=is_whole)[::-1]
    for basis, idle in ways:
        boundary = Boundary(half_spaces, _forms(learned), idle)
        writer = Writer(chains, wanted, boundary)
        try:
            pieces, reason = pieces_part(writer, basis, learned.likely_point)
        except DataError as error:
            pieces, reason = None, str(error)
        if not reason:
            break
    if pieces is None:
        raise DataError(_NO_PROOF.format(reason))
    content["set"]["tangents"] = boundary.tangents
    content["pieces"] = pieces | {"root": pieces["root"] | _inside(learned, pieces["root"]["centre"], boundary)}
    return reason


def _half_spaces(part: Part, data: CountedRows) -> Iterator[ProvedHalfSpace]:
    """Yield both sides of intervals, as they are claimed."""
    for item in part["intervals"]["list"] if part["intervals"].value is not None else ():
        event = parse(item["polynomial"].text(), data.names)
        yield from between(item["lower"].number(), event, item["upper"].number(), len(data.names))


def _forms(learned: Learned) -> list[LikelihoodForm]:
    """Return likelihoods as sources of tangents."""
    prior, forms = law_of_space(learned.model), list[LikelihoodForm]()
    for each in learned.bounds.of_kind(LevelSet):
        if each.threshold > -inf:
            start = estimate_inside(each.table, each.outcome_counts, prior=prior)[0]
            forms.append(LikelihoodForm(each.table, each.outcome_counts, each.threshold, start))
    return forms


def _inside(learned: Learned, centre: list[float], boundary: Boundary) -> dict[str, Any]:
    """Return a point that is well in the set, if the centre of the cube is not and one is found."""
    proposed = [np.array(centre), learned.likely_point, learned.estimate, boundary.deepest]
    inside = next((point for point in proposed if boundary.depth(point) > 0), None)
    best = max(proposed, key=boundary.depth) if inside is None else inside
    return {} if best is proposed[0] else {"inside": best.tolist()}


def _wanted(certificate: Certificate, chains: list[Chain]) -> list[Wanted]:
    """Return the bracket of the policy, and if it is compared with another one, that of this and of the difference."""
    own = Wanted(((1, 0),), certificate.lower, certificate.upper)
    told = python_value(dict(certificate.comparison.difference))
    if not told:
        return [own]
    sign, other = (1, told["second"]) if told["policy"] == "first" else (-1, told["first"])
    both = () if chains[0] == chains[1] else ((sign, 0), (-sign, 1))
    return [own, Wanted(((1, 1),), *other), Wanted(both, *told["difference"])]
