"""Every claim carries and prints the assumptions that it needs, whichever verb or command made it, and no others.

``NEEDED`` says which sentence goes with which condition, once. ``KINDS`` are small data of each kind, with the
conditions that hold for them, and ``VERBS`` and ``COMMANDS`` all public ways to make a claim of them.
"""

import inspect
import json
import re
from functools import cache
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from command_line import plumdp
from in_format import in_format
from row_models import listed
from shorthand import certify_all, check_model, compare, improve
from tiers import size

import plumdp as pl
from plumdp.base.vocabulary import Assumption
from plumdp.certifying import pipeline
from plumdp.certifying.difference import Difference
from plumdp.cli import COMMANDS as ALL_COMMANDS
from plumdp.data import log_pilots
from plumdp.learning import assumptions
from plumdp.online.records import OnlineRun
from plumdp.reporting.read import explain_result
from plumdp.result.show import Page, as_text

GOAL, COST = 'Pmax=? [ F "goal" ]', 'R{"cost"}min=? [ F x>0 ]'
CHEAP = 'R{"cost"}<=3 [ F x>0 ]'
p, q, r = pl.parameters("p", "q", "r")


def model(*, cost=2, rows=None, names=("p", "q"), **more):
    """Return a model in which actions a and b lead to the goal, or not."""

    by_name = {"a": [(p, 1), (1 - p, 2)], "b": [(q, 1), (1 - q, 2)]}
    space = None if rows else pl.ParameterSpace.box(dict.fromkeys(names, (0, 1)) | more)
    rewards = {"cost": lambda s, a: cost if a == "a" else int(a == "b")}
    rows = {name: [1, 2] for name in rows} if rows else by_name
    return listed({0: rows}, space, at="x", labels={"goal": 1}, choice_rewards=rewards)


MODEL = model()
PAID = model(cost=r, names=("p", "q"), r=(0, 4))
TABLE = model(rows={"a": (), "b": ()})
RUNS = np.arange(300)
LOG = pd.DataFrame(
    {
        "episode": RUNS,
        "step": 0,
        "x": 0,
        "action": np.where(RUNS % 2, "a", "b"),
        "next_x": np.where(RUNS % 7 < 3 + RUNS % 2, 1, 2),
        "cost": 1.0 + RUNS % 3,
    }
)
ENDS = LOG.assign(x=LOG.next_x, step=1, action=None)
WHOLE = pd.concat([LOG, ENDS]).drop(columns=["next_x", "cost"])
COUNTS = pl.read_log(MODEL, LOG).counts.counts
BROKEN = pd.concat([LOG, LOG.head(9), LOG.head(5).assign(episode=range(900, 905), action="c")])
ORDERED = {"order": "runs"}

LATER = LOG.assign(episode=LOG.episode + 500)
FROM_LOG = pl.data.model_from_log(
    LOG.assign(episode=LOG.episode + 1000),
    pl.LogFormat(states="x"),
    initial=0,
    ends=lambda s: s.x > 0,
    labels={"goal": lambda s: s.x == 1},
    choice_rewards={"cost": lambda s, a: 2 if a == "a" else int(a == "b")},
    out_of_table={"cost": (0, 4)},
)


def both(**options):
    return [pl.read_log(MODEL, each, **in_format(**options)).counts for each in (LOG, LATER)]


