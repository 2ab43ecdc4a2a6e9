"""Names of version 0.1 still work, and say what to write instead."""

import warnings

import pytest

import plumdp as pl
from plumdp.confidence.least_squares import least_squares
from plumdp.deprecated import renamed_keywords
from plumdp.learning import learn

STUDY = pl.case_study("betting:8")
COUNTS = pl.simulate(STUDY.model, STUDY.true_point, 2000, rng=1, max_steps=9)
SETS = ("sets", "confidence_set", "ellipsoid")
INTERVALS = ("intervals", "interval_method", "hoeffding")
PAPER = ("paper", "as_published", True)


def ask(function, **options):
    """Return in words what a function makes of the example."""
    if function is pl.learn_online:
        environment = pl.simulator(STUDY.model, STUDY.true_point, rng=1, max_steps=9)
        records = pl.learn_online(STUDY.model, environment, STUDY.objective, **options)
        return [(record.bound, record.status) for record in records]
    if function in (pl.certify, pl.compare):
        found = function(STUDY.model, COUNTS, STUDY.objective, **options)
        return [
            (each.lower, each.upper, each.confidence_set) for each in (found if function is pl.compare else [found])
        ]
    found = function(STUDY.model, COUNTS, **options)
    return repr(found), getattr(found, "method", None)


@pytest.mark.parametrize(
    ("function", "renamed", "others"),
    [
        *(
            (function, renamed, {})
            for function in (learn, pl.certify, pl.compare)
            for renamed in (SETS, INTERVALS, PAPER)
        ),
        (pl.learn_online, PAPER, {"episodes": 5}),
        (pl.expression_bounds, INTERVALS, {}),
        (least_squares, PAPER, {}),
    ],
)
def test_an_old_keyword_works_as_the_new_one_and_warns(function, renamed, others):
    old, new, value = renamed
    message = (
        rf"^{function.__name__}\({old}=\.\.\.\) is deprecated and will be removed in plumdp 0\.2: write {new}=\.\.\.$"
    )
    with pytest.warns(DeprecationWarning, match=message) as caught:
        found = ask(function, **{old: value}, **others)
    assert [each.filename for each in caught] == [__file__]
    assert found == ask(function, **{new: value}, **others)
    assert found != ask(function, **others)


def test_an_old_keyword_beside_the_new_one_is_refused():
    message = r"^learn\(\) got both confidence_set= and its old name sets=: leave out sets=$"
    with pytest.raises(TypeError, match=message):
        learn(STUDY.model, COUNTS, sets="l1", confidence_set="l1")


def test_a_keyword_that_never_was_is_refused_as_ever():
    with pytest.raises(TypeError, match="unexpected keyword argument 'set'"):
        learn(STUDY.model, COUNTS, set="l1")


def test_the_optimistic_bound_of_a_record_has_its_old_name_still():
    environment = pl.simulator(STUDY.model, STUDY.true_point, rng=1, max_steps=9)
    record = next(pl.learn_online(STUDY.model, environment, STUDY.objective, episodes=1))
    message = (
        r"^OnlineRecord\.hope is deprecated and will be removed in plumdp 0\.2: write OnlineRecord\.optimistic_bound$"
    )
    with pytest.warns(DeprecationWarning, match=message) as caught:
        assert record.hope == record.optimistic_bound
    assert [each.filename for each in caught] == [__file__]


def test_the_confidence_set_of_a_certificate_has_its_old_name_still():
    certificate = pl.certify(STUDY.model, COUNTS, STUDY.objective, confidence_set="interval")
    message = (
        r"^Certificate\.intervals is deprecated and will be removed in plumdp 0\.2: write Certificate\.confidence_set$"
    )
    with pytest.warns(DeprecationWarning, match=message) as caught:
        assert certificate.intervals == certificate.confidence_set
    assert [each.filename for each in caught] == [__file__]


def test_new_keywords_do_not_warn_and_the_name_and_text_of_the_function_stay():
    @renamed_keywords(old="new")
    def function(*, new=0):
        """What it does."""
        return new

    with warnings.catch_warnings(action="error"):
        assert function(new=3) == 3
    assert (function.__name__, function.__doc__) == ("function", "What it does.")
