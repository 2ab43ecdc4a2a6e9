"""Watches a process: reads its parts in order, gives alarms, and says what holds now.

The certificate of the start before part i + 1 has the share w of boundary i + 1 of the error (``weight_of``). So with
the confidence all of them hold at once, at all times, and the start may be chosen by looking. A window whose length was
fixed beforehand has all of the error, and holds each night by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, nextafter
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.edge import read_whole, write_whole
from plumdp.base.errors import DataError, Option, require_kind
from plumdp.base.progress import working
from plumdp.base.rounding import down
from plumdp.base.vocabulary import Assumption, Group, Guarantee, parts_in
from plumdp.certifying.since import with_share
from plumdp.data.counts import TransitionCounts, counts_of, require_same_graph
from plumdp.data.duckdb_tables import find_files
from plumdp.data.files import is_counts_file, read_counts
from plumdp.data.log_format import AS_NAMED, LogFormat
from plumdp.data.logs import read_log
from plumdp.data.open_logs import files_of, is_paths
from plumdp.data.returns import Range, outcomes_of, range_of_returns
from plumdp.data.same_files import MANY, LogFile, describe_files, marks_in, part_of_file
from plumdp.data.whole_runs import read_whole_runs
from plumdp.fit.time_tests import weight_of
from plumdp.learning.assumptions import assumptions_of_data
from plumdp.learning.methods import error_of
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import Policy
from plumdp.model.question import Asked
from plumdp.model.text import number_of, one_line
from plumdp.result.certificate import Certificate, fingerprint_of
from plumdp.result.printing import percent, plain_number
from plumdp.result.show import Fact, Page, as_html, as_json, as_text
from plumdp.watching.certified import certified_question, claimed_shares
from plumdp.watching.plan import Alarm, Compared, Plan, WatchState, chained
from plumdp.watching.rows import ranges_in_box, tied_parameters, watched_rows
from plumdp.watching.stream import Stream, contexts_of, find_gap, named_files, place_of

Reference: TypeAlias = Literal["learned", "certified"] | Mapping[str, float] | None
"""What rows are compared with; by default the parameters of a certificate, if there is one."""


def since_part(
    model: ParametricMDP,
    stream: Stream,
    number: int,
    question: Asked,
    policy: Policy | None,
    confidence: float,
    *,
    is_chosen: bool,
    share: float = 1.0,
    assuming: Iterable[str] = (),
) -> Certificate:
    """Return what is certified from the kept part of a number on, whether that was chosen by looking or not.

    A policy is one that was there before the data of the stream, whose starts together have a share of the error.
    ``assuming`` says what the parts rest on.
    """
    if not stream.parts:
        raise DataError("the watch has just begun, and has no parts yet")
    end, seen, prespecified = stream.ends[number], stream.since(number), policy is not None
    told: Any = {"rewards": seen.rewards, "contexts": contexts_of(stream.parts[number:]), "no_contexts": "parts"}
    counts = TransitionCounts(model.counted.graph, seen.counts, "adaptive", **told)
    since = f"{stream.parts[number].name} ({number_of(stream.n - end, 'part')})"
    weight = share * weight_of(end + 1) if is_chosen else 1.0
    return with_share(model, counts, question, policy, confidence, weight, since, assuming, prespecified=prespecified)


_FILED = Assumption(
    "which file a step is in was decided before its outcome: it is that of the part in which the step began",
    brief="each step is in the file of the part in which it began",
)
_CUT = Assumption(
    "how data are divided into parts was decided before anybody looked at them", Group.PLAN, "division into parts"
)
_ARRIVES = Assumption(
    "whether and when a file arrives has nothing to do with the outcomes in it",
    brief="files arrive regardless of outcomes",
)
_MISSING = Assumption(
    "parts that are missing have nothing to do with the outcomes in them (as you stated)",
    brief="parts are missing regardless of outcomes",
)
_UNNAMED = Assumption("no part is missing: the names of parts have no dates or numbers that would show it")
_ALIKE = Assumption(
    "rows that the model says are alike have the same probabilities: if not, visits that move look like a change",
    Group.MODEL,
    "shared distributions are right",
)
_POLICY = Assumption(
    "runs follow the certified policy, each is in the file of the part in which it began, and none is missing",
    brief="runs follow the certified policy, and none is missing",
)
_OLDER = Assumption(
    "the certificate was made before the data that are watched, and not by looking at them", Group.PLAN, "certificate"
)
_OF_ALARMS = _ALIKE, _POLICY, _OLDER  # not of certificates about now


@dataclass(frozen=True, eq=False)
class _GivenPart:
    """A part that is not read before somebody asks for its counts."""

    name: str
    model: ParametricMDP
    source: Any  # counts, one file, or a data frame
    format: LogFormat
    on_unmatched: Literal["error", "report"]

    @cached_property
    def file(self) -> str:
        """The name of the file, or nothing if these are counts or a data frame."""
        files = [] if self._is_counted else files_of(self.source)[1]
        if len(files) > 1:
            raise DataError(
                f"{self.name}: a part is one file, frame or counts; make parts of these {len(files):,} files"
            )
        return files[0] if files else ""

    @property
    def _is_counted(self) -> bool:
        return isinstance(self.source, TransitionCounts) or hasattr(self.source, "counts")

    @property
    def is_log(self) -> bool:
        """Whether it shows whole runs, which counts do not."""
        return not self._is_counted and not is_counts_file(self.file)

    @cached_property
    def counts(self) -> TransitionCounts:
        """What was seen in it."""
        if self.is_log:
            return read_log(self.model, self.source, self.format, pilot=False, on_unmatched=self.on_unmatched).counts
        counts = read_counts(self.model, self.file) if self.file else counts_of(self.source)
        require_same_graph(self.model.counted.graph, counts.graph)
        return counts

    @property
    def size(self) -> int:
        """The size of its file in bytes, 0 if that is far away; of a frame or of counts, how many steps it has."""
        if not self.file:
            return self.counts.total
        return 0 if "://" in self.file else Path(self.file).stat().st_size

    @property
    def marks(self) -> frozenset[str]:
        """The marks of the data in it that are the same for whoever counts them again."""
        return frozenset(marks_in(" ".join(part.mark for part in self.counts.parts if part.is_known)))

    @property
    def has_runs(self) -> bool:
        """Whether it has data that are no ready-made counts, of which those of two days may be alike."""
        return bool(self.counts.total) and not (self.counts.report and self.counts.report.form == "counts")

    @property
    def own(self) -> frozenset[str]:
        """The keys of data that no other part has; none of frames, as two days may be alike."""
        known = (part for part in self.counts.parts if part.is_known and not part.is_frame)
        return frozenset(part.origin for part in known if self.has_runs)


@dataclass(frozen=True, eq=False)
class Watch:
    """What a watch knows: alarms so far, how strong the evidence is now, what its promise is, and where it stopped.

    ``now``, ``since`` and ``window`` return certificates about today, which hold if nothing has changed since a part.
    """

    picture: ClassVar = "watch"

    model: ParametricMDP
    state: WatchState
    question: Asked | None
    certificate: Certificate | None
    confidence: float
    promise: str
    gap: str  # why it stopped before the last part, or nothing
    assumptions: tuple[str, ...]

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms, in their order."""
        return self.state.alarms

    @property
    def status(self) -> Literal["quiet", "alarm", "gap", "rejected"]:
        """Whether there is an alarm that nobody has acknowledged, or data that say what cannot be, or a gap."""
        if self.state.contradicting:
            return "rejected"
        return "alarm" if self.state.open_alarms else "gap" if self.gap else "quiet"

    @property
    def n_parts(self) -> int:
        """How many parts were watched."""
        return self.state.n

    @property
    def evidence(self) -> dict[str, tuple[float, float]]:
        """The sum over starts of each alarm after the last part, and the one at which it is given."""
        thresholds = self.state.plan.thresholds
        return {kind: (_exp(self.state.sums.get(kind, -np.inf)), limit) for kind, limit in thresholds.items()}

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        parts, last = number_of(self.n_parts, "part"), f", the last one {self.state.last}" if self.n_parts else ""
        if self.state.contradicting:
            return f"Model rejected: {self.state.contradicting} shows what the model says cannot happen."
        if not self.state.open_alarms:
            before = f" since that of {self.alarms[-1].part} was acknowledged;" if self.alarms else " in"
            return f"No alarm{before} {parts}{last}."
        events = self.state.plan.events
        said = "; ".join(f"{events[alarm.kind]} ({alarm.part})" for alarm in self.state.open_alarms)
        return f"ALARM: {said}."

    def page(self) -> Page:
        """Return alarms, evidence, the promise, and what all of it rests on."""
        facts: list[Fact] = [("estimate", alarm.words) for alarm in self.state.open_alarms]
        told = (
            f"{_OF[kind]} {_in_words(value)} (alarm at {limit:,.10g})" for kind, (value, limit) in self.evidence.items()
        )
        facts += [("evidence", "; ".join(told)), ("false alarms", self.promise)]
        events = self.state.plan.events
        facts += [("acknowledged", f"{events[a.kind]} ({a.part})") for a in self.alarms if a.acknowledged]
        facts += [("stopped", self.gap)] if self.gap else []
        facts += [("left out", f"{number_of(self.state.n_before, 'part')}, as the certificate was made from them")][
            : self.state.n_before
        ]
        return Page(self.sentence, facts=[*facts, *(("assuming", Assumption.of(each)) for each in self.assumptions)])

    def facts_with(self, now: Certificate | None) -> list[Fact]:
        """Return all facts, with those of a certificate about now; what is assumed comes last."""
        facts = self.page().facts
        about, more = list[Fact](), list[Fact]()
        if now is not None:
            premise, *said = parts_in(now.rests_on.assumptions[0])
            about = [("now", f"If {premise}: {now.headline}"), ("", "; ".join(said))]
            more = [("assuming", Assumption.of(each)) for each in now.rests_on.assumptions[1:]]
        assuming = [fact for fact in facts if fact[0] == "assuming"]
        return [*(fact for fact in facts if fact[0] != "assuming"), *about, *dict.fromkeys([*assuming, *more])]

    @cached_property
    def now(self) -> Certificate:
        """A certificate about now: from all data, or after an alarm from those since the change, as it seems.

        You may choose any other start by looking, too: certificates of all of them hold at once.
        """
        alarm = next((each for each in self.state.open_alarms[::-1]), None)
        return self.since(None if alarm is None else alarm.since)

    def since(self, part: str | None) -> Certificate:
        """Return a certificate that holds if nothing has changed since a part; those of all parts hold at once.

        Older parts are kept together: what is taken then begins with the next that is kept, which the certificate says.
        """
        number = 0 if part is None else self._place(part)
        return self._certify(number, is_chosen=True)

    def window(self, n: int) -> Certificate:
        """Return a certificate from the last n parts, which holds if nothing has changed in them.

        n must not be chosen by looking. Each night holds by itself with the confidence.
        """
        if n < 1:
            raise DataError(Option("window", n), ": give a number of parts, at least 1")
        stream = self.state.stream
        number = next((i for i, end in enumerate(stream.ends) if stream.n - end <= n), len(stream.parts) - 1)
        return self._certify(number, is_chosen=False)

    def _certify(self, number: int, *, is_chosen: bool) -> Certificate:
        given, stream = self.certificate, self.state.stream
        question, policy = (self.question, None) if given is None else (given.claim.objective, given.policy)
        if question is None:
            raise DataError("say what certificates about now are to answer: watch(model, parts, question)")
        of_parts = [each for each in self.assumptions if each not in _OF_ALARMS]
        about, share = (self.model, stream, number, question, policy, self.confidence), self.state.share
        return since_part(*about, is_chosen=is_chosen, share=share, assuming=of_parts)

    def _place(self, part: str) -> int:
        """Return the number of the kept part that a part begins, or of the next one."""
        names = [each.name for each in self.state.stream.parts]
        if part in names:
            return names.index(part)
        place, places = place_of(part), [place_of(name) for name in names]
        later = [i for i, at in enumerate(places) if place is not None and at is not None and at >= place]
        if place is None or not later or (places[0] is not None and place < places[0]):
            raise DataError(f"{part}: there is no such part; they go from {names[0]} to {self.state.last}")
        return later[0]

    def __repr__(self) -> str:
        return one_line(self, number_of(self.n_parts, "part"), self.status)

    SCHEMA: ClassVar[str] = "plumdp/watch/1"
    TOLD: ClassVar[str] = "status n_parts last=state.last alarms evidence promise gap sentence assumptions"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json


