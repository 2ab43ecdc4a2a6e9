"""Makes the findings that explain a certificate, which a report shows besides the claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plumdp.base.errors import DataError, require_kind
from plumdp.base.progress import tell, working
from plumdp.certifying.pipeline import compare
from plumdp.explaining.advice import advise
from plumdp.explaining.again import question_of, require_origin
from plumdp.explaining.check import check_model
from plumdp.explaining.finding import (
    count_expressions,
    expression_rows,
    outlines,
    table_rows,
    telling_variables,
)
from plumdp.explaining.residual_table import CellResiduals
from plumdp.fit.residuals import Residuals
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.question import Question
from plumdp.result.certificate import Certificate, Status
from plumdp.result.findings import ExpressionRow, Findings, Outline, Rung


@of_learned
@working("explaining")
def explain(learned: Learned, certificate: Certificate, *, parts: Sequence[str] = ()) -> Findings:
    """Return findings on what limits a certificate, what is known of the parameters, and where more data help.

    ``learned`` is what the certificate was concluded from; ``explain_result`` explains one that was saved. The bounds
    of other relaxations ("ladder") take longer than all other parts.

    Parameters
    ----------
    parts
        The kinds of pictures that the findings are for, such as "ladder" or "region" (see ``draw``), by default all.

    Examples
    --------
    >>> from plumdp import case_study, conclude, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> findings = explain(learned, conclude(learned, study.objective))
    >>> [rung.relaxation for rung in findings.ladder], findings.n_expressions
    (['interval', 'parameter', 'expression', 'rectangular', 'coupled'], 106)
    """
    require_kind(certificate, Certificate, "explain takes a certificate after what it was concluded from")
    require_origin(learned, certificate)
    unknown = [name for name in parts if name not in _PARTS]
    if unknown:
        raise DataError(f"parts={unknown}: choose some of {', '.join(map(repr, _PARTS))}")
    if learned.model.graph.levels is not None:  # a model on disk
        return Findings(certificate.fingerprint)
    question = question_of(learned, certificate)
    makers = {name: make for part in parts or _PARTS for name, make in _PARTS[part].items()}
    return Findings(
        certificate.fingerprint, **{name: make(learned, question, certificate) for name, make in makers.items()}
    )


def _ladder(learned: Learned, question: Question, certificate: Certificate) -> tuple[Rung, ...]:
    """Return the bounds that each relaxation certifies from the same data, from loose to tight, if there is a region.

    Those of the certificate are the bounds that it claims. The others have their own policies unless one was given.
    """
    if not _has_region(learned, certificate):
        return ()
    tell("finding what other relaxations certify")
    policy = certificate.policy if certificate.options["policy"] == "given" else None
    precision = certificate.options["precision"]
    others = compare(_without_memory(learned), question, policy=policy, precision=precision)
    return tuple(certificate.rung if other.relaxation == certificate.relaxation else other.rung for other in others)


def _without_memory(learned: Learned) -> Learned:
    """Return the same with solvers that have solved nothing yet, so that no part depends on earlier questions."""
    return replace(learned, solvers={asked: solver.without_memory() for asked, solver in learned.solvers.items()})


def _has_region(learned: Learned, certificate: Certificate) -> bool:
    return certificate.claims_bounds and learned.conflict is None


def _outlines(learned: Learned, question: Question, certificate: Certificate) -> tuple[Outline, ...]:
    return outlines(learned, question, certificate.policy) if _has_region(learned, certificate) else ()


def _expressions(learned: Learned, question: Question, certificate: Certificate) -> tuple[ExpressionRow, ...]:
    if not _has_region(learned, certificate):
        return ()
    rows_of = table_rows if learned.model.counted.is_table else expression_rows
    return rows_of(learned, question, certificate.policy)


def _advice(learned: Learned, question: Question, certificate: Certificate) -> Mapping[str, Any]:
    """Return the advice on more data with its sentences, or as ``none`` the reason why there is no advice."""
    if certificate.status == Status.CONTRADICTED:
        return {"none": "first the model has to be changed"}
    tell("finding where more data help")
    try:
        advice = advise(_without_memory(learned), question, policy=certificate.policy)
    except DataError as error:
        return {"none": str(error)}
    return _as_read(advice.to_dict() | {"sentences": advice.sentences()})


def _residuals(learned: Learned, question: Question, certificate: Certificate) -> Mapping[str, Any]:
    """Return the test of the model with its residuals, or nothing if the model was not tested."""
    if learned.fit is None:
        return {}
    check = check_model(learned)
    return _as_read(check.to_dict() | {"cells": [_cells(cells) for cells in check.cells]})


def _cells(cells: CellResiduals) -> dict[str, Any]:
    """Return residuals over a variable, or over the actions, as a picture needs them."""
    numbers = {name: getattr(cells.residuals, name).tolist() for name in Residuals.__dataclass_fields__}
    return {"kind": cells.kind, "name": cells.name, "change": cells.change, "cells": list(cells.cells)} | numbers


def _as_read(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content as a file gives it back, with lists instead of tuples."""
    read: dict[str, Any] = json.loads(json.dumps(content))
    return read


_PARTS: Mapping[str, Mapping[str, Callable[[Learned, Question, Certificate], Any]]] = {
    "ladder": {"ladder": _ladder},
    "region": {"outlines": _outlines},
    "expressions": {"expressions": _expressions, "n_expressions": lambda learned, *_: count_expressions(learned)},
    "policy": {"variables": lambda learned, question, certificate: telling_variables(certificate.policy)},
    "advice": {"advice": _advice},
    "residuals": {"residuals": _residuals},
}
"""By kinds of pictures, the functions that make fields of ``Findings``, which are empty if there is nothing to say."""
