"""A machine with known chances and costs, and logs of it in the forms that people have."""

from pathlib import Path

import numpy as np
import pandas as pd

ROWS = {  # what is done in which state, where it leads, and what it costs
    ("new", "use"): ({"new": 0.6, "worn": 0.3, "over": 0.1}, 10.0),
    ("new", "mend"): ({"new": 0.8, "worn": 0.1, "over": 0.1}, 14.0),
    ("worn", "use"): ({"worn": 0.5, "over": 0.5}, 30.0),
    ("worn", "mend"): ({"new": 0.5, "over": 0.5}, 50.0),
}


def true_values(n_steps):
    """Return the mean cost of so many steps if the machine is always used, and the chance that it is over then."""
    cost, over = dict.fromkeys(("new", "worn", "over"), 0.0), {"new": 0.0, "worn": 0.0, "over": 1.0}
    for _ in range(n_steps):
        rows = {state: ROWS[state, "use"] for state in ("new", "worn")}
        cost |= {s: paid + sum(p * cost[to] for to, p in chances.items()) for s, (chances, paid) in rows.items()}
        over |= {s: sum(p * over[to] for to, p in chances.items()) for s, (chances, _) in rows.items()}
    return cost["new"], over["new"]


def machines(n=500, seed=1):
    """Return the rows of machines that are used, half of the time, until they are over."""
    rng, rows = np.random.default_rng(seed), []
    for run in range(n):
        state, t = "new", 0
        while state != "over":
            action = ("use", "mend")[int(rng.random() < 0.5)]
            chances, paid = ROWS[state, action]
            rows.append((run, t, state, action, paid))
            state, t = str(rng.choice([*chances], p=[*chances.values()])), t + 1
        rows.append((run, t, state, "", 0.0))
    return pd.DataFrame(rows, columns=["run", "t", "status", "action", "cost"])


def with_next(rows):
    """Return a row for each step, with its next state and whether that was the last one."""
    after = rows.groupby("run").status.shift(-1)
    return rows.assign(next_status=after, terminated=after == "over")[after.notna()]


def written(rows, path):
    """Write rows as the ending of a path says, and return the path."""
    path = Path(path)
    if path.suffix == ".parquet":
        rows.to_parquet(path, index=False)
    elif path.suffix == ".jsonl":
        rows.to_json(path, orient="records", lines=True, date_format="iso")
    elif not path.suffix:  # a folder of two files
        path.mkdir()
        rows[rows.run < 250].to_csv(path / "one.csv", index=False)
        rows[rows.run >= 250].to_csv(path / "two.csv", index=False)
    else:
        rows.to_csv(path, index=False, sep=";" if path.suffix == ".txt" else ",")
    return path.name
