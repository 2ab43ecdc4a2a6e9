"""Looks again at what the checker trusts: the chain, by a model that is read anew, and the directions of bets.

Unlike the checker, this uses plumdp: the model's reader (with numbers in place of parameters, so that Storm evaluates
the probabilities of a PRISM file), and the solver, which has seen nothing but what came before each stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.confidence.laws import law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.staged_bets import find_stages, steps_of_stage
from plumdp.learning.directions import value_directions
from plumdp.model.objective import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import ask
from plumdp.result.data_file import read_data
from plumdp.result.folder import CERTIFICATE, DATA, POLICY, WITNESS
from plumdp.result.policy_table import read_policy
from plumdp.verifying.checker.polynomials import parse
from plumdp.verifying.checker.reading import Rejected, require

_POINTS = 3  # at which probabilities are compared
_CLOSE = 1e-6  # of directions, which a solver finds in floats

ModelAt = Callable[[Mapping[str, Fraction]], ParametricMDP]
"""A function from values of the parameters to a model, in which they may stay parameters."""


def check_chain(folder: Path, model_at: ModelAt, rng: np.random.Generator) -> None:
    """Require that the chain is that of the model under the policy, state by state, at random rational points."""
    witness = json.loads((folder / WITNESS).read_text(encoding="utf-8"))
    names, chain = witness["parameters"], witness["chain"]
    polynomials = [parse(text, names) for text in chain["expressions"]]
    for _ in range(_POINTS):
        point = {name: Fraction(int(rng.integers(1, 1000)), 1009) for name in names}
        model = model_at(point)
        values = [Fraction(int(v.p), int(v.q)) for v in (_value(f, point, names) for f in polynomials)]
        known = model.expressions.evaluate_exact(model.space, {n: point[n] for n in model.space.names})
        _compare(chain, values, model, known, folder, witness["claim"]["objective"])


def _value(polynomial: Mapping[tuple[int, ...], Any], point: Mapping[str, Fraction], names: list[str]) -> Any:
    from flint import fmpq

    total = fmpq(0)
    for exponents, coefficient in polynomial.items():
        for name, power in zip(names, exponents, strict=True):
            coefficient = coefficient * fmpq(point[name].numerator, point[name].denominator) ** power
        total += coefficient
    return total


def _compare(
    chain: dict[str, Any],
    values: list[Fraction],
    model: ParametricMDP,
    known: list[Fraction],
    folder: Path,
    property: str,
) -> None:
    graph, policy = model.graph, read_policy(model, folder / POLICY)
    objective: Objective = ask(property, model, memory=False).objective
    terms = (objective.flipped() or objective).terms(graph)
    columns = [chain["states"][name] for name in graph.states]
    number = {state: i for i, state in enumerate(zip(*(v.tolist() for v in graph.states.values()), strict=True))}
    states = [number.get(state, -1) for state in zip(*columns, strict=True)]
    require(min(states, default=0) >= 0, "the chain has a state that the model does not have")
    require(states[chain["initial"]] == graph.initial_state, "the initial state is another one in the model")
    for node, (row, state) in enumerate(zip(chain["rows"], states, strict=True)):
        where = f"state {node} of the chain, {graph.describe_state(state)}"
        require((row is None) == bool(terms.is_end[state]), f"{where}: the run is over in one of chain and model only")
        if row is None:
            is_target = terms.value[state] > 0 or objective.kind != Kind.END
            require(
                (node in chain["target"]) == bool(is_target), f"{where}: it is a target in one of chain and model only"
            )
            continue
        choice = int(policy.choice[state])
        mine: dict[int, Fraction] = {}
        for successor, f in zip(row[1], row[2], strict=True):
            mine[states[successor]] = mine.get(states[successor], Fraction(0)) + values[f]
        theirs: dict[int, Fraction] = {}
        for t in range(int(graph.first_transition[choice]), int(graph.first_transition[choice + 1])):
            successor = int(graph.successor[t])
            theirs[successor] = theirs.get(successor, Fraction(0)) + known[int(model.expression[t])]
        require(_without_zeros(mine) == _without_zeros(theirs), f"{where}: the model has another row")
        require(row[0] == terms.reward[choice], f"{where}: the model has another reward")


def _without_zeros(row: dict[int, Fraction]) -> dict[int, Fraction]:
    return {state: share for state, share in row.items() if share}


def check_directions(folder: Path) -> None:
    """Require that bets are along gradients that a solver finds which has seen nothing of later data."""
    witness = json.loads((folder / WITNESS).read_text(encoding="utf-8"))
    options = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))["options"]
    bets = witness["set"]["bets"]
    if bets is None:
        return
    model, counts = read_data(folder / DATA)
    require(counts.pilot is not None, "the data of the result have no pilot")
    assert counts.pilot is not None
    table, space = likelihood_table(model), law_of_space(model)
    first = 6 * counts.pilot.lengths[0] if counts.pilot.expected is None else counts.pilot.expected
    for s, stage in enumerate(find_stages(table, counts, space)):
        questions = [ask(text, model) for text in options["objectives"]]
        found = value_directions(questions, {})(stage.point)  # a new solver for each stage
        gradients = np.array([direction.gradient for direction in found])
        for side in bets["list"]:
            lengths = np.array([first * 2.0**i for i in side["horizons"]])
            steps = steps_of_stage(table, stage, gradients, lengths, space)
            for step, given in zip(steps, side["steps"][s], strict=True):
                _require_parallel(step[side["direction"]], np.array(given), f"the bets of stage {s}")


def _require_parallel(one: Any, other: Any, what: str) -> None:
    sizes = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    cosine = abs(float(one @ other)) / max(sizes[0] * sizes[1], UNDERFLOW)
    is_parallel = cosine > 1 - _CLOSE if min(sizes) > 0 else max(sizes) == 0
    if not is_parallel:
        raise Rejected(f"{what} are along another direction than the data before it lead to")
