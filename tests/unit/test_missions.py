"""Missions and budgets: what is certified, how large it gets, and what becomes of policies that remember."""

import numpy as np
import pytest
from shorthand import certify_all
from typer.testing import CliRunner

import plumdp as pl
from plumdp.cli import app
from plumdp.model import Question
from plumdp.model.language.property import parse_property
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.question import ask
from plumdp.watching.certified import certified_question

BOTH = 'Pmax=? [ F ("tool" & F "site") ]'
FUEL = 'Pmax=? [ F{"fuel"}<=2.5 "site" ]'


@pytest.fixture(scope="module")
def walk():
    """A line of five states: left at 0 is "tool", right at 4 is "site"; a step succeeds with p, and falls with 1 - p.

    A leap to the right succeeds with p/2 and takes two states. A step costs 1, and a leap 0.5.
    """
    (p,) = pl.parameters("p")

    def step(state):
        if state.x == 5:
            return {"stay": [(1, state)]}
        left, right, far = (state._replace(x=min(max(state.x + by, 0), 4)) for by in (-1, 1, 2))
        fall = state._replace(x=5)
        return {
            "left": [(p, left), (1 - p, fall)],
            "right": [(p, right), (1 - p, fall)],
            "leap": [(p / 2, far), (1 - p / 2, fall)],
        }

    return pl.explore(
        step,
        {"x": 1},
        space=pl.ParameterSpace.unit("p"),
        labels={"tool": lambda state: state.x == 0, "site": lambda state: state.x == 4},
        choice_rewards={"fuel": lambda state, action: {"leap": 0.5, "stay": 0.0}.get(action, 1.0)},
    )


@pytest.fixture(scope="module")
def counts(walk):
    return pl.simulate(walk, {"p": "0.9"}, 2000, rng=1, max_steps=50)


@pytest.fixture(scope="module")
def certificate(walk, counts):
    return pl.certify(walk, counts, BOTH)


def test_a_mission_is_certified_with_what_is_left_to_be_done_as_a_column(certificate):
    """One step to the tool and four to the site: 0.9^5 = 0.59049."""
    assert certificate.lower <= 0.9**5 <= certificate.upper
    assert certificate.upper - certificate.lower < 0.12
    action = certificate.policy.action
    assert [action(x=x, mission='F ("tool" & (F "site"))') for x in (1, 2)] == ["left", "left"]
    assert [action(x=x, mission='F "site"') for x in (0, 1, 2)] == ["right"] * 3
    assert "has memory: its action" in certificate.beside.remark
    assert "(column mission)" in certificate.beside.remark


def test_a_budget_is_certified_with_what_is_left_of_it_as_a_column(walk, counts):
    """Three steps cost 3, so that one leap and one step are needed, 0.45 · 0.9, or less if both are leaps."""
    found = pl.certify(walk, counts, FUEL)
    assert found.lower <= 0.45 * 0.9 <= found.upper
    assert found.policy.graph.memory.names == ("fuel_left",)
    assert "in units of 1/2 (column fuel_left)" in found.beside.remark
    first = found.policy.action(x=1, fuel_left=5)
    second = found.policy.action(x=2, fuel_left=3) if first == "right" else found.policy.action(x=3, fuel_left=4)
    assert {first, second} == {"leap", "right"}
    assert pl.certify(walk, counts, FUEL.replace("2.5", "3")).lower > found.upper


def test_the_region_is_the_same_with_and_without_the_product_to_the_last_bit(walk, counts):
    plain = 'Pmax=? [ F "site" ]'
    for options in ({"confidence_set": "interval"}, {"confidence_set": "likelihood"}):
        learned = pl.learn(walk, counts, **options)
        found = [pl.conclude(learned, text) for text in (BOTH, FUEL, plain)]
        assert (
            found[0].rests_on.parameters
            == found[1].rests_on.parameters
            == found[2].rests_on.parameters
            == learned.parameters
        )
        assert found[0].beside.p_value == found[1].beside.p_value == found[2].beside.p_value
    prespecified = [
        pl.learn(walk, counts, objectives=[text], confidence_set="interval") for text in (BOTH, FUEL, plain)
    ]
    for field in ("rows", "offsets", "lower", "upper"):
        assert len({getattr(each.region, field).tobytes() for each in prespecified}) == 1
    assert ask(BOTH, walk).model.counted is walk


