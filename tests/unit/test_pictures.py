"""Pictures: what is drawn is what the data say, in words of the command line, and nothing is cut off."""

import re
from itertools import combinations
from math import inf, nan

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.text import Text
from row_models import listed
from shorthand import altered, check_model

import plumdp as pl
from plumdp.online.records import OnlineRun
from plumdp.plots.curves import draw_difference, draw_ladder, draw_online
from plumdp.plots.draw import write_figure
from plumdp.plots.lists import draw_advice, draw_expressions
from plumdp.plots.policy_map import draw_policy, slice_policy
from plumdp.plots.region_outline import draw_region
from plumdp.plots.style import PALETTE, STYLE, number_text, styled, svg_of
from plumdp.result.findings import ExpressionRow, HalfPlane, Outline, Relaxed
from plumdp.result.show import bounds_svg
from plumdp.watching.shares import share_worse
from plumdp.watching.units import UnitRow, UnitTable
from studies.registry import find_study

RUNGS = (
    Relaxed("interval", 0.12345678, inf, "certified"),
    Relaxed("rectangular", 0.2, 0.61, "certified"),
    Relaxed("coupled", 0.25, 0.58765432, "certified"),
)
NOTHING = Relaxed("coupled", -inf, inf, "model rejected")
LONG = 'R{"money"}max=? [ !"a long name" U<=1000 "end of everything" ]'
SQUARE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))


