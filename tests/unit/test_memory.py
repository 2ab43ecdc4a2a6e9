"""Policies with memory: what is certified, and what becomes of them in files, in runs and on the command line."""

import json

import numpy as np
import pytest
from row_models import listed
from shorthand import certify_all, explain

import plumdp as pl
from plumdp.base.errors import WhyNot
from plumdp.data import record
from plumdp.exchange import write_policy
from plumdp.model import Question, memory
from plumdp.model.language.property import parse_property
from plumdp.model.objectives import Reach
from plumdp.model.parametric import RewardStructure
from plumdp.model.question import ask
from plumdp.result.policy_table import read_policy
from plumdp.solver import by_steps
from plumdp.solver.coupled import by_steps as coupled_by_steps
from plumdp.stages import instantiate, solve

EXACTLY = "Pmax=? [ true U[2,2] x=1 ]"
WITHIN = "Pmax=? [ F<=5 x=1 ]"


@pytest.fixture(scope="module")
def model():
    """A goal that is left after one step: "try" reaches it with 2p/5 and may be repeated, "leap" with p, once."""
    (p,) = pl.parameters("p")

    tries = {"wait": [(1, 0)], "try": [(2 * p / 5, 1), (1 - 2 * p / 5, 0)], "leap": [(p, 1), (1 - p, 2)]}
    return listed({0: tries, 1: {"stay": [(1, 2)]}}, at="x")


@pytest.fixture(scope="module")
def counts(model):
    return pl.simulate(model, {"p": "0.95"}, 3000, rng=1, max_steps=6)


@pytest.fixture(scope="module")
def certificate(model, counts):
    return pl.certify(model, counts, WITHIN)


def test_a_deadline_is_met_by_waiting_where_a_policy_without_memory_certifies_nothing(model, counts):
    """Wait, then leap: the goal is reached in step 2 with p = 0.95.

    About 2,170 of 3,000 runs leap, so that the normal interval is 2 · 3.29 · (0.0475 / 2,170)^½ = 0.031 wide.
    """
    counting, forgetful = (pl.certify(model, counts, ask(EXACTLY, model, memory=each)) for each in (True, False))
    assert counting.lower <= 0.95 <= counting.upper
    assert counting.upper - counting.lower < 1.4 * 0.031
    assert counting.status == "certified"
    assert "counts steps: its action may depend on the number of steps left (column step)" in str(counting)
    assert forgetful.upper < 0.95
    assert "a policy that counts steps may do better" in str(forgetful)


def test_five_steps_are_four_tries_and_a_leap(certificate, model, counts):
    """One minus 0.62^4 · 0.05 = 0.99261, in place of p = 0.95 or one minus 0.62^5 = 0.9084."""
    assert certificate.lower <= 1 - 0.62**4 * 0.05 <= certificate.upper
    assert [certificate.policy.action(x=0, step=step) for step in range(5)] == ["try"] * 4 + ["leap"]
    assert pl.certify(model, counts, ask(WITHIN, model, memory=False)).upper < certificate.lower


def test_the_region_is_the_same_with_and_without_the_product_to_the_last_bit(model, counts):
    objective = ask(WITHIN, model, memory=False).objective
    product, plain = ask(objective, model), Question(model, objective)
    assert product.model.counted is model
    for options in ({"confidence_set": "interval"}, {"confidence_set": "likelihood"}):
        learned = pl.learn(model, counts, **options)
        both = [pl.conclude(learned, question) for question in (product, plain)]
        assert both[0].rests_on.parameters == both[1].rests_on.parameters == learned.parameters
        assert both[0].beside.p_value == both[1].beside.p_value
    prespecified = [pl.learn(model, counts, objectives=[q], confidence_set="interval") for q in (product, plain)]
    for field in ("rows", "offsets", "lower", "upper"):
        first, second = (getattr(each.region, field) for each in prespecified)
        assert first.tobytes() == second.tobytes()


