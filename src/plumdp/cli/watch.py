"""``plumdp watch``: alarms when a process or units of a fleet change, part by part, and certificates about now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plumdp
from plumdp.base.edge import write_whole
from plumdp.base.errors import DataError
from plumdp.cli.errors import is_shared
from plumdp.cli.inputs import format_of, load_model, load_objective, log_of, map_of
from plumdp.cli.options import Options
from plumdp.cli.results import grid, prose, standard_output
from plumdp.result.show import Page, shown

if TYPE_CHECKING:
    from plumdp.data.raw_logs import RawLog
    from plumdp.model.parametric import ParametricMDP
    from plumdp.result.certificate import Certificate
    from plumdp.watching.watch import Watch

CODES = {"quiet": 0, "alarm": 1, "failed": 2, "rejected": 3, "gap": 4}


def watch(given: Options) -> int:
    """Print whether the process has changed, and what holds now; 1 after an alarm, 4 if a part is missing."""
    from plumdp.watching.fleets import is_fleet

    if is_fleet(given.data):
        return _fleet(given)
    model, properties = load_model(given)
    certificate = _watched(given, model)
    question = load_objective(given)[1] if given.property or (certificate is None and len(properties) == 1) else None
    found = plumdp.watch(
        model,
        _parts(given, given.data),
        question if certificate is None else certificate,
        acknowledge=given.acknowledge,
        confidence=given.confidence,
        **_how_watched(given),
    )
    now = None if (question is None and certificate is None) or not found.state.stream.parts else _now(given, found)
    if given.output is not None:
        _write(given, given.output, found, now)
    if given.json:
        about = (
            {}
            if now is None
            else {"now": {"since": now.rests_on.assumptions[0], "lower": now.lower, "upper": now.upper}}
        )
        print(json.dumps(found.to_dict() | about, ensure_ascii=False, separators=(",", ":")))
    else:
        _print(found, now, in_full=given.verbose > 0)
    return CODES[found.status]


def _parts(given: Options, source: Sequence[str]) -> dict[str, RawLog]:
    """Return files by their names, each as a log."""
    from plumdp.data.duckdb_tables import find_files
    from plumdp.watching.stream import named_files

    return {name: log_of(given, [file]) for name, file in named_files(find_files(source)).items()}


def _write(given: Options, file: Path, found: Watch, now: Certificate | None) -> None:
    """Write the report on the certificate that is watched, or else metrics."""
    from plumdp.reporting.read import explain_result

    if file.suffix != ".html":
        write_whole(file, metrics(found, now))
        return
    if given.against is None:
        raise DataError(f"--output {file}: the report is on a certificate; say which, as in --against result")
    plumdp.write_report(*explain_result(given.against), file, watch=found)


def _how_watched(given: Options) -> dict[str, Any]:
    """Return how one unit or many are watched, in the words of ``watch`` and ``watch_many``.

    What a file of defaults says for all commands of runs that were censored is not about parts that are missing.
    """
    from plumdp.watching.watch import AlarmRules

    rules = AlarmRules(
        quiet=given.quiet,
        reference={name: float(value) for name, value in given.at.items()} or None,
        gaps=None if is_shared("censoring") or given.censoring is None else "unrelated",
        return_range=given.range,
    )
    how = {"on_unmatched": "report" if given.keep_going else "error"}
    return how | {"rules": rules, "state": given.checkpoint, "format": format_of(given)}


def _fleet(given: Options) -> int:
    """Print which units of a fleet have changed; 1 if there are any, 4 if a unit stopped, as a part is missing."""
    from plumdp.watching.fleets import watch_many

    alone = {
        "--property": given.property,
        "--acknowledge": given.acknowledge,
        "--since": given.since,
        "--output": given.output,
    }
    useless = [name for name, value in alone.items() if value]
    if useless:
        raise DataError(f"{', '.join(useless)}: {given.data[0]} has a folder for each unit; watch one by itself")
    model, _ = load_model(given)
    units: dict[str, Any] = {each.name: str(each) for each in Path(given.data[0]).iterdir() if each.is_dir()}
    for name, folder in units.items():
        with suppress(DataError):  # of one unit, which stops no other
            units[name] = _parts(given, [folder])
    seen = {name: parts for name, parts in units.items() if name[0] != "."}
    with map_of(len(seen)) as mapped:
        found = watch_many(model, seen, _watched(given, model), map=mapped, **_how_watched(given))
    if given.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False, separators=(",", ":")))
    else:
        console, page = standard_output(), found.page()
        console.print(prose(page.headline, style="bold red" if found.named else "bold"))
        console.print(grid(shown(page, in_full=given.verbose > 0)))
    return CODES[found.status]


def _watched(given: Options, model: ParametricMDP) -> Certificate | None:
    """Return the certificate whose value is watched, if a result is given."""
    return None if given.against is None else plumdp.read_result(given.against, model)


def _now(given: Options, found: Watch) -> Certificate:
    word, _, number = given.since.partition(" ")
    if word == "last" and number.isdecimal() and int(number):
        return found.window(int(number))
    return found.since(given.since) if given.since else found.now


def _print(found: Watch, now: Certificate | None, *, in_full: bool) -> None:
    console, page = standard_output(), found.page()
    style = {"alarm": "bold red", "rejected": "bold red", "gap": "yellow"}.get(found.status, "bold")
    console.print(prose(page.headline, style=style))
    console.print(grid(shown(Page("", facts=found.facts_with(now)), in_full=in_full)))


def metrics(found: Watch, now: Certificate | None) -> str:
    """Return what a watch says in the text format of OpenMetrics."""
    is_open = {alarm.kind for alarm in found.state.open_alarms}
    sums, limits = ({f'alarm="{kind}"': pair[i] for kind, pair in found.evidence.items()} for i in (0, 1))
    families: dict[str, tuple[str, str, dict[str, float]]] = {
        "evidence": ("gauge", "Evidence of a change, or against the value; an alarm is given at the threshold.", sums),
        "threshold": ("gauge", "Evidence at which an alarm is given.", limits),
        "alarm": ("gauge", "Whether there is an alarm that nobody has acknowledged.",
                  {f'alarm="{kind}"': float(kind in is_open) for kind in found.evidence}),
        "stopped": ("gauge", "Whether the watch stopped, as a part is missing.", {"": float(bool(found.gap))}),
        "parts": ("counter", "Parts that were watched.", {"": float(found.n_parts)}),
    }  # fmt: skip
    if now is not None and now.claim.claims_bounds:
        bounds = {f'end="{name}"': end for name, end in (("lower", now.lower), ("upper", now.upper)) if isfinite(end)}
        families["value"] = ("gauge", "Certified bounds on the value, if nothing has changed since a part.", bounds)
    lines = []
    for name, (kind, words, values) in families.items():
        lines += [f"# TYPE plumdp_watch_{name} {kind}", f"# HELP plumdp_watch_{name} {words}"]
        suffix = "_total" if kind == "counter" else ""
        for labels, value in values.items():
            shown = f"{value:.10g}" if isfinite(value) else "+Inf"
            lines.append(f"plumdp_watch_{name}{suffix}{f'{{{labels}}}' if labels else ''} {shown}")
    return "\n".join([*lines, "# EOF", ""])
