"""``plumdp certify`` with two policies: bounds on the difference of their values, side by side."""

import json

import pytest
from command_line import plumdp

MODEL = """
import plumdp

p, q = plumdp.parameters("p", "q")


def step(state):
    if state.x in (-1, 2):
        return {"stay": [(1, state)]}
    after, lost = state._replace(x=state.x + 1), state._replace(x=-1)
    return {"slow": [(p, after), (1 - p, lost)], "fast": [(q, after), (1 - q, lost)]}


goal = {"goal": lambda state: state.x == 2}
free = plumdp.explore(step, {"x": 0}, space=plumdp.ParameterSpace.unit("p", "q"), labels=goal)
"""
GOAL = ("-p", 'Pmax=? [ F "goal" ]')


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "m.py").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        options = ("--at", "p=0.5,q=0.9", "-n", "1000", "--max-steps", "3", "--seed", "1")
        assert plumdp("simulate", "m.py:free", *options, "-o", "other.parquet").code == 0
        yield plumdp


@pytest.mark.slow
def test_two_policies_are_compared_by_the_difference_of_their_values(run):
    arguments = ("m.py:free", "other.parquet", *GOAL, "--policy")
    better, worse = (
        run("certify", *arguments, *pair) for pair in (("fast", "--against", "slow"), ("slow", "--against", "fast"))
    )
    assert (better.code, worse.code) == (0, 1)
    assert better.out.startswith("Certified: the probability that the system ")
    told = json.loads(run("certify", *arguments, "fast", "--against", "slow", "--json").out)
    assert told["lower"] <= 0.9**2 - 0.5**2 <= told["upper"]
    assert told["upper"] - told["lower"] <= told["first"]["upper"] - told["second"]["lower"]
    same = run("certify", *arguments, "fast", "--against", "fast")
    assert same.code == 1  # 0 says that it is better
    assert same.out.startswith("Certified: fast and fast do the same wherever they lead; the difference is 0.")


def test_a_policy_to_compare_with_that_there_is_not_is_named(run):
    ended = run("certify", "m.py:free", "other.parquet", *GOAL, "--policy", "fast", "--against", "none")
    assert (ended.code, ended.err.strip()) == (
        2,
        "error: --against none: there is no such file, and no action of this name",
    )
