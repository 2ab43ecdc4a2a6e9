"""Learns again from the data of a certificate, and refuses data that do not give the same certificate."""

from __future__ import annotations

from collections.abc import Iterator
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
    of_concluding: Any = {name: options[name] for name in _CONCLUDING}
    problem = ""
    for questions in _announced(model, certificate, policy):
        learned = learn(model, counts, objectives=questions, confidence=certificate.confidence, **of_learning)
        require_origin(learned, certificate)
        question = question_of(learned, certificate)
        if policy is None and _is_alone(certificate.policy.graph):  # on the product of its own that conclude made
            question = ask(certificate.objective, model, memory=options["memory"])
        again = conclude(learned, question, policy=policy, **of_concluding)
        if certificate.answer:
            threshold, relaxation = certificate.answer["question"], options["relaxation"]
            again = decide(learned, threshold, relaxation=relaxation, certificate=again).answered
        difference = _difference(certificate, again)
        if not difference:
            return learned
        problem = problem or difference
    raise DataError(problem)


def _is_alone(graph: Graph) -> bool:
    """Return whether a graph with memory has the actions of one policy only."""
    return graph.memory is not None and graph.n_choices == graph.n_states


def _announced(model: ParametricMDP, certificate: Certificate, policy: Policy | None) -> Iterator[list[Question]]:
    """Yield lists of questions, one of which was announced.

    Questions about policies have no text, and a folder with both policies of a comparison does not say which of them
    was announced. So all possibilities are tried, and one that gives the same certificate is as good as the right one.
    """
    texts = certificate.options["objectives"]
    remembers = certificate.options.get("with_memory", [False] * len(texts))
    if all((*texts, certificate.objective)):
        yield [ask(text, model, memory=memory) for text, memory in zip(texts, remembers, strict=True)]
        return
    rival = certificate.rival
    if policy is None or any(texts) or not certificate.objective or (len(texts) > 1 and rival is None):
        raise DataError(f"the question has no text, so that {_ALONE}")
    question = ask(certificate.objective, model, memory=remembers[0])
    own = policy if is_practice(policy) else np.asarray(policy)  # as it was, and not as what these data led to
    pairs: list[tuple[Policy | None, Policy | None]] = [(own, None)]
    if rival is not None:
        others: list[Policy] = [PRACTICE, np.asarray(rival)]
        pairs = [(first, each) for each in others for first in (own, None)]
        pairs += [(first, own) for first in (None, *others)]
    for one, other in pairs:
        both = replace(question, policy=one, against=other)
        yield [*both.apart()] if len(texts) == 2 else [both]


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


def _difference(certificate: Certificate, again: Certificate) -> str:
    """Return in which way a certificate does not follow from its counts and options; nothing if it does."""
    old, new = certificate.to_dict(), again.to_dict()
    differing = [name for name in new if name not in _OF_ITS_TIME and old.get(name) != new[name]]
    if not np.array_equal(certificate.policy, again.policy):
        differing.append("policy")
    if not differing:
        return ""
    first = differing[0]
    problem = f"do not give its {first}"
    if first in ("lower", "upper", "status"):
        problem = f"give {first} {new[first]}, not {old[first]}"
    here, there = (
        f"plumdp {source.provenance.get('plumdp')} with NumPy {source.provenance.get('numpy')}"
        for source in (again, certificate)
    )
    return (
        f"the counts and options of this certificate {problem}: it was changed, or {there} made it, and this is "
        f"{here}; certify again"
    )
