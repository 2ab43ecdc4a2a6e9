"""Interval models through files and Storm: what we write it solves as we do, what it writes we read, and its robust
values on what was learned are never better than what we certify.

Storm iterates values from below until they change by less than 1e-10; all comparisons allow 1e-6.
"""

from pathlib import Path

import numpy as np
import pytest

import plumdp as pl
from plumdp.exchange.read_intervals import IntervalModel, model_at
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP

MODELS = Path(__file__).parents[1] / "models"

pytestmark = pytest.mark.slow

stormpy = pytest.importorskip("stormpy")
developer = pytest.importorskip("stormpy.developer")
storm_values = pytest.importorskip("storm_values").storm_values
developer.set_log_level(developer.LogLevel.OFF)

TOLERANCE = 1e-6


def random_model(seed):
    """Return a model of 15 to 30 states, 1 to 3 choices each, 2 or 3 successors each, with positive lower bounds."""
    rng = np.random.default_rng(seed)
    n_states = int(rng.integers(15, 31))
    first_choice = np.concatenate([[0], np.cumsum(rng.integers(1, 4, n_states))])
    sizes = rng.integers(2, 4, first_choice[-1])
    probability = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    mdp = IntervalMDP.from_arrays(
        first_choice,
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([rng.choice(n_states, size, replace=False) for size in sizes]),
        probability * rng.uniform(0.2, 0.95, len(probability)),
        probability + (1 - probability) * rng.uniform(0.02, 0.6, len(probability)),
        initial_state=int(rng.integers(n_states)),
        action=rng.integers(0, 2, first_choice[-1]),
        action_names=("left", "right"),
    )
    states = np.arange(n_states)
    labels = {"goal": states % 7 == 1, "safe": states % 5 != 3}
    rewards = {"cost": RewardStructure(rng.uniform(0.5, 2, n_states), rng.uniform(0, 3, first_choice[-1]))}
    return IntervalModel(mdp, labels, rewards)


def storm_reads(path):
    return stormpy.build_model_from_umb(str(path))


QUERIES = ('P{}=? [ F "goal" ]', 'P{}=? [ "safe" U "goal" ]', 'P{}=? [ F<=6 "goal" ]', 'R{{"cost"}}{}=? [ C<=5 ]')
SECOND = {
    ("max", "robust"): "min",
    ("min", "robust"): "max",
    ("max", "optimistic"): "max",
    ("min", "optimistic"): "min",
}


@pytest.mark.parametrize("seed", range(6))
def test_storm_solves_what_we_write_as_we_do(tmp_path, seed):
    """Ours is asked in PRISM's words: the agent first, nature second."""
    model, path = random_model(seed), tmp_path / "model.umb"
    pl.exchange.write_interval_model(model, path)
    theirs, ours = storm_reads(path), pl.exchange.read_interval_model(path)
    for query in QUERIES:
        for (direction, nature), second in SECOND.items():
            solution = pl.stages.solve(ours, query.format(direction + second), precision=1e-8)
            value = storm_values(theirs, query.format(direction), nature)
            assert (solution.lower - TOLERANCE <= value).all(), (query, direction, nature)
            assert (value <= solution.upper + TOLERANCE).all(), (query, direction, nature)


@pytest.mark.parametrize("seed", range(4))
def test_schedulers_of_storm_come_back_by_the_numbers_of_their_choices(tmp_path, seed):
    """Where Storm says that its scheduler is best, our proof about the same choices finds Storm's value."""
    model, path = random_model(seed), tmp_path / "model.umb"
    pl.exchange.write_interval_model(model, path)
    theirs, formula = storm_reads(path), stormpy.parse_property('Pmax=? [ "safe" U "goal" ]')
    mode = stormpy.UncertaintyResolutionMode.ROBUST
    result = stormpy.model_checking(theirs, formula, extract_scheduler=True, uncertainty_resolution_mode=mode)
    best = result.get_scheduler()
    picked = [best.get_choice(state).get_deterministic_choice() for state in range(theirs.nr_states)]
    policy = pl.PolicyTable(model.graph, model.graph.first_choice[:-1] + picked)
    asked = 'Pmaxmin=? [ "safe" U "goal" ]'
    ours = pl.stages.evaluate(model, policy.choice, asked, precision=1e-8)
    value = np.array(result.get_value_vector())
    assert np.abs(ours.lower - value).max() < 1e-5  # Storm's own precision is 1e-6
    others = pl.stages.evaluate(model, model.graph.first_choice[:-1], asked, precision=1e-8)
    assert (others.upper < value - 1e-3).any()  # other choices are worth less


