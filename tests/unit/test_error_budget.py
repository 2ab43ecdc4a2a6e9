"""The error of a certificate is spent once: shares sum to at most one, and every part spends what the budget says."""

import ast
import re
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_models import row_model
from tank import TRUTH, tank
from tiers import pairs

import plumdp as pl
import plumdp_verify
from plumdp.base.error_budget import ErrorBudget, Share, equal_parts
from plumdp.confidence import likelihood, path_evidence, tolerant
from plumdp.confidence.likelihood import Order, likelihood_shares
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.sets import ModelCache, whole_set, with_fixed_numbers
from plumdp.confidence.tolerant import tolerant_shares
from plumdp.data.counts import PilotEnd
from plumdp.fit import model_fit as fit
from plumdp.learning import model_tests
from plumdp.relaxation import relax
from plumdp.tables.table_set import table_shares
from studies.layered import layered_model

SOURCE = Path(pl.__file__).parent
FLAGS = (False, True)
ERRORS = [0.5, 0.3, 0.05, 1 - 0.999, 1e-9]


def budgets():
    """Return the budget of every path, by name."""
    found = {"one set": whole_set()}
    for has_bets, has_contexts in product(FLAGS, FLAGS):
        found[f"table, {has_bets}, {has_contexts}"] = table_shares(has_bets=has_bets, has_contexts=has_contexts)
    flags = (
        "is_asked",
        "has_many_parameters",
        "leaves_rows_out",
        "has_time",
        "has_narrow_space",
        "has_paths",
        "has_contexts",
    )
    for order, *facts in product(get_args(Order), *[FLAGS] * len(flags)):
        names = dict(zip(flags, facts, strict=True))
        found[f"likelihood, {order}, {facts}"] = likelihood_shares(order, **names)
    for facts in product(FLAGS, FLAGS):
        found[f"model tolerance, {facts}"] = tolerant_shares(has_bets=facts[0], has_drifts=facts[1])
    tested = {f"{name}, fixed numbers": with_fixed_numbers(each) for name, each in found.items()}
    return found | tested


BUDGETS = budgets()


def names(shares):
    return list(dict.fromkeys(share.name for share in shares))


OF_SET = names(share for budget in BUDGETS.values() for share in budget.of_set)
BESIDE = names(share for budget in BUDGETS.values() for share in budget.beside)
NAMES = [*OF_SET, *BESIDE, "graph_alone"]


# The shares


def test_shares_of_every_path_sum_to_at_most_one():
    for name, budget in BUDGETS.items():
        shares = {part: budget[part] for part in (*OF_SET, *BESIDE)}
        assert sum(shares.values()) == budget.total <= 1, name
        assert all(isinstance(share, Fraction) and share >= 0 for share in shares.values()), name
        assert budget.confidence_set == sum(budget[part] for part in OF_SET), name


def test_likelihood_sets_beside_fixed_numbers_spend_all_of_the_error():
    for name, budget in BUDGETS.items():
        if name.startswith("likelihood"):
            assert budget.total == (1 if "fixed numbers" in name else Fraction(19, 20)), name


@given(st.dictionaries(st.sampled_from(NAMES), st.fractions(min_value=Fraction(-1, 10), max_value=Fraction(7, 10))))
def test_no_budget_exists_whose_shares_are_negative_or_sum_to_more_than_one(shares):
    spent = sum(share for part, share in shares.items() if part != "graph_alone")
    of = [[Share(name, shares[name], name) for name in kind if name in shares] for kind in (OF_SET, BESIDE, NAMES[-1:])]
    if min(shares.values(), default=0) < 0 or spent > 1:
        with pytest.raises(ValueError, match="sum to at most one"):
            ErrorBudget(*map(tuple, of))
    else:
        assert ErrorBudget(*map(tuple, of)).total == spent


def test_the_parts_are_told_in_words_and_have_all_of_the_shares():
    for name, budget in BUDGETS.items():
        parts = budget.parts()
        assert sum(share for _, share in parts) == budget.total + budget["graph_alone"], name
        assert len({words for words, _ in parts}) == len(parts), name
        assert all(share > 0 for _, share in parts), name


