"""A policy that is given is bet on if its user says that it was chosen before the data, and never otherwise."""

import inspect
from functools import cache

import numpy as np
import pandas as pd
import pytest
from command_line import plumdp as run
from in_format import in_format
from shorthand import compare, improve

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from plumdp.decisions import net_benefit
from plumdp.explaining.explain import learn_again
from plumdp.learning.learned import value_directions
from plumdp.model import Question
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.tables.table_set import TableSet

STUDY = pl.case_study("parallel:5")
MODEL, ASKED = STUDY.model, STUDY.objective
GIVEN = "you chose the policy before looking at these data (as you stated)"


@pytest.fixture(scope="module")
def counts():
    return pl.simulate(MODEL, STUDY.true_point, 100_000, rng=2, max_steps=STUDY.max_steps + 1)


@pytest.fixture(scope="module")
def policies():
    """Return two policies that other data led to, so that these were not looked at."""
    before = pl.simulate(MODEL, STUDY.true_point, 100_000, rng=1, max_steps=STUDY.max_steps + 1)
    learned = pl.learn(MODEL, before, objectives=[ASKED])
    return [pl.conclude(learned, ASKED, relaxation=each).policy for each in ("coupled", "interval")]


def width(counts, policies, question):
    found = pl.difference(pl.learn(MODEL, counts, objectives=[question]), ASKED, *policies)
    return found.upper - found.lower


@pytest.mark.night
def test_a_difference_that_is_prespecified_has_narrower_bounds(counts, policies):
    prespecified = Question(MODEL, ASKED, *policies)
    assert width(counts, policies, prespecified) < 0.9 * width(counts, policies, ASKED)
    assert width(counts, policies, Question(MODEL, ASKED, against=policies[1])) < width(counts, policies, ASKED)


def test_bets_are_placed_across_the_difference_of_both_gradients(policies):
    """Central differences of the values at points beside the point are the oracle of the gradient itself."""
    point = np.array([STUDY.true_point[name] for name in MODEL.space.names], dtype=float)
    (direction,) = value_directions([Question(MODEL, ASKED, *policies)], {})(point)
    for i, step in enumerate(1e-5 * np.eye(len(point))):
        values = [
            [policy_gradient(MODEL, each, ASKED, at)[0] for each in policies] for at in (point + step, point - step)
        ]
        slope = (np.subtract(*values[0]) - np.subtract(*values[1])) / 2e-5
        assert direction.gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-6)
    assert direction.policy is None
    assert direction.text.startswith("a difference in the value of ")


@pytest.mark.night
def test_the_result_says_that_policies_were_chosen_before_and_is_not_learned_again_without_them(counts):
    learned = pl.learn(MODEL, counts, objectives=[Question(MODEL, ASKED, against="uniform")])
    certificate = pl.conclude(learned, ASKED)
    assert GIVEN in certificate.rests_on.assumptions
    assert GIVEN not in pl.certify(MODEL, counts, ASKED).rests_on.assumptions
    with pytest.raises(pl.DataError, match="the question has no text, so that it cannot be learned again"):
        learn_again(MODEL, counts, certificate)


@pytest.mark.slow
def test_the_same_difference_is_prespecified_once_and_others_beside_it():
    one, other = Question(MODEL, ASKED, against="uniform"), Question(MODEL, ASKED, policy="uniform")
    counts = pl.simulate(MODEL, STUDY.true_point, 100, rng=1, max_steps=STUDY.max_steps + 1)
    learned = pl.learn(MODEL, counts, objectives=[ASKED, one, other])
    assert len(learned.bounds.directions) == 3
    with pytest.raises(pl.ModelError, match="this is asked twice"):
        pl.learn(MODEL, counts, objectives=[one, Question(MODEL, ASKED, against="uniform")])
    with pytest.raises(pl.ModelError, match="choose 'uniform' or one action"):
        Question(MODEL, ASKED, against="no such action")


REACH, SAFE, FEW, MANY = 'Pmax=? [ F "goal" ]', 'Pmax=? [ G !"bad" ]', 4, 26
SAID = "you chose the policy before looking at these data, or from those before the first bets only (as you stated)"
WHY = "bets are placed on policies that the first data name, and on those that you pre-specify"
NAMES = [f"p{i}" for i in range(2 * MANY)]
COINS = pl.parameters(*NAMES)


