"""Data frames as a table of DuckDB, which reads them where they are: of pandas, Polars, PyArrow and DuckDB itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plumdp.base.errors import DataError
from plumdp.data.columns import quoted

FRAME = "frame"  # the table


@dataclass(frozen=True, eq=False)
class _Stream:
    """A frame that hands itself over as Arrow each time it is read; DuckDB would ask PyArrow to do it."""

    frame: Any

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


def frame_columns(source: Any) -> list[str]:
    """Return the names of the columns of a data frame; anything else is refused, and names that are alike."""
    kind = type(source)
    if _is_lazy(kind):
        names = source.collect_schema().names()
    elif hasattr(kind, "column_names"):
        names = source.column_names
    elif hasattr(kind, "columns") and (hasattr(kind, "__len__") or not has_order(source)):  # not a stream, read once
        names = source.columns
    else:
        raise DataError(
            f"a log of type {kind.__name__} cannot be read; give a path, a pattern, a list of paths, "
            "or a data frame of pandas, Polars, PyArrow, PySpark or DuckDB"
        )
    names = [str(name) for name in names]
    times = Counter(name.casefold() for name in names)
    alike = [name for name in names if times[name.casefold()] > 1]
    if alike:
        raise DataError(f"the columns {', '.join(alike)} have the same name but for capitals; rename them")
    return names


def register_frame(connection: Any, source: Any, columns: Sequence[str]) -> None:
    """Make a data frame the table ``FRAME`` of a connection; what is calculated only now has these columns alone."""
    kind = type(source)
    if _is_lazy(kind):
        source = source.select(columns).collect()  # once: another time, its rows may be in another order
    elif not has_order(source):
        source = source.project(", ".join(map(quoted, columns)))
    is_known = hasattr(kind, "iloc") or hasattr(kind, "column_names")  # pandas and PyArrow
    hands_over = hasattr(type(source), "__arrow_c_stream__") and not is_known
    connection.register(FRAME, _Stream(source) if hands_over else source)


def has_order(source: Any) -> bool:
    """Return whether the rows of a data frame are always read in one order; those of a table of DuckDB need not be."""
    return not hasattr(type(source), "fetchnumpy")


def _is_lazy(kind: type) -> bool:
    return hasattr(kind, "collect_schema") and hasattr(kind, "collect")