def test_the_table_of_the_page_on_the_limit_is_the_budget():
    """Its columns are planned, open and unknown data, with objectives; in brackets with more than 20 parameters.

    Data without a plan have two numbers where bets in cells make a difference, the first with them.
    """
    text = (SOURCE.parents[1] / "docs/proofs/shares.md").read_text("utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    table = {row[0].strip(): [cell.split(",")[0].strip() for cell in row[2:]] for row in rows if len(row) == 5}
    lines = {
        "half-spaces across the gradients, equal parts for each objective": ("half_spaces",),
        "bets in cells of the space": ("cells",),
        "half-spaces across outcomes, equal parts for each direction": ("outcome_half_spaces",),
        "likelihood after a pilot, a quarter for blocks": ("likelihood_after_pilot",),
        "likelihood against the space, a quarter for blocks": ("likelihood_against_space",),
        "beta-binomial intervals of expressions": ("intervals",),
        "[tests](fit.md) of drifts": ("drifts",),
        "tests of changes over time": ("time",),
        "tests of rows, and of classes, equal parts": ("rows", "classes"),
        "fixed numbers, as predictions, for the p-value": ("predicted_numbers",),
        "fixed numbers, as intervals": ("fixed_numbers",),
        "bounds on the graph alone, if the model is rejected": ("graph_alone",),
    }
    others = {"paths", "single_choices", "whole_set", "model_test", "value_bets", "row_bets", "joint_bets"}
    others |= {"memory_bets", "memory_rows"}  # of counts with contexts, in words below the table
    assert {part for parts in lines.values() for part in parts} == {*NAMES} - others
    for words, parts in lines.items():
        for order, cell in zip(("planned", "open", "unknown"), table[words], strict=True):
            in_cells, _, rest = cell.rpartition(" or ")
            few, _, many = rest.rstrip(")").partition(" (")
            kinds = [(False, False, few), (False, True, many or few)]
            for has_cells, is_many, printed in [*kinds, *([(True, False, in_cells)] if order == "unknown" else [])]:
                facts = {"is_asked": True, "has_many_parameters": is_many, "has_time": order != "unknown"}
                made = with_fixed_numbers(likelihood_shares(order, has_cells=has_cells, **facts))
                assert Fraction(printed or few or 0) == sum(made[part] for part in parts), (words, order, has_cells)


# As floats


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_floats_that_are_handed_out_sum_to_at_most_the_error_up_to_one_rounding(error):
    for name, budget in BUDGETS.items():
        whole = Fraction(budget.error_of_set(1.0)) + sum(Fraction(budget.error_of(part, 1.0)) for part in BESIDE)
        assert whole <= 1, name
        of_set = budget.error_of_set(error)
        inside = sum(Fraction(budget.error_in_set(part, of_set)) for part in OF_SET)
        outside = sum(Fraction(budget.error_of(part, error)) for part in BESIDE)
        assert inside + outside <= Fraction(error) * (1 + Fraction(1, 2**51)), name


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 1000])
def test_equal_parts_sum_to_the_whole(error, n):
    assert max(n, 1) * equal_parts(error, n) == pytest.approx(error, rel=1e-15)


# The shares are those of sets


def divisions(source):
    """Return the products and quotients of an error and a number in a text, as written."""

    def is_number(node):
        is_constant = isinstance(node, ast.Constant) and isinstance(node.value, int | float)
        return is_constant or (isinstance(node, ast.Name) and node.id.strip("_").isupper())

    def is_error(node):
        return getattr(node, "id", getattr(node, "attr", "")) == "error"

    is_likely = re.search(r"\berror [*/]|[*/] [\w.]*\berror\b", source)
    for node in ast.walk(ast.parse(source)) if is_likely else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            pairs = (node.left, node.right), (node.right, node.left)
            if any(is_number(one) and is_error(other) for one, other in pairs):
                yield ast.unparse(node)


def fractions_of_error(source):
    """Return what looks like a share of the error in a text: as a float, and as the fractions 1/40 and so on."""
    numbers = r"(?<![\w.])(?:0\.025|0\.925|92\.5|0\.0125|0\.00625)(?!\d)"
    return re.findall(rf"{numbers}|Fraction\(\d+, (?:20|40|80|160)\)", source)


def sources():
    return {
        str(path.relative_to(source.parent)): path.read_text("utf-8")
        for source in (SOURCE, Path(plumdp_verify.__file__).parent)
        for path in source.rglob("*.py")
        if path.name != "error_budget.py"
    }


