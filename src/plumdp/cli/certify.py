"""``plumdp certify`` and ``plumdp compare``: from a model and data to a policy with a guarantee."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Relaxation, Status
from plumdp.cli import arguments as args
from plumdp.cli.invocation import command_line
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions, objective_of
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import (
    EXIT_CODES,
    VERDICT_CODES,
    Result,
    exit_code,
    print_comparison,
    print_decisions,
    print_json,
    print_results,
    worst_code,
)
from plumdp.cli.sources import load_policy

if TYPE_CHECKING:
    from plumdp.model.language.threshold import Threshold
    from plumdp.model.objective import Objective
    from plumdp.model.question import Question

Relaxing = Annotated[
    Relaxation | None,
    typer.Option("--relaxation", "-r", help="What nature may do. Default: coupled; rectangular, of published sets."),
]

SubjectTo = Annotated[
    list[str] | None,
    typer.Option(
        "--subject-to",
        metavar="THRESHOLD",
        help="What the policy must be certified to keep within, such as 'P<=0.01 [ F \"failed\" ]'; repeat for more. "
        "Policies then count no steps.",
    ),
]

Willingness = Annotated[
    str | None,
    typer.Option(
        "--willingness",
        metavar="FROM:TO",
        help="Of two properties, such as health and cost: which policy has the largest net benefit, from where to "
        "where in the willingness to pay for the first. Policies then count no steps.",
    ),
]


def certify(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.Data, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, allow_impossible: args.AllowImpossible = 0, rejected: args.Rejected = None,
    partitions: args.Partitions = None,
    property: args.Properties = None, all_properties: args.AllProperties = False,
    confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    interval_method: args.IntervalMethod = None, misfit: args.Misfit = 0.0, evidence: args.Evidence = None,
    output: args.ResultFolder = None, explain: args.Explain = False, witness: args.Witness = False,
    force: args.ReplaceResult = False,
    relaxation: Relaxing = None, memory: args.Memory = True, subject_to: SubjectTo = None,
    willingness: Willingness = None, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Find a policy and bounds on its value that hold with the given confidence.

    A property with a threshold, such as P>=0.9 [ F "goal" ], is answered with yes, no or not yet known, and
    quantile(B, P>=0.9 [ F<=B "goal" ]) with the least B. Ends with 0 if certified or yes, 1 if no, 3 if the data
    contradict the model, 4 if nothing is certified or not yet known.
    """
    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps, allow_impossible,
        rejected, partitions,
    )  # fmt: skip
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, interval_method, misfit, evidence)
    folder = FolderOptions(output, explain, force, witness)
    about = ModelOptions(model, constant, space)
    if any(text.lstrip().startswith("quantile") for text in property or ()):
        _certify_quantiles(about, log, asked, sets, folder, as_json=as_json)
    if willingness is not None:
        if subject_to:
            raise DataError("--willingness and --subject-to: ask one thing at a time")
        _certify_net_benefit(about, log, asked, sets, folder, willingness, as_json=as_json)
    if subject_to:
        _certify_within(about, log, asked, sets, folder, subject_to, as_json=as_json)
    certify_each(about, log, asked, sets, relaxation, folder, memory=memory, as_json=as_json)


def _certify_within(
    model: ModelOptions,
    log: LogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    folder: FolderOptions,
    subject_to: list[str],
    *,
    as_json: bool,
) -> None:
    """Certify policies that keep within thresholds, print and save them, and end with 0, or 4 if some is not known."""
    from plumdp.model.language.threshold import parse_threshold
    from plumdp.model.question import ask_all

    read, objectives = asked.load(model)
    limits = [parse_threshold(text, read).objective for text in subject_to]
    questions = ask_all([*objectives, *limits], read, memory=False)
    learned = sets.learn(read, log.read_for(model, read), questions)
    found = [plumdp.decisions.certify_within(learned, each, subject_to=subject_to) for each in objectives]
    print_decisions(found, [None] * len(found), as_json=as_json)
    folder.write(learned, [_with_command(each.certificate) for each in found])
    code = exit_code([Result(each.certificate) for each in found])
    raise typer.Exit(code or (0 if all(each.is_feasible for each in found) else EXIT_CODES[Status.VACUOUS]))


def _certify_quantiles(
    model: ModelOptions,
    log: LogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    folder: FolderOptions,
    *,
    as_json: bool,
) -> None:
    """Find the least budgets that are asked for, print and save what is certified, and end with the exit code."""
    from plumdp.model.language.quantile import is_quantile, parse_quantile
    from plumdp.model.objective import digest
    from plumdp.model.question import ask_all

    read, texts = asked.texts(model)
    others = [text for text in texts if not is_quantile(text)]
    if others:
        raise DataError(f"--property {others[0]}: ask for quantiles by themselves")
    questions = [parse_quantile(text, read) for text in texts]
    objectives = {digest(each.forever().objective): each.forever().objective for each in questions}
    learned = sets.learn(read, log.read_for(model, read), ask_all([*objectives.values()], read))
    found = [plumdp.decisions.quantile(learned, each) for each in questions]
    print_decisions(found, [None] * len(found), as_json=as_json)
    folder.write(learned, [_with_command(each.answer.answered) for each in found])
    of_data = exit_code([Result(each.answer.certificate) for each in found])
    raise typer.Exit(3 if of_data == 3 else worst_code({VERDICT_CODES[each.possible] for each in found}))


