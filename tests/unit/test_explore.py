"""Models written in Python: both explorers find the same model, and it is the one the step describes."""

import logging
from fractions import Fraction
from itertools import chain, product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

import plumdp as pl
from plumdp.model import kernels
from plumdp.model.batches import StateStore

p, q = pl.parameters("p", "q")
SPACE = pl.ParameterSpace.unit("p", "q")
WEIGHTS = [p, q, p * q, p / 2, 1 - p, Fraction(1, 3), 0 * p]


class Cell(NamedTuple):
    x: int
    y: int
    on: bool


def edges(model):
    """Return (valuation, action) → {target valuation: polynomial}."""
    graph = model.graph
    valuation = list(zip(*(column.tolist() for column in graph.states.values()), strict=True))
    rows = {}
    for choice, state in enumerate(graph.state_of_choice()):
        key = valuation[state], graph.action_names[graph.action[choice]]
        assert key not in rows
        rows[key] = {
            valuation[graph.successor[t]]: model.expressions.polynomials[model.expression[t]]
            for t in range(graph.first_transition[choice], graph.first_transition[choice + 1])
        }
    return rows


@st.composite
def rules(draw):
    """Return random actions: a condition on x, and targets with weights that may meet and may vanish."""
    n_actions = draw(st.integers(1, 3))
    return [
        {
            "modulus": draw(st.integers(1, 3)),
            "targets": draw(
                st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3), st.integers(0, len(WEIGHTS) - 1)), max_size=4)
            ),
        }
        for _ in range(n_actions)
    ]


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(rules())
def test_both_explorers_give_the_same_model_as_the_rules(actions):
    """A random model three ways: by hand as a dict of sums, with explore, and with explore_batch."""

    def target(x, shift, move):
        return (x + shift + move) % 6

    def weight(kind, x):
        return WEIGHTS[kind] / (4 + x)  # at most four targets: what is left for the state itself is no less than 0

    def step(s):
        row = {"stay": [(1, s)]}
        for number, action in enumerate(actions):
            if s.x % action["modulus"] == 0:
                pairs = [(weight(k, s.x), Cell(target(s.x, a, b), b, a > 2)) for a, b, k in action["targets"]]
                total = sum((w for w, _ in pairs), p - p)
                row[f"a{number}"] = [*pairs, (1 - total, s)]
        return row

    def batch(s):
        yield "stay", True, [(1, s)]
        for number, action in enumerate(actions):
            pairs = [
                (pl.model.tabulate(lambda x, k=k: weight(k, x), s.x), Cell(target(s.x, a, b), b, a > 2))
                for a, b, k in action["targets"]
            ]
            total = sum((w for w, _ in pairs), pl.model.tabulate(lambda x: 0, s.x))
            yield f"a{number}", s.x % action["modulus"] == 0, [*pairs, (1 - total, s)]

    expected = {}
    queue = [Cell(0, 0, False)]
    for state in queue:
        for action, pairs in step(state).items():
            sums = {}
            for w, t in pairs:
                sums[tuple(t)] = sums.get(tuple(t), p - p) + w
                if t not in queue:
                    queue.append(t)
            expected[tuple(state), action] = {t: f for t, f in sums.items() if f}
    options = {
        "space": SPACE,
        "rewards": {"r": lambda s: s.x + 1.0},
        "choice_rewards": {"r": lambda s, a: (a == "a0") * s.x},
    }
    one = pl.explore(step, Cell(0, 0, False), labels={"on": lambda s: s.on}, **options)
    two = pl.model.explore_batch(batch, Cell(0, 0, False), labels={"on": lambda s: s.on}, **options)
    assert edges(one) == expected
    assert edges(two) == expected
    for model in (one, two):
        x, state = model.graph.states["x"], model.graph.state_of_choice()
        is_first = np.array([model.graph.action_names[a] == "a0" for a in model.graph.action])
        assert model.labels["on"].tolist() == model.graph.states["on"].tolist()
        assert model.rewards["r"].state.tolist() == (x + 1.0).tolist()
        assert model.rewards["r"].choice.tolist() == np.where(is_first, x[state], 0.0).tolist()
        assert len(set(model.expressions.polynomials)) == len(model.expressions)


