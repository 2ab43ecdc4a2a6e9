"""The sets of the paper are as it publishes them: the whole error, no factors, no tests."""

import numpy as np
import pytest
from constraints import strips_of
from row_models import row_model

import plumdp as pl
from plumdp.certifying.pipeline import compare
from plumdp.confidence.binomial import clopper_pearson
from studies.published_sets import learn_as_published

p, q = pl.parameters("p", "q")


def row_of(*outcomes):
    """Return a model of one row that is drawn once, with the goal that its first outcome happens."""
    names = {name for f in outcomes for name in getattr(f, "names", ())}
    space = pl.ParameterSpace.unit(*sorted(names))
    return row_model([outcomes], space, labels={"goal": lambda state: state.at == 1})


def counted(model, *counts):
    rest = [0] * (model.graph.n_transitions - len(counts))
    return pl.TransitionCounts(model.graph, np.array([*counts, *rest]), "adaptive")


def test_intervals_are_one_for_each_expression_at_the_whole_error():
    """p and 1 - p have an interval each at half the error, of the same 1000 trials, however these were sampled."""
    model = row_of(p, 1 - p)
    learned = learn_as_published(model, counted(model, 600, 400), "published-interval", error=0.01)
    (found,) = compare(learned, 'Pmax=? [ F "goal" ]', relaxations=["rectangular"])
    lower, upper = clopper_pearson(600, 1000, 0.01 / 2)
    assert (found.lower, found.upper) == (pytest.approx(float(lower)), pytest.approx(float(upper)))
    assert learned.fit is None


def test_intervals_know_no_factors():
    model = row_of(p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q))
    counts = counted(model, 25, 25, 25, 25)
    published, ours = (
        learn_as_published(model, counts, "published-interval"),
        pl.learn(model, counts, confidence_set="interval"),
    )
    published, ours = strips_of(published.bounds).events, strips_of(ours.bounds).events
    assert len(published) == int(model.expressions.is_unknown.sum())
    assert len(published.factors.event) == 0 < len(ours.factors.event)


def test_the_ellipsoid_counts_every_transition_in_full():
    model = row_of(p, 1 - p)
    learned = learn_as_published(model, counted(model, 600, 400), "published-ellipsoid")
    assert learned.bounds.constraints[0].matrix[0, 0] == pytest.approx(0.01 + 2 * 1000)
