"""Settings of all tests: slow machines fail no Hypothesis deadline, and CI draws the same examples in every run.

A test that needs an extra of plumdp is skipped where the extra is not installed.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import settings

from plumdp import compiled
from plumdp.errors import MissingExtra

compiled.compile_at_once()  # tests are about compiled kernels; test_compiled.py compares them with plain Python

settings.register_profile("plumdp", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)  # a red run is then due to the change
settings.register_profile("quick", deadline=None, max_examples=20)  # of ./check --quick
settings.load_profile("ci" if os.environ.get("CI") else "plumdp")


@contextmanager
def skipped_without_extra() -> Iterator[None]:
    """Skip what fails for want of an extra; with the extra, nothing raises this error."""
    try:
        yield
    except MissingExtra as missing:
        pytest.skip(str(missing))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test that needs an extra."""
    with skipped_without_extra():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    """Skip the tests whose fixture needs one."""
    with skipped_without_extra():
        return (yield)
