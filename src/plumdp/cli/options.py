"""Groups of options, each defined once: a command takes groups, and the command line shows their fields.

A group is a frozen dataclass whose fields are arguments and options (``cli/arguments.py``), and whose methods do what
these ask for. ``with_options`` puts the fields of its groups into the signature of a command. What can be checked
without the model is checked when the group is made, before any work is done.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from plumdp.cli import arguments
from plumdp.cli.arguments import pairs
        LOGGER.info("reading the data")
        with progress_bar("reading the data") as show:
            log = read_log(
                self.data,
                model,
                columns=pairs("--column", self.column or []),
                states=state_maps(self.state or []),
                actions=self.action,
                form=self.form,
                sampling=self.sampling or "adaptive",
                order=self.order,
                pilot=self.pilot,
                on_unmatched="report" if self.keep_going else "error",
                progress=show,
            )
        return log.counts

    def read_for(self, options: ModelOptions, model: ParametricMDP) -> TransitionCounts:
        """Return the counts for one of several models; say of which one, if the data do not fit it."""
        try:
            return self.read(model)
        except DataError as error:
            if not options.constants:
                raise
            raise DataError(f"{options.name}: {error}") from None

    def _require_for_counts(self) -> None:
        """Refuse what can only be said of a log."""
        file = self.data[0]
        for option, value in (("--order", self.order), ("--pilot", self.pilot)):
            if value is not None:
                raise DataError(
                    f"{option}: {file} is a file of counts, which keeps the pilot that it was counted with; count the "
                    f"log again with {option}, or give the log itself"
                )
        mapped = (("--column", self.column), ("--state", self.state), ("--action", self.action), ("--form", self.form))
        for option, given in mapped:
            if given:
                raise DataError(
                    f"{option}: {file} is a file of counts that plumdp wrote, in which nothing has another name; leave "
                    f"out {option}, or give the log itself"
                )


def _claiming(sampling: Sampling | None, file: str, counts: TransitionCounts) -> TransitionCounts:
    """Return counts of which no more is said than when they were counted."""
    if sampling is not None and weaker(sampling, counts.sampling) != sampling:
        raise DataError(
            f"--sampling {sampling}: {file} was counted as {counts.sampling}, which claims less; if the stronger "
            f"claim is true, count the log again with --sampling {sampling}"
        )
    if sampling is None or sampling == counts.sampling:
        return counts
    kept = counts.pilot if counts.pilot is not None and counts.pilot.end == PilotEnd.POWER_OF_TWO else None
    # who takes back that the length was planned has no share of it; an empty pilot keeps its weight
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

    def learn(self, model: ParametricMDP, counts: TransitionCounts, objectives: Sequence[Objective]) -> Learned:
        """Return what the data say about the parameters."""
        LOGGER.info("learning from %s steps", f"{counts.total:,}")
        return learn(
            model,
            counts,
            confidence=self.confidence,
            confidence_set=self.confidence_set,
            interval_method=self.interval_method,
            as_published=self.as_published,
            objectives=objectives,
            misfit=self.misfit,
        )


@dataclass(frozen=True)
class LikelihoodOptions:
    """How sure results must be, and which set is made around the data, where intervals are not offered."""

    confidence: arguments.Confidence = 0.999
    confidence_set: arguments.SetKind = None

    def __post_init__(self) -> None:
        require_confidence(self.confidence)

    def learn(self, model: ParametricMDP, counts: TransitionCounts, objectives: Sequence[Objective]) -> Learned:
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
            require_folder(self.output, force=self.force)


def require_new(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, or that is there already unless it may be replaced."""
    require_file(path)
    if path.exists() and not force:
        raise DataError(f"{path} is there already; name another file, or replace it with --force")
