"""The test of a model as a thing of its own: nothing is said of right models, and wrong ones are named."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shorthand import check_model
from support.coupled_points import random_product_model
from support.drawn_counts import chances, draw, moved, value_of_choice, walk
from support.random_pmdps import random_problem
from tiers import examples

import plumdp as pl
from plumdp.confidence.likelihood import best_point
from plumdp.explaining.check import describe_residual
from plumdp.fit.diagnosis import diagnose, examine, in_words
from plumdp.fit.residual_counts import CellResiduals, Residuals
from plumdp.plots.lists import draw_residuals, plot_residuals
from plumdp.plots.style import GREY

POINT = {"p": "0.4", "q": "0.3"}
MODEL = walk()
RIGHT = chances(MODEL, POINT)
GRAPH = MODEL.graph


def actions(*names):
    return np.isin(GRAPH.action, [GRAPH.action_names.index(name) for name in names])


IS_OPEN = actions("fast", "slow", "odd")


def check(shift, *, visits=5000, seed=1, early=None, **options):
    return check_model(MODEL, draw(MODEL, moved(MODEL, RIGHT, shift), visits, seed, early=early), **options)


def drifting(size=0.05):
    return np.where(IS_OPEN, size * np.tanh(value_of_choice(MODEL, "x") - 3), 0.0)


def one_row(size=0.12):
    shift = np.zeros(GRAPH.n_choices)
    shift[np.flatnonzero(actions("slow"))[5]] = size
    return shift


@pytest.fixture(scope="module")
def drift():
    return check(drifting())


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_said_of_a_right_model(seed):
    found = check(np.zeros(GRAPH.n_choices), seed=seed)
    assert (found.is_contradicted, found.diagnosis, found.suspicion) == (False, (), "")
    assert found.p_value > 0.001
    assert dict.fromkeys(label for label, _ in found.facts()) == dict.fromkeys(
        ("estimate", "memory", "data", "assuming")
    )


def test_a_drift_with_a_variable_is_named_with_side_amount_and_observations(drift):
    assert drift.is_contradicted
    finding, advice, model_tolerance = drift.diagnosis
    assert finding.startswith("the data fit other parameters where x is large: from x = ")
    assert ", the probability that x goes down is 0.0" in finding  # at the right end it cannot go up
    assert " below what the model says (90,000 observations)" in finding
    assert " above it (90,000 observations)" in finding
    assert advice.startswith("what to try: let the parameters depend on x, such as with one value from x = ")
    assert model_tolerance.startswith("the data would not reject a model whose rows may be off by 0.0")
    assert [label for label, _ in drift.facts()][:3] == ["because", "try", "or"]


@pytest.mark.parametrize("seed", range(5))
def test_one_wrong_row_is_named(seed):
    found = check(one_row(), seed=seed)
    choice = int(np.flatnonzero(one_row())[0])
    assert found.is_contradicted
    assert found.diagnosis[0].startswith(f"{GRAPH.describe_choice(choice)}: the model says 0.")
    assert "at the best parameters" in found.diagnosis[0]
    assert found.diagnosis[1].startswith("what to try: check this row")


@pytest.mark.parametrize("seed", range(5))
def test_one_wrong_action_is_named(seed):
    model = pl.case_study("betting:6").model
    is_guilty = model.graph.action == model.graph.action_names.index("bet5")
    is_guilty &= np.diff(model.graph.first_transition) > 1
    counts = draw(model, moved(model, chances(model, {"p": "0.5"}), np.where(is_guilty, 0.06, 0.0)), 400, seed)
    found = check_model(model, counts)
    assert found.is_contradicted
    assert found.diagnosis[0].startswith(
        "the data fit another p under action 'bet5' than under other actions: under 'bet5', the probability that money "
        "goes up is 0.0"
    )
    assert found.diagnosis[1].startswith("what to try: give action 'bet5' a p of its own")


def test_actions_that_the_data_do_not_tell_apart_are_named_together():
    """Two parameters fit any probabilities of two actions: each of the three may be the one that is wrong."""
    found = check(np.where(actions("odd"), 0.08, 0.0))
    assert found.is_contradicted
    assert all(repr(name) in found.diagnosis[0] for name in ("fast", "slow", "odd"))
    assert ": the data do not tell these apart)" in found.diagnosis[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_fixed_number_is_named(seed):
    found = check(np.where(actions("restart"), 0.04, 0.0), seed=seed)
    assert found.is_contradicted
    assert "rows with the same fixed numbers together, such as " in found.diagnosis[0]
    assert "action 'restart', successor (x=" in found.diagnosis[0]
    assert "the model says 0." in found.diagnosis[0]
    assert found.diagnosis[1] == "what to try: check this number, or make it a parameter"


def test_early_data_that_differ_are_named():
    """The test of the model trusts the pilot to choose bets; the diagnosis compares it with what came later."""
    counts = draw(MODEL, RIGHT, 20_000, 1, early=chances(MODEL, {"p": "0.5", "q": "0.3"}))
    finding, advice = in_words(examine(MODEL, counts, np.array([0.4, 0.3])))
    pilot = counts.pilot.total
    assert finding.startswith(
        f"the data of the pilot ({pilot:,} steps) fit other parameters than the {19 * pilot:,} after it: in the pilot, "
        "the probability that mood changes is 0.05"
    )
    assert advice == "what to try: find out what changed meanwhile, and leave out the data from before"


def test_a_coin_that_depends_on_a_variable_is_named_by_its_parameter():
    (p,) = pl.parameters("p")

    def toss(s):
        return {"toss": [(p, s._replace(money=s.money % 9 + 1)), (1 - p, s._replace(money=max(s.money - 1, 0)))]}

    model = pl.explore(toss, {"money": 3}, space=pl.ParameterSpace.unit("p"))
    money = value_of_choice(model, "money")
    counts = draw(model, moved(model, chances(model, {"p": "0.5"}), np.where(money >= 5, 0.05, 0.0)), 3000, 1)
    found = check_model(model, counts)
    assert found.diagnosis[0].startswith("the data fit another p where money is large: from money = 5 on, the prob")
    assert found.diagnosis[1].startswith("what to try: let p depend on money, such as with one value from money = 5 on")


def test_a_variable_that_is_a_text_has_one_panel_and_is_named_by_its_words():
    (p,) = pl.parameters("p")
    ways = {"home": ("work", "shop"), "work": ("home", "shop"), "shop": ("home", "work")}

    def go(s):
        first, second = ways[s.place]
        return {name: [(p, s._replace(place=first)), (1 - p, s._replace(place=second))] for name in ("walk", "ride")}

    model = pl.explore(go, {"place": "home"}, space=pl.ParameterSpace.unit("p"))
    is_guilty = model.graph.states["place"][model.graph.state_of_choice()] == "shop"
    counts = draw(model, moved(model, chances(model, {"p": "0.5"}), np.where(is_guilty, 0.1, 0.0)), 5000, 1)
    found = check_model(model, counts)
    assert found.diagnosis[0].startswith("the data fit another p where place = shop: where place = shop, the prob")
    assert [(part.name, part.cells) for part in found.cells] == [
        ("place", ("place = home", "place = shop", "place = work")),
        ("action", ("action 'walk'", "action 'ride'")),
    ]


def test_the_space_is_named_if_the_data_fit_only_outside_of_it():
    """6 of 10 tosses are heads; the space is a weak prior of the estimate."""
    (p,) = pl.parameters("p")

    def toss(s):
        return {"toss": [(p, s._replace(heads=True)), (1 - p, s._replace(heads=False))]}

    model = pl.explore(toss, {"heads": False}, space=pl.ParameterSpace.box({"p": ("0.1", "0.3")}))
    counts = pl.TransitionCounts(model.graph, np.array([6000, 4000, 6000, 4000]), "independent")
    found = check_model(model, counts)
    assert found.is_contradicted
    assert found.diagnosis[:2] == (
        "the data fit best at p = 0.5986, which is outside of the parameter space",
        "what to try: widen the parameter space, or check the expressions",
    )
    assert dict(found.facts())["estimate"].endswith("this is outside of its parameter space)")


@pytest.mark.slow
def test_a_log_that_shows_what_cannot_happen_contradicts_the_model_without_a_test(tmp_path):
    lines = ["x,y,action,next_x,next_y", *["0,0,east,1,0"] * 50, *["0,0,east,7,0"] * 50]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    model = pl.case_study("glider:11,9").model
    found = check_model(model, pl.read_log(model, tmp_path / "log.csv", on_unmatched="report"))
    assert (found.is_contradicted, found.p_value) == (True, None)
    assert found.headline == "Model rejected: 50 rows of the data show what the model says cannot happen."
    assert "(x=7, y=0)" in found.diagnosis[0]


def test_no_data_contradict_nothing():
    nothing = pl.TransitionCounts(GRAPH, np.zeros(GRAPH.n_transitions, dtype=np.int64), "adaptive")
    found = check_model(MODEL, nothing)
    assert (found.is_contradicted, found.p_value, found.residuals, found.cells) == (False, 1.0, (), ())
    assert found.headline == "Model test passed (p = 1); confidence 99.9 %."
    with pytest.raises(pl.DataError, match="there is nothing to draw: no choice with several outcomes was seen"):
        pl.draw("residuals", found)


def test_objectives_sharpen_the_test_and_change_no_residual(drift):
    counts = draw(MODEL, moved(MODEL, RIGHT, drifting()), 5000, 1)
    asked = check_model(MODEL, counts, objectives=["Pmax=? [ F<=5 x=6 ]"])
    assert asked.is_contradicted
    assert asked.residuals == drift.residuals


def test_residuals_are_records_with_the_most_telling_first(drift):
    keys = ["kind", "where", "what", "observations", "observed", "expected", "difference", "standardised", "evidence"]
    assert all(list(record) == keys for record in drift.residuals)
    first = drift.residuals[0]
    assert first["kind"] == "variable"
    assert first["where"].startswith("x ")
    assert first["difference"] == pytest.approx(
        (first["observed"] - first["expected"]) / first["observations"], rel=0.01
    )
    assert {record["kind"] for record in drift.residuals} == {"variable", "action", "expression", "row"}
    assert describe_residual(first).startswith(f"{first['where']}, {first['what']}: ")


def test_texts_json_and_html_say_the_same(drift):
    read = json.loads(drift.to_json())
    assert (read["rejected"], read["p_value"]) == (True, drift.p_value)
    assert read["diagnosis"] == list(drift.diagnosis)
    assert len(read["residuals"]) == len(drift.residuals)
    assert str(drift).startswith("Model rejected with confidence 99.9 % (p = ")
    assert "  try             let the parameters depend on x" in str(drift)
    assert repr(drift).startswith("ModelCheck(rejected, p = ")
    assert len(repr(drift)) < 200
    html = drift._repr_html_()
    assert "where x is large" in html
    assert ">standardised</th>" in html
    assert html.index("<details>") < html.index(">standardised</th>")


def test_a_change_that_can_happen_at_one_value_of_a_variable_says_nothing_about_the_variable():
    """Each coin is thrown at one place, so that no panel has places: how often one lands says nothing of the others."""
    p, q = pl.parameters("p", "q")

    def step(s):
        if s.at == "start":
            return {"go": [(0.5, s._replace(at="first", side=side)) for side in (1, 2)]}
        if s.at in ("first", "second"):
            chance, heads, tails = (p, "up", "down") if s.at == "first" else (q, "won", "lost")
            return {"go": [(chance, s._replace(at=heads)), (1 - chance, s._replace(at=tails))]}
        return {"go": [(1, s._replace(at="second") if s.at in ("up", "down") else s)]}

    model = pl.explore(step, {"at": "start", "side": 0}, space=pl.ParameterSpace.unit("p", "q"))
    counts = pl.simulate(model, {"p": 0.5, "q": 0.5}, 500, rng=1, max_steps=4)
    panels = {panel.name: panel for panel in check_model(model, counts).cells}
    assert (panels["side"].residuals.observations > 0).sum() == 2
    for panel in panels.values():
        assert (panel.residuals.observations > 0).sum() > 1


def test_a_conflict_says_where_the_model_is_wrong_and_what_to_try():
    counts = draw(MODEL, moved(MODEL, RIGHT, drifting()), 5000, 1)
    certificate = pl.certify(MODEL, counts, "Pmax=? [ F<=5 x=6 ]", confidence_set="likelihood")
    assert certificate.status == "model rejected"
    assert "the data fit other parameters where x is large: from x = " in certificate.claim.reason
    assert "what to try: let the parameters depend on x" in certificate.claim.reason


@pytest.mark.slow
def test_the_diagnosis_needs_no_estimate_and_takes_one():
    counts = draw(MODEL, moved(MODEL, RIGHT, drifting()), 5000, 1)
    fit = pl.learn(MODEL, counts, confidence_set="likelihood").fit
    own = diagnose(MODEL, counts, fit)
    assert "where x is large" in own[0]
    assert diagnose(MODEL, counts, fit, point=np.array([0.4, 0.3]))[0][:45] == own[0][:45]


@pytest.mark.slow
def test_pictures_have_a_panel_for_each_variable_and_one_for_actions(drift, tmp_path):
    from matplotlib.figure import Figure

    figure = pl.draw("residuals", drift).figure
    assert [axes.get_xlabel() for axes in figure.axes] == ["x", "mood", "action"]
    assert figure.axes[0].get_title(loc="left") == "probability that x goes up"
    assert [label.get_text() for label in figure.axes[2].get_xticklabels()] == ["fast", "slow", "odd"]
    axes = Figure().add_subplot()
    assert plot_residuals(axes, drift.cells[0]) is axes
    for suffix, start in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        pl.draw("residuals", drift).save(tmp_path / f"residuals{suffix}")
        assert (tmp_path / f"residuals{suffix}").read_bytes().startswith(start)
    again = tmp_path / "again.svg"
    pl.draw("residuals", drift).save(again)
    assert again.read_bytes() == (tmp_path / "residuals.svg").read_bytes()


def test_a_picture_does_not_stretch_the_rounding_of_an_estimate_that_followed_the_data():
    """A coin of its own for each place: the estimate is the share seen, and nothing can differ."""
    from matplotlib.colors import to_hex
    from matplotlib.figure import Figure

    names = pl.parameters("p", "q")

    def step(state):
        return {"throw": [(names[state.at], state._replace(at=1)), (1 - names[state.at], state._replace(at=0))]}

    model = pl.explore(step, {"at": 0}, space=pl.ParameterSpace.unit("p", "q"))
    found = check_model(model, pl.TransitionCounts(model.graph, [310, 690, 580, 420], "trajectories"))
    axes = plot_residuals(Figure().add_subplot(), found.cells[0])
    dots = [line for line in axes.lines if line.get_marker() not in ("", "None", None) and len(line.get_xdata())]
    assert [to_hex(line.get_color()) for line in dots] == [to_hex(GREY)]
    assert axes.get_ylim()[1] >= 1e-3


@pytest.mark.parametrize("first", [0, 1])
def test_a_panel_without_differences_does_not_hide_those_of_the_others(first):
    """All panels have one axis, and one in which nothing differs must not set its ends."""
    small = Residuals(np.array([50.0, 50.0]), np.array([50.0, 50.0]), np.array([100.0, 100.0]), np.zeros(2))
    large = Residuals(np.array([60.0, 40.0]), np.array([50.0, 50.0]), np.array([100.0, 100.0]), np.full(2, 5.0))
    panels = [CellResiduals("variable", "x", "x goes up", ("x = 0", "x = 1"), each) for each in (small, large)]
    figure = draw_residuals(None, [panels[first], panels[1 - first]], "")
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low <= -0.2 < 0.2 <= high


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(60))
def test_whatever_the_data_there_is_a_diagnosis_in_plain_finite_words(seed):
    """Random models, with products and without, and counts that no model explains: all zeros, few, or many."""
    rng = np.random.default_rng(seed)
    model = random_problem(rng).model if seed % 3 else random_product_model(rng)
    graph = model.graph
    counts = rng.integers(0, rng.choice([2, 5, 50, 2000]), graph.n_transitions)
    counts *= rng.random(graph.n_transitions) < rng.choice([0.1, 0.5, 1])
    pilot = rng.binomial(counts, 0.1) if rng.random() < 0.6 else None
    given_counts = pl.TransitionCounts(graph, counts, "adaptive", pilot)
    examination = examine(model, given_counts, best_point(model, given_counts))
    finding, advice = in_words(examination)
    assert advice.startswith("what to try: ")
    assert "nan" not in finding
    for explanation in examination.explanations:
        assert np.isfinite(explanation.gain)
        assert explanation.evidence <= explanation.gain + 1e-9
        assert explanation.gain >= -1e-9
