"""Learns again from the data of a certificate, and refuses data that do not give the same certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.certifying.pipeline import conclude
from plumdp.certifying.thresholds import decide
from plumdp.data.counts import TransitionCounts
from plumdp.data.logs import Log
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned
from plumdp.model.graph import Graph
from plumdp.model.objectives import digest
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, memory_of
from plumdp.model.question import PRACTICE, Question, ask, is_practice
from plumdp.result.certificate import Certificate

_LEARNING, _CONCLUDING = ("confidence_set", "misfit"), ("relaxation", "precision")
_OF_ITS_TIME = ("seconds", "provenance", "narrower", "unit")  # may differ, as hashes were compared, and words change
_ALONE = "it cannot be learned again from model and counts: give explain what learn returned"


def learn_again(model: ParametricMDP, counts: TransitionCounts | Log, certificate: Certificate) -> Learned:
    """Return the ``Learned`` of a certificate, learned again from the same counts with the same options.

    It is refused unless it gives the same certificate, to the last bit, because an explanation of another certificate
    must not be shown beside this one.
    """
    options = certificate.options
    if not options.keys() >= {*_LEARNING, *_CONCLUDING, "events", "objectives", "policy"}:
        raise DataError("this certificate was put together by hand: there is nothing that could be learned again")
    if options["events"]:
        raise DataError(f"events of your own were counted, which a certificate does not keep, so that {_ALONE}")
    if "episodes" in options:
        raise DataError(
            f"intervals of earlier updates count as well, which a certificate does not keep, so that {_ALONE}"
        )
    given: Policy = PRACTICE if options.get("practice") else certificate.policy
    policy = given if options["policy"] == "given" else None
    of_learning: Any = {name: options[name] for name in _LEARNING} | {"evidence": options.get("evidence")}
    questions = _announced(model, certificate)
    learned = learn(model, counts, objectives=questions, confidence=certificate.confidence, **of_learning)
    require_origin(learned, certificate)
    of_concluding: Any = {name: options[name] for name in _CONCLUDING}
    question = question_of(learned, certificate)
    if policy is None and _is_alone(certificate.policy.graph):  # on the product of its own that conclude made
        question = ask(certificate.objective, model, memory=options["memory"])
    again = conclude(learned, question, policy=policy, **of_concluding)
    if certificate.answer:
        threshold, relaxation = certificate.answer["question"], options["relaxation"]
        again = decide(learned, threshold, relaxation=relaxation, certificate=again).answered
    _require_same(certificate, again)
    return learned


def _is_alone(graph: Graph) -> bool:
    """Return whether a graph with memory has the actions of one policy only."""
    return graph.memory is not None and graph.is_chain


def _announced(model: ParametricMDP, certificate: Certificate) -> list[Question]:
    """Return the questions that were announced; those about policies are that of the certificate, of its policies."""
    options, rival = certificate.options, certificate.rival
    own = certificate.policy if options["policy"] == "given" else None  # others were not announced
    both = [rival, own] if certificate.comparison.get("policy") == "second" else [own, rival]
    texts, found = options["objectives"], list[Question]()
    remembers = options.get("with_memory", [False] * len(texts))
    announced = options.get("announced", [{} if text else {"policy": "given"} for text in texts])
    for text, memory, about in zip(texts, remembers, announced, strict=True):
        # a comparison is one question about two policies, or one about each
        places = {"policy": 0 if "against" in about else sum(each.has_policies for each in found), "against": 1}
        given: dict[str, Any] = {
            name: PRACTICE if whose == PRACTICE else (*both, None, None)[places[name]] for name, whose in about.items()
        }
        if (
            not (text or certificate.objective)
            or any(each is None for each in given.values())
            or sum(not each for each in texts) > len(both)
        ):
            raise DataError(f"the question has no text, so that {_ALONE}")
        question = ask(text or certificate.objective, model, memory=memory)
        arrays: dict[str, Any] = {name: each if is_practice(each) else np.asarray(each) for name, each in given.items()}
        found.append(replace(question, **arrays))  # as they were, and not as what these data led to
    return found


def question_of(learned: Learned, certificate: Certificate) -> Question:
    """Return the question of a certificate, among those that were asked or else from its text."""
    asked = certificate.provenance["objective"]
    solved = [Question(model, objective) for model, objective in learned.solvers]
    graph = certificate.policy.graph.fingerprint
    for question in (*learned.questions, *solved):
        if question.model.graph.fingerprint == graph and digest(question.objective) == asked:
            return question
    memory = memory_of(certificate.policy) or certificate.options.get("memory", False)
    return ask(certificate.objective, learned.model, memory=memory)


def require_origin(learned: Learned, certificate: Certificate) -> None:
    """Refuse a ``Learned`` that a certificate was not concluded from."""
    provenance = certificate.provenance
    if provenance.get("expressions") != learned.model.fingerprint:
        raise DataError("the certificate is about another model: give the one that was certified")
    if provenance.get("counts") != learned.counts.fingerprint:
        raise DataError("the certificate rests on other counts: give those that it was certified from")
    memory = certificate.policy.graph.memory
    graph = certificate.policy.graph if memory is None else memory.graph
    if graph.fingerprint != learned.model.graph.fingerprint:
        raise DataError("the certificate was read without its model: read it with read_result(path, model)")
    same = {name: certificate.options.get(name) for name in learned.options} == dict(learned.options)
    if not same or certificate.confidence != 1 - learned.error:
        raise DataError("the certificate was made with other options: give what it was concluded from")


def _require_same(certificate: Certificate, again: Certificate) -> None:
    """Refuse a certificate that does not follow from its counts and options."""
    old, new = certificate.to_dict(), again.to_dict()
    differing = [name for name in new if name not in _OF_ITS_TIME and old.get(name) != new[name]]
    if not np.array_equal(certificate.policy, again.policy):
        differing.append("policy")
    if not differing:
        return
    first = differing[0]
    problem = f"do not give its {first}"
    if first in ("lower", "upper", "status"):
        problem = f"give {first} {new[first]}, not {old[first]}"
    here, there = (
        f"plumdp {source.provenance.get('plumdp')} with NumPy {source.provenance.get('numpy')}"
        for source in (again, certificate)
    )
    raise DataError(
        f"the counts and options of this certificate {problem}: it was changed, or {there} made it, and this is "
        f"{here}; certify again"
    )