KINDS = {
    "simulated": lambda: (MODEL, pl.simulate(MODEL, {"p": 0.6, "q": 0.5}, 300, rng=1, max_steps=2), "planned"),
    "independent": lambda: (MODEL, pl.TransitionCounts(MODEL.graph, COUNTS, "independent"), "fixed given"),
    "trajectories": lambda: (MODEL, pl.read_log(MODEL, LOG, sampling="trajectories"), "planned alike given"),
    "trajectories in order": lambda: (
        MODEL,
        pl.read_log(MODEL, LOG, sampling="trajectories", **in_format(**ORDERED)),
        "planned given runs",
    ),
    "adaptive": lambda: (MODEL, pl.read_log(MODEL, LOG), "given"),
    "in order": lambda: (MODEL, pl.read_log(MODEL, LOG, **in_format(**ORDERED)), "open given runs"),
    "expected": lambda: (
        MODEL,
        pl.read_log(MODEL, LOG, expected=300, **in_format(**ORDERED)),
        "open given runs expected",
    ),
    "rewards": lambda: (PAID, pl.read_log(PAID, LOG), "given rewards"),
    "model_tolerance": lambda: (MODEL, pl.read_log(MODEL, LOG), "given model_tolerance"),
    "table": lambda: (TABLE, pl.read_log(TABLE, LOG), "given table"),
    "table in order": lambda: (TABLE, pl.read_log(TABLE, LOG, **in_format(**ORDERED)), "given table open runs"),
    "table of samples": lambda: (TABLE, pl.TransitionCounts(TABLE.graph, COUNTS, "independent"), "given table fixed"),
    "broken": lambda: (MODEL, pl.read_log(MODEL, BROKEN, on_unmatched="report"), "given copies unreadable"),
    "broken, with rewards": lambda: (
        PAID,
        pl.read_log(PAID, BROKEN, on_unmatched="report"),
        "given copies unreadable rewards",
    ),
    "censored": lambda: (MODEL, pl.read_log(MODEL, WHOLE[(WHOLE.step == 0) | (WHOLE.episode > 9)]), "given cut"),
    "censored, as said": lambda: (
        MODEL,
        pl.read_log(MODEL, WHOLE[(WHOLE.step == 0) | (WHOLE.episode > 200)], pl.LogFormat(censoring="unrelated")),
        "given said",
    ),
    "times": lambda: (MODEL, pl.read_log(MODEL, WHOLE.assign(step=10 * WHOLE.step)), "given times"),
    "numbered actions": lambda: (
        MODEL,
        pl.read_log(MODEL, LOG.assign(action=(LOG.action == "b").astype(int))),
        "given numbers",
    ),
    "out_of_table": lambda: (
        FROM_LOG,
        pl.read_log(FROM_LOG, LOG, **in_format(**ORDERED)),
        "given table open runs out_of_table",
    ),
    "sum in order": lambda: (MODEL, sum(both(**ORDERED)), "given open runs sum"),
    "planned sum": lambda: (
        MODEL,
        pl.TransitionCounts.planned_sum(*both(sampling="trajectories")),
        "given planned alike both",
    ),
    "nothing fits": lambda: (
        model(names=("p",), q=(0.9, 1)),
        pl.read_log(model(names=("p",), q=(0.9, 1)), LOG),
        "given contradicted",
    ),
}
OPTIONS = {
    "model_tolerance": {"model_tolerance": 0.01},
}

BETS = {"planned", "open", "fixed"}
TEST = "(for the test of the model: )?"
FIRST = (
    TEST + r"(the first [\d,]+ steps? of the data decided how the others .*"
    r"|earlier data decided how later ones are used: .*)"
)
NEEDED = {  # sentence → when a claim needs it: where all these words hold, and none after a minus
    "the model has every transition that can happen, and where a step leads .*": "-test -out_of_table",
    "where a step leads depends only on the state and the action, .*": "out_of_table -test",
    'the reward "cost" of a step in a state that the table does not have lies between 0 and 4': "out_of_table paid",
    "the successors of each row in the table come from other data than these; .*": "out_of_table",
    "the model is correct for some values of its parameters": "-table -model_tolerance -test -contradicted",
    "the model is correct for .*, up to 0.01 for each state and action .*": "model_tolerance -test",
    "rows with the same name have the same probabilities, .*": "table -test",
    "the model .with parameters, .* all other options were chosen before looking at these data": "",
    "you fixed the amount of data before looking at any; .*": "planned",
    "you fixed the number of samples of each state and action before looking at any": "fixed bets",
    FIRST: "bets -open",
    ".*; the runs are independent, all under one policy, and were numbered without looking at how they .*": "alike",
    ".*; both parts were planned before looking at either, and neither depends on the other": "both",
    ".*; counts were added in the order in which their data were collected, in parts .*": "bets sum",
    "for the test of the model: how data were divided into the counts that were added was decided before .*": "sum",
    "you chose the policy before looking at these data, .*": "prespecified",
    ".*; which these are was drawn at random .*: the confidence is over data and draw": "fixed bets",
    TEST + "the data that came first decided how later ones are used, .*": "bets open",
    ".*; the runs of the log are numbered in the order in which they were made, .*": "bets runs",
    ".*; you expected 300 runs, or rows, before there were any": "expected",
    "the objectives were chosen before looking at the data": "placed -unasked",
    "the mean reward of a step depends only on its state and action, .*": "rewards",
    r"every value of cost lies in \[0, 4\], also those that were not seen": "rewards",
    "no step is in the data twice, .*": "given",
    "actions were chosen .* about the outcome of a step than the state tells .*": "given -rewards",
    "actions were chosen .* about the outcome of a step or its reward than the state tells .*": "given rewards",
    r"no step is missing because of its outcome( \(.*)?": "given -rewards",
    "no step is missing because of its outcome or its reward": "given rewards",
    r"no step is missing .* \(10 of 300 runs end before the outcome of their last action\)": "cut",
    "that 201 of 300 runs end before .* has nothing to do with that outcome .*": "said",
    r"rows of the log with the same run, step and values are copies of one row \(9 rows were left out\)": "copies",
    "the rows of each run follow one another in the order of column step, .*": "times",
    "actions are numbered in the order of the model: .*": "numbers",
    r"whether a row .* does not depend on the outcome of a step \(5 rows were left out\)": "unreadable -rewards",
    r"whether a row .* the outcome of a step or its reward \(5 rows were left out\)": "unreadable rewards",
    "practice takes each action as often as .*; what is done today may be another policy, .*": "practice",
}


