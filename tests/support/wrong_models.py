"""Data from processes that a model is wrong about: its graph with row probabilities that it has at no point.

Every wrong case is a right one, a case study or ``machine``, with some true rows changed. In a changed row, probability
moves between the two outcomes that are most likely at the case's point: an error ``δ`` makes the first of them in the
order of the row more likely by δ and the other less, but leaves each at least half of what it had.

The counts are those of ``simulate`` on a model with known numbers on the same graph, so that they are counts of the
model under test; the value of a policy is that of the same known numbers.
"""

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np

import plumdp as pl
from plumdp.confidence.constants import FixedNumbers, find_fixed_numbers
from plumdp.learning.learn import Learned
from plumdp.learning.model_tests import check_fixed_numbers
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.region.find import find_region
from plumdp.relaxation.intervals import IntervalMDP

N_LOOKS = 4000  # runs that say which row is visited most


@dataclass(frozen=True, eq=False)
class Wrong:
    """A case, the true probabilities of its transitions, and what the model is wrong about."""

    case: object  # model, objective, true_point, max_steps
    probability: np.ndarray  # (n_transitions)
    guilty: tuple[str, ...]  # names of variables or actions, or rows: each of them would be a right diagnosis

    @property
    def graph(self):
        return self.case.model.graph

    def known_model(self) -> ParametricMDP:
        """Return the true process as a model without parameters, on the graph of the case's model."""
        values, expression = np.unique(self.probability, return_inverse=True)
        table = ExpressionTable.build([Polynomial(Fraction(float(x))) for x in values], ())
        space, model = pl.ParameterSpace.unit(), self.case.model
        parts = self.graph, space, space, table, read_only(expression.astype(np.int32))
        return ParametricMDP(*parts, model.labels, model.rewards, model.constants)

    def simulate(self, n_runs: int, rng, *, policy="uniform", pilot: bool = True) -> pl.TransitionCounts:
        """Return counts of the true process, with a pilot, as ``simulate`` does for a right model."""
        steps = self.case.max_steps
        return pl.simulate(self.known_model(), {}, n_runs, rng=rng, max_steps=steps, policy=policy, pilot=pilot)

    def value(self, policy) -> tuple[float, float]:
        """Return certified bounds on the true value of a policy in the initial state."""
        chances = read_only(self.probability)
        known = IntervalMDP(self.graph, np.arange(len(chances), dtype=np.int32), chances, chances)
        found, initial = pl.stages.evaluate(known, policy, self.case.objective), self.graph.initial_state
        return float(found.lower[initial]), float(found.upper[initial])


def right(case) -> Wrong:
    """Return a case whose model is right."""
    return Wrong(case, true_probabilities(case), ())


def true_probabilities(case) -> np.ndarray:
    """Return the probabilities of the transitions (n_transitions) at the point of a case."""
    return case.model.probabilities(case.true_point)[case.model.expression]


def shifted(case, shift: np.ndarray) -> np.ndarray:
    """Return the true probabilities with the rows of choices changed by ``shift`` (n_choices) as said above."""
    graph, chances = case.model.graph, true_probabilities(case).copy()
    for choice in np.flatnonzero(shift).tolist():
        first, last = graph.first_transition[choice : choice + 2]
        if last - first < 2:
            continue
        likely = first + np.sort(np.argsort(-chances[first:last], kind="stable")[:2])
        least = chances[likely] / 2
        moved = np.clip(shift[choice], -least[0], least[1])
        chances[likely] += [moved, -moved]
    return chances


def is_unknown(model) -> np.ndarray:
    """Return which choices (n_choices) have a row with parameters."""
    unknown = model.expressions.is_unknown[model.expression]
    return model.graph.sum_by_choice(unknown.astype(float)) > 0


