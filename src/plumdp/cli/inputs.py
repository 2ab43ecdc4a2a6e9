"""Reads models, properties and data as options say, and learns from them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from glob import glob
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import plumdp
from plumdp.base.errors import DataError, ModelError
from plumdp.base.progress import tell
from plumdp.base.vocabulary import Remembered, Sampling, Sets
from plumdp.cli.errors import FILE, is_shared, where_given
from plumdp.cli.options import OF_FORMAT, OPTIONS, Options
from plumdp.cli.sources import chosen_properties, load_source, read_properties
from plumdp.cli.texts import ranges
from plumdp.data.columns import named
from plumdp.data.counts import counts_of
from plumdp.exchange.read_intervals import model_at
from plumdp.model.question import PRACTICE

if TYPE_CHECKING:
    from plumdp.data.carrying import Carried
    from plumdp.data.log import Log
    from plumdp.data.raw_logs import RawLog
    from plumdp.data.run_record import WholeRuns
    from plumdp.data.units import UnitLogs
    from plumdp.exchange.read_intervals import IntervalModel
    from plumdp.learning.learned import Learned
    from plumdp.model.language.threshold import Threshold
    from plumdp.model.objectives import Objective
    from plumdp.model.parametric import ParametricMDP
    from plumdp.model.question import Asked

_FEW_UNITS = 64  # which take less time than processes take to start
_ORDERS = ("order", "expected")
_NAMES = ("column", "state", "action", "form", "text")
_OF_ALL_DATA = ("sampling", "keep_going", "run_cap")  # may be said of files of counts too


def each_model(given: Options) -> list[Options]:
    """Return the same with single values of constants, for each combination of values of ranges such as N=4:6."""
    return [replace(given, constant=values) for values in ranges(given.constant)]


def name_of_model(given: Options) -> str:
    """Return the model with its constants, for people."""
    return " ".join([given.model, *(f"{name}={value}" for name, value in given.constant.items())])


def load_model(given: Options) -> tuple[ParametricMDP, list[str]]:
    """Return the model and the properties that come with it."""
    from plumdp.model.gaps import with_gaps
    from plumdp.model.language.constraint import cut_model

    tell(f"reading the model {name_of_model(given)}")
    first, *others = ranges(given.constant)
    if others:
        raise ModelError("--constant: this command takes one value for each constant; certify and info take ranges")
    read, properties = (table_of(given), []) if is_log(given.model) else load_source(given.model, first)
    try:
        read = cut_model(read, given.space)
    except ModelError as error:
        raise ModelError("--space: ", *error.args) from None
    if given.exact and not given.observation_gaps:
        raise ModelError("--exact: say with --observation-gaps after how many steps the state is seen")
    return with_gaps(read, given.observation_gaps, exact=given.exact) if given.observation_gaps else read, properties


def load_interval_model(given: Options) -> tuple[IntervalModel, list[str]]:
    """Return an interval model, or a parametric one at a point, and the properties that come with it."""
    from plumdp.case_studies import is_case_study

    if given.at or is_case_study(given.model):
        read, properties = load_model(given)
        return model_at(read, given.at or plumdp.case_study(given.model).true_point), properties
    tell(f"reading the model {given.model}")
    path = Path(given.model)
    if not path.is_file():
        raise ModelError(f"{given.model}: there is no such file, and no case study of this name (try betting:50)")
    return plumdp.exchange.read_interval_model(path, constants=given.constant), read_properties(path)


def load_texts(given: Options) -> tuple[ParametricMDP, list[str]]:
    """Return the model, and the questions as texts: those given, its only property, or all that come with it."""
    read, properties = load_model(given)
    asks_all = [*given.property] == ["all"]
    if given.property and not asks_all:
        return read, chosen_properties(given.model, given.property, properties)
    if not properties:
        raise ModelError(f"{given.model}: no property comes with the model; give one with --property")
    if not asks_all and len(properties) > 1:
        texts = "; ".join(properties)
        raise ModelError(f"{given.model}: choose one with --property, or all: {texts}")
    return read, properties


def load_objectives(given: Options) -> tuple[ParametricMDP, tuple[Objective, ...]]:
    """Return the model and the objectives, without thresholds."""
    from plumdp.model.language.property import as_objectives

    read, texts = load_texts(given)
    return read, tuple(_in_unit(given, each) for each in as_objectives(texts, read))


def load_objective(given: Options) -> tuple[ParametricMDP, Objective]:
    """Return the model, and the one value that is asked."""
    if len(given.property) > 1:
        raise DataError("--property: this command answers one; give one")
    read, (objective,) = load_objectives(given)
    return read, objective


def load_questions(given: Options) -> tuple[ParametricMDP, tuple[Objective | Threshold, ...]]:
    """Return the model and the questions, where thresholds such as P>=0.9 may be among the properties."""
    from plumdp.model.language.property import as_objectives
    from plumdp.model.language.threshold import Threshold, as_question, is_threshold

    read, texts = load_texts(given)
    as_objectives([text for text in texts if not is_threshold(text)], read)  # refuses questions that are asked twice
    asked = (as_question(text, read) for text in texts)
    return read, tuple(
        replace(each, objective=_in_unit(given, each.objective))
        if isinstance(each, Threshold)
        else _in_unit(given, each)
        for each in asked
    )


def _in_unit(given: Options, objective: Objective) -> Objective:
    """Return the objective in the given unit, unless it is a probability."""
    from plumdp.model.language.property import in_unit

    return objective if objective.cap == 1 else in_unit(objective, given.unit)


def objective_of(question: Objective | Threshold) -> Objective:
    """Return the objective, or the one whose value is compared with a threshold."""
    from plumdp.model.language.threshold import Threshold

    return question.objective if isinstance(question, Threshold) else question


def require_data(given: Options) -> None:
    """Refuse to go on without data, in commands that also take a saved result or a finished model."""
    if not given.data:
        raise DataError(f"{given.model}: give data after the model, or the folder of a result that certify -o wrote")


def read_data(given: Options, model: ParametricMDP) -> plumdp.TransitionCounts:
    """Return the sum of files of counts, or the counts of logs."""
    return counts_of(_read_all(given, model))


def _read_all(given: Options, model: ParametricMDP) -> plumdp.TransitionCounts | Log:
    """Return the sum of files of counts, or logs; say of which model, if they do not fit one of a range.

    A warning on standard error says if there are none: bounds are then those of the space.
    """
    from plumdp.data.quality import DataQuality

    try:
        found = _read(given, model)
    except DataError as error:
        raise DataError(*([f"{name_of_model(given)}: "] if given.constant else []), *error.args) from None
    counts = counts_of(found)
    if absence := DataQuality(counts.total, counts.report).absence:
        print(f"warning: {absence}", file=sys.stderr)
    return found


def _read(given: Options, model: ParametricMDP) -> plumdp.TransitionCounts | Log:
    from plumdp.data.duckdb_tables import find_files
    from plumdp.data.files import is_counts_file

    files = find_files(_data_of(given))
    if is_counts_file(files[0]):
        for name, about in OPTIONS.items():
            if about.group == "log" and name not in _OF_ALL_DATA and getattr(given, name):
                _refuse(name, files[0])
        return _claiming(given.sampling, files, _added(model, files))
    tell("reading the data")
    log, how = log_of(given, files), how_counted(given)
    return plumdp.read_log(model, log, format_of(given), **how, rejected=given.rejected).capped(given.run_cap)


def format_of(given: Options) -> plumdp.LogFormat:
    """Return how the rows of a log are read."""
    return plumdp.LogFormat(**{name: getattr(given, option) for name, option in OF_FORMAT.items()})


def read_on(given: Options, model: ParametricMDP, carry: Path) -> Carried:
    """Return the counts so far of logs that arrive in files."""
    from plumdp.data.carrying import count_on
    from plumdp.data.duckdb_tables import find_files
    from plumdp.data.files import is_counts_file

    files, how = find_files(_data_of(given)), how_counted(given)
    if is_counts_file(files[0]):
        raise DataError(f"--carry {carry}: {files[0]} has counts, and is no log: counts are added without it")
    if how.pop("sampling") != "adaptive":
        raise DataError(f"--sampling {given.sampling}: counts to which more is added, with --carry, are adaptive")
    return count_on(model, log_of(given, files), carry, format_of(given), **how, rejected=given.rejected)


def how_counted(given: Options) -> dict[str, Any]:
    """Return what is stated of a log, in the words of ``read_log``."""
    return {
        "sampling": given.sampling or "adaptive",
        "order": given.order,
        "expected": given.expected,
        "on_unmatched": "report" if given.keep_going else "error",
    }


def read_units(given: Options, model: ParametricMDP) -> UnitLogs:
    """Return the logs of all units."""
    from plumdp.data import units
    from plumdp.data.duckdb_tables import find_files

    log = log_of(given, find_files(_data_of(given)))
    return units.read_units(model, log, given.by, format_of(given), **how_counted(given))


@contextmanager
def map_of(n_units: int) -> Iterator[Any]:
    """Give the map of a pool of processes, one for each processor; nothing for few units, which need no pool."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from plumdp.base.threads import n_threads

    n = n_threads()
    if n == 1 or n_units <= _FEW_UNITS:
        yield None
        return
    with ProcessPoolExecutor(n, get_context("spawn")) as pool:
        yield pool.map


