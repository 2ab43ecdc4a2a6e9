"""Every confidence set answers the same questions, and a new kind is one entry of a table."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from row_models import listed
from shorthand import compare

import plumdp as pl
from plumdp.base.vocabulary import Guarantee
from plumdp.certifying.pipeline import conclude
from plumdp.confidence.likelihood import LinearConstraints
from plumdp.confidence.sets import Evidence, whole_set
from plumdp.learning.learn import learn
from plumdp.learning.methods import SETS, SetKind, Sets
from plumdp.model import free_rows
from plumdp.relaxation.relax import relaxations_of

p, q = pl.parameters("p", "q")


def two_coins():
    model = listed({0: {"toss": [(p, 1), (1 - p, 3)]}, 1: {"toss": [(q, 2), (1 - q, 3)]}}, "p q", labels={"won": 2})
    return model, pl.TransitionCounts(model.graph, np.full(model.graph.n_transitions, 500), "adaptive")


def test_the_table_has_every_kind_that_users_may_name():
    assert tuple(SETS)[:3] == get_args(Sets)  # the others are those of studies


KINDS = [kind for kind in SETS if not SETS[kind].is_of_tables]  # of a model with parameters


def test_tables_have_sets_of_tables_alone():
    model, counts = two_coins()
    table = free_rows(model)
    with pytest.raises(pl.DataError, match=r"confidence_set='l1': the rows of this model are unknown, without param"):
        learn(table, counts, confidence_set="l1")
    with pytest.raises(
        pl.DataError, match=r"model_tolerance=0\.1: the rows of this model are unknown, and cannot be off"
    ):
        learn(table, counts, model_tolerance=0.1)
    with pytest.raises(pl.DataError, match=r"relaxation='rectangular': the rows of this model are unknown"):
        pl.certify(table, counts, 'Pmax=? [ F "won" ]', relaxation="rectangular")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_what_the_stages_behind_it_ask(kind):
    model, counts = two_coins()
    learned = learn(model, counts, confidence_set=kind, objectives=['Pmax=? [ F "won" ]'])
    bounds = learned.bounds
    assert bounds.kind == learned.kind == kind
    assert bounds.method
    assert bounds.guarantee == "finite-sample, anytime"
    assert (bounds.estimate is not None) == (kind == "likelihood")
    # nothing is known of the order of the data, so that only bets in cells have directions
    assert {bool(bounds.directions), bool(bounds.rests_on)} == {kind == "likelihood"}
    assert learned.fit is not None
    assert (bounds.intervals is not None) == (kind != "ellipsoid")
    if bounds.intervals is not None:
        lower, upper = bounds.intervals
        assert lower.shape == upper.shape == (len(model.expressions),)
        assert (lower <= upper).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_says_what_it_rests_on_if_a_pilot_placed_it(kind):
    """Others rest on nothing, but the test of the model beside them does."""
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    learned = learn(study.model, counts, confidence_set=kind, objectives=[study.objective])
    is_placed = kind == "likelihood"
    assert (len(learned.bounds.directions), len(learned.bounds.rests_on)) == ((1, 2) if is_placed else (0, 0))
    about_test = [
        text for text in learned.rests_on if text.startswith("for the test of the model: earlier data decided ")
    ]
    assert len(about_test) == (not is_placed)
    assert len(learned.policies) == is_placed


def test_only_regions_and_the_files_that_define_them_ask_for_the_type_of_a_constraint():
    types = r"isinstance\([^)]*(LevelSet|LinearConstraints|ExpressionBounds|LeastSquares|L1Balls|TableSet)\b"
    files = {path: path.read_text("utf-8") for path in Path(pl.__file__).parent.rglob("*.py")}
    assert [path.name for path, text in files.items() if re.search(types, text)] == ["likelihood_region.py"]


def test_a_set_without_intervals_has_no_interval_wise_relaxation():
    model, counts = two_coins()
    learned = learn(model, counts, confidence_set="ellipsoid")
    assert relaxations_of(learned.model, learned.bounds) == ("parameter", "expression", "rectangular", "coupled")
    message = (
        r"^self-normalised least squares: this set has no intervals of its own; choose another relaxation, such as "
        r"'expression'$"
    )
    with pytest.raises(pl.DataError, match=message):
        conclude(learned, 'Pmax=? [ F "won" ]', relaxation="interval")


def known_box(given):
    """Return evidence of a kind that the package does not know: each parameter is within 1/8 of 1/2."""
    sides = LinearConstraints(np.vstack([np.eye(2), -np.eye(2)]), np.repeat([5 / 8, -3 / 8], 2), ("",) * 4, 0.0)
    guarantee = Guarantee.ANYTIME
    return Evidence("box", "a box that is known", guarantee, 0.0, given.divided(whole_set()), (sides,))


def test_a_new_kind_of_set_is_one_entry_of_the_table(monkeypatch):
    """Both coins are tossed: the value lies between 3/8 squared and 5/8 squared, whichever relaxation is taken."""
    monkeypatch.setitem(SETS, "box", SetKind(known_box))
    model, counts = two_coins()
    found = compare(model, counts, 'Pmax=? [ F "won" ]', confidence_set="box")
    assert [each.how.relaxation for each in found] == ["parameter", "expression", "rectangular", "coupled"]
    for each in found:
        assert (each.status, each.how.confidence_set) == ("certified", "a box that is known")
        assert (each.lower, each.upper) == (pytest.approx(9 / 64), pytest.approx(25 / 64))
