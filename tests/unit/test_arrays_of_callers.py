"""Arrays that callers give stay theirs: writable, unchanged, and no longer connected to what was made of them."""

from copy import deepcopy
from operator import attrgetter

import numpy as np
import pytest

import plumdp as pl
from plumdp.exchange.write_intervals import write_umb
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP

(P,) = pl.parameters("p")
UNIT = pl.ParameterSpace.unit("p")


def _step(s):
    if s.x == 0:
        return {"go": [(P, s._replace(x=1)), (1 - P, s._replace(x=2))], "wait": [(1, s)]}
    return {"stay": [(1, s)]}


MODEL = pl.explore(
    _step, {"x": 0}, space=UNIT, labels={"goal": lambda s: s.x == 1}, rewards={"steps": lambda s: float(s.x == 0)}
)
GRAPH = MODEL.graph
MDP = pl.stages.instantiate(MODEL, {"p": 0.5})
GOAL = pl.parse_property('Pmax=? [ F "goal" ]', MODEL)
COUNTS = pl.TransitionCounts(GRAPH, [60, 40, 0, 0, 0], "independent")


def _mask():
    return np.array([False, True, False])


def _batch(label):
    def step(s):
        yield "go", s.x == 0, [(P, s._replace(x=1)), (1 - P, s._replace(x=2))]
        yield "stay", s.x > 0, [(1, s)]

    model = pl.model.explore_batch(
        step, {"x": 0}, space=UNIT, labels={"goal": lambda s: label["label"]}, rewards={"r": lambda s: label["reward"]}
    )
    return model.labels["goal"], model.rewards["r"].state


def _from_arrays(given):
    imdp = IntervalMDP.from_arrays(**given)
    graph = imdp.graph
    return (
        graph.first_choice, graph.first_transition, graph.successor, imdp.lower, imdp.upper, imdp.expression,
        graph.action, graph.states["x"],
    )  # fmt: skip


def _simulated(given):
    return pl.simulate(MODEL, {"p": 0.5}, 50, rng=1, max_steps=5, policy=given["policy"], stop=given["stop"]).counts


def _certified(given):
    certificate = pl.certify(MODEL, COUNTS, GOAL, policy=given["policy"])
    return certificate.policy.choice


def _region(given):
    region = pl.stages.build_region(UNIT, [P], given["lower"], given["upper"])
    return region.lower, region.upper


ENTRIES = {
    "IntervalMDP.from_arrays": (
        lambda: {
            "first_choice": np.array([0, 1, 2], dtype=np.int32),
            "first_transition": np.array([0, 2, 3], dtype=np.int32),
            "successor": np.array([0, 1, 1], dtype=np.int32),
            "lower": np.array([0.1, 0.5, 1.0]),
            "upper": np.array([0.5, 0.9, 1.0]),
            "expression": np.array([0, 1, 2], dtype=np.int32),
            "states": {"x": np.array([0, 1], dtype=np.int32)},
            "action": np.array([0, 0], dtype=np.int32),
        },
        _from_arrays,
    ),
    "TransitionCounts": (
        lambda: {"counts": np.arange(5), "pilot": np.zeros(5, dtype=np.int64)},
        lambda given: [
            attrgetter(name)(pl.TransitionCounts(GRAPH, given["counts"], "adaptive", given["pilot"]))
            for name in ("counts", "pilot.counts", "main", "visits")
        ],
    ),
    "Reach": (
        lambda: {"target": _mask(), "avoid": ~_mask()},
        lambda given: [
            getattr(pl.model.Reach(given["target"], given["avoid"], "max"), name) for name in ("target", "avoid")
        ],
    ),
    "Reward": (
        lambda: {"state": np.ones(3), "choice": np.ones(4), "target": _mask()},
        lambda given: _parts(
            pl.model.Reward(RewardStructure(given["state"], given["choice"]), "min", target=given["target"])
        ),
    ),
    "explore_batch": (lambda: {"label": _mask(), "reward": np.ones(3)}, _batch),
    "PolicyTable": (
        lambda: {"choice": np.array([0, 2, 3], dtype=np.int32)},
        lambda given: pl.PolicyTable(GRAPH, given["choice"]).choice,
    ),
    "evaluate": (
        lambda: {"policy": np.array([0, 2, 3], dtype=np.int32)},
        lambda given: pl.stages.evaluate(MDP, given["policy"], GOAL).policy,
    ),
    "evaluate, drawn": (
        lambda: {"policy": np.array([0.5, 0.5, 1.0, 1.0])},
        lambda given: pl.stages.evaluate(MDP, given["policy"], GOAL).lower,
    ),
    "certify": (lambda: {"policy": np.array([0, 2, 3], dtype=np.int32)}, _certified),
    "simulate": (lambda: {"policy": np.array([0, 2, 3], dtype=np.int32), "stop": _mask()}, _simulated),
    "build_region": (lambda: {"lower": np.array([0.25]), "upper": np.array([0.75])}, _region),
    "tabulate": (
        lambda: {"column": np.array([0, 1, 2])},
        lambda given: pl.model.tabulate(lambda x: P / (x + 1), given["column"]).index,
    ),
}


def _parts(objective):
    return objective.reward.state, objective.reward.choice, objective.target


def _arrays(given):
    return [a for value in given.values() for a in (_arrays(value) if isinstance(value, dict) else [value])]


@pytest.mark.parametrize("entry", ENTRIES)
def test_arrays_stay_those_of_the_caller(entry):
    make, use = ENTRIES[entry]
    given = make()
    before = deepcopy(given)
    made = use(given)
    kept = deepcopy(made)
    for array, old in zip(_arrays(given), _arrays(before), strict=True):
        assert array.flags.writeable
        assert np.array_equal(array, old)
        array[:] = ~array if array.dtype == bool else array + 1
    for now, then in zip(_listed(made), _listed(kept), strict=True):
        assert np.array_equal(now, then), "what was made follows the caller's array"


def _listed(made):
    return [made] if isinstance(made, np.ndarray) else list(made)


def test_writing_an_archive_leaves_labels_and_rewards_alone(tmp_path):
    mask, rewards = _mask(), np.ones(3)
    write_umb(MDP, tmp_path / "m.umb", labels={"goal": mask}, rewards={"r": RewardStructure(rewards, None)})
    assert mask.flags.writeable
    assert rewards.flags.writeable