def runs_of(given: Options, model: ParametricMDP, *policies: str) -> WholeRuns | None:
    """Return the runs of policies that are called like arms of the log; None if no column names arms.

    Practice is nobody's arm, and a policy that was not pre-specified may have been chosen by looking at how runs went.
    """
    from plumdp.cli.sources import policy_names
    from plumdp.data.duckdb_tables import find_files
    from plumdp.data.files import is_counts_file

    if not _names_arms(given, model) or not given.prespecified or PRACTICE in policies:
        return None
    files = find_files(_data_of(given))
    if is_counts_file(files[0]):
        return None
    runs = plumdp.data.read_whole_runs(model, log_of(given, files), format_of(given), expected=given.expected)
    return replace(runs.of(*policy_names(*policies)), cap=given.run_cap)


def _names_arms(given: Options, model: ParametricMDP) -> bool:
    from plumdp.data.columns import columns_of_runs

    return "arm" in columns_of_runs(model.graph, given.column)


def is_log(model: str) -> bool:
    """Return whether a file, or a folder or pattern of them, that stands for a model is a log."""
    from plumdp.data.duckdb_tables import is_data
    from plumdp.model.stored_files import DESCRIPTION
    from plumdp.result.folder import CERTIFICATE

    file = _file_of(model)
    if file.is_dir():
        names = {each.name for each in file.iterdir()}
        return not names & {CERTIFICATE, DESCRIPTION} and any(map(is_data, names))
    return any(map(is_data, [str(file)] if file.is_file() else glob(model, recursive=True)))