def test_thresholds_differences_and_policies_without_memory_go_with_missions(walk, counts, certificate):
    learned = pl.learn(walk, counts)
    assert pl.decide(learned, 'P>=0.4 [ F ("tool" & F "site") ]').verdict == "yes"
    assert pl.decide(learned, 'Pmax<0.4 [ F ("tool" & F "site") ]').verdict == "no"
    right = pl.PolicyTable.from_actions(walk.graph, lambda state: "right")
    assert pl.difference(learned, BOTH, certificate.policy, right).verdicts == ("better",)
    with pytest.raises(pl.ModelError, match="this is asked twice"):
        certify_all(walk, counts, [BOTH, 'Pmax=? [ true U ("tool" & (true U "site")) ]'])


def test_a_run_remembers_by_itself_and_code_keeps_a_budget(walk, counts, certificate):
    run = certificate.policy.start()
    assert [(run({"x": x}), run.memory["mission"]) for x in (1, 0, 1)] == [
        ("left", 'F ("tool" & (F "site"))'),
        ("right", 'F "site"'),
        ("right", 'F "site"'),
    ]
    with pytest.raises(pl.DataError, match="what the policy remembers depends on where a step leads"):
        certificate.policy.to_python()
    module: dict = {}
    policy = pl.certify(walk, counts, FUEL).policy
    exec(policy.to_python(), module)
    code, table = module["Run"](), policy.start()
    for x in (1, 2 if table({"x": 1}) == "right" else 3):
        table = policy.start() if x == 1 else table
        assert code(x) == table({"x": x})


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        (BOTH, ['F "site"', 'F ("tool" & (F "site"))', "over", "true"]),
        ('Pmax=? [ G ("tool" => X x=1) ]', ['(G (!"tool" | (X x=1))) & x=1', 'G (!"tool" | (X x=1))', "false", "over"]),
        ('Pmin=? [ !"site" W "tool" ]', ['"tool" R (!"site" | "tool")', "false", "over", "true"]),
        ('Pmax=? [ F<=2 ("tool" & X x=1) ]', None),
        ("Pmax=? [ X X x=1 ]", ["X x=1", "false", "over", "true", "x=1"]),
    ],
)
def test_the_memory_is_the_formula_that_is_left(walk, text, memory):
    graph = ask(text, walk).model.graph
    names = np.unique(graph.states["mission"]).tolist()
    assert memory is None or names == memory
    for name in set(names) - {"over", "true", "false"}:
        parse_property(f"Pmax=? [ F ({name}) ]" if "F" in name else f"Pmax=? [ X ({name}) ]", walk)


@pytest.fixture(scope="module")
def line():
    """Eleven states in a row, with steps to any of them, so that goals are met in every order."""
    (p,) = pl.parameters("p")
    return pl.explore(
        lambda s: {f"to{x}": [(p, s._replace(x=x)), (1 - p, s)] for x in range(11)},
        {"x": 0},
        space=pl.ParameterSpace.unit("p"),
    )


def test_ten_goals_stay_small(line):
    """In order, the number of goals met is all that matters; in any order, the set of those that are left."""
    nested = "".join(f"F (x={i} & " for i in range(1, 10)) + "F x=10" + ")" * 9
    product = ask(f"Pmax=? [ {nested} ]", line).model.graph
    assert len(parse_property(f"Pmax=? [ {nested} ]", line).task.names) == 11
    assert product.n_states <= 11 * 12
    free = " & ".join(f"(F x={i})" for i in range(1, 11))
    assert len(parse_property(f"Pmax=? [ {free} ]", line).task.names) == 2**10
    pairs = " & ".join(f"(F (x={i} & F x={i + 1}))" for i in (1, 3, 5, 7))
    assert len(parse_property(f"Pmax=? [ {pairs} ]", line).task.names) == 3**4
    assert len(parse_property("Pmax=? [ G (x=3 => X X X x=4) ]", line).task.names) <= 2**3 + 2
    assert len(parse_property("Pmax=? [ F<=9 (x=1 & F<=9 x=2) ]", line).task.names) < 70