def test_a_question_that_is_prespecified_and_asked_again_is_one_question(model, counts):
    learned = pl.learn(model, counts, objectives=[WITHIN])
    assert pl.conclude(learned, WITHIN).rests_on.jointly == ()
    with pytest.raises(pl.ModelError, match="this is asked twice"):
        certify_all(model, counts, [WITHIN, "Pmax=? [ true U<=5 x=1 ]"])


@pytest.mark.slow
def test_a_product_that_is_too_large_is_replaced_by_a_policy_without_memory_and_the_certificate_says_so(
    model, counts, monkeypatch
):
    monkeypatch.setattr(memory, "MOST_TRANSITIONS", 10)
    found = pl.certify(model, counts, WITHIN)
    assert found.policy.graph is model.graph
    said = "its product of 3 states and 6 of memory has more than 10 transitions"
    assert said in found.beside.remark
    assert "a policy that counts steps may do better" in found.beside.remark
    assert explain(model, counts, found, parts=["ladder"]).ladder[-1].lower == found.lower


def test_a_billion_steps_are_refused_at_once(model):
    assert "would have more than" in ask("Pmax=? [ F<=1000000000 x=1 ]", model).forgets


@pytest.mark.parametrize("initial", [0, np.array([3, 1])])
def test_a_product_is_the_same_whether_it_is_found_step_by_step_or_at_once(model, monkeypatch, initial):
    def update(memory, state, choice):
        return (memory + 1 + choice % 2) % 40

    monkeypatch.setattr(memory, "_MANY", 10**9)
    slowly = memory.remember(model, update, 40, "step", initial=initial)
    monkeypatch.setattr(memory, "_MANY", 3)
    fast = memory.remember(model, update, 40, "step", initial=initial)
    for name in ("first_choice", "first_transition", "successor", "action"):
        assert np.array_equal(getattr(fast.graph, name), getattr(slowly.graph, name))
    assert np.array_equal(fast.graph.states["step"], slowly.graph.states["step"])
    assert np.array_equal(fast.expression, slowly.expression)


def long_window(first):
    """Return certified bounds of being in x = 1 at a step from ``first`` to 100,000, and those of the solver at 1/2."""
    (p,) = pl.parameters("p")

    def step(state):
        ways = [(p, state._replace(x=1)), (1 - p, state)] if state.x == 0 else [(1, state._replace(x=2))]
        return {"go": ways}

    model = pl.explore(step, {"x": 0}, space=pl.ParameterSpace.box({"p": (0.4, 0.6)}))
    text = f"Pmax=? [ true U[{first},100000] x=1 ]"
    known = solve(instantiate(model, {"p": 0.5}), parse_property(text, model))
    found = pl.certify(model, pl.simulate(model, {"p": 0.5}, 1000, rng=1, max_steps=60), text)
    return (known.lower[0], known.upper[0]), (found.lower, found.upper)


@pytest.mark.parametrize("first", [0, 3])
def test_a_window_of_many_steps_is_as_its_formula(first):
    """It is entered at step k with the chance p (1 - p)^(k - 1), so after step ``first`` with (1 - p)^(first - 1)."""
    exact = 0.5 ** max(first - 1, 0)
    (low, high), (lower, upper) = long_window(first)
    assert low <= exact <= high < low + 1e-9
    assert lower <= exact <= upper < lower + 0.2


def test_a_planted_error_in_passing_over_steps_is_found(monkeypatch):
    """If all steps were alike, the beginning of the window would be passed over."""
    for module in (by_steps, coupled_by_steps):
        monkeypatch.setattr(module, "first_alike", lambda objective: 0)
    (low, _), (lower, _) = long_window(3)
    assert low > 0.9
    assert lower > 0.9


@pytest.mark.parametrize("text", ["Pmax=? [ X x=1 ]", "Pmax=? [ F<=1 x=1 ]", "Pmax=? [ F x=1 ]"])
def test_nothing_is_counted_where_no_policy_can_do_better_by_counting(model, text):
    assert ask(text, model).model is model


