"""Makes the findings that explain a certificate, which a report shows besides the claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

from plumdp.base.errors import DataError
from plumdp.base.progress import tell, working
from plumdp.certifying.pipeline import compare_learned
from plumdp.data.counts import TransitionCounts
from plumdp.data.logs import Log
from plumdp.explaining.advice import advise
from plumdp.explaining.again import learn_again, question_of, require_origin
from plumdp.explaining.check import check_learned
from plumdp.explaining.finding import (
    count_expressions,
    drawing,
    expression_rows,
    outlines,
    table_rows,
    telling_variables,
)
from plumdp.explaining.residual_table import CellResiduals
from plumdp.fit.residuals import Residuals
from plumdp.learning.learned import Learned
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question
from plumdp.result.certificate import Certificate, Status
from plumdp.result.findings import ExpressionRow, Findings, Outline, Rung


@overload
def explain(given: Learned, certificate: Certificate, /, *, parts: Sequence[str] = ...) -> Findings: ...


@overload
def explain(
    given: ParametricMDP, counts: TransitionCounts | Log, certificate: Certificate, /, *, parts: Sequence[str] = ...
) -> Findings: ...


@working("explaining")
def explain(
    given: Learned | ParametricMDP,
    counts: TransitionCounts | Log | Certificate,
    certificate: Certificate | None = None,
    /,
    *,
    parts: Sequence[str] = (),
) -> Findings:
    """Return findings on what limits a certificate, what is known of the parameters, and where more data help.

    ``explain(learned, certificate)`` takes what the certificate was concluded from. ``explain(model, counts,
    certificate)`` learns that again, with the options of the certificate, and refuses if it does not give the same
    certificate. The bounds of other relaxations (``ladder``) take longer than all other parts.

    Parameters
    ----------
    parts
        The kinds of pictures that the findings are for, such as "ladder" or "region" (see ``draw``), by default all.

    Examples
    --------
    >>> from plumdp import case_study, certify, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> certificate = certify(study.model, counts, study.objective)
    >>> findings = explain(study.model, counts, certificate)
    >>> [rung.relaxation for rung in findings.ladder], findings.n_expressions
    (['interval', 'parameter', 'expression', 'rectangular', 'coupled'], 106)
    """
    if isinstance(given, Learned) and isinstance(counts, Certificate) and certificate is None:
        learned, about = given, counts
        require_origin(learned, about)
    elif isinstance(given, ParametricMDP) and certificate is not None and not isinstance(counts, Certificate):
        learned, about = learn_again(given, counts, certificate), certificate
    else:
        raise DataError("write explain(learned, certificate), or explain(model, counts, certificate)")
    unknown = [name for name in parts if name not in _PARTS]
    if unknown:
        raise DataError(f"parts={unknown}: choose some of {', '.join(map(repr, _PARTS))}")
    if learned.model.graph.levels is not None:  # a model on disk
        return Findings(about.fingerprint)
    question = question_of(learned, about)
    makers = {name: make for part in parts or _PARTS for name, make in _PARTS[part].items()}
    return Findings(about.fingerprint, **{name: make(learned, question, about) for name, make in makers.items()})


def _ladder(learned: Learned, question: Question, certificate: Certificate) -> tuple[Rung, ...]:
    """Return the bounds that each relaxation certifies from the same data, from loose to tight, if there is a region.

    Those of the certificate are the bounds that it claims. The others have their own policies unless one was given.
    """
    if not _has_region(learned, certificate):
        return ()
    tell("finding what other relaxations certify")
    policy = certificate.policy if certificate.options["policy"] == "given" else None
    precision = certificate.options["precision"]
    others = compare_learned(_without_memory(learned), question, policy=policy, precision=precision)
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
    check = check_learned(learned)
    return _as_read(check.to_dict() | {"cells": [_cells(cells) for cells in check.cells]})


def _cells(cells: CellResiduals) -> dict[str, Any]:
    """Return residuals over a variable, or over the actions, as a picture needs them."""
    numbers = {name: getattr(cells.residuals, name).tolist() for name in Residuals.__dataclass_fields__}
    return {"kind": cells.kind, "name": cells.name, "change": cells.change, "cells": list(cells.cells)} | numbers


def _as_read(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content as a file gives it back, with lists in place of tuples."""
    read: dict[str, Any] = json.loads(json.dumps(content))
    return read


_PARTS: Mapping[str, Mapping[str, Callable[[Learned, Question, Certificate], Any]]] = {
    "ladder": {"ladder": _ladder},
    "region": {"outlines": _outlines},
    "expressions": {"expressions": _expressions, "n_expressions": lambda learned, *_: count_expressions(learned)},
    "policy": {"variables": lambda learned, question, certificate: telling_variables(certificate.policy)},
    "advice": {"advice": _advice},
    "model": {"drawing": lambda learned, question, certificate: drawing(learned, certificate.policy, question)},
    "residuals": {"residuals": _residuals},
}
"""By kinds of pictures, the functions that make fields of ``Findings``, which are empty if there is nothing to say."""
