"""Options that several functions take: declared once, shown in each signature and help, with the same defaults."""

import inspect
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest

import plumdp as pl
from plumdp.cli.options import LikelihoodOptions, SetOptions
from plumdp.confidence.bounds import Intervals
from plumdp.learning.options import LearningOptions

LEARNERS = (pl.learn, pl.certify, pl.certify_all, pl.compare)
DEFAULTS = {
    "confidence": (float, 0.999),
    "confidence_set": (None, None),
    "interval_method": (Intervals | None, None),
    "events": (pl.Events | None, None),
    "as_published": (bool, False),
    "misfit": (float, 0.0),
}


@pytest.fixture(scope="module")
def study():
    return pl.case_study("betting:5")


@pytest.fixture(scope="module")
def counts(study):
    return pl.simulate(study.model, study.true_point, 20_000, rng=1, max_steps=6)


def asked(function, study):
    """Return what a function is asked besides model and counts."""
    return {pl.learn: (), pl.certify_all: ([study.objective],)}.get(function, (study.objective,))


@pytest.mark.parametrize("function", LEARNERS)
def test_a_signature_shows_every_option_of_learning_with_type_and_default(function):
    shown = inspect.signature(function).parameters
    assert set(LearningOptions.__annotations__) == set(DEFAULTS)
    for name, (kind, default) in DEFAULTS.items():
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert shown[name].default == default
        assert kind is None or shown[name].annotation == kind
    assert not {"options", "args", "given"} & set(shown)
    assert all(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in shown.values())


@pytest.mark.parametrize("group", [SetOptions, LikelihoodOptions])
def test_the_command_line_has_the_same_defaults(group):
    for option in fields(group):
        assert (option.name, option.default) == (option.name, DEFAULTS[option.name][1])


@pytest.mark.parametrize("function", LEARNERS)
def test_types_of_all_parameters_are_found(function):
    assert get_type_hints(function).keys() == {*inspect.signature(function).parameters, "return"}


@pytest.mark.parametrize("function", LEARNERS)
def test_the_help_explains_each_parameter_once_and_ends_with_examples(function):
    before, _, examples = function.__doc__.partition("\n\nExamples\n--------\n")
    listed = before.partition("\n\nParameters\n----------\n")[2]
    names = [name for line in listed.splitlines() if line[:1].strip() for name in line.split(", ")]
    own = [name for name in inspect.signature(function).parameters if name not in ("model", "counts")]
    assert sorted(names) == sorted(own)
    assert ">>> " in examples
    assert max(map(len, function.__doc__.splitlines())) <= 120


@pytest.mark.parametrize("function", LEARNERS)
def test_a_keyword_that_there_is_not_is_refused_by_the_function_that_was_called(function, study, counts):
    message = rf"^{function.__name__}\(\) got an unexpected keyword argument 'confidense'$"
    with pytest.raises(TypeError, match=message):
        function(study.model, counts, *asked(function, study), confidense=0.9)


@pytest.mark.parametrize("function", LEARNERS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.5}, r"^confidence=1\.5: give a number between 0 and 1, such as 0\.999$"),
        ({"confidence_set": "ball"}, r"^confidence_set='ball': choose one of 'interval'"),
        ({"confidence_set": ""}, r"^confidence_set='': choose one of 'interval'"),
        ({"misfit": -0.1}, r"^misfit=-0\.1: give a number from 0"),
        ({"as_published": True, "interval_method": "hoeffding"}, r"^as_published=True chooses intervals"),
    ],
)
def test_every_function_refuses_what_learning_refuses(function, study, counts, options, message):
    with pytest.raises(pl.DataError, match=message):
        function(study.model, counts, *asked(function, study), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"confidence": 0.9},
        {"confidence_set": "ellipsoid"},
        {"interval_method": "hoeffding"},
        {"as_published": True},
        {"misfit": 0.01},
    ],
)
def test_every_option_reaches_what_is_learned(study, counts, options):
    """What certify, certify_all and compare say is what follows from learn with the same option, and no other one."""
    learned = pl.learn(study.model, counts, objectives=[study.objective], **options)
    expected = pl.conclude(learned, study.objective, relaxation="expression")
    others = [
        pl.certify(study.model, counts, study.objective, relaxation="expression", **options),
        *pl.certify_all(study.model, counts, [study.objective], relaxation="expression", **options),
        *pl.compare(study.model, counts, study.objective, relaxations=["expression"], **options),
    ]
    for other in others:
        assert (other.lower, other.upper, other.confidence) == (expected.lower, expected.upper, expected.confidence)
        assert other.confidence_set == expected.confidence_set
        assert np.array_equal(other.policy.choice, expected.policy.choice)
    plain = pl.certify(study.model, counts, study.objective, relaxation="expression")
    assert (plain.lower, plain.upper) != (expected.lower, expected.upper)