def walk(n, row, **options):
    """Return a walk along n states, with two ways to go on or out in each."""

    def step(state):
        if state.x >= n:
            return {"stay": [(1, state)]}
        on, out = state._replace(x=state.x + 1), state._replace(x=n + 1)
        return {name: row(on, out, COINS[2 * state.x + i]) for i, name in enumerate(("left", "right"))}

    labels = {"goal": lambda s: s.x == n, "bad": lambda s: s.x > n}
    return pl.explore(step, {"x": 0}, labels=labels, **options)


@cache
def table():
    return walk(FEW, lambda on, out, _: pl.unknown(on, out))


@cache
def coins():
    """Return a model with so many parameters that it is seen as a table."""
    return walk(MANY, lambda on, out, p: [(p, on), (1 - p, out)], space=pl.ParameterSpace.unit(*NAMES))


@cache
def point():
    """Return probabilities of the table, in which one way is as good as the other."""
    graph, bad = table().graph, table().labels["bad"]
    is_row = np.diff(graph.first_transition)[graph.choice_of_transition()] == 2
    return np.where(is_row, np.where(bad[graph.successor], 0.1, 0.9), 1.0)


@cache
def data(make=table, n=20_000):
    """Return data of a model in which one way is as good as the other."""
    model = make()
    if make is coins:
        return pl.simulate(model, dict.fromkeys(NAMES, 0.98), n, rng=n, max_steps=MANY)
    return pl.simulate(model, point(), n, rng=n, max_steps=FEW, stop=model.labels["goal"] | model.labels["bad"])


@cache
def learned(make):
    return pl.learn(make(), data(make), objectives=[REACH, SAFE])


def mine(make):
    """Return the policy that takes what went worst in all data, which no first data name."""
    counts, bad = data(make), make().labels["bad"]
    graph, worst = counts.graph, {}
    for choice in np.argsort(graph.sum_by_choice(counts.counts * bad[graph.successor]) / np.maximum(counts.visits, 1)):
        worst[int(graph.states["x"][graph.state_of_choice()[choice]])] = graph.action_names[graph.action[choice]]
    return lambda state: worst[state.x]


VERBS = {
    "certify": lambda make: pl.certify(make(), data(make), REACH, policy=mine(make)),
    "compare": lambda make: compare(make(), data(make), REACH, policy=mine(make))[-1],
    "conclude": lambda make: pl.conclude(learned(make), REACH, policy=mine(make)),
    "decide": lambda make: pl.decide(learned(make), 'P>=0.9 [ F "goal" ]', policy=mine(make)).certificate,
    "difference": lambda make: pl.difference(learned(make), REACH, "left", mine(make)).second,
    "improve": lambda make: improve(make(), data(make), REACH, over=mine(make)).difference.second,
    "net_benefit": lambda make: (
        net_benefit(learned(make), REACH, SAFE, willingness=(0, 1), strategies={"mine": mine(make)})
        .strategies[0]
        .effect
    ),
}
DRAW_OR_ADVISE = {"advise", "forest", "model", "region"}  # nothing is certified of the policy


@pytest.mark.slow
def test_every_public_function_that_bounds_the_value_of_a_given_policy_is_tried():
    rooms = [pl, *(each for _, each in inspect.getmembers(pl, inspect.ismodule))]
    public = set()
    for name, function in (pair for room in rooms for pair in inspect.getmembers(room, inspect.isfunction)):
        parameters = inspect.signature(function).parameters
        is_given = any("Policy" in str(each.annotation) for each in parameters.values())
        if is_given and parameters.keys() & {"learned", "counts"}:
            public.add(name)
    assert public - DRAW_OR_ADVISE == VERBS.keys()


@pytest.mark.parametrize("verb", VERBS)
def test_a_policy_that_the_data_chose_is_not_bet_on_without_the_word(verb):
    """Its bounds are those that hold for all policies, and the certificate says what bets would need."""
    require_no_bets(VERBS[verb](table))


@pytest.mark.night
def test_models_that_are_seen_as_tables_bet_on_given_policies_with_the_word_only():
    require_no_bets(VERBS["certify"](coins))
    require_bets(pl.certify(coins(), data(coins), REACH, policy="left", prespecified=True))


def require_no_bets(found):
    assert not any("as you stated" in each for each in found.rests_on.assumptions)
    assert found.how.not_coupled.startswith(WHY)
    assert "statistics" not in found.beside.gap


def require_bets(found):
    assert SAID in found.rests_on.assumptions
    assert found.beside.gap["statistics"] > 0


