"""``plumdp simulate``, ``plumdp count`` and ``plumdp counts-sql``: write runs of a model, and count logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumdp import library
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Dialect, Form
from plumdp.cli.arguments import ActionMap, ColumnNames, OrderOption, SamplingOption, States, pairs
from plumdp.cli.groups import with_options
from plumdp.cli.mappings import state_maps
from plumdp.cli.options import LogOptions, ModelOptions, require_new
from plumdp.cli.progress import progress_bar

WrittenForm = Annotated[Form, typer.Option("--form", help="Rows with the next state, or one row per state.")]


Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there already.")]


@with_options
def simulate(
    model: ModelOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="A file that ends in .parquet, .csv, .json or .jsonl; .parquet for counts."
        ),
    ],
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="NAME=VALUE", help="The parameters; a case study knows its own."),
    ] = None,
    trajectories: Annotated[int, typer.Option("--trajectories", "-n", help="How many runs.")] = 1000,
    max_steps: Annotated[int | None, typer.Option("--max-steps", help="Where a run is cut off.")] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            help="The policy of the runs: a file of plumdp certify or advise (.csv), of PRISM (.txt) or of Storm "
            "(.json). Default: uniform choices.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same runs.")] = 0,
    form: WrittenForm = "transitions",
    counts: Annotated[bool, typer.Option("--counts", help="Write counts of transitions, not the runs.")] = False,
    force: Force = False,
) -> None:
    """Run a model at a point under uniform choices or a policy, and write the runs or their counts."""
    _require_output(output, counts=counts, force=force)
    if policy is not None and not policy.is_file():
        raise DataError(f"--policy {policy}: there is no such file")
    read, _ = model.load()
    study = library.case_study(model.model) if library.is_case_study(model.model) else None
    point = pairs("--at", at or []) or (dict(study.true_point) if study else {})
    steps = max_steps or (study.max_steps + 1 if study else None)
    if steps is None:
        raise DataError("say with --max-steps where a run is cut off")
    drawn: library.Policy = "uniform" if policy is None else library.read_sampling(policy, read)
    with progress_bar("runs") as show:
        if counts:
            counted = library.simulate(
                read, point, trajectories, rng=seed, max_steps=steps, policy=drawn, progress=show
            )
            library.write_counts(counted, output)
            n_steps, how = counted.total, f"counted{_pilot_text(counted)}"
        else:
            n_steps = library.write_runs(
                output, read, point, trajectories, rng=seed, max_steps=steps, policy=drawn, form=form, progress=show
            )
            how = f"as {form}"
    print(f"{output}: {n_steps:,} steps of {trajectories:,} runs, {how}")


def _require_output(path: Path, *, counts: bool, force: bool) -> None:
    """Refuse a file that cannot be written, is there already, or whose name says nothing of what it would be."""
    require_new(path, force=force)
    if counts and path.suffix != ".parquet":
        raise DataError(f"{path}: counts are kept as Parquet; name a file that ends in .parquet")
    if not counts:
        library.require_run_format(path)


@with_options
def count(
    model: ModelOptions,
    log: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="A Parquet file for the counts.")],
    force: Force = False,
) -> None:
    """Count the transitions of logs of any size, and report what became of every row."""
    _require_output(output, counts=True, force=force)
    read, _ = model.load()
    counted = log.read(read)
    library.write_counts(counted, output)
    if counted.report is not None:
        print(counted.report)
    print(f"{output}: {counted.total:,} steps, counted{_pilot_text(counted)}")


@with_options
def counts_sql(
    model: ModelOptions,
    dialect: Annotated[Dialect, typer.Option("--dialect", help="Whose SQL.")] = "duckdb",
    table: Annotated[str, typer.Option("--table", help="The table with the log.")] = "log",
    form: WrittenForm = "transitions",
    column: ColumnNames = None,
    state: States = None,
    action: ActionMap = None,
    sampling: SamplingOption = None,
    order: OrderOption = None,
) -> None:
    """Print the query that counts a log in a warehouse; plumdp count reads its result."""
    read, _ = model.load()
    query = library.counts_query(
        read,
        table=table,
        dialect=dialect,
        form=form,
        columns=pairs("--column", column or []),
        states=state_maps(state or []),
        actions=action,
        sampling=sampling or "adaptive",
        order=order,
    )
    print(query)


def _pilot_text(counts: library.TransitionCounts) -> str:
    if counts.pilot is None:
        return ""
    why = f" ({counts.pilot.rests_on})" if counts.pilot.rests_on else ""
    if not counts.pilot.lengths:
        return f", without bets, as there are too few data, or it is not clear which came first{why}"
    return f", with bets after the first {', '.join(f'{length:,.0f}' for length in counts.pilot.lengths)}{why}"
