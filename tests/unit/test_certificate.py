"""Certificates as text: what is printed is a bound too, nothing is left out, and nothing is taken as HTML."""

import json
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from row_models import listed
from shorthand import altered, check_model, explain, said
from tank import BAD, BLIND_TRUTH, TRUTH, blind_tank, tank

import plumdp as pl
from plumdp.base.vocabulary import Assumption, Guarantee, Status
from plumdp.certifying.claims import within_range
from plumdp.certifying.valuation import Valuation
from plumdp.confidence import estimates
from plumdp.confidence.likelihood import best_point
from plumdp.explaining.finding import expression_rows, outlines
from plumdp.model.question import ask
from plumdp.region.find import holds
from plumdp.result.certificate import Certificate
from plumdp.result.claim import Claim, How, RestsOn
from plumdp.result.policy_table import PolicyTable


def certificate(**changes):
    """Return a certificate made up by hand, of a model of two states."""
    (p,) = pl.parameters("p")

    graph = listed({at: {"go": [(p, 1), (1 - p, at)], "stop": [(1, at)]} for at in (0, 1)}).graph
    claim = Claim(
        lower=0.25,
        upper=0.5,
        policy=PolicyTable(graph, graph.first_choice[:-1]),
        objective='Pmax=? [ F "goal" ]',
        direction="max",
        confidence=0.999,
        guarantee="finite-sample, fixed N",
        status="certified",
    )
    how = How("expression", "Clopper–Pearson", "converged", {"intervals": 0.5})
    rests_on = RestsOn(("one thing", "another"), {"p": (0.1, 0.3)}, {"plumdp": "0.1.0"})
    given = Certificate(claim, how, rests_on)
    return altered(given, **changes)


def number(text):
    """Return the exact number that a printed one means."""
    return float(text) if "infinity" in text else Fraction(text)


# What is printed


def test_of_many_parameters_the_text_shows_some_and_says_how_many_there_are_while_json_has_all():
    boxes = {f"p{i}": (0.1, 0.3) for i in range(60)}
    one = certificate(parameters=boxes, estimate=dict.fromkeys(boxes, 0.2), estimated_value=0.4)
    lines = {label: text for label, text in one.page().facts if label in ("parameters", "estimate")}
    assert all("p7 " in text and "p8" not in text and "and 52 more" in text for text in lines.values())
    assert list(one.to_dict()["parameters"]) == list(one.to_dict()["estimate"]) == list(boxes)


@pytest.mark.slow
@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
@example(0.1, 0.1)
@example(1 - 2**-53, 1.0)
@example(5e-324, 1.7976931348623157e308)
@example(-0.0, 0.0)
@example(999999.5, 999999.5)
@example(-float("inf"), float("inf"))
def test_printed_bounds_are_bounds(one, other):
    lower, upper = sorted([one, other])
    low, high = map(number, certificate(lower=lower, upper=upper).claim.printed_bounds)
    assert low <= lower
    assert upper <= high


@given(st.floats(1e-300, 1e300), st.sampled_from([1, -1]))
def test_printed_bounds_lose_no_more_than_the_sixth_digit(size, sign):
    value = sign * size
    low, high = map(number, certificate(lower=value, upper=value).claim.printed_bounds)
    assert high - low <= Fraction(size) / 10**5


@pytest.mark.parametrize(
    ("lower", "upper", "printed"),
    [
        (0.0, 1.0, ("0", "1")),
        (0.1234564, 0.1234564, ("0.123456", "0.123457")),
        (-0.1234564, -0.1234564, ("-0.123457", "-0.123456")),
        (3e-7, 1.0, ("2.99999e-7", "1")),  # the float lies just below
        (0.0, 4.25e-9, ("0", "4.25001e-9")),  # the float lies just above
        (123456.7, 1234567.0, ("123456", "1234570")),
        (1.0, float("inf"), ("1", "infinity")),
    ],
)
def test_bounds_are_printed_with_six_digits(lower, upper, printed):
    assert certificate(lower=lower, upper=upper).claim.printed_bounds == printed


WORST = "Inconclusive: the bracket does not exclude the worst value;"
VALUE = "under the recommended policy, the probability that the system ever reaches “goal”"