@pytest.mark.slow
def test_a_policy_that_is_prespecified_is_bet_on_and_the_certificate_repeats_the_word():
    counts, model = data(), table()
    alone = pl.certify(model, counts, REACH, policy="left")
    for found in (
        pl.certify(model, counts, REACH, policy="left", prespecified=True),
        pl.certify(model, counts, Question(model, pl.parse_property(REACH, model), policy="left")),
        compare(model, counts, REACH, policy="left", prespecified=True)[-1],
        improve(model, counts, REACH, over="left", prespecified=True).difference.second,
    ):
        require_bets(found)
        assert found.upper - found.lower < alone.upper - alone.lower


def test_the_word_needs_a_policy_and_practice_needs_no_word():
    model, counts = table(), data()
    with pytest.raises(pl.DataError, match="prespecified=True: this is about a policy of your own"):
        pl.certify(model, counts, REACH, prespecified=True)
    with pytest.raises(pl.DataError, match="prespecified=True: practice is what the data do"):
        improve(model, counts, REACH, prespecified=True)


def test_practice_is_bet_on_by_the_first_data_and_nobody_has_to_vouch_for_it():
    better = improve(table(), data(), REACH)
    assert better.difference.second.beside.gap["statistics"] > 0
    assert not any("as you stated" in each for each in better.assumptions)


@pytest.mark.slow
@pytest.mark.parametrize("make", [table, lambda: pl.case_study("betting:5").model])
def test_a_policy_of_a_certificate_is_refused_as_prespecified_to_its_own_data(make, tmp_path):
    """Also from its folder, from its file alone, and of counts that other data were added to."""
    study = pl.case_study("betting:5")
    is_table = make is table
    model, asked = (table(), REACH) if is_table else (study.model, study.objective)
    days = [data(), data(n=1000)] if is_table else []
    days = days or [pl.simulate(model, study.true_point, 1000, rng=i, max_steps=6) for i in (1, 2)]
    found = pl.certify(model, days[0], asked)
    pl.write_result(found, tmp_path / "result")
    saved = pl.read_result(tmp_path / "result", model).policy
    alone = pl.read_policy(model, tmp_path / "result" / "policy.csv")
    whole = days[0] + days[1]
    for policy in (found.policy, saved, alone):
        for counts in (days[0], whole):
            with pytest.raises(
                pl.DataError, match=r"comes from a certificate of .* cannot be pre-specified for these data"
            ):
                pl.certify(model, counts, asked, policy=policy, prespecified=True)
    other = pl.certify(model, days[1], asked, policy=found.policy, prespecified=True)
    assert any("as you stated" in each for each in other.rests_on.assumptions)


@pytest.mark.slow
def test_a_policy_that_data_before_the_first_bets_chose_may_be_prespecified_to_a_table_alone():
    """Of 20,000 planned runs the first 4,096 come before the bets; bets on parameters begin after 16 runs."""
    model, counts = table(), data()
    first = counts.before_bets()
    assert first.parts[0].name.startswith("the first 4,096 runs or rows of ")
    assert np.array_equal(first.counts, counts.pilot.moments[counts.pilot.first_bets])
    mine = pl.certify(model, first, REACH, relaxation="interval").policy
    found = pl.certify(model, counts, REACH, policy=mine, prespecified=True)
    assert found.beside.gap["statistics"] > 0
    early = data(n=1000)
    shorter = TransitionCounts(model.graph, early.counts, "trajectories", early.pilot, parts=counts.parts)
    with pytest.raises(pl.DataError, match="cannot be pre-specified"):  # bets begin after 64 of 1,000 runs
        pl.certify(model, shorter, REACH, policy=mine, prespecified=True)
    with pytest.raises(pl.DataError, match="runs of one seed"):
        counts + first
    study = pl.case_study("betting:5")
    coin = pl.simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    of_first = pl.certify(study.model, coin.before_bets(), study.objective).policy
    with pytest.raises(pl.DataError, match="cannot be pre-specified"):
        pl.certify(study.model, coin, study.objective, policy=of_first, prespecified=True)
    with pytest.raises(pl.DataError, match="no bets are placed on these data"):
        TransitionCounts(model.graph, counts.counts, "adaptive").before_bets()


@pytest.mark.parametrize("options", [{"sampling": "trajectories"}, {"order": "runs"}])
def test_counts_before_the_first_bets_are_those_of_the_first_runs_of_a_log(options):
    """As the page says: rows whose run is among the first ones, in the order of their numbers."""
    model = table()
    runs = pl.data.record(model, point(), 300, rng=1, max_steps=FEW)
    log = pd.DataFrame(runs.columns())
    log["episode"] = 7 * log["episode"] + 3
    first = pl.read_log(model, log, **in_format(**options)).counts.before_bets()
    n = int(first.parts[0].name.split()[2])
    rows = log[log.episode.rank(method="dense") <= n]
    assert n in (16, 64)
    assert np.array_equal(first.counts, pl.read_log(model, rows).counts.counts)


