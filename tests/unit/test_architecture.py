"""The map and the tour in CONTRIBUTING.md are true: rooms are those of the package, and the tour is traced."""

import ast
import random
import re
import sys
from pathlib import Path

import pytest

import plumdp as pl

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "plumdp"
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
MAP, TOUR = (PAGE.split(f"## {title}")[1].split("\n## ")[0] for title in ("The map", "The tour"))


def log_of_walks(path: Path) -> Path:
    """Write 200 runs, each of which walks until it is done."""
    draw, rows = random.Random(1), ["episode,step,at,action,next_at"]
    for run in range(200):
        n_slips = next(n for n in range(100) if draw.random() > 0.3)
        ends = ["start"] * n_slips + ["done"]
        rows += [f"{run},{step},start,walk,{end}" for step, end in enumerate(ends)]
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return path


def entered(log: Path) -> list[str]:
    """Return the files in the order in which reading a log, certifying and printing enter them."""
    (slip,) = pl.parameters("slip")

    def step(state):
        done = state._replace(at="done")
        if state == done:
            return {"stay": [(1, done)]}
        return {"walk": [(slip, state), (1 - slip, done)], "wait": [(slip * slip, done), (1 - slip * slip, state)]}

    def walk() -> str:
        return str(pl.certify(model, pl.read_log(model, str(log)), 'Pmax=? [ F<=2 at="done" ]'))

    model = pl.explore(step, {"at": "start"}, space=pl.ParameterSpace.unit("slip"))
    files: dict[str, None] = {}

    def enter(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE):
            files.setdefault(path.relative_to(SOURCE).as_posix())

    walk()  # kernels are compiled before anything is traced
    sys.setprofile(enter)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return [*files]


@pytest.mark.slow
def test_the_tour_names_files_in_the_order_in_which_a_row_comes_to_them(tmp_path):
    told = re.findall(r"`(\w+(?:/\w+)+\.py)`", TOUR.split("1. **")[1])
    files = entered(log_of_walks(tmp_path / "log.csv"))
    assert [file for file in told if file not in files] == []
    by_part = [re.findall(r"`(\w+(?:/\w+)+\.py)`", part) for part in re.split(r"\n\d\. \*\*", TOUR)[1:]]
    firsts = [min(map(files.index, part)) for part in by_part]
    assert firsts == sorted(firsts), "the parts of the tour come in another order"
    assert len({*told}) <= 40
    assert len(TOUR.split()) <= 700


def test_the_map_names_every_room():
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", MAP)} == set()


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
