"""``plumdp simulate``, ``plumdp count`` and ``plumdp counts-sql``: write runs of a model, and count logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from plumdp.case_studies import case_study, is_case_study
from plumdp.cli.arguments import (
    ColumnNames,
    Constants,
    Data,
    Model,
    OrderOption,
    PilotOption,
    SamplingOption,
    load,
    pairs,
)
from plumdp.data.counts import PilotEnd, Sampling, TransitionCounts, weaker
from plumdp.data.duckdb_tables import write_parquet
from plumdp.data.files import is_counts_file, read_counts, write_counts
from plumdp.data.log_pilots import Order
from plumdp.data.logs import Log, read_log
from plumdp.data.pilots import WHY_EMPTY
from plumdp.data.simulate import simulate as run_model
from plumdp.data.sql import Dialect, counts_query
from plumdp.data.trajectories import Columns, Form, record_blocks
from plumdp.errors import DataError
from plumdp.model.parametric import ParametricMDP
from plumdp.result.folder import require_file


def simulate(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="A Parquet file.")],
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="NAME=VALUE", help="The parameters; a case study knows its own."),
    ] = None,
    trajectories: Annotated[int, typer.Option("--trajectories", "-n", help="How many runs.")] = 1000,
    max_steps: Annotated[int | None, typer.Option("--max-steps", help="Where a run is cut off.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same runs.")] = 0,
    constant: Constants = None,
    form: Annotated[
        Form, typer.Option("--form", help="Rows with the next state, or one row per state.")
    ] = "transitions",
    counts: Annotated[bool, typer.Option("--counts", help="Write counts of transitions, not the runs.")] = False,
    pilot: PilotOption = None,
) -> None:
    """Run a model at a point under uniform choices, and write the runs or their counts."""
    require_file(output)
    read, _ = load(model, constant or [])
    study = case_study(model) if is_case_study(model) else None
    point = pairs("--at", at or []) or (dict(study.true_point) if study else {})
    steps = max_steps or (study.max_steps + 1 if study else None)
    if steps is None:
        raise DataError("say with --max-steps where a run is cut off")
    if pilot is not None and not counts:
        raise DataError("--pilot: only counts have a pilot; say --counts, or --pilot to plumdp count")
    if counts:
        with _progress("runs") as show:
            counted = run_model(read, point, trajectories, rng=seed, max_steps=steps, pilot=pilot, progress=show)
        write_counts(counted, output)
        print(f"{output}: {counted.total:,} steps of {trajectories:,} runs, counted{_pilot_text(counted)}")
        return
    blocks = record_blocks(read, point, trajectories, rng=seed, max_steps=steps)
    n_rows = 0

    def columns() -> Iterator[Columns]:
        nonlocal n_rows
        for block in blocks:
            n_rows += len(block)
            yield block.columns(form)

    write_parquet(output, columns())
    print(f"{output}: {n_rows:,} steps of {trajectories:,} runs, as {form}")


def count(
    model: Model,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="A Parquet file for the counts.")],
    constant: Constants = None,
    column: ColumnNames = None,
    sampling: SamplingOption = None,
    order: OrderOption = None,
    pilot: PilotOption = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Count what fits the model even if some rows do not.")
    ] = False,
) -> None:
    """Count the transitions of logs of any size, and report what became of every row."""
    require_file(output)
    read, _ = load(model, constant or [])
    log = _read(data, read, column, sampling, keep_going, order, pilot)
    write_counts(log.counts, output)
    print(log)
    print(f"{output}: {log.counts.total:,} steps, counted{_pilot_text(log.counts)}")


def counts_sql(
    model: Model,
    dialect: Annotated[Dialect, typer.Option("--dialect", help="Whose SQL.")] = "duckdb",
    table: Annotated[str, typer.Option("--table", help="The table with the log.")] = "log",
    form: Annotated[
        Form, typer.Option("--form", help="Rows with the next state, or one row per state.")
    ] = "transitions",
    constant: Constants = None,
    column: ColumnNames = None,
    sampling: SamplingOption = None,
    order: OrderOption = None,
    pilot: PilotOption = None,
) -> None:
    """Print the query that counts a log in a warehouse; ``plumdp count`` reads its result."""
    read, _ = load(model, constant or [])
    columns = pairs("--column", column or [])
    query = counts_query(
        read,
        table=table,
        dialect=dialect,
        form=form,
        columns=columns,
        sampling=sampling or "adaptive",
        order=order,
        pilot=pilot,
    )
    print(query)


def read_data(
    paths: list[str],
    model: ParametricMDP,
    sampling: Sampling | None,
    order: Order | None = None,
    pilot: float | None = None,
) -> TransitionCounts:
    """Return the counts in a file of counts, or those of logs; only logs can be asked for another pilot."""
    if not (len(paths) == 1 and is_counts_file(paths[0])):
        return _read(paths, model, None, sampling, keep_going=False, order=order, pilot=pilot).counts
    if order is not None or pilot is not None:
        option = "--pilot" if order is None else "--order"
        raise DataError(
            f"{option}: {paths[0]} is a file of counts, which keeps the pilot that it was counted with; count the log "
            f"again with {option}, or give the log itself"
        )
    counts = read_counts(paths[0], model)
    if sampling is not None and weaker(sampling, counts.sampling) != sampling:
        raise DataError(
            f"--sampling {sampling}: {paths[0]} was counted as {counts.sampling}, which claims less; if the stronger "
            f"claim is true, count the log again with --sampling {sampling}"
        )
    if sampling is None or sampling == counts.sampling:
        return counts
    kept = counts.pilot if counts.pilot is not None and counts.pilot.end == PilotEnd.POWER_OF_TWO else None
    # who takes back that the length was planned has no share of it; an empty pilot keeps its weight
    return replace(counts, sampling=sampling, pilot=kept)


def _read(
    paths: list[str],
    model: ParametricMDP,
    column: list[str] | None,
    sampling: Sampling | None,
    keep_going: bool,
    order: Order | None = None,
    pilot: float | None = None,
) -> Log:
    with _progress("rows") as show:
        return read_log(
            paths,
            model,
            columns=pairs("--column", column or []),
            sampling=sampling or "adaptive",
            order=order,
            pilot=pilot,
            on_unmatched="report" if keep_going else "error",
            progress=show,
        )


def _pilot_text(counts: TransitionCounts) -> str:
    if counts.pilot is None:
        return ""
    if counts.pilot.total or counts.pilot.end == PilotEnd.PLANNED:
        return f", {counts.pilot.total:,} of them as a pilot ({counts.pilot.end})"
    return f", none of them as a pilot ({WHY_EMPTY})"


@contextmanager
def _progress(what: str) -> Iterator[Callable[[float, float], None]]:
    """Yield a function that updates a progress bar on standard error, which is only shown on a terminal."""
    console = Console(stderr=True)
    with Progress(
        TextColumn(what),
        BarColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done, total: bar.update(task, completed=done / total if total else 1.0)
