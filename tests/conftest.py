"""Settings of all tests: slow machines fail no Hypothesis deadline, and all but nightly runs draw the same examples.

A test that needs an extra of plumdp is skipped where the extra is not installed.
"""

import gc
import os
import tomllib
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from flint import ctx
from hypothesis import settings
from tiers import TIER, examples

import studies  # noqa: F401  tests are about the sets of the paper, too
from plumdp.base import compiled
from plumdp.base.errors import MissingExtra

os.environ["PLUMDP_WARMUP"] = "0"  # no command that is tested starts a process
compiled.compile_at_once()  # tests are about compiled kernels; test_compiled.py compares them with plain Python

LEFT_OUT = tomllib.loads((Path(__file__).parent / "night.toml").read_text(encoding="utf-8"))
PAGES = [Path(__file__).parents[1] / "docs" / page for page in LEFT_OUT["night"].pop("pages")]


def _cases(when: str) -> set[str]:
    return {f"tests/{file}.py::{test}" for file, tests in LEFT_OUT[when].items() for test in tests}


AT_NIGHT = _cases("night")
CASE_BY_DAY = {case.partition("[")[0]: case for case in _cases("by_day")}

settings.register_profile(
    "plumdp", deadline=None, max_examples=examples(100), derandomize=TIER != "night"
)  # by day, a red run is due to the change
settings.load_profile("plumdp")


@pytest.fixture(autouse=True)
def _bits_as_before() -> Iterator[None]:
    """Calculate in the next test with as many bits as before this one."""
    bits = ctx.prec
    yield
    ctx.prec = bits


def _is_at_night(item: pytest.Item) -> bool:
    case = item.nodeid
    if item.path in PAGES:
        return item.path not in [Path(argument).absolute() for argument in item.config.args]
    is_listed = case in AT_NIGHT or CASE_BY_DAY.get(case.partition("[")[0], case) != case
    return is_listed or item.get_closest_marker("night") is not None


def _require_by_day(collected: list[str]) -> None:
    """Refuse a list of cases by day in which one is not there any more, so that none of its test would run."""
    cases = Counter(case.partition("[")[0] for case in collected)
    gone = {case for test, case in CASE_BY_DAY.items() if cases[test] > 1} - {*collected}
    if gone:
        raise pytest.UsageError(f"tests/night.toml lists cases that are not there: {', '.join(sorted(gone))}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out by day what runs at night, and all but the first case of each test if it has to be quick.

    If there are workers, they begin with the files that have most slow tests.
    """
    if TIER != "night":
        if not any("::" in argument for argument in config.args):
            _require_by_day([item.nodeid for item in items])
        left_out = [item for item in items if _is_at_night(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_at_night(item)]
    if TIER == "quick":
        first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
        config.hook.pytest_deselected(items=[item for item in items if item not in {*first.values()}])
        items[:] = [item for item in items if first[item.nodeid.partition("[")[0]] is item]
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = Counter(item.path for item in items if any(map(item.get_closest_marker, ("slow", "night"))))
        items.sort(key=lambda item: -slow[item.path])


def pytest_collection_finish() -> None:
    """Let no garbage collection go through the thousands of tests that wait to be run."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let what was kept from collection go at the end, or Storm speaks of leaks."""
    gc.unfreeze()


@pytest.fixture
def blank_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave pictures and advice out of reports, for tests that are not about what they show: these take longest."""
    from plumdp.base.errors import DataError
    from plumdp.explaining import explain
    from plumdp.plots.draw import Picture
    from plumdp.reporting import evidence, sections

    def no_advice(*_: object, **options: object) -> None:
        raise DataError("advice is left out")

    monkeypatch.setattr(explain, "advise", no_advice)
    monkeypatch.setattr(sections, "draw", lambda kind, *_: Picture(None, kind))
    monkeypatch.setattr(evidence, "draw_residuals", lambda *_: None)
    for page in (evidence, sections):
        monkeypatch.setattr(page, "svg_of", lambda figure, label: "<svg></svg>")


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