def test_what_needs_no_memory_is_no_mission(walk):
    for text in ('Pmax=? [ F "site" ]', 'Pmax=? [ (F "site") ]', 'Pmax=? [ G !"site" ]', 'Pmin=? [ X "site" ]'):
        assert isinstance(parse_property(text, walk), pl.model.Reach)


def test_missions_are_refused_by_name_where_there_is_no_memory(walk, counts, certificate):
    assert (
        pl.certify(walk, counts, ask(BOTH, walk, memory=False)).lower == certificate.lower
    )  # which is about counting steps
    mission = parse_property(BOTH, walk)
    with pytest.raises(pl.ModelError, match="this needs memory, which is not supported here"):
        Question(walk, mission)
    assert repr(mission) == f"Mission(max, {BOTH})"
    with pytest.raises(pl.ModelError, match="a mission cannot be asked about a model that has memory already"):
        ask("Pmax=? [ F (x=0 & F x=4) ]", ask(FUEL, walk).model)
    with pytest.raises(pl.DataError, match="uses memory that runs do not record"):
        certified_question(certificate, walk)


def test_a_product_that_is_too_large_is_refused(walk, monkeypatch):
    monkeypatch.setattr("plumdp.model.memory.MOST_TRANSITIONS", 10)
    with pytest.raises(pl.ModelError, match=r"the policy needs memory, but its product of .* has more than 10 transit"):
        ask(BOTH, walk)


@pytest.mark.parametrize(
    ("costs", "most", "problem"),
    [
        ([-1.0], "3", r"a budget needs costs of at least 0, and one is -1"),
        ([1 / 3], "3", r"units of 1/10000000000000000, more than 10,000,000; round what steps cost, or give less"),
    ],
)
def test_costs_that_cannot_be_counted_are_refused(walk, costs, most, problem):
    paid = RewardStructure(None, np.resize(costs, walk.graph.n_choices))
    model = ParametricMDP(**{**{n: getattr(walk, n) for n in walk.__dataclass_fields__}, "rewards": {"r": paid}})
    with pytest.raises(pl.ModelError, match=problem):
        parse_property(f'Pmax=? [ F{{"r"}}<={most} "site" ]', model)


# On the command line


@pytest.mark.slow
def test_the_command_line_takes_missions_and_budgets(tmp_path):
    (tmp_path / "walk.prism").write_text(
        "mdp\nconst double p;\nmodule m\n x : [0..3] init 1;\n [left] x>0 & x<3 -> p : (x'=x-1) + 1-p : (x'=3);\n"
        " [right] x<2 -> p : (x'=x+1) + 1-p : (x'=3);\n [stay] x=3 -> true;\nendmodule\n"
        'label "tool" = x=0;\nlabel "site" = x=2;\nrewards "fuel" true : 1; endrewards\n'
    )
    run, file, data = CliRunner().invoke, str(tmp_path / "walk.prism"), str(tmp_path / "counts.parquet")
    simulated = ["simulate", file, "--at", "p=0.9", "-n", "2000", "--max-steps", "9", "--seed", "1", "-o", data]
    assert run(app, simulated).exit_code == 0
    for text in (BOTH, 'Pmax=? [ F{"fuel"}<=1 "site" ]'):
        found = run(app, ["certify", file, data, "-p", text])
        assert found.exit_code == 0, found.output


# Rewards and finite traces


def test_rewards_are_certified_until_a_mission_is_done(walk, counts):
    """No run is sure to come to the tool, as each step may fall: the value is infinite for every policy."""
    found = pl.certify(walk, counts, 'R{"fuel"}min=? [ F ("tool" & F "site") ]')
    assert found.upper == np.inf
    assert "no policy reaches the target with certainty" in found.claim.reason


def test_finite_traces_are_certified(walk, counts):
    """Runs end at the site or in a fall; the tool must be met before, and the last step must be to the site."""
    text = 'Pmax=? [ LTLf{"site" | x=5} (F "tool") & (F ("site" & !X true)) ]'
    found = pl.certify(walk, counts, text)
    assert found.lower <= 0.9**5 <= found.upper
    assert pl.certify(walk, counts, 'Pmax=? [ LTLf{"site" | x=5} G (x=1 | x=2 | x=3 | "site") ]').lower > 0.6
