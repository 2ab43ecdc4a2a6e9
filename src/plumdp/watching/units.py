"""Certifies each unit of many from its own counts: the results are rows of one table, which a later night goes on with.

A row is known by a key of model, question, options and counts. Units with equal keys are certified once, and rows that
the file of results has already are not certified again: neither those of a job that was killed, nor those of the
night before whose counts are the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from itertools import islice
from math import nan
from pathlib import Path
from time import monotonic, process_time
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts
from plumdp.base.errors import DataError, ModelError, Option
from plumdp.base.json_values import digest as hashed
from plumdp.base.progress import tell_share, working
from plumdp.base.vocabulary import EXIT_CODES, VERDICT_CODES, Assumption, Relaxation, Status
from plumdp.certifying.pipeline import conclude, prespecifying
from plumdp.certifying.thresholds import decide
from plumdp.data.counts import TransitionCounts, counts_of
from plumdp.data.duckdb_engine import metadata_of, write_parquet
from plumdp.data.duckdb_tables import read_parquet
from plumdp.data.log import Log
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned
from plumdp.learning.methods import Sets, error_of
from plumdp.model.language.threshold import Threshold, as_question
from plumdp.model.objectives.protocol import digest
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import Policy, check_policy
from plumdp.model.question import Asked, Question, ask, is_practice, memory_for
from plumdp.model.text import as_pandas, as_polars, number_of, one_line
from plumdp.result.printing import percent
from plumdp.result.show import Fact, Page, as_html, as_json, as_text

_T = TypeVar("_T")
_R = TypeVar("_R")
Map: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""A function as Python's ``map``: of a pool of processes, of Dask's or Ray's, or of joblib in one line."""

Together: TypeAlias = Literal["each", "all", "rate"]
"""What the confidence is of: of each row by itself, of all rows at once, or of the share of wrong verdicts."""

Under: TypeAlias = Literal["own", "given", "practice"]
"""Under which policy the value of a unit is: that of its certificate, one that was given for all, or its practice."""

FAILED: Literal["failed"] = "failed"
_BATCH, _BATCHES = 32, 8  # units that one call certifies; calls between two looks at whether to write
_LISTED = 20  # units that are printed
_LEAST_SHARE = 20  # of so many units, one has to have a verdict, or no list is given
_SECONDS, _TIMES = 5.0, 20  # between two writings, at least, and as a multiple of how long the last one took


class UnitRow(NamedTuple):
    """What is known of a unit: a row of the table."""

    unit: str
    verdict: str  # of a threshold, or the status of its certificate; or "failed"
    lower: float  # NaN if nothing is claimed
    upper: float
    p: float  # of the model test; NaN if there was none
    exit_code: int  # of ``plumdp certify`` for this unit alone
    why: str  # if the verdict is not yes, no or certified
    seconds: float  # of processor time; 0 if an equal unit was certified
    key: str

    @property
    def is_verdict(self) -> bool:
        """Whether something is claimed that may be wrong."""
        return self.verdict not in (FAILED, Status.INCONCLUSIVE)


_TYPES: dict[str, Any] = dict.fromkeys(UnitRow._fields, np.float64) | dict.fromkeys(
    ("unit", "verdict", "why", "key"), np.object_
)
_TYPES |= {"exit_code": np.int64}


def e_bh(e_values: Sequence[float], level: float) -> list[int]:
    """Return the numbers of the units that are named at a level, the largest e-value first.

    >>> e_bh([1.0, 70.0, 0.0, 45.0], 0.1), e_bh([30.0, 0.0], 0.1)
    ([1, 3], [0])
    """
    values = np.asarray(e_values, dtype=np.float64)
    order, k = np.argsort(-values, kind="stable"), np.arange(1, len(values) + 1)
    good = np.flatnonzero(values[order] * level * k >= len(values))  # values are from below, by more than rounding
    return order[: good[-1] + 1].tolist() if len(good) else []


