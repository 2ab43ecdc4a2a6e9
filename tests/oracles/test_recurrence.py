"""What happens again and again: Storm agrees at points, the policies win what is claimed, and support is checked.

The folder ``automata`` has automata of formulas in their names, made by hand or from simple tables. At night there are
400 pairs of these with models, and 300 formulas of which the automata are made here.
"""

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from mission_cases import random_formula, random_mission_model, written
from tiers import size

import plumdp as pl
from plumdp.model.graph import Graph
from plumdp.model.missions import hoa, recurrence
from plumdp.model.question import ask
from plumdp.relaxation.intervals import instantiate
from plumdp.solver.known_support import end_components
from plumdp.stages import solve

pytestmark = pytest.mark.slow

FILES = sorted((Path(__file__).parents[1] / "automata").glob("*.hoa"))
N_PAIRS, N_FORMULAS, N_POLICIES = size(1, 14), size(12, 300), size(24, 500)


def formula_of(file):
    """Return the formula that is the name of an automaton."""
    line = next(line for line in file.read_text().splitlines() if line.startswith("name: "))
    return line.removeprefix('name: "').removesuffix('"').replace('\\"', '"')


def random_case(seed, number):
    """Return a model with cycles in which each label has states, a point, and a direction."""
    rng = np.random.default_rng([seed, number])
    while True:
        model = random_mission_model(rng, is_acyclic=False, has_end=rng.random() < 0.3)
        if all(states.any() for states in model.labels.values()):
            point = {name: Fraction(int(rng.integers(1, 10)), 10) for name in ("p", "q")}
            return rng, model, point, str(rng.choice(["max", "min"]))


def value_at(text, model, point):
    question = ask(text, model)
    found = solve(instantiate(question.model, point), question.objective, precision=1e-9)
    return float(found.lower[question.model.graph.initial_state])


def storm_at(formula, direction, model, point, path):
    import storm_models as storm

    nothing = np.zeros(model.graph.n_states), np.zeros(model.graph.n_choices)
    drn = storm.as_drn(model.graph, model.probabilities(point)[model.expression], model.labels, *nothing)
    try:
        return storm.storm_value(drn, path / "model.drn", f"P{direction}=? [ {formula} ]")
    except RuntimeError as error:  # Storm 1.14 does not read what its own translator writes for some formulas
        if "do not match syntactically" not in str(error):
            raise
        return None


def differing(path, files=FILES, n_pairs=N_PAIRS, seen=None):
    """Yield automata and models where Storm has another value for the formula of the automaton."""
    for number, file in enumerate(files):
        for k in range(n_pairs):
            _, model, point, direction = random_case(50 * number + k, 41)
            ours = value_at(f'P{direction}=? [ HOA: {{"{file}"}} ]', model, point)
            theirs = storm_at(formula_of(file), direction, model, point, path)
            if seen is not None:
                seen[file.stem] += theirs is not None
            if theirs is not None and abs(ours - theirs) > 1e-6:
                yield file.stem, k, direction, ours, theirs


def test_storm_agrees_on_automata_from_files(tmp_path):
    pytest.importorskip("stormpy")
    seen = Counter()
    assert [*differing(tmp_path, seen=seen)] == []
    assert sum(seen.values()) >= 0.9 * N_PAIRS * len(FILES)
    assert len(FILES) >= 29


def random_text(rng):
    """Return a formula of parts that are decided, hold again and again, or from some time on."""

    def plain(unbounded):
        while True:
            formula = random_formula(rng, 2, unbounded=unbounded)
            if "<=" not in written(formula) and "[" not in written(formula):
                return formula

    def part():
        again, last, often = ("G", plain("U"), None), ("F", plain("R"), None), ("G", ("F", plain("U"), None), None)
        return (again, last, often, plain("U"))[int(rng.integers(4))]

    formula = part()
    for _ in range(int(rng.integers(3))):
        formula = (str(rng.choice(["&", "|"])), formula, part())
    return formula if set("FGXUWR") & set(written(formula)) else ("F", formula, None)


