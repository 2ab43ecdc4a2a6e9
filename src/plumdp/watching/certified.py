"""What a certificate promises of whole runs under its policy, for those who watch whether they keep it."""

from __future__ import annotations

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.errors import DataError, require_kind
from plumdp.base.rounding import down, up
from plumdp.data.returns import Range, scaled
from plumdp.model.objectives import Objective
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import as_objective, ask
from plumdp.result.certificate import Certificate


def certified_question(certificate: Certificate, model: ParametricMDP) -> Objective:
    """Return the certified question, on the model whose states runs show. One that no run can answer is refused."""
    require_kind(certificate, Certificate, "watch takes a certificate, such as read_result(folder, model)")
    if not certificate.claim.claims_bounds:
        raise DataError("the certificate claims no bounds, as its data reject the model: there is nothing to watch")
    refuse({Trait.WATCHED} | model.traits & {Trait.LEARNED_REWARDS})
    if not certificate.claim.objective:
        raise DataError(
            "the objective of this certificate has no text, so that it cannot be asked again; certify a property"
        )
    graph = certificate.policy.graph
    own = graph if graph.memory is None else graph.memory.graph
    if own.fingerprint != model.graph.fingerprint:
        raise DataError("the certificate's policy is not on this model: open it with read_result(folder, model)")
    objective = as_objective(certificate.claim.objective, model)
    asked = graph if graph.memory is None else ask(objective, model, memory=graph).model.graph
    is_mission = isinstance(objective, Mission) or graph.fingerprint != asked.fingerprint
    refuse({Trait.WATCHED, is_mission and Trait.MISSION})
    return objective


def claimed_shares(certificate: Certificate, within: Range) -> Range:
    """Return the certified bounds as shares of the range, rounded outward."""
    lower, upper = (np.array([each]) for each in (certificate.lower, certificate.upper))
    return float(scaled(lower, within, down)[0]), float(scaled(upper, within, up)[0])
