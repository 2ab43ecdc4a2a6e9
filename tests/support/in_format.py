"""Keywords of ``read_log`` and others as parameters of tests give them: some are fields of a ``LogFormat``."""

from dataclasses import fields
from typing import Any

from plumdp import LogFormat

_FIELDS = {each.name for each in fields(LogFormat)}


def in_format(**options: Any) -> dict[str, Any]:
    """Return the same keywords with those that say how rows are read in one ``LogFormat``."""
    own = {name: value for name, value in options.items() if name in _FIELDS}
    return {"format": LogFormat(**own)} | {name: value for name, value in options.items() if name not in own}
