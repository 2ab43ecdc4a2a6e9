"""Writes the witness of a certificate, all that a checker needs to prove it again from the counts.

One more pass: the set is written with what proves it, a ball is drawn around it, and the values of the policy are
expanded about the centre of the ball. Whatever is written here is a proposal, and nothing of it is trusted.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from math import comb, inf, isfinite
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.confidence.estimates import estimate_inside
from plumdp.confidence.laws import law_of_space
from plumdp.confidence.likelihood import Threshold, furthest_point
from plumdp.confidence.sets import Guarantee
from plumdp.learning.learned import Learned, require_learned
from plumdp.model.graph import FloatArray
from plumdp.model.objective import digest
from plumdp.model.question import Question
from plumdp.result.certificate import Certificate
from plumdp.result.json_values import json_value
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.verifying.ball import LikelihoodForm, ball_part, coordinates_of, find_optimum
from plumdp.verifying.chain_part import chain_part
from plumdp.verifying.checker.chain import Chain, read_chain
from plumdp.verifying.checker.check import Report, check_claim, exactly
from plumdp.verifying.checker.claim import CERTIFICATE, FORMAT, WITNESS, Claim, read_claim
from plumdp.verifying.checker.counts import Data, read_data
from plumdp.verifying.checker.enclosure import Enclosure, make_enclosure
from plumdp.verifying.checker.evidence import Likelihood, read_likelihood
from plumdp.verifying.checker.half_spaces import HalfSpace, of_tangents
from plumdp.verifying.checker.reading import Part, Rejected, read_json
from plumdp.verifying.counted import counted_part
from plumdp.verifying.cuts import Cuts, cuts_ball
from plumdp.verifying.drawn_sets import ellipsoid_form
from plumdp.verifying.expansion import Expansion, expand
from plumdp.verifying.model_parts import shares_part, space_part
from plumdp.verifying.multipliers import Multipliers, bound_polynomial
from plumdp.verifying.quotients import with_quotients
from plumdp.verifying.set_proof import set_part

_DEGREES = (2, 3, 4, 6, 8, 10, 12, 16)  # of expansions, until one proves the bounds
_ENOUGH, _SMALL = 4, 0.01  # degree, and share of what is missing in margins, from which on no other degree is tried
_EXACT = 1e-12  # relative width of bounds that leave no room for rounding
_UNPROVED = (Guarantee.ASYMPTOTIC, Guarantee.NONE)
_MOST = 2_000_000  # coefficients of an expansion beyond which no higher degree is tried


def make_witness(learned: Learned, certificate: Certificate) -> str:
    """Return the witness of a certificate as JSON, so that others can check it: ``certificate.save(…, witness=…)``.

    The certificate is one of an objective that was announced to ``learn``. Kinds of certificates that have no witness
    yet are refused by name.

    >>> from plumdp import case_study, conclude, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> len(make_witness(learned, conclude(learned, study.objective))) > 1000
    True
    """
    text, broken = propose_witness(learned, certificate)
    if broken is not None:
        raise DataError(f"no proof of these bounds was found, so there is no witness ({broken.layer}: {broken})")
    return text


def propose_witness(learned: Learned, certificate: Certificate) -> tuple[str, Rejected | None]:
    """Return the best witness that is found, and the first step that the checker does not accept, if there is one."""
    question = _question_of(learned, certificate)
    content: dict[str, Any] = {
        "format": FORMAT,
        "claim": {
            "objective": certificate.objective,
            "direction": certificate.direction,
            "lower": json_value(certificate.lower),
            "upper": json_value(certificate.upper),
            "confidence": certificate.confidence,
            "sentence": certificate.headline,
        },
    }
    _refuse_unknown(learned, content, certificate)
    model = learned.model
    content |= {
        "budget": {"error": learned.error, "shares": shares_part(learned.budget)},
        "parameters": list(model.space.names),
        "space": space_part(model.space),
        **counted_part(model, learned.counts, learned.table),
        "chain": chain_part(question, certificate.policy),
    }
    with exactly():
        with suppress(Rejected):  # what is missing then is found below
            _prove(content, learned, question, certificate)
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
    """Return the question that was announced and that a certificate answers."""
    require_learned("make_witness", learned)
    asked = certificate.provenance.get("objective")
    for question in learned.questions:
        if digest(question.objective) == asked and certificate.provenance.get("counts") == learned.counts.fingerprint:
            return question
    raise DataError(
        "make_witness takes what learn returned, and a certificate of an objective that was announced to it"
    )


def _refuse_unknown(learned: Learned, content: dict[str, Any], certificate: Certificate) -> None:
    unknown = {
        "tables of unknown rows": learned.model.is_table,
        "models on disk": learned.model.graph.levels is not None,
        "contradicted models": learned.conflict is not None or not certificate.claims_bounds,
        "rewards that are learned": bool(learned.model.learned_rewards),
        "sets without a guarantee for any number of data (published ones have none)": learned.bounds.guarantee
        in _UNPROVED,
    }
    for what, is_so in unknown.items():
        if is_so:
            raise DataError(f"verify does not know {what}, so there is no witness of this certificate")
    try:
        _claim(certificate, Part(content, WITNESS))
    except Rejected as error:
        raise DataError(f"{error}, so there is no witness of this certificate") from None


@dataclass(frozen=True)
class _Ends:
    """The ends of a bracket for the value of a chain; infinite ends claim nothing."""

    lower: float
    upper: float


def _prove(content: dict[str, Any], learned: Learned, question: Question, certificate: Certificate) -> None:
    """Add the set, values and bracket to the content of a witness."""
    content["set"], model = set_part(learned, content), learned.model
    witness = Part(json.loads(json.dumps(content)), "witness")
    data, chain = read_data(witness), read_chain(witness["chain"], content["parameters"])
    likelihoods = [read_likelihood(each, data) for each in witness["set"]["likelihoods"]]
    table, prior = learned.table, law_of_space(model)
    seen = [np.array(each.seen[: len(table.outcomes)], dtype=np.float64) for each in likelihoods]
    forms = [
        LikelihoodForm(table, of_one, _below(each.threshold), estimate_inside(table, of_one, prior=prior)[0])
        for of_one, each in zip(seen, likelihoods, strict=True)
    ]
    half_spaces = with_quotients(content, data, likelihoods, learned)
    tangents = _tangents(learned, question, certificate, forms)
    drawn = [*half_spaces, *_drawn(tangents, data, likelihoods)]
    ends = _Ends(certificate.lower, certificate.upper)
    if chain.complement:
        ends = _Ends(1 - certificate.upper, 1 - certificate.lower)
    ellipsoid, missing = ellipsoid_form(learned.bounds, half_spaces), inf
    is_whole = all(row["ways"] is not None for row in content["rows"])
    for coordinates in coordinates_of(table, is_whole=is_whole):
        part = ball_part(coordinates, learned.likely_point, forms, _floats(drawn), ellipsoid) if missing > 0 else None
        if part is not None:
            ball = Part(json.loads(json.dumps(part)), "ball")
            points = tangents + _at_optima(chain, make_enclosure(ball, data, drawn), forms)
            enclosure = make_enclosure(ball, data, [*half_spaces, *_drawn(points, data, likelihoods)])
            content["values"], content["bracket"], missing = _values(chain, enclosure, ends)
            content["set"] |= {"ball": part, "tangents": points}
    if "ball" not in content["set"]:
        raise DataError("no ball around the parameters that the data allow was found, so there is no witness")


def _drawn(tangents: list[dict[str, Any]], data: Data, likelihoods: list[Likelihood]) -> list[HalfSpace]:
    return list(of_tangents(Part(json.loads(json.dumps(tangents)), "tangents"), data, likelihoods))


def _floats(half_spaces: list[HalfSpace]) -> list[tuple[FloatArray, float]]:
    """Return rows and offsets; what is curved says nothing here."""
    rows = [np.array([0.0 if each.curved else _float(a) for a in each.row]) for each in half_spaces]
    return [(row, _float(each.offset)) for row, each in zip(rows, half_spaces, strict=True)]


def _at_optima(chain: Chain, enclosure: Enclosure, forms: list[LikelihoodForm]) -> list[dict[str, Any]]:
    """Return points of the set where the value is about the least and the largest, on the border of likelihoods."""
    expansion = expand(chain, enclosure, 2) if enclosure.dimension and chain.initial not in chain.known else None
    if expansion is None:
        return []
    numbers, _ = expansion.start(chain)
    cuts, _ = _cuts(enclosure)
    rows, offsets = cuts.rows[cuts.is_flat], cuts.offsets[cuts.is_flat]
    centre, axes = (
        np.array([[_float(a) for a in row] for row in rows_]) for rows_ in ([enclosure.centre], enclosure.axes)
    )
    points = [find_optimum(side * numbers, rows, offsets, forms, centre[0], axes.T) for side in (1, -1)]
    return [
        {"likelihood": i, "point": point.tolist()}
        for i, form in enumerate(forms)
        for point in points
        if form.value(point) > -np.inf
    ]


def _cuts(enclosure: Enclosure) -> tuple[Cuts, list[int]]:
    """Return what cuts a ball, in floats, and the numbers of these cuts."""
    lefts = [{e: _float(c) for e, c in (cut.left or {}).items()} for cut in enclosure.cuts]
    usable = [i for i, left in enumerate(lefts) if left and cuts_ball(left)]
    return Cuts.of([lefts[i] for i in usable], enclosure.dimension), usable


def _below(ball: Any) -> float:
    return float(ball.lower())


def _float(number: Any) -> float:
    return float(number.mid()) if hasattr(number, "mid") else int(number.p) / int(number.q)


def _tangents(
    learned: Learned, question: Question, certificate: Certificate, forms: list[LikelihoodForm]
) -> list[dict[str, Any]]:
    """Return points where each likelihood set is furthest along the gradient of the policy's value, on both sides."""
    tangents: list[dict[str, Any]] = []
    _, gradient = policy_gradient(question.model, certificate.policy, question.objective, learned.estimate)
    for i, form in enumerate(forms):
        threshold = Threshold(form.seen, form.threshold, "", False)
        for side in (1, -1) if np.isfinite(gradient).all() else ():
            point = furthest_point(form.table, threshold, form.start, side * gradient)
            if form.value(point) > -np.inf:
                tangents.append({"likelihood": i, "point": point.tolist()})
    return tangents