def _exp(value: float) -> float:
    return exp(value) if value < 700 else float("inf")


_OF = {"rows": "of a change", "value": "against the value"}


def _in_words(value: float) -> str:
    return plain_number(value, -1, is_probability=False) if value >= 0.01 else "below 0.01"


@dataclass(frozen=True, kw_only=True)
class AlarmRules:
    """When a watch gives alarms.

    Parameters
    ----------
    quiet
        False alarms of all kinds together are at most one in so many parts, on average.
    reference
        What rows are compared with: "learned" from the parts before, "certified", or values of all parameters.
    value
        False does not watch the value: for parts that do not show whole runs under the certified policy, as logs that
        are read with ``steps`` never do.
    gaps
        "unrelated" vouches that missing parts have nothing to do with their outcomes. Without, a watch stops there.
    return_range
        Two numbers between which the returns of all runs lie, chosen before looking at them.
    """

    quiet: float = 1000
    reference: Reference = None
    value: bool = True
    gaps: Literal["unrelated"] | None = None
    return_range: Range | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.quiet, Real) or not 1 <= self.quiet < inf:
            raise DataError(Option("quiet", self.quiet), ": give a number of parts, at least 1")
        if self.gaps not in (None, "unrelated"):
            raise DataError(Option("gaps", self.gaps), ": choose 'unrelated', or leave it out")
        if not isinstance(self.reference, Mapping) and self.reference not in (None, "learned", "certified"):
            said = ": choose 'learned' or 'certified', or give all parameters"
            raise DataError(Option("reference", self.reference), said)


