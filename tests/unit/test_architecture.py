"""The map for developers is true: its walk is traced, its rooms are those of the package, and it fits on a screen."""

import sys
from pathlib import Path

import pytest

import plumdp as pl

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "plumdp"
PAGES = ROOT / "docs" / "explanation"
MAP, WALK = ((PAGES / f"{name}.md").read_text("utf-8") for name in ("architecture", "extending"))
STATIONS = ("certify", "learn", "conclude")  # whose calls are shown, each under the function that makes it


def walk() -> list[str]:
    """Return what a default certificate calls first in each place, in the order of the calls, indented by depth."""
    study = pl.case_study("aircraft:6,4,1")
    counts = pl.simulate(study.model, study.true_point, 2000, rng=1, max_steps=7)
    lines: list[str] = []

    def enter(frame, event, _):
        depth = _depth(frame) if event == "call" else None
        if depth is not None:
            file = Path(frame.f_code.co_filename).relative_to(SOURCE).as_posix()
            line = f"{'  ' * depth + frame.f_code.co_name:34}{file}"
            if line not in lines:
                lines.append(line)

    sys.setprofile(enter)
    try:
        pl.certify(study.model, counts, study.objective)
    finally:
        sys.setprofile(None)
    return lines


def _depth(frame) -> int | None:
    """Return how many stations are above a function that a station calls, or None if it is no such function."""
    if not _is_ours(frame) or frame.f_code.co_name[0] in "_<":
        return None
    caller = frame.f_back
    while caller is not None and not (_is_ours(caller) and caller.f_code.co_name[0] != "<"):
        caller = caller.f_back  # decorators, context managers and entries of tables are not of interest
    if frame.f_code.co_name == "certify":
        return 0
    if caller is None or caller.f_code.co_name not in STATIONS:
        return None
    return 1 if caller.f_code.co_name == "certify" else 2


def _is_ours(frame) -> bool:
    path = Path(frame.f_code.co_filename)
    return path.is_relative_to(SOURCE) and path.parent.name != "base"


@pytest.mark.slow
def test_the_walk_of_the_default_path_is_what_runs():
    shown = WALK.split("```text\n")[1].split("```")[0].rstrip().splitlines()
    assert shown == walk(), "the page shows another walk; it is now:\n" + "\n".join(walk())


def test_the_map_names_every_room_and_fits_on_a_screen():
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {room for room in rooms if f"`{room}/`" not in MAP} == set()
    assert len(MAP.splitlines()) <= 60