def test_no_file_divides_an_error_by_numbers_of_its_own():
    """Both tails of an interval and rounding errors are no shares."""
    found = {(Path(path).name, text) for path, source in sources().items() for text in divisions(source)}
    tails = {("binomial.py", "error / 2"), ("binomial.py", "2 / error")}
    assert found == tails | {("estimates.py", "2 * error")}


def test_sets_bring_their_shares_and_no_other_file_has_one_as_a_number():
    found = {path for path, source in sources().items() if fractions_of_error(source)}
    files = ("confidence/sets", "confidence/likelihood", "confidence/tolerant", "tables/table_set")
    assert found == {f"plumdp/{file}.py" for file in files}


@pytest.mark.parametrize("planted", ["x = 0.8 * error", "y = self.error / 40", "z = FIT * learned.error"])
def test_a_planted_division_is_found(planted):
    assert len(list(divisions(planted))) == 1


@pytest.mark.parametrize("planted", ["FIT = 0.025", "WHOLE = 92.5", "share = Fraction(37, 40)"])
def test_a_planted_share_is_found(planted):
    assert len(list(fractions_of_error(planted))) == 1


# What is spent is what the budget says


class Spent(dict):
    """What each part was handed, by name; a part that is handed an error twice must be handed the same."""

    def add(self, part, error):
        assert self.setdefault(part, error) == error, part


@pytest.fixture
def spent(monkeypatch):
    """Record what the parts of a certificate are handed; those of the likelihood set within a test are set apart."""
    found, in_test = Spent(), Spent()
    place = [found]

    def record(module, name, tell):
        function = getattr(module, name)

        def recorded(*arguments, **options):
            tell(*arguments, **options)
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, recorded)

    def half_spaces(*_, error, texts, **__):
        place[0].add("outcome_half_spaces" if set(texts) == {"an outcome"} else "half_spaces", error)

    def threshold(table, seen, law, error):
        is_of_pilot = any(law is each for each in laws)
        weight = found.pilot.weight if is_of_pilot else 1
        place[0].add("likelihood_after_pilot" if is_of_pilot else "likelihood_against_space", error / weight)

    def tolerant_parts(error, n):
        tolerant_parts.calls += 1
        place[0].add("intervals" if tolerant_parts.calls % 2 else "single_choices", error)

    def fit_model(*arguments, found: object = None, **options):
        place[0] = spent_in_fit if found is None else place[0]
        made = own_fit(*arguments, found=found, **options)
        place[0] = everything
        return made

    def drifts(view, counts, *_, error, **__):
        place[0].add("drifts", error / counts.pilot.weight)

    def cells(error, n):
        cells.calls += 1
        place[0].add("classes" if cells.calls % 2 else "rows", error)

    def memory(*_, of_bets, of_rows, **__):
        place[0].add("memory_rows", of_rows)
        if of_bets:
            place[0].add("memory_bets", of_bets)

    def law_of_pilot(*arguments):
        laws.append(own_law(*arguments))
        return laws[-1]

    tolerant_parts.calls = cells.calls = 0
    laws, own_law = [], likelihood.law_of_pilot
    own_fit, spent_in_fit, everything = model_tests.fit_model, in_test, found
    record(likelihood, "staged_half_spaces", half_spaces)
    record(likelihood, "_threshold", threshold)
    record(likelihood, "Cells", lambda *parts: place[0].add("cells", parts[5]))
    record(path_evidence, "path_level", lambda *parts: place[0].add("paths", parts[5]))
    record(likelihood, "_strips", lambda known, counts, error: place[0].add("intervals", error))
    record(tolerant, "equal_parts", tolerant_parts)
    record(fit, "strongest_evidence", lambda *_, error: place[0].add("predicted_numbers", error))
    record(fit, "drift_tests", drifts)
    record(fit, "time_tests", lambda *_, error, **__: place[0].add("time", error))
    record(fit, "equal_parts", cells)
    record(fit, "memory_tests", memory)
    record(model_tests, "excluded_numbers", lambda *_, error, **__: found.add("fixed_numbers", error))
    record(relax, "untied_bounds", lambda *_, error: found.add("graph_alone", error))
    monkeypatch.setattr(likelihood, "law_of_pilot", law_of_pilot)
    monkeypatch.setattr(model_tests, "fit_model", fit_model)
    monkeypatch.setattr(model_tests, "smallest_tolerance", lambda *_, **__: 0.0)  # of other certificates
    found.in_test = in_test
    return found