def _values(chain: Chain, enclosure: Enclosure, ends: _Ends) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Return functions of the least degree that seem to prove the bracket, or of the largest, and multipliers.

    The last number is about how much is missing.
    """
    degrees = _DEGREES if enclosure.dimension else (0,)
    is_exact = ends.upper - ends.lower <= _EXACT * max(abs(ends.lower), abs(ends.upper))
    last = inf
    for degree in degrees:
        expansion = expand(chain, enclosure, degree, is_exact=is_exact)
        if expansion is None:
            continue
        bracket, missing, margin = _bracket(chain, enclosure, expansion, ends, is_exact=is_exact)
        values = {
            "degree": degree,
            "functions": expansion.coefficients.tolist(),
            "margins": expansion.margins.tolist(),
            "steps": expansion.steps.tolist(),
            "average": None if expansion.average is None else expansion.average.tolist(),
        }
        n_next = len(chain.open) * comb(enclosure.dimension + degree + 2, enclosure.dimension)
        is_hopeless = degree >= _ENOUGH and (margin < _SMALL * missing or margin >= last)  # or it does not get smaller
        last = margin
        if missing <= 0 or is_hopeless or degree == degrees[-1] or n_next > _MOST:
            return values, bracket, missing
    raise DataError("no functions that bound the policy's value on all of the ball were found, so there is no witness")


def _bracket(
    chain: Chain, enclosure: Enclosure, expansion: Expansion, ends: _Ends, *, is_exact: bool
) -> tuple[dict[str, Any], float, float]:
    """Return multipliers of both ends, about how much is missing to prove them, and the margin in that."""
    if chain.initial in chain.known:
        nothing, value = {"multipliers": [], "ball": 0}, _float(chain.known[chain.initial])
        return {"lower": nothing, "upper": nothing}, max(ends.lower - value, value - ends.upper), 0.0
    cuts, usable = _cuts(enclosure)
    numbers, margin = expansion.start(chain)
    low = bound_polynomial(numbers, expansion.degree, cuts)
    high = bound_polynomial(-numbers, expansion.degree, cuts)
    below = 0.0 if ends.lower <= 0 and chain.is_never_negative else ends.lower - low.bound + margin
    above = 0.0 if ends.upper >= 1 and chain.kind == "reach" else margin - high.bound - ends.upper
    room = [_EXACT / 2 * abs(end) if isfinite(end) else 0.0 for end in (ends.lower, ends.upper)]  # see check_bracket
    missing = 0.0 if is_exact else max(below - room[0], above - room[1])
    return {"lower": _written(low, usable), "upper": _written(high, usable)}, missing, margin


def _written(found: Multipliers, usable: list[int]) -> dict[str, Any]:
    pairs: list[Any] = [[usable[i], list(y)] for i, y in sorted(found.cuts.items())]
    pairs += [[[usable[i] for i in pair], list(y)] for pair, y in sorted(found.products.items())]
    return {"multipliers": pairs, "ball": found.ball}
