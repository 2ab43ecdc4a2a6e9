"""Watches many units night by night, and names those that have changed, with a bounded share of wrong names.

An e-value of a unit has a mean of at most one as long as the unit has not changed, or is as the reference says. Of N
units, the k with the largest e-values are named, for the largest k with e >= N / (level k) for all of them: on average,
at most ``level`` of the names are wrong, whatever units have in common (e-BH; Wang and Ramdas 2022). ``e_value`` says
which e-values there are, and docs/proofs/watching.md proves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp, log, sqrt
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Assumption
from plumdp.data.duckdb_tables import is_data
from plumdp.data.log_format import AS_NAMED, LogFormat
from plumdp.data.open_logs import is_paths
from plumdp.data.snapshots import format_of
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.text import number_of, one_line
from plumdp.result.certificate import Certificate
from plumdp.result.printing import percent
from plumdp.result.show import Fact, Page, as_html, as_json, as_text
from plumdp.watching.plan import DIFFERS, Compared, Kind, WatchState, change_in, weight_of_start
from plumdp.watching.units import FAILED, Map, e_bh, each_unit
from plumdp.watching.watch import USUAL, AlarmRules, Watch, reference_of, watch

Nights: TypeAlias = Literal["fixed", "any", "unlinked"]
"""Which nights lists are for: nights fixed beforehand; any, also chosen by looking; or any, if the rows of each unit
have their probabilities given the past of all units."""

_OWN = "each alarm was acknowledged because of what its own unit showed, and not by looking at others"
_FIRST_CYCLE = 0.9  # weight of what a unit shows before its first alarm is acknowledged; later cycles have the rest
_LISTED = 20  # names that are printed
_FALLS_SHORT = "does not reach the certified value", "do not reach the certified value"
_WRONG = {
    "learned": "has not changed",
    "given": "is as the reference says",
    "certified": "is as the certificate says",
    "value": "reaches the certified value",
}
_STOPPED = "no unit stopped before others because of what these showed"
_NIGHTS = {
    "fixed": "this night was fixed beforehand; each such night holds by itself, not all of them at once",
    "any": "the night may have been chosen by looking",
    "unlinked": "the night may have been chosen by looking, as the rows of each unit have their probabilities given "
    "the past of all units: they share no cause that is hidden, or that shows in one before the other (as you stated)",
}


class Won(NamedTuple):
    """What a unit has won since its watch began, or began anew."""

    log_test: float  # of T: the sum over starts with weights that sum to one
    cycle: int  # 1, and one more for each alarm that was acknowledged


@dataclass(frozen=True)
class Unit:
    """A unit of a fleet: what its own watch says, and its e-value."""

    name: str
    status: str  # of its watch, or "failed"
    n_parts: int = 0
    last: str = ""  # part
    words: str = ""  # what seems to have happened (estimates), why it stopped, or what is wrong
    won: Won | None = None
    e_value: float = 0.0


@dataclass(frozen=True, eq=False)
class Fleet:
    """Which units of a fleet have changed, with a bounded share of wrong names, and which could not be watched."""

    units: tuple[Unit, ...]
    level: float
    alarm: Kind
    nights: Nights
    assumptions: tuple[str, ...]
    compared: Compared = "learned"

    @property
    def named(self) -> tuple[Unit, ...]:
        """The units that have changed, or are not as the reference says, by e-BH, the most evident first."""
        return tuple(self.units[i] for i in e_bh([unit.e_value for unit in self.units], self.level))

    def of_status(self, *statuses: str) -> tuple[Unit, ...]:
        """Return the units whose own watch stopped ("gap"), failed, was contradicted, gave an alarm, or is quiet."""
        return tuple(unit for unit in self.units if unit.status in statuses)

    @property
    def status(self) -> Literal["failed", "rejected", "alarm", "gap", "quiet"]:
        """The worst that can be said: a watch that failed or was contradicted, names, or a watch that stopped."""
        if self.of_status(FAILED):
            return FAILED
        if self.of_status("rejected"):
            return "rejected"
        return "alarm" if self.named else "gap" if self.of_status("gap") else "quiet"

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        n, of = len(self.named), number_of(len(self.units), "unit")
        are = DIFFERS[self.compared] if self.alarm == "rows" else _FALLS_SHORT
        return f"{n:,} of {of} {are[n != 1]}."

    @property
    def promise(self) -> str:
        """What is proved of the names."""
        return (
            f"on average at most {percent(self.level)} of the names on such a list are wrong, whatever units have in "
            f"common; a name is wrong if the unit {_WRONG[self.compared if self.alarm == 'rows' else self.alarm]}; "
            f"{_NIGHTS[self.nights]}"
        )

    def page(self) -> Page:
        """Return the names, the promise, what could not be watched, and what all of it rests on."""
        facts: list[Fact] = [(unit.name, unit.words or "no estimate") for unit in self.named[:_LISTED]]
        if len(self.named) > _LISTED:
            facts.append(("", f"and {len(self.named) - _LISTED:,} more"))
        facts.append(("promise", self.promise))
        for status, words in (("gap", "stopped"), ("rejected", "rejected"), (FAILED, FAILED)):
            some = self.of_status(status)
            facts += (
                [(words, f"{number_of(len(some), 'unit')}, the first {some[0].name}: {some[0].words}")] if some else []
            )
        return Page(self.sentence, facts=[*facts, *(("assuming", Assumption.of(each)) for each in self.assumptions)])

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self.units), "unit"), f"{len(self.named):,} named")

    SCHEMA: ClassVar[str] = "plumdp/fleet/1"
    TOLD: ClassVar[str] = "status level alarm nights compared named units promise sentence assumptions"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json


def e_value(won: Won, nights: Nights) -> float:
    """Return the e-value of a unit tonight.

    It is T, however many nights there were and whenever the unit stopped, if the night was fixed beforehand, or the
    rows of each unit hold given the past of all. At any other night, it is √T - 1. What was won since the k-th
    beginning has a weight, and those of all k sum to one, as a unit begins anew because of what it showed.

    >>> from math import log
    >>> [round(e_value(Won(log(36.0), 1), nights), 3) for nights in ("fixed", "unlinked", "any")]
    [32.4, 32.4, 4.692]
    """
    k = won.cycle
    weight = _FIRST_CYCLE if k == 1 else (1 - _FIRST_CYCLE) / (k * (k - 1))
    value = weight * exp(min(won.log_test, 700.0))
    return max(sqrt(value) - 1.0, 0.0) if nights == "any" else value


def won_by(state: WatchState, alarm: Kind) -> Won:
    """Return what a unit has won tonight, also after an alarm."""
    log_test = -np.inf
    if alarm == "value" and state.bets is not None and state.n:
        log_test = state.bets.evidence + log(weight_of_start(state.n))  # no start had a smaller weight
    elif alarm == "rows" and state.stream.parts:
        log_test = state.plan.log_test(state.stream)
    return Won(log_test, state.beginnings(alarm))


@dataclass(frozen=True, kw_only=True)
class Lists:
    """Which lists of units are made.

    Parameters
    ----------
    level
        The share of wrong names, on average over such lists.
    alarm
        Whether units are named whose rows have changed, or whose runs do not reach the certified value.
    nights
        "fixed" if the nights of lists were fixed beforehand, such as every night, each by itself. "any" if one looked
        first; "unlinked" if one looked, but the rows of each unit have their probabilities given the past of all units.
    """

    level: float = 0.05
    alarm: Kind = "rows"
    nights: Nights = "fixed"

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise DataError(Option("level", self.level), ": give the share of wrong names, such as 0.05")
        if self.nights not in _NIGHTS:
            raise DataError(Option("nights", self.nights), f": choose one of {', '.join(_NIGHTS)}")
        if self.alarm not in get_args(Kind):
            raise DataError(Option("alarm", self.alarm), ": choose 'rows' or 'value'")
        if self.alarm == "value" and self.nights != "fixed":
            raise DataError(Option("alarm", self.alarm), ": give a certificate, and fix the nights beforehand")


FIXED = Lists()
"""Lists of units whose rows have changed, for nights that were fixed beforehand."""


def watch_many(
    model: ParametricMDP,
    units: str | Path | Mapping[str, Any],
    certificate: Certificate | None = None,
    *,
    lists: Lists = FIXED,
    rules: AlarmRules = USUAL,
    state: str | Path | None = None,
    format: LogFormat = AS_NAMED,
    on_unmatched: Literal["error", "report"] = "error",
    map: Map | None = None,
) -> Fleet:
    """Return which units of a fleet have changed, or are not as a reference says, with a bounded share of wrong names.

    Parameters
    ----------
    units
        A folder with a folder of parts for each unit; or parts, as ``watch`` takes them, by the names of units.
    certificate
        A certificate from earlier data, as in ``watch``.
    lists
        Which units are named, for which nights, and how often wrongly.
    rules, format, on_unmatched
        As in ``watch``, the same for all units.
    state
        A folder with a file for each unit, which ``plumdp watch`` reads and acknowledges, too.
    map
        As in ``certify_each``.

    Examples
    --------
    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:5")
    >>> def days(name, later):
    ...     rates, seed = [0.6] * 20 + [later] * 10, 100 * len(name)
    ...     return [simulate(study.model, {"p": p}, 40, rng=seed + i, max_steps=6) for i, p in enumerate(rates)]
    >>> found = watch_many(study.model, {name: days(name, p) for name, p in (("left", 0.6), ("right", 0.2))})
    >>> found.sentence, [unit.name for unit in found.named]
    ('1 of 2 units has changed.', ['right'])
    """
    require_model("watch_many", model)
    if lists.alarm == "value" and certificate is None:
        raise DataError(Option("alarm", lists.alarm), ": give a certificate, and fix the nights beforehand")
    given, folder = _units(units), None if state is None else Path(state)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    own = partial(
        watch,
        model,
        question=certificate,
        rules=replace(rules, value=lists.alarm == "value"),
        format=format,
        on_unmatched=on_unmatched,
    )
    work = partial(_watched, own, folder, lists)
    compared = reference_of(model, certificate, rules.reference)[0]
    done = [each for batch in each_unit(work, sorted(given.items()), map) for each in batch]
    assuming = dict.fromkeys(each for _, some in done for each in some)
    if lists.nights == "fixed" and len({unit.last for unit, _ in done if unit.last}) > 1:
        assuming[_STOPPED] = None
    return Fleet(tuple(unit for unit, _ in done), lists.level, lists.alarm, lists.nights, tuple(assuming), compared)


def is_fleet(data: Sequence[str]) -> bool:
    """Return whether this is one folder that has folders, and no files of data, and is no table."""
    if len(data) != 1 or not Path(data[0]).is_dir() or format_of(Path(data[0])):
        return False
    shown = [each for each in Path(data[0]).iterdir() if each.name[0] != "."]
    return any(each.is_dir() for each in shown) and not any(is_data(str(each)) for each in shown if each.is_file())


def _units(units: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parts of units by their names."""
    if isinstance(units, Mapping):
        given = {str(name): parts for name, parts in units.items()}
    elif is_paths(units) and Path(units).is_dir():
        given = {each.name: str(each) for each in Path(units).iterdir() if each.is_dir() and each.name[0] != "."}
    else:
        raise DataError(f"{units}: give a folder with a folder of parts for each unit")
    if not given:
        raise DataError(f"{units}: there are no units; give a folder with a folder of parts for each")
    return given


