"""``plumdp check-model`` with several models: which of them the data contradict; and two policies side by side."""

import json
from pathlib import Path

import pytest
from coin_model import COIN
from command_line import plumdp
from support.refusals import rows

import plumdp as pl

MODELS = """
import plumdp

p, q = plumdp.parameters("p", "q")


def build(ties="free", n=2, free=0):
    slow, fast = (p, q) if ties == "free" or free else (p, p)

    def step(state):
        if state.x in (-1, n):
            return {"stay": [(1, state)]}
        after, lost = state._replace(x=state.x + 1), state._replace(x=-1)
        return {"slow": [(slow, after), (1 - slow, lost)], "fast": [(fast, after), (1 - fast, lost)]}

    names = ("p", "q") if ties == "free" or free else ("p",)
    goal = {"goal": lambda state: state.x == n}
    return plumdp.explore(step, {"x": 0}, space=plumdp.ParameterSpace.unit(*names), labels=goal)


tied, free = build("tied"), build()
"""
GOAL = ("-p", 'Pmax=? [ F "goal" ]')


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "m.py").write_text(MODELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        options = ("-n", "1000", "--max-steps", "3", "--seed", "1")
        for name, point in (("same", "p=0.8,q=0.8"), ("other", "p=0.5,q=0.9")):
            assert plumdp("simulate", "m.py:free", "--at", point, *options, "-o", f"{name}.parquet").code == 0
        yield plumdp


def test_models_that_explain_the_data_are_all_left(run):
    ended = run("check-model", "m.py:tied", "m.py:free", "same.parquet", *GOAL)
    assert ended.code == 0
    assert "The data do not contradict m.py:tied, m.py:free." in " ".join(ended.out.split())


def test_a_wrong_model_is_named_and_the_other_has_its_part_of_the_error(run):
    ended = run("check-model", "m.py:tied", "m.py:free", "other.parquet", *GOAL, "--confidence", "0.99", "--json")
    told = json.loads(ended.out)
    assert ended.code == 0
    assert told["contradicted"] == ["m.py:tied"]
    assert told["models"]["m.py:free"]["confidence"] == pytest.approx(0.995)
    assert told["models"]["m.py:free"]["lower"] < 0.81 < told["models"]["m.py:free"]["upper"]


def test_the_exit_code_says_if_no_model_is_left(run):
    ended = run("check-model", "m.py:tied", "m.py:build", "other.parquet", *GOAL, "-c", "ties=tied", "--json")
    assert ended.code == 2  # m.py:tied takes no constants
    (Path("same.py")).write_text("from m import build\none, other = build('tied'), build('tied')\n")
    ended = run("check-model", "same.py:one", "same.py:other", "other.parquet", *GOAL, "--json")
    assert ended.code == 3
    assert json.loads(ended.out)["sentence"] == "The data contradict all 2 models, with confidence 99.9 %."


def test_a_range_of_a_constant_is_several_candidates(run):
    ended = run("check-model", "m.py:build", "other.parquet", *GOAL, "-c", "ties=tied,free=0:1", "--json")
    told = json.loads(ended.out)
    assert [*told["models"]] == ["m.py:build ties=tied free=0", "m.py:build ties=tied free=1"]
    assert told["contradicted"] == ["m.py:build ties=tied free=0"]


@pytest.mark.parametrize(("arguments", "message"), rows("commands:compared_models"))
def test_misuse_says_what_to_write(run, arguments, message):
    ended = run("check-model", *arguments, *GOAL)
    assert (ended.code, ended.err.strip()) == (2, f"error: {message}")


@pytest.mark.slow
def test_two_policies_are_compared_by_the_difference_of_their_values(run):
    arguments = ("m.py:free", "other.parquet", *GOAL, "--policy")
    better, worse = (
        run("certify", *arguments, *pair) for pair in (("fast", "--against", "slow"), ("slow", "--against", "fast"))
    )
    assert (better.code, worse.code) == (0, 1)
    assert better.out.startswith("fast is better: its value is larger by at least 0.")
    told = json.loads(run("certify", *arguments, "fast", "--against", "slow", "--json").out)
    assert told["lower"] <= 0.9**2 - 0.5**2 <= told["upper"]
    assert told["upper"] - told["lower"] <= told["first"]["upper"] - told["second"]["lower"]
    same = run("certify", *arguments, "fast", "--against", "fast")
    assert same.code == 1  # 0 says that it is better
    assert same.out.startswith("fast and fast do the same wherever they lead: the difference is 0.")


def test_a_policy_to_compare_with_that_there_is_not_is_named(run):
    ended = run("certify", "m.py:free", "other.parquet", *GOAL, "--policy", "fast", "--against", "none")
    assert (ended.code, ended.err.strip()) == (
        2,
        "error: --against none: there is no such file, and no action of this name",
    )


@pytest.mark.slow
def test_python_takes_a_log_as_it_takes_its_counts():
    pandas = pytest.importorskip("pandas")
    log = pl.read_log(COIN, pandas.DataFrame({"x": [0] * 9, "action": "go", "next_x": [1] * 6 + [2] * 3}))
    both = [
        pl.compare_models({"coin": COIN}, data, 'Pmax=? [ F "heads" ]', confidence=0.9) for data in (log, log.counts)
    ]
    assert len({each.certificates["coin"].printed_bounds for each in both}) == 1
