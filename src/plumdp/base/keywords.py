"""Options that several functions take: each declared once, with its type, its default and what it means.

A group of options is a ``TypedDict``, which type checkers know, and a function takes all of them as ``**options``.
``takes`` shows them in its signature and in its help, and fills in the defaults of those that are left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from textwrap import fill
from typing import Any, TypeVar, cast, get_args, get_type_hints

Function = TypeVar("Function", bound=Callable[..., Any])

_EXAMPLES = "\n\nExamples\n--------\n"
_WIDTH = 100


@dataclass(frozen=True)
class Option:
    """What is declared of an option besides its name and type: the default, and what it means."""

    default: object
    meaning: str


def takes(group: type) -> Callable[[Function], Function]:
    """Return a decorator for functions with ``**options`` of a group: their bodies always find all of them.

    The docstring of such a function lists its own parameters, and has examples: the options come in between.

    >>> from typing import Annotated, TypedDict, Unpack
    >>> Digging = TypedDict("Digging", {"depth": Annotated[int, Option(3, "How many metres down.")]}, total=False)
    >>> @takes(Digging)
    ... def dig(place: str, **options: Unpack[Digging]) -> str:
    ...     return f"{place}, {options['depth']} metres down"
    >>> dig("here"), dig("there", depth=5), str(inspect.signature(dig))
    ('here, 3 metres down', 'there, 5 metres down', "(place: 'str', *, depth: int = 3) -> 'str'")
    """
    declared = {name: get_args(hint) for name, hint in get_type_hints(group, include_extras=True).items()}
    types = {name: kind for name, (kind, _) in declared.items()}
    options: dict[str, Option] = {name: option for name, (_, option) in declared.items()}
    defaults = {name: option.default for name, option in options.items()}

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        names = {each.name for each in own} | options.keys()

        @wraps(function)
        def accepting(*args: Any, **given: Any) -> Any:
            for name in given:
                if name not in names:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **{**defaults, **given})

        keyword = inspect.Parameter.KEYWORD_ONLY
        shown = [inspect.Parameter(name, keyword, default=defaults[name], annotation=types[name]) for name in options]
        vars(accepting)["__signature__"] = signature.replace(parameters=own + shown)
        accepting.__annotations__ = {**{each.name: each.annotation for each in own}, **types}
        accepting.__annotations__["return"] = signature.return_annotation
        accepting.__doc__ = _explained(function.__doc__, options)
        return cast("Function", accepting)

    return decorate


def _explained(text: str | None, options: dict[str, Option]) -> str | None:
    """Return a docstring that explains the options behind the parameters of the function."""
    before, examples, after = inspect.cleandoc(text or "").partition(_EXAMPLES)
    listed = [f"{name}\n{fill(option.meaning, _WIDTH, **_INDENT)}" for name, option in options.items()]
    return "\n".join([before, *listed]) + examples + after if examples else text


_INDENT: Any = {"initial_indent": "    ", "subsequent_indent": "    "}