def _watched(
    own: Callable[..., Watch], folder: Path | None, lists: Lists, units: Sequence[tuple[str, Any]]
) -> list[tuple[Unit, tuple[str, ...]]]:
    """Return some units, and what their watches assume; one that cannot be watched stops no other."""
    done: list[tuple[Unit, tuple[str, ...]]] = []
    for name, parts in units:
        try:
            found = own(parts, state=None if folder is None else folder / f"{name}.watch")
        except DataError as error:
            done.append((Unit(name, FAILED, words=str(error)), ()))
            continue
        won = won_by(found.state, lists.alarm)
        about = found.status, found.n_parts, found.state.last
        unit = Unit(name, *about, _words(found, won, lists.alarm), won, e_value(won, lists.nights))
        done.append((unit, (*found.assumptions, _OWN) if won.cycle > 1 else found.assumptions))
    return done


def _words(found: Watch, won: Won, alarm: Kind) -> str:
    """Return why a watch stopped, or what seems to have happened."""
    state = found.state
    if state.contradicting or found.gap:
        return found.gap or f"{state.contradicting} shows what the model says cannot happen"
    words = next((each.words for each in state.open_alarms if each.kind == alarm), "")
    if words or alarm == "value" or won.log_test < 0:
        return words
    return change_in(state.plan, state.stream, state.plan.of_rows(state.stream))[0]