def each_unit(
    work: Callable[[Sequence[_T]], Sequence[_R]], units: Iterable[_T], map: Map | None = None
) -> Iterator[Sequence[_R]]:
    """Yield what work makes of some units after the other, in their order; a map is given several batches at once."""
    waiting = iter(units)
    while batches := [batch for _ in range(_BATCHES) if (batch := [*islice(waiting, _BATCH)])]:
        yield from (map or _plain)(work, batches)


def _plain(work: Callable[[_T], _R], batches: Iterable[_T]) -> Iterator[_R]:
    return (work(batch) for batch in batches)


@dataclass(frozen=True, eq=False)
class UnitTable:
    """What is known of each unit, one row for each, and what the confidence is of."""

    rows: tuple[UnitRow, ...]
    question: str
    direction: str
    confidence: float
    together: Together
    error: float  # of each row
    assumptions: tuple[str, ...]
    under: Under = "own"

    @property
    def named(self) -> tuple[UnitRow, ...]:
        """The units with a verdict; none if the share of wrong ones is to be bounded, and there are too few."""
        if self.together != "rate":
            return tuple(row for row in self.rows if row.is_verdict)
        # a verdict is wrong with probability at most the error, so its inverse is an e-value of whatever is claimed
        e_values = [(1 - 1e-12) / self.error * row.is_verdict for row in self.rows]
        return tuple(self.rows[i] for i in e_bh(e_values, error_of(self.confidence)))

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        times: dict[str, int] = {}
        for row in self.rows:
            times[row.verdict] = times.get(row.verdict, 0) + 1
        told = ", ".join(
            f"{n:,} {verdict}" for verdict, n in sorted(times.items(), key=lambda item: (-item[1], item[0]))
        )
        return f"{number_of(len(self.rows), 'unit')}: {told or 'none'}."

    @property
    def promise(self) -> str:
        """What the confidence is of, in words."""
        sure, own = percent(self.confidence), percent(self.error)
        if self.together == "all":
            return f"all rows hold at once with confidence {sure}; each has an error of {own}"
        if self.together == "each":
            return f"each row holds by itself with confidence {sure}; on average, at most {own} of all rows are wrong"
        if self.named:
            wrong = percent(error_of(self.confidence))
            return f"on average at most {wrong} of the verdicts are wrong, whatever units have in common"
        return (
            f"fewer than one in {_LEAST_SHARE} units has a verdict, so that no share of wrong ones is bounded; "
            f"each row holds by itself with an error of {own}"
        )

    @property
    def exit_code(self) -> int:
        """The exit code of all rows: 2 if one failed, else 3 if one is rejected, 1 if one is no, else the weakest."""
        codes = {row.exit_code for row in self.rows}
        return next((code for code in (70, 2, 3, 1, 4) if code in codes), 0)

    def columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the table as columns."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(_TYPES)
        return {name: np.array(each, dtype=_TYPES[name]) for name, each in zip(_TYPES, columns, strict=True)}

    to_pandas = as_pandas
    to_polars = as_polars

    def write(self, path: str | Path) -> None:
        """Write the table to a Parquet file, as a whole or not at all."""
        told = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "rows"}
        said = [*map(Assumption.of, self.assumptions)]
        told |= {"in_brief": Assumption.in_brief(said), "kinds": [each.kind for each in said]}
        write_parquet(path, [dict(self.columns())], metadata={"plumdp": json.dumps({"schema": self.SCHEMA} | told)})

    def page(self) -> Page:
        """Return the numbers of verdicts, units that failed or were rejected, and what all of it rests on."""
        some = [row for row in self.rows if row.exit_code not in (0, 1, 4)]
        facts: list[Fact] = [(row.unit, f"{row.verdict}: {row.why}") for row in some[:_LISTED]]
        facts += [("", f"and {len(some) - _LISTED:,} more")] if len(some) > _LISTED else []
        facts += [("query", self.question), ("confidence", self.promise)]
        return Page(self.sentence, facts=[*facts, *(("assuming", Assumption.of(each)) for each in self.assumptions)])

    def __repr__(self) -> str:
        return one_line(self, self.sentence)

    @property
    def shown(self) -> tuple[UnitTable, None]:
        """What the picture shows: the table alone."""
        return self, None

    SCHEMA: ClassVar[str] = "plumdp/units/1"
    picture: ClassVar[str] = "units"
    TOLD: ClassVar[str] = "question under confidence together error promise sentence assumptions"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json


