"""Tables of kinds, which the core looks things up in and an outer ring fills, so that the core names no feature.

``plumdp/kinds.py`` has one line for each feature. It is imported when a table is first looked at, however that came to
be: ``plumdp/__init__.py``, which Python runs before any module of the package, says so by ``fill_by``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_FILL: list[Callable[[], object]] = []


def fill_by(fill: Callable[[], object]) -> None:
    """Say what adds the features of outer rings to all tables; it is called again and again, and does so once."""
    _FILL.append(fill)


class Kinds(MutableMapping[_Key, _Value]):
    """A table whose first kinds are those of the core, and whose others are added from outside."""

    def __init__(self, known: Mapping[_Key, _Value] | None = None) -> None:
        self._known = dict(known or {})

    @property
    def _all(self) -> dict[_Key, _Value]:
        for fill in _FILL:
            fill()
        return self._known

    def __getitem__(self, key: _Key) -> _Value:
        return self._all[key]

    def __setitem__(self, key: _Key, value: _Value) -> None:
        self._all[key] = value

    def __delitem__(self, key: _Key) -> None:
        del self._all[key]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)
