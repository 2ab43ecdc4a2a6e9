"""Learns again what a certificate was concluded from, and refuses what does not give the same certificate."""

from __future__ import annotations

from typing import Any

from plumdp.base.errors import DataError
from plumdp.certifying.pipeline import conclude
from plumdp.data.counts import TransitionCounts
from plumdp.data.logs import Log
from plumdp.learning.learn import Learned, learn
from plumdp.model.parametric import ParametricMDP
from plumdp.result.certificate import Certificate

_LEARNING, _CONCLUDING = ("confidence_set", "interval_method", "misfit"), ("relaxation", "precision")
_ALONE = "it cannot be learned again from model and counts: give explain what learn returned"


def learn_again(model: ParametricMDP, counts: TransitionCounts | Log, certificate: Certificate) -> Learned:
    """Return what a certificate was concluded from, learned again from the same counts with the same options.

    It is refused unless it gives the same bounds and the same policy, to the last bit: what explains another
    certificate must not be shown beside this one.
    """
    options = certificate.options
    if not options.keys() >= {*_LEARNING, *_CONCLUDING, "events", "objectives", "policy"}:
        raise DataError("this certificate was put together by hand: there is nothing that could be learned again")
    if options["events"]:
        raise DataError(f"events of your own were counted, which a certificate does not keep, so that {_ALONE}")
    if not all((*options["objectives"], certificate.objective)):
        raise DataError(f"what was asked has no text, so that {_ALONE}")
    like_before: Any = {name: options[name] for name in _LEARNING}
    learned = learn(model, counts, objectives=options["objectives"], confidence=certificate.confidence, **like_before)
    require_origin(learned, certificate)
    policy = certificate.policy if options["policy"] == "given" else None
    like_then: Any = {name: options[name] for name in _CONCLUDING}
    again = conclude(learned, certificate.objective, policy=policy, **like_then)
    if again.fingerprint != certificate.fingerprint or (again.policy.choice != certificate.policy.choice).any():
        raise _differs(certificate, again)
    return learned


def require_origin(learned: Learned, certificate: Certificate) -> None:
    """Refuse what a certificate was not concluded from."""
    known = certificate.provenance
    if known.get("expressions") != learned.model.fingerprint:
        raise DataError("the certificate is about another model: give the one that was certified")
    if known.get("counts") != learned.counts.fingerprint:
        raise DataError("the certificate rests on other counts: give those that it was certified from")
    if certificate.policy.graph.fingerprint != learned.model.graph.fingerprint:
        raise DataError("the certificate was read without its model: read it with read_result(path, model)")
    same = {name: certificate.options.get(name) for name in learned.options} == dict(learned.options)
    if not same or certificate.confidence != 1 - learned.error:
        raise DataError("the certificate was made with other options: give what it was concluded from")


def _differs(certificate: Certificate, again: Certificate) -> DataError:
    """Return the error for a certificate that does not follow from its counts and options."""
    bounds = [f"{each.lower!r} to {each.upper!r}" for each in (certificate, again)]
    how = f"bounds {bounds[0]}, but its counts and options give {bounds[1]}"
    if bounds[0] == bounds[1]:
        how = "a policy that its counts and options do not give"
    versions = (again.provenance, certificate.provenance)
    here, there = (f"plumdp {known.get('plumdp')} with NumPy {known.get('numpy')}" for known in versions)
    return DataError(
        f"the certificate has {how}: it was changed, or {there} made it, and this is {here}; certify again"
    )
