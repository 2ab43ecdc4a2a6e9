"""Groups of options, each defined once: a command takes groups (``cli/groups.py``), which do what is asked for.

What can be checked without the model is checked when the group is made, before any work is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from plumdp import library
from plumdp.base.errors import DataError, ModelError
from plumdp.base.vocabulary import Sampling
from plumdp.cli import arguments
from plumdp.cli.arguments import pairs
from plumdp.cli.mappings import state_maps
from plumdp.cli.progress import LOGGER, progress_bar
from plumdp.cli.sources import chosen_properties


@dataclass(frozen=True)
class ModelOptions:
    """Which model is meant."""

    model: arguments.Model
    constant: arguments.Constants = None
    space: arguments.Spaces = None

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

    def load(self) -> tuple[library.ParametricMDP, list[str]]:
        """Return the model and the properties that come with it."""
        LOGGER.info("reading the model %s", self.name)
        return arguments.load(self.model, self.constant or [], self.space or [])


@dataclass(frozen=True)
class PropertyOptions:
    """What is asked: one or more properties."""

    property: arguments.Properties = None
    all_properties: arguments.AllProperties = False

    def __post_init__(self) -> None:
        if self.all_properties and self.property:
            raise ModelError("--all-properties and --property: choose one of them")

    def load(self, model: ModelOptions) -> tuple[library.ParametricMDP, tuple[library.Objective, ...]]:
        """Return the model, and what is asked: the given values, its only property, or all that come with it."""
        read, texts = self.texts(model)
        return read, library.as_objectives(texts, read)

    def questions(
        self, model: ModelOptions
    ) -> tuple[library.ParametricMDP, tuple[library.Objective | library.Threshold, ...]]:
        """Return the model, and what is asked of it, where thresholds such as P>=0.9 may be among the properties."""
        read, texts = self.texts(model)
        values = [text for text in texts if not library.is_threshold(text)]
        library.as_objectives(values, read)  # refuses what is asked twice
        return read, tuple(library.as_question(text, read) for text in texts)

    def texts(self, model: ModelOptions) -> tuple[library.ParametricMDP, list[str]]:
        """Return the model, and what is asked of it as texts."""
        read, properties = model.load()
        if not self.property:
            require_properties(model.model, properties, ask_all=self.all_properties)
        return read, chosen_properties(model.model, self.property or [], properties) or properties


@dataclass(frozen=True)
class OnePropertyOptions:
    """What is asked: one property."""

    property: arguments.Property = None

    def load(self, model: ModelOptions) -> tuple[library.ParametricMDP, library.Objective]:
        """Return the model, and what is asked: the given text, or its only property."""
        read, (objective,) = PropertyOptions(None if self.property is None else [self.property]).load(model)
        return read, objective


def require_properties(model: str, properties: Sequence[str], *, ask_all: bool) -> None:
    """Refuse to guess what is asked if nothing was said."""
    if not properties:
        raise ModelError(f"{model}: no property comes with the model; say with --property what is asked")
    if not ask_all and len(properties) > 1:
        known = "; ".join(properties)
        raise ModelError(f"{model}: say with --property which of these is asked, or --all-properties: {known}")


@dataclass(frozen=True)
class ReadingOptions:
    """What data are called in logs, and how they came about."""

    column: arguments.ColumnNames = None
    state: arguments.States = None
    action: arguments.ActionMap = None
    form: arguments.FormOption = None
    keep_going: arguments.KeepGoing = False
    sampling: arguments.SamplingOption = None
    order: arguments.OrderOption = None
    expected: arguments.ExpectedOption = None
    cut_off: arguments.CutOffOption = None
    partitions: arguments.PartitionsOption = None

    def read(self, data: Sequence[str], model: library.ParametricMDP) -> library.TransitionCounts:
        """Return the counts in a file of counts, or those of logs, with the report of what became of each row."""
        if len(data) == 1 and library.is_counts_file(data[0]):
            self._require_for_counts(data[0])
            return _claiming(self.sampling, data[0], library.read_counts(data[0], model))
        LOGGER.info("reading the data")
        with progress_bar("reading the data") as show:
            log = library.read_log(
                data,
                model,
                columns=pairs("--column", self.column or []),
                states=state_maps(self.state or []),
                actions=self.action,
                form=self.form,
                sampling=self.sampling or "adaptive",
                order=self.order,
                expected=self.expected,
                on_unmatched="report" if self.keep_going else "error",
                cut_off=self.cut_off,
                partitions=self.partitions,
                progress=show,
            )
        return log.counts

    def _require_for_counts(self, file: str) -> None:
        """Refuse what can only be said of a log."""
        for option, value in (("--order", self.order), ("--expected", self.expected)):
            if value is not None:
                raise DataError(
                    f"{option}: {file} is a file of counts, which keeps the order that it was counted with; count the "
                    f"log again with {option}, or give the log itself"
                )
        for option, claim in (("--cut-off", self.cut_off), ("--partitions", self.partitions)):
            if claim is not None:
                raise DataError(
                    f"{option}: {file} is a file of counts, which keeps what was said when the log was counted; leave "
                    f"out {option}, or give the log itself"
                )
        mapped = (("--column", self.column), ("--state", self.state), ("--action", self.action), ("--form", self.form))
        for option, given in mapped:
            if given:
                raise DataError(
                    f"{option}: {file} is a file of counts that plumdp wrote, in which nothing has another name; leave "
                    f"out {option}, or give the log itself"
                )


@dataclass(frozen=True)
class LogOptions:
    """Which data there are, and how they are read."""

    data: arguments.Data
    reading: ReadingOptions = ReadingOptions()

    def read(self, model: library.ParametricMDP) -> library.TransitionCounts:
        """Return the counts."""
        return self.reading.read(self.data, model)

    def read_for(self, options: ModelOptions, model: library.ParametricMDP) -> library.TransitionCounts:
        """Return the counts for one of several models; say of which one, if the data do not fit it."""
        try:
            return self.read(model)
        except DataError as error:
            if not options.constants:
                raise
            raise DataError(f"{options.name}: {error}") from None


@dataclass(frozen=True)
class OptionalLogOptions:
    """Data as in ``LogOptions``, or none: for commands that also take a saved result or a finished model."""

    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DATA...]", help="Counts or logs, as plumdp certify takes them, if they are needed."),
    ] = None
    reading: ReadingOptions = ReadingOptions()

    def given(self, model: str) -> LogOptions:
        """Return the same with data; refuse if there are none."""
        if not self.data:
            raise DataError(f"{model}: give data after the model, or the folder of a result that certify -o wrote")
        return LogOptions(self.data, self.reading)


def _claiming(sampling: Sampling | None, file: str, counts: library.TransitionCounts) -> library.TransitionCounts:
    """Return counts of which no more is said than when they were counted."""
    if sampling is not None and library.weaker(sampling, counts.sampling) != sampling:
        raise DataError(
            f"--sampling {sampling}: {file} was counted as {counts.sampling}, which claims less; if the stronger "
            f"claim is true, count the log again with --sampling {sampling}"
        )
    if sampling is None or sampling == counts.sampling:
        return counts
    kept = None if counts.pilot is None or counts.pilot.is_planned else counts.pilot
    # who takes back that the length was planned has no bets for it
    return replace(counts, sampling=sampling, pilot=kept)


@dataclass(frozen=True)
class SetOptions:
    """How sure results must be, and which sets are made around the data."""

    confidence: arguments.Confidence = 0.999
    confidence_set: arguments.SetKind = None
    interval_method: arguments.IntervalKind = None
    as_published: arguments.AsPublished = False
    misfit: arguments.Misfit = 0.0

    def __post_init__(self) -> None:
        require_confidence(self.confidence)

    def learn(
        self, model: library.ParametricMDP, counts: library.TransitionCounts, objectives: Sequence[library.Objective]
    ) -> library.Learned:
        """Return what the data say about the parameters."""
        LOGGER.info("learning from %s steps", f"{counts.total:,}")
        return library.learn(model, counts, objectives=objectives, **vars(self))


@dataclass(frozen=True)
class LikelihoodOptions:
    """How sure results must be, and which set is made around the data, where intervals are not offered."""

    confidence: arguments.Confidence = 0.999
    confidence_set: arguments.SetKind = None

    def __post_init__(self) -> None:
        require_confidence(self.confidence)

    def learn(
        self, model: library.ParametricMDP, counts: library.TransitionCounts, objectives: Sequence[library.Objective]
    ) -> library.Learned:
        """Return what the data say about the parameters."""
        return SetOptions(self.confidence, self.confidence_set).learn(model, counts, objectives)


def require_confidence(confidence: float) -> None:
    """Refuse a confidence that is none."""
    if not 0 < confidence < 1:
        raise DataError(f"--confidence {confidence:g}: give a number between 0 and 1, such as 0.999")


@dataclass(frozen=True)
class FolderOptions:
    """Where results are written."""

    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A folder for certificate, policy and findings, which plumdp report and read_result open; of several "
            "properties, folders 1, 2, … in it.",
        ),
    ] = None
    no_ladder: Annotated[
        bool, typer.Option("--no-ladder", help="Leave out of the folder what other relaxations certify.")
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Replace the result of an earlier run.")] = False

    def __post_init__(self) -> None:
        if self.output is not None:
            library.require_folder(self.output, force=self.force)


def require_new(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, or that is there already unless it may be replaced."""
    library.require_file(path)
    if path.exists() and not force:
        raise DataError(f"{path} is there already; name another file, or replace it with --force")