def read_units_table(path: str | Path) -> UnitTable:
    """Return the table that ``certify_each`` wrote to a file."""
    try:
        told = json.loads(metadata_of(path).get("plumdp", "{}"))
    except ValueError:
        told = {}
    if told.pop("schema", None) != UnitTable.SCHEMA:
        raise DataError(f"{path}: this is not a table of units; choose another file")
    block = read_parquet([path])
    columns = (np.ma.filled(block[name], nan) if kind is np.float64 else block[name] for name, kind in _TYPES.items())
    rows = zip(*(each.tolist() for each in columns), strict=True)  # NaN is null in the file
    again = Assumption.again(told["assumptions"], told.pop("in_brief", ()))
    said = zip(map(Assumption.of, again), told.pop("kinds", again), strict=True)
    assumptions = [Assumption(of, of.group, of.brief, kind=kind) for of, kind in said]
    return UnitTable(tuple(UnitRow(*row) for row in rows), **told | {"assumptions": tuple(assumptions)})


@dataclass(frozen=True, eq=False)
class _Job:
    """What is asked of each unit; it travels to whatever runs it."""

    model: ParametricMDP
    question: Question
    threshold: Threshold | None
    policy: Policy | None
    relaxation: Relaxation | None
    options: Mapping[str, Any]  # of ``learn``

    @property
    def key(self) -> str:
        """A hash of it, and of the version."""
        import plumdp

        asked, policy = self.question, self.policy
        told: list[object] = [
            plumdp.__version__,
            self.model.fingerprint,
            digest(asked.objective),
            self.relaxation,
            self.options,
        ]
        told += [self.threshold and self.threshold.text, asked.policy is not None]
        word = policy if policy is None or is_practice(policy) else check_policy(asked.model.graph, policy).tobytes()
        return hashed(repr([*told, word]).encode())

    def __call__(self, batch: Sequence[tuple[str, TransitionCounts | Log]]) -> list[tuple[UnitRow, tuple[str, ...]]]:
        """Return the rows of some units, and what each assumes; what depends on the model alone is made once."""
        like: Learned | None = None
        found = []
        for key, counts in batch:
            start = process_time()
            row, assumptions, like = self._row(counts, like)
            found.append((row._replace(seconds=process_time() - start, key=key), assumptions))
        return found

    def _row(
        self, counts: TransitionCounts | Log, like: Learned | None
    ) -> tuple[UnitRow, tuple[str, ...], Learned | None]:
        try:
            learned = learn(self.model, counts, objectives=[self.question], like=like, **self.options)
            how: Any = {"relaxation": self.relaxation, "policy": self.policy}
            certificate = conclude(learned, self.question, **how)
            verdict, code = str(certificate.status), EXIT_CODES[certificate.status]
            if self.threshold is not None and code in (0, 4):
                answer = decide(learned, self.threshold, relaxation=self.relaxation, certificate=certificate)
                verdict, code = str(answer.verdict), VERDICT_CODES[answer.verdict]
                certificate = answer.certificate
        except (DataError, ModelError) as error:
            return failed("", str(error)), (), like
        except Exception as error:  # whatever it is, it stops no other unit
            return failed("", f"{type(error).__name__}: {error}", 70), (), like
        claim, p = certificate.claim, nan if learned.fit is None else learned.fit.p_value
        ends = (claim.lower, claim.upper) if claim.claims_bounds else (nan, nan)
        why = "" if code in (0, 1) else certificate.headline
        row = UnitRow("", verdict, *ends, p, code, why, 0.0, "")
        return row, certificate.rests_on.assumptions, like or learned


