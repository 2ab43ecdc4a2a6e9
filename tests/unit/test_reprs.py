"""Everything public prints in one short line, however large it is; and in notebooks as a small table."""

from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from row_models import listed
from shorthand import check_model

import plumdp as pl
from plumdp.base.errors import MissingExtra
from plumdp.confidence.bounds import expression_bounds
from plumdp.data.counts import EventCounts
from plumdp.data.simulators import gym_environment
from plumdp.learning.learn import learn
from plumdp.model.check import Issue
from plumdp.model.events import find_events
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.parametric import Lift, RewardStructure
from plumdp.online.records import OnlineRun
from plumdp.result.certificate import Certificates
from plumdp.solver.prepared import prepare

STUDY = pl.case_study("rover:10,10")
MODEL = STUDY.model
COUNTS = pl.simulate(MODEL, STUDY.true_point, 2000, rng=1, max_steps=50)
MDP = pl.stages.instantiate(MODEL, STUDY.true_point)
P, Q = pl.parameters("p", "q")


@cache
def certificate():
    return pl.certify(MODEL, COUNTS, STUDY.objective)


def _reward(**options):
    reward = RewardStructure([1.0] * MODEL.graph.n_states, [0.0] * MODEL.graph.n_choices)
    return pl.model.Reward(reward, "min", **options)


def _conflict():
    space = pl.ParameterSpace.unit("p")
    return pl.stages.build_region(space, [P, 1 - P], [0.8, 0.8], [0.9, 0.9])


def _advice():
    study = pl.case_study("aircraft:6,4,1")
    counts = pl.simulate(study.model, study.true_point, 200, rng=1, max_steps=7)
    return pl.advise(learn(study.model, counts), study.objective)


def _log():
    (p,) = pl.parameters("p")

    model = listed({0: {"go": [(p, 1), (1 - p, 2)]}}, at="x")
    rows = pd.DataFrame({"x": [0] * 9, "action": ["go"] * 9, "next_x": [1] * 5 + [7] * 4})
    return pl.read_log(model, rows, on_unmatched="report")


def _online():
    environment = pl.online.simulator(MODEL, STUDY.true_point, rng=1, max_steps=50)
    return next(pl.learn_online(MODEL, environment, STUDY.objective, episodes=1))


LONG = sum((P**i * Q**j for i in range(9) for j in range(9)), Polynomial(0))
THINGS = {
    "Polynomial": (lambda: LONG, None),
    "PolynomialArray": (
        lambda: pl.model.tabulate(lambda x: P / (x + 1), MODEL.graph.states["x"]),
        "PolynomialArray(5,139 elements, 10 distinct: 1/2*p, 1/3*p, 1/4*p, …)",
    ),
    "ParameterSpace": (
        lambda: pl.ParameterSpace.box({"p": (0, 1), "q": (0, 0.5)}, constraints=[1 - P - Q]),
        "ParameterSpace(p in [0, 1], q in [0, 0.5], -p - q + 1 >= 0)",
    ),
    "Graph": (
        lambda: MODEL.graph,
        "Graph(5,139 states, 16,871 choices, 24,515 transitions, variables x, y, unreported, sent, tries)",
    ),
    "ParametricMDP": (
        lambda: MODEL,
        "ParametricMDP(5,139 states, 24,515 transitions, 145 expressions in t1, t2, t3, t4)",
    ),
    "RewardStructure": (lambda: _reward().reward, "RewardStructure(5,139 state rewards, 16,871 choice rewards)"),
    "Reach": (lambda: STUDY.objective, 'Reach(max, 43 target states, Pmax=? [ !"crash" U "target" ])'),
    "Reward": (lambda: _reward(steps=3, discount=0.9), "Reward(min, 3 steps, discount 9/10)"),
    "Issue": (lambda: Issue("error", "rows", "a long\nstory " * 100), None),
    "Question": (lambda: pl.model.Question(MODEL, STUDY.objective), None),
    "Lift": (lambda: Lift(MODEL, np.arange(MODEL.graph.n_choices)), None),
    "Events": (lambda: find_events(MODEL), None),
    "EventCounts": (
        lambda: EventCounts(*np.zeros((2, len(find_events(MODEL))), dtype=np.int64), "independent"),
        None,
    ),
    "TransitionCounts": (lambda: COUNTS, None),
    "Pilot": (lambda: COUNTS.pilot, None),
    "PilotEnd": (lambda: COUNTS.pilot.end, "PilotEnd('planned')"),
    "Trajectories": (
        lambda: pl.data.record(MODEL, STUDY.true_point, 20, rng=1, max_steps=50),
        "Trajectories(20 runs, 1,000 steps)",
    ),
    "WholeRuns": (
        lambda: pl.data.read_whole_runs(
            MODEL, pd.DataFrame(pl.data.record(MODEL, STUDY.true_point, 3, rng=1, max_steps=50).columns())
        ),
        "WholeRuns(3 runs, 150 steps)",
    ),
    "LogFormat": (lambda: pl.LogFormat(steps="weekly"), None),
    "Log": (_log, "Log(9 log rows: 5 matched, 4 rejected, 5 steps)"),
    "IngestionReport": (
        lambda: _log().report,
        "IngestionReport(9 log rows: 5 matched, 4 rejected)",
    ),
    "ExpressionBounds": (lambda: expression_bounds(MODEL, COUNTS), None),
    "Learned": (lambda: learn(MODEL, COUNTS), None),
    "Polytope": (lambda: learn(MODEL, COUNTS, confidence_set="interval").region, None),
    "Conflict": (_conflict, None),
    "IntervalMDP": (lambda: MDP, "IntervalMDP(5,139 states, 24,515 transitions, 145 intervals)"),
    "IntervalModel": (lambda: pl.exchange.interval_model(learn(MODEL, COUNTS)), None),
    "Solution": (lambda: pl.stages.solve(MDP, STUDY.objective), None),
    "Prepared": (lambda: prepare(MDP, STUDY.objective), None),
    "PolicyTable": (lambda: certificate().policy, None),
    "Certificate": (certificate, None),
    "ModelCheck": (lambda: check_model(MODEL, COUNTS), "ModelCheck(not rejected, p = 1, confidence 0.999)"),
    "Advice": (_advice, None),
    "Decision": (lambda: pl.decide(learn(MODEL, COUNTS), 'P>=0.5 [ !"crash" U "target" ]'), None),
    "OnlineRecord": (_online, None),
    "OnlineRun": (lambda: OnlineRun.of([_online()], MODEL, STUDY.objective), None),
    "CaseStudy": (lambda: STUDY, None),
    "DataError": (lambda: pl.DataError("counts"), None),
    "ModelError": (lambda: pl.ModelError("model"), None),
    "MissingExtra": (lambda: MissingExtra("storm"), None),
}


