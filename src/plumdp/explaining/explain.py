"""Makes the findings that explain a certificate, which a report shows besides the claim.

If a result was saved, it is learned again from its data; data that do not give the same certificate are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plumdp.base.errors import DataError, WhyNot, require_kind
from plumdp.base.json_values import python_value
from plumdp.base.progress import tell, working
from plumdp.base.vocabulary import REJECTIONS
from plumdp.certifying.difference import acts_alike, difference_of
from plumdp.certifying.pipeline import compare, conclude
from plumdp.certifying.rungs import by_model_alone
from plumdp.certifying.thresholds import decide
from plumdp.data.counts import TransitionCounts, counts_of
from plumdp.data.log import Log
from plumdp.explaining.advice import advise
from plumdp.explaining.check import check_model
from plumdp.explaining.finding import count_expressions, expression_rows, outlines, table_rows
from plumdp.fit.residual_counts import CellResiduals, Residuals
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.objectives import digest
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import UNIFORM, Policy, check_policy, memory_of
from plumdp.model.question import PRACTICE, Question, ask, is_practice
from plumdp.result.certificate import Certificate, fingerprint_of
from plumdp.result.claim import Comparison
from plumdp.result.findings import ExpressionRow, Findings, Outline, Relaxed, relaxed_of
from plumdp.result.telling_variables import telling_variables


@of_learned
@working("explaining")
def explain(learned: Learned, certificate: Certificate, *, parts: Sequence[str] = ()) -> Findings:
    """Return findings on what limits a certificate, what is known of the parameters, and where more data help.

    The bounds of other relaxations ("ladder") take longer than all other parts.

    Parameters
    ----------
    learned
        What the certificate was concluded from; ``explain_result`` explains one that was saved.
    certificate
        What ``conclude`` or ``certify`` returned.
    parts
        The kinds of pictures that the findings are for, such as "ladder" or "region" (see ``draw``), by default all.

    Returns
    -------
    Findings
        What ``draw`` and ``write_report`` show.

    Examples
    --------
    >>> from plumdp import case_study, conclude, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> findings = explain(learned, conclude(learned, study.objective), parts=["ladder", "expressions"])
    >>> [rung.relaxation for rung in findings.ladder], findings.n_expressions
    (['interval', 'parameter', 'expression', 'rectangular', 'coupled'], 106)
    """
    require_kind(certificate, Certificate, "explain takes a certificate after what it was concluded from")
    require_origin(learned, certificate)
    unknown = [name for name in parts if name not in _PARTS]
    if unknown:
        raise DataError(f"parts={unknown}: choose some of {', '.join(map(repr, _PARTS))}")
    if learned.model.graph.levels is not None:  # a model on disk
        return Findings(fingerprint_of(certificate))
    question = question_of(learned, certificate)
    makers = {name: make for part in parts or _PARTS for name, make in _PARTS[part].items()}
    return Findings(
        fingerprint_of(certificate), **{name: make(learned, question, certificate) for name, make in makers.items()}
    )


def _ladder(learned: Learned, question: Question, certificate: Certificate) -> tuple[Relaxed, ...]:
    """Return the bounds that each relaxation certifies from the same data, from loose to tight, if there is a region.

    Those of the certificate are the bounds that it claims. The others have their own policies unless one was given.
    """
    if not _has_region(learned, certificate):
        return ()
    tell("finding what other relaxations certify")
    policy = certificate.policy if certificate.how.options["policy"] == "given" else None
    precision = certificate.how.options["precision"]
    others = compare(_without_memory(learned), question, policy=policy, precision=precision)
    return tuple(
        relaxed_of(certificate) if other.how.relaxation == certificate.how.relaxation else relaxed_of(other)
        for other in others
    )


def _without_memory(learned: Learned) -> Learned:
    """Return the same with solvers that have solved nothing yet, so that no part depends on earlier questions."""
    return replace(learned, solvers={asked: solver.without_memory() for asked, solver in learned.solvers.items()})


def _has_region(learned: Learned, certificate: Certificate) -> bool:
    return certificate.claim.claims_bounds and learned.conflict is None


def _outlines(learned: Learned, question: Question, certificate: Certificate) -> tuple[Outline, ...]:
    return outlines(learned, question, certificate.policy) if _has_region(learned, certificate) else ()


def _expressions(learned: Learned, question: Question, certificate: Certificate) -> tuple[ExpressionRow, ...]:
    if not _has_region(learned, certificate):
        return ()
    rows_of = table_rows if learned.model.counted.is_table else expression_rows
    return rows_of(learned, question, certificate.policy)


def _advice(learned: Learned, question: Question, certificate: Certificate) -> Mapping[str, Any]:
    """Return the advice on more data with its sentences, or as ``none`` the reason why there is no advice."""
    if certificate.status in REJECTIONS:
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


_LEARNING, _CONCLUDING = ("confidence_set", "model_tolerance"), ("relaxation", "precision")
_OF_ITS_TIME = "seconds", "provenance", "narrower", "unit"  # may differ, as hashes were compared, and words change
_ALONE = "it cannot be learned again from model and counts: give explain what learn returned"


_NO_RUNS = "the counts do not show whole runs"


def learn_again(model: ParametricMDP, counts: TransitionCounts | Log, certificate: Certificate) -> Learned:
    """Return the ``Learned`` of a certificate, learned again from the same counts with the same options.

    It is refused unless it gives the same certificate, to the last bit, because an explanation of another certificate
    must not be shown beside this one.
    """
    options = certificate.how.options
    if not options.keys() >= {*_LEARNING, *_CONCLUDING, "objectives", "policy"}:
        raise DataError("this certificate was put together by hand: there is nothing that could be learned again")
    given: Policy = PRACTICE if options.get("practice") else certificate.policy
    policy = given if options["policy"] == "given" else None
    of_learning: Any = {name: options[name] for name in _LEARNING} | {"witness": options.get("witness", False)}
    questions = _prespecified(model, certificate)
    has_runs = any(options.get("whole_runs", ()))
    if has_runs:  # counts do not show them, which have their share of the error all the same
        shown = zip(questions, options["whole_runs"], strict=True)
        questions = [_without_runs(each, of_runs) if of_runs else each for each, of_runs in shown]
    learned = learn(model, counts_of(counts), objectives=questions, confidence=certificate.confidence, **of_learning)
    require_origin(learned, certificate)
    of_concluding: Any = {name: options[name] for name in _CONCLUDING}
    question = question_of(learned, certificate)
    graph = certificate.policy.graph
    if policy is None and graph.memory is not None and graph.is_chain:  # on the product of its own that conclude made
        question = ask(certificate.claim.objective, model, memory=options["memory"])
    again = conclude(learned, question, policy=policy, **of_concluding)
    if has_runs:  # what was decided may rest on runs
        _require_same(*(replace(by_model_alone(each), comparison=Comparison()) for each in (certificate, again)))
        return learned
    if certificate.comparison.answer:
        threshold, relaxation = certificate.comparison.answer["question"], options["relaxation"]
        again = decide(learned, threshold, relaxation=relaxation, certificate=again).answered
    if certificate.comparison.rival is not None:
        again = _compared_again(learned, question, certificate, again)
    _require_same(certificate, again)
    return learned


def _compared_again(learned: Learned, question: Question, certificate: Certificate, again: Certificate) -> Certificate:
    """Return the certificate of one policy with the comparison to the other, both of which are made again."""
    told, precision = python_value(dict(certificate.comparison.difference)), certificate.how.options["precision"]
    is_first, (first, second) = told["policy"] == "first", told["names"]
    rival = PRACTICE if (second if is_first else first) == PRACTICE else certificate.comparison.rival
    other = conclude(learned, question, policy=rival, precision=precision)
    unit = certificate.claim.unit  # which no objective's text has
    again, other = (replace(each, claim=replace(each.claim, unit=unit)) for each in (again, other))
    both = (again, other) if is_first else (other, again)
    names = tuple(_name_of(*each) for each in zip((first, second), both, strict=True))
    how: Any = {"margin": told["margin"], "names": names, "precision": precision}
    return difference_of(learned, question, *both, **how).with_comparison(told["policy"])


def _name_of(name: str, of: Certificate) -> str:
    """Return the name of a policy, or nothing if it is that of a policy which does something else."""
    graph = of.policy.graph
    is_known = name in (UNIFORM, *graph.action_names)
    return "" if is_known and not acts_alike(graph, of.policy, check_policy(graph, name)) else name


def _without_runs(question: Question, of_runs: bool | str) -> Question:
    """Return a question whose runs are not there, and which places bets where it did with them."""
    rival: Any = {"against": None, "practised": frozenset({"against"})} if of_runs == "apart" else {}
    return replace(question, runs=WhyNot(_NO_RUNS), **rival)


def _prespecified(model: ParametricMDP, certificate: Certificate) -> list[Question]:
    """Return the pre-specified questions. Those about policies are the certificate's, asked of its policies."""
    options, rival = certificate.how.options, certificate.comparison.rival
    own = certificate.policy if options["policy"] == "given" else None  # others were not pre-specified
    both = [rival, own] if certificate.comparison.difference.get("policy") == "second" else [own, rival]
    texts, found = options["objectives"], list[Question]()
    remembers = options.get("with_memory", [False] * len(texts))
    prespecified = options.get("prespecified", [{} if text else {"policy": "given"} for text in texts])
    for text, memory, about in zip(texts, remembers, prespecified, strict=True):
        # a comparison is one question about two policies, or one about each
        places = {"policy": 0 if "against" in about else sum(each.has_policies for each in found), "against": 1}
        given: dict[str, Any] = {
            name: PRACTICE if whose == PRACTICE else (*both, None, None)[places[name]] for name, whose in about.items()
        }
        if (
            not (text or certificate.claim.objective)
            or any(each is None for each in given.values())
            or sum(not each for each in texts) > len(both)
        ):
            raise DataError(f"the question has no text, so that {_ALONE}")
        question = ask(text or certificate.claim.objective, model, memory=memory)
        arrays: dict[str, Any] = {name: each if is_practice(each) else np.asarray(each) for name, each in given.items()}
        found.append(replace(question, **arrays))  # as they were, and not as what these data led to
    return found


