"""Are the results of this checkout those of another one, bit by bit? Each kind of question is asked in both.

    python -m studies.corpus --against ../before/src                   print each number that differs
    python -m studies.corpus --against ../before/src --no-wider        fail only if bounds are wider than before
    python -m studies.corpus --against ../before/src --keep before.json    ask the other checkout once per commit
    python -m studies.corpus --against ../before/src table mission     only cases with one of these in their names

Numbers are compared by ``float.hex``, policies by a hash of their choices and weights. A line has the case, the name of
the number, what it was and is, and for bounds whether they are narrower or wider. The exit code is 1 if there is such a
line; with ``--no-wider`` if a bound is wider by more than 1e-12 relative, or if a verdict, a status or a refusal is not
the same. Only public names are called, counts are simulated from fixed seeds, and each checkout answers in a process of
its own with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import plumdp
import plumdp.decisions
from plumdp.certifying.improvement import with_baseline

pl: Any = plumdp  # that of another checkout may have other signatures
decisions: Any = plumdp.decisions
HERE = str(Path(__file__).parents[1] / "src")
ANSWER = "--answer"
WIDER = 1e-12
FAMILIES = ("aircraft:6,4,1", "betting:10", "rover:5,5,2", "glider:11,9", "engagement:20", "parallel:3,1")
SETS = ("interval", "l1", "ellipsoid", "likelihood", "table")
RELAXATIONS = ("interval", "parameter", "expression", "rectangular", "coupled")
# what is read of a result where it has such an attribute; PARTS are results or tuples of results themselves
NUMBERS = (
    *("lower", "upper", "status", "relaxation", "guarantee", "direction", "verdict", "p_value", "visible_error"),
    *(
        "estimated_value",
        "n_compared",
        "is_better",
        "possible",
        "least",
        "most",
        "limit",
        "best",
        "visible",
        "is_inside",
    ),
    *("bound", "optimistic_bound", "width", "episodes", "steps", "runs", "gain", "n_runs", "n_incomplete", "spread"),
    *("suspicion", "impossible", "name", "model_tolerance"),
)
PARTS = (
    *(
        "first",
        "second",
        "difference",
        "certificate",
        "answer",
        "answers",
        "strategies",
        "effect",
        "cost",
        "certificates",
    ),
    *("prediction", "predictions", "parameters", "estimate", "gap"),
)
Case = Callable[[], Any]


@cache
def study(name: str) -> Any:
    """Return a case study."""
    return pl.case_study(name)


@cache
def runs(name: str, number: int = 5_000) -> Any:
    """Return counts of a case study."""
    known = study(name)
    return pl.simulate(known.model, known.true_point, number, rng=1, max_steps=min(known.max_steps, 60))


@cache
def walk() -> Any:
    """Return a walk with two coins, one of which is thrown after the other by one action, and some counts."""
    p, q = pl.parameters("p", "q")

    def step(s: Any) -> Any:
        if s.x in (0, 4):
            return {"stay": [(1, s)]}
        up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
        return {"near": [(p, up), (1 - p, down)], "twice": [(p * q, up), (p * (1 - q), s), (1 - p, down)]}

    model = pl.explore(
        step,
        {"x": 2},
        space=pl.ParameterSpace.box({"p": ("0.1", "0.9"), "q": ("0.1", "0.9")}),
        labels={"goal": lambda s: s.x == 4, "end": lambda s: s.x in (0, 4), "low": lambda s: s.x == 1},
        rewards={"time": lambda s: 1.0 if s.x not in (0, 4) else 0.0},
        choice_rewards={"fuel": lambda s, action: {"near": 1.0, "twice": 0.5, "stay": 0.0}[action]},
    )
    return model, pl.simulate(model, {"p": 0.6, "q": 0.3}, 5_000, rng=3, max_steps=100)


@cache
def patrol() -> Any:
    """Return a model in which runs never end, with counts; its rewards have both signs."""
    p, q = pl.parameters("p", "q")

    def step(s: Any) -> Any:
        if s.x == 3:
            return {"repair": [(q, s._replace(x=0)), (1 - q, s)]}
        after = s._replace(x=s.x + 1)
        return {"run": [(p, after), (1 - p, s)], "slow": [(p / 2, after), (1 - p / 2, s)]}

    space = pl.ParameterSpace.box({"p": ("0.1", "0.9"), "q": ("0.1", "0.9")})
    labels = {"down": lambda s: s.x == 3, "new": lambda s: s.x == 0}
    rewards = {"": lambda s: -1.0 if s.x == 3 else 1.0}
    model = pl.explore(step, {"x": 0}, space=space, labels=labels, rewards=rewards)
    return model, pl.simulate(model, {"p": 0.3, "q": 0.4}, 500, rng=1, max_steps=50)


@cache
def coins() -> Any:
    """Return two coins that are thrown at once, so that outcomes have products of polynomials, and counts."""
    p, q = pl.parameters("p", "q")

    def step(s: Any) -> Any:
        if s.n >= 3:
            return {"stay": [(1, s._replace(n=4, side=0))]}
        row = ((1 - p) * (1 - q), p * (1 - q), p * q, (1 - p) * q)
        other = (p * p * q, 1 - p * p * q)
        after = [s._replace(n=s.n + 1, side=i) for i in range(4)]
        return {"both": list(zip(row, after, strict=True)), "thrice": list(zip(other, after[2:0:-1], strict=True))}

    space = pl.ParameterSpace.box({"p": ("0.1", "0.9"), "q": ("0.1", "0.9")})
    rewards = {"": lambda s: (0.0, 1.0, 2.0, 1.0)[s.side]}
    model = pl.explore(step, {"n": 0, "side": 0}, space=space, rewards=rewards)
    return model, pl.simulate(model, {"p": 0.4, "q": 0.7}, 3_000, rng=1, max_steps=5)


@cache
def paid() -> Any:
    """Return a model with a reward that data tell, and counts."""
    well, visit = pl.parameters("well", "visit")

    def cycle(s: Any) -> Any:
        if s.cycle == 4:
            return {"end": [(1, s)]}
        later = s._replace(cycle=s.cycle + 1, good=0)
        good = later._replace(good=1)
        return {
            "treat": [(well, good), (1 - well, later)],
            "wait": [(Fraction(2, 5), good), (Fraction(3, 5), later)],
        }

    model = pl.explore(
        cycle,
        {"cycle": 0, "good": 0},
        space=pl.ParameterSpace.box({"well": (0, 1), "visit": (0, 200)}),
        labels={"end": lambda s: s.cycle == 4},
        rewards={"health": lambda s: s.good},
        choice_rewards={"cost": lambda s, action: visit if action == "treat" else 0},
    )
    return model, pl.simulate(model, {"well": 0.6, "visit": 50}, 10_000, rng=1, max_steps=5)


@cache
def layered(n_parameters: int = 12) -> Any:
    """Return a model whose rows are mixtures of many weights, so that its region is cut into boxes, and counts."""
    rng = np.random.default_rng(1)
    names = [f"t{i}" for i in range(n_parameters)]
    weights = [*pl.parameters(*names)]
    weights.append(1 - sum(weights[1:], start=weights[0]))
    shares = rng.integers(1, 100, (40, len(weights), 2)).tolist()
    rows = []
    for share in shares:
        row = [sum((w * Fraction(s[j], 300) for w, s in zip(weights, share, strict=True)), start=0) for j in range(2)]
        rows.append([*row, 1 - row[0] - row[1]])
    place, kind = rng.integers(0, 12, (6, 12, 2)), rng.integers(0, len(rows), (6, 12, 2))

    def step(s: Any) -> Any:
        if s.layer == 6:
            return {"stop": [(1, s)]}
        return {
            f"a{a}": [
                (f, s._replace(layer=s.layer + 1, place=int(place[s.layer, s.place, a] + 5 * j) % 12))
                for j, f in enumerate(rows[kind[s.layer, s.place, a]])
            ]
            for a in range(2)
        }

    space = pl.ParameterSpace.box(dict.fromkeys(names, (0, 1)), constraints=[weights[-1]])
    model = pl.explore(
        step, {"layer": 0, "place": 0}, space=space, labels={"goal": lambda s: s.layer == 6 and s.place < 5}
    )
    point = dict(zip(names, rng.dirichlet(np.ones(n_parameters + 1)).tolist(), strict=False))
    return model, pl.simulate(model, point, 5_000, rng=1, max_steps=8)


@cache
def rows() -> Any:
    """Return a table of unknown rows, of which some are tied and one is known, and counts."""

    def step(s: Any) -> Any:
        if s.x in (0, 6):
            return {"stay": [(1, s)]}
        up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
        if s.x == 2:
            return {"go": [("2/5", up), ("3/5", down)]}
        return {"go": pl.unknown(up, down, s, row=f"row {s.x % 2}"), "other": pl.unknown(down, up)}

    model = pl.explore(
        step,
        {"x": 3},
        labels={"goal": lambda s: s.x == 6, "end": lambda s: s.x in (0, 6)},
        rewards={"": lambda s: 1.0 if 0 < s.x < 6 else 0.0},
    )
    graph, point = model.graph, np.ones(model.graph.n_transitions)
    for first, last in zip(graph.first_transition[:-1], graph.first_transition[1:], strict=True):
        point[first:last] = {1: [1.0], 2: [0.55, 0.45], 3: [0.5, 0.3, 0.2]}[int(last - first)]
        if (
            last - first == 2
            and graph.states["x"][graph.state_of_choice()[graph.first_transition[:-1] == first][0]] == 2
        ):
            point[first:last] = [0.4, 0.6]
    return model, pl.simulate(model, point, 2_000, rng=1, max_steps=300, stop=model.labels["end"])


@cache
def columns() -> Any:
    """Return a table made of columns, and counts of a log without an order."""
    state = np.repeat(np.arange(4), 4)
    action = np.tile(["a", "a", "b", "b"], 4)
    successor = np.where(np.tile([0, 1, 0, 1], 4) == 1, state + 1, np.where(action == "a", state, 0))
    labels = {"goal": lambda s: s.x == 4}
    cost = {"cost": lambda s: 1.0 * (s.x < 4)}
    model = pl.model.table_model({"x": state}, action, {"x": successor}, initial=0, labels=labels, rewards=cost)
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4, 4_000)
    tried = rng.choice(["a", "b"], 4_000)
    forward = rng.random(4_000) < np.where(tried == "a", 0.5, 0.7)
    after = np.where(forward, x + 1, np.where(tried == "a", x, 0))
    return model, pl.read_log(model, pd.DataFrame({"x": x, "action": tried, "next_x": after}))


@cache
def from_log(*, leaves: bool, order: str | None = "runs") -> Any:
    """Return a table of the first 30 runs in a log, and the counts of later ones, of which some steps may leave it."""
    rng, seen = np.random.default_rng(1), []
    for run in range(830):
        x = 3
        while 0 < x < 6:
            jump = 0.01 if leaves and run >= 30 else 0.0
            after = int(rng.choice([x + 1, x - 1, x, min(x + 2, 6)], p=[0.45, 0.3, 0.25 - jump, jump]))
            seen.append((run, x, "go", after))
            x = after
    log = pd.DataFrame(seen, columns=["episode", "x", "action", "next_x"])
    early, late = log[log.episode < 30].drop(columns="episode"), log[log.episode >= 30]
    labels = {"goal": lambda s: s.x == 6, "end": lambda s: (s.x == 0) | (s.x == 6)}
    rewards: Any = {"rewards": {"cost": lambda s: 1.0 * ((s.x > 0) & (s.x < 6))}, "out_of_table": {"cost": (0, 5)}}
    model = pl.data.model_from_log(
        early, pl.LogFormat(states="x"), initial=3, ends=labels["end"], labels=labels, **rewards
    )
    return model, pl.read_log(model, late, order=order)


@cache
def ordered() -> Any:
    """Return a log in an order that is known, with moments at which bets were placed."""
    known = study("betting:5")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/runs.parquet"
        pl.data.write_runs(known.model, known.true_point, 2_000, path, rng=1, max_steps=6)
        frame = pd.read_parquet(path)
    return known, {
        "runs": pl.read_log(known.model, frame, order="runs", expected=3_000),
        "time": pl.read_log(known.model, frame, order="time"),
        "none": pl.read_log(known.model, frame),
        "without a pilot": pl.read_log(known.model, frame, order="runs", pilot=False),
    }


def uniform(model: Any) -> Any:
    """Return the policy that draws all choices of a state alike."""
    graph = model.graph
    number = np.diff(graph.first_choice)
    return 1.0 / number[graph.state_of_choice()]


def concluded(model: Any, counts: Any, asked: Any, **options: Any) -> Any:
    """Return what is certified with options of ``conclude``."""
    return pl.conclude(pl.learn(model, counts, objectives=[asked]), asked, **options)


def cases() -> Iterator[tuple[str, Case]]:
    """Yield the name of each case, and a function that answers it."""
    yield from about_families()
    yield from about_sets()
    yield from about_properties()
    yield from about_tables()
    yield from about_decisions()
    yield from about_models()


def about_families() -> Iterator[tuple[str, Case]]:
    """Yield default certificates of the case studies, and those with each relaxation."""
    for name in FAMILIES:
        yield f"family {name}", partial(pl.certify, study(name).model, runs(name), study(name).objective)
    for name in (FAMILIES[0], FAMILIES[3]):
        for relaxation in RELAXATIONS:
            options = {"relaxation": relaxation, "precision": 1e-8}
            given = study(name).model, runs(name), study(name).objective
            yield f"relaxation {relaxation} {name}", partial(concluded, *given, **options)
    yield (
        "compare relaxations",
        lambda: pl.compare(pl.learn(*walk(), objectives=['Pmin=? [ F "goal" ]']), 'Pmin=? [ F "goal" ]'),
    )
    yield "layered many parameters", partial(pl.certify, *layered(), 'Pmax=? [ F "goal" ]')
    yield "layered rectangular", partial(pl.certify, *layered(), 'Pmin=? [ F "goal" ]', relaxation="rectangular")
    yield "products of polynomials", partial(pl.certify, *coins(), "Rmax=? [ C ]")
    yield "products rectangular", partial(pl.certify, *coins(), "Rmin=? [ C ]", relaxation="rectangular")


def about_sets() -> Iterator[tuple[str, Case]]:
    """Yield certificates from each confidence set, with options of learning."""
    for name in (FAMILIES[0], FAMILIES[1]):
        for kind in SETS:
            given = study(name).model, runs(name), study(name).objective
            yield f"set {kind} {name}", partial(pl.certify, *given, confidence_set=kind)
    for kind in SETS[:-1]:
        yield f"set {kind} products", partial(pl.certify, *coins(), "Rmax=? [ C ]", confidence_set=kind)
    asked = 'Pmax=? [ F "goal" ]'
    model, counts = walk()
    for sampling in ("independent", "adaptive"):
        data = replace(counts, sampling=sampling, pilot=None)
        yield f"intervals {sampling}", partial(pl.certify, model, data, asked, confidence_set="interval")
    for kind in ("interval", "likelihood", "ellipsoid"):
        yield f"model tolerance {kind}", partial(pl.certify, *walk(), asked, model_tolerance=0.01, confidence_set=kind)
    known, logs = ordered()
    for order, log in logs.items():
        yield f"order {order}", partial(pl.certify, known.model, log, known.objective)
    yield (
        "order runs interval",
        partial(pl.certify, known.model, logs["runs"], known.objective, confidence_set="interval", confidence=0.95),
    )


def about_properties() -> Iterator[tuple[str, Case]]:
    """Yield certificates of all kinds of questions."""
    aircraft = study(FAMILIES[0]).model, runs(FAMILIES[0])
    for text in ('Pmax=? [ !"collision" U<=8 "goal" ]', 'Pmin=? [ F[2,6] "collision" ]'):
        yield f"deadline {text}", partial(pl.certify, *aircraft, text)
        yield f"deadline without memory {text}", partial(concluded, *aircraft, text, memory=False)
    for text in (
        *('Pmax=? [ (F "low") & (F "goal") ]', 'Pmax=? [ G ("low" => F<=2 "goal") ]', 'Pmin=? [ !"goal" W "low" ]'),
        *('Pmax=? [ LTLf{"end"} (F "low") & (F ("goal" & !X true)) ]', 'Pmax=? [ F{"fuel"}<=3 "goal" ]'),
        *('R{"time"}min=? [ F "end" ]', 'R{"fuel"}max=? [ C<=6 ]', 'R{"time"}max=? [ I=4 ]', 'R{"fuel"}min=? [ C ]'),
        *('R{"fuel"}max=? [ C{0.9} ]', 'Pmaxmax=? [ F "goal" ]', 'Pmin=? [ G !"low" ]', 'Pmax=? [ X "low" ]'),
    ):
        yield f"property {text}", partial(pl.certify, *walk(), text)
    for text in ("Rmax=? [ LRA ]", 'LRAmin=? [ "down" ]', "Rmin=? [ C{0.95} ]"):
        yield f"property {text}", partial(pl.certify, *patrol(), text)
    yield "average given", partial(pl.certify, *patrol(), "Rmax=? [ LRA ]", policy="slow")
    yield "average drawn", partial(pl.certify, *patrol(), "Rmax=? [ LRA ]", policy=uniform(patrol()[0]))
    yield "average rectangular", partial(pl.certify, *patrol(), "Rmax=? [ LRA ]", relaxation="rectangular")
    for text in ('R{"health"}max=? [ F "end" ]', 'R{"cost"}min=? [ F "end" ]', 'R{"cost"}max=? [ C<=3 ]'):
        yield f"learned reward {text}", partial(pl.certify, *paid(), text, policy="treat")
    asked = ['Pmax=? [ F "goal" ]', 'R{"time"}min=? [ F "end" ]', 'Pmax=? [ F<=5 "goal" ]']
    yield "certify all", partial(all_of, asked)
    yield "given policy", partial(pl.certify, *walk(), asked[0], policy="twice")
    yield "pre-specified policy", partial(pl.certify, *walk(), asked[0], policy="twice", prespecified=True)
    for kind in ("rectangular", "coupled"):
        drawn = {"policy": uniform(walk()[0]), "relaxation": kind}
        yield f"drawn policy {kind}", partial(pl.certify, *walk(), asked[1], **drawn)
    yield "drawn policy deadline", partial(pl.certify, *walk(), asked[2], policy=uniform(walk()[0]))


def about_tables() -> Iterator[tuple[str, Case]]:
    """Yield certificates of tables of unknown rows."""
    for text in ('Pmax=? [ F "goal" ]', 'Rmin=? [ F "end" ]', "Rmax=? [ C{0.9} ]", 'Pmax=? [ F<=8 "goal" ]'):
        yield f"table {text}", partial(pl.certify, *rows(), text)
        yield f"table pre-specified {text}", partial(pl.certify, *rows(), text, policy="go", prespecified=True)
    free = pl.model.free_rows(patrol()[0])
    yield "table average", partial(pl.certify, free, replace(patrol()[1], graph=free.graph), "Rmax=? [ LRA ]")
    yield "table interval", partial(pl.certify, *rows(), 'Pmax=? [ F "goal" ]', confidence_set="interval")
    yield "table mission in any order", partial(pl.certify, *rows(), 'Pmax=? [ (F "goal") & (F x=1) ]')
    for text in ('Pmax=? [ F "goal" ]', 'R{"cost"}min=? [ F "goal" ]'):
        yield f"table of columns {text}", partial(pl.certify, *columns(), text)
        yield f"table of columns drawn {text}", partial(pl.certify, *columns(), text, policy=uniform(columns()[0]))
    for leaves in (False, True):
        for order in (None, "runs"):
            model, log = from_log(leaves=leaves, order=order)
            for text in ('Pmax=? [ F "goal" ]', 'R{"cost"}min=? [ C<=5 ]'):
                yield f"table from log {leaves=} {order=} {text}", partial(pl.certify, model, log, text)
    yield "table model tolerance", partial(pl.certify, *rows(), 'Pmax=? [ F "goal" ]', model_tolerance=0.01)


def about_decisions() -> Iterator[tuple[str, Case]]:
    """Yield differences, improvements and other decisions."""
    asked = 'Pmax=? [ F "goal" ]'
    model, counts = walk()
    learned = pl.learn(model, counts, objectives=[asked])
    against = pl.model.Question(model, pl.parse_property(asked, model), policy="near", against="twice")
    prespecified = pl.learn(model, counts, objectives=[against])
    yield "difference", lambda: pl.difference(learned, asked, "near", "twice")
    yield "difference pre-specified", lambda: pl.difference(prespecified, asked, "near", "twice")
    yield "difference drawn", lambda: pl.difference(learned, asked, uniform(model), "twice")
    average = pl.learn(*patrol(), objectives=["Rmax=? [ LRA ]"])
    yield "difference of averages", lambda: pl.difference(average, "Rmax=? [ LRA ]", "run", "slow")
    unknown = pl.learn(*rows(), objectives=[asked])
    yield "difference of a table", lambda: pl.difference(unknown, asked, "go", uniform(rows()[0]))
    interval = pl.learn(model, counts, objectives=[asked], confidence_set="interval")
    yield "difference from intervals", lambda: pl.difference(interval, asked, "near", "twice")
    yield "improve", partial(improved, model, counts, asked)
    yield "improve over uniform", lambda: improved(rows()[0], rows()[1], asked, over="uniform")
    yield "improve pre-specified", partial(improved, model, counts, asked, over="twice", prespecified=True)
    for text in ('P>=0.5 [ F "goal" ]', 'Pmax<0.9 [ F "goal" ]', 'Pmin>=0.6 [ F "goal" ]', 'P>=0.7 [ F "goal" ]'):
        yield f"threshold {text}", partial(pl.decide, learned, text)
    yield "threshold of a table", partial(pl.decide, unknown, 'P>=0.5 [ F "goal" ]')
    both = ['R{"health"}max=? [ F "end" ]', 'R{"cost"}min=? [ F "end" ]']
    trial = pl.learn(*paid(), objectives=both, confidence=0.95)
    named = {"treating": "treat", "waiting": "wait"}
    yield "net benefit", lambda: decisions.net_benefit(trial, *both, willingness=(0, 1000))
    yield "net benefit named", lambda: decisions.net_benefit(trial, *both, willingness=(0, 1000), strategies=named)
    limited = [asked, 'R{"time"}min=? [ F "end" ]']
    jointly = pl.learn(model, counts, objectives=limited)
    keep = ['R{"time"}<=3.5 [ F "end" ]']
    yield "constraints", lambda: decisions.certify_within(jointly, asked, subject_to=keep)


def about_models() -> Iterator[tuple[str, Case]]:
    """Yield tests of models, advice and learning while acting."""
    asked = 'Pmax=? [ F "goal" ]'
    model, counts = walk()
    learned = pl.learn(model, counts, objectives=[asked])
    yield "check model", partial(checked, model, counts)
    yield (
        "check wrong model",
        lambda: checked(model, pl.simulate(wrong(), {"p": 0.6}, 2_000, rng=1, max_steps=50)),
    )
    yield "check many parameters", partial(checked, *layered())
    yield "check products", partial(checked, *coins())
    yield (
        "contradicted",
        lambda: pl.certify(model, pl.simulate(wrong(), {"p": 0.6}, 5_000, rng=1, max_steps=50), asked, confidence=0.99),
    )
    yield "advise width", lambda: pl.advise(learned, asked, width=0.02)
    yield "advise runs", lambda: pl.advise(learned, asked, runs=10_000)
    yield "advise table", lambda: pl.advise(pl.learn(*rows(), objectives=[asked]), asked, width=0.1)
    yield "runs to tell", lambda: decisions.runs_to_tell(learned, asked, pl.difference(learned, asked, *close()))
    yield "online", online


def checked(model: Any, counts: Any) -> Any:
    """Return the test of a model."""
    return pl.check_model(pl.learn(model, counts))


def all_of(asked: Any) -> Any:
    """Return the certificates of several questions about the walk, which hold jointly."""
    learned = pl.learn(*walk(), objectives=asked)
    return [pl.conclude(learned, each) for each in learned.questions]


def improved(model: Any, counts: Any, asked: str, *, over: Any = "practice", prespecified: bool = False) -> Any:
    """Return what is certified to be better than a baseline."""
    questions = with_baseline([asked], model, over, prespecified=prespecified)
    return decisions.improve(pl.learn(model, counts, objectives=questions), asked, over=over)


def close() -> Any:
    """Return two policies of the walk that take different actions in one state alone, with little difference."""
    near = uniform(walk()[0])
    other = near.copy()
    other[walk()[0].graph.first_choice[1] : walk()[0].graph.first_choice[2]] = 0.501, 0.499
    return near, other


def wrong() -> Any:
    """Return a model with the graph of ``walk`` and other rows."""
    (p,) = pl.parameters("p")

    def step(s: Any) -> Any:
        if s.x in (0, 4):
            return {"stay": [(1, s)]}
        up, down, there = s._replace(x=s.x + 1), s._replace(x=s.x - 1), p / s.x
        return {"near": [(there, up), (1 - there, down)], "twice": [(p / 4, up), (p / 2, s), (1 - 3 * p / 4, down)]}

    return pl.explore(step, {"x": 2}, space=pl.ParameterSpace.unit("p"))


def online() -> Any:
    """Return the records of learning while acting."""
    known = study("betting:5")
    environment = pl.online.simulator(known.model, known.true_point, rng=1, max_steps=6)
    return list(pl.learn_online(known.model, environment, known.objective, episodes=500))


def read(result: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names and bits of all that is compared in a result."""
    if isinstance(result, Mapping):
        for key, value in result.items():
            yield from read(value, f"{name}{key}.")
    elif isinstance(result, (list, tuple)):
        for i, value in enumerate(result):
            yield from read(value, f"{name}{i}.")
    elif isinstance(result, (float, np.floating)):
        yield name.removesuffix("."), float(result).hex()
    elif result is None or isinstance(result, (str, bool, int, Fraction, np.integer, np.bool_)):
        yield name.removesuffix("."), str(result)
    else:
        records = [getattr(result, each) for each in ("claim", "how", "rests_on", "beside") if hasattr(result, each)]
        holders = [result, *records]
        for key in (*NUMBERS, *PARTS):
            yield from read(next((getattr(each, key) for each in holders if hasattr(each, key)), ()), f"{name}{key}.")
        policy: Any = getattr(result, "policy", None)
        if hasattr(policy, "choice"):
            yield f"{name}policy", hashed(policy.choice, policy.weights)


