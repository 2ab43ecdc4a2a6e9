"""Names and texts as SQL writes them, and the name of the column that says where a row is from."""

from __future__ import annotations

import glob

PLACE_OF_ROW = "place_of_row"  # the number of the file, and of the row in it


def quoted(name: str) -> str:
    """Return a name as DuckDB writes it between quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def one_file(path: str) -> str:
    """Return the table of a Parquet file as SQL, also if its name has signs that stand for others in patterns."""
    return f"read_parquet({literal(glob.escape(path))})"
