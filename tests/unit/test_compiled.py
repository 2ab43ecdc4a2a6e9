"""Helpers of kernels are compiled without counting references where numba allows it, and as usual where it does not."""

import numpy as np
import pytest

from plumdp import compiled as module


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


def refusing(reason):
    """Return numba's njit as a version of it that does not know the private option."""
    njit = module.njit

    def old_njit(**options):
        if "_nrt" in options:
            raise reason
        return njit(**options)

    return old_njit


def test_a_helper_counts_no_references(monkeypatch):
    njit = module.njit
    monkeypatch.setattr(module, "njit", lambda **options: njit(**options | {"cache": False}))  # cached code has no text
    helper = module.compiled_leaf(total)
    assert helper(np.arange(5.0)) == 10
    assert "NRT_incref" not in next(iter(helper.inspect_llvm().values()))


@pytest.mark.parametrize("reason", [KeyError("_nrt"), TypeError("unexpected keyword argument")])
def test_a_numba_without_the_option_compiles_helpers_as_all_other_functions(monkeypatch, reason):
    monkeypatch.setattr(module, "njit", refusing(reason))
    assert module.compiled_leaf(total)(np.arange(5.0)) == 10