def learned_by(spent, model, counts, **options):
    spent.pilot = counts.pilot
    learned = pl.learn(model, counts, confidence=0.99, **options)
    if not any(part in spent for part in OF_SET):
        spent.add("whole_set", learned.bounds.error)
    return learned


def by_part(budget, error):
    """Return what each part may spend, in plain floats: shares times the error."""
    return {part: float(budget[part]) * error for part in NAMES if budget[part]}


def with_end(counts, order):
    """Return the counts with less, or something else, known of their order."""
    if order == "open":
        return replace(counts, pilot=replace(counts.pilot, end=PilotEnd.POWER_OF_FOUR, expected=None))
    return replace(counts, sampling="adaptive", pilot=None) if order == "unknown" else counts


(p,) = pl.parameters("p")
GOAL = "Pmax=? [ F at=1 ]"


@pytest.fixture(scope="module")
def studies():
    """Return models with what is asked of them and how they are simulated, each with something of its own."""
    betting, air = pl.case_study("betting:5"), pl.case_study("aircraft:6,4,1")
    many = layered_model("sparse", 24, n_rows=30, n_layers=4, width=10)
    square = (p - Fraction(1, 2)) ** 2
    left_out = row_model([[square, 1 - square], [p, 1 - p]], pl.ParameterSpace.unit("p"))
    coins = row_model([[Fraction(1, 2), Fraction(1, 2)], [p, 1 - p]], pl.ParameterSpace.unit("p"))
    return {
        "plain": (betting.model, [betting.objective], betting.true_point, 6),
        "two objectives": (air.model, [air.objective, 'Pmin=? [ F "collision" ]'], air.true_point, air.max_steps),
        "many parameters": (many.model, [many.objective], many.true_point, many.max_steps),
        "hidden paths": (tank(), ['Pmin=? [ F "bad" ]'], TRUTH, 6),
        "rows left out": (left_out, [], {"p": Fraction(1, 3)}, 2),
        "fixed numbers": (coins, [], {"p": Fraction(1, 3)}, 2),
    }


@pytest.mark.parametrize(
    ("name", "order"),
    pairs(
        ["many parameters", "plain", "two objectives", "hidden paths", "rows left out", "fixed numbers"],
        ["planned", "open", "unknown"],
    ),
)
def test_a_likelihood_set_and_the_tests_beside_it_spend_what_the_budget_says(name, order, spent, studies):
    model, asked, truth, steps = studies[name]
    counts = with_end(pl.simulate(model, truth, 400, rng=1, max_steps=steps), order)
    learned = learned_by(spent, model, counts, objectives=asked)
    expected = by_part(learned.budget, learned.error)
    del expected["graph_alone"]
    assert spent == pytest.approx(expected, rel=1e-12)
    assert not spent.in_test
    assert learned.bounds.budget is learned.budget
    assert (learned.budget["outcome_half_spaces"] > 0) == (name == "many parameters" and order != "unknown")
    assert (learned.budget["intervals"] == Fraction(3, 10)) == (name == "rows left out")
    assert (likelihood_table(model).left_out != ()) == (name == "rows left out")
    assert (learned.budget["paths"] > 0) == (name == "hidden paths")
    assert (learned.budget["fixed_numbers"] > 0) == (name == "fixed numbers")


@pytest.mark.parametrize("kind", ["interval", "l1", "ellipsoid"])
@pytest.mark.parametrize("name", ["plain", "fixed numbers"])
def test_other_sets_spend_what_the_budget_says_beside_a_test_of_their_own(name, kind, spent, studies):
    model, asked, truth, steps = studies[name]
    counts = pl.simulate(model, truth, 400, rng=1, max_steps=steps)
    learned = learned_by(spent, model, counts, objectives=asked, confidence_set=kind)
    expected = by_part(learned.budget, learned.error)
    assert expected.pop("model_test") == pytest.approx(learned.error / 40)
    del expected["graph_alone"]
    assert spent == pytest.approx(expected, rel=1e-12)
    facts = {"has_directions": False, "has_time": True, "has_contexts": bool(counts.contexts)}
    budget = likelihood.likelihood_budget(ModelCache(model), learned.counts.pilot, **facts)
    inside = by_part(with_fixed_numbers(budget) if name == "fixed numbers" else budget, learned.error)
    del inside["graph_alone"]
    inside.pop("fixed_numbers", None)  # intervals are no part of a p-value
    assert spent.in_test == pytest.approx(inside, rel=1e-12)


