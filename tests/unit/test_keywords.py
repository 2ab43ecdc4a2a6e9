"""The keywords of learning, which two functions take: the same in each, explained, and passed on."""

import inspect
import re

import numpy as np
import pytest
from refusals import refused

import plumdp as pl
from plumdp.base.vocabulary import Sets
from plumdp.cli.options import OPTIONS

LEARNERS = (pl.learn, pl.certify)
KEYWORDS = [
    ("confidence", float, 0.999),
    ("confidence_set", Sets | None, None),
    ("model_tolerance", float, 0.0),
]


@pytest.fixture(scope="module")
def study():
    return pl.case_study("betting:5")


@pytest.fixture(scope="module")
def counts(study):
    return pl.simulate(study.model, study.true_point, 20_000, rng=1, max_steps=6)


def asked(function, study):
    """Return what a function is asked besides model and counts."""
    return () if function is pl.learn else (study.objective,)


def explained(function):
    """Return what the docstring of a function says about each of its parameters, with the names beside it."""
    listed = inspect.getdoc(function).partition("\n\nParameters\n----------\n")[2].partition("\n\nReturns\n")[0]
    entries = re.findall(r"^(\S.*)\n((?: {4}.*\n?)+)", listed, re.MULTILINE)
    texts = [(name, " ".join(text.split())) for names, text in entries for name in names.split(", ")]
    assert len({name for name, _ in texts}) == len(texts)
    return dict(texts)


@pytest.mark.parametrize("function", LEARNERS)
def test_every_function_that_learns_has_the_same_keywords_last_and_explains_all_that_it_takes(function):
    parameters = [*inspect.signature(function, eval_str=True).parameters.values()]
    assert [(each.name, each.annotation, each.default) for each in parameters[-len(KEYWORDS) :]] == KEYWORDS
    assert {each.kind for each in parameters[-len(KEYWORDS) :]} == {inspect.Parameter.KEYWORD_ONLY}
    texts = explained(function)
    assert texts.keys() == {each.name for each in parameters}
    for name, _, _ in KEYWORDS:
        assert (texts[name] == "As in ``certify``.") == (function is not pl.certify)


@pytest.mark.parametrize("name", [*(name for name, *_ in KEYWORDS), "relaxation", "prespecified"])
def test_python_explains_a_keyword_with_the_words_of_the_option(name):
    """Up to the first sign; what follows says how each of them is written."""
    python, option = (re.split(r"[.,:;]", text)[0] for text in (explained(pl.certify)[name], OPTIONS[name].words))
    assert python == option


def test_the_command_line_has_the_same_defaults():
    defaults = {name: default or None for name, _, default in KEYWORDS}
    assert {name: OPTIONS[name].default or None for name in defaults} == defaults


@pytest.mark.parametrize("function", LEARNERS)
def test_a_keyword_that_there_is_not_is_refused_by_the_function_that_was_called(function, study, counts):
    message = rf"^{function.__name__}\(\) got an unexpected keyword argument 'confidense'"
    with pytest.raises(TypeError, match=message):
        function(study.model, counts, *asked(function, study), confidense=0.9)


@pytest.mark.parametrize("function", LEARNERS)
def test_every_function_refuses_what_learning_refuses(function, study, counts):
    given = (study.model, counts, *asked(function, study))
    refused("types:learners", lambda options: function(*given, **eval(options)), pl.DataError)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"confidence": 0.9},
        {"confidence_set": "ellipsoid"},
        {"confidence_set": "interval"},
        {"model_tolerance": 0.01},
    ],
)
def test_every_option_reaches_what_is_learned(study, counts, options):
    """What certify says is what follows from learn with the same option, and no other one."""
    learned = pl.learn(study.model, counts, objectives=[study.objective], **options)
    expected = pl.conclude(learned, study.objective, relaxation="expression")
    other = pl.certify(study.model, counts, study.objective, relaxation="expression", **options)
    assert (other.lower, other.upper, other.confidence) == (expected.lower, expected.upper, expected.confidence)
    assert other.how.confidence_set == expected.how.confidence_set
    assert np.array_equal(other.policy.choice, expected.policy.choice)
    plain = pl.certify(study.model, counts, study.objective, relaxation="expression")
    assert (plain.lower, plain.upper) != (expected.lower, expected.upper)