def hashed(*arrays: Any) -> str:
    """Return a hash of numbers."""
    return blake2b(
        b"".join(np.asarray(a, np.float64).tobytes() for a in arrays if a is not None), digest_size=8
    ).hexdigest()


def answer(selected: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield name, seconds and bits of each case; an error is an answer too."""
    for name, ask in cases():
        if selected and not any(word in name for word in selected):
            continue
        start = time.process_time()
        try:
            bits = dict(read(ask()))
        except (ValueError, pl.ModelError, pl.DataError) as error:
            bits = {"refused": type(error).__name__}
        yield {"name": name, "seconds": time.process_time() - start, "bits": bits}


def answers_of(source: str, selected: Sequence[str]) -> dict[str, Any]:
    """Return the answers of the package in the given folder, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": source, "PLUMDP_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, __file__, ANSWER, *selected]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return {each["name"]: each for each in map(json.loads, ran.stdout.splitlines())}


def kept(path: str, source: str) -> dict[str, Any]:
    """Return the answers of another checkout, from a file if it has those of the same commit."""
    file = Path(path)
    commit = subprocess.run(["git", "-C", source, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    if not file.exists() or json.loads(file.read_text())["commit"] != commit:
        file.write_text(json.dumps({"commit": commit, "answers": answers_of(source, ())}, indent=1))
    found: dict[str, Any] = json.loads(file.read_text())["answers"]
    return found


def differences(before: dict[str, str], now: dict[str, str]) -> Iterator[tuple[str, bool]]:
    """Yield a line for each number that is not the same, and whether it is worse than before."""
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name, "absent"), now.get(name, "absent")
        if old == new:
            continue
        if "0x" not in old or "0x" not in new:
            yield f"{name} {old} → {new}", not name.endswith("policy")
            continue
        was, is_now = float.fromhex(old), float.fromhex(new)
        change, is_wider = "", False
        if name.endswith(("lower", "upper")):
            outward = was - is_now if name.endswith("lower") else is_now - was
            change = ", wider" if outward > 0 else ", narrower"
            is_wider = outward > WIDER * max(abs(was), abs(is_now))
        yield f"{name} {was!r} → {is_now!r} (by {abs(is_now - was):.1e}{change})", is_wider


def main() -> int:
    """Print what differs, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="words, of which a case has one in its name; all cases without")
    parser.add_argument("--against", required=True, help="the source folder of another checkout")
    parser.add_argument("--keep", help="a file in which the answers of the other checkout are kept")
    parser.add_argument("--no-wider", action="store_true", help="fail only if a bound is wider than before")
    options = parser.parse_args()
    before = kept(options.keep, options.against) if options.keep else answers_of(options.against, options.cases)
    now = answers_of(HERE, options.cases)
    names = [name for name in dict.fromkeys([*before, *now]) if name in now or not options.cases]
    lines = [
        (f"{name}: {line}", is_worse)
        for name in names
        for line, is_worse in differences(*({} if name not in of else of[name]["bits"] for of in (before, now)))
    ]
    print("\n".join(line for line, _ in lines))
    bad = sum(is_worse or not options.no_wider for _, is_worse in lines)
    was, is_now = (sum(of[name]["seconds"] for name in names if name in of) for of in (before, now))
    n_numbers = sum(len(each["bits"]) for each in now.values())
    print(
        f"{len(now)} cases, {n_numbers} numbers, {len(lines)} differ, {bad} fail; CPU {is_now:.1f} s, was {was:.1f} s"
    )
    return int(bad > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == [ANSWER]:
        for found in answer(sys.argv[2:]):
            print(json.dumps(found), flush=True)
    else:
        sys.exit(main())
