"""Honest results of all kinds hold against one's own model and log, each time with the same words."""

from dataclasses import replace
from pathlib import Path

import pytest
from command_line import plumdp as command
from support.verified_results import (
    PROPERTY,
    small_counts,
    small_model,
)

import plumdp
from plumdp.decisions import make_witness, verify
from plumdp.verifying.look import Own
from plumdp.verifying.second_look import points_inside
from plumdp.verifying.verify import look_again

MODELS = Path(__file__).parents[1] / "models"

pytestmark = pytest.mark.slow


def looked_at(folder, own):
    report = verify(folder)
    look_again(folder, report, own)
    return report


def test_counts_that_learn_gives_a_pilot_hold_as_they_were_given(tmp_path):
    """Independent samples, of which a random part is the pilot: it is drawn again, and is the same one."""
    model, counts = small_model(), replace(small_counts(), pilot=None, sampling="independent")
    learned = plumdp.learn(model, counts, objectives=[PROPERTY])
    certificate = plumdp.conclude(learned, PROPERTY)
    plumdp.write_result(
        certificate, tmp_path / "result", witness=make_witness(learned, certificate), model=model, counts=counts
    )
    for own in (None, Own(model), Own(model, counts)):
        assert looked_at(tmp_path / "result", own).broken is None


PRISM = (MODELS / "two.prism").read_text()


def test_a_file_with_a_constraint_holds_each_time(tmp_path, monkeypatch):
    """a + b is at most one, and 1 - a - b was negative at most points that are drawn without looking at that."""
    pytest.importorskip("stormpy")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.prism").write_text(PRISM)
    assert command("simulate", "two.prism", "--at", "a=0.3,b=0.4", "--max-steps", "9", "-o", "log.parquet").code == 0
    options = "--order", "runs", "--sampling", "trajectories"
    asked = "-p", 'P=? [ F "one" ]', "-o", "result", "--witness"
    assert "count the log first" in command("certify", "two.prism", "log.parquet", *options, *asked).err
    assert command("count", "two.prism", "log.parquet", *options, "-o", "counts.parquet").code == 0
    assert command("certify", "two.prism", "counts.parquet", *asked).code == 0
    against = "two.prism", "log.parquet", *options
    first, again = (command("verify", "result", *against) for _ in range(2))
    assert (first.code, first) == (0, again), first.out
    ended = command("verify", "result", *against[:2])
    assert (ended.code, ended.out.splitlines()[0][:15]) == (
        1,
        "Rejected (log):",
    )


@pytest.mark.parametrize("n", [2, 3, 12])
def test_points_are_inside_of_the_space(n):
    """Also of one with too many corners to be listed, and of one that has no inside."""
    names = [f"p{i}" for i in range(n)]
    chances = plumdp.parameters(*names)
    flat = [chances[0] - chances[1], chances[1] - chances[0]] if n == 3 else []
    space = plumdp.ParameterSpace.simplex(*names).cut(flat)
    model = plumdp.explore(
        lambda s: {"go": [*((p, s._replace(x=i)) for i, p in enumerate(chances)), (1 - sum(chances), s._replace(x=n))]},
        {"x": 0},
        space=space,
    )
    points = list(points_inside(model))
    assert points == list(points_inside(model))
    assert len(points) == 3
    assert all(space.contains(point) for point in points)
    assert n == 3 or all(0 < value < 1 for point in points for value in point.values())
