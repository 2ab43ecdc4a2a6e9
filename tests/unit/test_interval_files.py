"""Interval models through files: what is written is read again bit by bit, and wrong files are refused by line."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plumdp as pl

ENDINGS = (".umb", ".tra", ".drn")


def random_model(seed):
    """Return a model of 2 to 8 states with variables, awkward bounds, labels and up to two reward structures."""
    rng = np.random.default_rng(seed)
    n_states = int(rng.integers(2, 9))
    n_choices = rng.integers(1, 4, n_states)
    first_choice = np.concatenate([[0], np.cumsum(n_choices)])
    sizes = rng.integers(1, min(n_states, 3) + 1, first_choice[-1])
    successor = np.concatenate([rng.choice(n_states, size, replace=False) for size in sizes])
    probability = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    mdp = pl.stages.IntervalMDP.from_arrays(
        first_choice,
        np.concatenate([[0], np.cumsum(sizes)]),
        successor,
        probability * rng.choice([0, 1e-300, 1 / 3, 0.999], len(successor)),
        np.minimum(1, probability + rng.random(len(successor)) / 3),
        initial_state=int(rng.integers(n_states)),
        states={"x": rng.integers(-3, 100_000, n_states).astype(np.int32), "is_on": rng.random(n_states) < 0.5},
        action=rng.integers(0, 3, first_choice[-1]),
        action_names=("", "up", "über-holen"),
    )
    rewards = {
        "": pl.model.RewardStructure(rng.random(n_states) + 0.1, None),
        "cost": pl.model.RewardStructure(rng.random(n_states), rng.random(first_choice[-1])),
    }
    names = rng.permutation(["", "cost"])[: rng.integers(3)]
    labels = {"goal": rng.random(n_states) < 0.4, "two words": np.arange(n_states) == 1}
    return pl.exchange.IntervalModel(mdp, labels, {name: rewards[name] for name in rewards if name in names})


def edges(model):
    """Return all that matters about the transitions, whatever numbers the actions have."""
    mdp, graph = model.mdp, model.graph
    bounds = mdp.lower[mdp.expression].tolist(), mdp.upper[mdp.expression].tolist()
    names = [graph.action_names[action] for action in graph.action]
    offsets = graph.first_choice.tolist(), graph.first_transition.tolist()
    return offsets, graph.successor.tolist(), bounds, names, graph.initial_state


def parts(model):
    zeros = {"state": np.zeros(model.graph.n_states), "choice": np.zeros(model.graph.n_choices)}
    rewards = {}
    for name, reward in model.rewards.items():
        rewards[name] = {
            part: (zeros[part] if getattr(reward, part) is None else getattr(reward, part)).tolist() for part in zeros
        }
    return {name: mask.tolist() for name, mask in model.labels.items() if mask.any()}, rewards


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@given(seed=st.integers(0, 10**6))
def test_a_model_is_the_same_after_writing_and_reading(tmp_path_factory, ending, seed):
    model, path = random_model(seed), tmp_path_factory.mktemp("models") / f"model{ending}"
    pl.exchange.write_interval_model(model, path)
    read = pl.exchange.read_interval_model(path)
    assert edges(read) == edges(model)
    assert parts(read) == parts(model)
    assert {name: values.tolist() for name, values in read.graph.states.items()} == {
        name: values.tolist() for name, values in model.graph.states.items()
    }


def test_an_archive_may_be_compressed(tmp_path):
    model, path = random_model(1), tmp_path / "model.umb"
    pl.exchange.write_interval_model(model, path)
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert edges(pl.exchange.read_interval_model(path)) == edges(model)


def test_old_files_of_rewards_are_not_taken_for_those_of_a_new_model(tmp_path):
    path = tmp_path / "model.tra"
    with_rewards = next(model for model in map(random_model, range(99)) if len(model.rewards) == 2)
    pl.exchange.write_interval_model(with_rewards, path)
    pl.exchange.write_interval_model(pl.exchange.IntervalModel(with_rewards.mdp), path)
    assert pl.exchange.read_interval_model(path).rewards == {}


TRA = (
    "3 4 6\n0 0 1 [0.3,0.5] go\n0 0 2 [0.5,0.7] go\n0 1 0 [0.1, 0.2] wait\n0 1 2 [0.8, 0.9] wait\n1 0 1 1\n2 0 2 1.0\n"
)


def written_by_prism(folder):
    """Write a model as PRISM does: interval and plain numbers, headers of rewards, and its labels."""
    (folder / "m.tra").write_text(TRA)
    (folder / "m.lab").write_text('0="init" 1="deadlock" 2="goal"\n0: 0\n1: 2\n')
    (folder / "m.sta").write_text("(x,done)\n0:(0,false)\n1:(1,true)\n2:(-2,true)\n")
    (folder / "m1.srew").write_text('# Reward structure "time"\n# State rewards\n3 1\n0 1.5\n')
    (folder / "m1.trew").write_text('# Reward structure "time"\n# Transition rewards\n3 4 2\n0 1 0 2\n0 1 2 2\n')
    (folder / "m2.srew").write_text("# Reward structure\n# State rewards\n3 1\n2 7\n")
    return folder / "m.tra"


def test_files_as_prism_writes_them_are_read(tmp_path):
    """By hand: at worst "go" reaches the goal with 0.3; "wait" reaches it with a chance below 0.2 a step, then "go"."""
    model = pl.exchange.read_interval_model(written_by_prism(tmp_path))
    assert model.graph.states["x"].tolist() == [0, 1, -2]
    assert model.graph.states["done"].tolist() == [False, True, True]
    assert model.rewards["time"].choice.tolist() == [0, 2, 0, 0]
    assert model.rewards[""].state.tolist() == [0, 0, 7]
    robust, best = (pl.stages.solve(model, f'{kind}=? [ F "goal" ]') for kind in ("Pmaxmin", "Pmaxmax"))
    assert robust.lower[0] <= 0.3 <= robust.upper[0]
    assert best.lower[0] <= 0.5 <= best.upper[0]
    assert pl.stages.solve(model, 'R{"time"}minmax=? [ C<=1 ]').upper[0] == pytest.approx(1.5)


def test_a_chain_has_no_column_of_choices(tmp_path):
    (tmp_path / "c.tra").write_text("2 3\n0 0 [0.4,0.6]\n0 1 [0.4,0.6]\n1 1 1\n")
    model = pl.exchange.read_interval_model(tmp_path / "c.tra")
    assert (model.graph.n_choices, model.mdp.lower.tolist()) == (2, [0.4, 0.4, 1.0])


WRONG_TRA = {
    "header": ("3 4 6", "three", ", line 1: 'three' is not the numbers of states, choices and transitions (or of "),
    "state": ("1 0 1 1", "3 0 1 1", ", line 6: there is no state 3: the model has 3 states, numbered from 0"),
    "words": ("1 0 1 1", "one 0 1 1", ", line 6: 'one' is not the number of a state; give 0, 1, 2, …"),
    "columns": ("1 0 1 1", "1 0 1", ", line 6: '1 0 1': write state choice successor [lower,upper] action"),
    "number": ("[0.3,0.5]", "[0.3,half]", ", line 2: 'half' is not a number"),
    "interval": ("[0.3,0.5]", "[0.3;0.5]", ", line 2: '[0.3;0.5]' is not an interval; write [0.5,0.8]"),
    "crossed": (
        "[0.3,0.5]",
        "[0.5,0.3]",
        ", line 2: state (state=0), action 'go', successor (state=1): the bounds 0.5 and 0.3 are the lower above the ",
    ),
    "above": (
        "[0.5,0.7]",
        "[0.8,0.9]",
        ", line 2: state (state=0), action 'go': the lower bounds sum to 1.1000000000000001, so no distribution fits",
    ),
    "below": (
        "[0.8, 0.9]",
        "[0.1, 0.2]",
        ", line 4: state (state=0), action 'wait': the upper bounds sum to only 0.40000000000000002, so no",
    ),
    "digits": (
        "[0.3,0.5] go\n0 0 2 [0.5,0.7]",
        "0.333333 go\n0 0 2 0.666666",
        ", line 2: state (state=0), action 'go': the upper bounds sum to only 0.99999899999999997, so no distribution "
        "fits; if these are rounded numbers, write them with all their digits (17), or as intervals",
    ),
    "many": ("3 4 6", "3 4 7", ": the first line says 7 transitions, but there are 6 transitions"),
    "gap": ("0 1 0", "0 2 0", ", line 4: state 0 has a choice 2, but no choice 1"),
    "dead": ("2 0 2 1.0", "1 0 2 0", ": no transition leaves 1 state, such as state 2; give it a self-loop"),
    "action": (
        "[0.5,0.7] go",
        "[0.5,0.7] come",
        ", line 3: action 'come' in a choice whose other transitions have 'go'",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG_TRA.values(), ids=WRONG_TRA)
def test_wrong_transitions_are_refused_with_file_and_line(tmp_path, old, new, message):
    path = tmp_path / "m.tra"
    path.write_text(
        TRA.replace(old, new, 2 if old == "0 1 0" else 1).replace("0 1 2", "0 2 2" if old == "0 1 0" else "0 1 2")
    )
    with pytest.raises(pl.ModelError) as caught:
        pl.exchange.read_interval_model(path)
    assert str(caught.value).startswith(f"{path}{message}")


BESIDE = {
    "labels": ("m.lab", "goal\n", ', line 1: \'goal\' is not a list of labels; write 0="init" 1="goal"'),
    "label": ("m.lab", '0="init"\n0: 0 5\n', ", line 2: there is no label 5; the first line names 0"),
    "initial": ("m.lab", '0="init"\n', ": 0 initial states; there must be exactly one"),
    "variables": ("m.sta", "(x)\n0:(0,1)\n", ", line 2: 2 values for 1 variable"),
    "missing": ("m.sta", "(x)\n0:(0)\n1:(0)\n", ": state 2 is missing; 3 states in all"),
    "reward": ("m1.srew", "3 1\n0\n", ", line 2: '0': write a state and its reward"),
    "infinite": ("m1.srew", "3 1\n0 inf\n", ", line 2: 'inf' is not a number"),
    "edge": ("m1.trew", "3 4 1\n0 0 0 5\n", ", line 2: state 0, choice 0 has no transition to state 0"),
    "successor": (
        "m1.trew",
        "3 4 1\n0 0 1 5\n",
        ": state (x=0, done=false), action 'go': the reward depends on the successor; rewards are of states or choices",
    ),
}


@pytest.mark.parametrize(("name", "text", "message"), BESIDE.values(), ids=BESIDE)
def test_wrong_files_beside_the_transitions_are_refused_with_file_and_line(tmp_path, name, text, message):
    path = written_by_prism(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(pl.ModelError) as caught:
        pl.exchange.read_interval_model(path)
    assert str(caught.value).startswith(f"{tmp_path / name}{message}")


DRN = """// by hand
@type: MDP
@value_type: double-interval
@parameters

