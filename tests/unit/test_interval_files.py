"""Interval models through files: what is written is read again bit by bit, and wrong files are refused by line."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import plumdp as pl
from plumdp import ModelError
from plumdp.exchange.read_intervals import IntervalModel
from plumdp.model.parametric import RewardStructure
from plumdp.model.readers.umb import _bit_field, _column
from plumdp.relaxation.intervals import IntervalMDP

MODELS = Path(__file__).parents[1] / "models"


def random_model(seed):
    """Return a model of 2 to 8 states with variables, awkward bounds, labels and up to two reward structures."""
    rng = np.random.default_rng(seed)
    n_states = int(rng.integers(2, 9))
    n_choices = rng.integers(1, 4, n_states)
    first_choice = np.concatenate([[0], np.cumsum(n_choices)])
    sizes = rng.integers(1, min(n_states, 3) + 1, first_choice[-1])
    successor = np.concatenate([rng.choice(n_states, size, replace=False) for size in sizes])
    probability = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    mdp = IntervalMDP.from_arrays(
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
        "": RewardStructure(rng.random(n_states) + 0.1, None),
        "cost": RewardStructure(rng.random(n_states), rng.random(first_choice[-1])),
    }
    names = rng.permutation(["", "cost"])[: rng.integers(3)]
    labels = {"goal": rng.random(n_states) < 0.4, "two words": np.arange(n_states) == 1}
    return IntervalModel(mdp, labels, {name: rewards[name] for name in rewards if name in names})


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
@given(seed=st.integers(0, 10**6))
def test_a_model_is_the_same_after_writing_and_reading(tmp_path_factory, seed):
    model, path = random_model(seed), tmp_path_factory.mktemp("models") / "model.umb"
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


DRN = (MODELS / "by_hand.drn").read_text()


def test_a_text_as_storm_writes_it_is_read(tmp_path):
    (tmp_path / "m.drn").write_text(DRN)
    model = pl.exchange.read_interval_model(tmp_path / "m.drn")
    assert model.mdp.upper.tolist() == [0.7, 0.5, 1, 1]
    assert model.rewards["time"].state.tolist() == [1.5, 0]
    assert model.rewards["time"].choice.tolist() == [2, 0, 0]
    assert model.labels["two words"].tolist() == [True, False]
    assert model.graph.action_names == ("go", "")
    assert model.graph.states["state"].tolist() == [0, 1]


ROBOT = (MODELS / "robot_of_storm.drn").read_text()


def test_an_interval_model_is_solved_as_by_hand(tmp_path):
    """By hand: "go" reaches state 2 with 0.5 to 0.7, and "wait" at once with 0.8, else with 0.2 back to the start."""
    (tmp_path / "m.drn").write_text(ROBOT)
    model = pl.exchange.read_interval_model(tmp_path / "m.drn")
    assert model.graph.states["x"].tolist() == [0, 1, -2]
    assert model.graph.states["done"].tolist() == [False, True, True]
    assert model.rewards["time"].choice.tolist() == [2, 0, 0, 0]
    robust, best = (pl.stages.solve(model, f"{kind}=? [ F x=1 ]") for kind in ("Pmaxmin", "Pmaxmax"))
    assert robust.lower[0] <= 0.3 <= robust.upper[0]
    assert best.lower[0] <= 0.5 <= best.upper[0]
    assert pl.stages.solve(model, 'R{"time"}minmax=? [ C<=1 ]').upper[0] == pytest.approx(1.5)


def test_wrong_texts_are_refused_with_file_and_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(name, old, new):
        Path(name).write_text({"robot.drn": ROBOT, "m.drn": DRN}[name].replace(old, new, 1))
        pl.exchange.read_interval_model(name)

    refused("interval_files:changed", read)


@given(st.sampled_from([DRN, ROBOT]), st.data())
def test_damaged_texts_are_read_or_refused_and_nothing_else(tmp_path_factory, text, data):
    """A line or a few characters of one file are replaced by others of the same kind."""
    file = tmp_path_factory.mktemp("damaged") / "m.drn"
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    new = data.draw(st.text(alphabet='0123456789.-,:;[](){}="@$/# \nabeE²\u0663', max_size=6))
    file.write_text(text[:start] + new + text[end:])
    message = ""
    try:
        pl.exchange.read_interval_model(file)
    except pl.ModelError as error:
        message = str(error)
    assert not message or message.startswith(f"{file}")


def test_files_without_a_reader_or_writer_are_refused(tmp_path):
    (tmp_path / "m.dot").touch()
    (tmp_path / "m.umb").write_text("no archive")
    (tmp_path / "m.tra").touch()
    (tmp_path / "m.drn").write_bytes(b"\xff\xfe\x00")
    for name, message in (
        ("m.dot", "there is no reader of interval models for a file that ends in .dot; the endings are .umb, .drn, "),
        ("none.drn", "there is no such file"),
        ("m.umb", "this is not a UMB archive, or it is damaged: a part of it is missing, or "),
        ("m.drn", "this is not a text in UTF-8"),
        ("m.tra", ".tra files are not read; give a .umb file, which PRISM 4.10 or later can export"),
    ):
        with pytest.raises(pl.ModelError) as caught:
            pl.exchange.read_interval_model(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: {message}")
    model = random_model(1)
    with pytest.raises(pl.ModelError, match=r"m\.dot: interval models are written to files that end in \.umb$"):
        pl.exchange.write_interval_model(model, tmp_path / "m.dot")
    with pytest.raises(pl.ModelError, match=r"write_interval_model takes an interval model .*, not str"):
        pl.exchange.write_interval_model("model", tmp_path / "m.umb")
    with pytest.raises(
        pl.ModelError, match="this is an explicit model, without parameters to learn; read_interval_model"
    ):
        pl.read_model(tmp_path / "m.umb")


STUDY = pl.case_study("betting:5")
GRAPH = STUDY.model.graph


@pytest.mark.parametrize("ending", [".csv", ".txt", ".json"])
def test_policies_are_the_same_after_writing_and_reading(tmp_path, ending):
    rng = np.random.default_rng(0)
    choice = GRAPH.first_choice[:-1] + rng.integers(0, 10**6, GRAPH.n_states) % np.diff(GRAPH.first_choice)
    pl.exchange.write_policy(pl.PolicyTable(GRAPH, choice), tmp_path / f"policy{ending}")
    assert pl.read_policy(STUDY.model, tmp_path / f"policy{ending}").choice.tolist() == choice.tolist()


def test_a_policy_without_its_model_is_not_written_as_a_scheduler(tmp_path):
    """The best action of betting:5 is not the first one in some states, so that its number is not that of a row."""
    counts = pl.simulate(STUDY.model, STUDY.true_point, 500, rng=1, max_steps=6)
    certificate = pl.certify(STUDY.model, counts, STUDY.objective)
    pl.write_result(certificate, tmp_path / "result")
    alone, known = (pl.read_result(tmp_path / "result", model).policy for model in (None, STUDY.model))
    with pytest.raises(
        pl.DataError, match=r"s\.json: a scheduler has the numbers of the model's choices.*give the model"
    ):
        pl.exchange.write_policy(alone, tmp_path / "s.json")
    assert not (tmp_path / "s.json").exists()
    pl.exchange.write_policy(known, tmp_path / "s.json")
    assert pl.read_policy(STUDY.model, tmp_path / "s.json").choice.tolist() == certificate.policy.choice.tolist()
    pl.exchange.write_policy(alone, tmp_path / "p.csv")
    assert pl.read_policy(STUDY.model, tmp_path / "p.csv").choice.tolist() == certificate.policy.choice.tolist()


def test_schedulers_and_lists_that_are_not_a_policy_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(content, name="s.json"):
        Path(name).write_text(content)
        pl.read_policy(GRAPH, name)

    refused("interval_files:schedulers", read, pl.DataError)
    with pytest.raises(pl.DataError, match=r"^p\.txt, line 2: '\(10\):bet0' is not of the form \(money,step\):action$"):
        read("(10,0):bet0\n(10):bet0\n", "p.txt")


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


# Bit-packed valuations of UMB archives, against packing by hand


@given(st.data())
def test_fields_of_any_width_and_place_are_read_back(data):
    sizes = data.draw(st.lists(st.integers(1, 63), min_size=1, max_size=6))
    states = data.draw(st.lists(st.tuples(*(st.integers(0, 2**size - 1) for size in sizes)), min_size=1, max_size=5))
    n_bytes = (sum(sizes) + 7) // 8
    packed = []
    for state in states:
        word, position = 0, 0
        for value, size in zip(state, sizes, strict=True):
            word |= value << position
            position += size
        packed.append(list(word.to_bytes(n_bytes, "little")))
    rows = np.array(packed, dtype=np.uint8)
    for j, size in enumerate(sizes):
        assert _bit_field(rows, sum(sizes[:j]), size).tolist() == [state[j] for state in states]


def test_offsets_and_signs_are_applied():
    code = np.array([0, 1, 3], dtype=np.uint64)
    assert _column("x", "uint", code, 2, -1).tolist() == [-1, 0, 2]
    assert _column("x", "int", code, 2, 0).tolist() == [0, 1, -1]
    assert _column("x", "bool", code[:2], 1, 0).tolist() == [False, True]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("uint", "state variable x leaves the range of 32-bit integers"),
        ("double", "state variable x is of type double; use integers or Booleans"),
    ],
)
def test_values_that_cannot_be_kept_are_refused_by_name(kind, message):
    with pytest.raises(ModelError) as caught:
        _column("x", kind, np.array([2**40], dtype=np.uint64), 64, 0)
    assert str(caught.value) == message
