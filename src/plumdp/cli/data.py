"""``plumdp start``, ``simulate`` and ``count``: look at a log, write runs of a model, and count logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plumdp
from plumdp.base.edge import write_whole
from plumdp.base.errors import DataError
from plumdp.base.json_values import json_value
from plumdp.base.vocabulary import EXIT_CODES, Dialect, Form, NoBets, Status
from plumdp.cli.errors import FILE, command_line
from plumdp.cli.inputs import begins_of, format_of, load_model, memory_of, n_first, read_data, read_on
from plumdp.cli.options import OF_FORMAT, Options
from plumdp.cli.outputs import require_new, require_output
from plumdp.cli.results import grid, print_json, standard_output
from plumdp.cli.sources import load_policy
from plumdp.cli.texts import TEXT
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import number_of

if TYPE_CHECKING:
    from plumdp.model.policy import Policy

_MOST_LENGTHS = 8  # at which bets are placed, that are printed
_NO_BETS: dict[NoBets, str] = {
    "order": ", without bets, as the order of the data is not known (--order)",
    "overlap": ", without bets, as runs overlap in time, and the order of their rows is not known (--order time)",
    "unnamed runs": ", without bets, as rows do not name their runs (--column episode=COLUMN)",
    "shared names": ", without bets, as names of runs seem to stand for several of them",
    "few": ", without bets, as there are too few data for the first",
}


def simulate(given: Options) -> None:
    """Write runs of a model at a point, or their counts."""
    from plumdp.case_studies import is_case_study

    counts, output, n_runs = given.form == "counts", given.output, given.runs or 1000
    assert output is not None
    _require_output(output, counts=counts, force=given.force)
    read, _ = load_model(given)
    study = plumdp.case_study(given.model) if is_case_study(given.model) else None
    point = given.at or (dict(study.true_point) if study else {})
    steps = given.max_steps or (study.max_steps + 1 if study else None)
    if steps is None:
        raise DataError("say with --max-steps where a run ends")
    drawn: Policy = "uniform" if given.policy is None else load_policy(given.policy, read)
    options: Any = {"rng": given.seed, "max_steps": steps, "policy": drawn}
    if counts:
        counted = plumdp.simulate(read, point, n_runs, **options)
        plumdp.write_counts(counted, output)
        facts, how = _manifest(counted, output), f"counted{_pilot_text(counted)}"
    else:
        form: Form = "trajectories" if given.form == "trajectories" else "transitions"
        n_steps = plumdp.data.write_runs(read, point, n_runs, output, form=form, **options)
        facts, how = {"schema": "plumdp/runs/1", "output": str(output), "steps": n_steps}, f"as {form}"
    if given.json:
        print_json([{**facts, "runs": n_runs}], one=True)
    else:
        print(f"{output}: {number_of(facts['steps'], 'step')} of {number_of(n_runs, 'run')}, {how}")


def _require_output(path: Path, *, counts: bool, force: bool) -> None:
    """Refuse a file that cannot be written, is there already, or whose name says nothing of what it would be."""
    require_new(path, force=force)
    if counts and path.suffix != ".parquet":
        raise DataError(f"{path}: counts are kept as Parquet; name a file that ends in .parquet")
    if not counts:
        from plumdp.data.trajectories import require_run_format

        require_run_format(path)


def count(given: Options) -> int:
    """Count the transitions of logs, or print the query that does so in a warehouse; 4 if there are no steps."""
    from plumdp.data.counts import contents

    output = given.output
    if output is not None:
        _require_output(output, counts=True, force=given.force)
    read, _ = load_model(given)
    if given.sql is not None:
        print(_query(given, read, given.sql))
        return 0
    carried = None if given.carry is None else read_on(given, read, given.carry)
    counted = read_data(given, read) if carried is None else carried.counts
    if output is not None:
        plumdp.write_counts(counted, output)
    if given.json:
        print_json([_manifest(counted, output) | ({} if carried is None else {"carry": carried.to_dict()})], one=True)
    else:
        steps = number_of(counted.total, "step")
        what = f"{output}: {steps}, counted" if output else f"{steps}, {counted.sampling}"
        made_of = [] if output else [f"  {each}" for each in contents(counted)]
        report = [] if counted.report is None else [str(counted.report)]
        kept = [] if carried is None else [f"{given.carry}: {carried}"]
        print("\n".join([*report, f"{what}{_pilot_text(counted)}", *made_of, *kept]))
    return 0 if counted.total else EXIT_CODES[Status.INCONCLUSIVE]


def _query(given: Options, model: ParametricMDP, dialect: Dialect) -> str:
    if len(given.data) > 1:
        raise DataError(f"--sql {dialect}: name one table, not {len(given.data)}")
    if memory_of(given) is not None:
        raise DataError(f"--sql {dialect}: the query does not make what states remember; leave out --remember")
    return plumdp.data.counts_query(
        model,
        replace(format_of(given), form="trajectories" if given.form == "trajectories" else "transitions"),
        table=given.data[0],
        dialect=dialect,
        sampling=given.sampling or "adaptive",
        order=given.order,
    )


def _manifest(counts: plumdp.TransitionCounts, output: Path | None) -> dict[str, Any]:
    """Return the parts of counts, ready for JSON."""
    from plumdp.data.counts import contents

    report, pilot = counts.report, counts.pilot
    return {
        "schema": "plumdp/counts/1",
        "output": None if output is None else str(output),
        "steps": counts.total,
        "transitions_seen": int((counts.counts > 0).sum()),
        "choices_tried": int((counts.visits > 0).sum()),
        "sampling": counts.sampling,
        "pilot": pilot and {"end": pilot.end, "lengths": pilot.lengths, "rests_on": pilot.rests_on},
        "data": [{"name": data} if isinstance(data, str) else json_value(data) for data in contents(counts)],
        "report": report and {key: told for key, told in report.to_dict().items() if key != "files"},
    }


def _pilot_text(counts: plumdp.TransitionCounts) -> str:
    if not counts.total:
        return ""
    why = f" ({counts.pilot.rests_on})" if counts.pilot is not None and counts.pilot.rests_on else ""
    if counts.pilot is None or not counts.pilot.lengths:
        no_bets = None if counts.report is None else counts.report.no_bets
        return "" if no_bets is None else _NO_BETS[no_bets] + why
    lengths = [f"{length:,.0f}" for length in counts.pilot.lengths]
    shown = lengths if len(lengths) <= _MOST_LENGTHS else [*lengths[: _MOST_LENGTHS - 2], "…", lengths[-1]]
    return f", with bets after the first {', '.join(shown)}{why}"


def start(given: Options) -> int:
    """Print and write what the columns of a log seem to be, and certify if a question was given."""
    target = Path(FILE)
    require_new(target, force=given.force)
    require_output(given)
    said: dict[str, Any] = {name: getattr(given, name) for name in ("reward", "cost", "goal", "order", "remember")}
    said |= {"end": given.table.get("end", ""), "initial": begins_of(given.table)}
    said["first"] = n_first(given) or None
    text: Any = given.text
    found = plumdp.start(plumdp.data.raw_log(given.model, **text), format_of(given), **said)
    graph, n_more = found.model.graph, 0 if found.closed else 3  # states that stand for all others
    rows = number_of(graph.n_choices - n_more, "row")
    size = f"{number_of(graph.n_states - n_more, 'state')}, {rows} of state and action"
    standard_output().print(grid([*found.facts, ("table", size)]))
    write_whole(target, found.to_toml(command_line()))
    print(f"Written to {target}: correct there what is wrong.")
    if not found.objective:
        print(f"Then, for example:\n  {found.next_command(given.model)}")
        return 0
    from plumdp.cli.certify import certify  # only now, as it takes as long as all before it
    from plumdp.cli.report import write_reports

    text = found.raw.text
    code = certify(
        replace(
            given,
            property=[found.objective],
            **{option: getattr(found.format, name) for name, option in OF_FORMAT.items()},
            table=found.table,
            remember=found.remember or "",
            text={name: getattr(text, name) for name in TEXT if getattr(text, name)},
            keep_going=True,
            sampling=found.sampling,
            run_cap=found.run_cap or None,
        )
    )
    if given.output is not None and code in (0, 1, 4):
        write_reports(given, [given.output], [given.output / "report.html"])
    return code