USUAL = AlarmRules()
"""The alarms that are given if nothing is said."""


@working("watching")
def watch(
    model: ParametricMDP,
    parts: Any,
    question: Asked | Certificate | None = None,
    *,
    rules: AlarmRules = USUAL,
    state: str | Path | None = None,
    acknowledge: bool = False,
    confidence: float = 0.999,
    format: LogFormat = AS_NAMED,
    on_unmatched: Literal["error", "report"] = "error",
) -> Watch:
    """Return whether a process has changed, part by part, with a proved rate of false alarms, and what holds now.

    Parameters
    ----------
    model
        The parametric model.
    parts
        Days, or other parts, in their order: a folder or pattern of logs or files of counts; or a list of files, data
        frames and counts, or these by name.
    question
        What certificates about now are to answer; or a certificate from earlier data, and then an alarm is given, too,
        when runs show that its value no longer holds, and rows are compared with its parameters.
    rules
        How rare false alarms are, and what parts are compared with.
    state
        A file that keeps what is known of the parts so far, so that none is read twice. It is made anew if it is gone.
    acknowledge
        Take note of open alarms: watching begins anew with the next part.
    confidence
        Of certificates about now.
    format, on_unmatched
        How logs are read, as in ``read_log``.

    Returns
    -------
    Watch
        Alarms, evidence, and certificates about now.

    Raises
    ------
    DataError
        If an option or a part cannot be used as given.

    Examples
    --------
    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:5")
    >>> days = [simulate(study.model, study.true_point, 50, rng=day, max_steps=6) for day in range(30)]
    >>> print(watch(study.model, days).sentence)
    No alarm in 30 parts, the last one part 30.
    """
    require_model("watch", model)
    refuse({Trait.EVERY_STEP, *model.traits}, "watch")
    error_of(confidence)
    certificate, asked = (question, None) if isinstance(question, Certificate) else (None, question)
    if acknowledge and state is None:
        raise DataError(Option("acknowledge", acknowledge), ": give the file of the state, which keeps alarms")
    given = [*_given(model, parts, format, on_unmatched)]
    has_runs = rules.value and certificate is not None and bool(given) and given[0].is_log and format.steps is None
    returns = None if certificate is None or not has_runs else _range(model, certificate, rules.return_range)
    plan = _plan(model, certificate, rules, returns, format.known)
    file, files = None if state is None else Path(state), _files_of(certificate)
    used = set() if certificate is None else marks_in(certificate.rests_on.provenance.get("parts", ""))
    used |= {part_of_file(each).mark for each in files}
    if file is not None and file.is_file():
        so_far = WatchState.from_text(read_whole(file).decode(errors="replace"), plan)
    else:
        so_far = replace(WatchState.begin(plan), n_before=_n_before(files, used, given))
    given = given[so_far.n_before :]
    gap = _refuse_late(so_far, given)
    if gap:
        given = given[: so_far.n]
    if acknowledge:
        so_far = so_far.acknowledge()
    names, assuming = [part.name for part in given], dict.fromkeys([_FILED, _CUT, _ARRIVES, _ALIKE])
    if rules.gaps == "unrelated":
        assuming[_MISSING] = None
    elif not gap:
        found = find_gap(names)
        given, gap = (given, "") if found is None else (given[: max(found[0], so_far.n)], found[1])
        if len(names) > 1 and any(place_of(name) is None for name in names):
            assuming[_UNNAMED] = None
    for part in given[so_far.n :]:
        counts, own = part.counts, part.own
        if part.has_runs and part.marks & used:
            raise DataError(
                f"the certificate was made from {part.name}: it must be older than what is watched; if these are other "
                "runs that look alike, give runs names of their own, such as their dates and a number"
            )
        if copied := next((given[i].name for i in so_far.may_have(own) if own & given[i].own), ""):
            gap = f"{part.name} has data that {copied} has, too: remove it if it is a copy"
            break
        losses = None
        if certificate is not None and returns is not None and plan.limit is not None:
            losses = _losses(model, certificate, part, rules.return_range)
        contradicts = counts.report is not None and bool(counts.report.contradicting)
        rests_on = assumptions_of_data(model.counted, counts, Guarantee.ANYTIME, ())
        so_far = so_far.add(
            part.name,
            own,
            counts.seen,
            losses,
            contexts=counts.contexts,
            size=part.size,
            contradicts=contradicts,
            assuming=rests_on,
        )
    if file is not None and so_far.n:
        write_whole(file, so_far.to_text())
    assuming |= dict.fromkeys([_OLDER] if certificate is not None else [])
    assuming |= dict.fromkeys([_POLICY] if plan.limit is not None else [])
    said = _promise(plan, certificate), gap, tuple(dict.fromkeys((*assuming, *so_far.assuming)))
    return Watch(model, so_far, asked, certificate, confidence, *said)