def _certify_net_benefit(
    model: ModelOptions,
    log: LogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    folder: FolderOptions,
    willingness: str,
    *,
    as_json: bool,
) -> None:
    """Certify which policy has the largest net benefit, and end with 0, or 4 if that is known nowhere in the range."""
    from plumdp.model.question import ask_all

    try:
        start, end = map(float, willingness.split(":"))
    except ValueError:
        raise DataError(f"--willingness {willingness}: write FROM:TO, such as 0:50000") from None
    read, objectives = asked.load(model)
    if len(objectives) != 2:
        raise DataError(f"--willingness: ask two properties, the effect and the cost, not {len(objectives)}")
    learned = sets.learn(read, log.read_for(model, read), ask_all(objectives, read, memory=False))
    effect, cost = objectives
    found = plumdp.decisions.net_benefit(learned, effect, cost, willingness=(start, end))
    print_decisions([found], [None], as_json=as_json)
    certificates = [each for one in found.strategies for each in (one.effect, one.cost)]
    folder.write(learned, [_with_command(each) for each in certificates])
    if exit_code([Result(each) for each in certificates]) == EXIT_CODES[Status.CONTRADICTED]:
        raise typer.Exit(EXIT_CODES[Status.CONTRADICTED])
    raise typer.Exit(0 if any(one.best for one in found.strategies) else EXIT_CODES[Status.VACUOUS])


def certify_each(
    model: ModelOptions,
    log: LogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    relaxation: Relaxation | None,
    folder: FolderOptions,
    policy: str | None = None,
    *,
    memory: bool = True,
    as_json: bool,
) -> None:
    """Certify what is asked of every model of a range, print and save the results, and end with their exit code."""
    models = model.each()
    if len(models) > 1 and folder.output is not None:
        raise DataError("--output: a range has several results; write one at a time, with one value for each constant")
    learned = [certified(one, log, asked, sets, relaxation, policy, memory=memory) for one in models]
    results = [each for _, of_one in learned for each in of_one]
    if as_json:
        print_json([result.to_dict() for result in results], one=len(results) == 1)
    else:
        print_results(results)
    folder.write(learned[0][0], [result.saved for result in results])
    raise typer.Exit(exit_code(results))


def certified(
    model: ModelOptions,
    log: LogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    relaxation: Relaxation | None,
    policy: str | None = None,
    *,
    memory: bool = True,
) -> tuple[plumdp.Learned, list[Result]]:
    """Return what was learned about one model, and the certificates that follow, with the answers to thresholds.

    They are about the best policy that is found, or about the one in a file. The same value may be compared with
    several thresholds.
    """
    from plumdp.model.objective import digest
    from plumdp.model.policy import memory_of

    read, questions = asked.questions(model)
    table = None if policy is None else load_policy(policy, read)
    may_count = memory if table is None else memory_of(table)
    objectives = [objective_of(question) for question in questions]
    distinct = {digest(each): plumdp.model.ask(each, read, memory=may_count) for each in objectives}
    learned = sets.learn(read, log.read_for(model, read), list(distinct.values()))
    concerning = [distinct[digest(each)] for each in objectives]
    both = zip(questions, concerning, strict=True)
    return learned, [_answer(learned, question, about, relaxation, model, table) for question, about in both]


def _answer(
    learned: plumdp.Learned,
    question: Objective | Threshold,
    about: Question,
    relaxation: Relaxation | None,
    model: ModelOptions,
    policy: plumdp.PolicyTable | None,
) -> Result:
    from plumdp.model.language.threshold import Threshold

    LOGGER.info("certifying %s", question.text)
    certificate = _with_command(plumdp.conclude(learned, about, relaxation=relaxation, policy=policy))
    if not isinstance(question, Threshold):
        return Result(certificate, constants=model.constants)
    answer = plumdp.decide(learned, question, relaxation=relaxation, certificate=certificate)
    return Result(answer.certificate, answer, model.constants)


def _with_command(certificate: plumdp.Certificate) -> plumdp.Certificate:
    """Return a certificate that says by which command it was made."""
    typed = command_line()
    return replace(certificate, provenance={**certificate.provenance, "command": typed}) if typed else certificate


def compare(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.Data, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, allow_impossible: args.AllowImpossible = 0, rejected: args.Rejected = None,
    partitions: args.Partitions = None,
    property: args.Properties = None, all_properties: args.AllProperties = False,
    confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    interval_method: args.IntervalMethod = None, misfit: args.Misfit = 0.0, evidence: args.Evidence = None,
    memory: args.Memory = True, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Show what each relaxation certifies from the same data; ends with 3 if the data contradict the model."""
    from plumdp.certifying.pipeline import compare_learned
    from plumdp.model.question import ask_all

    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps, allow_impossible,
        rejected, partitions,
    )  # fmt: skip
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, interval_method, misfit, evidence)
    compared: list[tuple[ModelOptions, list[plumdp.Certificate]]] = []
    for one in ModelOptions(model, constant, space).each():
        read, objectives = asked.load(one)
        questions = ask_all(objectives, read, memory=memory)
        learned = sets.learn(read, log.read_for(one, read), questions)
        for question in questions:
            LOGGER.info("comparing what relaxations certify: %s", question.objective.text)
            compared.append((one, compare_learned(learned, question)))
    results = [Result(each, constants=one.constants) for one, certificates in compared for each in certificates]
    if as_json:
        print_json([result.to_dict() for result in results])
    else:
        for one, certificates in compared:
            print_comparison(certificates, one.constants)
    if exit_code(results) == 3:
        raise typer.Exit(3)
