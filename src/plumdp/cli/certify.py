"""``plumdp certify``: from a model and data to a policy with a guarantee, or to that of a given policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Relaxation, Status
from plumdp.cli import decisions
from plumdp.cli.inputs import each_model, learn, load_objectives, load_questions, objective_of, runs_of
from plumdp.cli.options import Options
from plumdp.cli.outputs import require_output, write_results
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import EXIT_CODES, Result, exit_code, print_comparison, print_json, print_results, with_command
from plumdp.cli.sources import load_policy

if TYPE_CHECKING:
    from plumdp.learning.learned import Learned
    from plumdp.model.language.threshold import Threshold
    from plumdp.model.objectives import Objective
    from plumdp.model.policy import Policy
    from plumdp.model.question import Question


def certify(given: Options) -> int:
    """Answer the question for every model of a range; print and save the results."""
    _require_one_thing(given)
    require_output(given)
    for is_asked, answer in (
        (_is_quantile(given), decisions.least_budgets),
        (given.willingness is not None, decisions.net_benefit),
        (given.subject_to, decisions.within_thresholds),
        (given.against is not None, decisions.improvement if given.policy is None else decisions.difference),
        (given.relaxation == "all", _compare),
    ):
        if is_asked:
            return answer(given)
    models = each_model(given)
    if len(models) > 1 and given.output:
        raise DataError("--output: a range has several results; write one at a time, with one value for each constant")
    learned = [certified(one) for one in models]
    results = [each for _, of_one in learned for each in of_one]
    try:
        if given.json:
            print_json([result.to_dict() for result in results], one=len(results) == 1)
        else:
            print_results(results)
    finally:  # also if nobody reads on, as after head
        write_results(given, learned[0][0], [result.saved for result in results])
    return exit_code(results)


def _is_quantile(given: Options) -> bool:
    return any(text.lstrip().startswith("quantile") for text in given.property)


def _require_one_thing(given: Options) -> None:
    """Refuse options if one of them would be ignored."""
    ways: dict[str, object] = {
        "--willingness": given.willingness,
        "--subject-to": given.subject_to,
        "--against": given.willingness is None and given.against,
        "--relaxation all": given.relaxation == "all",
        "--property quantile(…)": _is_quantile(given),
    }
    others: dict[str, object] = {
        "--policy": given.policy and not given.against,
        "--against": given.against and given.willingness and not given.policy,
        "--relaxation": given.relaxation not in (None, "all"),
        "--output": given.output and given.relaxation == "all",
    }
    asked = [option for option, value in ways.items() if value]
    asked += [option for option, value in others.items() if value and asked]
    if len(asked) > 1:
        raise DataError(f"{asked[0]} and {asked[1]}: ask one thing at a time")
    if given.margin and given.against is None:
        raise DataError(f"--margin {given.margin:g}: there is no other policy; give one with --against")
    if given.announced and given.policy is None and given.against is None:
        raise DataError("--announced: no policy is given; name it with --policy, or with --against")


def certified(given: Options) -> tuple[Learned, list[Result]]:
    """Return the ``Learned`` of one model, and the certificates that follow, with the answers to thresholds.

    They are about the best policy that is found, or about the one in a file. The same value may be compared with
    several thresholds.
    """
    from plumdp.certifying.pipeline import announcing
    from plumdp.model.objectives import digest
    from plumdp.model.question import ask, memory_for

    read, questions = load_questions(given)
    table = None if given.policy is None else load_policy(given.policy, read)
    may_count = table is None or memory_for(read, table)
    objectives = [objective_of(question) for question in questions]
    distinct = {digest(each): ask(each, read, memory=may_count) for each in objectives}
    runs = None if given.policy is None else runs_of(given, read, given.policy)
    told = [announcing(each, table, announced=given.announced, runs=runs) for each in distinct.values()]
    learned = learn(given, read, told)
    concerning = [distinct[digest(each)] for each in objectives]
    both = zip(questions, concerning, strict=True)
    return learned, [_answer(given, learned, question, about, table) for question, about in both]


def _answer(
    given: Options,
    learned: Learned,
    question: Objective | Threshold,
    about: Question,
    policy: Policy | None,
) -> Result:
    from plumdp.model.language.threshold import Threshold

    LOGGER.info("certifying %s", question.text)
    relaxation: Relaxation | None = None if given.relaxation == "all" else given.relaxation
    certificate = with_command(plumdp.conclude(learned, about, relaxation=relaxation, policy=policy))
    if not isinstance(question, Threshold):
        return Result(certificate, constants=given.constant)
    answer = plumdp.decide(learned, question, relaxation=relaxation, certificate=certificate)
    return Result(answer.certificate, answer, given.constant)


def _compare(given: Options) -> int:
    """Show what each relaxation certifies from the same data; 3 if they contradict the model, otherwise 0."""
    from plumdp.model.question import ask_all

    compared: list[tuple[Options, list[plumdp.Certificate]]] = []
    for one in each_model(given):
        read, objectives = load_objectives(one)
        questions = ask_all(objectives, read, memory=True)
        learned = learn(one, read, questions)
        for question in questions:
            LOGGER.info("comparing what relaxations certify: %s", question.objective.text)
            compared.append((one, plumdp.compare(learned, question)))
    results = [Result(each, constants=one.constant) for one, certificates in compared for each in certificates]
    if given.json:
        print_json([result.to_dict() for result in results])
    else:
        for one, certificates in compared:
            print_comparison(certificates, one.constant)
    contradicted = EXIT_CODES[Status.CONTRADICTED]
    return contradicted if exit_code(results) == contradicted else 0
