"""Tables as data frames of pandas or Polars, for classes that have columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from plumdp.base.errors import needs


class HasColumns(Protocol):
    """A table."""

    def columns(self) -> Mapping[str, Any]:
        """Return its columns, of equal length."""


def as_pandas(table: HasColumns) -> Any:
    """Return it as a data frame of pandas."""
    with needs("to_pandas needs pandas: pip install pandas"):
        import pandas as pd
    return pd.DataFrame(dict(table.columns()))


def as_polars(table: HasColumns) -> Any:
    """Return it as a data frame of Polars."""
    with needs("to_polars needs Polars: pip install polars"):
        import polars as pl
    return pl.DataFrame({name: values.tolist() for name, values in table.columns().items()})