def is_needed(sentence, now):
    """Return whether the condition of a sentence holds."""
    holds = now | ({"bets"} if now & BETS else set())
    has_cells = "given" in now and not now & {"table", "model_tolerance"}  # bets without an order
    holds |= {"placed"} if now & BETS or has_cells else set()
    return all((word[1:] not in holds) if word[0] == "-" else word in holds for word in NEEDED[sentence].split())


def require_needed(printed, now, where):
    """Compare what is printed with what is needed, sentence by sentence."""
    printed = [*dict.fromkeys(printed)]
    for sentence in NEEDED:
        found = [text for text in printed if re.fullmatch(sentence, text)]
        assert bool(found) == is_needed(sentence, now), (where, sentence, printed)
        assert len(found) <= 1, (where, found)
    unknown = [text for text in printed if not any(re.fullmatch(sentence, text) for sentence in NEEDED)]
    assert not unknown, (where, unknown)


def of_text(text):
    return [line.strip() for line in re.findall(r"^ *assuming(?: model| data| plan)?  +(.*)$", text, re.MULTILINE)]


def of_html(page):
    return [unescape(each) for each in re.findall(r"<td[^>]*>assuming(?: \w+)?</td><td[^>]*>(.*?)</td>", page)]


def of_report(page):
    section = re.search(r'<section id="assumptions">.*?</section>', page, re.DOTALL)
    found = re.findall(r"<li>(.*?)</li>", section[0] if section else "")
    return [unescape(each).replace("\N{NO-BREAK SPACE}", " ") for each in found]


def of_json(content):
    return [text for each in (content if isinstance(content, list) else [content]) for text in each["assumptions"]]


def renderings(result):
    """Return the assumptions that a result has in text, in a notebook and as JSON."""
    several = list(result) if isinstance(result, list) else [result]
    return {
        "text": of_text(
            "\n".join(as_text(each, in_full=True) if hasattr(each, "page") else str(each) for each in several)
        ),
        "html": of_html(result._repr_html_()),
        "json": [text for each in several for text in of_json(each.to_dict())],
    }


def require_all(result, now, *where):
    """Compare what each rendering of a result has with what is needed."""
    for form, printed in (result if isinstance(result, dict) else renderings(result)).items():
        require_needed(printed, now, (*where, form))


def case_of(kind):
    """Return a kind of data, with what was learned from it."""
    made, counts, conditions = KINDS[kind]()
    options = {"confidence": 0.9} | OPTIONS.get(kind, {})
    asked, now = [GOAL, COST], {*conditions.split()}
    learned = pl.learn(made, counts, objectives=asked, **options)
    return SimpleNamespace(model=made, counts=counts, now=now, options=options, asked=asked, learned=learned)


@pytest.fixture(scope="module")
def case():
    return cache(case_of)