def differing_formulas(path, n):
    """Yield formulas and models where Storm, which translates by Spot, has another value."""
    for seed in range(n):
        rng, model, point, direction = random_case(seed, 42)
        formula = random_text(rng)
        ours = value_at(f"P{direction}=? [ {written(formula)} ]", model, point)
        theirs = storm_at(written(formula, for_storm=True), direction, model, point, path)
        if theirs is not None and abs(ours - theirs) > 1e-6:
            yield seed, written(formula), direction, ours, theirs


def test_storm_agrees_on_formulas(tmp_path):
    pytest.importorskip("stormpy")
    assert [*differing_formulas(tmp_path, N_FORMULAS)] == []


# The policy that is returned wins what is claimed


def random_limit(rng, depth=3):
    """Return a formula of G F and F G, and a function that says whether it holds of the labels met forever."""
    pick = int(rng.integers(4 if depth else 2))
    name = str(rng.choice(["a", "b", "c"]))
    if pick == 0:
        return f'(G F "{name}")', lambda met: any(name in labels for labels in met)
    if pick == 1:
        return f'(F G !"{name}")', lambda met: all(name not in labels for labels in met)
    (one, first), (two, second) = random_limit(rng, depth - 1), random_limit(rng, depth - 1)
    if pick == 2:
        return f"({one} & {two})", lambda met: first(met) and second(met)
    return f"({one} | {two})", lambda met: first(met) or second(met)


def won(question, model, point, policy, holds):
    """Return the probability that a formula holds, by the states that the chain of a policy visits forever."""
    graph, memory = question.model.graph, question.model.graph.memory
    p = question.model.probabilities(point)[question.model.expression]
    n = graph.n_states
    matrix = np.zeros((n, n))
    for s, c in enumerate(policy):
        for t in range(graph.first_transition[c], graph.first_transition[c + 1]):
            matrix[s, graph.successor[t]] += p[t]
    reach = np.linalg.matrix_power((matrix > 0) | np.eye(n, dtype=bool), 1).astype(bool)
    for _ in range(int(np.ceil(np.log2(n))) + 1):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    is_recurrent = np.array([all(reach[t, s] for t in np.flatnonzero(reach[s])) for s in range(n)])
    worth = np.zeros(n)
    for s in np.flatnonzero(is_recurrent):
        met = [{x for x in model.labels if model.labels[x][memory.state[t]]} for t in np.flatnonzero(reach[s])]
        worth[s] = holds(met)
    moving = ~is_recurrent
    system = np.eye(int(moving.sum())) - matrix[np.ix_(moving, moving)]
    value = worth.copy()
    if moving.any():
        value[moving] = np.linalg.solve(system, matrix[np.ix_(moving, is_recurrent)] @ worth[is_recurrent])
    return float(value[graph.initial_state])


def line(rng):
    """Return a line of states with steps to the left and right that may fail, and random labels."""
    (p,) = pl.parameters("p")
    n = int(rng.integers(3, 7))
    label = {name: rng.random(n) < 0.4 for name in "abc"}

    def step(state):
        ways = {"left": max(state.x - 1, 0), "right": min(state.x + 1, n - 1)}
        return {name: [(p, state._replace(x=x)), (1 - p, state)] for name, x in ways.items()}

    labels = {name: (lambda state, states=states: bool(states[state.x])) for name, states in label.items()}
    return pl.explore(step, {"x": int(rng.integers(n))}, space=pl.ParameterSpace.unit("p"), labels=labels)


def not_won(seed):
    """Return the value that is claimed for the best policy and its true value, if they differ."""
    rng, model, point, direction = random_case(seed, 43)
    if seed % 2:
        model, point = line(rng), {"p": Fraction(1, 3)}
    formula, holds = random_limit(rng)
    question = ask(f"P{direction}=? [ {formula} ]", model)
    if question.model.graph.memory is None:
        return None
    found = solve(instantiate(question.model, point), question.objective, precision=1e-9)
    claimed = float(found.lower[question.model.graph.initial_state])
    true = won(question, model, point, found.policy, holds)
    return None if abs(claimed - true) < 1e-7 else (seed, formula, direction, claimed, true)


def test_the_returned_policy_wins_what_is_claimed():
    assert [wrong for seed in range(N_POLICIES) if (wrong := not_won(seed))] == []


