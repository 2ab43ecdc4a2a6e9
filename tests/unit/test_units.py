"""A log that is counted by unit gives what the rows of each unit alone give, and certificates are those of a loop."""

import numpy as np
import pandas as pd
import pytest

import plumdp as pl
from plumdp.data.units import read_units


def pump(state):
    if state.at == "down":
        return {"repair": [(1, state._replace(at="good"))]}
    wear, fail = pl.parameters("wear", "fail")
    if state.at == "good":
        return {"run": [(1 - wear, state), (wear, state._replace(at="worn"))]}
    worn = [(1 - fail, state), (fail, state._replace(at="down"))]
    return {"run": worn, "service": [(1, state._replace(at="good"))]}


COSTS = {"repair": 10, "service": 2, "run": 0}
MODEL = pl.explore(
    pump,
    {"at": "good"},
    space=pl.ParameterSpace.unit("wear", "fail"),
    choice_rewards={"cost": lambda state, action: COSTS[action]},
)
QUESTION = 'R{"cost"}min=? [ C<=20 ]'


def pumps(n_units, n_runs=9, n_steps=15, seed=1):
    """Return rows of runs of pumps, in which units have the same names of runs and differ in their number."""
    rng, rows = np.random.default_rng(seed), []
    for unit in range(n_units):
        wear, fail = rng.uniform(0.05, 0.2), rng.uniform(0.1, 0.4)
        for run in range(1 + n_runs * (1 + unit % 3)):
            at = "good"
            for step in range(n_steps + 1):
                action = {"down": "repair", "good": "run"}.get(at) or ("service" if rng.random() < 0.4 else "run")
                rows.append((f"pump-{unit}", run, step, at, action if step < n_steps else None))
                moves = rng.random() < (wear if at == "good" else fail)
                after = {"good": "worn", "worn": "down"}.get(at, "good") if moves else at
                at = "good" if action in ("repair", "service") else after
    return pd.DataFrame(rows, columns=["unit", "episode", "step", "at", "action"])


def moves_of(frame):
    """Return the same as rows with their next states."""
    after = frame.groupby(["unit", "episode"])["at"].shift(-1)
    return frame.assign(next_at=after)[frame.action.notna()].reset_index(drop=True)


ROWS = pumps(5)
SHUFFLED, MOVES = (each.sample(frac=1, random_state=1, ignore_index=True) for each in (ROWS, moves_of(ROWS)))
LOGS = {
    "runs": (ROWS, {}),
    "runs in order": (ROWS, {"order": "runs"}),
    "shuffled": (SHUFFLED, {"order": "runs"}),
    "planned": (SHUFFLED, {"sampling": "trajectories"}),
    "by day": (ROWS.sort_values(["step", "episode"], kind="stable").reset_index(drop=True), {"order": "runs"}),
    "transitions": (MOVES, {"order": "runs"}),
    "no runs": (MOVES.drop(columns=["episode", "step"]), {}),
    "in time": (ROWS, {"order": "time"}),
    "copies": (pd.concat([ROWS, ROWS[ROWS.unit == "pump-2"].head(3)], ignore_index=True), {"order": "runs"}),
}


@pytest.mark.parametrize("name", LOGS)
def test_counts_by_unit_are_those_of_the_rows_of_each_unit_alone(name):
    frame, options = LOGS[name]
    found = dict(read_units(MODEL, frame, "unit", **options))
    assert list(found) == [f"pump-{i}" for i in range(5)]
    for unit, rows in frame.groupby("unit"):
        alone = pl.read_log(MODEL, rows.reset_index(drop=True), **options).counts
        assert found[unit].counts.fingerprint == alone.fingerprint
        assert found[unit].counts.no_contexts == alone.no_contexts
        assert found[unit].report.rows == alone.report.rows
        assert found[unit].report.censored_runs == alone.report.censored_runs


def test_rows_that_cannot_be_counted_are_the_trouble_of_their_unit_alone(tmp_path):
    rows = ROWS.copy()
    rows.loc[(rows.unit == "pump-1") & (rows.step == 3), "at"] = "lost"
    rows.loc[rows.unit == "pump-3", "unit"] = None
    rows.to_csv(tmp_path / "log.csv", index=False)
    found = dict(read_units(MODEL, tmp_path / "log.csv", "unit"))
    assert [name for name, each in found.items() if isinstance(each, pl.DataError)] == ["", "pump-1"]
    assert "no value in column unit" in str(found[""])
    assert "unknown state" in str(found["pump-1"])
    assert "first in row 164, episode 0" in str(found["pump-1"])
    assert sum([found["pump-0"].counts, found["pump-2"].counts]).total > 0  # which have no data in common
    with pytest.raises(pl.DataError, match="counted twice"):
        found["pump-0"].counts + found["pump-0"].counts


def test_a_column_of_units_that_is_not_there_is_refused():
    with pytest.raises(pl.DataError, match="by='site': the log has no such column"):
        list(read_units(MODEL, ROWS, "site"))
