"""The case studies have exactly the published sizes: states, transitions, expressions."""

import pytest

import plumdp as pl

SIZES = {
    "aircraft:20,10": (1833, 23743, 271),
    "aircraft:50,10": (5463, 73033, 721),
    "aircraft:100,20": (39028, 551598, 1441),
    "aircraft:200,40": (294458, 4285228, 2881),
    "betting:25": (3625, 27703, 1283),
    "betting:50": (13500, 111678, 2613),
    "betting:100": (52000, 448378, 5283),
    "betting:135": (93825, 817943, 7147),
    "betting:150": (115500, 1010078, 7947),
    "engagement:50": (994, 2962, 61),
    "engagement:100": (1994, 5962, 61),
    "engagement:300": (5994, 17962, 61),
    "engagement:1000": (19994, 59962, 61),
    "rover:10,10": (5139, 24515, 145),
    "rover:50,50": (191868, 1003861, 643),
    "rover:75,75": (550447, 2973287, 943),
    "rover:125,125": (1749083, 9591771, 1543),
    "glider:11,9": (99, 1317, 225),
    "glider:21,17": (357, 5209, 777),
    "glider:51,47": (2397, 37066, 4977),
    "glider:71,67": (4757, 74299, 9768),
    "parallel:5": (3051, 15543, 477),
    "parallel:6": (5046, 30746, 597),
    "parallel:10": (21006, 187730, 1077),
    "parallel:20": (151556, 1846840, 185209),
}
MAX_STEPS = {
    "aircraft:50,10": 50,
    "betting:25": 25,
    "engagement:50": 50,
    "engagement:100": 150,
    "rover:10,10": 50,
    "glider:11,9": 100,
    "glider:51,47": 600,
    "parallel:5": 5,
}
CYCLIC = ("engagement", "glider")


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_as_published_and_the_model_is_sound(name):
    study = pl.benchmark(name)
    model = study.model
    assert (model.graph.n_states, model.graph.n_transitions, len(model.expressions)) == SIZES[name]
    assert model.nbytes <= 24 * model.graph.n_transitions or model.graph.n_transitions < 10_000
    assert [issue.message for issue in pl.check(model) if issue.severity != "note"] == []
    assert model.space.contains(study.true_point)
    assert model.graph.is_acyclic() == (not name.startswith(CYCLIC))


@pytest.mark.parametrize("name", MAX_STEPS)
def test_the_longest_trajectory_is_as_published(name):
    assert pl.benchmark(name).max_steps == MAX_STEPS[name]


@pytest.mark.parametrize("name", [name for name, sizes in SIZES.items() if sizes[1] < 50_000])
def test_rows_of_the_instance_at_the_true_point_sum_to_one(name):
    study = pl.benchmark(name)
    mdp = pl.instantiate(study.model, study.true_point)
    assert (mdp.lower == mdp.upper).all()
    assert ((mdp.lower >= 0) & (mdp.upper <= 1)).all()
    assert abs(mdp.graph.sum_by_choice(mdp.lower[mdp.expression]) - 1).max() < 1e-15 * 16