def texts(figure):
    """Return all texts that a figure shows."""
    found = [text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    return [" ".join(text.split()) for text in found]


def cut_off(figure):
    """Return the texts that are drawn, but not wholly inside the figure; its borders may be touched."""
    drawn, draw = [], Text.draw

    def keep(text, renderer, *rest, **options):
        drawn.append(text)
        return draw(text, renderer, *rest, **options)

    with styled(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", keep)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    box, found = figure.bbox, []
    for text in drawn:
        own = text.get_window_extent(canvas.get_renderer())
        is_inside = own.x0 >= box.x0 - 1 and own.x1 <= box.x1 + 1 and own.y0 >= box.y0 - 1 and own.y1 <= box.y1 + 1
        if text.get_text().strip() and not is_inside:
            found.append(text.get_text())
    return found


def row(i, **changes):
    known = {"text": f"p + {i}/1000", "lower": 0.2, "upper": 0.5, "estimate": 0.3, "trials": 1_000, "successes": 310}
    return ExpressionRow(**{**known, **changes})


def grid():
    """Return the columns of a policy over two numbers, a word and a Boolean."""
    x, y, word, flag = (
        a.ravel() for a in np.meshgrid(range(4), range(3), ["dry", "wet"], [False, True], indexing="ij")
    )
    action = np.where(word == "wet", "wait", np.where(x > y, "right", "up")).astype(object)
    keep = ~((word == "dry") & flag & (x == 3))  # one slice has more states than another
    return {name: a[keep] for name, a in (("x", x), ("y", y), ("weather", word), ("open", flag), ("action", action))}


def advice(n=10):
    choices = [
        {
            "state": {"money": 10 + i, "step": i, "a_long_name_of_a_variable": "a word", "flag": True},
            "action": "bet10", "rate": 1e-3 / (i + 1), "visits": 1_000 * i, "visits_per_run": 0.5, "probability": 0.2,
        }
        for i in range(n)
    ]  # fmt: skip
    return {"choices": choices}


def records(n=12, bound=1.0):
    grown = [int(1.9**i) for i in range(n)]
    return [
        {"episodes": e, "bound": bound + e / 1e4, "optimistic_bound": 3.0, "true_value": None if e < 5 else 2.0}
        for e in [0, *grown]
    ]


OUTLINE = Outline(
    ("p", "q"), (0.5, 0.5), ((0.4, 0.6), (0.45, 0.55)), SQUARE, ((0.4, 0.45), (0.6, 0.45), (0.6, 0.55), (0.4, 0.55)),
    SQUARE,
    (HalfPlane((1.0, 1.0), 1.1, 'bets on the value of Pmax=? [ F<=100 "goal" ]'),
     HalfPlane((-1.0, 0.0), -0.4, "intervals")),
)  # fmt: skip
NAMES = tuple(f"rate{i}" for i in range(4))
PAIRS = tuple(
    Outline((a, b), (0.5, 0.5), ((0.4, 0.6), (0.45, 0.55)), SQUARE, OUTLINE.region)
    for i, a in enumerate(NAMES)
    for b in NAMES[i + 1 :]
)
LONG_NAMES = tuple(f"restrictive_{i}_True_survived" for i in range(6))
LONG_PAIRS = tuple(
    Outline((a, b), (0.5, 0.5), ((0.4, 0.6), (0.45, 0.55)), SQUARE, OUTLINE.region)
    for i, a in enumerate(LONG_NAMES)
    for b in LONG_NAMES[i + 1 :]
)
STRIP = Outline(("p", ""), (0.51, 0.0), ((0.5, 0.53), (0.0, 0.0)), ((0.0, 0.0), (1.0, 0.0)), ((0.5, 0.0), (0.53, 0.0)))

FIGURES = {
    "ladder": lambda: draw_ladder(None, RUNGS, objective='Pmax=? [ F "goal" ]', estimate=0.4, truth=0.45),
    "difference": lambda: draw_difference(
        None,
        {"names": ["mine", "today's"], "first": [0.4, 0.5], "second": [0.3, 0.45], "difference": [0.01, 0.08]},
        objective='Pmax=? [ F "goal" ]',
    ),
    "ladder, one": lambda: draw_ladder(None, RUNGS[-1:], objective=LONG),
    "ladder, no bounds": lambda: draw_ladder(None, [NOTHING], objective=""),
    "region": lambda: draw_region(None, [OUTLINE], {"p": (0.4, 0.6), "q": (0.45, 0.55)}, truth={"p": 0.5, "q": 0.5}),
    "strip": lambda: draw_region(None, [STRIP], {"p": (0.5, 0.53)}),
    "pairs, long": lambda: draw_region(None, LONG_PAIRS, dict.fromkeys((*LONG_NAMES, "rest"), (0, 1))),
    "pairs": lambda: draw_region(None, PAIRS, dict.fromkeys((*NAMES, "rest", "other"), (0, 1))),
    "forest": lambda: draw_expressions(None, [row(i) for i in range(30)], 100),
    "forest, long": lambda: draw_expressions(None, [row(0, text="1509/31250*t1 - 463/125000*t2 + 7/9*t3")]),
    "policy": lambda: draw_policy(None, grid(), "x", "y"),
    "policy, words": lambda: draw_policy(None, grid(), "weather", "open"),
    "policy, one": lambda: draw_policy(None, grid(), "x"),
    "advice": lambda: draw_advice(None, advice()),
    "online": lambda: draw_online(None, records(), objective='Pmax=? [ F "goal" ]'),
    "online, several": lambda: draw_online(None, {f"way {i}": records(bound=i) for i in range(4)}, truth=2.5),
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off(name):
    with styled():
        figure = FIGURES[name]()
    assert cut_off(figure) == []
    assert figure.get_size_inches()[0] <= 5.7  # at 390 pixels, nine points are then nine pixels


@pytest.mark.slow
def test_long_names_of_parameters_do_not_lie_on_each_other():
    with styled():
        figure = FIGURES["pairs, long"]()
        figure.draw_without_rendering()
    shown = [axes for axes in figure.axes if axes.get_visible()]
    labels = [axis.label for axes in shown for axis in (axes.xaxis, axes.yaxis) if axis.label.get_visible()]
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) == 10
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_a_planted_text_outside_is_found():
    figure = FIGURES["strip"]()
    figure.text(0.98, 0.5, "far out to the right")
    assert cut_off(figure) == ["far out to the right"]


@pytest.mark.parametrize("name", ["ladder", "region", "policy"])
def test_two_pictures_on_one_page_share_no_names(name):
    with styled():
        first, second = svg_of(FIGURES[name]()), svg_of(FIGURES["strip"]())
    ids = [re.findall(r'\bid="([^"]+)"', each) for each in (first, second)]
    assert not set(ids[0]) & set(ids[1])
    assert len(ids[0]) == len(set(ids[0]))
    assert set(re.findall(r"url\(#([^)]+)\)", first)) <= set(ids[0])
    assert set(re.findall(r'href="#([^"]+)"', first)) <= set(ids[0])


@pytest.mark.night
def test_the_same_picture_is_the_same_file(tmp_path):
    for name in ("one", "two"):
        with styled():
            write_figure(FIGURES["region"](), tmp_path / f"{name}.svg")
            write_figure(FIGURES["region"](), tmp_path / f"{name}.png")
            write_figure(FIGURES["region"](), tmp_path / f"{name}.pdf")
    for kind in ("svg", "png", "pdf"):
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


def test_svg_in_a_page_has_text_and_no_fixed_size():
    with styled():
        element = svg_of(FIGURES["ladder"](), label='bounds of "each" relaxation')
    head = element[: element.index(">")]
    assert element.startswith("<svg")
    assert "viewBox" in head
    assert not re.search(r'\b(width|height)="', head)
    assert 'aria-label="bounds of &quot;each&quot; relaxation"' in head
    assert ">rectangular</text>" in element


def test_the_ladder_has_bounds_rounded_outward_in_words_of_the_command_line():
    shown = texts(FIGURES["ladder"]())
    for text in ("interval", "rectangular", "coupled", "0.1234", "0.2", "0.61", "0.25", "0.5877", "no bound"):
        assert text in shown
    assert "0.1235" not in shown
    assert "0.5876" not in shown
    assert not any("$" in text or "P_" in text for text in shown)


def test_bars_of_the_ladder_are_where_the_bounds_are():
    (axes,) = FIGURES["ladder"]().axes
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == 9]
    assert [tuple(bar) for bar in bars[1:]] == [(0.2, 0.61), (0.25, 0.58765432)]
    assert bars[0][0] == 0.12345678
    assert bars[0][1] == axes.get_xlim()[1]  # infinite: up to the edge


def test_bars_that_are_much_longer_than_the_tightest_end_in_an_arrow_with_their_number():
    figure = draw_ladder(None, [Relaxed("interval", 3.0, 1e6, "certified"), RUNGS[2]], objective="")
    assert "1,000,000" in texts(figure)
    assert figure.axes[0].get_xlim()[1] < 100


def test_bounds_of_a_contradicted_model_say_so():
    shown = texts(draw_ladder(None, [Relaxed("untied", 0.1, 0.5, "model rejected")], objective=""))
    assert "graph alone (model rejected)" in shown
    assert "certified bounds" not in shown


@pytest.mark.slow
def test_a_picture_of_expressions_says_how_many_are_left_out():
    figure = draw_expressions(None, [row(i) for i in range(30)], 100)
    assert "80 expressions left out" in " ".join(texts(figure))
    assert cut_off(figure) == []


def test_the_region_says_what_drew_its_borders_and_draws_them_there():
    figure = FIGURES["region"]()
    shown = texts(figure)
    assert 'bets on the value of Pmax=? [ F<=100 "goal" ]' in shown
    assert {"what the data allow", "its box", "intervals", "estimate", "true value", "p", "q"} <= set(shown)
    (axes,) = figure.axes
    diagonal = next(line for line in axes.lines if line.get_color() == "#e69f00" and len(line.get_xdata()) == 2)
    assert np.asarray(diagonal.get_xdata()) + np.asarray(diagonal.get_ydata()) == pytest.approx(1.1)


def test_pairs_have_a_panel_each_and_say_what_is_left_out():
    figure = FIGURES["pairs"]()
    assert sum(axes.get_visible() for axes in figure.axes) == 6
    assert "2 parameters left out, which matter less: rest, other" in texts(figure)


def test_the_forest_has_twenty_rows_and_says_how_many_are_left_out():
    figure = FIGURES["forest"]()
    (axes,) = figure.axes
    assert len(axes.get_yticks()) == 20
    assert "80 expressions left out, which matter less" in texts(figure)
    bars = [tuple(line.get_xdata()) for line in axes.lines if line.get_linewidth() == 5]
    assert bars == [(0.2, 0.5)] * 20
    shares = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert shares == [0.31] * 20
    assert texts(figure).count("1,000") == 20


def test_a_share_far_from_all_bounds_is_an_arrow_at_the_edge():
    (axes,) = draw_expressions(None, [row(1, trials=4, successes=4), row(2)]).axes
    (arrow,) = [line for line in axes.lines if line.get_marker() == ">"]
    assert arrow.get_xdata()[0] == axes.get_xlim()[1] < 1


def test_the_map_of_a_policy_shows_the_action_of_each_state():
    shown = slice_policy(grid(), "x", "y", fixed={"weather": "dry"})
    assert shown.fixed == {"weather": "dry", "open": False}  # with more states than where it is open
    assert shown.describe() == "where weather = dry, open = false: 12 of 45 states"
    expected = [["right" if x > y else "up" for x in range(4)] for y in range(3)]
    assert [[shown.actions[i] for i in line] for line in shown.action.tolist()] == expected


def test_a_map_over_words_and_truth_values():
    figure = FIGURES["policy, words"]()
    shown = texts(figure)
    assert {"dry", "wet", "false", "true", "weather", "open"} <= set(shown)


def test_the_legend_of_a_map_is_below_long_labels():
    words = np.array([f"a word of length {k}" for k in range(9)])
    figure = draw_policy(None, {"at": words, "action": np.array(["go", "stop", "wait"] * 3)}, "at")
    drawn = FigureCanvasAgg(figure)
    drawn.draw()
    (axes,) = figure.axes
    renderer = drawn.get_renderer()
    labels = [*axes.get_xticklabels(), axes.xaxis.label]
    lowest = min(label.get_window_extent(renderer).y0 for label in labels)
    assert axes.get_legend().get_window_extent(renderer).y1 <= lowest


def test_more_actions_than_colours_get_hatches():
    columns = {"x": np.arange(12), "action": np.array([f"a{i:02}" for i in range(12)], dtype=object)}
    (axes,) = draw_policy(None, columns, "x").axes
    looks = {(to_hex(patch.get_facecolor()), patch.get_hatch() or "") for patch in axes.patches}
    assert len(looks) == 12
    assert len({colour for colour, _ in looks}) == len(PALETTE) == 8


def test_misuse_of_maps_says_what_there_is():
    with pytest.raises(pl.DataError, match=re.escape("'z' is not a state variable; there are x, y, weather, open")):
        draw_policy(None, grid(), "z")
    with pytest.raises(pl.DataError, match=re.escape("both axes are 'x'; choose two state variables, or one")):
        draw_policy(None, grid(), "x", "x")
    with pytest.raises(pl.DataError, match=re.escape("the policy has no state with y = 9")):
        draw_policy(None, grid(), "x", fixed={"y": 9})


def test_advice_ranks_choices_in_words():
    figure = FIGURES["advice"]()
    (axes,) = figure.axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx([100 / (i + 1) for i in range(10)])
    shown = texts(figure)
    assert "never visited" in shown
    assert "3,000 visits" in shown
    assert any(text.startswith("money=10, step=0") and text.endswith("bet10") for text in shown)


def test_curves_of_learning_are_the_records_over_runs():
    (axes,) = FIGURES["online"]().axes
    assert axes.get_xscale() == "log"
    known = [record for record in records() if record["episodes"]]
    bound, optimistic, true = axes.lines
    assert bound.get_xdata().tolist() == [record["episodes"] for record in known]
    assert bound.get_ydata().tolist() == [record["bound"] for record in known]
    assert set(optimistic.get_ydata()) == {3.0}
    assert np.isnan(true.get_ydata()[:2]).all()
    shown = texts(axes.figure)
    assert {"runs", "value", "certified", "no policy is better", "true value of the policy"} <= set(shown)


def test_records_of_learning_are_drawn_as_they_are():
    study = pl.case_study("betting:5")
    place = pl.online.simulator(study.model, study.true_point, rng=1, max_steps=6)
    found = list(pl.learn_online(study.model, place, study.objective, episodes=50, spacing=2.0))
    (axes,) = pl.draw("online", found).figure.axes
    assert axes.lines[0].get_ydata().tolist() == [record.bound for record in found if record.episodes]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.3, "0.3"), (10_000.0, "10,000"), (0.0004, "0.0004"), (-2.5, "-2.5"), (0.0, "0"), (nan, "nan")],
)
def test_numbers_are_written_out(value, text):
    assert number_text(value) == text


