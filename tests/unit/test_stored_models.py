"""Models on disk: the same model, counts and certificate, bit for bit, as in memory; and what is refused."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from shorthand import compare
from tiers import size

import plumdp as pl
from plumdp.case_studies import aircraft, betting
from plumdp.data.counts import TransitionCounts
from plumdp.model import explore_levels
from plumdp.model.explore_levels import GrowingFile
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.graph import is_mapped, offset_type
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import by_levels


class Place(NamedTuple):
    level: Any
    place: Any
    is_late: Any


def layered(folder, *, n_levels=12, width=40, seed=1):
    """Return a layered model of about 10^4 transitions: rows of 1 to 6, merged successors, zeros, runs that end early.

    On disk if there is a folder.
    """
    rng = np.random.default_rng(seed)
    p, q = pl.parameters("p", "q")
    rows = [
        [p * Fraction(1, 2), q * Fraction(1, 3), 1 - p * Fraction(1, 2) - q * Fraction(1, 3)],
        [p * Fraction(1, 4), p * Fraction(1, 4), 1 - p * Fraction(1, 2)],
        [q, 1 - q],
        [Fraction(1, 5), q * Fraction(4, 5), Fraction(4, 5) - q * Fraction(4, 5), Polynomial(0)],
        [p / 6, p / 6, q / 6, q / 6, Fraction(2, 3) - p / 3, Fraction(1, 3) - q / 3],
        [Polynomial(1)],
    ]
    first = rng.integers(0, width, (n_levels, width, len(rows)))

    def step(s):
        ends = (s.level == n_levels) | (s.place % 13 == 12)
        for a, row in enumerate(rows):
            where = ~ends & ((s.place + a) % 5 > 0) & ((a < 5) | (s.place % 9 == 0))
            to = first[np.minimum(s.level, n_levels - 1), s.place, a]
            outcomes = [(f, Place(s.level + 1, (to + 3 * j * (j < 4)) % width, s.level > 3)) for j, f in enumerate(row)]
            yield f"row {a}", where, outcomes
        for name in ("stop", "rest"):
            yield name, ends, [(1, s)]

    return pl.model.explore_batch(
        step,
        Place(0, 0, False),
        space=pl.ParameterSpace.unit("p", "q"),
        labels={"goal": lambda s: (s.level == n_levels) & (s.place % 7 == 0), "end": lambda s: s.level == n_levels},
        rewards={"time": lambda s: np.where((s.level < n_levels) & (s.place % 13 < 12), 1.0 + s.place % 2, 0.0)},
        choice_rewards={
            "time": lambda s, name: (len(name) + s.place) % 3 * (s.place % 13 < 12) * (s.level < n_levels) / 7
        },
        **({} if folder is None else {"store": folder, "level": lambda s: s.level}),
    )


def stored_study(monkeypatch, folder, module, build, level):
    explore = module.explore_batch
    monkeypatch.setattr(module, "explore_batch", lambda *a, **k: explore(*a, store=folder, level=level, **k))
    model = build()
    monkeypatch.setattr(module, "explore_batch", explore)
    return model


@pytest.fixture(params=["layered", "betting", "aircraft"])
def both(request, tmp_path, monkeypatch):
    """Return a model in memory and on disk, its properties, the true point, and the number of steps."""
    if request.param == "layered":
        asked = ['Pmax=? [ F "goal" ]', 'Pmin=? [ G !"goal" ]', 'R{"time"}min=? [ C ]', 'R{"time"}max=? [ F "end" ]']
        return layered(None), layered(tmp_path / "model"), asked, {"p": "0.3", "q": "0.6"}, 13
    if request.param == "betting":
        disk = stored_study(monkeypatch, tmp_path / "model", betting, lambda: betting.betting(12), lambda s: s.step)
        asked = [betting.PROPERTY, betting.PROPERTY.replace("max", "min")]
        return betting.betting(12), disk, asked, betting.TRUE_POINT, 14
    disk = stored_study(monkeypatch, tmp_path / "model", aircraft, lambda: aircraft.aircraft(9, 6, 2), lambda s: s.x)
    asked = [aircraft.PROPERTY, aircraft.PROPERTY.replace("max", "min")]
    return aircraft.aircraft(9, 6, 2), disk, asked, aircraft.TRUE_POINT, 10


def adaptive(counts):
    """Return the counts without the assumption on stopping that stored models never make."""
    return TransitionCounts(counts.graph, counts.counts, "adaptive", counts.pilot)


def claim(certificate):
    """Return all that a certificate claims, but for seconds, provenance and the test of the model."""
    is_finite = certificate.upper < np.inf  # otherwise any row will do
    of = certificate
    parts = [
        of.lower,
        of.upper,
        of.claim.objective,
        of.how.relaxation,
        of.how.confidence_set,
        of.claim.guarantee,
        of.status,
        of.rests_on.parameters,
    ]
    return [*parts, of.how.solver, of.policy.choice.tolist() if is_finite else []]


def test_a_stored_model_is_the_model_in_memory(both):
    memory, disk, *_ = both
    assert disk.fingerprint == memory.fingerprint
    assert disk.expressions.polynomials == memory.expressions.polynomials
    assert {name: mask.tolist() for name, mask in disk.labels.items()} == {
        name: mask.tolist() for name, mask in memory.labels.items()
    }
    for name, reward in memory.rewards.items():
        for part in ("state", "choice"):
            of_memory, of_disk = getattr(reward, part), getattr(disk.rewards[name], part)
            assert of_memory is of_disk is None or of_memory.tolist() == of_disk.tolist()


@pytest.mark.slow
def test_a_stored_model_can_be_opened_again(both):
    _, disk, asked, point, steps = both
    again = pl.read_model(disk.graph.levels.folder)
    assert again.fingerprint == disk.fingerprint
    counts = pl.simulate(again, point, 1000, rng=1, max_steps=steps)
    assert claim(pl.certify(again, counts, asked[0])) == claim(pl.certify(disk, counts, asked[0]))


def test_a_damaged_store_is_refused(tmp_path):
    model = layered(tmp_path / "model", n_levels=4, width=20)
    with pytest.raises(pl.ModelError, match="those that it was built with"):
        pl.read_model(tmp_path / "model", constants={"N": 3})
    with (tmp_path / "model" / "successor.bin").open("ab") as file:
        file.write(b"0")
    with pytest.raises(pl.ModelError, match="the model is not complete"):
        pl.read_model(tmp_path / "model")
    (tmp_path / "model" / "model.json").write_text("{}")
    with pytest.raises(pl.ModelError, match="not a description"):
        pl.read_model(tmp_path / "model")
    with pytest.raises(pl.ModelError, match="not the folder of a stored model"):
        pl.read_model(tmp_path)
    assert model.graph.n_states


def test_every_row_is_its_distinct_row(both):
    _, disk, *_ = both
    graph, rows = disk.graph, disk.lift.counted
    for choice in range(graph.n_choices):
        own = disk.expression[graph.first_transition[choice] : graph.first_transition[choice + 1]].tolist()
        row = disk.lift.choice[choice]
        at = rows.graph.first_transition
        assert own == rows.expression[at[row] : at[row + 1]].tolist()


def test_runs_are_those_of_the_model_in_memory(both):
    """The same seed takes the same transitions; each is counted at its place in its distinct row."""
    memory, disk, _, point, steps = both
    own = pl.simulate(memory, point, 500, rng=3, max_steps=steps)
    pooled = pl.simulate(disk, point, 500, rng=3, max_steps=steps)
    first, rows = memory.graph.first_transition, disk.lift.counted.graph
    choice = memory.graph.choice_of_transition()
    place = rows.first_transition[disk.lift.choice[choice]] + np.arange(len(choice)) - first[choice]
    assert pooled.counts.tolist() == np.bincount(place, own.counts, rows.n_transitions).tolist()
    assert pooled.pilot.total == own.pilot.total
    assert pooled.sampling == "adaptive"


@pytest.mark.slow
@pytest.mark.parametrize("confidence_set", ["interval", "likelihood"])
def test_certificates_are_equal_bit_for_bit_in_chunks_of_any_size(both, confidence_set, monkeypatch):
    memory, disk, asked, point, steps = both
    counts = adaptive(pl.simulate(memory, point, 5000, rng=1, max_steps=steps))
    known = pl.learn(memory, counts, confidence_set=confidence_set)
    learned = pl.learn(
        disk,
        pl.simulate(disk, point, 5000, rng=1, max_steps=steps),
        confidence_set=confidence_set,
        objectives=asked[:1],
    )
    for text in asked:
        expected = claim(pl.conclude(known, text, relaxation="expression"))
        for chunk in (7, *size(0, 1) * [1001]):
            monkeypatch.setattr(by_levels, "_CHUNK", chunk)
            assert claim(pl.conclude(learned, text)) == expected


@pytest.mark.night
def test_a_given_policy_is_valued_as_in_memory(both):
    memory, disk, asked, point, steps = both
    counts = adaptive(pl.simulate(memory, point, 2000, rng=1, max_steps=steps))
    last = memory.graph.first_choice[1:] - 1
    on_disk = pl.simulate(disk, point, 2000, rng=1, max_steps=steps)
    for text in asked:
        expected = pl.conclude(
            pl.learn(memory, counts, confidence_set="interval"), text, policy=last, relaxation="parameter"
        )
        found = pl.conclude(
            pl.learn(disk, on_disk, confidence_set="interval"), text, policy=last, relaxation="parameter"
        )
        assert claim(found) == claim(expected)


def test_values_at_a_point_are_those_of_the_model_in_memory(both):
    memory, disk, asked, point, _ = both
    for text in asked:
        objective = pl.parse_property(text, memory)
        for nature in ("robust", "optimistic"):
            own = pl.stages.solve(pl.stages.instantiate(memory, point), objective, nature=nature)
            found = pl.stages.solve(pl.stages.instantiate(disk, point), pl.parse_property(text, disk), nature=nature)
            assert found.lower.tolist() == own.lower.tolist()
            assert found.upper.tolist() == own.upper.tolist()
            again = pl.stages.evaluate(pl.stages.instantiate(disk, point), found.policy, pl.parse_property(text, disk))
            assert again.lower[0] <= own.upper[0]
            assert again.upper[0] >= own.lower[0]


@pytest.mark.slow
def test_transitions_that_nature_may_drop_are_bounded_as_in_memory(both):
    """Without data intervals are [0, 1]: what the graph decides in memory follows from the rows on disk."""
    memory, disk, asked, *_ = both
    for text in asked:
        for nature in ("robust", "optimistic"):
            found, expected = (
                pl.stages.solve(_anything(model), pl.parse_property(text, model), nature=nature)
                for model in (disk, memory)
            )
            np.testing.assert_allclose(found.lower, expected.lower, rtol=1e-12)
            np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-12)
            assert (found.upper >= expected.lower).all()


def _anything(model):
    n = len(model.expressions)
    return IntervalMDP(model.graph, model.expression, np.zeros(n), np.ones(n))


@pytest.mark.night
def test_offsets_that_need_64_bits_give_the_same_certificate(tmp_path, monkeypatch):
    monkeypatch.setattr(explore_levels, "_COPIED", 100)
    monkeypatch.setattr(explore_levels, "OFFSETS", (np.int8, np.int64))
    monkeypatch.setattr(explore_levels, "NUMBERS", (np.int8, np.int64))
    wide, memory = layered(tmp_path / "model"), layered(None)
    assert (wide.graph.first_transition.dtype, wide.graph.first_choice.dtype) == (np.int64, np.int64)
    assert wide.graph.first_transition.tolist() == memory.graph.first_transition.tolist()
    assert wide.expression.tolist() == memory.expression.tolist()
    counts = [pl.simulate(model, {"p": "0.3", "q": "0.6"}, 2000, rng=1, max_steps=13) for model in (wide, memory)]
    found, expected = (
        pl.certify(model, adaptive(own), 'Pmax=? [ F "goal" ]', relaxation="expression", confidence_set="interval")
        for model, own in zip((wide, memory), counts, strict=True)
    )
    assert claim(found) == claim(expected)


def test_offsets_are_64_bits_wide_if_and_only_if_32_are_not_enough():
    assert (offset_type(0), offset_type(2**31 - 1), offset_type(2**31)) == (np.int32, np.int32, np.int64)


def test_numbers_in_a_growing_file_are_those_that_were_written(tmp_path):
    parts = [np.array([3, 255]), np.array([], dtype=np.int64), np.array([256]), np.array([2**20, 1])]
    file = GrowingFile(tmp_path / "numbers.bin", explore_levels.NUMBERS)
    types = []
    for part in parts:
        file.append(part)
        types.append(file.dtype)
    assert types == [np.uint8, np.uint8, np.uint16, np.int32]
    file.close()
    assert np.fromfile(tmp_path / "numbers.bin", file.dtype).tolist() == np.concatenate(parts).tolist()


def test_only_two_levels_are_held_in_memory(tmp_path, monkeypatch):
    held = []
    number = explore_levels.Frontier.number

    def watch(self, *arguments):
        found = number(self, *arguments)
        held.append(len(self.rows) + len(self.next_rows))
        return found

    monkeypatch.setattr(explore_levels.Frontier, "number", watch)
    model = layered(tmp_path / "model", n_levels=30, width=20)
    sizes = np.diff(model.graph.levels.first_state)
    assert max(held) <= max(sizes[1:] + sizes[:-1]) < model.graph.n_states / 10


def test_a_certificate_of_a_stored_model_knows_what_to_do_in_a_state(tmp_path):
    model = layered(tmp_path / "model")
    counts = pl.simulate(model, {"p": "0.3", "q": "0.6"}, 2000, rng=1, max_steps=13)
    certificate = pl.certify(model, counts, 'Pmax=? [ F "goal" ]')
    assert certificate.policy.action(level=0, place=0, is_late=False).startswith("row")
    assert is_mapped(certificate.policy.choice)
    followed = pl.simulate(model, {"p": "0.3", "q": "0.6"}, 4000, rng=2, max_steps=13, policy=certificate.policy)
    assert followed.total > 0
    again = pl.certify(model, counts, 'Pmax=? [ F "goal" ]', policy=certificate.policy)
    assert (again.lower, again.upper) == (certificate.lower, certificate.upper)


def test_data_that_contradict_a_stored_model_claim_nothing_that_rests_on_its_expressions(tmp_path):
    model = layered(tmp_path / "model")
    rows = model.lift.counted.graph
    counts = np.zeros(rows.n_transitions, dtype=np.int64)
    counts[rows.first_transition[:-1]] = 10_000  # the first outcome of every row, always: 1/5 among them
    certificate = pl.certify(model, TransitionCounts(rows, counts, "adaptive"), 'Pmax=? [ F "goal" ]')
    assert certificate.status == "model rejected"
    assert certificate.how.confidence_set == "none: transitions of a stored model may have any probability"
    assert (certificate.lower, certificate.upper) == (0.0, 1.0)


@pytest.mark.night
def test_what_was_learned_about_a_stored_model_saves_time_for_the_next_data(tmp_path):
    """The cache is about its distinct rows, whichever model they stand for."""
    model, other = layered(tmp_path / "model"), layered(tmp_path / "other")
    first, second = (pl.simulate(model, {"p": "0.3", "q": "0.6"}, 400, rng=seed, max_steps=13) for seed in (1, 2))
    before = pl.learn(model, first, objectives=['Pmax=? [ F "goal" ]'])
    again, alone = pl.learn(model, second, like=before), pl.learn(model, second)
    assert again.cache is before.cache
    assert again.model is before.model is model
    assert (again.region.lower == alone.region.lower).all()
    assert (again.region.upper == alone.region.upper).all()
    with pytest.raises(pl.DataError, match="like: that was learned about another model"):
        pl.learn(other, pl.simulate(other, {"p": "0.3", "q": "0.6"}, 400, rng=1, max_steps=13), like=before)


STEPS = {
    "leads from level 1 to level 3": lambda s: [("go", True, [(1, s._replace(level=s.level + 1 + (s.level == 1)))])],
    "leads from level 0 to level 0": lambda s: [("go", True, [(1, s._replace(place=s.place + 1))])],
    "some of its transitions lead back": lambda s: [
        ("go", True, [(Fraction(1, 2), s), (Fraction(1, 2), s._replace(level=s.level + 1))])
    ],
    "no choice is possible": lambda s: [("go", s.level < 3, [(1, s._replace(level=s.level + 1))])],
    "sum to 1/2, not 1": lambda s: [("go", True, [(Fraction(1, 2), s)])],
}


@pytest.mark.parametrize("message", STEPS)
def test_what_is_not_layered_is_refused(tmp_path, message):
    with pytest.raises(pl.ModelError, match=message):
        pl.model.explore_batch(
            STEPS[message],
            {"level": 0, "place": 0},
            space=pl.ParameterSpace.unit("p"),
            store=tmp_path / "model",
            level=lambda s: s.level,
        )


def test_a_store_needs_levels_and_an_empty_folder(tmp_path):
    (tmp_path / "file").write_text("")
    options = {"space": pl.ParameterSpace.unit("p"), "store": tmp_path}
    with pytest.raises(pl.ModelError, match="store needs level"):
        pl.model.explore_batch(STEPS["no choice is possible"], {"level": 0}, **options)
    with pytest.raises(pl.ModelError, match="the folder is not empty"):
        pl.model.explore_batch(STEPS["no choice is possible"], {"level": 0}, level=lambda s: s.level, **options)


def test_what_cannot_be_asked_of_a_stored_model_is_refused(tmp_path):
    model = layered(tmp_path / "model", n_levels=4, width=20)
    point = {"p": "0.3", "q": "0.6"}
    learned = pl.learn(model, pl.simulate(model, point, 100, rng=1, max_steps=5))
    for text in ('Pmax=? [ F<=3 "goal" ]', 'R{"time"}max=? [ C<=3 ]'):
        with pytest.raises(pl.ModelError, match="without a number of steps"):
            pl.conclude(learned, text)
    with pytest.raises(pl.DataError, match="choose 'expression'"):
        pl.conclude(learned, 'Pmax=? [ F "goal" ]', relaxation="rectangular")
    with pytest.raises(pl.ModelError, match="not be recorded"):
        pl.data.record(model, point, 10, rng=1, max_steps=5)
    with pytest.raises(pl.DataError, match="the counts belong to another model"):
        pl.learn(model, pl.simulate(layered(None), point, 10, rng=1, max_steps=5))


def test_relaxations_of_a_stored_model_are_compared_as_far_as_they_go(tmp_path):
    model = layered(tmp_path / "model", n_levels=4, width=20)
    counts = pl.simulate(model, {"p": "0.3", "q": "0.6"}, 500, rng=1, max_steps=5)
    found = compare(model, counts, 'Pmax=? [ F "goal" ]', confidence_set="interval")
    assert [certificate.how.relaxation for certificate in found] == ["interval", "parameter", "expression"]
    assert found[2].lower >= max(found[0].lower, found[1].lower)


def test_rewards_forever_in_a_state_that_stays_are_refused(tmp_path):
    model = layered(tmp_path / "model", n_levels=4, width=20)
    always = pl.model.Reward(RewardStructure(np.ones(model.graph.n_states), None), "max")
    with pytest.raises(pl.ModelError, match="ask a stored model for rewards until a target"):
        pl.stages.solve(pl.stages.instantiate(model, {"p": "0.3", "q": "0.6"}), always)


@pytest.mark.slow
def test_values_do_not_depend_on_where_a_model_was_cut_into_batches(tmp_path, monkeypatch):
    """Batches number states in another order; the value of the initial state is the same up to rounding."""
    whole = pl.stages.solve(pl.stages.instantiate(layered(None), {"p": "0.3", "q": "0.6"}), _goal(layered(None)))
    monkeypatch.setattr(explore_levels, "_BATCH", 3)
    model = layered(tmp_path / "model")
    cut = pl.stages.solve(pl.stages.instantiate(model, {"p": "0.3", "q": "0.6"}), _goal(model))
    np.testing.assert_allclose([cut.lower[0], cut.upper[0]], [whole.lower[0], whole.upper[0]], rtol=1e-12)


def _goal(model):
    return replace(pl.parse_property('Pmax=? [ F "goal" ]', model), text="")