def test_it_reads_as_a_short_paragraph():
    assert str(certificate()).splitlines() == [
        "Certified: under the recommended policy, the probability that the system ever reaches “goal” is 25 % to 50 % "
        "(confidence 99.9 %).",
        '  query           Pmax=? [ F "goal" ]',
        "  parameters      p 0.1 to 0.3",
        "  valid if data   one thing; another",
    ]


@pytest.mark.parametrize(
    ("others", "words"), [(("Pmin",), "1 other property"), (("Pmin", "Rmin"), "2 other properties")]
)
def test_it_says_with_how_many_others_it_holds(others, words):
    together = f"the certificates of {words} that were computed together with it"
    line = f"  jointly         holds together with {together}: all of them at once with this confidence"
    assert line in str(certificate(jointly=others)).splitlines()
    assert json.loads(json.dumps(certificate(jointly=others).to_dict()))["jointly"] == list(others)


@pytest.mark.parametrize(
    ("changes", "beginning"),
    [
        (
            {"status": "inconclusive", "lower": 0.0, "upper": 0.25},
            f"{WORST} {VALUE} is 0 % to 25 % (confidence 99.9 %).",
        ),
        (
            {"status": "inconclusive", "direction": "min", "upper": 1.0},
            f"{WORST} {VALUE} is 25 % to 100 % (confidence 99.9 %).",
        ),
        ({"lower": 0.0, "upper": 0.0}, f"Certified: {VALUE} is 0 % (confidence 99.9 %)."),
        ({"lower": np.inf, "upper": np.inf}, f"Certified: {VALUE} is infinite (confidence 99.9 %)."),
        (
            {"status": "model rejected", "reason": "p and q disagree"},
            "Model rejected: no parameters explain the data. Without its expressions, on the graph alone, "
            f"{VALUE} is 25 % to 50 % (confidence 99.9 %).",
        ),
    ],
)
def test_the_headline_says_what_kind_of_claim_it_is(changes, beginning):
    assert str(certificate(**changes)).startswith(beginning)


(P,) = pl.parameters("p")


def walk(most=1):
    """Return a model: at 0 one may wait, at a cost of 1, or try to come to the goal at 1; it may end at 2 instead."""
    return listed(
        {0: {"wait": [(1, 0)], "try": [(P, 1), (1 - P, 2)]}},
        pl.ParameterSpace.box({"p": (0, most)}),
        at="x",
        labels={"goal": 1, "nowhere": 3, "start": 0},
        rewards={"cost": lambda s: 1 if s.x == 0 else 0, "gain": lambda s: -1 if s.x == 0 else 0},
    )


WAIT, TRY = [0, 2, 3], [1, 2, 3]


def walked(seen, most=1):
    """Return the walk, and counts of how often a try was won and lost."""
    model = walk(most)
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[1:3] = seen
    return model, pl.TransitionCounts(model.graph, counts, "adaptive")


def worth(question, policy=None, seen=(300, 700), most=1):
    """Return what is certified of the walk, given how often a try was won and lost."""
    return pl.certify(*walked(seen, most), question, policy=policy)


@pytest.mark.parametrize(
    ("question", "policy", "value"),
    [
        ('Pmax=? [ F "goal" ]', WAIT, "0"),
        ('Pmax=? [ F "nowhere" ]', None, "0"),
        ('Pmax=? [ F "nowhere" ]', TRY, "0"),
        ('Pmin=? [ F "start" ]', None, "1"),
        ('Pmin=? [ G !"goal" ]', WAIT, "1"),
        ('R{"cost"}max=? [ F "start" ]', None, "0"),
        ('R{"cost"}min=? [ F "nowhere" ]', None, "infinite"),
        ('R{"cost"}min=? [ F "goal" ]', WAIT, "infinite"),
        ('R{"cost"}max=? [ F "goal" ]', TRY, "infinite"),
        ('R{"gain"}max=? [ C<=0 ]', None, "0"),
        ('R{"gain"}max=? [ C{0.5} ]', WAIT, "-2"),
    ],
)
def test_a_proved_value_is_certified_though_it_is_the_worst_there_can_be(question, policy, value):
    found = worth(question, policy)
    assert found.lower == pytest.approx(found.upper)
    assert found.status == "certified"
    if value != "-2":  # which is proved up to rounding
        shown = f"{int(value):.0%}".replace("%", " %") if question[0] == "P" else value
        assert found.headline.endswith(f" is {shown} (confidence 99.9 %).")


