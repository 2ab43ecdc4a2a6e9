"""Groups of options as parameters of commands: a command takes groups, and the command line shows their fields.

A group is a frozen dataclass whose fields are arguments and options (``cli/arguments.py``), or groups again, and whose
methods do what these ask for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of its groups as parameters, which it gets as groups again."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if _is_group(kind):
            groups[parameter.name] = kind
            parameters += _parameters(kind)
        else:
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        made = {name: _made(group, given) for name, group in groups.items()}
        command(**made, **given)

    names = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = names
    return run


def _is_group(kind: Any) -> bool:
    return is_dataclass(kind) and isinstance(kind, type)


def _parameters(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a group as parameters, with those of groups in it."""
    hints, found, keyword = get_type_hints(group, include_extras=True), [], inspect.Parameter.KEYWORD_ONLY
    for field in fields(group):
        kind, default = hints[field.name], inspect.Parameter.empty if field.default is MISSING else field.default
        if _is_group(kind):
            found += _parameters(kind)
        else:
            found.append(inspect.Parameter(field.name, keyword, default=default, annotation=kind))
    return found


def _made(group: Any, given: dict[str, Any]) -> Any:
    """Return a group with its fields, which are taken from what was given."""
    hints = get_type_hints(group)
    kinds = {field.name: hints[field.name] for field in fields(group)}
    return group(**{name: _made(kind, given) if _is_group(kind) else given.pop(name) for name, kind in kinds.items()})