def test_losses_are_valued_without_memory_and_the_question_says_why(model):
    paid = RewardStructure(None, np.full(model.graph.n_choices, -1.0))
    asked = ask(pl.model.Reward(paid, "max", steps=3), model)
    assert asked.model is model
    assert asked.forgets == "steps are counted for rewards of at least 0 only, and for discounted ones"


def test_a_variable_called_step_keeps_its_name():
    study = pl.case_study("betting:5")
    graph = ask('R{"money"}max=? [ C<=3 ]', study.model).model.graph
    assert graph.memory.names == ("memory_step",)
    assert [*graph.states] == ["money", "step", "memory_step"]


# Policies in runs


def test_runs_follow_the_policy_and_are_counted_on_the_model(certificate, model):
    """Of runs under the policy, 0.99261 reach the goal within five steps: of 20,000, within five standard errors."""
    n = 20_000
    counts = pl.simulate(model, {"p": "0.95"}, n, rng=3, max_steps=5, policy=certificate.policy)
    assert counts.graph is model.graph
    reached = counts.counts[model.graph.successor == int(np.flatnonzero(model.graph.states["x"] == 1)[0])].sum()
    value = 1 - 0.62**4 * 0.05
    assert abs(reached / n - value) < 5 * (value * (1 - value) / n) ** 0.5
    runs = record(model, {"p": "0.95"}, 500, rng=3, max_steps=5, policy=certificate.policy).columns()
    is_open = runs["x"] == 0
    assert {*zip(runs["step"][is_open].tolist(), runs["action"][is_open].tolist(), strict=True)} == {
        *((step, "try") for step in range(4)),
        (4, "leap"),
    }


def test_a_run_remembers_the_steps_by_itself(certificate):
    run = certificate.policy.start()
    assert [(run({"x": 0}), run.memory["step"]) for _ in range(5)] == [*(("try", k) for k in range(4)), ("leap", 4)]
    assert run({"x": 2}) == "stay"
    again = certificate.policy.start(observe=lambda seen: {"x": seen})
    assert again(0) == "try"
    with pytest.raises(
        pl.DataError, match=r"\(x=2\) cannot be observed now: state \(x=0\), action 'try' does not lead"
    ):
        again(2)
    with pytest.raises(pl.DataError, match="a run begins in the initial state of the model"):
        certificate.policy.start()({"x": 1})


def test_code_keeps_the_memory_through_a_run(certificate):
    module = {}
    exec(certificate.policy.to_python(), module)
    run = module["Run"]()
    assert [run(0) for _ in range(5)] == ["try"] * 4 + ["leap"]
    assert run(2) == "stay"
    other = module["Run"]()
    assert (other(0), other(1), other.step) == ("try", "stay", 5)  # the goal is reached, and the run is over


def test_a_policy_with_memory_is_refused_by_name_where_states_have_none(certificate, model):
    with pytest.raises(pl.ModelError, match="the policy remembers step, which the states here do not have"):
        pl.PolicyTable(model.graph, certificate.policy)


@pytest.mark.slow
def test_a_policy_without_memory_is_compared_with_one_that_counts(certificate, model, counts):
    learned = pl.learn(model, counts)
    leap = pl.PolicyTable.from_actions(model.graph, lambda state: "leap")
    assert pl.difference(learned, WITHIN, certificate.policy, leap).verdicts == ("better",)
    assert pl.certify(model, counts, WITHIN, policy=leap).beside.remark.startswith("one action per state")
    given = pl.certify(model, counts, WITHIN, policy=certificate.policy)
    assert (given.lower, given.upper) == pytest.approx((certificate.lower, certificate.upper), abs=1e-6)


# Files


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_policy_is_written_and_read_with_its_memory(certificate, model, tmp_path, ending):
    file = tmp_path / f"policy.{ending}"
    write_policy(certificate.policy, file)
    product = ask(WITHIN, model).model
    assert np.array_equal(read_policy(product, file), certificate.policy)
    with pytest.raises(pl.DataError, match="read a policy with memory with ask"):
        read_policy(model, file)