@pytest.mark.parametrize(
    ("question", "ends", "within"),
    [
        ('Pmax=? [ F "goal" ]', (-4.4409e-16, 1 + 4.4409e-16), (0.0, 1.0)),
        ('R{"cost"}min=? [ C<=3 ]', (-4.4409e-16, 3.0), (0.0, 3.0)),
        ('R{"gain"}max=? [ C<=3 ]', (-4.4409e-16, 3.0), (-4.4409e-16, 3.0)),  # some gains are negative
    ],
)
def test_bounds_that_were_rounded_beyond_what_values_can_be_end_there(question, ends, within):
    asked = ask(question, walk(1))
    valued = within_range(asked, Valuation(np.zeros(1), *ends, "converged"))
    assert (valued.lower, valued.upper) == within


@pytest.mark.parametrize("policy", [None, TRY])
def test_one_bound_is_an_answer_for_a_policy_of_ones_own_and_not_for_one_that_was_found(policy):
    """After five lost tries p may be 0, and is at most 0.3."""
    found = worth('Pmax=? [ F "goal" ]', policy, (0, 5), "0.3")
    assert (found.lower, found.upper) == (0, pytest.approx(0.3))
    assert (found.status, found.headline) == (
        (
            "inconclusive",
            f"{WORST} {VALUE} is 0 % to 30.1 % (confidence 99.9 %).",
        )
        if policy is None
        else (
            "certified",
            f"Certified: {VALUE.replace('the recommended', 'this')} is 0 % to 30.1 % (confidence 99.9 %).",
        )
    )


@pytest.mark.parametrize(
    ("question", "policy", "bounds", "status"),
    [
        ('Pmax=? [ F "goal" ]', None, (0, 1), "inconclusive"),
        ('Pmax=? [ F "goal" ]', TRY, (0, 1), "inconclusive"),
        ('Pmin=? [ F "goal" ]', TRY, (0, 1), "inconclusive"),
        ('R{"cost"}min=? [ F "goal" ]', None, (np.inf, np.inf), "inconclusive"),  # another policy may do better
        ('R{"cost"}min=? [ F "goal" ]', TRY, (1, np.inf), "certified"),
        ('R{"gain"}max=? [ C<=2 ]', None, (-1, -1), "certified"),
        ('R{"gain"}min=? [ C{0.5} ]', None, (-2, -2), "certified"),
    ],
)
def test_without_data_the_status_says_whether_the_bounds_exclude_anything(question, policy, bounds, status):
    """A try costs 1 and wins or loses for good, so that the cost until the goal is 1 if p is 1, and else infinite."""
    found = worth(question, policy, (0, 0))
    assert (found.lower, found.upper) == pytest.approx(bounds)
    assert found.status == status
    assert found.headline.startswith("Inconclusive: " if status == "inconclusive" else "Certified: ")


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (
            (0, 5),
            "the recommended policy has the worst value, infinity; others may do better, but the data do not show it",
        ),
        ((0, 0), "there are no data (all counts are 0)"),
    ],
)
def test_the_worst_value_of_a_policy_that_was_found_is_no_answer_if_another_may_do_better(seen, why):
    """One may wait forever, or try until it is done, which takes forever as well if p is 0."""

    def step(s):
        retry = [(P, s._replace(x=1)), (1 - P, s)]
        return {"stay": [(1, s)]} if s.x else {"wait": [(1, s)], "try": retry}

    rewards, labels = {"cost": lambda s: 1}, {"goal": lambda s: s.x == 1}
    model = pl.explore(step, {"x": 0}, space=pl.ParameterSpace.unit("p"), labels=labels, rewards=rewards)
    counts = pl.TransitionCounts(model.graph, [0, *seen, 0], "adaptive")
    found = pl.certify(model, counts, 'R{"cost"}min=? [ F "goal" ]', relaxation="interval")
    assert (found.lower, found.upper, found.policy.action(x=0)) == (np.inf, np.inf, "wait")
    assert (found.status, found.claim.reason) == ("inconclusive", why)
    assert f"because         {why.partition(';')[0]}" in str(found)