def smooth(
    case,
    variable: str,
    size: float,
    *,
    centre: float,
    scale: float,
    actions: tuple[str, ...] = (),
    is_relative: bool = False,
) -> Wrong:
    """Return a case whose chances are off by size · tanh((h - centre) / scale) of a state variable h.

    All rows with parameters are, or those of some actions. A relative error is that times the smaller of the two
    chances between which probability moves.
    """
    graph = case.model.graph
    h = graph.states[variable].astype(float)[graph.state_of_choice()]
    names = np.array(graph.action_names)[graph.action]
    is_wrong = is_unknown(case.model) & (np.isin(names, actions) if actions else True)
    shift = np.where(is_wrong, size * np.tanh((h - centre) / scale), 0.0)
    return Wrong(case, shifted(case, shift * (second_largest(case) if is_relative else 1.0)), (variable,))


def second_largest(case) -> np.ndarray:
    """Return the second largest chance of each row (n_choices), zero where there is none."""
    first, chances = case.model.graph.first_transition.tolist(), true_probabilities(case)
    return np.array([np.sort(chances[a:b])[-2] if b - a > 1 else 0.0 for a, b in pairwise(first)])


def one_row(case, size: float, *, rank: int = 0) -> Wrong:
    """Return a case with one wrong row: the one with parameters that is visited most, or after ``rank`` others.

    Rows of the initial state are left out.
    """
    graph, model = case.model.graph, case.model
    seen = pl.simulate(model, case.true_point, N_LOOKS, rng=0, max_steps=case.max_steps, pilot=False).visits
    is_candidate = is_unknown(model) & (graph.state_of_choice() != graph.initial_state)
    choice = int(np.argsort(-np.where(is_candidate, seen, -1), kind="stable")[rank])
    shift = np.zeros(graph.n_choices)
    shift[choice] = size
    return Wrong(case, shifted(case, shift), (graph.describe_choice(choice),))


def one_action(case, action: str, factor: float) -> Wrong:
    """Return a case in which the first outcome of one action has so many times its chance, wherever it is taken."""
    graph, chances = case.model.graph, true_probabilities(case)
    is_guilty = (graph.action == graph.action_names.index(action)) & is_unknown(case.model)
    shift = np.where(is_guilty, (factor - 1) * chances[graph.first_transition[:-1]], 0.0)
    return Wrong(case, shifted(case, shift), (action,))


def one_constant(size: float) -> Wrong:
    """Return the machine of this module, whose repairs succeed more often by ``size`` than the model says."""
    case = machine()
    graph = case.model.graph
    is_repair = (graph.action == graph.action_names.index("repair")) & (np.diff(graph.first_transition) > 1)
    return Wrong(case, shifted(case, np.where(is_repair, size, 0.0)), ("repair",))


def machine(levels: int = 6, shifts: int = 12):
    """Return a machine that wears out with unknown probability and whose repairs succeed in 7 of 10 cases.

    A shift is spent on work, which earns more the less the machine is worn, or on repair. What is asked is the largest
    sum of earnings.
    """
    (p,) = pl.parameters("p")

    def step(s):
        if s.shift == shifts:
            return {"done": [(1, s)]}
        later, worn = s._replace(shift=s.shift + 1), min(s.wear + 1, levels)
        work = [(p, later._replace(wear=worn)), (1 - p, later)] if worn != s.wear else [(1, later)]
        repair = [("0.7", later._replace(wear=max(s.wear - 2, 0))), ("0.3", later)] if s.wear else [(1, later)]
        return {"work": work, "repair": repair}

    model = pl.explore(
        step,
        {"wear": 0, "shift": 0},
        space=pl.ParameterSpace.unit("p"),
        labels={"end": lambda s: s.shift == shifts},
        choice_rewards={"earned": lambda s, action: float(levels - s.wear) if action == "work" else 0.0},
    )
    objective = pl.parse_property('R{"earned"}max=? [ F "end" ]', model)
    return SimpleNamespace(model=model, objective=objective, true_point={"p": "0.3"}, max_steps=shifts)


# What certificates say of it


@dataclass(frozen=True)
class Outcome:
    """What one certificate said of data from a true process."""

    has_missed: bool  # its bracket does not hold the true value of its policy
    has_conflict: bool
    first_sentence: str  # of the diagnosis
    is_named: bool  # it names what the model is wrong about

    @property
    def is_silent_miss(self) -> bool:
        return self.has_missed and not self.has_conflict


