"""``plumdp online``: learning while acting in a simulated model, with what is certified after each update."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli import arguments as args
from plumdp.cli.arguments import pairs
from plumdp.cli.options import ModelOptions, load_with_one_property, require_confidence, require_new, witness_of
from plumdp.cli.results import EXIT_CODES, grid, prose, standard_output, with_command
from plumdp.model.text import number_of

if TYPE_CHECKING:
    from plumdp.model.objective import Objective

Interval = Literal["interval", "parameter", "expression", "rectangular"]
NOT_REACHED = EXIT_CODES[Status.VACUOUS]


def online(
    *,
    model: args.Model,
    constant: args.Constant = None,
    space: args.Space = None,
    property: args.Property = None,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="NAME=VALUE", help="The true parameters; a case study knows its own."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", "-n", help="The most runs that are made.")] = 10_000,
    until_gap: Annotated[
        float | None,
        typer.Option(
            "--until-gap", metavar="WIDTH", help="Stop once the bounds are this close; the claim stays valid."
        ),
    ] = None,
    max_steps: Annotated[int | None, typer.Option("--max-steps", help="Where a run is cut off.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same runs.")] = 0,
    growth: Annotated[
        float, typer.Option("--growth", help="Update when some action was taken this many times as often.")
    ] = 2.0,
    spacing: Annotated[
        float, typer.Option("--spacing", help="Update after at least this many times as many runs.")
    ] = 1.05,
    exploration: Annotated[float, typer.Option("--exploration", help="The share of random actions.")] = 0.0,
    relaxation: Annotated[Interval, typer.Option("--relaxation", "-r", help="What nature may do.")] = "rectangular",
    confidence: args.Confidence = 0.999,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A JSON file for the records; plumdp plot online draws it.")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", help="A file for the policy at the end: .csv, .json, .txt, .py or .rules."),
    ] = None,
    result: Annotated[
        Path | None,
        typer.Option("--result", help="A folder for a certificate of the policy at the end, which read_result opens."),
    ] = None,
    witness: args.Witness = False,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="A file to go on from after an interruption.")
    ] = None,
    force: args.ReplaceFiles = False,
    as_json: args.AsJson = False,
) -> None:
    """Learn while acting: run a model at a point, and certify a policy after each update.

    The learner sees the runs, never the point. Ends with 0 if certified, 3 if the runs contradict the model, 4 if
    nothing is certified, or the bounds are not as close as --until-gap asks for.
    """
    for option, value, is_right, range_of in (
        ("--growth", growth, growth > 1, "above 1"),
        ("--spacing", spacing, spacing >= 1, "from 1 on"),
        ("--exploration", exploration, 0 <= exploration <= 1, "from 0 to 1"),
        ("--runs", runs, runs >= 1, "from 1 on"),
        ("--until-gap", until_gap, until_gap is None or until_gap > 0, "above 0"),
    ):
        if not is_right:
            raise DataError(f"{option} {value:g}: give a number {range_of}")
    require_confidence(confidence)
    _require_files(output, policy, result, force=force, witness=witness)
    read, objective = load_with_one_property(ModelOptions(model, constant, space), property)
    environment = _environment(model, read, at or [], max_steps, seed)
    updates = plumdp.learn_online(
        read,
        environment,
        objective,
        episodes=runs,
        confidence=confidence,
        relaxation=relaxation,
        growth=growth,
        spacing=spacing,
        exploration=exploration,
        checkpoint=checkpoint,
    )
    last: deque[plumdp.online.OnlineRecord] = deque(maxlen=1)  # one is kept, as each holds all counts
    records = _until(updates, until_gap or -inf, objective, last)
    run = plumdp.online.OnlineRun.of(records, read, objective, confidence=confidence)
    if output is not None:
        run.save(output)
    if policy is not None:
        plumdp.exchange.write_policy(last[-1].policy, policy)
    if as_json:
        print(json.dumps(run.to_dict(), indent=2, ensure_ascii=False))
    else:
        _print(run, last[-1], until_gap, [f"{file}" for file in (output, policy, result) if file is not None])
    if result is not None:
        record = last[-1]
        certificate = plumdp.conclude(record.learned, objective, policy=record.policy, relaxation=relaxation)
        certificate = with_command(certificate)
        proof = witness_of(record.learned, certificate) if witness else ""
        certificate.save(result, witness=proof, force=force)
    code = EXIT_CODES[last[-1].status]
    raise typer.Exit(code or (NOT_REACHED if until_gap is not None and run.gap > until_gap else 0))


def _require_files(
    output: Path | None, policy: Path | None, result: Path | None, *, force: bool, witness: bool
) -> None:
    """Refuse files and folders that cannot be written."""
    from plumdp.exchange.policy_files import policy_writer
    from plumdp.result.folder import require_folder

    if result is not None:
        require_folder(result, force=force)
    elif witness:
        raise DataError("--witness: name with --result the folder that the witness is written to")
    for file in (output, policy):
        if file is not None:
            require_new(file, force=force)
    if policy is not None:
        policy_writer(policy)


def _environment(
    name: str, model: plumdp.model.ParametricMDP, at: list[str], max_steps: int | None, seed: int
) -> object:
    """Return the model at a point: that of the options, or the true one of a case study."""
    from plumdp.case_studies import is_case_study

    study = plumdp.case_study(name) if is_case_study(name) else None
    point = pairs("--at", at) or (dict(study.true_point) if study else {})
    missing = [parameter for parameter in model.space.names if parameter not in point]
    if missing:
        raise DataError(f"--at: no value for {', '.join(missing)}; say where the runs are made, --at {missing[0]}=0.3")
    steps = max_steps or (study.max_steps + 1 if study else None)
    if steps is None:
        raise DataError("say with --max-steps where a run is cut off")
    return plumdp.online.simulator(model, point, rng=seed, max_steps=steps)


def _until(
    records: Iterator[plumdp.online.OnlineRecord],
    gap: float,
    objective: Objective,
    last: deque[plumdp.online.OnlineRecord],
) -> Iterator[plumdp.online.OnlineRecord]:
    """Yield records until the bounds are close enough, and show each in a line of a terminal's standard error.

    After Ctrl-C there are no more records: those so far hold, as they would have done with any other end.
    """
    from plumdp.online.records import gap_of

    is_shown, n_records = sys.stderr.isatty(), 0
    try:
        for record in records:
            n_records += 1
            last.append(record)
            if is_shown:
                low, high = _bounds(record.bound, record.optimistic_bound, objective.direction)
                print(f"runs {record.episodes:>9,}  {low} to {high}", file=sys.stderr)
            yield record
            if gap_of(record) <= gap:
                return
    except KeyboardInterrupt:
        if not n_records:
            raise
        print("stopped by hand; what is certified so far holds", file=sys.stderr)


def _bounds(bound: float, optimistic: float, direction: str) -> tuple[str, str]:
    """Return the certified bound and what no policy exceeds, from below to above, rounded outward."""
    from plumdp.result.certificate import outward

    low, high = (bound, optimistic) if direction == "max" else (optimistic, bound)
    return outward(low, -1), outward(high, 1)


def _headline(run: plumdp.online.OnlineRun, record: plumdp.online.OnlineRecord) -> str:
    from plumdp.result.certificate import percent

    low, high = _bounds(record.bound, record.optimistic_bound, run.direction)
    share = percent(run.confidence)
    if record.status == Status.CONTRADICTED:
        return f"MODEL CONTRADICTED: no parameters explain the runs (confidence {share})."
    is_max = run.direction == "max"
    of_all = f"no policy is worth more than {high}" if is_max else f"no policy is worth less than {low}"
    if record.status == Status.VACUOUS:
        worst = f"the bound does not exclude the worst value, {low if is_max else high}"
        return f"Nothing is certified yet: {worst}; {of_all} (confidence {share})."
    reached = f"at least {low}" if is_max else f"at most {high}"
    return f"With confidence {share}: the policy is worth {reached}, and {of_all}."


def _print(
    run: plumdp.online.OnlineRun, record: plumdp.online.OnlineRecord, until_gap: float | None, files: list[str]
) -> None:
    from plumdp.result.certificate import outward

    reached = ""
    if until_gap is not None:
        is_close = "reached" if run.gap <= until_gap else "not reached; give more --runs"
        reached = f"{outward(run.gap, 1)}, asked {until_gap:g}: {is_close}"
    sizes = ((record.episodes, "run"), (record.steps, "step"), (len(run.records), "update"))
    rows = [
        ("property", run.objective),
        ("runs", ", ".join(number_of(n, thing) for n, thing in sizes)),
        ("gap", reached),
        ("true value", "" if record.true_value is None else f"{record.true_value:.6g}, known as runs are simulated"),
        ("valid", "at all updates at once: stop when you like"),
        ("seconds", f"{record.seconds:.2f} of learning"),
        *(("assuming", each) for each in run.assumptions),
        ("written", ", ".join(files)),
    ]
    console = standard_output()
    style = {Status.CERTIFIED: "bold", Status.CONTRADICTED: "bold red"}.get(record.status, "yellow")
    console.print(prose(_headline(run, record), style=style))
    console.print(grid([row for row in rows if row[1]]))
