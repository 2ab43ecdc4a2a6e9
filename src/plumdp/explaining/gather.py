"""Gathers the findings about a certificate: what its report shows besides the claim."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from plumdp.base.errors import DataError
from plumdp.certifying.pipeline import compare_learned
from plumdp.confidence.sets import Guarantee
from plumdp.explaining.advice import advise
from plumdp.explaining.check import check_learned
from plumdp.explaining.finding import count_expressions, drawing, expression_rows, outlines, telling_variables
from plumdp.explaining.residual_table import CellResiduals
from plumdp.fit.residuals import Residuals
from plumdp.learning.learn import Learned
from plumdp.model.objective import Objective
from plumdp.model.policy import Policy
from plumdp.result.certificate import Certificate, Status
from plumdp.result.findings import Findings, Rung

_LOGGER = logging.getLogger("plumdp")
_OWN_STAGES = ("relaxation", "solver")  # what comes before is the same for all relaxations


def gather(learned: Learned, objective: Objective, certificate: Certificate) -> Findings:
    """Return all findings but the ladder; parts that have no answer for these data are empty."""
    _LOGGER.info("finding what limits the result")
    policy = certificate.policy
    has_region = certificate.claims_bounds and learned.conflict is None
    return Findings(
        parameters=dict(certificate.parameters),
        outlines=outlines(learned, objective, policy) if has_region else (),
        expressions=expression_rows(learned, objective, policy) if has_region else (),
        n_expressions=count_expressions(learned),
        advice=advice_of(learned, objective, certificate),
        residuals=residuals_of(learned),
        drawing=drawing(learned, policy, objective),
        variables=telling_variables(policy),
    )


def ladder(
    learned: Learned,
    objective: Objective,
    certificate: Certificate,
    *,
    policy: Policy | None = None,
    precision: float = 1e-6,
) -> tuple[Rung, ...]:
    """Return what each relaxation certifies from the same data, from loose to tight; none without a region.

    The certificate's own bounds are those that it claims. The others have their own policies unless one is given.
    """
    if learned.conflict is not None or not certificate.claims_bounds:
        return ()
    _LOGGER.info("finding what other relaxations certify")
    found = compare_learned(learned, objective, policy=policy, precision=precision)
    return tuple(_rung(certificate if each.relaxation == certificate.relaxation else each) for each in found)


def _rung(certificate: Certificate) -> Rung:
    seconds = sum(certificate.seconds.get(stage, 0.0) for stage in _OWN_STAGES)
    return Rung(certificate.relaxation, certificate.lower, certificate.upper, str(certificate.status), seconds)


def advice_of(learned: Learned, objective: Objective, certificate: Certificate) -> Mapping[str, Any]:
    """Return where more data help most, with its sentences; or, as ``none``, why there is no advice."""
    if certificate.status in (Status.CONTRADICTED, Status.NO_GUARANTEE):
        return {"none": "first the model, or the way the sets are made, has to be changed"}
    try:
        advice = advise(learned, objective, policy=certificate.policy)
    except DataError as error:
        return {"none": str(error)}
    return _plain(advice.to_dict() | {"sentences": advice.sentences()})


def residuals_of(learned: Learned) -> Mapping[str, Any]:
    """Return the test of the model with its residuals; nothing if it was not tested."""
    if learned.fit is None or learned.bounds.guarantee == Guarantee.NONE:
        return {}
    check = check_learned(learned)
    return _plain(check.to_dict() | {"cells": [_cells(each) for each in check.cells]})


def _cells(cells: CellResiduals) -> dict[str, Any]:
    """Return residuals over a variable, or over the actions, as a picture needs them."""
    numbers = {name: getattr(cells.residuals, name).tolist() for name in Residuals.__dataclass_fields__}
    return {"kind": cells.kind, "name": cells.name, "change": cells.change, "cells": list(cells.cells)} | numbers


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same as a file gives it back: with lists in place of tuples."""
    found: dict[str, Any] = json.loads(json.dumps(content))
    return found
