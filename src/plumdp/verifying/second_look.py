"""Looks again at what the checker trusts: the chain, by a model that is read anew, and the directions of bets.

Unlike the checker, this uses plumdp: the model's reader (with numbers in place of parameters, so that Storm evaluates
the probabilities of a PRISM file), and the solver, which has seen nothing but what came before each stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np

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
from plumdp.result.folder import CERTIFICATE, DATA, POLICY, RIVAL, WITNESS
from plumdp.result.policy_table import PolicyTable, read_policy
from plumdp.verifying.chain_part import Ends, choices_in, relied_on, shares_in, value_part
from plumdp.verifying.checker.bets import weight_of_horizon
from plumdp.verifying.checker.check import exactly
from plumdp.verifying.checker.counts import read_data as counted_data
from plumdp.verifying.checker.polynomials import parse
from plumdp.verifying.checker.reading import Part, require
from plumdp.verifying.counted import counted_part
from plumdp.verifying.model_parts import space_part
from plumdp.verifying.set_proof import space_law

_POINTS = 3  # at which probabilities are compared
_ROUNDING = Fraction(1, 10**12)
_CLOSE = 1e-3  # of bets, whose directions a solver finds in floats, relative

ModelAt = Callable[[Mapping[str, Fraction]], ParametricMDP]
"""A function from values of the parameters to a model, in which they may stay parameters."""


def check_chain(folder: Path, model_at: ModelAt, rng: np.random.Generator) -> None:
    """Require that the chain is that of the model under the policy, state by state, at random rational points."""
    witness = json.loads((folder / WITNESS).read_text(encoding="utf-8"))
    certificate = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))
    options, is_of_value = certificate["options"], "the value is" in certificate.get("answer", {}).get("sentence", "")
    names, parts = witness["parameters"], {POLICY: [witness]}
    if "comparison" in witness:
        parts[RIVAL] = [witness["comparison"]]
        require((folder / RIVAL).exists(), f"there is no {RIVAL}, the policy that the other one is compared with")
    if "all_policies" in witness:
        parts[POLICY].append(witness["all_policies"])
    for _ in range(_POINTS):
        point = {name: Fraction(int(rng.integers(1, 1000)), 1009) for name in names}
        model = model_at(point)
        has_choices = model.graph.n_choices > model.graph.n_states
        require(not (is_of_value and has_choices), "the model has other policies, and the answer is about one of them")
        question = ask(witness["claim"]["objective"], model, memory=options["memory"])
        _check_support(witness, question.model, point)
        for file, of_file in parts.items():
            policy = read_policy(question.model.graph, folder / file)
            for part in of_file:
                _compare(part["chain"], part.get("others"), point, names, question, policy)


def _check_support(witness: dict[str, Any], model: ParametricMDP, point: Mapping[str, Fraction]) -> None:
    """Require that all probabilities which a mission needs to be positive are among those that are proved to be."""
    names = witness["parameters"]
    known = model.expressions.evaluate_exact(model.space, {name: point[name] for name in model.space.names})
    proved = {_value(parse(each["polynomial"], names), point, names) for each in witness.get("support", ())}
    is_proved = {known[f] for f in relied_on(model)} <= proved
    require(is_proved, "the mission rests on transitions that the witness does not prove to be possible")


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
    for name, part in value_part(question).items():
        require(chain[name] == part, f"the {name} of the chain is that of another objective")
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
        mine = []
        for reward, successors, expressions in rows[node]:
            require(all(steps[s] == after for s in successors), f"{where}: a step leads to another number of steps")
            shares = ((states[s], values[f]) for s, f in zip(successors, expressions, strict=True))
            mine.append(_Row.of(shares, _reward(reward, point, names), is_mean=isinstance(reward, str)))
        theirs = []
        for taken in [list(shares_in(model, weights, state))] if others is None else choices_in(model, state):
            ways = [
                (int(graph.successor[t]), share * known[int(model.expression[t])])
                for choice, share in taken
                for t in range(*graph.first_transition[choice : choice + 2].tolist())
            ]
            theirs.append(_Row.of(ways, sum((share * _paid(terms, c, known) for c, share in taken), start=Fraction(0))))
        require({row.ways for row in mine} == {row.ways for row in theirs}, f"{where}: the model has another row")
        is_paid = all(any(one.is_like(other) for other in theirs) for one in mine)
        are_all = all(any(one.is_like(other) for one in mine) for other in theirs)
        require(is_paid and are_all, f"{where}: the model has another reward")


@dataclass(frozen=True)
class _Row:
    """The probabilities of successors that are not zero, and a reward, which is a mean that was read as a float."""

    ways: frozenset[tuple[int, Fraction]]
    reward: Fraction
    is_mean: bool

    @staticmethod
    def of(ways: Iterable[tuple[int, Fraction]], reward: Fraction, *, is_mean: bool = False) -> _Row:
        row: dict[int, Fraction] = {}
        for successor, share in ways:
            row[successor] = row.get(successor, Fraction(0)) + share
        kept = frozenset((successor, share) for successor, share in row.items() if share)
        return _Row(kept, reward, is_mean)

    def is_like(self, other: _Row) -> bool:
        off = _ROUNDING * (1 + abs(other.reward)) if self.is_mean else Fraction(0)
        return self.ways == other.ways and abs(self.reward - other.reward) <= off


def _paid(terms: Terms, choice: int, known: Sequence[Fraction]) -> Fraction:
    """Return the reward of a choice, or its mean at the point where expressions have the given values."""
    reward, learned = Fraction(float(terms.reward[choice])), terms.learned
    coin = -1 if learned is None else int(learned.coin[choice])
    if learned is None or coin < 0:
        return reward
    return reward + learned.span[coin] * known[int(learned.expression[coin, 0])]


def has_bets(folder: Path) -> bool:
    """Return whether the proof in a folder rests on bets."""
    witness = json.loads((folder / WITNESS).read_text(encoding="utf-8"))
    return (witness["bets"] if "bets" in witness else witness["set"]["bets"]) is not None


def is_all_announced_in_words(folder: Path) -> bool:
    """Return whether there are texts of all that was announced, by which bets can be made again; policies have none."""
    options = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))["options"]
    return bool(options["objectives"]) and all(options["objectives"])


def check_directions(folder: Path) -> None:
    """Require that bets are along gradients that a solver finds which has seen nothing of later data.

    Their size is that which the weight of their horizon asks for, and a side is on the same side in all stages.
    """
    witness = json.loads((folder / WITNESS).read_text(encoding="utf-8"))
    options = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))["options"]
    bets = witness["set"]["bets"]
    model, counts = read_data(folder / DATA)
    table, space = likelihood_table(model), law_of_space(model)
    require(counts.pilot is not None, "the data of the result have no pilot")
    assert counts.pilot is not None
    with exactly():
        data, error = counted_data(Part(witness, WITNESS)), bets["error"]
        scales = {
            i: sqrt(-2 * log(float(weight_of_horizon(data, i, WITNESS)) / 2 * error))
            for side in bets["list"]
            for i in side["horizons"]
        }
    first = 6 * counts.pilot.lengths[0] if counts.pilot.expected is None else counts.pilot.expected
    signs: dict[tuple[int, int], float] = {}  # of each side and horizon
    for s, stage in enumerate(find_stages(table, counts, space)):
        asked = zip(options["objectives"], options["with_memory"], strict=True)
        questions = [ask(text, model, memory=memory) for text, memory in asked]
        found = value_directions(questions, {})(stage.point)  # a new solver for each stage
        gradients = np.array([direction.gradient for direction in found])
        for n, side in enumerate(bets["list"]):
            lengths = np.array([first * 2.0**i for i in side["horizons"]])
            steps = steps_of_stage(table, stage, gradients, lengths, space)
            for i, step, given in zip(side["horizons"], steps, side["steps"][s], strict=True):
                one, other = scales[i] * step[side["direction"]], np.array(given)
                if one @ other:
                    signs.setdefault((n, i), float(np.sign(one @ other)))
                is_same = np.linalg.norm(signs.get((n, i), 1.0) * one - other) <= _CLOSE * np.linalg.norm(one)
                require(bool(is_same), f"the bets of stage {s} are others than the data before it lead to")


def check_data(folder: Path) -> None:
    """Require that counts, space and its law are those of the data and the model in the folder."""
    witness = json.loads((folder / WITNESS).read_text(encoding="utf-8"))
    model, counts = read_data(folder / DATA)
    table = likelihood_table(model)
    parts = counted_part(model, counts, table) | {"space": space_part(model.space)}
    for name, part in parts.items():
        require(witness[name] == json.loads(json.dumps(part)), f"{name}: they are others than those of the data")
    law, own = witness["set"]["space_law"], space_law(model, table)
    same = all(np.allclose(law[name], own[name], rtol=1e-9, atol=1e-9) for name in own)
    require(same, "the law of the space is another one than that of the model")