@pytest.mark.night
def test_a_report_does_not_say_more_of_bounds_than_they_do(blank_pictures, tmp_path):
    for policy, seen, badge in ((WAIT, (300, 700), "Certified"), (None, (0, 5), "Inconclusive")):
        data = walked(seen, "0.3")
        found = pl.certify(*data, 'Pmax=? [ F "goal" ]', policy=policy)
        pl.write_report(found, explain(*data, found), tmp_path / "report.html")
        page = unescape((tmp_path / "report.html").read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")
        assert f"</span> {badge}</p>" in page
        assert f"<li>{found.headline}</li>" in page
        claimed = ", the probability that the system ever reaches “goal” is 0 %, under this policy."
        assert (claimed in page) is (badge == "Certified")
        assert ("These bounds still include the worst possible value." in page) == (policy is None)


def test_a_reason_is_said_once():
    """In the headline if nothing is certified, else among the facts."""
    reason = "runs may never end"
    for status in ("inconclusive", "certified", "model rejected"):
        assert str(certificate(status=status, reason=reason)).count(reason) == 1


def test_reasons_and_an_open_end_of_the_solver_are_said():
    text = str(certificate(reason="p and q disagree", solver="interrupted: the bounds so far hold"))
    assert "  because         p and q disagree" in text.splitlines()
    assert "  solver          interrupted: the bounds so far hold" in text.splitlines()


@pytest.mark.parametrize(("direction", "bound"), [("max", 0.25), ("min", 0.5)])
def test_the_bound_that_matters_is_the_one_against_the_policy(direction, bound):
    assert certificate(direction=direction).claim.bound == bound


# HTML and JSON


class Text(HTMLParser):
    """Collect tags and text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add((tag, tuple(name for name, _ in attributes)))

    def handle_data(self, data):
        self.text += data


@pytest.mark.slow
@given(st.text(st.sampled_from("a<>&\"'/ script"), max_size=20))
@example('P<=0.5 [ F "a" & "b" ]')
@example("<script>alert(1)</script>")
def test_html_shows_texts_as_they_are_and_adds_no_tags(text):
    page = certificate(objective=text, reason=text + "!", assumptions=(text,), solver=text + "?")._repr_html_()
    shown, plain = Text(page), Text(certificate(objective="", reason="x", solver="x")._repr_html_())
    assert shown.tags == plain.tags
    assert text in shown.text


@pytest.mark.slow
@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.text())
@example(-float("inf"), float("inf"), 'Rmin=? [ F "goal" ]')
def test_json_holds_everything_but_the_policy(one, other, text):
    lower, upper = sorted([one, other])
    made = certificate(lower=lower, upper=upper, objective=text, parameters={"p": (lower, upper)})
    read = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert read.pop("schema") == "plumdp/certificate/1"
    told = said(made)
    assert read.pop("in_brief") == Assumption.in_brief(made.rests_on.assumptions)
    of_runs = {"ground", "rungs", "cap"}  # which files of other certificates do not name
    assert set(read) == told.keys() - of_runs - {
        "policy",
        "answer",
        "difference",
        "rival",
        "contradiction",
        "claims_bounds",
    }
    for name in set(read) - {"lower", "upper", "parameters", "assumptions", "jointly", "budget", "narrower"}:
        assert read[name] == told[name]
    assert (float(read["lower"]), float(read["upper"])) == (lower, upper)  # infinite numbers are text
    assert [float(end) for end in read["parameters"]["p"]] == [lower, upper]
    assert (tuple(read["assumptions"]), tuple(read["jointly"])) == (told["assumptions"], told["jointly"])
    assert read["narrower"] == "".join(map(str, told["narrower"]))
    assert read["budget"] == {words: float(share) for words, share in told["budget"]}


# Policies


def test_a_policy_is_a_table_of_state_variables_and_action_names(tmp_path):
    policy = certificate().policy
    assert {name: column.tolist() for name, column in policy.columns().items()} == {"at": [0, 1], "action": ["go"] * 2}
    policy.to_csv(tmp_path / "policy.csv")
    assert (tmp_path / "policy.csv").read_text().split() == ["at,action", "0,go", "1,go"]
    assert len(policy) == 2


def test_a_policy_is_asked_by_state():
    graph = certificate().policy.graph
    policy = PolicyTable(graph, graph.first_choice[:-1] + np.array([0, 1], dtype=np.int32))
    assert [policy.action(at=0), policy.action(at=1)] == ["go", "stop"]
    with pytest.raises(pl.DataError, match=r"^the model has no state with at=7$"):
        policy.action(at=7)
    with pytest.raises(pl.DataError, match=r"^the state variables are at; give a value for each of them$"):
        policy.action(x=1)


def test_a_state_variable_called_action_keeps_its_column():
    def step(state):
        return {"wait": [(1, state)]}

    graph = pl.explore(step, {"action": 3}, space=pl.ParameterSpace.unit()).graph
    columns = PolicyTable(graph, graph.first_choice[:-1]).columns()
    assert {name: column.tolist() for name, column in columns.items()} == {"action": [3], "chosen_action": ["wait"]}


@pytest.mark.parametrize("kind", [Status, Guarantee])
def test_statuses_and_guarantees_are_their_texts_wherever_they_are_read(kind):
    for member in kind:
        assert member == member.value
        assert (str(member), repr(member), f"{member}", json.dumps(member)) == (
            member.value,
            repr(member.value),
            member.value,
            f'"{member.value}"',
        )
        assert kind(member.value) is member
        assert {member: 1}[member.value] == 1


def test_a_certificate_as_a_dictionary_has_plain_texts():
    plain = certificate(status=Status.CERTIFIED, guarantee=Guarantee.FIXED).to_dict()
    assert (type(plain["status"]), type(plain["guarantee"])) == (str, str)


@pytest.mark.parametrize(
    ("text", "is_said"), [("Pmax=? [ F<=3 at=1 ]", True), ("Pmax=? [ F at=1 ]", False), ("Pmax=? [ X at=1 ]", False)]
)
def test_what_a_policy_without_memory_gives_away_is_said_where_steps_are_counted(text, is_said):
    (p,) = pl.parameters("p")

    def step(state):
        return {"go": [(p, state._replace(at=1)), (1 - p, state)], "stop": [(1, state)]}

    model = pl.explore(step, {"at": 0}, space=pl.ParameterSpace.unit("p"))
    counts = pl.simulate(model, {"p": 0.5}, 50, rng=1, max_steps=3)
    said = "one action per state, whatever the step; a policy that counts steps may do better"
    assert (("policy", said) in pl.certify(model, counts, ask(text, model, memory=False)).page().facts) == is_said
    counts_steps = "counts steps: its action may depend on the number of steps left (column step)"
    assert (("policy", counts_steps) in pl.certify(model, counts, text).page().facts) == is_said


def test_a_width_of_zero_has_no_parts():
    parts = {"statistics": 0.0, "approximation error": 0.0, "rounding": 0.0, "relaxation": 0.0}
    assert "width" not in dict(certificate(lower=0.5, gap=parts).page().details)
    assert dict(certificate(gap=parts | {"statistics": 0.25}).page().details)["width"] == "0.25: 100 % statistics"


# What is shown as most likely: in the region, with its value within the bounds

TANK = tank()
RUNS = pl.simulate(TANK, TRUTH, 1_000, rng=1, max_steps=6)


@pytest.fixture(scope="module")
def learned_tank():
    return pl.learn(TANK, RUNS, objectives=[BAD])


@pytest.fixture(scope="module")
def certified_tank(learned_tank):
    return pl.conclude(learned_tank, BAD)


def log_likelihoods(model, counts, points):
    """Return the log-likelihood of all transitions at points (n, d), from the expressions of the model alone."""
    with np.errstate(divide="ignore"):
        logs = np.log(model.expressions.evaluate(points))[model.expression]
    return counts.counts @ np.where(counts.counts[:, None] > 0, logs, 0.0)


def test_the_most_likely_point_is_that_of_all_rows():
    """No point of a fine grid is more likely by more than the weak prior moves the maximum: half a nat."""
    ticks = np.linspace(0.005, 0.995, 199)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    found = log_likelihoods(TANK, RUNS, best_point(TANK, RUNS)[None, :])[0]
    assert log_likelihoods(TANK, RUNS, grid).max() < found + 0.5
    assert best_point(TANK, RUNS) == pytest.approx([0.55, 0.8], abs=0.03)


@pytest.mark.slow
def test_the_estimate_of_a_certificate_lies_in_the_region_and_its_value_in_the_bounds(learned_tank, certified_tank):
    for name, (low, high) in certified_tank.rests_on.parameters.items():
        assert low <= certified_tank.beside.estimate[name] <= high
    assert certified_tank.lower <= certified_tank.beside.estimated_value <= certified_tank.upper
    truth = pl.stages.instantiate(
        TANK, {name: Fraction(value) for name, value in certified_tank.beside.estimate.items()}
    )
    value = pl.stages.evaluate(truth, certified_tank.policy, pl.parse_property(BAD, TANK)).lower[
        TANK.graph.initial_state
    ]
    assert certified_tank.beside.estimated_value == pytest.approx(value, abs=1e-6)
    assert certified_tank.beside.estimated_value == json.loads(json.dumps(certified_tank.to_dict()))["estimated_value"]
    assert not holds(learned_tank.region, learned_tank.bounds.estimate)  # what the rows in the table alone make of it


@pytest.mark.night
@pytest.mark.parametrize("confidence_set", ["likelihood", "interval", "ellipsoid"])
def test_pictures_show_the_same_estimate_whatever_the_set(confidence_set, certified_tank):
    learned = pl.learn(TANK, RUNS, objectives=[BAD], confidence_set=confidence_set)
    objective = pl.parse_property(BAD, TANK)
    (outline,) = outlines(learned, objective, certified_tank.policy)
    assert outline.estimate == pytest.approx(tuple(certified_tank.beside.estimate.values()), abs=1e-4)
    for (low, high), at in zip(outline.box, outline.estimate, strict=True):
        assert low <= at <= high
    rows = expression_rows(learned, objective, certified_tank.policy)
    assert all(row.lower <= row.estimate <= row.upper for row in rows)


@pytest.mark.slow
def test_a_check_of_the_model_has_its_estimate_and_residuals_at_the_same_point(certified_tank):
    check = check_model(TANK, RUNS, objectives=[BAD])
    assert check.estimate == pytest.approx(certified_tank.beside.estimate, abs=1e-4)
    assert check.suspicion == ""
    assert all(abs(record["standardised"]) < 5 for record in check.residuals)


@pytest.mark.night
def test_an_estimate_outside_of_the_region_is_not_shown(monkeypatch, tmp_path, blank_pictures):
    """A model that is too large has no search: what is left is the middle of the space, which the data exclude."""
    monkeypatch.setattr(estimates, "_MOST_WORK", 0)
    learned = pl.learn(TANK, RUNS, objectives=[BAD], confidence_set="interval")
    found = pl.conclude(learned, BAD)
    assert learned.shown_estimate is None
    assert (found.beside.estimate, found.beside.estimated_value) == ({}, None)
    assert "estimate" not in dict(found.page().facts)
    objective = pl.parse_property(BAD, TANK)
    assert outlines(learned, objective, found.policy)[0].estimate is None
    assert {row.estimate for row in expression_rows(learned, objective, found.policy)} == {None}
    check = check_model(TANK, RUNS, objectives=[BAD])
    assert (check.estimate, "estimate" in dict(check.facts())) == ({}, False)
    findings = pl.explain(learned, found, parts=["ladder", "region", "expressions", "policy", "residuals"])
    pl.write_report(found, findings, tmp_path / "report.html")
    assert "The estimate is about" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert pl.advise(learned, BAD, runs=100).to_dict()["estimated_value"] is None


def test_an_estimate_beyond_the_space_is_moved_to_the_most_likely_point_of_the_space():
    """Two coins a and b, of which a + b <= 1: 6 of 10 tosses of each are heads, so that both are shown at a half."""
    a, b = pl.parameters("a", "b")

    def step(s):
        heads, tails = s._replace(x=1), s._replace(x=2)
        if s.x:
            return {"end": [(1, s)]}
        return {"one": [(a, heads), (1 - a, tails)], "other": [(b, heads), (1 - b, tails)]}

    space, labels = pl.ParameterSpace.simplex("a", "b"), {"heads": lambda s: s.x == 1}
    model = pl.explore(step, {"x": 0}, space=space, labels=labels)
    counts = pl.TransitionCounts(model.graph, [60, 40, 60, 40, 0, 0], "adaptive")
    found = pl.certify(model, counts, 'Pmax=? [ F "heads" ]')
    assert found.beside.estimate == pytest.approx({"a": 0.5, "b": 0.5}, abs=1e-3)
    assert sum(found.beside.estimate.values()) <= 1 + 1e-9
    assert found.lower <= found.beside.estimated_value <= found.upper


def test_outcomes_never_seen_do_not_become_impossible():
    """The tank was never pumped down: the pump is unlikely to work, and the estimate does not say that it cannot."""
    counts, graph, level = np.array(RUNS.counts), TANK.graph, TANK.graph.states["level"]
    counts[level[graph.successor] < level[graph.state_of_choice()[graph.choice_of_transition()]]] = 0
    found = best_point(TANK, pl.TransitionCounts(TANK.graph, counts, "adaptive"))
    assert 0 < found[1] < 0.05


# The steps that the likelihood ignores

LIKELIHOOD = (
    "ignores {} of 6,000 steps ({:.3g} %): the log-likelihood of rows such as (-inflow*pump + inflow, -inflow*pump + "
    "pump, 2*inflow*pump - inflow - pump + 1) need not be concave, so only intervals of their probabilities "
    "are used"
)


@pytest.mark.slow
def test_a_certificate_says_how_many_steps_the_likelihood_ignores(tmp_path, blank_pictures):
    """There are none, unless the parameters are so many that the space is not cut into boxes."""
    assert "likelihood" not in dict(pl.certify(TANK, RUNS, BAD).page().facts)
    model = blind_tank()
    learned_tank = pl.learn(model, pl.simulate(model, BLIND_TRUTH, 1_000, rng=1, max_steps=6), objectives=[BAD])
    certified_tank = pl.conclude(learned_tank, BAD)
    is_on = TANK.graph.action == TANK.graph.action_names.index("on")
    n_steps = int(RUNS.visits[is_on].sum())
    said = LIKELIHOOD.format(f"{n_steps:,}", n_steps / 60)
    hint = "on new data, bounds may be tighter with the confidence set 'interval'"
    assert dict(certified_tank.page().facts)["likelihood"] == f"{said}; {hint}"
    assert f"  likelihood      {said}; {hint}" in str(certified_tank).splitlines()
    assert "ignores " + certified_tank.to_dict()["not_in_likelihood"] == said
    pl.write_result(certified_tank, tmp_path / "result")
    assert pl.read_result(tmp_path / "result").how.not_in_likelihood == certified_tank.how.not_in_likelihood
    pl.write_report(
        certified_tank, pl.explain(learned_tank, certified_tank, parts=["region"]), tmp_path / "report.html"
    )
    page = (tmp_path / "report.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert f"<li>The likelihood {said}.</li>" in page or f"<p>The likelihood {said}.</p>" in page


@pytest.mark.slow
def test_nothing_is_ignored_if_such_rows_were_not_visited_or_there_are_none():
    policy = TANK.graph.first_choice[:-1]
    assert [TANK.graph.action_names[TANK.graph.action[choice]] for choice in policy[:1]] == ["off"]
    off = pl.simulate(TANK, TRUTH, 200, rng=1, max_steps=6, policy=policy)
    study = pl.case_study("betting:5")
    bets = pl.simulate(study.model, study.true_point, 200, rng=1, max_steps=6)
    for one in (
        pl.certify(TANK, off, BAD),
        pl.certify(study.model, bets, study.objective),
        pl.certify(TANK, RUNS, BAD, confidence_set="interval"),
    ):
        assert one.how.not_in_likelihood == ""
        assert "likelihood" not in dict(one.page().facts)


@pytest.mark.parametrize(
    ("p_value", "says"),
    [
        (1.0, "passed (p = 1)"),
        (0.3, "passed (p = 0.3)"),
        (
            0.03,
            "some doubt whether the model is right (p = 0.03), but not enough to reject it; plumdp check-model says",
        ),
    ],
)
def test_a_p_value_is_put_into_words(p_value, says):
    assert dict(certificate(p_value=p_value).page().facts)["model test"].startswith(says)
