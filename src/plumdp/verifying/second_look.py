"""Looks again at what the checker trusts: the chain, by a model that is read anew, and the directions of bets.

Unlike the checker, this uses plumdp: the model's reader (with numbers in place of parameters, so that Storm evaluates
the probabilities of a PRISM file), and the solver, which has seen nothing but what came before each stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.confidence.laws import law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.staged_bets import find_stages, steps_of_stage
from plumdp.learning.directions import value_directions
from plumdp.model.objective import Objective
from plumdp.model.objectives.protocol import Terms
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import policy_weights
from plumdp.model.question import Question, ask
from plumdp.result.data_file import read_data
from plumdp.result.folder import CERTIFICATE, DATA, POLICY, WITNESS
from plumdp.result.policy_table import PolicyTable, read_policy
from plumdp.verifying.chain_part import Ends, shares_in
from plumdp.verifying.checker.polynomials import parse
from plumdp.verifying.checker.reading import Rejected, require

_POINTS = 3  # at which probabilities are compared
_ROUNDING = Fraction(1, 10**12)
_CLOSE = 1e-6  # of directions, which a solver finds in floats

ModelAt = Callable[[Mapping[str, Fraction]], ParametricMDP]
"""A function from values of the parameters to a model, in which they may stay parameters."""


def check_chain(folder: Path, model_at: ModelAt, rng: np.random.Generator) -> None:
    """Require that the chain is that of the model under the policy, state by state, at random rational points."""
    witness = json.loads((folder / WITNESS).read_text(encoding="utf-8"))
    options = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))["options"]
    names, chain = witness["parameters"], witness["chain"]
    polynomials = [parse(text, names) for text in chain["expressions"]]
    for _ in range(_POINTS):
        point = {name: Fraction(int(rng.integers(1, 1000)), 1009) for name in names}
        model = model_at(point)
        values = [_value(f, point, names) for f in polynomials]
        rewards = [None if row is None else _reward(row[0], point, names) for row in chain["rows"]]
        question = ask(witness["claim"]["objective"], model, memory=options["memory"])
        policy = read_policy(question.model.graph, folder / POLICY)
        _compare(chain, values, rewards, question, policy, {n: point[n] for n in model.space.names})


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
    values: list[Fraction],
    rewards: list[Fraction | None],
    question: Question,
    policy: PolicyTable,
    point: Mapping[str, Fraction],
) -> None:
    """Require that each state of a chain is one of the model, with the row and the reward that it has there."""
    model, graph, flipped = question.model, question.model.graph, question.objective.flipped()
    objective: Objective = question.objective if flipped is None else flipped
    ends, terms, weights = Ends(objective, model), objective.terms(graph), policy_weights(graph, policy)
    known = model.expressions.evaluate_exact(model.space, point)
    number = {state: i for i, state in enumerate(zip(*(v.tolist() for v in graph.states.values()), strict=True))}
    states = [number.get(state, -1) for state in zip(*(chain["states"][name] for name in graph.states), strict=True)]
    require(min(states, default=0) >= 0, "the chain has a state that the model does not have")
    require((chain["step"] is not None) == ends.counts, "steps are counted in one of chain and model only")
    steps = chain["step"] if ends.counts else [0] * len(states)
    start = states[chain["initial"]], steps[chain["initial"]]
    require(start == (graph.initial_state, 0), "the initial state is another one in the model")
    for node, (row, state) in enumerate(zip(chain["rows"], states, strict=True)):
        where = f"state {node} of the chain, {graph.describe_state(state)}"
        is_over = ends.is_over(state, steps[node])
        require((row is None) == is_over, f"{where}: the run is over in one of chain and model only")
        if row is None:
            is_target = ends.is_target(state, steps[node])
            require((node in chain["target"]) == is_target, f"{where}: it is a target in one of chain and model only")
            continue
        mine: dict[int, Fraction] = {}
        for successor, f in zip(row[1], row[2], strict=True):
            after = steps[node] + 1 if ends.counts else 0
            require(steps[successor] == after, f"{where}: a step leads to another number of steps")
            mine[states[successor]] = mine.get(states[successor], Fraction(0)) + values[f]
        theirs: dict[int, Fraction] = {}
        reward = Fraction(0)
        for choice, share in shares_in(model, weights, state):
            reward += share * _paid(terms, choice, known)
            for t in range(int(graph.first_transition[choice]), int(graph.first_transition[choice + 1])):
                successor = int(graph.successor[t])
                theirs[successor] = theirs.get(successor, Fraction(0)) + share * known[int(model.expression[t])]
        require(_without_zeros(mine) == _without_zeros(theirs), f"{where}: the model has another row")
        off = _ROUNDING * (1 + abs(reward)) if isinstance(row[0], str) else Fraction(0)  # a mean is read as a float
        require(abs((rewards[node] or 0) - reward) <= off, f"{where}: the model has another reward")


def _paid(terms: Terms, choice: int, known: Sequence[Fraction]) -> Fraction:
    """Return the reward of a choice, or its mean at the point where expressions have the given values."""
    reward, learned = Fraction(float(terms.reward[choice])), terms.learned
    coin = -1 if learned is None else int(learned.coin[choice])
    if learned is None or coin < 0:
        return reward
    return reward + learned.span[coin] * known[int(learned.expression[coin, 0])]


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