def _promise(plan: Plan, certificate: Certificate | None) -> str:
    """Return in words how rare false alarms are."""
    begins = "" if certificate is None else f", if the certificate holds (confidence {percent(certificate.confidence)})"
    known = "whatever the parameters are"
    if plan.within is not None:
        known = "as long as the parameters are those of the reference"
    alarms = ", of both kinds together," if plan.limit is not None else ","
    return f"at most one in {plan.quiet:,.10g} parts on average{alarms} {known}{begins}"


def _plan(
    model: ParametricMDP,
    certificate: Certificate | None,
    rules: AlarmRules,
    returns: Range | None,
    known: Sequence[str],
) -> Plan:
    """Return what is watched: rows against a reference, and the value if runs show it."""
    rows, (compared, box) = watched_rows(model), reference_of(model, certificate, rules.reference)
    within = None if box is None else ranges_in_box(model, box)
    limit, ends = None, (1.0, 0.0)
    if certificate is not None and returns is not None:
        lower, upper = claimed_shares(certificate, returns)
        is_max = certificate.claim.direction == "max"
        limit, ends = (nextafter(1 - lower, 2.0), returns[::-1]) if is_max else (upper, returns)
        limit = limit if 0 < limit < 1 else None  # else no mean loss contradicts the certificate
    made = None if certificate is None else fingerprint_of(certificate)
    about = [model.counted.fingerprint, rules.quiet, box, limit, made, *known]
    tied, n_learned = tied_parameters(model, rows.table, box), len(model.counted.learned_rewards)
    return Plan(rows, rules.quiet, within, limit, ends, tied, n_learned, chained("", repr(about)), compared)