def test_a_scheduler_has_numbers_of_the_model_and_what_is_remembered_next(certificate, model, tmp_path):
    """As Storm writes them: an index into the choices of the model, and the memory after each successor."""
    write_policy(certificate.policy, tmp_path / "policy.json")
    entries = json.loads((tmp_path / "policy.json").read_text())
    (last,) = (entry for entry in entries if (entry["s"], entry["m"]) == ({"x": 0}, 4))
    (taken,) = last["c"]
    assert model.graph.action_names[model.graph.action[taken["index"]]] == "leap"
    assert taken["memory-updates"] == [{"s'": {"x": 1}, "m'": 5}, {"s'": {"x": 2}, "m'": 5}]
    with pytest.raises(pl.DataError, match="PRISM's list has one action for each state, but the policy keeps memory"):
        write_policy(certificate.policy, tmp_path / "policy.txt")


@pytest.fixture
def few_choices(monkeypatch):
    """Every product with all choices is said to be too large."""
    monkeypatch.setattr("plumdp.model.question.with_memory", lambda model, objective: WhyNot("it is too large"))


@pytest.mark.night
@pytest.mark.usefixtures("few_choices")
def test_where_the_whole_product_is_too_large_the_policy_is_found_on_few_choices(model, counts, certificate, tmp_path):
    """Four tries and a leap, as on the whole product, and a table of the states that the policy reaches."""
    found = pl.certify(model, counts, WITHIN)
    assert (found.lower, found.upper) == (certificate.lower, certificate.upper)
    assert [found.policy.action(x=0, step=step) for step in range(5)] == ["try"] * 4 + ["leap"]
    assert found.policy.graph.n_choices == len(found.policy) < len(certificate.policy)
    assert (
        "chosen among policies that are best at a few points, as the product with all actions is too large"
        in found.beside.remark
    )
    runs = pl.simulate(model, {"p": "0.95"}, 100, rng=2, max_steps=5, policy=found.policy)
    assert runs.total > 100
    again = pl.conclude(pl.learn(model, counts, objectives=[WITHIN]), WITHIN, policy=found.policy)
    assert (again.lower, again.upper) == (found.lower, found.upper)
    pl.write_result(found, tmp_path / "result", model=model, counts=counts)
    read = pl.read_result(tmp_path / "result", model)
    assert read.policy.graph.fingerprint == found.policy.graph.fingerprint
    assert np.array_equal(read.policy, found.policy)
    assert explain(model, counts, read, parts=["ladder"]).ladder[-1].lower == found.lower


@pytest.mark.usefixtures("few_choices")
def test_a_threshold_is_said_of_all_policies_also_where_few_choices_are_looked_at(model, counts):
    learned = pl.learn(model, counts)
    yes, no = (pl.decide(learned, f"P>={least} [ F<=5 x=1 ]") for least in (0.9, 0.9999))
    assert "the recommended policy has at least" in yes.headline
    assert "no policy has more than" in no.headline


@pytest.mark.usefixtures("few_choices")
def test_a_policy_with_other_actions_than_the_few_is_refused_by_name(model, counts, certificate):
    found = pl.certify(model, counts, WITHIN)
    learned = pl.learn(model, counts)
    with pytest.raises(pl.ModelError, match="the policy without memory takes other actions than it has"):
        pl.difference(learned, WITHIN, found.policy, pl.PolicyTable(model.graph, model.graph.first_choice[:-1]))


# Other memories


def test_an_automaton_is_a_memory_like_a_counter(counts, model):
    """First a try, then the goal: the memory is set by the action, and the goal counts with it alone."""
    tries = model.graph.action == model.graph.action_names.index("try")

    def update(memory, state, choice):
        return np.maximum(memory, tries[choice])

    product = memory.remember(model, update, 2, "tried")
    graph = product.graph
    target = (graph.states["x"] == 1) & (graph.states["tried"] == 1)
    question = Question(product, Reach(target, np.zeros_like(target), "max"))
    found = pl.certify(model, counts, question)
    assert found.policy.action(x=0, tried=0) == "try"
    assert found.lower == pytest.approx(1)  # by tries alone
    assert found.beside.remark == "has memory: its action may depend on it (column tried)"


# On the command line