def table_of(given: Options) -> ParametricMDP:
    """Return the table that the first runs of a log make."""
    from plumdp.model.values import whole
    from plumdp.starting.proposal import Start

    made = given.table
    initial = begins_of(made)
    if "first" not in made or not initial or not given.state:
        raise DataError(
            f"{given.model} is a log, not a model: plumdp start {given.model} looks at its rows, and writes to {FILE} "
            "how its first runs make a table"
        )
    reward = ("cost", given.cost) if given.cost else ("reward", given.reward)
    raw = raw_of(given, [given.model])
    end, is_closed = made.get("end", ""), whole(made.get("closed", "")) == 1
    table = Start(raw, format_of(given), n_first(given), initial, end, given.goal, reward)
    return replace(table, closed=is_closed, remember=memory_of(given)).model


def memory_of(given: Options) -> Remembered | None:
    """Return what each state remembers of its run; a column that it remembers is a variable as others are."""
    from plumdp.data.remembering import VARIABLES

    what = next((each for each in VARIABLES if each == given.remember), None)
    if given.remember and what is None and given.remember not in given.state:
        raise DataError(
            f"--remember {given.remember}: choose one of {', '.join(VARIABLES)}; to let states remember a column, say "
            f"so to plumdp start, which writes the state to {FILE}"
        )
    return what


def begins_of(made: Mapping[str, str]) -> dict[str, str]:
    """Return the state in which runs of a table begin, as somebody said."""
    return {name.removeprefix("initial."): value for name, value in made.items() if name.startswith("initial.")}


def n_first(given: Options) -> int:
    """Return how many of the first runs of a log make its table; 0 if nobody said so."""
    text = given.table.get("first", "0")
    if not text.isdecimal():
        raise DataError(f"--table first={text}: give a whole number")
    return int(text)


