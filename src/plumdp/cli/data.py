"""``plumdp simulate``, ``plumdp count`` and ``plumdp counts-sql``: write runs of a model, and count logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Dialect, Form, NoBets, Status
from plumdp.cli import arguments as args
from plumdp.cli.arguments import pairs
from plumdp.cli.mappings import action_map, state_maps
from plumdp.cli.options import LogOptions, ModelOptions, require_new
from plumdp.cli.progress import progress_bar
from plumdp.cli.results import EXIT_CODES, print_json
from plumdp.cli.sources import load_policy

if TYPE_CHECKING:
    from plumdp.model.policy import Policy

_NO_BETS: dict[NoBets, str] = {
    "order": ", without bets, as nobody said what came first (--order)",
    "unnamed runs": ", without bets, as rows do not name their runs (--column episode=COLUMN)",
    "shared names": ", without bets, as names of runs seem to stand for several of them",
    "few": ", without bets, as there are too few data for the first",
}

_Form = Annotated[Form, typer.Option("--form", help="Rows with the next state, or one row per state.")]
_Force = Annotated[bool, typer.Option("--force", help="Replace the file if it already exists.")]


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
    as_json: args.AsJson = False,
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
            facts, how = _manifest(counted, output), f"counted{_pilot_text(counted)}"
        else:
            n_steps = plumdp.data.write_runs(
                read, point, trajectories, output, rng=seed, max_steps=steps, policy=drawn, form=form, progress=show
            )
            facts, how = {"schema": "plumdp/runs/1", "output": str(output), "steps": n_steps}, f"as {form}"
    if as_json:
        print_json([{**facts, "runs": trajectories}], one=True)
    else:
        print(f"{output}: {facts['steps']:,} steps of {trajectories:,} runs, {how}")


def _require_output(path: Path, *, counts: bool, force: bool) -> None:
    """Refuse a file that cannot be written, is there already, or whose name says nothing of what it would be."""
    require_new(path, force=force)
    if counts and path.suffix != ".parquet":
        raise DataError(f"{path}: counts are kept as Parquet; name a file that ends in .parquet")
    if not counts:
        from plumdp.data.run_files import require_run_format

        require_run_format(path)


_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="A Parquet file for the counts. Without it, they are shown with all data they are of."
    ),
]


def count(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.Data, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    output: _Output = None, force: _Force = False, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Count the transitions of logs of any size, and report what became of every row.

    Files of counts are added, in the order in which their data were collected. Ends with 4 if there are no steps.
    """
    from plumdp.result.data_quality import contents

    if output is not None:
        _require_output(output, counts=True, force=force)
    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    read, _ = ModelOptions(model, constant, space).load()
    counted = log.read(read)
    if output is not None:
        plumdp.write_counts(counted, output)
    if as_json:
        print_json([_manifest(counted, output)], one=True)
    else:
        what = (
            f"{output}: {counted.total:,} steps, counted" if output else f"{counted.total:,} steps, {counted.sampling}"
        )
        made_of = [] if output else [f"  {each}" for each in contents(counted)]
        report = [] if counted.report is None else [str(counted.report)]
        print("\n".join([*report, f"{what}{_pilot_text(counted)}", *made_of]))
    if not counted.total:
        raise typer.Exit(EXIT_CODES[Status.VACUOUS])


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


def _manifest(counts: plumdp.TransitionCounts, output: Path | None) -> dict[str, Any]:
    """Return what counts are made of, ready for JSON."""
    from plumdp.result.data_quality import contents

    report, pilot = counts.report, counts.pilot
    return {
        "schema": "plumdp/counts/1",
        "output": None if output is None else str(output),
        "steps": counts.total,
        "transitions_seen": int((counts.counts > 0).sum()),
        "choices_tried": int((counts.visits > 0).sum()),
        "sampling": counts.sampling,
        "pilot": pilot and {"end": pilot.end, "lengths": pilot.lengths, "rests_on": pilot.rests_on},
        "data": [{"name": data} if isinstance(data, str) else data.to_dict() for data in contents(counts)],
        "report": report and {key: told for key, told in report.to_dict().items() if key != "files"},
    }


def _pilot_text(counts: plumdp.TransitionCounts) -> str:
    if not counts.total:
        return ""
    why = f" ({counts.pilot.rests_on})" if counts.pilot is not None and counts.pilot.rests_on else ""
    if counts.pilot is None or not counts.pilot.lengths:
        no_bets = None if counts.report is None else counts.report.no_bets
        return "" if no_bets is None else _NO_BETS[no_bets] + why
    return f", with bets after the first {', '.join(f'{length:,.0f}' for length in counts.pilot.lengths)}{why}"
