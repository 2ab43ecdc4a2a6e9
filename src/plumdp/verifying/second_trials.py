"""Looks again, in all of the model, whether a run can try an event twice whose interval rests on that it cannot."""

from __future__ import annotations

from itertools import pairwise

from flint import fmpq

from plumdp.model.parametric import ParametricMDP
from plumdp.result.folder import WITNESS
from plumdp.verifying.look import Look
from plumdp_verify import counts
from plumdp_verify.chain import Chain, Step
from plumdp_verify.intervals import check_once
from plumdp_verify.polynomials import parse
from plumdp_verify.reading import Part


def has_trials(look: Look) -> bool:
    """Return whether some interval is that of an event which runs try at most once."""
    intervals = (look.witness.get("set") or {}).get("intervals")
    return intervals is not None and any(item["once"] for item in intervals["list"])


def check_trials(look: Look) -> None:
    """Require that no run of the model, whatever its policy, tries an event twice that is said to be tried once."""
    witness = Part(look.witness, WITNESS)
    check_once(Part(witness["set"]["intervals"].value, "the model"), counts.read_data(witness), _all_runs(look.model))


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