def failed(unit: str, why: str, code: int = 2) -> UnitRow:
    """Return the row of a unit of which nothing can be said, with what is wrong and not with what to do about it."""
    why = " ".join(line.strip() for line in why.splitlines()[:2])
    return UnitRow(unit, FAILED, nan, nan, nan, code, why, 0.0, "")


@working("certifying units")
def certify_each(
    model: ParametricMDP,
    units: Mapping[str, TransitionCounts | Log] | Iterable[tuple[str, TransitionCounts | Log | DataError]],
    objective: Asked,
    *,
    together: Together = "each",
    map: Map | None = None,
    output: str | Path | None = None,
    policy: Policy | None = None,
    prespecified: bool = False,
    relaxation: Relaxation | None = None,
    confidence: float = 0.999,
    confidence_set: Sets | None = None,
    model_tolerance: float = 0.0,
) -> UnitTable:
    """Return what ``certify`` says of each of many units from its own counts, as a table with a row for each.

    Units with the same counts are certified once. A unit that cannot be certified is a row that says why.

    Parameters
    ----------
    model
        The parametric model, the same for all units.
    units
        The counts of each unit by its name, such as ``data.units.read_units`` returns.
    objective
        The question, or its text. With a threshold, such as ``P>=0.9 [ F "goal" ]``, verdicts are yes and no.
    together
        "each": every row holds by itself with the given confidence. "all": all rows hold at once, so that bounds are
        wider. "rate": of the units with a verdict, a share of at most one minus the confidence is wrong, on average.
    map
        What runs the work, such as ``pool.map`` of a pool of processes; by default a loop in this process.
    output
        A Parquet file, which is written now and then. If it has rows of the same question and counts, they are kept.
    policy, prespecified, relaxation, confidence, confidence_set, model_tolerance
        As in ``certify``.

    Returns
    -------
    UnitTable
        The rows: unit, verdict, bounds, the p-value of the model test, exit code, reason, seconds.

    Raises
    ------
    ModelError
        If the question does not fit the model.

    Examples
    --------
    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:5")
    >>> rates = {"Ann": 0.2, "Bob": 0.9}
    >>> units = {name: simulate(study.model, {"p": p}, 200, rng=1, max_steps=6) for name, p in rates.items()}
    >>> table = certify_each(study.model, units, 'R{"money"}>=11 [ F "end" ]')
    >>> table.sentence, [(row.unit, row.verdict) for row in table.rows]
    ('2 units: 1 no, 1 yes.', [('Ann', 'no'), ('Bob', 'yes')])
    """
    require_model("certify_each", model)
    if together not in get_args(Together):
        raise DataError(Option("together", together), f": choose one of {', '.join(get_args(Together))}")
    pairs = units.items() if isinstance(units, Mapping) else units
    if together == "all" and not isinstance(units, Sized):
        pairs = units = [*pairs]
    n = len(units) if isinstance(units, Sized) else 0
    error = error_of(confidence)
    own = equal_parts(error, {"all": n, "rate": _LEAST_SHARE}.get(together, 1))
    threshold = as_question(objective, model) if isinstance(objective, str) else None
    threshold = threshold if isinstance(threshold, Threshold) else None
    memory = True if policy is None else memory_for(model, policy)
    question = ask(objective if threshold is None else threshold.objective, model, memory=memory)
    options = {"confidence": 1 - own, "confidence_set": confidence_set, "model_tolerance": float(model_tolerance)}
    told = prespecifying(question, policy, prespecified=prespecified)
    job = _Job(model, told, threshold, policy, relaxation, options)
    text = question.objective.text if threshold is None else threshold.text
    about: dict[str, Any] = {"question": text, "direction": question.objective.direction, "confidence": confidence}
    about |= {"together": together, "error": own}
    about |= {"under": "own" if policy is None else "practice" if is_practice(policy) else "given"}
    before = None if output is None or not Path(output).exists() else read_units_table(output)
    found = _UnitRows(about, Path(output) if output else None, before)
    found.add(pairs, job, map, n)
    return found.table()


