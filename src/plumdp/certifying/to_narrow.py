"""Says the one thing that narrows the bounds of a certificate most, given how its data came about and what it asked."""

from __future__ import annotations

from typing import TypeAlias

from plumdp.base.errors import Option
from plumdp.base.vocabulary import NoBets, Status
from plumdp.data.columns import EPISODE
from plumdp.data.pilots import ROWS_PER_RUN, SIZES
from plumdp.data.same_files import ANEW
from plumdp.learning.learned import Learned
from plumdp.learning.methods import PLACED
from plumdp.result.certificate import Certificate
from plumdp.result.data_quality import DataQuality
from plumdp.tables.table_set import NOT_ANNOUNCED

Advice: TypeAlias = tuple[str | Option, ...]

_BETS = "; then bets are placed by what came first"
_NO_BETS: dict[NoBets, Advice] = {
    "order": (
        *("say of the log what came first, with ", Option("order", "runs"), " if its runs are numbered as they were "),
        *("made, each after the one before, or ", Option("order", "time"), f" if its rows are in order{_BETS}"),
    ),
    "unnamed runs": ("name the run of each row, with ", Option("columns", {EPISODE: ...}), _BETS),
    "shared names": (
        f"give different runs different names, as rows with the same run and step contradict each other; {ANEW}{_BETS}",
    ),
    "few": (
        f"collect more than {SIZES[0]} runs, or {ROWS_PER_RUN * SIZES[0]} rows if these are in order; the first bets "
        "are placed then",
    ),
}


def to_narrow(learned: Learned, certificate: Certificate) -> Advice:
    """Return what whoever wants narrower bounds can do: the most useful thing, or nothing if nothing is known to help.

    Bets are worth most, then one point for all states; a misfit costs width that no data win back.
    """
    if certificate.status not in (Status.CERTIFIED, Status.VACUOUS) or certificate.lower == certificate.upper:
        return ()
    pilot, report = learned.counts.pilot, learned.counts.report
    absence = DataQuality(learned.counts.total, report).absence
    if absence and (report is None or report.no_bets != "shared names"):
        return (f"give data: {absence}",)
    has_bets = pilot is not None and pilot.moments
    if learned.kind in PLACED and not has_bets and report is not None and report.no_bets is not None:
        return _NO_BETS[report.no_bets]
    if certificate.not_coupled == NOT_ANNOUNCED and certificate.options["policy"] == "given":
        return "say ", Option("announced", True), " if these data did not choose the policy; then bets are placed on it"
    is_coupled = certificate.relaxation in ("coupled", "untied") or certificate.not_coupled
    if not is_coupled and learned.model.graph.levels is None:
        return "ask for ", Option("relaxation", "coupled"), ", with one point for all states"
    if certificate.misfit:
        return (
            "allow for less, with a smaller ",
            Option("misfit"),
            ", if you can vouch for it: no data win back its price",
        )
    if pilot is not None and pilot.moments and not pilot.is_planned and pilot.expected is None and report is not None:
        return (
            "for the next data, fix the number of runs before you look at any, and say ",
            *(Option("sampling", "trajectories"), ", or say how many you expect, with ", Option("expected", ...)),
        )
    if certificate.gap.get("remainder", 0.0) > certificate.gap.get("statistics", 0.0):
        return ("collect more data: most of the width is a remainder, which shrinks faster than the data grow",)
    return "collect more data: four times as many about halve the width; ", Option("advise"), " says which help most"