def test_certified_bounds_hold_at_the_truth_and_doubtful_transitions_are_refused():
    seen = Counter()
    for seed in range(size(5, 200)):
        rng, model, point, direction = random_case(seed, 44)
        formula, holds = random_limit(rng)
        text = f"P{direction}=? [ {formula} ]"
        if ask(text, model).model.graph.memory is None:
            continue
        n_runs, n_steps = (300, 40) if seed % 3 else (1, 3)
        counts = pl.simulate(model, point, n_runs, rng=seed, max_steps=n_steps)
        try:
            found = pl.certify(model, counts, text)
        except pl.DataError as error:
            seen["refused"] += "the data do not show that this transition can happen" in str(error)
            continue
        question = ask(text, model)
        true = won(question, model, point, np.asarray(found.policy.choice), holds)
        seen["certified"] += 1
        assert found.lower - 1e-9 <= true <= found.upper + 1e-9, (seed, text)
    assert seen["refused"] > 0
    assert seen["certified"] > size(1, 50)


def test_end_components_are_those_of_the_solver():
    for seed in range(size(15, 1000)):
        rng, model, _, _ = random_case(seed, 45)
        graph = model.graph
        allowed = rng.random(graph.n_states) < 0.8
        is_kept = allowed[graph.state_of_choice()]
        for ours, theirs in zip(recurrence.end_components(graph, allowed), end_components(graph, is_kept), strict=True):
            if ours.dtype == np.bool_:
                assert (ours == theirs).all()
            else:
                assert ((ours < 0) == (theirs < 0)).all()
                inside = ours >= 0
                assert len(set(zip(ours[inside], theirs[inside], strict=True))) == len(set(ours[inside].tolist()))


# Planted errors


def marks_change_places(patch):
    """What must be met infinitely often must be met finitely often, and the other way round."""
    for module in (recurrence, hoa):
        right = module.pairs_of
        patch.setattr(
            module,
            "pairs_of",
            lambda given, right=right: tuple(recurrence.Pair(p.often, p.never) for p in right(given)),
        )


def one_goal_is_forgotten(patch):
    """Of several things that must be met again and again, the last is left out."""
    for module in (recurrence, hoa):
        right = module.pairs_of
        patch.setattr(
            module,
            "pairs_of",
            lambda given, right=right: tuple(
                p._replace(often=p.often[: max(1, len(p.often) - 1)]) for p in right(given)
            ),
        )


def bad_states_may_be_passed(patch):
    """End components may have states that must be met finitely often."""
    right = recurrence.end_components
    patch.setattr(recurrence, "end_components", lambda graph, allowed: right(graph, np.ones_like(allowed)))


def the_minimum_is_not_negated(patch):
    """The smallest probability is sought by the condition itself."""
    for module in (recurrence, hoa):
        patch.setattr(module, "negated", lambda condition: condition)


@pytest.mark.parametrize(
    "plant", [marks_change_places, one_goal_is_forgotten, bad_states_may_be_passed, the_minimum_is_not_negated]
)
def test_wrong_acceptance_is_found(plant, monkeypatch, tmp_path):
    pytest.importorskip("stormpy")
    plant(monkeypatch)
    assert next(differing(tmp_path, n_pairs=3), None) is not None


def the_first_goal_is_never_left(patch):
    """Of several goals, the policy goes to the first one only."""
    right = recurrence._towards
    first = {}

    def wrong(graph: Graph, inner, goal):
        return right(graph, inner, first.setdefault(id(graph), (graph, goal))[1])

    patch.setattr(recurrence, "_towards", wrong)


def any_choice_inside_wins(patch):
    """Where a run is won, the first choice of the component is taken."""
    patch.setattr(
        recurrence,
        "_towards",
        lambda graph, inner, goal: np.lexsort((~inner, graph.state_of_choice()))[graph.first_choice[:-1]],
    )


@pytest.mark.parametrize("plant", [the_first_goal_is_never_left, any_choice_inside_wins])
def test_a_policy_that_does_not_win_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert any(not_won(seed) for seed in range(1, 150, 2))