def test_what_came_first_of_the_second_counts_of_a_sum_did_not_come_before_its_bets():
    """The pilot of a sum is that of the first counts; that of a planned sum is a pilot of both, 5 % of each."""
    one, other = data(n=5000), data(n=5001)
    whole, planned = one + other, one.planned_sum(other)

    def is_refused(first, counts):
        mine = pl.certify(table(), first, REACH, relaxation="interval").policy
        try:
            pl.certify(table(), counts, REACH, policy=mine, prespecified=True)
        except pl.DataError as error:
            return "cannot be pre-specified" in str(error)
        return False

    assert not is_refused(one.before_bets(), whole)
    assert not is_refused(whole.before_bets(), whole)
    assert is_refused(other.before_bets(), whole)
    assert is_refused(one.before_bets(), planned)  # 1,024 runs, and the pilot has 250 of each
    assert not is_refused(planned.before_bets(), planned)
    names = {part.name for part in whole.before_bets().parts}
    assert len(names) == 1
    assert names.pop().startswith("the first 3,571 steps of ")  # which are 1,024 runs of the first, not of each
    assert planned.before_bets().parts[0].name.startswith(f"the pilot, {planned.pilot.total:,} steps, of ")


def test_a_question_with_a_policy_is_about_that_and_one_about_a_difference_is_refused():
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    known = pl.learn(study.model, counts, objectives=[study.objective])
    asked = Question(study.model, study.objective, policy="bet0")
    found = pl.conclude(known, asked)
    assert (found.lower, found.upper) == pytest.approx((10, 10), abs=1e-3)  # whoever bets nothing keeps ten
    assert found.how.options["policy"] == "given"
    with pytest.raises(pl.DataError, match="the question is about a difference"):
        pl.conclude(known, Question(study.model, study.objective, against="bet0"))


@pytest.mark.slow
def test_two_policies_that_are_prespecified_for_one_objective_share_its_error():
    """Each has half of the error, by the number of questions, and is alone in its own."""
    model, counts = table(), data()
    asked = [Question(model, pl.parse_property(REACH, model), policy=each) for each in ("left", "right")]
    both, alone = (pl.learn(model, counts, objectives=each) for each in (asked, asked[:1]))
    sizes = [
        [each.errors.of_side for each in known.bounds.of_kind(TableSet)[0].prespecified] for known in (both, alone)
    ]
    assert sizes[0] == [sizes[1][0] / 2] * 2


@pytest.mark.slow
def test_commands_bet_on_a_policy_with_the_word_only(tmp_path):
    """The model is a table, in Python; the policy is a name, and a file that a result has."""
    (tmp_path / "walk.py").write_text(WALK)
    model, log, folder = (str(tmp_path / name) for name in ("walk.py", "counts.parquet", "result"))
    space = {}
    exec(WALK, space)
    read = space["model"]
    point = np.where(np.diff(read.graph.first_transition)[read.graph.choice_of_transition()] == 2, 0.5, 1.0)
    pl.write_counts(pl.simulate(read, point, 4000, rng=1, max_steps=40, stop=read.labels["end"]), log)
    asked = [model, log, "-p", 'Pmax=? [ F "goal" ]', "--json"]
    alone = ["certify", "--policy", "run"]
    for command in (alone, [*alone, "--against", "walk"], ["certify", "--against", "run"]):
        silent, said = (run(command[0], *asked, *command[1:], *word).out for word in ([], ["--prespecified"]))
        assert "as you stated" not in silent
        assert "(as you stated)" in said
    assert run("certify", *asked, "-o", folder).code == 0
    ended = run("certify", *asked, "--policy", folder, "--prespecified")
    assert (ended.code, "cannot be pre-specified" in " ".join((ended.out + ended.err).split())) == (2, True)
    assert run("certify", *asked, "--policy", folder).code == 0


WALK = """
import plumdp


def step(state):
    if state.x in (0, 4):
        return {"stay": [(1, state)]}
    up, down = state._replace(x=state.x + 1), state._replace(x=state.x - 1)
    return {"run": plumdp.unknown(up, down), "walk": plumdp.unknown(up, down)}


labels = {"goal": lambda s: s.x == 4, "end": lambda s: s.x in (0, 4)}
model = plumdp.explore(step, {"x": 2}, labels=labels)
"""
