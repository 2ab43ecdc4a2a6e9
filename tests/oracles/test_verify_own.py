"""Honest results of all kinds hold against one's own model and log, each time with the same words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import plumdp as command
from paid_models import COST as PAID
from paid_models import machine, runs_of
from support.tiers import TIER
from support.verified_results import (
    COST,
    PROPERTY,
    compared,
    small_counts,
    small_model,
    witnessed,
    worn,
    worn_counts,
)

import plumdp
from plumdp.decisions import make_witness, verify
from plumdp.verifying.look import Own
from plumdp.verifying.second_look import points_inside
from plumdp.verifying.verify import look_again

MODELS = Path(__file__).parents[1] / "models"

pytestmark = pytest.mark.slow

ASKED = "that property, options and pre-specified policies were chosen before the data were looked at"
WORN = {"model": worn(), "counts": worn_counts()}
TURN = "Rmax=? [ C<=9 ]"


def looked_at(folder, own):
    report = verify(folder)
    look_again(folder, report, own)
    return report


def of_parameters(text=PROPERTY, **options):
    return lambda folder: witnessed(folder, text, keeps_data=True, **options)


def learned_rewards():
    model, runs = machine(), pd.DataFrame(runs_of(np.random.default_rng(1), 300))
    return model, plumdp.read_log(
        model, runs, plumdp.LogFormat(columns={"cost": "price"}), sampling="trajectories"
    ).counts


RESULTS = {
    "a probability": (of_parameters(), small_model, small_counts),
    "a cost": (of_parameters(COST), small_model, small_counts),
    "a number of steps": (of_parameters('Pmax=? [ F<=3 "goal" ]'), small_model, small_counts),
    "a policy that draws": (
        of_parameters('Pmax=? [ F<=3 "goal" ]', memory=False, policy="uniform"), small_model, small_counts
    ),
    "a mission": (of_parameters("Pmax=? [ (F x=3) & (F x=1) ]"), small_model, small_counts),
    "intervals": (of_parameters(confidence_set="interval"), small_model, small_counts),
    "a mission again and again": (of_parameters('Pmax=? [ G F "down" ]', **WORN), worn, worn_counts),
    "a comparison": (
        lambda folder: compared(folder, "near", "uniform", COST, keeps_data=True), small_model, small_counts
    ),
    "learned rewards": (
        lambda folder: of_parameters(PAID, **dict(zip(("model", "counts"), learned_rewards(), strict=True)))(folder),
        machine,
        lambda: learned_rewards()[1],
    ),
}  # fmt: skip


BY_NIGHT = {  # by day, some of them are verified before they are forged in unit/test_forgeries
    *("a probability", "a cost", "a number of steps", "a mission", "a mission again and again", "a comparison"),
}


@pytest.mark.parametrize("name", [name for name in RESULTS if TIER == "night" or name not in BY_NIGHT])
def test_an_honest_result_holds_against_ones_own_model_and_data(name, tmp_path):
    make, model, counts = RESULTS[name]
    make(tmp_path / "result")
    report = looked_at(tmp_path / "result", Own(model(), counts()))
    assert report.broken is None, report.broken
    assert {"model", "log"} < {*report.passed}
    assert report.trusted[-1] == ASKED
    assert not {"policy.csv", "data.npz"} & {*report.unchecked}


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