def test_ticks_have_no_powers_of_ten():
    with styled():
        figure = FIGURES["online"]()
        FigureCanvasAgg(figure).draw()
    labels = [tick.get_text() for tick in figure.axes[0].get_xticklabels() if tick.get_text()]
    assert "10" in labels
    assert not any("$" in label or "10^" in label for label in labels)


def test_a_picture_of_another_kind_is_refused(tmp_path):
    with pytest.raises(pl.DataError, match=r"x.jpg: pictures are written as .png, .svg, .pdf; let the name end"):
        write_figure(FIGURES["strip"](), tmp_path / "x.jpg")


def test_the_style_of_others_is_left_alone():
    before = dict(mpl.rcParams)
    pl.draw("policy", pl.PolicyTable(graph := pl.case_study("betting:5").model.graph, graph.first_choice[:-1]))
    assert dict(mpl.rcParams) == before
    assert STYLE["svg.fonttype"] == "none"


def study_rows(instances, n_updates=8):
    return [
        {
            "instance": instance, "seed": seed, "runs": 10_000, "relaxation": name, "direction": "max", "value": 1.0,
            "episodes": 10 * 2**i, "bound": 0.1 * i, "true_value": 0.9, "seconds": 3.0 + k,
        }
        for instance in instances
        for seed in (1, 2)
        for k, name in enumerate(("interval", "parameter", "expression", "rectangular"))
        for i in range(n_updates)
    ]  # fmt: skip


