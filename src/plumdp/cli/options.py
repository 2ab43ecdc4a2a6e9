"""Does what options ask for that several commands take: reads models, properties and data, and learns from them.

What can be checked without the model is checked when the options are put together, before any work is done.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import plumdp
from plumdp.base.errors import DataError, ModelError
from plumdp.base.vocabulary import CutOff, LogForm, Order, Sampling, Sets, Steps
from plumdp.cli import arguments
from plumdp.cli.arguments import pairs
from plumdp.cli.counts import OF_LOGS, added_counts, claiming, refuse_option
from plumdp.cli.mappings import action_map, state_maps
from plumdp.cli.progress import LOGGER
from plumdp.cli.sources import chosen_properties

if TYPE_CHECKING:
    from plumdp.model.language.threshold import Threshold
    from plumdp.model.objective import Objective
    from plumdp.model.question import Asked


@dataclass(frozen=True)
class ModelOptions:
    """Which model is meant."""

    model: str
    constant: Sequence[str] | None
    space: Sequence[str] | None

    def each(self) -> list[ModelOptions]:
        """Return the same with single values of constants, for each combination of values of ranges such as N=4:6."""
        return [
            replace(self, constant=[f"{name}={value}" for name, value in values.items()])
            for values in arguments.value_ranges(self.constant or [])
        ]

    @property
    def constants(self) -> dict[str, str]:
        """The values of constants by name."""
        return pairs("--constant", self.constant or [])

    @property
    def name(self) -> str:
        """The model with its constants, for people."""
        return " ".join([self.model, *(f"{name}={value}" for name, value in self.constants.items())])

    def load(self) -> tuple[plumdp.model.ParametricMDP, list[str]]:
        """Return the model and the properties that come with it."""
        LOGGER.info("reading the model %s", self.name)
        return arguments.load(self.model, self.constant or [], self.space or [])


@dataclass(frozen=True)
class PropertyOptions:
    """What is asked: one or more properties."""

    property: Sequence[str] | None
    all_properties: bool = False

    def __post_init__(self) -> None:
        if self.all_properties and self.property:
            raise ModelError("--all-properties and --property: choose one of them")

    def load(self, model: ModelOptions) -> tuple[plumdp.model.ParametricMDP, tuple[Objective, ...]]:
        """Return the model, and what is asked: the given values, its only property, or all that come with it."""
        from plumdp.model.language.property import as_objectives

        read, texts = self.texts(model)
        return read, as_objectives(texts, read)

    def questions(self, model: ModelOptions) -> tuple[plumdp.model.ParametricMDP, tuple[Objective | Threshold, ...]]:
        """Return the model, and what is asked of it, where thresholds such as P>=0.9 may be among the properties."""
        from plumdp.model.language.property import as_objectives
        from plumdp.model.language.threshold import as_question, is_threshold

        read, texts = self.texts(model)
        as_objectives([text for text in texts if not is_threshold(text)], read)  # refuses what is asked twice
        return read, tuple(as_question(text, read) for text in texts)

    def texts(self, model: ModelOptions) -> tuple[plumdp.model.ParametricMDP, list[str]]:
        """Return the model, and what is asked of it as texts."""
        read, properties = model.load()
        if not self.property:
            require_properties(model.model, properties, ask_all=self.all_properties)
        return read, chosen_properties(model.model, self.property or [], properties) or properties


def load_with_one_property(model: ModelOptions, property: str | None) -> tuple[plumdp.model.ParametricMDP, Objective]:
    """Return the model, and what is asked: the given text, or its only property."""
    read, (objective,) = PropertyOptions(None if property is None else [property]).load(model)
    return read, objective


def objective_of(question: Objective | Threshold) -> Objective:
    """Return what is asked, or whose value is compared with a threshold."""
    from plumdp.model.language.threshold import Threshold

    return question.objective if isinstance(question, Threshold) else question


def require_properties(model: str, properties: Sequence[str], *, ask_all: bool) -> None:
    """Refuse to guess what is asked if nothing was said."""
    if not properties:
        raise ModelError(f"{model}: no property comes with the model; say with --property what is asked")
    if not ask_all and len(properties) > 1:
        texts = "; ".join(properties)
        raise ModelError(f"{model}: say with --property which of these is asked, or --all-properties: {texts}")


@dataclass(frozen=True)
class LogOptions:
    """Which data there are, what they are called in logs, and how they came about."""

    data: Sequence[str] | None
    column: Sequence[str] | None = None
    state: Sequence[str] | None = None
    action: str | None = None
    form: LogForm | None = None
    keep_going: bool = False
    sampling: Sampling | None = None
    order: Order | None = None
    expected: float | None = None
    cut_off: CutOff | None = None
    steps: Steps | None = None
    rejected: Path | None = None

    def read(self, model: plumdp.model.ParametricMDP) -> plumdp.TransitionCounts:
        """Return the sum of files of counts, or the counts of logs, with the report of what became of each row."""
        from plumdp.data.duckdb_tables import find_files
        from plumdp.data.files import is_counts_file

        data = self.data or []
        files = find_files(data)
        if is_counts_file(files[0]):
            for name in OF_LOGS:
                if getattr(self, name) not in (getattr(LogOptions, name), [], ()):
                    refuse_option(name, files[0])
            return _with_warning(claiming(self.sampling, files, added_counts(model, files)))
        LOGGER.info("reading the data")
        log = plumdp.read_log(
            model,
            data,
            columns=pairs("--column", self.column or []),
            states=state_maps(self.state or []),
            actions=action_map(self.action),
            form=self.form,
            sampling=self.sampling or "adaptive",
            order=self.order,
            expected=self.expected,
            on_unmatched="report" if self.keep_going else "error",
            cut_off=self.cut_off,
            steps=self.steps,
            rejected=self.rejected,
        )
        return _with_warning(log.counts)

    def runs(self, model: plumdp.model.ParametricMDP) -> plumdp.data.WholeRuns:
        """Return the runs of logs as they were."""
        return plumdp.data.read_whole_runs(
            model,
            list(self.data or []),
            columns=pairs("--column", self.column or []),
            states=state_maps(self.state or []),
            actions=action_map(self.action),
            form=self.form,
        )

    def read_for(self, options: ModelOptions, model: plumdp.model.ParametricMDP) -> plumdp.TransitionCounts:
        """Return the counts for one of several models; say of which one, if the data do not fit it."""
        try:
            return self.read(model)
        except DataError as error:
            if not options.constants:
                raise
            raise DataError(f"{options.name}: ", *error.args) from None

    def require_data(self, model: str) -> None:
        """Refuse to go on without data, in commands that also take a saved result or a finished model."""
        if not self.data:
            raise DataError(f"{model}: give data after the model, or the folder of a result that certify -o wrote")


@dataclass(frozen=True)
class SetOptions:
    """How sure results must be, and which sets are made around the data."""

    confidence: float
    confidence_set: str | None
    misfit: float = 0.0
    evidence: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_confidence(self.confidence)

    def learn(
        self,
        model: plumdp.model.ParametricMDP,
        counts: plumdp.TransitionCounts,
        objectives: Sequence[Asked],
        *,
        witness: bool = False,
    ) -> plumdp.Learned:
        """Return what the data say about the parameters."""
        LOGGER.info("learning from %s steps", f"{counts.total:,}")
        return plumdp.learn(
            model,
            counts,
            objectives=objectives,
            confidence=self.confidence,
            confidence_set=cast("Sets | None", self.confidence_set),  # learn refuses what is not in its table
            misfit=self.misfit,
            evidence=evidence_of(self.evidence or ()),
            witness=witness,
        )


def evidence_of(texts: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return successes and trials by expression, of texts such as p=34/210.

    >>> evidence_of(["p=34/210", "1 - q = 5/10"])
    {'p': (34, 210), '1 - q': (5, 10)}
    """
    studies: dict[str, tuple[int, int]] = {}
    for text in texts:
        expression, _, counts = (part.strip() for part in text.rpartition("="))
        successes, _, trials = (part.strip() for part in counts.partition("/"))
        if not (expression and successes.isdecimal() and trials.isdecimal()):
            raise DataError(f"--evidence {text}: write EXPRESSION=SUCCESSES/TRIALS, such as p=34/210")
        if expression in studies:
            raise DataError(f"--evidence {text}: {expression} is given twice; add up successes and trials")
        studies[expression] = int(successes), int(trials)
    return studies