OLD, UNTESTED, TESTED = "intervals, rectangular", "likelihood, coupled, not tested", "likelihood, coupled, tested"
RELAXATION = {OLD: "rectangular", UNTESTED: "coupled", TESTED: "coupled"}


def learned_by(wrong: Wrong, counts, *, error: float = 0.001) -> dict[str, Learned]:
    """Return what is learned from data by the first default, by the new one without the test of the model, and with."""
    model, fixed = wrong.case.model, find_fixed_numbers(wrong.case.model)
    intervals, tested = (
        pl.learn(model, counts, confidence=1 - error, confidence_set=kind, objectives=[wrong.case.objective])
        for kind in ("interval", "likelihood")
    )
    return {OLD: untested(intervals, fixed), UNTESTED: untested(tested, fixed), TESTED: tested}


def untested(learned: Learned, fixed: FixedNumbers) -> Learned:
    """Return the result without the test of the model, but for that of the numbers that it fixes."""
    region = find_region(learned.model, learned.bounds.constraints)
    return check_fixed_numbers(replace(learned, region=region, fit=None), fixed)


def judge(wrong: Wrong, learned: Learned, relaxation: str) -> Outcome:
    """Return what the certificate said that follows from what was learned."""
    certificate = pl.conclude(learned, wrong.case.objective, relaxation=relaxation)
    low, high = wrong.value(certificate.policy)
    has_missed = high < certificate.lower or low > certificate.upper
    conflict = learned.conflict
    told = "" if conflict is None else next(iter([*conflict.numbers, *conflict.findings]), str(conflict))
    return Outcome(has_missed, conflict is not None, told, names_guilty(wrong.guilty, told))


def repeat(wrong: Wrong, n_runs: int, n_repetitions: int, *, seed: int = 1) -> dict[str, list[Outcome]]:
    """Return what certificates said in each repetition, by each of the three ways to learn."""
    found: dict[str, list[Outcome]] = {name: [] for name in RELAXATION}
    for rng in np.random.default_rng(seed).spawn(n_repetitions):
        for name, learned in learned_by(wrong, wrong.simulate(n_runs, rng)).items():
            found[name].append(judge(wrong, learned, RELAXATION[name]))
    return found


def names_guilty(guilty: tuple[str, ...], sentence: str) -> bool:
    """Return whether a sentence names one of the guilty as whole words, rows as they are written in conflicts.

    >>> names_guilty(("money",), "the data fit other parameters where money is large")
    True
    >>> names_guilty(("x",), "the exit where y is large"), names_guilty((), "x")
    (False, False)
    """
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", sentence) for one in guilty)


# Which errors are tried

SMOOTH: dict[str, dict] = {  # the variable, where its effect changes sign, how fast, and what it is an effect on
    "betting:25": {"variable": "money", "centre": 15, "scale": 5},
    "rover:10,10": {"variable": "x", "centre": 5, "scale": 3},
    "aircraft:20,10": {"variable": "y", "centre": 1, "scale": 1, "actions": ("up", "down")},
    "engagement:20": {"variable": "cooldown", "centre": 1, "scale": 1},
    "glider:11,9": {"variable": "x", "centre": 5, "scale": 3, "is_relative": True},
    "parallel:5": {"variable": "m", "centre": 10, "scale": 5},
}


def smooth_error(name: str, size: float) -> Wrong:
    """Return a case study with a smooth error of the variable of ``SMOOTH``."""
    return smooth(pl.case_study(name), size=size, **SMOOTH[name])


def wrong_row(name: str, size: float) -> Wrong:
    """Return a case study with one wrong row."""
    return one_row(pl.case_study(name), size)


def wrong_channel(factor: float) -> Wrong:
    """Return the rover with a wrong channel L; that channel H differs from it says the same."""
    found = one_action(pl.case_study("rover:10,10"), "sendL", factor)
    return replace(found, guilty=("sendL", "sendH"))