def bounds_of(model):
    return [
        sorted(
            (entry.column, entry.value.lower(), entry.value.upper()) for entry in model.transition_matrix.get_row(row)
        )
        for row in range(model.nr_choices)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_files_that_storm_writes_are_read(tmp_path, seed):
    model = random_model(seed)
    pl.exchange.write_interval_model(model, tmp_path / "ours.umb")
    theirs = storm_reads(tmp_path / "ours.umb")
    options = stormpy.io.DirectEncodingExporterOptions()
    options.output_precision = 17
    stormpy.io.export_to_drn(theirs, str(tmp_path / "theirs.drn"), options=options)
    stormpy.io.export_to_umb(theirs, str(tmp_path / "theirs.umb"))  # compressed
    for name in ("theirs.drn", "theirs.umb"):
        read = pl.exchange.read_interval_model(tmp_path / name)
        assert read.graph.first_choice.tolist() == model.graph.first_choice.tolist()
        assert read.graph.initial_state == model.graph.initial_state
        assert read.labels["goal"].tolist() == model.labels["goal"].tolist()
        assert read.rewards["cost"].state.tolist() == pytest.approx(model.rewards["cost"].state.tolist(), rel=1e-15)
        pl.exchange.write_interval_model(read, tmp_path / "again.umb")
        assert bounds_of(storm_reads(tmp_path / "again.umb")) == bounds_of(theirs)


PROGRAM = (MODELS / "intervals.prism").read_text()


def test_prism_files_with_intervals_are_read_with_the_nearest_floats_and_solved_as_storm_does(tmp_path):
    (tmp_path / "walk.prism").write_text(PROGRAM)
    model = pl.exchange.read_interval_model(tmp_path / "walk.prism", constants={"N": 4})
    assert {0.55, 0.8, 0.9, 0.1, 0.3} <= {*model.mdp.lower.tolist(), *model.mdp.upper.tolist()}
    assert set(model.graph.states) == {"x", "is_tired"}
    assert model.rewards["steps"].state[0] == 0.1
    pl.exchange.write_interval_model(model, tmp_path / "walk.umb")
    theirs = storm_reads(tmp_path / "walk.umb")
    start = model.graph.initial_state
    for nature, second in (("robust", "min"), ("optimistic", "max")):
        ours = pl.stages.solve(model, f"Pmax{second}=? [ F x=N ]", precision=1e-8)
        value = storm_values(theirs, 'Pmax=? [ F "home" ]', nature)[start]
        assert ours.lower[start] - TOLERANCE <= value <= ours.upper[start] + TOLERANCE
    with pytest.raises(pl.ModelError, match=r"walk\.prism: no value for N"):
        pl.exchange.read_interval_model(tmp_path / "walk.prism")
    with pytest.raises(pl.ModelError, match="its probabilities are intervals, so there are no parameters to learn"):
        pl.read_model(tmp_path / "walk.prism", constants={"N": 4})


def test_parameters_of_a_prism_file_must_have_values(tmp_path):
    (tmp_path / "p.prism").write_text("mdp const double p; module m x:[0..1]; [] true -> p:(x'=1)+1-p:true; endmodule")
    with pytest.raises(pl.ModelError, match=r"p\.prism: p has no value; give constants=\{.p.: 0\.3\}, or learn from"):
        pl.exchange.read_interval_model(tmp_path / "p.prism")
    model = pl.exchange.read_interval_model(tmp_path / "p.prism", constants={"p": "1/3"})
    assert sorted(set(model.mdp.lower.tolist())) == [1 / 3, 2 / 3, 1.0]


STUDIES = ("aircraft:10,4,2", "betting:5", "glider:11,9")


@pytest.mark.parametrize("name", STUDIES)
def test_what_storm_finds_on_the_exported_model_is_what_we_certify_and_not_better(tmp_path, name):
    """Storm knows the intervals alone, so that it agrees with the relaxation of intervals, and coupled bounds win."""
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, 2000, rng=1, max_steps=30)
    learned = pl.learn(study.model, counts, objectives=[study.objective])
    pl.exchange.write_interval_model(pl.exchange.interval_model(learned), tmp_path / "learned.umb")
    theirs, start = storm_reads(tmp_path / "learned.umb"), study.model.graph.initial_state
    value = storm_values(theirs, study.objective.text, "robust")[start]
    ours = pl.stages.solve(
        pl.exchange.interval_model(learned, relaxation="expression"), study.objective, precision=1e-8
    )
    assert ours.lower[start] - TOLERANCE <= value <= ours.upper[start] + TOLERANCE
    certificate = pl.conclude(learned, study.objective)
    if study.objective.direction == "max":
        assert value <= certificate.lower + TOLERANCE
    else:
        assert value >= certificate.upper - TOLERANCE


def test_storm_reads_a_model_at_a_point_as_a_plain_mdp_with_our_values(tmp_path):
    study = pl.case_study("aircraft:20,10")
    model = model_at(study.model, study.true_point)
    path = tmp_path / "model.umb"
    pl.exchange.write_interval_model(model, path)
    text = 'Pmax=? [ !"collision" U "goal" ]'
    plain = storm_reads(path)
    assert "Interval" not in type(plain).__name__
    formula = stormpy.parse_property(text)
    found = np.array(stormpy.model_checking(plain, formula).get_value_vector())
    ours = pl.stages.solve(pl.stages.instantiate(study.model, study.true_point), pl.parse_property(text, study.model))
    assert np.abs(found - ours.lower).max() <= TOLERANCE
    again = pl.exchange.read_interval_model(path).mdp
    assert again.is_point
    assert again.lower[again.expression].tolist() == model.mdp.lower[model.mdp.expression].tolist()