def test_states_are_numbered_breadth_first_from_the_initial_state():
    def step(s):
        return (
            {"both": [(p, s._replace(n=2 * s.n)), (1 - p, s._replace(n=2 * s.n + 1))]} if s.n < 8 else {"end": [(1, s)]}
        )

    model = pl.explore(step, {"n": 1}, space=pl.ParameterSpace.unit("p"))
    assert model.graph.states["n"].tolist() == list(range(1, 16))
    assert model.graph.initial_state == 0


def test_text_variables_are_kept_as_text():
    step = {"idle": {"start": [(1, "busy")]}, "busy": {"work": [(p, "busy"), (1 - p, "idle")]}}

    def named(s):
        return {action: [(f, s._replace(mode=m)) for f, m in row] for action, row in step[s.mode].items()}

    model = pl.explore(named, {"mode": "idle"}, space=pl.ParameterSpace.unit("p"))
    assert model.graph.states["mode"].tolist() == ["idle", "busy"]
    assert model.graph.describe_choice(1) == "state (mode=busy), action 'work'"


def test_models_cannot_be_changed_by_accident():
    model = pl.case_study("glider:11,9").model
    arrays = [model.expression, model.graph.successor, model.graph.states["x"], model.labels["goal"]]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_the_space_is_cut_where_an_affine_expression_leaves_the_unit_interval():
    """p + 0.3 <= 1 and p - 0.1 >= 0 leave p in [0.1, 0.7]; q stays free; p + q + 0.2 <= 1 becomes a constraint."""

    def step(s):
        return {
            "a": [(p + 0.3, s), (0.7 - p, s._replace(x=1))],
            "b": [(p - 0.1, s), (1.1 - p, s._replace(x=1))],
            "c": [(p + q + 0.2, s), (0.8 - p - q, s._replace(x=1))],
        }

    model = pl.explore(step, {"x": 0}, space=SPACE)
    assert model.space.bounds == ((Fraction(1, 10), Fraction(7, 10)), (Fraction(0), Fraction(1)))
    assert model.declared_space == SPACE
    assert model.space.contains({"p": 0.3, "q": 0.5})
    assert not model.space.contains({"p": 0.3, "q": 0.6})


@pytest.mark.slow
def test_exploration_goes_on_where_one_batch_ends(monkeypatch):
    """Many small batches find the same model as one large one."""
    whole = pl.case_study("betting:25").model
    monkeypatch.setattr("plumdp.model.explore._LAYER", 7)
    parts = pl.case_study("betting:25").model
    assert edges(parts) == edges(whole)


@pytest.mark.parametrize("kind", ["states", "layers"])
def test_exploring_tells_how_many_states_there_are(kind, caplog, monkeypatch):
    monkeypatch.setattr("plumdp.base.progress._SECONDS", 0.0)
    with caplog.at_level(logging.INFO, logger="plumdp"):
        if kind == "states":
            model = pl.explore(
                lambda s: {"go": [(1, s._replace(x=(s.x + 1) % 3000))]}, {"x": 0}, space=pl.ParameterSpace.unit("p")
            )
        else:
            model = pl.case_study("glider:11,9").model
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == "exploring: 1 states"
    assert model.graph.n_states > 1


# Compiled hashing against dictionaries of tuples


INT32 = np.iinfo(np.int32)


class SlowStore:
    """Tuples with a number each, in the order of discovery."""

    def __init__(self):
        self.numbers = {}

    def intern(self, rows):
        return [self.numbers.setdefault(tuple(row), len(self.numbers)) for row in rows.tolist()]


def check_batches(batches):
    fast, slow = StateStore(batches[0].shape[1]), SlowStore()
    for batch in batches:
        assert fast.intern(batch).tolist() == slow.intern(batch)
    assert fast.n == len(slow.numbers)
    assert [tuple(row) for row in fast.rows[: fast.n].tolist()] == list(slow.numbers)