def _data_of(given: Options) -> Sequence[str]:
    """Return the data, which a log that stands for the model has itself."""
    if not given.data and not is_log(given.model):
        raise ModelError(f"{given.model}: give data after the model, logs or files of counts")
    return given.data or [given.model]


def log_of(given: Options, files: Sequence[str]) -> RawLog:
    """Return files as a log, without the runs that made the table of a log, which are known by their names."""
    from plumdp.data.duckdb_tables import find_files
    from plumdp.starting.proposal import is_price_list

    raw = raw_of(given, files)
    if not is_log(given.model):
        return raw
    table = find_files(given.model)
    run, step = (named(given.column, given.state).get(name, "") for name in ("episode", "step"))
    first, read = ({*map(_file_of, each)} for each in (table, files))
    if not run and not first & read:
        return raw
    if not run and first != read:  # rows without runs have no names
        raise DataError(
            f"{given.model} made the table, and its rows name no runs: count it alone, count the other files alone, "
            "and add the counts"
        )
    how: Any = {} if first == read else {"of": table}
    earned = given.cost or given.reward
    how |= {} if is_price_list(earned, format_of(given)) else {"means": earned}
    return raw.others(n_first(given), run=run, step=step, **how)


def _file_of(path: str) -> Path:
    """Return the file that a path or the name of an example stands for, so that the same file is known as such."""
    from plumdp.data.duckdb_tables import example_file

    return Path(example_file(path)).resolve()


def raw_of(given: Options, files: Sequence[str]) -> RawLog:
    """Return files of a log with what is said about how texts are written in them."""
    how: Any = given.text
    raw = plumdp.data.raw_log(files, **how)
    raw = replace(raw, text=replace(raw.text, skips=given.keep_going))
    by, _, unit = given.by.partition("=")
    raw = raw.only(by, unit) if unit else raw
    if not given.remember or (what := memory_of(given)) is None:
        return raw
    if not is_log(given.model):
        raise DataError("--remember: the states of a model are what it says; give a log as the model")
    names, action = named(given.column, given.state), given.action if isinstance(given.action, str) else ""
    how = {"run": names.get("episode", "episode"), "step": names.get("step", "step")}
    return raw.remember(what, **how, states=given.state, action=action)


def _refuse(name: str, file: str) -> None:
    """Refuse an option that can only be said of a log, unless it is said for all commands."""
    if is_shared(name):
        return
    why = "which keeps what was said when the log was counted; leave it out"
    if name in _ORDERS:
        why = f"which keeps the order that it was counted with; count the log again with --{name}"
    elif name in _NAMES:
        why = "in which nothing has another name; leave it out"
    raise DataError(f"{where_given(name)}: {file} is a file of counts, {why}, or give the log itself")


def _added(model: ParametricMDP, files: Sequence[str]) -> plumdp.TransitionCounts:
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


def _claiming(
    sampling: Sampling | None, files: Sequence[str], counts: plumdp.TransitionCounts
) -> plumdp.TransitionCounts:
    """Return counts that claim no more than was stated when they were counted."""
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


def learn(given: Options, model: ParametricMDP, asked: Sequence[Asked]) -> Learned:
    """Return the ``Learned`` of the data."""
    return learn_from(given, model, _read_all(given, model), asked)


def learn_from(
    given: Options, model: ParametricMDP, counts: plumdp.TransitionCounts | Log, asked: Sequence[Asked]
) -> Learned:
    """Return the ``Learned`` of counts; refuse a column of arms if no question uses the returns of whole runs."""
    if (
        _names_arms(given, model)
        and not is_shared("column")
        and all(getattr(each, "runs", None) is None for each in asked)
    ):
        raise DataError(
            f"{where_given('column')} arm={given.column['arm']}: this is about the values of policies that were there "
            "before their runs began; name them with --policy and --against, say --prespecified, and ask nothing else"
        )
    tell(f"learning from {counts_of(counts).total:,} steps")
    return plumdp.learn(
        model,
        counts,
        objectives=asked,
        confidence=given.confidence,
        confidence_set=cast("Sets | None", given.confidence_set),  # learn refuses what is not in its table
        model_tolerance=given.model_tolerance,
        witness=given.witness,
    )