def question_of(learned: Learned, certificate: Certificate) -> Question:
    """Return the question of a certificate, among those that were asked or else from its text."""
    asked = certificate.rests_on.provenance["objective"]
    solved = [Question(model, objective) for model, objective in learned.solvers]
    graph = certificate.policy.graph.fingerprint
    for question in (*learned.questions, *solved):
        if question.model.graph.fingerprint == graph and digest(question.objective) == asked:
            return question
    memory = memory_of(certificate.policy) or certificate.how.options.get("memory", False)
    return ask(certificate.claim.objective, learned.model, memory=memory)


def require_origin(learned: Learned, certificate: Certificate) -> None:
    """Refuse a ``Learned`` that a certificate was not concluded from."""
    provenance = certificate.rests_on.provenance
    if provenance.get("expressions") != learned.model.fingerprint:
        raise DataError("the certificate is about another model: give the one that was certified")
    if provenance.get("counts") != learned.counts.fingerprint:
        raise DataError("the certificate rests on other counts: give those that it was certified from")
    memory = certificate.policy.graph.memory
    graph = certificate.policy.graph if memory is None else memory.graph
    if graph.fingerprint != learned.model.graph.fingerprint:
        raise DataError("the certificate was read without its model: read it with read_result(path, model)")
    same = {name: certificate.how.options.get(name) for name in learned.options} == dict(learned.options)
    if not same or certificate.confidence != 1 - learned.error:
        raise DataError("the certificate was made with other options: give what it was concluded from")


def _require_same(certificate: Certificate, again: Certificate) -> None:
    """Refuse a certificate that does not follow from its counts and options."""
    old, new = certificate.to_dict(), again.to_dict()
    differing = [name for name in new if name not in _OF_ITS_TIME and old.get(name) != new[name]]
    rivals = certificate.comparison.rival, again.comparison.rival
    for name, (mine, made) in {"policy": (certificate.policy, again.policy), "rival": rivals}.items():
        if mine is not made and (mine is None or made is None or not np.array_equal(mine, made)):
            differing.append(name)
    if not differing:
        return
    first = differing[0]
    problem = f"do not give its {first}"
    if first in ("lower", "upper", "status"):
        problem = f"give {first} {new[first]}, not {old[first]}"
    here, there = (
        f"plumdp {source.rests_on.provenance.get('plumdp')} with NumPy {source.rests_on.provenance.get('numpy')}"
        for source in (again, certificate)
    )
    raise DataError(
        f"the counts and options of this certificate {problem}: it was changed, or {there} made it, and this is "
        f"{here}; certify again"
    )