@pytest.mark.parametrize("share", [0.99, 1.01])
def test_the_test_beside_other_sets_rejects_at_its_share(share, monkeypatch, studies):
    model, _, truth, steps = studies["plain"]
    counts, own = pl.simulate(model, truth, 400, rng=1, max_steps=steps), model_tests.fit_model

    def fitted(*arguments, error, **options):
        p_value = share * whole_set().error_of("model_test", error)
        return replace(own(*arguments, error=error, **options), p_value=p_value)

    monkeypatch.setattr(model_tests, "fit_model", fitted)
    learned = pl.learn(model, counts, confidence_set="interval")
    assert (learned.conflict is not None) == (share < 1)


@pytest.mark.parametrize("order", ["planned", "open", "unknown"])
@pytest.mark.parametrize("kind", ["likelihood", "interval"])
@pytest.mark.parametrize("name", ["plain", "fixed numbers"])
def test_sets_that_allow_for_a_misfit_spend_what_the_budget_says(name, kind, order, spent, studies):
    model, asked, truth, steps = studies[name]
    counts = with_end(pl.simulate(model, truth, 400, rng=1, max_steps=steps), order)
    learned = learned_by(spent, model, counts, objectives=asked, model_tolerance=0.01, confidence_set=kind)
    expected = by_part(learned.budget, learned.error)
    del expected["graph_alone"]
    if learned.budget["drifts"]:  # those of the test of the model, which cut the region
        assert expected.pop("drifts") == pytest.approx(spent.in_test["drifts"], rel=1e-12)
    assert spent == pytest.approx(expected, rel=1e-12)
    assert (learned.budget["half_spaces"] > 0) == (kind == "likelihood" and bool(asked) and order != "unknown")


@pytest.mark.parametrize("kind", ["likelihood", "interval"])
@pytest.mark.parametrize("fixes", FLAGS)
def test_bounds_on_the_graph_alone_spend_what_the_budget_says(kind, fixes, spent):
    rows = [[p, 1 - p], [p, 1 - p], *([[Fraction(1, 2), Fraction(1, 2)]] if fixes else [])]
    model = row_model(rows, pl.ParameterSpace.unit("p"))
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[: 2 * len(rows)] = [900, 100, 100, 900, *([500, 500] if fixes else [])]
    learned = learned_by(spent, model, pl.TransitionCounts(model.graph, counts, "adaptive"), confidence_set=kind)
    assert learned.conflict is not None
    pl.conclude(learned, GOAL)
    assert spent["graph_alone"] == learned.budget.error_of("graph_alone", learned.error)
    assert learned.budget["graph_alone"] == Fraction(1, 40 if fixes else 20)


@pytest.mark.parametrize("name", ["plain", "rows left out", "fixed numbers"])
def test_all_updates_of_learning_while_acting_divide_the_error_alike(name, studies):
    """Shares that depended on the number of episodes could sum to more than one for whoever picks the end."""
    model, asked, truth, steps = studies[name]
    environment = pl.online.simulator(model, truth, rng=1, max_steps=steps)
    records = pl.learn_online(model, environment, asked[0] if asked else GOAL, episodes=130, spacing=5.0)
    first, *others = (record.learned.budget for record in records)
    assert len(others) > 3
    assert all(budget == first for budget in others)


# What certificates say


def test_a_certificate_tells_on_request_what_its_error_is_spent_on(studies, tmp_path):
    model, (objective, *_), truth, steps = studies["plain"]
    certificate = pl.certify(model, pl.simulate(model, truth, 400, rng=1, max_steps=steps), objective)
    of_all = Fraction(4, 5) * Fraction(31, 36)  # of a set beside tests of memory, 0.775 of 0.9
    assert dict(certificate.how.budget)["half-spaces across the objectives"] == of_all
    (told,) = certificate.page().folded
    assert told.facts[0] == ("half-spaces across the objectives", "68.9 %")
    assert len(told.facts) == len(certificate.how.budget)
    assert told.headline == "what the error of 0.1 % is spent on"
    assert "<td" in certificate._repr_html_().partition(told.headline)[2]
    pl.write_result(certificate, tmp_path / "result")
    assert pl.read_result(tmp_path / "result").how.budget == certificate.how.budget
