"""Looks again at what the checker trusts: the chain, by a model that is read anew, and the directions of bets.

Unlike the checker, this uses plumdp: the model's reader (with numbers in place of parameters, so that Storm evaluates
the probabilities of a PRISM file), and the solver, which has seen nothing but what came before each stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.confidence.laws import law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.staged_bets import find_stages, steps_of_stage
from plumdp.learning.directions import value_directions
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import policy_weights
from plumdp.model.question import Question, ask
from plumdp.result.data_file import read_data
from plumdp.result.folder import CERTIFICATE, DATA, POLICY, RIVAL, WITNESS
from plumdp.result.policy_table import PolicyTable, read_policy
from plumdp.verifying.chain_part import Ends, choices_in, shares_in
from plumdp.verifying.checker.polynomials import parse
from plumdp.verifying.checker.reading import Rejected, require

_POINTS = 3  # at which probabilities are compared
_CLOSE = 1e-6  # of directions, which a solver finds in floats

Row: TypeAlias = frozenset[tuple[int, Fraction]]
ModelAt = Callable[[Mapping[str, Fraction]], ParametricMDP]
"""A function from values of the parameters to a model, in which they may stay parameters."""


def check_chain(folder: Path, model_at: ModelAt, rng: np.random.Generator) -> None:
    """Require that the chain is that of the model under the policy, state by state, at random rational points."""
    witness = json.loads((folder / WITNESS).read_text(encoding="utf-8"))
    options = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))["options"]
    names, parts = witness["parameters"], {POLICY: [witness]}
    if "comparison" in witness:
        parts[RIVAL] = [witness["comparison"]]
        require((folder / RIVAL).exists(), f"there is no {RIVAL}, the policy that the other one is compared with")
    if "all_policies" in witness:
        parts[POLICY].append(witness["all_policies"])
    for _ in range(_POINTS):
        point = {name: Fraction(int(rng.integers(1, 1000)), 1009) for name in names}
        model = model_at(point)
        question = ask(witness["claim"]["objective"], model, memory=options["memory"])
        for file, of_file in parts.items():
            policy = read_policy(question.model.graph, folder / file)
            for part in of_file:
                _compare(part["chain"], part.get("others"), point, names, question, policy)


def _value(polynomial: Mapping[tuple[int, ...], Any], point: Mapping[str, Fraction], names: list[str]) -> Fraction:
    total = Fraction(0)
    for exponents, coefficient in polynomial.items():
        term = Fraction(int(coefficient.p), int(coefficient.q))
        for name, power in zip(names, exponents, strict=True):
            term *= point[name] ** power
        total += term
    return total


def _reward(given: float | str, point: Mapping[str, Fraction], names: list[str]) -> Fraction:
    return _value(parse(given, names), point, names) if isinstance(given, str) else Fraction(given)


def _compare(
    chain: dict[str, Any],
    others: list[list[Any]] | None,
    point: Mapping[str, Fraction],
    names: list[str],
    question: Question,
    policy: PolicyTable,
) -> None:
    """Require that each state of a chain is one of the model, with the row and the reward that it has there.

    With ``others``, all rows that there are in the state must be those of the model.
    """
    model, graph, flipped = question.model, question.model.graph, question.objective.flipped()
    objective: Objective = question.objective if flipped is None else flipped
    ends, terms, weights = Ends(objective, model), objective.terms(graph), policy_weights(graph, policy)
    known = model.expressions.evaluate_exact(model.space, {name: point[name] for name in model.space.names})
    values = [_value(parse(text, names), point, names) for text in chain["expressions"]]
    number = {state: i for i, state in enumerate(zip(*(v.tolist() for v in graph.states.values()), strict=True))}
    states = [number.get(state, -1) for state in zip(*(chain["states"][name] for name in graph.states), strict=True)]
    require(min(states, default=0) >= 0, "the chain has a state that the model does not have")
    require((chain["step"] is not None) == ends.counts, "steps are counted in one of chain and model only")
    steps = chain["step"] if ends.counts else [0] * len(states)
    start = states[chain["initial"]], steps[chain["initial"]]
    require(start == (graph.initial_state, 0), "the initial state is another one in the model")
    rows = [[row] for row in chain["rows"]]
    for node, row in others or ():
        rows[node].append(row)
    for node, state in enumerate(states):
        where = f"state {node} of the chain, {graph.describe_state(state)}"
        is_over, after = ends.is_over(state, steps[node]), steps[node] + 1 if ends.counts else 0
        require((rows[node][0] is None) == is_over, f"{where}: the run is over in one of chain and model only")
        if is_over:
            is_target = ends.is_target(state, steps[node])
            require((node in chain["target"]) == is_target, f"{where}: it is a target in one of chain and model only")
            continue
        mine: set[tuple[Row, Fraction]] = set()
        for reward, successors, expressions in rows[node]:
            require(all(steps[s] == after for s in successors), f"{where}: a step leads to another number of steps")
            shares = ((states[s], values[f]) for s, f in zip(successors, expressions, strict=True))
            mine.add((_row(shares), _reward(reward, point, names)))
        theirs: set[tuple[Row, Fraction]] = set()
        for taken in [list(shares_in(model, weights, state))] if others is None else choices_in(model, state):
            ways = [
                (int(graph.successor[t]), share * known[int(model.expression[t])])
                for choice, share in taken
                for t in range(*graph.first_transition[choice : choice + 2].tolist())
            ]
            paid = (share * Fraction(float(terms.reward[choice])) for choice, share in taken)
            theirs.add((_row(ways), sum(paid, start=Fraction(0))))
        require({row for row, _ in mine} == {row for row, _ in theirs}, f"{where}: the model has another row")
        require(mine == theirs, f"{where}: the model has another reward")


def _row(ways: Iterable[tuple[int, Fraction]]) -> Row:
    """Return the probabilities of successors that are not zero."""
    row: dict[int, Fraction] = {}
    for successor, share in ways:
        row[successor] = row.get(successor, Fraction(0)) + share
    return frozenset((successor, share) for successor, share in row.items() if share)


def can_check_directions(folder: Path) -> bool:
    """Return whether a folder has the data of its bets, and texts of all that was announced, as policies have none."""
    options = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))["options"]
    return (folder / DATA).exists() and all(options["objectives"])


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
        asked = zip(options["objectives"], options["with_memory"], strict=True)
        questions = [ask(text, model, memory=memory) for text, memory in asked]
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