class _UnitRows:
    """The rows so far, which are written now and then."""

    def __init__(self, about: Mapping[str, Any], output: Path | None, before: UnitTable | None) -> None:
        self._about, self._output = about, output
        self._known = {} if before is None else {row.key: row for row in before.rows if row.key}
        self._assuming: dict[str, Assumption] = {}
        self._assume(() if before is None else before.assumptions)
        self._rows: dict[str, UnitRow] = {}
        self._names: set[str] = set()
        self._waiting: dict[str, list[str]] = {}  # units by the key that they wait for
        self._written, self._took = monotonic(), 0.0

    def table(self) -> UnitTable:
        """Return the table of all rows that there are."""
        rows = tuple(self._rows[name] for name in sorted(self._rows))
        return UnitTable(rows, **self._about, assumptions=tuple(self._assuming.values()))

    def _assume(self, texts: Iterable[str]) -> None:
        """Add assumptions; those of one kind are told once, without what one log has of it."""
        for text in texts:
            of = Assumption.of(text)
            known = self._assuming.setdefault(of.kind, of)
            if known != of:
                brief = of.brief if of.brief == known.brief else of.kind
                self._assuming[of.kind] = Assumption(of.kind, of.group, brief)

    def add(
        self,
        units: Iterable[tuple[str, TransitionCounts | Log | DataError]],
        job: _Job,
        map: Map | None,
        n: int,
    ) -> None:
        """Certify units, and write their rows."""
        for found in each_unit(job, self._to_do(units, job), map):
            for row, assumptions in found:
                self._known[row.key] = row
                self._assume(assumptions)
                names = self._waiting.pop(row.key)
                for i, name in enumerate(names):
                    self._rows[name] = row._replace(unit=name, seconds=0.0 if i else row.seconds)
            tell_share("units", len(self._rows), n or len(self._rows))
            if monotonic() - self._written > max(_SECONDS, _TIMES * self._took):
                self._write()
        self._write()

    def _write(self) -> None:
        start = monotonic()
        if self._output is not None:
            self.table().write(self._output)
        self._written = monotonic()
        self._took = self._written - start

    def _to_do(
        self, units: Iterable[tuple[str, TransitionCounts | Log | DataError]], job: _Job
    ) -> Iterator[tuple[str, TransitionCounts | Log]]:
        """Yield the counts that are not known yet, with their keys; units with equal counts wait for one of them."""
        of_job, needs_log = job.key, job.policy is not None and is_practice(job.policy)
        for given, counts in units:
            name = str(given)
            if name in self._names:
                raise DataError(f"{name}: two units have this name")
            self._names.add(name)
            if isinstance(counts, DataError):
                self._rows[name] = failed(name, str(counts))
                continue
            key = hashed(f"{of_job} {_content(counts)}".encode())
            if key in self._known:
                self._rows[name] = self._known[key]._replace(unit=name, seconds=0.0)
            elif key in self._waiting:
                self._waiting[key].append(name)
            else:
                self._waiting[key] = [name]
                yield key, counts if needs_log else counts_of(counts)


def _content(counts: TransitionCounts | Log) -> str:
    """Return what a certificate depends on: the counts, and what became of the rows of their log."""
    counted = counts_of(counts)
    report = counted.report
    about = () if report is None else (report.rows, report.assuming, report.censoring, report.censored_runs)
    return f"{counted.fingerprint} {counted.graph.fingerprint} {counted.no_contexts} {about}"
