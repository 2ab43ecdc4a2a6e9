"""``plumdp export``: what was learned as an interval model for Storm or PRISM, and policy and values as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli import arguments as args
from plumdp.cli.interval_options import IntervalModelOptions, is_interval_file
from plumdp.cli.invocation import is_shared, where_given
from plumdp.cli.options import LogOptions, ModelOptions, PropertyOptions, SetOptions, objective_of, require_new
from plumdp.cli.results import EXIT_CODES, print_json
from plumdp.cli.sources import load_policy
from plumdp.model.text import number_of

if TYPE_CHECKING:
    from plumdp.model.objective import Objective
    from plumdp.result.printing import Fact


_ModelFile = Annotated[
    Path | None, typer.Option("--model", metavar="FILE", help="The interval model: .umb, .tra or .drn.")
]
_PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="The policy: .csv, .json (Storm), .txt (PRISM), .py (a function), .rules (text), or --model's archive.",
    ),
]
_ValuesFile = Annotated[
    Path | None,
    typer.Option(
        "--values", metavar="FILE", help="Bounds on the value of each state: .csv, or the archive of --model."
    ),
]


@dataclass(frozen=True)
class FileOptions:
    """Which files are written."""

    model_file: Path | None
    policy_file: Path | None
    values_file: Path | None
    force: bool

    def __post_init__(self) -> None:
        from plumdp.exchange.policy_files import VALUE_ENDINGS, policy_writer
        from plumdp.exchange.write_intervals import writer_for

        files = [file for file in (self.model_file, self.policy_file, self.values_file) if file is not None]
        if not files:
            raise DataError("say what to write: --model learned.umb, --policy policy.json or --values values.csv")
        if self.model_file is not None:
            writer_for(self.model_file)
        if self.policy_file is not None:
            policy_writer(self.policy_file)
        if self.values_file is not None and self.values_file.suffix.lower() not in VALUE_ENDINGS:
            endings = " or ".join(VALUE_ENDINGS)
            raise DataError(f"--values {self.values_file}: values are written to files that end in {endings}")
        for option, file in (("--policy", self.policy_file), ("--values", self.values_file)):
            if file is not None and file.suffix.lower() == ".umb" and file != self.model_file:
                raise DataError(f"{option} {file}: an archive holds the model as well; write it with --model {file}")
        for file in files:
            require_new(file, force=self.force)

    def write_model(self, model: plumdp.exchange.IntervalModel, claim: str = "") -> dict[str, str]:
        """Write the interval model, if it is asked for, and return what is claimed of it by the name of the file."""
        if self.model_file is None:
            return {}
        plumdp.exchange.write_interval_model(model, self.model_file)
        return {str(self.model_file): f"interval model, {number_of(model.graph.n_states, 'state')}{claim}"}

    def write_policy(self, policy: plumdp.PolicyTable) -> dict[str, str]:
        """Write the policy, if it is asked for, and return its size by the name of the file."""
        if self.policy_file is None:
            return {}
        plumdp.exchange.write_policy(policy, self.policy_file)
        is_tree = self.policy_file.suffix.lower() in (".py", ".rules")
        size = f", {policy.tree.size}, checked in every state" if is_tree else ""
        return {str(self.policy_file): f"policy, {number_of(len(policy), 'state')}{size}"}


class Written(NamedTuple):
    """What is in the files that were written, by their names, the certificate of the policy, and the exit code."""

    files: dict[str, str]
    certificate: plumdp.Certificate | None = None
    code: int = 0
    premises: Sequence[Fact] = ()  # what the files rest on, if that is data

    def print(self, *, as_json: bool) -> None:
        """Print a line for the claim and each file, or all as JSON."""
        if as_json:
            claim = {} if self.certificate is None else {"certificate": self.certificate.to_dict()}
            assumptions = [text for label, text in self.premises if label == "assuming"]
            content = {"schema": "plumdp/export/1", "files": self.files, "assumptions": assumptions}
            print_json([content | claim], one=True)
            return
        if self.certificate is not None:
            print(self.certificate.headline)
        for file, words in self.files.items():
            print(f"{file}: {words}")
        from plumdp.result.printing import fact_lines

        for line in fact_lines(self.premises):
            print(line)


def export(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.OptionalData = None, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    model_file: _ModelFile = None, policy_file: _PolicyFile = None, values_file: _ValuesFile = None,
    force: args.ReplaceFiles = False, at: args.At = None,
    property: args.Properties = None, all_properties: args.AllProperties = False,
    confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    misfit: args.Misfit = 0.0, evidence: args.Evidence = None,
    as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Write what was learned as an interval model for Storm or PRISM, and policy and values as files.

    With data, the true probabilities lie in the intervals with the given confidence, so that any tool may check a
    bound. Without data, MODEL is an interval model, which is converted, or any model at a point (--at). If DATA is the
    folder of a result, its policy is written.
    """
    from plumdp.result.folder import CERTIFICATE

    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    files = FileOptions(model_file, policy_file, values_file, force)
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, misfit, evidence)
    if not data:
        if (Path(model) / CERTIFICATE).is_file():
            raise DataError(f"{model} is a result: name its model first, as in plumdp export MODEL {model}")
        if space and not is_shared("space"):
            raise DataError(f"{where_given('space')}: without data there are no unknown parameters; leave it out")
        if not (at or is_interval_file(model) or Path(model).suffix.lower() in (".prism", ".nm", ".pm")):
            raise DataError("give DATA, the folder of a result, or --at a point: the model alone has no probabilities")
        written = _export_known(IntervalModelOptions(model, constant, at), asked, files)
    elif at:
        raise DataError("--at and DATA: choose one of them")
    elif len(data) == 1 and (Path(data[0]) / CERTIFICATE).is_file():
        written = _export_saved(ModelOptions(model, constant, space), Path(data[0]), files)
    else:
        written = _export_learned(ModelOptions(model, constant, space), log, asked, sets, files)
    written.print(as_json=as_json)
    raise typer.Exit(written.code)