@pytest.mark.night
@pytest.mark.parametrize("instances", [["betting:25"], ["betting:25", "aircraft:20,10", "rover:10,10"]])
def test_figures_of_the_study_of_learning_have_words_and_labels_and_are_not_cut_off(instances, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("studies.plots.write_figure", lambda figure, path: drawn.append(figure))
    find_study("online").draw(study_rows(instances), tmp_path)
    figure = drawn[0]
    assert cut_off(figure) == []
    shown = texts(figure)
    assert {"interval", "parameter", "expression", "rectangular", "runs", "value", "seconds of learning"} <= set(shown)
    assert shown.count("runs") == len(instances)
    assert not any("mathcal" in text for text in shown)


# what users hold


@pytest.fixture(scope="module")
def held():
    """Return a certificate of a small model with two parameters."""
    p, q = pl.parameters("p", "q")

    model = listed({0: {"a": [(p, 1), (1 - p, 2)], "b": [(q, 1), (1 - q, 2)]}}, "p q", at="x")
    counts = pl.TransitionCounts(model.graph, [40, 60, 70, 30, 0, 0], "adaptive")
    return pl.certify(model, counts, "Pmax=? [ F x=1 ]")


def test_certificates_are_drawn_alone_and_by_names_of_ones_own(held):
    assert "coupled" in texts(pl.draw("ladder", held).figure)
    named = texts(pl.draw("ladder", {"best": held, "mine": held}).figure)
    assert {"best", "mine", held.claim.objective} <= {*named}
    assert "coupled" not in named
    assert {"x", "b"} <= {*texts(pl.draw("policy", held).figure)}  # the better action


def test_the_region_of_a_certificate_is_the_box_that_it_has(held):
    drawn = pl.draw("region", held, truth={"p": 0.4, "q": 0.7}).figure
    assert {"p", "q", "box around what the data allow", "true value"} <= {*texts(drawn)}
    assert "what the data allow" not in texts(drawn)  # which only the region itself is
    (axes,) = drawn.axes
    (low, high), margin = held.rests_on.parameters["p"], axes.get_xlim()
    assert margin[0] < low < high < margin[1]
    many = altered(held, parameters=dict.fromkeys("pqr", (0.0, 1.0)))
    with pytest.raises(pl.DataError, match="a certificate keeps the bounds of its 3 parameters, and not their region"):
        pl.draw("region", many)


def test_learning_is_drawn_from_runs_as_well_as_from_records():
    records = [{"episodes": n, "bound": 0.1, "optimistic_bound": 0.9, "true_value": None} for n in (1, 10)]
    run = OnlineRun("Pmax=? [ F x=1 ]", "max", 0.999, tuple(records))
    assert run.objective in texts(pl.draw("online", run).figure)
    assert {"one", "other", run.objective} <= {*texts(pl.draw("online", {"one": run, "other": records}).figure)}


def test_the_axis_of_narrow_bounds_shows_the_bounds_and_not_all_probabilities():
    def ends(lower, upper):
        drawn = bounds_svg("Pmin=? [ F x=1 ]", lower, upper, ("", ""), None)
        return re.findall(r'font-size="13">([^<]*)</text>', drawn)

    assert ends(0.2, 0.6) == ["0 %", "100 %"]
    assert ends(0.5, 0.52) == ["49 %", "53 %"]
    assert ends(0.98, 1.0) == ["97 %", "100 %"]
    assert ends(0.0, 0.0) == ["0 %", "100 %"]


def test_the_marks_of_residuals_have_a_legend():
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, study.true_point, 100, rng=1, max_steps=6)
    drawn = pl.draw("residuals", check_model(study.model, counts))
    assert {"more often than expected", "less often than expected", "about as expected"} <= {*texts(drawn.figure)}