@placeholders
$0 : [0.3, 0.5]
@reward_models
time
@nr_states
2
@nr_choices
3
@model
state 0 [1.5] init "two words"
	action go [2]
		0 : [0.5, 0.7]
		1 : $0
	action __NOLABEL__ [0]
		0 : 1
state 1 [0] goal
	action __NOLABEL__ [0]
		1 : 1
"""


def test_a_text_as_storm_writes_it_is_read(tmp_path):
    (tmp_path / "m.drn").write_text(DRN)
    model = pl.exchange.read_interval_model(tmp_path / "m.drn")
    assert model.mdp.upper.tolist() == [0.7, 0.5, 1, 1]
    assert model.rewards["time"].state.tolist() == [1.5, 0]
    assert model.rewards["time"].choice.tolist() == [2, 0, 0]
    assert model.labels["two words"].tolist() == [True, False]
    assert model.graph.action_names == ("go", "")
    assert model.graph.states["state"].tolist() == [0, 1]


WRONG_DRN = {
    "kind": ("@type: MDP", "@type: CTMC", ": a model of type CTMC cannot be read; give an MDP or a DTMC"),
    "parameters": (
        "@parameters\n",
        "@parameters\np q",
        ": the model has parameters (p q); give a model with numbers or",
    ),
    "model": ("@model", "", ": there is no line @model, so this is not a .drn file"),
    "order": ("state 1", "state 7", ", line 21: state 7, where state 1 is expected"),
    "successor": ("1 : $0", "5 : $0", ", line 18: there is no state 5: the model has 2 states, numbered from 0"),
    "row": (
        "0 : [0.5, 0.7]",
        "0 : [0.1, 0.2]",
        ", line 17: state (state=0), action 'go': the upper bounds sum to only",
    ),
    "line": ("0 : 1", "nonsense", ", line 20: 'nonsense': a state, an action or a transition such as 3 : [0.1, 0.4]"),
    "states": ("@nr_states\n2", "@nr_states\n3", ": the header says 3 states, but there are 2 states"),
    "rewards": ("[1.5]", "[1.5, 2, 3]", ": 3 rewards in a line, but 1 name below @reward_models"),
    "reward": ("[1.5]", "[[1, 2]]", ", line 15: [1, 2]: a reward that is an interval cannot be read; give a number"),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG_DRN.values(), ids=WRONG_DRN)
def test_wrong_texts_of_storm_are_refused_with_file_and_line(tmp_path, old, new, message):
    path = tmp_path / "m.drn"
    path.write_text(DRN.replace(old, new, 1))
    with pytest.raises(pl.ModelError) as caught:
        pl.exchange.read_interval_model(path)
    assert str(caught.value).startswith(f"{path}{message}")


ALL_TEXTS = {
    "m.tra": TRA,
    "m.lab": '0="init" 1="goal"\n0: 0\n1: 1\n',
    "m.sta": "(x)\n0:(0)\n1:(1)\n2:(2)\n",
    "m.srew": "3 1\n0 1.5\n",
    "m.trew": "3 4 2\n0 1 0 2\n0 1 2 2\n",
    "m.drn": DRN,
}


@given(st.sampled_from(sorted(ALL_TEXTS)), st.data())
def test_damaged_texts_are_read_or_refused_and_nothing_else(tmp_path_factory, name, data):
    """A line or a few characters of one file are replaced by others of the same kind."""
    folder, text = tmp_path_factory.mktemp("damaged"), ALL_TEXTS[name]
    for file, content in ALL_TEXTS.items():
        (folder / file).write_text(content)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    new = data.draw(st.text(alphabet='0123456789.-,:;[](){}="@$/# \nabeE²\u0663', max_size=6))
    (folder / name).write_text(text[:start] + new + text[end:])
    message = ""
    try:
        pl.exchange.read_interval_model(folder / ("m.drn" if name == "m.drn" else "m.tra"))
    except pl.ModelError as error:
        message = str(error)
    assert not message or message.startswith(f"{folder}/m")


def test_files_without_a_reader_or_writer_are_refused(tmp_path):
    (tmp_path / "m.dot").touch()
    (tmp_path / "m.umb").write_text("no archive")
    (tmp_path / "m.tra").write_bytes(b"\xff\xfe\x00")
    for name, message in (
        ("m.dot", "there is no reader of interval models for a file that ends in .dot; the endings are .umb, .tra, "),
        ("none.tra", "there is no such file"),
        ("m.umb", "this is not a UMB archive, or it is damaged (ReadError: "),
        ("m.tra", "this is not a text in UTF-8"),
    ):
        with pytest.raises(pl.ModelError) as caught:
            pl.exchange.read_interval_model(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: {message}")
    model = random_model(1)
    with pytest.raises(pl.ModelError, match=r"m\.dot: interval models are written to files that end in \.umb, \.tra,"):
        pl.exchange.write_interval_model(model, tmp_path / "m.dot")
    with pytest.raises(pl.ModelError, match=r"write_interval_model takes an interval model .*, not str"):
        pl.exchange.write_interval_model("model", tmp_path / "m.umb")
    with pytest.raises(
        pl.ModelError, match="this is an explicit model, without parameters to learn; read_interval_model"
    ):
        pl.read_model(tmp_path / "m.umb")


def test_names_that_a_text_cannot_hold_are_refused(tmp_path):
    mdp = pl.stages.IntervalMDP.from_arrays([0, 1], [0, 1], [0], [1], [1], action=[0], action_names=("go on",))
    for ending in (".tra", ".drn"):
        with pytest.raises(
            pl.ModelError, match=r"action 'go on' has blanks, which a text cannot hold; write a file .umb"
        ):
            pl.exchange.write_interval_model(mdp, tmp_path / f"m{ending}")
    pl.exchange.write_interval_model(mdp, tmp_path / "m.umb")
    assert pl.exchange.read_interval_model(tmp_path / "m.umb").graph.action_names == ("go on",)


STUDY = pl.case_study("betting:5")
GRAPH = STUDY.model.graph


@pytest.mark.parametrize("ending", [".csv", ".txt", ".json"])
def test_policies_are_the_same_after_writing_and_reading(tmp_path, ending):
    rng = np.random.default_rng(0)
    choice = GRAPH.first_choice[:-1] + rng.integers(0, 10**6, GRAPH.n_states) % np.diff(GRAPH.first_choice)
    pl.exchange.write_policy(pl.PolicyTable(GRAPH, choice), tmp_path / f"policy{ending}")
    assert pl.read_policy(STUDY.model, tmp_path / f"policy{ending}").choice.tolist() == choice.tolist()


SCHEDULERS = {
    "text": ("[", " is not a scheduler in Storm's JSON (JSONDecodeError: "),
    "number": ([{"s": 10**6, "c": []}], f": there is no state 1000000; the model has {GRAPH.n_states} states"),
    "drawn": (
        [{"s": 0, "c": [{"index": 0, "prob": 0.5}, {"index": 1, "prob": 0.5}]}],
        " says nothing about 110 states with several actions: (money=10, step=1), ",
    ),
    "half": (
        [{"s": 0, "c": [{"index": 0, "prob": 0.25}, {"index": 1, "prob": 0.25}]}],
        f": state ({GRAPH.describe_state(0)}): the policy's probabilities sum to 0.5, not 1",
    ),
    "nothing": (
        [{"s": 0, "c": [{"index": 0, "prob": 0}]}],
        f": state ({GRAPH.describe_state(0)}): the scheduler has no action there",
    ),
    "memory": (
        [{"s": 0, "m": 1, "c": [{"index": 0}]}],
        ": the scheduler has memory, which the model does not have; read a policy with memory with ask(",
    ),
    "label": (
        [{"s": 0, "c": [{"index": 0, "labels": ["fly"]}]}],
        f": state ({GRAPH.describe_state(0)}): action 'fly' is not one of its own: 0 to {GRAPH.first_choice[1] - 1}, ",
    ),
    "lacking": ([], " says nothing about "),
}


@pytest.mark.parametrize(("content", "message"), SCHEDULERS.values(), ids=SCHEDULERS)
def test_schedulers_that_are_not_a_policy_are_refused(tmp_path, content, message):
    path = tmp_path / "s.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(pl.DataError) as caught:
        pl.read_policy(GRAPH, path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_lists_of_actions_are_refused_by_line(tmp_path):
    (tmp_path / "p.txt").write_text("(10,0):bet0\n(10):bet0\n")
    with pytest.raises(pl.DataError) as caught:
        pl.read_policy(GRAPH, tmp_path / "p.txt")
    form = "(money,step):action"
    assert str(caught.value) == f"{tmp_path / 'p.txt'}, line 2: '(10):bet0' is not of the form {form}"


def test_the_interval_model_of_what_was_learned_holds_the_truth():
    counts = pl.simulate(STUDY.model, STUDY.true_point, 500, rng=1, max_steps=6)
    learned = pl.learn(STUDY.model, counts, objectives=[STUDY.objective])
    ours = pl.exchange.interval_model(learned)
    truth = STUDY.model.probabilities(STUDY.true_point)
    assert (ours.mdp.lower <= truth).all()
    assert (truth <= ours.mdp.upper).all()
    with pytest.raises(
        pl.DataError, match=r"interval_model takes what learn\(model, counts\) returns, not Certificate"
    ):
        pl.exchange.interval_model(pl.conclude(learned, STUDY.objective))


def test_values_are_written_with_all_digits(tmp_path):
    solution = pl.stages.solve(pl.stages.instantiate(STUDY.model, STUDY.true_point), STUDY.objective)
    pl.exchange.write_values(GRAPH, solution.lower, solution.upper, tmp_path / "v.csv")
    header, first, *_ = (tmp_path / "v.csv").read_text().splitlines()
    assert header == "money,step,lower,upper"
    assert [float(value) for value in first.split(",")[2:]] == [solution.lower[0], solution.upper[0]]
    with pytest.raises(pl.DataError, match=r"v\.txt: values are written to files that end in \.csv"):
        pl.exchange.write_values(GRAPH, solution.lower, solution.upper, tmp_path / "v.txt")
