"""``plumdp simulate``, ``plumdp count`` and ``plumdp counts-sql``: write runs of a model, and count logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Dialect, Form
from plumdp.cli import arguments as args
from plumdp.cli.arguments import pairs
from plumdp.cli.mappings import action_map, state_maps
from plumdp.cli.options import LogOptions, ModelOptions, require_new
from plumdp.cli.progress import progress_bar
from plumdp.cli.sources import load_policy

if TYPE_CHECKING:
    from plumdp.model.policy import Policy

_Form = Annotated[Form, typer.Option("--form", help="Rows with the next state, or one row per state.")]
_Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there already.")]


def simulate(
    *,
    model: args.Model,
    constant: args.Constant = None,
    space: args.Space = None,
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
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="The policy of the runs: a file of plumdp certify or advise (.csv), of PRISM (.txt), of Storm (.json) "
            "or of Python (.py), or one action. Default: uniform choices.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same runs.")] = 0,
    form: _Form = "transitions",
    counts: Annotated[bool, typer.Option("--counts", help="Write counts of transitions, not the runs.")] = False,
    force: _Force = False,
) -> None:
    """Run a model at a point under uniform choices or a policy, and write the runs or their counts."""
    from plumdp.case_studies import is_case_study

    _require_output(output, counts=counts, force=force)
    read, _ = ModelOptions(model, constant, space).load()
    study = plumdp.case_study(model) if is_case_study(model) else None
    point = pairs("--at", at or []) or (dict(study.true_point) if study else {})
    steps = max_steps or (study.max_steps + 1 if study else None)
    if steps is None:
        raise DataError("say with --max-steps where a run is cut off")
    drawn: Policy = "uniform" if policy is None else load_policy(policy, read)
    with progress_bar("runs") as show:
        if counts:
            counted = plumdp.simulate(read, point, trajectories, rng=seed, max_steps=steps, policy=drawn, progress=show)
            plumdp.write_counts(counted, output)
            n_steps, how = counted.total, f"counted{_pilot_text(counted)}"
        else:
            n_steps = plumdp.data.write_runs(
                read, point, trajectories, output, rng=seed, max_steps=steps, policy=drawn, form=form, progress=show
            )
            how = f"as {form}"
    print(f"{output}: {n_steps:,} steps of {trajectories:,} runs, {how}")


def _require_output(path: Path, *, counts: bool, force: bool) -> None:
    """Refuse a file that cannot be written, is there already, or whose name says nothing of what it would be."""
    require_new(path, force=force)
    if counts and path.suffix != ".parquet":
        raise DataError(f"{path}: counts are kept as Parquet; name a file that ends in .parquet")
    if not counts:
        from plumdp.data.run_files import require_run_format

        require_run_format(path)


_Output = Annotated[Path, typer.Option("--output", "-o", help="A Parquet file for the counts.")]


def count(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.Data, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, allow_impossible: args.AllowImpossible = 0, rejected: args.Rejected = None,
    partitions: args.Partitions = None,
    output: _Output, force: _Force = False,
) -> None:  # fmt: skip
    """Count the transitions of logs of any size, and report what became of every row."""
    _require_output(output, counts=True, force=force)
    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps, allow_impossible,
        rejected, partitions,
    )  # fmt: skip
    read, _ = ModelOptions(model, constant, space).load()
    counted = log.read(read)
    plumdp.write_counts(counted, output)
    if counted.report is not None:
        print(counted.report)
    print(f"{output}: {counted.total:,} steps, counted{_pilot_text(counted)}")


def counts_sql(
    *,
    model: args.Model,
    constant: args.Constant = None,
    space: args.Space = None,
    dialect: Annotated[Dialect, typer.Option("--dialect", help="Whose SQL.")] = "duckdb",
    table: Annotated[str, typer.Option("--table", help="The table with the log.")] = "log",
    form: _Form = "transitions",
    column: args.Column = None,
    state: args.State = None,
    action: args.Action = None,
    sampling: args.Sampling = None,
    order: args.Order = None,
    steps: args.Steps = None,
) -> None:
    """Print the query that counts a log in a warehouse; plumdp count reads its result."""
    read, _ = ModelOptions(model, constant, space).load()
    query = plumdp.data.counts_query(
        read,
        table=table,
        dialect=dialect,
        form=form,
        columns=pairs("--column", column or []),
        states=state_maps(state or []),
        actions=action_map(action),
        sampling=sampling or "adaptive",
        order=order,
        steps=steps,
    )
    print(query)


def _pilot_text(counts: plumdp.TransitionCounts) -> str:
    if counts.pilot is None:
        return ""
    why = f" ({counts.pilot.rests_on})" if counts.pilot.rests_on else ""
    if not counts.pilot.lengths:
        return f", without bets, as there are too few data, or it is not clear which came first{why}"
    return f", with bets after the first {', '.join(f'{length:,.0f}' for length in counts.pilot.lengths)}{why}"
