"""Keywords of ``read_log``, ``watch`` and others as parameters of tests give them: some are fields of a record."""

from dataclasses import fields
from typing import Any

from plumdp import LogFormat
from plumdp.watching.fleets import Lists
from plumdp.watching.watch import AlarmRules

_RECORDS: dict[str, type] = {"rules": AlarmRules, "lists": Lists}


def in_format(**options: Any) -> dict[str, Any]:
    """Return the same keywords with those that are fields in their records, and always a ``LogFormat``."""
    made: dict[str, Any] = {}
    for name, record in {"format": LogFormat, **_RECORDS}.items():
        own = {each.name: options.pop(each.name) for each in fields(record) if each.name in options}
        made |= {name: record(**own)} if own or name == "format" else {}
    return made | options
