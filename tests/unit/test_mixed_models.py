"""Models with unknown rows beside rows of expressions: their two views, which is taken, and all that follows."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from textwrap import dedent

import numpy as np
import pytest
from command_line import plumdp as command_line
from shorthand import check_model, compare, improve

import plumdp as pl
from plumdp.data.pilots import moments_of, planned_moments
from plumdp.decisions import make_witness
from plumdp.learning.methods import default_set
from plumdp.model import validate
from plumdp.model.check import summarise
from plumdp.model.question import ask
from plumdp.model.views import as_parametric
from plumdp.online import simulator
from plumdp.result.data_file import read_data, write_data
from plumdp.tables.views import as_table, is_best_as_table, n_unknown, ties_rows

pytestmark = pytest.mark.slow

REACH = 'Pmax=? [ F "goal" ]'
(p,) = pl.parameters("p")
SPACE = pl.ParameterSpace.box({"p": (Fraction(1, 5), Fraction(4, 5))})
TRUTH = {"p": 0.6}
BOTH = ("table", "likelihood")


def step(s):
    """A walk whose steps up have the chance p or p / 2 in even states, and which may go or jump in odd ones."""
    if s.x in (0, 6):
        return {"stay": [(1, s)]}
    up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
    if s.x % 2:
        return {"go": pl.unknown(down, s, up), "jump": [(p, up), (1 - p, down)]}
    return {"go": [(p / 2, up), (1 - p / 2, down)]}


@cache
def mixed():
    labels = {"goal": lambda s: s.x == 6, "end": lambda s: s.x in (0, 6)}
    return pl.explore(step, {"x": 3}, space=SPACE, labels=labels)


@cache
def data():
    model = mixed()
    point = TRUTH, np.full(model.graph.n_transitions, 1 / 3)
    return pl.simulate(model, point, 1500, rng=1, max_steps=60, stop=model.labels["end"])


def many_rows(n, *, row=pl.unknown):
    """Return a walk of n states with unknown rows, and one more whose row is (p, 1 - p)."""

    def walk(s):
        if s.x in (0, n):
            return {"stay": [(1, s)]}
        up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
        return {"go": row(up, down) if s.x > 1 else [(p, up), (1 - p, down)]}

    return pl.explore(walk, {"x": 1}, space=SPACE, labels={"goal": lambda s: s.x == n})


class TestModels:
    def test_a_model_says_which_rows_are_unknown_and_which_have_parameters(self):
        model = mixed()
        assert repr(model) == "ParametricMDP(7 states, 21 transitions, 3 unknown rows, parameters p)"
        assert not model.is_table
        assert summarise(model)["expressions"] == {
            "total": 14, "unknown": 13, "free": 9, "free_rows": 3, "tied_choices": 0, "affine": 4, "degree": 1
        }  # fmt: skip
        assert "13 depend on parameters or are the unknown probabilities of 3 rows" in model._repr_html_()
        assert not validate(model)

    def test_expressions_are_checked_beside_unknown_rows(self):
        row = lambda s: {"a": pl.unknown(s, s._replace(x=1)), "b": [(2 * p, s), (1 - 2 * p, s._replace(x=1))]}  # noqa: E731
        model = pl.explore(row, {"x": 0}, space=pl.ParameterSpace.unit("p"))
        assert [issue.kind for issue in validate(model)] == ["range"]
        assert model.space.bounds == ((0, Fraction(1, 2)),)
        with pytest.raises(pl.ModelError, match="sum to"):
            pl.explore(lambda s: {"a": pl.unknown(s, s._replace(x=1)), "b": [(p, s)]}, {"x": 0}, space=SPACE)

    def test_parameters_that_no_row_has_are_left_out(self):
        model = pl.explore(lambda s: {"a": pl.unknown(s, s._replace(x=1))}, {"x": 0}, space=SPACE)
        assert model.is_table
        assert model.space.names == ()

    def test_a_point_is_a_pair(self):
        model, rows = mixed(), np.full(21, 1 / 3)
        values = model.probabilities((TRUTH, rows))
        assert values[model.expression][:5] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.6, 0.4])
        for wrong in (TRUTH, rows, (TRUTH,)):
            with pytest.raises(pl.ModelError, match=r"has the parameters p, and rows that are unknown: give a pair"):
                model.probabilities(wrong)
        with pytest.raises(pl.ModelError, match="no value for p"):
            model.probabilities(({}, rows))
        with pytest.raises(pl.ModelError, match=r"sum to 0\.9"):
            model.probabilities((TRUTH, np.full(21, 0.3)))
        with pytest.raises(pl.ModelError, match="for each of its 21 transitions"):
            model.probabilities((TRUTH, rows[:3]))
        with pytest.raises(pl.ModelError, match="which is not a probability"):
            model.probabilities(({"p": 1.5}, rows))
        with pytest.raises(pl.ModelError, match=r"give an array with a probability for each .* not a pair"):
            as_table(model).probabilities((TRUTH, rows))

    def test_data_have_the_pilots_that_both_views_pay_for(self):
        """Data that may end at will have one of six pilots, as likelihood sets say; those of tables have twelve."""
        assert data().pilot.lengths == planned_moments(1500)
        assert max(moments_of(10**9)) == 16 * 4**5

    def test_a_model_is_written_into_a_result_and_read_again(self, tmp_path):
        write_data(tmp_path / "data.npz", mixed(), data())
        again, _ = read_data(tmp_path / "data.npz")
        assert again.fingerprint == mixed().fingerprint
        assert repr(again) == repr(mixed())


class TestViews:
    def test_as_a_table_rows_with_the_same_expressions_are_tied_and_no_others(self):
        table = as_table(mixed())
        action = [table.graph.action_names[a] for a in table.graph.action]
        x = table.graph.states["x"][table.graph.state_of_choice()]
        number = {(int(s), a): int(r) for s, a, r in zip(x, action, table.rows.number, strict=True)}
        assert number[1, "jump"] == number[3, "jump"] == number[5, "jump"] != number[2, "go"] == number[4, "go"]
        assert len({number[s, "go"] for s in (1, 2, 3, 5)}) == 4
        assert table.fingerprint == mixed().fingerprint
        assert table.is_table
        assert as_table(table) is table

    def test_with_parameters_alone_unknown_rows_have_their_own(self):
        view = as_parametric(mixed())
        assert view.space.names[:3] == ("p", "go_x_3_to_x_2", "go_x_3_to_x_3")
        assert (n_unknown(mixed()), n_unknown(as_table(mixed())), view.space.dimension) == (7, 8, 7)
        point = dict.fromkeys(view.space.names, 0.25) | TRUTH
        rows = view.probabilities(point)[view.expression]
        assert np.array_equal(mixed().probabilities((TRUTH, rows))[mixed().expression], rows)
        assert as_parametric(view) is view

    def test_long_names_become_numbers(self):
        row = lambda s: {"a_rather_long_name_of_an_action": pl.unknown(s, s._replace(x=1 - s.x))}  # noqa: E731
        assert as_parametric(pl.explore(row, {"x": 0})).space.names == ("row1_1", "row2_1")

    def test_too_many_unknown_numbers_have_no_parameters(self):
        with pytest.raises(pl.ModelError, match="2,001 unknown numbers, too many for a parameter each: 2,000"):
            as_parametric(many_rows(2003))

    def test_with_parameters_alone_bounds_are_those_of_the_model_that_spells_them(self):
        """The same names in the same order, so that nothing differs, to the last bit."""
        names = as_parametric(mixed()).space.names
        symbol = dict(zip(names, pl.parameters(*names), strict=True))

        def spelled(s):
            rows = step(s)
            if s.x not in (1, 3, 5):
                return rows
            low, stay = symbol[f"go_x_{s.x}_to_x_{s.x - 1}"], symbol[f"go_x_{s.x}_to_x_{s.x}"]
            return rows | {"go": [*zip([low, stay, 1 - low - stay], rows["go"].successors, strict=True)]}

        space = pl.ParameterSpace.box(
            dict(zip(SPACE.names, SPACE.bounds, strict=True)) | dict.fromkeys(names[1:], (0, 1))
        )
        parametric = pl.explore(spelled, {"x": 3}, space=space, labels={"goal": lambda s: s.x == 6})
        assert parametric.graph.fingerprint == mixed().graph.fingerprint
        one, other = (pl.certify(m, data(), REACH, confidence_set="likelihood") for m in (mixed(), parametric))
        assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), abs=1e-12)
        assert one.rests_on.parameters.keys() == other.rests_on.parameters.keys()

    @pytest.mark.parametrize("text", [REACH, 'Pmax=? [ F<=9 "goal" ]'])
    def test_as_a_table_bounds_by_bets_are_those_of_the_table_that_ties_rows_by_names(self, text):
        """Without ties between expressions (here p is in one class alone), intervals are the same as well."""

        def rows(s, *, is_free):
            if s.x in (0, 6):
                return {"stay": [(1, s)]}
            up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
            tied = pl.unknown(up, down, row="p") if is_free else [(p, up), (1 - p, down)]
            return {"go": pl.unknown(down, s, up) if s.x % 2 else tied}

        labels = {"goal": lambda s: s.x == 6}
        model = pl.explore(lambda s: rows(s, is_free=False), {"x": 3}, space=pl.ParameterSpace.unit("p"), labels=labels)
        table = pl.explore(lambda s: rows(s, is_free=True), {"x": 3}, labels=labels)
        rates = TRUTH, np.full(model.graph.n_transitions, 1 / 3)
        counts = pl.simulate(model, rates, 3000, rng=1, max_steps=60, stop=np.isin(model.graph.states["x"], (0, 6)))
        one, other = pl.certify(model, counts, text, confidence_set="table"), pl.certify(table, counts, text)
        assert (one.lower, one.upper) == (other.lower, other.upper)
        assert text != REACH or one.beside.gap["statistics"] > 0

    def test_the_model_alone_decides_which_view_is_taken(self):
        """Few unknown numbers, or ties between many rows, have parameters; else it is a table."""
        assert default_set(mixed()) == "likelihood"
        assert (default_set(many_rows(20)), default_set(many_rows(30))) == ("likelihood", "table")
        tied = lambda *to: [(p / 3, to[0]), (1 - p / 3, to[1])]  # noqa: E731
        assert default_set(many_rows(30, row=tied)) == "likelihood"
        names = [f"p{i}" for i in range(60)]
        of_state = dict(enumerate(pl.parameters(*names), start=1))

        def own(s, n):
            if s.x in (0, n):
                return {"stay": [(1, s)]}
            return {"go": [(of_state[s.x], s._replace(x=s.x + 1)), (1 - of_state[s.x], s._replace(x=s.x - 1))]}

        for n, kind in ((40, "likelihood"), (60, "table")):
            free = pl.explore(lambda s, n=n: own(s, n), {"x": 1}, space=pl.ParameterSpace.unit(*names[: n - 1]))
            assert not ties_rows(free)
            assert default_set(free) == kind
            assert default_set(free, is_about_parameters=True) == "likelihood"

    @pytest.mark.parametrize(
        ("row", "is_tied"),
        [
            ("a, b, 1 - a - b", False),
            ("(a + b) / 4, (a + b) / 4, 1 - (a + b) / 2", True),
            ("a / 2, 1 / 2, (1 - a) / 2", True),
            ("a * b, a * (1 - b), 1 - a", False),
            ("a / 2, 1 - a / 2", False),
        ],
    )
    def test_ties_within_a_row(self, row, is_tied):
        a, b = pl.parameters("a", "b")
        chances = eval(row, {"a": a, "b": b})
        to = lambda s: [s._replace(x=x) for x in range(len(chances))]  # noqa: E731
        step = lambda s: {"go": [*zip(chances, to(s), strict=True)] if s.x == 0 else [(1, s)]}  # noqa: E731
        assert ties_rows(pl.explore(step, {"x": 0}, space=pl.ParameterSpace.simplex("a", "b"))) is is_tied

    @pytest.mark.parametrize("name", ["betting:5", "aircraft:20,10", "glider:5,5,4,4", "parallel:2,0", "rover:4,4,2"])
    def test_parameters_of_case_studies_tie_rows(self, name):
        model = pl.case_study(name).model
        assert ties_rows(model)
        assert not is_best_as_table(model)


class TestIntervals:
    def test_a_view_has_the_intervals_that_ties_leave(self):
        """In jumps and in even states p is tried; the table alone would not know that both are one number."""
        table, alone = (pl.learn(m, data(), confidence_set="table") for m in (mixed(), as_table(mixed())))
        apart = pl.learn(replace(as_table(mixed()), source=None), data())
        of = lambda learned: np.subtract(*learned.bounds.intervals[::-1])  # noqa: E731
        half = as_table(mixed()).expression[mixed().expression == mixed().expressions.polynomials.index(p / 2)][0]
        assert of(table)[half] < 0.8 * of(apart)[half]
        assert np.array_equal(of(table), of(alone))

    @pytest.mark.parametrize("kind", BOTH)
    def test_data_that_exclude_the_space_contradict_the_model(self, kind):
        wide = replace(mixed(), space=pl.ParameterSpace.box({"p": (0, 1)}))
        counts = data()
        assert pl.certify(wide, counts, REACH, confidence_set=kind).status == "certified"
        narrow = replace(mixed(), space=pl.ParameterSpace.box({"p": (Fraction(1, 5), Fraction(1, 2))}))
        found = pl.certify(narrow, counts, REACH, confidence_set=kind)
        assert found.status == "model rejected"
        assert found.lower < found.upper

    def test_data_that_exclude_the_space_of_rows_without_ties_are_named(self):
        model = replace(many_rows(30), space=pl.ParameterSpace.box({"p": (Fraction(1, 5), Fraction(1, 4))}))
        rows = np.full(model.graph.n_transitions, 0.5)
        rates = model.probabilities(({"p": 0.7}, rows))[model.expression]
        counts = pl.TransitionCounts(model.graph, np.round(2000 * rates).astype(int), "independent")
        found = pl.certify(model, counts, REACH)
        assert "p in [0.2, 0.25] (the space)" in found.claim.reason
        assert found.status == "model rejected"


class TestWhatFollows:
    def test_the_certificate_of_a_table_says_what_it_rests_on(self):
        found = pl.certify(mixed(), data(), REACH, confidence_set="table")
        said = " ".join(found.rests_on.assumptions)
        assert "rows with the same expressions or the same name have the same probabilities" in said
        assert "the parameters lie in their space" in said
        assert "shared distributions, given numbers and limits are right" in " ".join(str(found).split())

    @pytest.mark.parametrize("kind", BOTH)
    def test_questions_with_memory_are_asked_of_the_view(self, kind):
        text = 'Pmax=? [ F<=9 "goal" ]'
        question = ask(text, mixed())
        found = pl.certify(mixed(), data(), question, confidence_set=kind)
        again = pl.certify(mixed(), data(), text, confidence_set=kind)
        assert (found.lower, found.upper) == (again.lower, again.upper)
        assert found.beside.gap["statistics"] > 0
        learned = pl.learn(mixed(), data(), objectives=[question], confidence_set=kind)
        other = pl.explore(step, {"x": 3}, space=SPACE, labels={"goal": lambda s: s.x == 6})
        with pytest.raises(pl.ModelError, match="another model"):
            pl.conclude(learned, ask(text, other))

    @pytest.mark.parametrize("kind", BOTH)
    def test_policies_are_compared(self, kind):
        learned = pl.learn(mixed(), data(), objectives=[REACH], confidence_set=kind)
        found = pl.difference(learned, REACH, "uniform", pl.conclude(learned, REACH).policy)
        assert found.upper > found.lower
        assert found.upper - found.lower < sum(each.upper - each.lower for each in (found.first, found.second))
        assert not found.not_coupled

    def test_a_policy_is_improved(self):
        assert improve(mixed(), data(), REACH, over="uniform", confidence_set="table").n_compared
        found = compare(mixed(), data(), REACH, confidence_set="table")
        assert [each.how.relaxation for each in found] == ["interval", "coupled"]

    @pytest.mark.parametrize("kind", BOTH)
    def test_advice_and_learning_again_with_what_is_known_of_the_model(self, kind):
        learned = pl.learn(mixed(), data(), objectives=[REACH], confidence_set=kind)
        assert kind != "table" or pl.advise(learned, REACH).sentences()
        less = pl.learn(mixed(), data(), objectives=[REACH], confidence_set=kind, confidence=0.9, like=learned)
        assert less.model is learned.model
        other = BOTH[kind == "table"]
        with pytest.raises(pl.DataError, match="like: that was learned about another model"):
            pl.learn(mixed(), data(), objectives=[REACH], confidence_set=other, like=learned)

    def test_options_about_parameters_take_the_view_that_has_some(self):
        model = many_rows(30)
        rows = np.full(model.graph.n_transitions, 0.5)
        counts = pl.simulate(model, (TRUTH, rows), 300, rng=1, max_steps=60)
        assert pl.certify(model, counts, REACH).rests_on.parameters == {}
        assert "p" in pl.learn(model, counts, model_tolerance=0.01).parameters

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            (
                {"model_tolerance": 0.01},
                r"model_tolerance=0.01: confidence_set='table' sees no expressions in this model",
            ),
            (
                {"relaxation": "rectangular"},
                "treated as unknown; choose 'interval' or 'coupled', or the confidence set",
            ),
        ],
    )
    def test_what_a_table_cannot_do_is_refused(self, options, match):
        with pytest.raises(pl.DataError, match=match):
            pl.certify(mixed(), data(), REACH, confidence_set="table", **options)

    def test_a_witness_of_a_table_is_refused(self):
        learned = pl.learn(mixed(), data(), objectives=[REACH], confidence_set="table")
        with pytest.raises(pl.DataError, match="verify does not know tables of unknown rows"):
            make_witness(learned, pl.conclude(learned, REACH))

    def test_learning_while_acting_learns_unknown_rows_beside_parameters(self):
        acting = simulator(mixed(), (TRUTH, np.full(21, 1 / 3)), rng=1, max_steps=9)
        *_, record = pl.learn_online(mixed(), acting, REACH, episodes=200, spacing=6.0, exploration=0.1)
        assert 0 < record.bound <= record.true_value <= record.optimistic_bound < 1

    def test_learned_rewards_have_parameters(self):
        (r,) = pl.parameters("r")
        space = pl.ParameterSpace.box({"p": (0, 1), "r": (0, 2)})
        model = pl.explore(step, {"x": 3}, space=space, labels={"end": lambda s: s.x in (0, 6)},
                           rewards={"pay": lambda s: r if s.x == 3 else 0})  # fmt: skip
        point = {"p": 0.6, "r": 1}, np.full(model.graph.n_transitions, 1 / 3)
        counts = pl.simulate(model, point, 500, rng=1, max_steps=60, stop=model.labels["end"])
        found = pl.certify(model, counts, 'R{"pay"}max=? [ F "end" ]')
        assert found.lower < found.upper < np.inf
        with pytest.raises(pl.DataError, match="confidence_set='table': rewards that depend on parameters"):
            pl.certify(model, counts, 'R{"pay"}max=? [ F "end" ]', confidence_set="table")


@pytest.mark.parametrize(("seed", "confidence"), [(0, 0.999), (2, 0.5), (10, 0.9)])
def test_few_data_whose_likelihood_set_reaches_the_border_are_certified(seed, confidence):
    """There the information is singular in floats. With chances g of the goal and q of the other state, the value is

    V = (g + q g') / (1 - q q'), where actions in state 1 have g' and q'.
    """

    def rows(s):
        zero, one, goal, lost = (s._replace(x=v) for v in range(4))
        if s.x > 1:
            return {"stay": [(1, s)]}
        if s.x == 0:
            return {"a": pl.unknown(one, goal, lost), "b": [(p, one), (1 - p, lost)]}
        return {"a": [(p / 2, goal), (1 - p / 2, lost)], "b": pl.unknown(zero, goal, lost)}

    model = pl.explore(rows, {"x": 0}, space=pl.ParameterSpace.unit("p"), labels={"goal": lambda s: s.x == 2})
    shares = np.array([0.004, 0.281, 0.715, 0.2, 0.8, 0.1, 0.9, 0.075, 0.528, 0.397, 1.0, 1.0])
    options = {"rng": seed, "max_steps": 40, "stop": model.graph.states["x"] >= 2}
    counts = pl.simulate(model, ({"p": 0.2}, shares), 60, **options)
    found = pl.certify(model, counts, REACH, confidence=confidence)
    (g, q), (g_1, q_1) = (
        {"a": (0.281, 0.004), "b": (0.0, 0.2)}[found.policy.action(x=0)],
        {"a": (0.1, 0.0), "b": (0.528, 0.075)}[found.policy.action(x=1)],
    )
    assert found.lower <= (g + q * g_1) / (1 - q * q_1) <= found.upper
    assert found.upper - found.lower < 0.8


class TestTheTestOfTheModel:
    @pytest.mark.parametrize("kind", BOTH)
    def test_expressions_of_one_parameter_that_differ_are_found(self, kind):
        """Even states have the chance 0.3 = p / 2 in the model, and 0.45 in the data."""
        model, rows = mixed(), as_table(mixed())
        right = model.probabilities((TRUTH, np.full(21, 1 / 3)))[model.expression]
        half, rest = (model.expressions.polynomials.index(f) for f in (p / 2, 1 - p / 2))
        wrong = np.select([model.expression == half, model.expression == rest], [0.45, 0.55], right)
        options = {"rng": 1, "max_steps": 60, "stop": model.labels["end"]}
        counts = pl.simulate(replace(rows, source=None), wrong, 1000, **options)
        learned = pl.learn(model, counts, objectives=[REACH], confidence_set=kind)
        assert learned.conflict is not None
        assert learned.fit.p_value < 1e-6

    def test_check_model_tests_expressions_of_what_is_seen_as_a_table(self):
        """Of 60 unknown rows and three of expressions: rows of p and of p / 3 do not agree on p."""

        def rows(s, *, is_wrong=False):
            if s.x in (0, 64):
                return {"stay": [(1, s)]}
            up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
            third = [(Fraction(1, 2), up), (Fraction(1, 2), down)] if is_wrong else [(p / 3, up), (1 - p / 3, down)]
            return {"go": pl.unknown(up, down) if s.x > 3 else third if s.x == 2 else [(p, up), (1 - p, down)]}

        model = pl.explore(rows, {"x": 2}, space=SPACE, labels={"goal": lambda s: s.x == 64})
        assert is_best_as_table(model)
        assert ties_rows(model)
        shares = np.full(model.graph.n_transitions, 0.5)
        rates = model.probabilities((TRUTH, shares))[model.expression]
        visits = 1000 * (np.diff(model.graph.first_transition) > 1)[model.graph.choice_of_transition()]
        right = pl.TransitionCounts(model.graph, np.round(visits * rates).astype(int), "adaptive")
        assert not check_model(model, right).is_contradicted
        is_third = model.expression == model.expressions.polynomials.index(p / 3)
        of_row = is_third | (model.expression == model.expressions.polynomials.index(1 - p / 3))
        wrong = replace(right, counts=np.where(of_row, 500, right.counts))
        found = check_model(model, wrong)
        assert found.is_contradicted
        assert any("the expressions of rows" in sentence for sentence in found.diagnosis)


def test_the_command_line_certifies_a_model_of_both(tmp_path):
    text = """
        from plumdp import ParameterSpace, explore, parameters, unknown
        (p,) = parameters("p")
        def step(s):
            if s.x in (0, 3):
                return {"stay": [(1, s)]}
            up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
            return {"go": unknown(up, down) if s.x == 1 else [(p, up), (1 - p, down)]}
        def model():
            return explore(step, {"x": 1}, space=ParameterSpace.unit("p"), labels={"goal": lambda s: s.x == 3})
    """
    (tmp_path / "model.py").write_text(dedent(text))
    model = f"{tmp_path}/model.py:model"
    words = " ".join(command_line("info", model).out.split())
    assert "2 depend on parameters (all affine, degree up to 1), 2 are the unknown probabilities of 1 row" in words
    rng, lines = np.random.default_rng(1), ["x,action,next_x"]
    for _ in range(300):
        x = 1
        while x in (1, 2):
            to = x + 1 if rng.random() < 0.6 else x - 1
            lines.append(f"{x},go,{to}")
            x = to
    (tmp_path / "log.csv").write_text("\n".join(lines))
    for kind in ("table", "likelihood"):
        ended = command_line("certify", model, f"{tmp_path}/log.csv", "-p", REACH, "--confidence-set", kind)
        assert (ended.code, ended.out.startswith("Certified: under the recommended policy, ")) == (0, True), ended.err
