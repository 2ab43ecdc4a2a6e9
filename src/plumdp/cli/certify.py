"""``plumdp certify`` and ``plumdp compare``: from a model and data to a policy with a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Relaxation
from plumdp.cli import arguments as args
from plumdp.cli.decisions import Decision
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions, objective_of
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import Result, exit_code, print_comparison, print_json, print_results, with_command
from plumdp.cli.sources import load_policy

if TYPE_CHECKING:
    from plumdp.model.language.threshold import Threshold
    from plumdp.model.objective import Objective
    from plumdp.model.question import Question

Relaxing = Annotated[
    Relaxation | None,
    typer.Option("--relaxation", "-r", help="What nature may do. Default: coupled."),
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
    steps: args.Steps = None, rejected: args.Rejected = None,
    property: args.Properties = None, all_properties: args.AllProperties = False,
    confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    misfit: args.Misfit = 0.0, evidence: args.Evidence = None,
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
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, misfit, evidence)
    folder = FolderOptions(output, explain, force, witness)
    about = ModelOptions(model, constant, space)
    decision = Decision(about, log, asked, sets, folder, as_json)
    if any(text.lstrip().startswith("quantile") for text in property or ()):
        decision.on_budgets()
    if willingness is not None and subject_to:
        raise DataError("--willingness and --subject-to: ask one thing at a time")
    if willingness is not None:
        decision.on_net_benefit(willingness)
    if subject_to:
        decision.within(subject_to)
    certify_each(about, log, asked, sets, relaxation, folder, memory=memory, as_json=as_json)


class Given(NamedTuple):
    """A policy of one's own, and whether it was chosen before the data were looked at."""

    policy: str
    announced: bool = False


def certify_each(
    model: ModelOptions,
    log: LogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    relaxation: Relaxation | None,
    folder: FolderOptions,
    given: Given | None = None,
    *,
    memory: bool = True,
    as_json: bool,
) -> None:
    """Certify what is asked of every model of a range, print and save the results, and end with their exit code."""
    models = model.each()
    if len(models) > 1 and folder.output is not None:
        raise DataError("--output: a range has several results; write one at a time, with one value for each constant")
    learned = [
        certified(one, log, asked, sets, relaxation, given, memory=memory, witness=folder.witness) for one in models
    ]
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
    given: Given | None = None,
    *,
    memory: bool = True,
    witness: bool = False,
) -> tuple[plumdp.Learned, list[Result]]:
    """Return what was learned about one model, and the certificates that follow, with the answers to thresholds.

    They are about the best policy that is found, or about the one in a file. The same value may be compared with
    several thresholds.
    """
    from plumdp.certifying.pipeline import announcing
    from plumdp.model.objective import digest
    from plumdp.model.policy import memory_of

    read, questions = asked.questions(model)
    table = None if given is None else load_policy(given.policy, read)
    may_count = memory if table is None else memory_of(table)
    objectives = [objective_of(question) for question in questions]
    distinct = {digest(each): plumdp.model.ask(each, read, memory=may_count) for each in objectives}
    announced = given is not None and given.announced
    told = [announcing(each, table, announced=announced) for each in distinct.values()]
    learned = sets.learn(read, log.read_for(model, read), told, witness=witness)
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
    certificate = with_command(plumdp.conclude(learned, about, relaxation=relaxation, policy=policy))
    if not isinstance(question, Threshold):
        return Result(certificate, constants=model.constants)
    answer = plumdp.decide(learned, question, relaxation=relaxation, certificate=certificate)
    return Result(answer.certificate, answer, model.constants)


def compare(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.Data, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    property: args.Properties = None, all_properties: args.AllProperties = False,
    confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    misfit: args.Misfit = 0.0, evidence: args.Evidence = None,
    memory: args.Memory = True, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Show what each relaxation certifies from the same data; ends with 3 if the data contradict the model."""
    from plumdp.certifying.pipeline import compare_learned
    from plumdp.model.question import ask_all

    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, misfit, evidence)
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
