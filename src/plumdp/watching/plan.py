"""The plan of a watch, fixed before its first part, and what it knows after some parts."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from math import isfinite, log
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from plumdp.base.errors import DataError
from plumdp.base.json_values import parsed
from plumdp.base.vocabulary import Assumption
from plumdp.data.contexts import Context
from plumdp.data.seen import Seen
from plumdp.fit.time_tests import in_words
from plumdp.model.graph import FloatArray
from plumdp.watching.detectors import Starts, ValueBets, log_changed, log_outside, log_sum
from plumdp.watching.rows import TiedParameters, WatchedRows
from plumdp.watching.stream import Stream

SCHEMA = "plumdp/watch-state/2"
_ALSO = " (so it is, with other numbers, of later parts)"
_KEPT = ("alarms", "n", "names", "last", "size", "keys", "sums", "contradicting", "assuming", "n_before")
Kind: TypeAlias = Literal["rows", "value"]
Compared: TypeAlias = Literal["learned", "given", "certified"]
"""What rows are compared with: what they showed before, given values, or what a certificate allows."""
DIFFERS: dict[Compared, tuple[str, str]] = {  # what one does, and what several do
    "learned": ("has changed", "have changed"),
    "given": ("differs from the reference", "differ from the reference"),
    "certified": ("is not as the certificate says", "are not as the certificate says"),
}


_USUAL = 32  # parts: of about as many, most fleets show a change


def weight_of_start(i: int) -> float:
    """Return the weight of the i-th start in an e-value: they fall, and those of all i >= 1 sum to one.

    >>> [round(1 / weight_of_start(i), 6) for i in (1, 33)], round(sum(map(weight_of_start, range(1, 2**16))), 3)
    ([33.0, 130.0], 1.0)
    """
    return _USUAL / ((_USUAL + i - 1) * (_USUAL + i))


def _without_numbers(text: str) -> str:
    return re.sub(r"\d[\d.,]*", "#", text.removesuffix(_ALSO))


def _told_once(before: Iterable[str], assuming: Iterable[str]) -> tuple[str, ...]:
    """Return what parts rest on: sentences that differ in numbers alone are told once, so that a state stays small.

    >>> _told_once(["3 rows are left out"], ["5 rows are left out", "it rains"])
    ('3 rows are left out (so it is, with other numbers, of later parts)', 'it rains')
    """
    told = {_without_numbers(text): text for text in before}
    for text in assuming:
        first = told.setdefault(_without_numbers(text), text)
        if first.removesuffix(_ALSO) != text:
            of, also = Assumption.of(first), first.removesuffix(_ALSO) + _ALSO
            told[_without_numbers(text)] = Assumption(also, of.group, of.brief)
    return tuple(told.values())


@dataclass(frozen=True)
class Alarm:
    """An alarm: which, after which part, the logarithm of the sum over starts, and what seems to have happened."""

    kind: Kind
    part: str
    evidence: float
    words: str  # estimates
    since: str  # the first part after the change, by the same estimate
    acknowledged: str = ""  # the last part that was there when somebody did


@dataclass(frozen=True, eq=False)
class Plan:
    """What is watched, and how rarely false alarms may be given.

    ``within`` bounds the probabilities of the reference, from outside; without it that is learned from the stream.
    """

    rows: WatchedRows
    quiet: float
    within: tuple[FloatArray, FloatArray] | None = None  # (n_outcomes) each
    limit: float | None = None  # of the mean loss of a run; None if the value is not watched
    returns: tuple[float, float] = (1.0, 0.0)  # of a run that loses nothing, and of one that loses 1
    tied: TiedParameters | None = None  # parameters, if they tie several classes
    n_learned: int = 0  # rewards
    key: str = ""  # of model, certificate and options
    compared: Compared = "learned"

    @property
    def thresholds(self) -> dict[Kind, float]:
        """The sums over starts at which alarms are given: the false alarms of both together are at most one in quiet.

        A learned reference has at most 2 α n of them in n parts, and all else α n (Statement W2).
        """
        each = self.quiet * (1 if self.limit is None else 2)
        limits: dict[Kind, float] = {"rows": each * (2 if self.within is None else 1)}
        return limits if self.limit is None else {**limits, "value": each}

    @property
    def events(self) -> dict[Kind, str]:
        """What alarms say."""
        return {"rows": f"the process {DIFFERS[self.compared][0]}", "value": "the certified value no longer holds"}

    def of_rows(self, stream: Stream) -> RowWealths:
        """Return what starts have won."""
        starts, enough = stream.starts(has_pilots=self.within is None), log(self.thresholds["rows"])
        own = starts.of(slice(0, self.rows.n))
        classes = log_changed(own) if self.within is None else log_outside(own, *self.within)
        if self.tied is None:
            return RowWealths(starts, classes, None)
        return RowWealths(starts, classes, self.tied.log_wealths(starts.of(slice(self.rows.n, None)), enough))

    def log_test(self, stream: Stream) -> float:
        """Return the logarithm of T: the sum over starts with weights that sum to one, so that T is a test."""
        shift = 1 if self.within is None else 0  # with a known reference, the first start is before the first part
        weights = np.log([weight_of_start(end + 1 - shift) for end in stream.ends[shift:]])
        won = self.of_rows(stream)
        tied = None if won.tied is None else won.tied + weights
        return RowWealths(won.starts, won.classes + weights[:, None], tied).log_sum


class RowWealths(NamedTuple):
    """What each start has won."""

    starts: Starts
    classes: FloatArray  # (m, n_classes): logarithms
    tied: FloatArray | None  # (m)

    @property
    def log_sum(self) -> float:
        """The logarithm of the sum, from below: half of the weight is for parameters, if they tie classes."""
        if self.tied is None:
            return log_sum(self.classes)
        both = float(np.logaddexp(log_sum(self.classes), log_sum(self.tied[:, None]))) - log(2)
        return both - 1e-12 * (1 + abs(both)) if isfinite(both) else both


@dataclass(frozen=True, eq=False)
class WatchState:
    """Everything that a watch knows after some parts."""

    plan: Plan
    stream: Stream
    bets: ValueBets | None = None
    alarms: tuple[Alarm, ...] = ()
    n: int = 0  # parts in all
    names: str = ""  # a hash of all names, in their order
    last: str = ""
    size: int = 0  # of the file of the last part, in bytes
    keys: str = ""  # of the data in each part, apart by spaces: two characters for each file, frame or seed
    sums: Mapping[Kind, float] = field(default_factory=dict)  # logarithms, after the last part
    contradicting: str = ""  # the first part that shows what the graph says cannot happen
    assuming: tuple[str, ...] = ()  # what all parts rest on
    n_before: int = 0  # parts before the first one, which the certificate was made from

    @staticmethod
    def begin(plan: Plan) -> WatchState:
        """Return the state before the first part."""
        return WatchState(plan, Stream(plan.rows), None if plan.limit is None else ValueBets.against(plan.limit))

    @property
    def open_alarms(self) -> tuple[Alarm, ...]:
        """The alarms that nobody has acknowledged."""
        return tuple(alarm for alarm in self.alarms if not alarm.acknowledged)

    def beginnings(self, kind: Kind) -> int:
        """Return how often watching for a kind of alarm began: once, and anew whenever one was acknowledged."""
        return 1 + len({alarm.acknowledged for alarm in self.alarms if alarm.kind == kind and alarm.acknowledged})

    @property
    def share(self) -> float:
        """The share of the error of certificates since the last beginning; those of all beginnings sum to at most one.

        The first beginning has a share of one, of which its starts leave one in 1 + m, where m is the number of binary
        digits of the number of parts before the second one (see ``weight_of``). Later beginnings divide that.
        """
        k, before = self.beginnings("rows"), self.n - self.stream.n
        return 1.0 if k == 1 else 1 / ((1 + before.bit_length()) * k * (k - 1))

    def add(
        self,
        name: str,
        origins: Iterable[str],
        seen: Seen,
        losses: FloatArray | None,
        *,
        contexts: tuple[Context, ...] = (),
        size: int = 0,
        contradicts: bool = False,
        assuming: Iterable[str] = (),
    ) -> WatchState:
        """Return the state after one more part: where its data are from, what it shows, and bounds on losses of runs.

        Losses are bounded from below; ``contexts`` tell what came before its steps, and ``size`` is that of its file.
        """
        plan, is_open = self.plan, {alarm.kind for alarm in self.open_alarms}
        stream, bets, alarms, sums = self.stream.add(name, seen, contexts), self.bets, [*self.alarms], dict(self.sums)
        if "rows" not in is_open:
            wealths = plan.of_rows(stream)
            sums["rows"] = wealths.log_sum
            stream = stream.with_highest(sums["rows"])
            if sums["rows"] >= log(plan.thresholds["rows"]):
                alarms.append(Alarm("rows", name, sums["rows"], *change_in(plan, stream, wealths)))
        if bets is not None and losses is not None:
            bets = bets.add(name, losses)
            if "value" not in is_open:
                sums["value"] = bets.evidence
                if bets.evidence >= log(plan.thresholds["value"]):
                    alarms.append(Alarm("value", name, bets.evidence, *_fall_in(plan, bets)))
        return replace(
            self,
            stream=stream,
            bets=bets,
            alarms=tuple(alarms),
            n=self.n + 1,
            names=chained(self.names, name),
            last=name,
            size=size,
            keys=f"{self.keys} {''.join(map(_short, sorted(origins)))}"
            if self.n
            else "".join(map(_short, sorted(origins))),
            sums=sums,
            contradicting=self.contradicting or (name if contradicts else ""),
            assuming=_told_once(self.assuming, assuming),
        )

    def may_have(self, origins: Iterable[str]) -> list[int]:
        """Return the numbers of the parts that may have data from there: the right ones, and others by chance."""
        found = (match.start() for each in origins for match in re.finditer(re.escape(_short(each)), self.keys))
        return sorted({self.keys.count(" ", 0, at) for at in found})

    def acknowledge(self) -> WatchState:
        """Return the state in which open alarms are acknowledged: what gave them begins anew with the next part."""
        kinds = {alarm.kind for alarm in self.open_alarms}
        fresh = WatchState.begin(self.plan)
        alarms = (alarm if alarm.acknowledged else replace(alarm, acknowledged=self.last) for alarm in self.alarms)
        return replace(
            self,
            alarms=tuple(alarms),
            stream=fresh.stream if "rows" in kinds else self.stream,
            bets=fresh.bets if "value" in kinds else self.bets,
            sums={kind: each for kind, each in self.sums.items() if kind not in kinds},
        )

    def to_text(self) -> str:
        """Return the state as JSON in one line, with a checksum."""
        content = {"schema": SCHEMA, "plan": self.plan.key} | {name: getattr(self, name) for name in _KEPT}
        content["in_brief"] = Assumption.in_brief(self.assuming)
        content |= {"stream": self.stream.to_json(), "bets": None if self.bets is None else self.bets.to_json()}
        text = json.dumps(content, default=asdict, ensure_ascii=False, separators=(",", ":"))
        return json.dumps({"checksum": _hash(text)})[:-1] + f',"state":{text}}}\n'

    @staticmethod
    def from_text(text: str, plan: Plan) -> WatchState:
        """Return the state that a text has; refuse one that was changed, or is that of another watch."""
        try:
            checksum, body = parsed(text)["checksum"], text.partition(',"state":')[2].rstrip()[:-1]
            content = parsed(body)
            if checksum != _hash(body) or content["schema"] != SCHEMA:
                raise ValueError
        except (ValueError, KeyError, TypeError):
            damaged = "this is not the state of a watch, or it was changed: remove it, and it is made again"
            raise DataError(damaged) from None
        if content["plan"] != plan.key:
            raise DataError(
                "this is the state of a watch of another model, or with other options, which are fixed before its "
                "first part: give those, or another file for a new watch"
            )
        bets = None if content["bets"] is None else ValueBets.from_json(content["bets"])
        content["alarms"] = tuple(Alarm(**alarm) for alarm in content["alarms"])
        content["assuming"] = tuple(Assumption.again(content["assuming"], content.get("in_brief", ())))
        stream = Stream.from_json(content["stream"], plan.rows, plan.n_learned)
        return WatchState(plan, stream, bets, **{name: content[name] for name in _KEPT})


def chained(before: str, name: str) -> str:
    """Return a hash of all names up to one, given that of those before."""
    return _hash(f"{before} {name}")


def _short(origin: str) -> str:
    """Return two characters, which another origin has with a probability of 1 / 4,096."""
    return b64encode(blake2b(origin.encode(), digest_size=3).digest()).decode()[:2]


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _fall_in(plan: Plan, bets: ValueBets) -> tuple[str, str]:
    """Return what runs seem to earn now, in words, and the first part since which they do: estimates."""
    since, loss = bets.seems
    value = plan.returns[0] + loss * (plan.returns[1] - plan.returns[0])
    return f"mean return of a run about {value:.3g} from about {since} on (estimate)", since


def change_in(plan: Plan, stream: Stream, won: RowWealths) -> tuple[str, str]:
    """Return the change that is most evident, in words, and the first part after it: estimates, which prove nothing."""
    start, group = (int(i) for i in np.unravel_index(int(np.argmax(won.classes)), won.classes.shape))
    shift = 1 if plan.within is None else 0  # with a known reference, the first start is before the first part
    if (
        plan.tied is not None
        and won.tied is not None
        and won.tied.max() > won.classes[start, group] - log(won.classes.shape[1])
    ):
        start = int(np.argmax(won.tied))
        word, early, late = plan.tied.describe(won.starts.of(slice(plan.rows.n, None)), start)
    else:
        places = slice(*plan.rows.first[group : group + 2])
        before, after = (seen[start][places] for seen in (won.starts.before, won.starts.after))
        if plan.within is not None:
            before = plan.within[0][places] + plan.within[1][places]
        then, now = (seen / max(seen.sum(), 1e-9) for seen in (before, after))
        j = int(np.argmax((now - then) ** 2 / np.maximum(now + then, 1e-9)))
        word, early, late = plan.rows.words[int(plan.rows.first[group]) + j], float(then[j]), float(now[j])
    since = stream.parts[start + shift].name
    if plan.compared == "learned":
        return in_words(word, since, early, late), since
    about, on = "about " if plan.compared == "certified" else "", f" from about {since} on" if start else ""
    return f"{word} is about {late:.3g}{on}, not {about}{early:.3g} (estimates)", since
