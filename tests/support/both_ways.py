"""Runs every kernel twice, compiled and as plain Python, and compares all that it returns and writes bit by bit."""

from collections import Counter
from contextlib import contextmanager

import numba
import numpy as np
import pytest

from plumdp.base.compiled import Kernel


@contextmanager
def kernels_run_both_ways():
    """Yield how often each kernel was compared; the results are those of the compiled kernels."""
    compared = Counter()
    ordinary = Kernel.__call__

    def both(kernel, *arguments):
        if kernel._is_helper:
            return ordinary(kernel, *arguments)
        copies = copied(arguments, {})
        with np.errstate(all="ignore"):
            plain = kernel.plain(*copies)
        result = kernel.dispatcher(*arguments)
        assert bits((plain, copies)) == bits((result, arguments)), kernel.name
        compared[kernel.name] += 1
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", both)
        yield compared


def copied(value, seen):
    """Return a copy of arrays in nested tuples; arrays on the same memory stay so."""
    if isinstance(value, tuple):
        parts = [copied(each, seen) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if not isinstance(value, np.ndarray):
        return value
    place = value.__array_interface__["data"][0], value.shape, value.strides
    if place not in seen or not value.size:
        seen[place] = value.copy(order="K")
        seen[place].flags.writeable = value.flags.writeable
    return seen[place]


def bits(value):
    """Return numbers and arrays in nested tuples as bytes; numbers of one value and different types are the same."""
    if isinstance(value, tuple):
        return tuple(bits(each) for each in value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float | np.floating):
        return np.float64(value).tobytes()
    return None if value is None else int(value)


def from_compiled_code(helper):
    """Return a helper of kernels as compiled kernels call it; called from Python it is plain."""
    called = helper.dispatcher
    return numba.njit(error_model="numpy")(lambda *arguments: called(*arguments))


@contextmanager
def kernels_run_plain():
    """Let every kernel run as plain Python."""

    def plain(kernel, *arguments):
        with np.errstate(all="ignore"):
            return kernel.plain(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", plain)
        yield
