"""Docstrings of public names are numpydoc: each parameter is described, and what is returned."""

import inspect
from types import ModuleType

import pytest
from test_public_names import public

validate = pytest.importorskip("numpydoc.validate").validate
KINDS = ("GL", "SS", "PR", "RT", "YD")
NOT_ASKED = {"PR04"}  # types of parameters: the signature has them
NAMES = {name: each for name, each in public().items() if not isinstance(each, ModuleType)}


def errors(name):
    """Return what numpydoc finds wrong with the docstring of a name, of the kinds that are asked for."""
    found = validate(name)["errors"]
    return [f"{code}: {text}" for code, text in found if code.startswith(KINDS) and code not in NOT_ASKED]


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_describe_parameters_and_what_is_returned(name):
    assert errors(f"{NAMES[name].__module__}.{NAMES[name].__qualname__}") == []


def undescribed(first, second=1):
    """Return a sum without saying of what

    Parameters
    ----------
    first
        The first number.
    third
        A number that is not there
    """
    return first + second


def test_a_docstring_that_leaves_something_out_is_found():
    found = {each[:4] for each in errors(f"{inspect.getmodule(undescribed).__name__}.undescribed")}
    assert {"SS03", "PR01", "PR02", "PR09", "RT01"} <= found