VERBS = {  # name → what it returns, and the conditions that the verb adds
    "learn": lambda case: ({"html": of_html(case.learned._repr_html_())}, "paid"),
    "certify": lambda case: (pl.certify(case.model, case.counts, GOAL, **case.options), ""),
    "certify_each": lambda case: (pl.certify_each(case.model, {"one": case.counts}, GOAL, **case.options), ""),
    "certify_all": lambda case: (certify_all(case.model, case.counts, case.asked, **case.options), "paid"),
    "compare": lambda case: (compare(case.model, case.counts, GOAL, **case.options), ""),
    "conclude": lambda case: (pl.conclude(case.learned, GOAL), ""),
    "decide": lambda case: (pl.decide(case.learned, 'P>=0.2 [ F "goal" ]'), ""),
    "difference": lambda case: (pl.difference(case.learned, GOAL, "a", "b"), ""),
    "check_model": lambda case: (check_model(case.model, case.counts, confidence=0.9), "test unasked"),
    "certify_within": lambda case: (pl.decisions.certify_within(case.learned, GOAL, subject_to=[CHEAP]), "paid"),
    "improve": lambda case: (improve(case.model, case.counts, GOAL, **case.options), "practice"),
    "net_benefit": lambda case: (pl.decisions.net_benefit(case.learned, GOAL, COST, willingness=(0, 9)), "paid"),
}  # fmt: skip
BELOW = {"learn_online", "write_report", "write_result", "explain", "explain_result", "read_result", "interval_model"}
BELOW |= {"watch"}  # in test_watch.py
WITHOUT_CLAIM = {  # what reads, makes and writes models, data, policies and numbers, estimates, and checks of results
    "plumdp": "advise case_study draw explore explore_batch parameters parse_property read_counts read_log read_model "
    "read_policy simulate start unknown with_gaps write_counts",
    "decisions": "make_witness runs_to_tell verify",
    "online": "read_record simulator",
    "exchange": "model_at read_interval_model write_interval_model write_policy",
}


def test_every_public_verb_is_known_to_make_a_claim_or_none():
    for room, names in WITHOUT_CLAIM.items():
        module = pl if room == "plumdp" else getattr(pl, room)
        public = {name for name in dir(module) if name[0] != "_" and inspect.isfunction(getattr(module, name))}
        assert public <= {*names.split(), *VERBS, *BELOW}, room


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_have_the_assumptions_that_they_need(case, kind):
    of_kind = case(kind)
    require_all(pl.conclude(of_kind.learned, GOAL), of_kind.now, kind)


def test_bets_on_a_policy_of_ones_own_rest_on_ones_word(case):
    of_kind = case("table in order")
    found = pl.certify(of_kind.model, of_kind.counts, GOAL, policy="a", prespecified=True, confidence=0.9)
    require_all(found, of_kind.now | {"prespecified"})


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", [*KINDS][:: size(12, 1)])
def test_every_claim_has_the_assumptions_that_it_needs(case, verb, kind):
    of_kind = case(kind)
    result, more = VERBS[verb](of_kind)
    now = of_kind.now | {*more.split()}
    now -= {"model_tolerance"} if verb == "check_model" else set()
    require_all(result, now, kind, verb)


# errors planted in what is said


def differences_print_none(monkeypatch):
    monkeypatch.setattr(Difference, "page", lambda self: Page(self.headline))


def practice_is_not_said_to_be_an_estimate(monkeypatch):
    monkeypatch.setattr(pipeline, "about_practice", lambda question, counts, policy: ())


def runs_need_not_be_alike(monkeypatch):
    said = Assumption("the runs of the log were numbered without looking at how they went")
    monkeypatch.setitem(log_pilots.RESTS_ON, None, said)


def values_may_lie_anywhere(monkeypatch):
    monkeypatch.setattr(assumptions, "_of_rewards", lambda model: [assumptions._MEANS])


def steps_may_be_there_twice(monkeypatch):
    monkeypatch.setattr(assumptions, "_ONCE", "")


def the_amount_is_always_planned(monkeypatch):
    monkeypatch.setattr(assumptions, "_of_sampling", lambda counts, guarantee: [assumptions._PLANNED])


PLANTED = {
    differences_print_none: ("difference", "adaptive"),
    practice_is_not_said_to_be_an_estimate: ("improve", "adaptive"),
    runs_need_not_be_alike: ("certify", "trajectories"),
    values_may_lie_anywhere: ("certify", "rewards"),
    steps_may_be_there_twice: ("certify", "adaptive"),
    the_amount_is_always_planned: ("certify", "in order"),
}


@pytest.mark.parametrize("error", PLANTED, ids=lambda error: error.__name__)
def test_a_planted_error_is_found(monkeypatch, error):
    error(monkeypatch)
    verb, kind = PLANTED[error]
    of_kind = case_of(kind)
    result, more = VERBS[verb](of_kind)
    with pytest.raises(AssertionError):
        require_all(result, of_kind.now | {*more.split()}, kind, verb)


# claims that are made in other ways