def require_confidence(confidence: float) -> None:
    """Refuse a confidence that is none."""
    if not 0 < confidence < 1:
        raise DataError(f"--confidence {confidence:g}: give a number between 0 and 1, such as 0.999")


@dataclass(frozen=True)
class FolderOptions:
    """Where results are written."""

    output: Path | None
    explain: bool
    force: bool
    witness: bool = False

    def __post_init__(self) -> None:
        from plumdp.result.folder import require_folder

        if self.output is not None:
            require_folder(self.output, force=self.force)
        elif self.explain:
            raise DataError("--explain: name with --output the folder that the findings are written to")
        elif self.witness:
            raise DataError("--witness: name with --output the folder that the witness is written to")

    def write(self, learned: plumdp.Learned, certificates: Sequence[plumdp.Certificate]) -> None:
        """Write certificates, and what they were concluded from, if a folder is named."""
        from plumdp.result.folder import write_results

        if self.output is None:
            return
        is_on_disk = learned.model.graph.levels is not None  # too large to be kept, and there is nothing to explain
        is_explained = self.explain or is_on_disk
        results = [(each, plumdp.explain(learned, each) if is_explained else None) for each in certificates]
        data = None if is_on_disk else (learned.model, learned.counts)
        witnesses = [witness_of(learned, each) for each in certificates] if self.witness else []
        write_results(results, self.output, data=data, witnesses=witnesses, force=self.force)


def witness_of(learned: plumdp.Learned, certificate: plumdp.Certificate) -> str:
    """Return the witness of a certificate, or nothing after a warning on standard error why it has none."""
    try:
        return plumdp.decisions.make_witness(learned, certificate)
    except DataError as error:
        print(f"warning: {error}", file=sys.stderr)
        return ""


def _with_warning(counts: plumdp.TransitionCounts) -> plumdp.TransitionCounts:
    """Return counts, with a warning on standard error if there are none: bounds are then those of the space."""
    from plumdp.result.data_quality import DataQuality

    if absence := DataQuality(counts.total, counts.report).absence:
        print(f"warning: {absence}", file=sys.stderr)
    return counts


def require_new(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, or that is there already unless it may be replaced."""
    from plumdp.result.folder import require_file

    require_file(path)
    if path.exists() and not force:
        raise DataError(f"{path} already exists; choose another file, or replace it with --force")