def reference_of(
    model: ParametricMDP,
    certificate: Certificate | None,
    reference: Reference,
) -> tuple[Compared, Mapping[str, tuple[float, float]] | None]:
    """Return what rows are compared with: by which words, and bounds on all parameters, if they are known."""
    if isinstance(reference, Mapping):
        if not model.counted.space.contains(reference):
            raise DataError(Option("reference", dict(reference)), ": these are not parameters that the model allows")
        return "given", {name: (float(value), float(value)) for name, value in reference.items()}
    if certificate is not None:
        require_kind(certificate, Certificate, "watch takes a certificate, such as read_result(folder, model)")
        names = model.counted.space.names
        if reference == "certified" or (
            reference is None and names and set(names) <= set(certificate.rests_on.parameters)
        ):
            return "certified", dict(certificate.rests_on.parameters)
    elif reference == "certified":
        raise DataError(Option("reference", reference), ": give the certificate as well")
    return "learned", None


def _range(model: ParametricMDP, certificate: Certificate, given: Range | None) -> Range:
    """Return the range of the returns of runs under the certified policy."""
    return range_of_returns(
        certified_question(certificate, model), model, certificate.policy.graph, certificate.policy, given
    )


def _losses(model: ParametricMDP, certificate: Certificate, part: _GivenPart, given: Range | None) -> FloatArray:
    """Return lower bounds on what runs lost, from 0 to 1: those that ended too early may have lost nothing more."""
    if part.counts.report is not None and not part.counts.report.total:
        return np.zeros(0)  # no rows, and so no runs
    policy, runs = certificate.policy, read_whole_runs(model, part.source, part.format)
    made = outcomes_of(certified_question(certificate, model), model, runs, policy.graph, policy, return_range=given)
    losses = 1 - made.upper if certificate.claim.direction == "max" else made.lower
    return np.clip(down(losses, np.ones_like(losses)), 0.0, 1.0)


