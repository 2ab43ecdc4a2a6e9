"""Writes packets.parquet: one row per packet, as a trace has it: signal, rate, signal afterwards, units delivered.

python make_log.py [ROWS]
"""

import sys
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
_ROWS = """
WITH drawn AS (
    SELECT i, random() < 0.7 AS good, random() AS move, random() AS loss, random() < 0.5 AS is_fast,
           CAST(floor(3 * random()) AS TINYINT) AS units_before, random() AS noise, random() AS noise_after
    FROM range({n_rows}) AS numbers(i)
),
moved AS (
    SELECT *, CASE WHEN good THEN move >= 0.05 ELSE move < 0.2 END AS good_after,
           loss >= CASE WHEN good THEN 0.01 WHEN is_fast THEN 0.6 ELSE 0.15 END AS is_delivered
    FROM drawn
)
SELECT CASE WHEN good THEN -70 ELSE -95 END + 15 * noise AS dbm,
       units_before AS units,
       CASE WHEN is_fast THEN 'fast' ELSE 'robust' END AS rate,
       CASE WHEN i % 1000003 <> 7 THEN CASE WHEN good_after THEN -70 ELSE -95 END + 15 * noise_after END AS next_dbm,
       CASE WHEN NOT is_delivered THEN 0 WHEN is_fast THEN 2 ELSE 1 END AS next_units
FROM moved
"""


def main(n_rows: int) -> None:
    """Draw the rows in DuckDB; one in a million has lost its second signal."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")  # the same rows each time
    connection.execute("SELECT setseed(0.5)")
    connection.execute(f"COPY ({_ROWS.format(n_rows=n_rows)}) TO '{HERE / 'packets.parquet'}' (FORMAT parquet)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000)
