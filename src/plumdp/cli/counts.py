"""Files of counts as the data of a command: adds them, and refuses what can only be said of logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Sampling
from plumdp.cli.invocation import is_shared, where_given

_ORDERS, _NAMES = ("order", "expected"), ("column", "state", "action", "form")
OF_LOGS = (*_ORDERS, "cut_off", "steps", "rejected", *_NAMES)


def refuse_option(name: str, file: str) -> None:
    """Refuse an option that can only be said of a log, unless it is said for all commands."""
    if is_shared(name):
        return
    why = "which keeps what was said when the log was counted; leave it out"
    if name in _ORDERS:
        why = f"which keeps the order that it was counted with; count the log again with --{name}"
    elif name in _NAMES:
        why = "in which nothing has another name; leave it out"
    raise DataError(f"{where_given(name)}: {file} is a file of counts, {why}, or give the log itself")


def added_counts(model: plumdp.model.ParametricMDP, files: Sequence[str]) -> plumdp.TransitionCounts:
    """Return the sum of files of counts, in the order in which their data were collected.

    Files that have data in common are refused by their names.
    """
    from plumdp.data.same_files import refuse_same_files, refuse_same_parts

    refuse_same_files(files)
    counts = [plumdp.read_counts(model, file) for file in files]
    for (one, first), (other, second) in combinations(zip(files, counts, strict=True), 2):
        try:
            refuse_same_parts(first.parts, second.parts)
        except DataError as error:
            raise DataError(f"{one} and {other}: ", *error.args) from None
    return sum(counts[1:], counts[0])


def claiming(
    sampling: Sampling | None, files: Sequence[str], counts: plumdp.TransitionCounts
) -> plumdp.TransitionCounts:
    """Return counts of which no more is said than when they were counted."""
    from plumdp.data.counts import weaker

    if sampling is not None and weaker(sampling, counts.sampling) != sampling:
        if is_shared("sampling"):
            return counts
        was, log = f"{files[0]} was counted as {counts.sampling}", "the log again"
        if len(files) > 1:
            was, log = f"the sum of {len(files):,} files of counts is {counts.sampling}", "all logs at once"
        raise DataError(
            f"{where_given('sampling')} {sampling}: {was}, which claims less; if the stronger claim is true, count "
            f"{log} with --sampling {sampling}"
        )
    if sampling is None or sampling == counts.sampling:
        return counts
    kept = None if counts.pilot is None or counts.pilot.is_planned else counts.pilot
    # who takes back that the length was planned has no bets for it
    return replace(counts, sampling=sampling, pilot=kept)
