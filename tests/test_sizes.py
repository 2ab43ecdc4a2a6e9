"""The package does not grow unnoticed: its lines, files and public names are capped; ./check also counts what runs."""

import re
from pathlib import Path

import pytest
from hooks import FEATURES, hooks
from package_size import CAPS, entered, lines_and_files, most_parameters, n_public_names, too_large

import plumdp


def test_lines_files_and_public_names_are_below_their_caps():
    measured = {**CAPS, **lines_and_files(), "public names": n_public_names()}
    measured["parameters of a function"] = most_parameters()
    assert too_large(measured) == []


def test_a_figure_above_its_cap_says_what_to_do():
    (sentence,) = too_large({**CAPS, "public names": CAPS["public names"] + 1})
    assert re.match(
        r"\d+ public names, and at most \d+ are allowed: look for what your change makes unnecessary", sentence
    )


def test_a_function_that_runs_twice_is_counted_once():
    def product():
        x, y = plumdp.parameters("x", "y")
        return x * y + x * y + sum(each for each in (x, y))

    product()
    functions = [name for _, name in entered(product)]
    assert len(functions) == len({*functions})
    assert {"parameters", "Polynomial.__mul__", "Polynomial.__add__"} <= {*functions}
    assert not [name for name in functions if name.endswith(">")]
    assert {Path(file).name for file, _ in entered(product)} >= {"polynomial.py"}


def test_nothing_outside_of_the_packages_is_counted():
    assert entered(lambda: re.compile("certify")) == set()


@pytest.mark.parametrize("name", FEATURES)
def test_each_feature_is_named_in_few_files_of_the_core(name):
    assert len(hooks(FEATURES[name])) <= FEATURES[name].cap
