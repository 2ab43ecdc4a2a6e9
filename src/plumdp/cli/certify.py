"""``plumdp certify``: from a model and data to a policy with a guarantee, or to that of a given policy.

It also decides which policy is better, keeps within thresholds, and finds net benefits. Each of these
prints and saves what is certified, and returns the exit code.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.progress import tell
from plumdp.base.vocabulary import EXIT_CODES, Relaxation, Status
from plumdp.cli.errors import where_given
from plumdp.cli.inputs import (
    each_model,
    learn,
    load_objective,
    load_objectives,
    load_questions,
    load_texts,
    map_of,
    objective_of,
    read_data,
    read_units,
    runs_of,
)
from plumdp.cli.options import Options
from plumdp.cli.outputs import require_output, write_results
from plumdp.cli.results import (
    Result,
    code_of_difference,
    exit_code,
    grid,
    print_comparison,
    print_decisions,
    print_json,
    print_results,
    prose,
    standard_output,
    with_command,
    worst_code,
)
from plumdp.cli.sources import load_policy, policy_names, policy_words
from plumdp.model.question import PRACTICE
from plumdp.result.show import shown

if TYPE_CHECKING:
    from plumdp.certifying.difference import Difference
    from plumdp.learning.learned import Learned
    from plumdp.model.language.threshold import Threshold
    from plumdp.model.objectives import Objective
    from plumdp.model.policy import Policy
    from plumdp.model.question import Question
    from plumdp.result.certificate import Certificate


def certify(given: Options) -> int:
    """Answer the question for every model of a range; print and save the results."""
    if where_given("prespecified") != "--prespecified" and not _is_own_rule(given):
        given = replace(given, prespecified=False)
    _require_one_thing(given)
    if given.by and "=" not in given.by:
        return units(given)
    require_output(given)
    for is_asked, answer in (
        (given.willingness is not None, net_benefit),
        (given.subject_to, within_thresholds),
        (given.against is not None, improvement if given.policy is None else difference),
        (given.relaxation == "all", _compare),
        (bool(given.since), _since),
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
            print_results(results, in_full=given.verbose > 0)
    finally:  # also if nobody reads on, as after head
        write_results(given, learned[0][0], [result.saved for result in results])
    return exit_code(results)


def _is_own_rule(given: Options) -> bool:
    """Return whether the policies are rules of people, of which a file may say that data did not choose them."""
    texts = [each for each in (given.policy, given.against) if each not in (None, PRACTICE)]
    return bool(texts) and all(".py" in each or not Path(each).exists() for each in map(str, texts))


def _require_one_thing(given: Options) -> None:
    """Refuse options if one of them would be ignored."""
    ways: dict[str, object] = {
        "--willingness": given.willingness,
        "--subject-to": given.subject_to,
        "--against": given.willingness is None and given.against,
        "--relaxation all": given.relaxation == "all",
        "--since": bool(given.since),
        "--by": given.by and "=" not in given.by,
    }
    others: dict[str, object] = {
        "--policy": given.policy and not given.against and not given.since,
        "--against": given.against and given.willingness and not given.policy,
        "--relaxation": given.relaxation not in (None, "all"),
        "--confidence-set": given.since and given.confidence_set,
        "--output": given.output and (given.relaxation == "all" or given.since),
        "--model-tolerance": given.since and given.model_tolerance,
        "--witness": (given.since or (given.by and "=" not in given.by)) and given.witness,
    }
    asked = [option for option, value in ways.items() if value]
    asked += [option for option, value in others.items() if value and asked]
    if len(asked) > 1:
        raise DataError(f"{asked[0]} and {asked[1]}: ask one thing at a time")
    if given.margin and given.against is None:
        raise DataError(f"--margin {given.margin:g}: there is no other policy; give one with --against")
    if given.prespecified and given.policy is None and given.against is None:
        raise DataError("--prespecified: no policy is given; name it with --policy, or with --against")


def units(given: Options) -> int:
    """Certify each unit of a log, and write a table with a row for each."""
    if given.output is not None and given.output.suffix != ".parquet":
        raise DataError(
            f"--output {given.output}: name a file that ends in .parquet; for the folder of one unit, say "
            f"--by {given.by}=NAME"
        )
    if given.output is not None and given.force:
        given.output.unlink(missing_ok=True)
    read, texts = load_texts(given)
    if len(texts) > 1:
        raise DataError("--by: a table answers one property; give one")
    policy = None if given.policy is None else load_policy(given.policy, read)
    how: Any = {"policy": policy, "prespecified": given.prespecified, "relaxation": given.relaxation}
    how |= {"confidence": given.confidence, "confidence_set": given.confidence_set}
    logs = read_units(given, read)
    with map_of(len(logs)) as mapped:
        how |= {"map": mapped, "output": given.output}
        found = plumdp.certify_each(
            read, logs, texts[0], together=given.together, model_tolerance=given.model_tolerance, **how
        )
    if given.json:
        print_json([found.to_dict()], one=True)
    else:
        console, page = standard_output(), found.page()
        console.print(prose(page.headline, style="bold"))
        console.print(grid(shown(page, in_full=given.verbose > 0)))
    return found.exit_code


def certified(given: Options) -> tuple[Learned, list[Result]]:
    """Return the ``Learned`` of one model, and the certificates that follow, with the answers to thresholds.

    They are about the best policy that is found, or about the one in a file. The same value may be compared with
    several thresholds.
    """
    from plumdp.certifying.pipeline import prespecifying
    from plumdp.model.objectives import digest
    from plumdp.model.question import ask, memory_for

    read, questions = load_questions(given)
    table = None if given.policy is None else load_policy(given.policy, read)
    may_count = table is None or memory_for(read, table)
    objectives = [objective_of(question) for question in questions]
    distinct = {digest(each): ask(each, read, memory=may_count) for each in objectives}
    runs = None if given.policy is None else runs_of(given, read, given.policy)
    told = [prespecifying(each, table, prespecified=given.prespecified, runs=runs) for each in distinct.values()]
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

    tell(f"certifying {question.text}")
    relaxation: Relaxation | None = None if given.relaxation == "all" else given.relaxation
    certificate = with_command(plumdp.conclude(learned, about, relaxation=relaxation, policy=policy))
    if not isinstance(question, Threshold):
        return Result(certificate, constants=given.constant)
    answer = plumdp.decide(learned, question, relaxation=relaxation, certificate=certificate)
    return Result(answer.certificate, answer, given.constant)


def _compare(given: Options) -> int:
    """Show what each relaxation certifies from the same data; 3 if they contradict the model, otherwise 0."""
    from plumdp.model.question import ask_all

    compared: list[tuple[Options, list[Certificate]]] = []
    for one in each_model(given):
        read, objectives = load_objectives(one)
        questions = ask_all(objectives, read, memory=True)
        learned = learn(one, read, questions)
        for question in questions:
            tell(f"comparing what relaxations certify: {question.objective.text}")
            compared.append((one, plumdp.compare(learned, question)))
    results = [Result(each, constants=one.constant) for one, certificates in compared for each in certificates]
    if given.json:
        print_json([result.to_dict() for result in results])
    else:
        for one, certificates in compared:
            print_comparison(certificates, one.constant, in_full=given.verbose > 0)
    contradicted = EXIT_CODES[Status.REJECTED]
    return contradicted if exit_code(results) == contradicted else 0


def _since(given: Options) -> int:
    """Show what holds if nothing has changed since a run or row."""
    from plumdp.certifying.since import certify_since

    read, objective = load_objective(given)
    how: Any = {"prespecified": given.prespecified, "confidence": given.confidence}
    policy = None if given.policy is None else load_policy(given.policy, read)
    found = certify_since(read, read_data(given, read), objective, given.since, policy=policy, **how)
    results = [Result(found, constants=given.constant)]
    if given.json:
        print_json([result.to_dict() for result in results], one=True)
    else:
        print_results(results, in_full=given.verbose > 0)
    return exit_code(results)


_POLICIES = ("--policy", "--against")
_CONTRADICTED, _UNKNOWN = EXIT_CODES[Status.REJECTED], EXIT_CODES[Status.INCONCLUSIVE]


def difference(given: Options) -> int:
    """Bound the difference of two policies for each objective."""
    from plumdp.certifying.pipeline import comparing
    from plumdp.model.question import ask, memory_for

    texts = str(given.policy), str(given.against)
    read, objectives = load_objectives(given)
    first, second = load_policy(texts[0], read), load_policy(texts[1], read, option="--against")
    names = policy_names(*texts, words=policy_words(read))
    assert len(names) == 2
    questions = (ask(each, read, memory=memory_for(read, first, second)) for each in objectives)
    how: Any = {"prespecified": given.prespecified, "runs": runs_of(given, read, *texts)}
    told = [one for each in questions for one in comparing(each, first, second, **how)]
    learned = learn(given, read, told)
    found = [plumdp.difference(learned, each, first, second, margin=given.margin, names=names) for each in objectives]
    differences = [in_words(each) for each in found]
    more = [plumdp.decisions.runs_to_tell(learned, *pair) for pair in zip(objectives, differences, strict=True)]
    _tell(given, learned, differences, [each.with_comparison() for each in differences], more)
    return worst_code({code_of_difference(each) for each in differences})


def in_words(found: Difference) -> Difference:
    """Return a comparison whose certificates say by which command they were made, in the words of the command line."""
    return replace(found, first=with_command(found.first), second=with_command(found.second))


def improvement(given: Options) -> int:
    """Find policies with the largest certified gain over another, or keep that one: 4 if none is known to be better."""
    from plumdp.certifying.improvement import with_baseline

    read, objectives = load_objectives(given)
    baseline = load_policy(str(given.against), read, option="--against")
    learned = learn(given, read, with_baseline(objectives, read, baseline, prespecified=given.prespecified))
    (name,) = policy_names(str(given.against), words=policy_words(read))
    found = (
        plumdp.decisions.improve(learned, each, over=baseline, margin=given.margin, name=name) for each in objectives
    )
    answers = [replace(each, difference=in_words(each.difference)) for each in found]
    compared = zip(objectives, answers, strict=True)
    more = [plumdp.decisions.runs_to_tell(learned, asked, each.difference) for asked, each in compared]
    _tell(given, learned, answers, [each.compared for each in answers], more)
    if exit_code([Result(each.certificate) for each in answers]) == _CONTRADICTED:
        return _CONTRADICTED
    return 0 if all(each.is_better for each in answers) else _UNKNOWN


def within_thresholds(given: Options) -> int:
    """Certify policies that keep within thresholds: 4 if some is not known."""
    from plumdp.model.language.threshold import parse_threshold
    from plumdp.model.question import ask_all

    read, objectives = load_objectives(given)
    limits = [parse_threshold(text, read).objective for text in given.subject_to]
    learned = learn(given, read, ask_all([*objectives, *limits], read, memory=False))
    found = [plumdp.decisions.certify_within(learned, each, subject_to=given.subject_to) for each in objectives]
    code = _tell(given, learned, found, [each.certificate for each in found])
    return code or (0 if all(each.is_feasible for each in found) else _UNKNOWN)


def net_benefit(given: Options) -> int:
    """Certify which policy has the largest net benefit: 4 if that is known nowhere."""
    from plumdp.certifying.pipeline import comparing
    from plumdp.model.question import ask_all
    from plumdp.result.folder import REPORT

    assert given.willingness is not None
    read, objectives = load_objectives(given)
    if len(objectives) != 2:
        raise DataError(f"--willingness: ask two properties, the effect and the cost, not {len(objectives)}")
    texts = [text for text in (given.policy, given.against) if text]
    policies = [load_policy(text, read, option=option) for text, option in zip(texts, _POLICIES, strict=False)]
    told = [*ask_all(objectives, read, memory=False)]
    if policies:
        told = [one for each in told for one in comparing(each, *policies, prespecified=given.prespecified)]
    learned = learn(given, read, told)
    named = dict(zip(policy_names(*texts, words=policy_words(read)), policies, strict=True)) or None
    found = plumdp.decisions.net_benefit(learned, *objectives, willingness=given.willingness, strategies=named)
    code = _tell(given, learned, [found], [each for one in found.strategies for each in (one.effect, one.cost)])
    if given.output is not None:
        plumdp.write_report(found, None, given.output / REPORT)
        if not given.json:
            names = ", ".join(one.name for one in found.strategies)
            print(f"certificates: 1, 2, … in {given.output}: effect and cost of {names}, in this order")
            print(f"report: {given.output / REPORT}")
    return code if code == _CONTRADICTED else 0 if any(one.best for one in found.strategies) else _UNKNOWN


def _tell(given: Options, learned: Learned, found: Any, certificates: list[Certificate], more: Any = ()) -> int:
    """Print what was found, save its certificates if that is asked for, and return the exit code of these."""
    try:
        print_decisions(found, more or [None] * len(found), as_json=given.json, in_full=given.verbose > 0)
    finally:  # also if nobody reads on, as after head
        write_results(given, learned, [with_command(each) for each in certificates])
    return exit_code([Result(each) for each in certificates])
