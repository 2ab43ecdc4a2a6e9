"""A log is read at most twice, by the plans that DuckDB makes of the queries."""

from contextlib import contextmanager

import pandas as pd
import pytest
from in_format import in_format
from log_models import LAMP, runs

from plumdp.data import open_logs, steps
from plumdp.data.duckdb_engine import connect
from plumdp.data.logs import read_log

ROWS, COUNTS = runs(LAMP, {"p": 0.6}, 300)


class Counting:
    """A connection that counts how often its queries read files, but for those that look at a few rows."""

    def __init__(self, connection):
        self._connection, self.n_scans = connection, 0

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, query, *parameters):
        if query.startswith(("SELECT", "CREATE", "WITH")) and "LIMIT" not in query:
            ((_, plan),) = self._connection.execute(f"EXPLAIN {query}", *parameters).fetchall()
            self.n_scans += plan.count("READ_CSV") + plan.count("READ_PARQUET") + plan.count("PARQUET_SCAN")
        return self._connection.execute(query, *parameters)


@pytest.mark.parametrize(("ending", "kept"), [("csv", steps._KEPT), ("csv", 0), ("parquet", 0)])
@pytest.mark.parametrize("options", [{}, {"order": "runs"}, {"order": "time"}, {"sampling": "trajectories"}])
@pytest.mark.parametrize("form", ["transitions", "trajectories"])
def test_a_log_is_scanned_at_most_twice_in_whatever_order_its_rows_are(
    form, ending, options, kept, tmp_path, monkeypatch
):
    opened = []

    @contextmanager
    def counting():
        with connect() as connection:
            opened.append(Counting(connection))
            yield opened[-1]

    monkeypatch.setattr(open_logs, "connect", counting)
    monkeypatch.setattr(steps, "_KEPT", kept)
    frame = pd.DataFrame(ROWS[form])
    for kind, rows in {"in order": frame, "shuffled": frame.sample(frac=1, random_state=1)}.items():
        (tmp_path / kind).mkdir()
        for number, part in enumerate((rows[:1000], rows[1000:])):
            (part.to_csv if ending == "csv" else part.to_parquet)(tmp_path / kind / f"{number}.{ending}", index=False)
        assert read_log(LAMP, tmp_path / kind, **in_format(**options)).counts.total == COUNTS.sum()
        assert 1 <= opened[-1].n_scans <= 2