def test_pictures_of_findings_say_how_to_get_these(held):
    for kind in ("expressions", "advice", "residuals"):
        line = f"write draw('{kind}', certificate, explain(learned, certificate, parts=['{kind}']))"
        with pytest.raises(pl.DataError, match=re.escape(line)):
            pl.draw(kind, held)
    with pytest.raises(pl.DataError, match="truth: a picture of the kind 'policy' has no such option"):
        pl.draw("policy", held, truth=0.5)
    with pytest.raises(pl.DataError, match="kind='forest': choose one of 'ladder', 'region', 'expressions'"):
        pl.draw("forest", held)


def many_units(n):
    """Return a table of units whose upper end is certified, one in ten of which have no bounds."""
    ends = np.random.default_rng(1).gamma(8, 0.6, size=(n, 2)).cumsum(axis=1)
    ends[::10] = nan
    verdicts = ["failed" if lower != lower else "yes" if upper <= 9 else "inconclusive" for lower, upper in ends]
    rows = [UnitRow(f"pump-{i}", verdicts[i], *ends[i], 0.5, 0, "", 0.1, "") for i in range(n)]
    return UnitTable(tuple(rows), 'R{"cost"}<=9 [ C<=26 ]', "min", 0.999, "each", 0.001, ())


@pytest.mark.parametrize(("n", "line"), [(20, None), (10_000, "Lines are medians of 45 units.")])
def test_units_are_drawn_from_the_best_on_whether_few_or_many(n, line):
    table = many_units(n)
    reached = share_worse(table, share=0.4, confidence=0.9)
    drawn = pl.draw("units", reached).figure
    assert not cut_off(drawn)
    shown = " ".join(texts(drawn))
    assert reached.sentence in shown
    assert f"{n // 10:,} units without bounds (failed)." in shown
    assert ("pump-3" in shown) == (n == 20)
    assert (line or "pump-19") in shown
    (axes,) = drawn.axes
    certified, dashed = axes.lines
    assert (np.diff(certified.get_xdata()) >= 0).all()  # upper ends of costs, the least first
    assert dashed.get_xdata()[0] == reached.than
    assert len(pl.draw("units", table).figure.axes[0].lines) == 1


def test_a_share_of_certificates_has_no_picture_of_units(held):
    with pytest.raises(pl.DataError, match="takes what certify_each returned"):
        pl.draw("units", share_worse([held], 0.5))
