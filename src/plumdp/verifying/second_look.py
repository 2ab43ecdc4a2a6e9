"""Looks again at what the checker trusts: rows and the chain, by a model that is read anew, and counts and bets.

Unlike the checker, this uses plumdp: the model's reader, which reads a PRISM file also with numbers in place of its
parameters, so that Storm evaluates the probabilities, and the solver, which has seen nothing but what came before each
stage.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from typing import Any

import numpy as np

from plumdp.certifying.difference import acts_alike
from plumdp.confidence.estimates import law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.space_moments import moments
from plumdp.confidence.staged_bets import chosen_anew, find_stages, steps_of_stage
from plumdp.data.counts import TransitionCounts
from plumdp.data.practice import known_policy
from plumdp.learning.learned import value_directions
from plumdp.model.expressions.polynomial import Polynomial, from_terms, polynomial
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import UNIFORM, check_policy, policy_weights
from plumdp.model.question import PRACTICE, Question
from plumdp.result.data_file import difference
from plumdp.result.folder import DATA, POLICY, RIVAL, WITNESS
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce
from plumdp.verifying.chain_part import Ends, expected_reward, shares_in, value_part
from plumdp.verifying.look import Look, NotCompared
from plumdp.verifying.set_proof import RENEWED, counted_part, length_of_horizon, set_part, space_law, space_part
from plumdp_verify.bets import weight_of_horizon
from plumdp_verify.check import exactly
from plumdp_verify.claim import files_named
from plumdp_verify.comparison import called, quoted
from plumdp_verify.counts import read_data as counted_data
from plumdp_verify.polynomials import parse
from plumdp_verify.reading import Part, require
from plumdp_verify.report import ALONE

_POINTS = 3  # at which a file is read with numbers
_PARTS = 1009  # of the box, of which coordinates are multiples before they are moved into the space
_ROUNDING = Fraction(1, 10**12)
_CLOSE = 1e-3  # of bets, whose directions a solver finds in floats, relative


def check_model(look: Look) -> None:
    """Require that space, rows, the direction and each chain are those of the model, which was read again."""
    witness, model = look.witness, look.model
    require(witness["parameters"] == list(model.space.names), "the model has other parameters")
    nothing = TransitionCounts(model.graph, np.zeros(model.graph.n_transitions, dtype=np.int64), "adaptive")
    counted = counted_part(model, nothing, likelihood_table(model))
    require(witness["classes"] == counted["classes"], "classes: those of the model are others")
    mine, theirs = ([[row["outcomes"], row["ways"]] for row in rows] for rows in (witness["rows"], counted["rows"]))
    require(mine == json.loads(json.dumps(theirs)), "rows: those of the model are others")
    _check_space(look)
    direction = look.question().objective.direction
    require(witness["claim"]["direction"] == direction, "the direction is not that of the property")
    differs = "" if look.saved is None else difference(look.folder / DATA, model, look.saved[1])
    require(not differs, f"{DATA}: its part {differs!r} is not that of the model")
    check_chain(look, model)
    if look.own is not None and look.own.at is not None:
        for point in points_inside(model):
            check_chain(look, look.own.at(point), point)


def _check_space(look: Look) -> None:
    """Require that the space, and the law of its points, are those of the model."""
    require(look.witness["space"] == space_part(look.model.space), "space: that of the model is another one")
    law, own = look.witness["set"]["space_law"], space_law(look.model, likelihood_table(look.model))
    same = all(np.allclose(law[name], own[name], rtol=1e-9, atol=1e-9) for name in own)
    require(same, "the law of the space is another one than that of the model")


def check_words(look: Look) -> list[str]:
    """Return what need not be trusted of the words in a sentence, after a check of what they mean in the model."""
    graph, settled = look.model.graph, [ALONE] * look.claim.is_alone
    require(not settled or graph.is_chain, "the model has other policies, and the sentence is about one of them")
    known = [PRACTICE] * look.has_counts + [UNIFORM, *graph.action_names]
    named = [(file, name) for file, name in files_named(look.claim) if name in known]
    for file, name in named:
        question = look.question()
        meant = known_policy(question, look.counts, PRACTICE) if name == PRACTICE else name
        graph = question.model.graph
        is_same = acts_alike(graph, look.policy(question, file), check_policy(graph, meant))
        require(is_same, f"{file} is not the policy that is called {quoted(name)}")
        settled.append(called(file, name))
    return settled


def points_inside(model: ParametricMDP) -> Iterator[dict[str, Fraction]]:
    """Yield the same few points of the space each time, at which all expressions are probabilities."""
    space, names, rng = model.space, model.space.names, np.random.default_rng(1)
    corners, middle = space.vertices or (), space.point(moments(space)[0])
    if corners:
        middle = {name: sum((corner[name] for corner in corners), Fraction(0)) / len(corners) for name in names}
    for shares in rng.integers(1, _PARTS, (_POINTS, len(names))).tolist():
        ends = [low + (high - low) * Fraction(n, _PARTS) for (low, high), n in zip(space.bounds, shares, strict=True)]
        for nearer in (*(Fraction(1, 2**k) for k in range(50)), Fraction(0)):
            point = {name: middle[name] + (end - middle[name]) * nearer for name, end in zip(names, ends, strict=True)}
            values = model.expressions.evaluate_exact(space, point)
            if space.contains(point) and min(values) >= 0 and max(values) <= 1:
                break
        else:
            raise NotCompared("no point of the space was found at which all expressions are probabilities")
        yield point


def check_chain(look: Look, model: ParametricMDP, point: Mapping[str, Fraction] | None = None) -> None:
    """Require that each chain is that of the model under its policy, state by state.

    A model that was read at a point has numbers in place of its parameters.
    """
    witness, names = look.witness, tuple(look.witness["parameters"])
    parts = {POLICY: witness}
    if "comparison" in witness:
        parts[RIVAL] = witness["comparison"]
        require((look.folder / RIVAL).exists(), f"there is no {RIVAL}, the policy that the other one is compared with")
    question, reader = look.question(model), _Reader(names, point)
    for file, part in parts.items():
        _compare(part["chain"], reader, question, look.policy(question, file))


@dataclass(frozen=True)
class _Reader:
    """The parameters of a witness, and their values if the model was read at a point."""

    names: tuple[str, ...]
    point: Mapping[str, Fraction] | None

    def value(self, text: str) -> Polynomial:
        """Return the polynomial that a text says, at the point if there is one."""
        order = sorted(range(len(self.names)), key=lambda i: self.names[i])
        terms = {
            tuple(exponents[i] for i in order): Fraction(int(c.p), int(c.q))
            for exponents, c in parse(text, self.names).items()
        }
        found = from_terms(tuple(sorted(self.names)), terms)
        return found if self.point is None else polynomial(found.evaluate(self.point))

    def reward(self, given: float | str) -> Polynomial:
        """Return an expected reward, which is a number or a text."""
        return self.value(given) if isinstance(given, str) else polynomial(Fraction(given))


def _compare(chain: dict[str, Any], reader: _Reader, question: Question, policy: PolicyTable) -> None:
    """Require that each state of a chain is one of the model, with the row and the reward that it has there."""
    model, graph = question.model, question.model.graph
    objective = reduce(Problem(model, question.objective)).problem.objective
    for name, part in value_part(question).items():
        require(chain[name] == part, f"the {name} of the chain is that of another objective")
    ends, terms, weights = Ends(objective, model), objective.terms(graph), policy_weights(graph, policy)
    known = model.expressions.polynomials
    values = [reader.value(text) for text in chain["expressions"]]
    number = {state: i for i, state in enumerate(zip(*(v.tolist() for v in graph.states.values()), strict=True))}
    states = [number.get(state, -1) for state in zip(*(chain["states"][name] for name in graph.states), strict=True)]
    require(min(states, default=0) >= 0, "the chain has a state that the model does not have")
    require((chain["step"] is not None) == ends.counts, "steps are counted in one of chain and model only")
    steps = chain["step"] if ends.counts else [0] * len(states)
    start = states[chain["initial"]], steps[chain["initial"]]
    require(start == (graph.initial_state, 0), "the initial state is another one in the model")
    for node, (state, row) in enumerate(zip(states, chain["rows"], strict=True)):
        where = f"state {node} of the chain, {graph.describe_state(state)}"
        is_over, after = ends.is_over(state, steps[node]), steps[node] + 1 if ends.counts else 0
        require((row is None) == is_over, f"{where}: the run is over in one of chain and model only")
        if is_over:
            is_target = ends.is_target(state, steps[node])
            require((node in chain["target"]) == is_target, f"{where}: it is a target in one of chain and model only")
            continue
        reward, successors, expressions = row
        require(all(steps[s] == after for s in successors), f"{where}: a step leads to another number of steps")
        shares = ((states[s], values[f]) for s, f in zip(successors, expressions, strict=True))
        is_mean = isinstance(reward, str) and reader.point is not None
        mine = _Row.of(shares, reader.reward(reward), is_mean=is_mean)
        taken = list(shares_in(model, weights, state))
        ways = [
            (int(graph.successor[t]), known[int(model.expression[t])] * share)
            for choice, share in taken
            for t in range(*graph.first_transition[choice : choice + 2].tolist())
        ]
        theirs = _Row.of(ways, expected_reward(terms, taken, known))
        require(mine.ways == theirs.ways, f"{where}: the model has another row")
        require(mine.is_like(theirs), f"{where}: the model has another reward")


@dataclass(frozen=True)
class _Row:
    """The probabilities of successors that are not zero, and a reward, which is a mean that was read as a float."""

    ways: frozenset[tuple[int, Polynomial]]
    reward: Polynomial
    is_mean: bool

    @staticmethod
    def of(ways: Iterable[tuple[int, Polynomial]], reward: Polynomial, *, is_mean: bool = False) -> _Row:
        row: dict[int, Polynomial] = {}
        for successor, share in ways:
            row[successor] = row[successor] + share if successor in row else share
        kept = frozenset((successor, share) for successor, share in row.items() if share)
        return _Row(kept, reward, is_mean)

    def is_like(self, other: _Row) -> bool:
        off = self.reward - other.reward
        is_near = self.is_mean and abs(off.constant) <= _ROUNDING * (1 + abs(other.reward.constant))
        return self.ways == other.ways and (not off or is_near)


def has_bets(look: Look) -> bool:
    """Return whether the proof rests on bets."""
    return look.witness["set"]["bets"] is not None


def check_directions(look: Look) -> None:
    """Require that bets are along gradients that a solver finds which has seen nothing of later data.

    The size of those for a horizon is that which its weight asks for. Of bets that are renewed, it is units of one
    standard deviation: their sizes follow from them, as the checker has found.
    """
    witness, model, counts = look.witness, look.model, look.counts
    bets, table, space = witness["set"]["bets"], likelihood_table(model), law_of_space(model)
    require(counts.pilot is not None, "the data of the result have no pilot")
    assert counts.pilot is not None
    names = {name for side in bets["list"] for name in side["horizons"]}
    with exactly():
        data = counted_data(Part(witness, WITNESS))
        weights = {i: float(weight_of_horizon(data, i, WITNESS)) for i in names}
    scales = {i: 1.0 if i == RENEWED else sqrt(-2 * log(w / 2 * bets["error"])) for i, w in weights.items()}
    stages = find_stages(table, counts, space)
    found = {s: value_directions(look.prespecified(model), {})(stages[s].point) for s in {*chosen_anew(stages)}}
    for s, (stage, chosen) in enumerate(zip(stages, chosen_anew(stages), strict=True)):
        gradients = np.array([direction.gradient for direction in found[chosen]])
        for side in (side for side in bets["list"] if s < side["until"]):
            lengths = np.array([length_of_horizon(i, counts.pilot) for i in side["horizons"]])
            steps = steps_of_stage(table, stage, gradients, lengths, space)
            for i, step, given in zip(side["horizons"], steps, side["steps"][s], strict=True):
                one = side["sign"] * scales[i] * step[side["direction"]]
                other = np.array(side["units"][s] if i == RENEWED else given)
                is_same = np.linalg.norm(one - other) <= _CLOSE * np.linalg.norm(one)
                require(bool(is_same), f"the bets of stage {s} are others than the data before it lead to")


def check_data(look: Look) -> None:
    """Require that counts, space and its law are those of the data and the model."""
    parts = counted_part(look.model, look.counts, likelihood_table(look.model))
    about, own = look.witness["data"], json.loads(json.dumps(parts["data"]))
    for name, value in own.items():
        is_read_so = about[name] == value
        require(is_read_so, f"the {name} of the data is {about[name]!r} in the result, and {value!r} as they were read")
    for name in sorted(({"rewards"} | parts.keys()) - {"data"}):
        mine, theirs = look.witness.get(name), json.loads(json.dumps(parts.get(name)))
        require(mine == theirs, f"{name}: they are others than those of the data")
    _check_space(look)


def check_settings(look: Look) -> None:
    """Require that the settings of the set are those that model, options and the order of the data decide."""
    made = set_part(look.learned, None)
    for name in ("bets", "intervals"):
        mine, own = (_settings(part.get(name)) for part in (look.witness["set"], made))
        require(mine == own, f"{name}: the settings are {mine}, and {own} if they are made again")


def _settings(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the content of a part of the set that the checker cannot derive from the counts."""
    if part is None:
        return None
    kept = {name: f"{value:.9g}" if isinstance(value, float) else value for name, value in part.items()}
    items = [item for item in part.get("list", ()) if isinstance(item, dict)]
    kept["list"] = [(item["text"], item["polynomial"]) for item in items if "text" in item]  # of studies
    return dict(json.loads(json.dumps({name: value for name, value in kept.items() if name != "points"})))