def _given(
    model: ParametricMDP, parts: Any, format: LogFormat, on_unmatched: Literal["error", "report"]
) -> Iterator[_GivenPart]:
    """Yield the parts, which are read when they are needed."""
    if is_paths(parts):
        parts = named_files(find_files(parts))
    if isinstance(parts, TransitionCounts) or not isinstance(parts, Iterable):
        raise DataError("parts are one file, frame or counts each: give a folder, a list, or a mapping by their names")
    named = parts.items() if isinstance(parts, Mapping) else ((f"part {i}", each) for i, each in enumerate(parts, 1))
    yield from (_GivenPart(str(name), model, each, format, on_unmatched) for name, each in named)


def _files_of(certificate: Certificate | None) -> Sequence[LogFile]:
    """Return the files that a certificate was made from, which must not be watched."""
    quality = None if certificate is None else certificate.rests_on.data_quality
    return () if quality is None or quality.report is None else quality.report.files


def _n_before(files: Sequence[LogFile], used: Set[str], given: Sequence[_GivenPart]) -> int:
    """Return how many of the first parts are data of a certificate, each once, which are left out."""
    for file in files:
        if file.hashed == MANY:  # a hash of all of them together
            first = [part.file for part in given[: file.number] if part.file]
            if [each.hash for each in describe_files(first)] == [file.hash]:
                return file.number
    left, n = set(used), 0
    while n < len(given) and left & given[n].marks:
        left -= given[n].marks
        n += 1
    return n


def _refuse_late(known: WatchState, given: Sequence[_GivenPart]) -> str:
    """Return why a folder does not go on where the state ends, or nothing."""
    names = ""
    for part in given[: known.n]:
        names = chained(names, part.name)
    if names == known.names:
        if known.n and known.size != given[known.n - 1].size:
            return f"{known.last} is not as it was when it was watched: give files that are complete"
        return ""
    return (
        "the parts that were watched are not those that are there now: one came late, or is gone. What was watched "
        "without it stands; put the parts back as they were, or begin a new watch"
    )
