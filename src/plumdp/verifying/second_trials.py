"""Looks again, in all of the model, whether a run can try an event twice whose interval rests on that it cannot."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from flint import fmpq

from plumdp.model.parametric import ParametricMDP
from plumdp.result.data_file import read_data
from plumdp.result.folder import DATA, WITNESS
from plumdp.verifying.checker import counts
from plumdp.verifying.checker.chain import Chain, Step
from plumdp.verifying.checker.intervals import check_once
from plumdp.verifying.checker.polynomials import parse
from plumdp.verifying.checker.reading import Part, read_json


def can_check_trials(folder: Path) -> bool:
    """Return whether a folder has the data, and some interval is that of an event which runs try at most once."""
    drawn = json.loads((folder / WITNESS).read_text(encoding="utf-8")).get("set") or {}
    intervals = drawn.get("intervals")
    return (folder / DATA).exists() and intervals is not None and any(item["once"] for item in intervals["list"])


def check_trials(folder: Path) -> None:
    """Require that no run of the model, whatever its policy, tries an event twice that is said to be tried once."""
    witness = read_json((folder / WITNESS).read_bytes(), WITNESS)
    model, _ = read_data(folder / DATA)
    check_once(Part(witness["set"]["intervals"].value, "the model"), counts.read_data(witness), _all_runs(model))


def _all_runs(model: ParametricMDP) -> Chain:
    """Return a chain with the paths of all policies: from each state to its choices, and from these to successors."""
    graph, names = model.graph, list(model.space.names)
    expressions = [parse(str(f), names) for f in model.expressions.polynomials]
    successor, expression = graph.successor.tolist(), model.expression.tolist()
    steps: list[Step | None] = [
        Step({}, list(range(graph.n_states + first, graph.n_states + last)), [])
        for first, last in pairwise(graph.first_choice.tolist())
    ]
    steps += [
        Step({}, successor[first:last], expression[first:last])
        for first, last in pairwise(graph.first_transition.tolist())
    ]
    return Chain("total", False, fmpq(1), graph.initial_state, expressions, steps, {})