def test_learning_while_acting_says_what_it_rests_on(tmp_path):
    """Nothing but the model is assumed of the data: plumdp chose the actions, and counted every step."""
    needed = {"open", "placed"}
    environment = pl.online.simulator(MODEL, {"p": 0.6, "q": 0.5}, rng=1, max_steps=2)
    records = list(pl.learn_online(MODEL, environment, GOAL, episodes=20, spacing=3.0))
    run = OnlineRun.of(records, MODEL, GOAL)
    run.save(tmp_path / "record.json")
    for where, each in {"fresh": run, "kept": pl.online.read_record(tmp_path / "record.json")}.items():
        require_needed(of_html(each._repr_html_()), needed, where)
        require_needed(each.assumptions, needed, where)
    require_needed(pl.conclude(records[-1].learned, GOAL).rests_on.assumptions, needed, "certificate")


@pytest.mark.night
def test_reports_say_what_comparisons_rest_on(case, tmp_path):
    of_kind = case("broken")
    found = improve(of_kind.model, of_kind.counts, GOAL, over="practice", confidence=0.9)
    pl.write_result(found.compared, tmp_path / "result", model=of_kind.model, counts=of_kind.counts)
    pl.write_report(*explain_result(tmp_path / "result", parts=["policy"]), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    require_needed(of_report(page), of_kind.now | {"practice"}, "report")


# the command line

COINS = """
from plumdp import ParameterSpace, explore, parameters
p, q = parameters("p", "q")
def step(s):
    if s.x:
        return {"stay": [(1, s)]}
    ends = s._replace(x=1), s._replace(x=2)
    return {name: [(f, ends[0]), (1 - f, ends[1])] for name, f in (("a", p), ("b", q))}
costs = {"cost": lambda s, a: {"a": 2, "b": 1, "stay": 0}[a]}
space = ParameterSpace.unit("p", "q")
model = explore(step, {"x": 0}, space=space, labels={"goal": lambda s: s.x == 1}, choice_rewards=costs)
"""
LEARNED = ("coins.py", "log.csv", "--keep-going", "--confidence", "0.9")
CLAIMS = {  # command → further arguments, and the conditions that it adds
    "certify": [
        (("-p", GOAL), ""),
        (("-p", 'P>=0.2 [ F "goal" ]'), ""),
        (("-p", GOAL, "-p", COST, "--willingness", "0:9"), ""),
        (("-p", GOAL, "--subject-to", CHEAP), ""),
        (("-p", GOAL, "--relaxation", "all"), ""),
        (("-p", GOAL, "--policy", "a"), ""),
        (("-p", GOAL, "--policy", "a", "--against", "b"), ""),
        (("-p", GOAL, "--against", "practice"), "practice"),
        (("-p", GOAL, "--against", "a"), ""),
    ],
    "check-model": [((), "test unasked")],
    "report": [],
    "watch": [],  # in test_watch.py
}
NO_CLAIM = "start info simulate count advise solve export verify plot warmup"


def test_every_command_is_known_to_make_a_claim_or_none():
    assert {*ALL_COMMANDS} == {*CLAIMS, *NO_CLAIM.split()}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "coins.py").write_text(COINS)
    BROKEN.drop(columns="cost").to_csv(folder / "log.csv", index=False)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "asked"), [(name, each) for name in CLAIMS for each in CLAIMS[name][-size(1, 9) :]]
)
def test_every_command_prints_what_its_claims_rest_on(files, monkeypatch, command, asked):
    monkeypatch.chdir(files)
    monkeypatch.setenv("COLUMNS", "9999")
    arguments, more = asked
    now = {"given", "copies", "unreadable", *more.split()}
    ended = plumdp(command, *LEARNED, *arguments, "--verbose")
    assert ended.code in (0, 1, 4), ended.err
    require_needed(of_text(ended.out), now, "text")
    content = json.loads(plumdp(command, *LEARNED, *arguments, "--json").out)
    require_needed(of_json(content), now, "json")


@pytest.mark.slow
def test_commands_with_files_of_their_own_print_what_their_claims_rest_on(files, monkeypatch):
    monkeypatch.chdir(files)
    monkeypatch.setenv("COLUMNS", "9999")
    now = {"given", "copies", "unreadable"}
    assert plumdp("certify", *LEARNED, "-p", GOAL, "--against", "practice", "-o", "result").code in (0, 4)
    assert plumdp("report", "result").code == 0
    page = (files / "result" / "report.html").read_text(encoding="utf-8")
    require_needed(of_report(page), now | {"practice"}, "report")