def test_the_table_holds_every_public_type():
    """Those of the root and of the namespaces, and those that functions return and nobody makes."""
    spaces = (pl, pl.model, pl.data, pl.stages, pl.exchange, pl.online)
    types = {name for space in spaces for name in dir(space) if isinstance(getattr(space, name), type)}
    assert types < set(THINGS)


@pytest.mark.parametrize("name", THINGS)
def test_every_public_thing_prints_in_one_short_line(name):
    make, expected = THINGS[name]
    thing = make()
    assert type(thing).__name__ == name
    text = repr(thing)
    assert text.startswith(f"{name}(")
    assert text.endswith(")")
    assert len(text) < 200
    assert "\n" not in text
    assert expected in (None, text)


OTHERS = {
    "simulator": lambda: pl.online.simulator(MODEL, STUDY.true_point, rng=1, max_steps=50),
    "gym": lambda: gym_environment(MODEL, pl.data.as_env(MODEL, STUDY.true_point), rng=1),
    "environment": lambda: pl.data.as_env(MODEL, STUDY.true_point),
    "expressions": lambda: MODEL.expressions,
    "many parameters": lambda: pl.ParameterSpace.simplex(*(f"a{i}" for i in range(100))),
    "ellipsoid": lambda: learn(MODEL, COUNTS, confidence_set="ellipsoid").region,
    "no parameters": lambda: pl.ParameterSpace.unit(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_public_functions_return_prints_in_one_short_line(name):
    text = repr(OTHERS[name]())
    assert len(text) < 200
    assert "\n" not in text


class Cells(HTMLParser):
    """Collects the texts of the cells of tables, and checks that tags are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.cells = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


SHOWN = ("ParametricMDP", "Log", "TransitionCounts", "PolicyTable", "Solution", "Certificate", "OnlineRun", "Decision")


@pytest.mark.parametrize("name", SHOWN)
def test_notebooks_show_a_small_table(name):
    parser = Cells()
    parser.feed(THINGS[name][0]()._repr_html_())
    assert not parser.open
    assert 4 <= len(parser.cells) < 100


def test_notebooks_show_several_certificates_as_one_table():
    both = Certificates([certificate(), certificate()])
    parser = Cells()
    parser.feed(both._repr_html_())
    assert parser.cells[0] == f"{certificate().claim.objective}, confidence 0.999"  # which both have
    assert parser.cells[1:5] == ["relaxation", "lower", "upper", "status"]
    assert parser.cells[5:9] == ["coupled", *certificate().claim.printed_bounds, "certified"]
    assert both == [certificate(), certificate()]
    assert "<table>" in Certificates()._repr_html_()


def test_names_are_escaped_in_notebooks():
    def step(s):
        return {"<b>go</b>": [(1, s)]}

    model = pl.explore(step, {"x": 0}, space=pl.ParameterSpace.unit(), labels={"<i>": lambda s: True})
    policy = pl.PolicyTable(model.graph, [0])
    assert "<b>" not in policy._repr_html_()
    assert "<i>" not in model._repr_html_()
