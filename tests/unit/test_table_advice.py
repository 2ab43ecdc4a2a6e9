"""Advice on rows of tables: variances against derivatives, plans against other plans, and widths that come true."""

import numpy as np
import pytest
from shorthand import explain
from test_table_certificates import REACH, REWARDS, data

import plumdp as pl
from plumdp.explaining.design import table_question
from plumdp.model.question import ask


def apart():
    """Return a model of two untied rows, of which the second is visited seldom, and data."""

    def step(s):
        if s.x > 1:
            return {"stay": [(1, s)]}
        return {
            "go": pl.unknown(s._replace(x=1), s._replace(x=2), s._replace(x=3))
            if s.x == 0
            else [s._replace(x=2), s._replace(x=3)]
        }

    model = pl.explore(step, {"x": 0}, labels={"goal": lambda s: s.x == 2})
    point = np.array([0.1, 0.5, 0.4, 0.3, 0.7, 1, 1])
    return (
        model,
        point,
        pl.simulate(
            model, point, 20_000, rng=3, max_steps=3, stop=model.labels["goal"] | (model.graph.states["x"] == 3)
        ),
    )


def test_the_variance_of_each_row_is_that_of_the_delta_method():
    """The value is p01 q + p02, and its derivatives are q, 1, 0 along the first row, and p01 and 0 along the second."""
    model, _, counts = apart()
    learned = pl.learn(model, counts, objectives=[REACH])
    question = table_question(learned, ask(REACH, model), model.graph.first_choice[:-1])
    p, q = counts.counts[:3] / counts.counts[:3].sum(), counts.counts[3:5] / counts.counts[3:5].sum()
    ahead = np.array([q[0], 1, 0])
    expected = [p @ ahead**2 - (p @ ahead) ** 2, p[0] ** 2 * q[0] * q[1]]
    assert question.of_visit[:2] == pytest.approx(expected, rel=0.01)
    assert not question.of_visit[2:].any()
    assert question.value == pytest.approx(p @ ahead, rel=0.01)


def test_no_other_division_of_the_visits_is_better():
    """Visits of both rows are moved by hundredths; a hundred more in all are rounding."""
    model, _, counts = apart()
    learned = pl.learn(model, counts, objectives=[REACH])
    question = table_question(learned, ask(REACH, model), model.graph.first_choice[:-1])
    seen = question.information(counts.counts.astype(float))
    more = question.of_visits(question.directly(counts.counts.astype(float), 0.25))
    assert question.variance(seen + more) == pytest.approx(question.variance(seen) / 16, rel=1e-3)
    total = more.sum()
    others = [question.variance(seen + total * np.array([s, 1 - s, 0])) for s in np.linspace(0, 1, 101)]
    assert question.variance(seen + more) <= min(others) * 1.0001


@pytest.mark.parametrize("text", [REACH, REWARDS[0], 'Pmin=? [ G !"bad" ]'])
def test_as_many_runs_as_are_advised_bring_the_width_that_was_wanted(text):
    model, point, counts = data(n_runs=5000)
    learned = pl.learn(model, counts, objectives=[text])
    found = pl.conclude(learned, text)
    advice = pl.advise(learned, text, width=(found.upper - found.lower) / 3)
    like_these = advice.enough[0]
    more = pl.simulate(model, point, like_these.runs, rng=5, max_steps=60, stop=model.labels["end"])
    both = pl.certify(model, more, text, policy=found.policy, announced=True)
    assert (both.upper - both.lower) == pytest.approx(advice.target, rel=0.35)
    assert "The rows that limit the width most" in str(advice)
    assert (advice.directly > 0).any()


@pytest.mark.slow
def test_findings_and_reports_name_the_rows_that_limit_the_width(tmp_path):
    model, _, counts = apart()
    found = pl.certify(model, counts, REACH)
    findings = explain(model, counts, found)
    assert [rung.relaxation for rung in findings.ladder] == ["interval", "coupled"]
    assert findings.expressions[0].text == "state (x=0), action 'go', to (x=1)"
    assert findings.expressions[0].lower < 0.1 < findings.expressions[0].upper
    assert "state (x=0), action 'go'" in findings.advice["sentences"][1]
    pl.write_report(found, findings, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "The rows that limit the width most" in page
    assert "parameters" not in page.partition("Sources of uncertainty")[2].partition("</section>")[0]


def test_a_width_that_the_bounds_have_already_and_values_that_are_known_are_refused():
    model, _, counts = apart()
    learned = pl.learn(model, counts, objectives=[REACH])
    with pytest.raises(pl.DataError, match="apart now"):
        pl.advise(learned, REACH, width=0.9)
    known = pl.learn(model, counts, objectives=["Pmax=? [ F true ]"])
    with pytest.raises(pl.DataError, match="the value is known"):
        pl.advise(known, "Pmax=? [ F true ]")