@st.composite
def batches(draw):
    n_columns = draw(st.integers(0, 4))
    special = st.sampled_from([INT32.min, INT32.max, 0, -1, 1, 1 << 16, -(1 << 16)])
    row = st.tuples(*[special | st.integers(INT32.min, INT32.max)] * n_columns)
    pool = draw(st.lists(row, min_size=1, max_size=20))
    sizes = draw(st.lists(st.integers(0, 20), min_size=1, max_size=6))
    return [
        np.array(draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n)), dtype=np.int32).reshape(n, n_columns)
        for n in sizes
    ]


@pytest.mark.slow
@given(batches())
def test_rows_are_numbered_in_the_order_of_discovery(found):
    check_batches(found)


@pytest.mark.parametrize("spread", [3, 20, 10_000])
def test_numbers_survive_growth_over_many_batches(spread):
    """The table starts with 1024 rows and 4096 slots; 30 batches of up to 3000 rows outgrow both several times."""
    rng = np.random.default_rng(spread)
    sizes = [1, 1023, 1, 1024, *rng.integers(0, 3000, size=26)]
    check_batches([rng.integers(-spread, spread, size=(n, 3)).astype(np.int32) for n in sizes])


def fmix(values):
    """Return the hash of one-column rows as kernels.py describes it, in NumPy's wrapping arithmetic."""
    h = (np.uint64(0x9E3779B97F4A7C15) ^ values.astype(np.uint32).astype(np.uint64)) * np.uint64(0xFF51AFD7ED558CCD)
    return h ^ (h >> np.uint64(32))


@pytest.mark.slow
@pytest.mark.parametrize("slot", [0, 4095])
def test_rows_that_all_want_one_slot_stay_apart(slot):
    """All rows collide; for the last slot, probing also wraps around the end of the table."""
    values = np.arange(-300_000, 300_000, dtype=np.int32)
    colliding = values[(fmix(values) & np.uint64(4095)) == slot]
    assert len(colliding) > 100
    check_batches([colliding[:, None], colliding[::-1, None], colliding[::2, None]])


def test_interning_does_not_keep_a_view_of_the_given_rows():
    store, rows = StateStore(2), np.array([[1, 2], [3, 4]], dtype=np.int32)
    store.intern(rows)
    rows[:] = 9
    assert store.rows[:2].tolist() == [[1, 2], [3, 4]]


grouped = st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=12)


def offsets(groups):
    return np.cumsum([0, *map(len, groups)]).astype(np.int32)


@pytest.mark.slow
@given(grouped)
def test_repeated_successors_point_to_the_first_equal_one_of_their_choice(groups):
    first = offsets(groups)
    first_same = np.full(first[-1], -7, dtype=np.int32)
    successor = np.array(list(chain(*groups)), dtype=np.int32)
    n_repeated = kernels.repeated_successors(first, successor, first_same)
    expected = [int(first[c]) + group.index(s) for c, group in enumerate(groups) for s in group]
    assert first_same.tolist() == expected
    assert n_repeated == sum(len(group) - len(set(group)) for group in groups)


def check_row_classes(groups, n_slots):
    first, n = offsets(groups), len(groups)
    row_class, representative = np.full(n, -7, dtype=np.int32), np.full(n, -7, dtype=np.int32)
    slots = np.full(n_slots, kernels.EMPTY, dtype=np.int32)
    expression = np.array(list(chain(*groups)), dtype=np.int32)
    n_classes = kernels.row_classes(first, expression, slots, row_class, representative)
    numbers = {}
    expected = [numbers.setdefault(tuple(group), len(numbers)) for group in groups]
    assert (row_class.tolist(), n_classes) == (expected, len(numbers))
    assert representative[:n_classes].tolist() == [expected.index(k) for k in range(len(numbers))]


@given(grouped, st.sampled_from([16, 64]))
def test_row_classes_number_the_distinct_sequences_in_order(groups, n_slots):
    check_row_classes(groups, n_slots)


def test_rows_that_begin_alike_stay_apart_in_a_table_that_is_nearly_full():
    """All 31 sequences of zeros and ones up to length 4 in 32 slots: nearly every one meets others."""
    sequences = [bits for length in range(5) for bits in product([0, 1], repeat=length)]
    for groups in (sequences, sequences[::-1], sequences + sequences):
        check_row_classes(groups, 32)
