"""``plumdp start``: looks at the rows of a log, writes how they are read, and perhaps goes on to a certificate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import plumdp
from plumdp.base.errors import DataError
from plumdp.cli.inputs import n_first
from plumdp.cli.invocation import FILE, command_line
from plumdp.cli.options import Options
from plumdp.cli.outputs import require_new, require_output
from plumdp.cli.results import grid, standard_output
from plumdp.cli.texts import TEXT
from plumdp.model.text import number_of


def start(given: Options) -> int:
    """Print and write what the columns of a log seem to be, and certify if a question was given."""
    target = Path(FILE)
    require_new(target, force=given.force)
    require_output(given)
    if isinstance(given.action, dict | list):
        raise DataError("--action: name a column, or give an expression")
    said: dict[str, Any] = {name: getattr(given, name) for name in ("reward", "cost", "goal", "order")}
    said |= {"end": given.table.get("end", ""), "first": n_first(given) or None, **given.text}
    said |= {name: given.column.get(name, "") for name in ("run", "step")}
    found = plumdp.start(given.model, states=given.state, action=given.action or "", **said)
    graph, n_more = found.model.graph, 0 if found.closed else 3  # states that stand for all others
    rows = number_of(graph.n_choices - n_more, "row")
    size = f"{number_of(graph.n_states - n_more, 'state')}, {rows} of state and action"
    standard_output().print(grid([*found.facts, ("table", size)]))
    target.write_text(found.to_toml(command_line()), encoding="utf-8")
    print(f"wrote {target}; correct there what is wrong")
    if not found.objective:
        print(f"next: {found.next_command(given.model)}")
        return 0
    from plumdp.cli.certify import certify  # only now, as it takes as long as all before it
    from plumdp.cli.report import write_reports

    text = found.raw.text
    code = certify(
        replace(
            given,
            property=[found.objective],
            column=found.columns,
            state=dict(found.states),
            action=found.actions,
            table=found.table,
            text={name: getattr(text, name) for name in TEXT if getattr(text, name)},
            keep_going=True,
            steps=found.steps,
            cut_off=found.cut_off,
        )
    )
    if given.output is not None and code in (0, 1, 4):
        write_reports(given, [given.output], [given.output / "report.html"])
    return code
