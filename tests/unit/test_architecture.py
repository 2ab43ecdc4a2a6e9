"""The map for developers is true: its walk is traced, its rooms are those of the package, and it fits on a screen."""

import ast
import re
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


def users(room: str) -> set[str]:
    """Return the rooms that import a room."""
    files = [path for path in SOURCE.glob("*/**/*.py") if path.relative_to(SOURCE).parts[0] != room]
    named = re.compile(rf"^\s*(?:from|import) plumdp\.{room}\b", re.MULTILINE)
    return {path.relative_to(SOURCE).parts[0] for path in files if named.search(path.read_text("utf-8"))}


@pytest.mark.parametrize("room", sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")))
def test_each_room_says_what_comes_in_what_goes_out_where_to_begin_and_who_uses_it(room):
    words = ast.get_docstring(ast.parse((SOURCE / room / "__init__.py").read_text("utf-8"))) or ""
    if room in ("case_studies", "cli", "decisions", "stages"):
        return  # models of a paper, and lists of names
    said = dict(re.findall(r"^(In|Out|Begin with|Used by): (.+?)\.$", words, re.MULTILINE | re.DOTALL))
    assert [*said] == ["In", "Out", "Begin with", "Used by"]
    assert all((SOURCE / room / name).exists() for name in re.findall(r"``(\w+\.py)``", said["Begin with"]))
    if said["Used by"] != "every other room":
        assert users(room) == set(re.split(r",\s+", said["Used by"])) - {"people alone"}