def _export_known(model: IntervalModelOptions, asked: PropertyOptions, files: FileOptions) -> Written:
    """Convert an interval model; policy and values are those of its solution."""
    if files.policy_file is None and files.values_file is None:
        return Written(files.write_model(model.load()[0]))
    read, question = model.ask(_only(asked.property))
    objective = objective_of(question)
    written = files.write_model(read)
    solution = plumdp.stages.solve(read, objective)
    written = _joined(written, files.write_policy(plumdp.PolicyTable(read.graph, solution.policy)))
    if files.values_file is not None:
        plumdp.exchange.write_values(read.graph, solution.lower, solution.upper, files.values_file)
        bounds = f"bounds on the values of {number_of(read.graph.n_states, 'state')}"
        written = _joined(written, {str(files.values_file): bounds})
    return Written(written)


def _joined(files: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    """Return what is in both, as an archive may hold model, policy and values."""
    return files | {name: f"{files[name]}; {words}" if name in files else words for name, words in more.items()}


def _only(texts: Sequence[str] | None) -> str | None:
    if texts and len(texts) > 1:
        raise DataError("--property: policy and values are of one property; give one")
    return texts[0] if texts else None


def _export_saved(model: ModelOptions, folder: Path, files: FileOptions) -> Written:
    if files.model_file is not None or files.values_file is not None:
        raise DataError(f"{folder} is a result, which holds a policy alone; give the data for --model and --values")
    read, _ = model.load()
    return Written(files.write_policy(load_policy(str(folder), read)))


def _export_learned(
    model: ModelOptions, log: LogOptions, asked: PropertyOptions, sets: SetOptions, files: FileOptions
) -> Written:
    """Learn from data and write the intervals; policy and values are those of the certificate."""
    if files.policy_file is None and files.values_file is None and not asked.property:
        read, _ = model.load()
        return _write_learned(sets.learn(read, log.read(read), []), files)
    _only(asked.property)
    read, (objective,) = asked.load(model)
    learned = sets.learn(read, log.read(read), [objective])
    written = _write_learned(learned, files)
    if files.policy_file is None and files.values_file is None:
        return written
    certificate = plumdp.conclude(learned, objective)
    texts = _joined(written.files, files.write_policy(certificate.policy))
    if files.values_file is not None:
        _write_certified_values(learned, objective, certificate.policy, files.values_file)
        n_states = number_of(len(certificate.policy), "state")
        bounds = f"bounds on the policy's value in {n_states}, by intervals"
        texts = _joined(texts, {str(files.values_file): bounds})
    return Written(texts, certificate, EXIT_CODES[certificate.status], certificate.premises())


def _write_learned(learned: plumdp.Learned, files: FileOptions) -> Written:
    """Write the intervals; the exit code is 3 if no parameters explain the data, and they rest on the graph alone."""
    from plumdp.result.certificate import percent

    claim = f"; the true probabilities lie in the intervals with confidence {percent(1 - learned.error)}"
    if learned.bounds.guarantee == "none":
        claim = "; without a guarantee"
    if learned.conflict is not None:
        claim = f"; MODEL CONTRADICTED: {learned.conflict}"
    code = 0 if learned.conflict is None else EXIT_CODES[Status.CONTRADICTED]
    return Written(
        files.write_model(plumdp.exchange.interval_model(learned), claim), code=code, premises=learned.premises()
    )


def _write_certified_values(
    learned: plumdp.Learned, objective: Objective, policy: plumdp.PolicyTable, file: Path
) -> None:
    """Write bounds on the policy's value in each state: nature at its worst and at its best."""
    from plumdp.certifying.pipeline import relax
    from plumdp.model.policy import memory_of

    question = plumdp.model.ask(objective, learned.model, memory=memory_of(policy))
    intervals = relax(learned, "rectangular", question.model)
    worst = plumdp.stages.evaluate(intervals, policy, question.objective, nature="robust")
    best = plumdp.stages.evaluate(intervals, policy, question.objective, nature="optimistic")
    low, high = (worst, best) if objective.direction == "max" else (best, worst)
    plumdp.exchange.write_values(intervals.graph, low.lower, high.upper, file)
