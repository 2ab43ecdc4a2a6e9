"""``plumdp online``: learning while acting in a simulated model, with what is certified after each update."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli.inputs import load_objective
from plumdp.cli.options import Options
from plumdp.cli.outputs import is_model_file, require_new, require_output, witness_of, write_policy_file
from plumdp.cli.results import EXIT_CODES, grid, prose, standard_output, with_command
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import number_of
from plumdp.online.loop import OnlineRecord
from plumdp.online.records import OnlineRun

if TYPE_CHECKING:
    from plumdp.model.objectives import Objective

NOT_REACHED = EXIT_CODES[Status.VACUOUS]


def online(given: Options) -> int:
    """Learn while acting at a point that the learner does not see; 4 if the bounds are not as close as asked."""
    require_output(given)
    if is_model_file(given.output):
        raise DataError(
            f"--output {given.output}: name a folder for the result, or a file for the policy, such as .csv"
        )
    if given.record is not None:
        require_new(given.record, force=given.force)
    read, objective = load_objective(given)
    updates = plumdp.learn_online(
        read,
        _environment(given, read),
        objective,
        episodes=given.runs or 10_000,
        confidence=given.confidence,
        checkpoint=given.checkpoint,
    )
    last: deque[OnlineRecord] = deque(maxlen=1)  # one is kept, as each holds all counts
    records = _until(updates, given.width or -inf, objective, last)
    run = OnlineRun.of(records, read, objective, confidence=given.confidence)
    if given.record is not None:
        run.save(given.record)
    if given.json:
        print(json.dumps(run.to_dict(), indent=2, ensure_ascii=False))
    else:
        _print(run, last[-1], given.width, [f"{file}" for file in (given.record, given.output) if file is not None])
    if given.output is not None and not write_policy_file(last[-1].policy, given.output):
        record = last[-1]
        found = plumdp.conclude(record.learned, objective, policy=record.policy, relaxation="rectangular")
        certificate = with_command(found)
        proof = witness_of(record.learned, certificate) if given.witness else ""
        certificate.save(given.output, witness=proof, force=given.force)
    code = EXIT_CODES[last[-1].status]
    return code or (NOT_REACHED if given.width is not None and run.gap > given.width else 0)


def _environment(given: Options, model: ParametricMDP) -> object:
    """Return the model at a point: that of the options, or the true one of a case study."""
    from plumdp.case_studies import is_case_study

    study = plumdp.case_study(given.model) if is_case_study(given.model) else None
    point = given.at or (dict(study.true_point) if study else {})
    missing = [parameter for parameter in model.space.names if parameter not in point]
    if missing:
        raise DataError(f"--at: no value for {', '.join(missing)}; say where the runs are made, --at {missing[0]}=0.3")
    steps = given.max_steps or (study.max_steps + 1 if study else None)
    if steps is None:
        raise DataError("say with --max-steps where a run is cut off")
    return plumdp.online.simulator(model, point, rng=given.seed, max_steps=steps)


def _until(
    records: Iterator[OnlineRecord],
    gap: float,
    objective: Objective,
    last: deque[OnlineRecord],
) -> Iterator[OnlineRecord]:
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


def _headline(run: OnlineRun, record: OnlineRecord) -> str:
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


def _print(run: OnlineRun, record: OnlineRecord, width: float | None, files: list[str]) -> None:
    from plumdp.result.certificate import outward

    reached = ""
    if width is not None:
        is_close = "reached" if run.gap <= width else "not reached; give more --runs"
        reached = f"{outward(run.gap, 1)}, asked {width:g}: {is_close}"
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
