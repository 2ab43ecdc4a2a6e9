"""The text of ``-h`` and ``--help-all``: options with their explanation below them, readable on any screen."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand

_WIDEST, _NARROWEST = 100, 30
_WIDE, _SHORT = 70, 14  # from this width on, names shorter than that have their texts beside them
_METAVARS = {"float": "NUMBER", "int": "N", "path": "PATH", "str": "TEXT"}
_TYPE = re.compile(r" <([^>]+)>")


class HelpfulCommand(TyperCommand):
    """A sub-command whose help shows the options that people use, and ends with an example."""

    example: str = ""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the command."""
        formatter.write(help_of(self, ctx))


def help_of(command: Any, ctx: Any, *, everything: bool = False) -> str:
    """Return the help of a sub-command: usage, what it does, its arguments and options, and an example."""
    from plumdp.cli.commands import COMMANDS
    from plumdp.cli.options import GROUPS, OPTIONS

    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.get_params(ctx) if param.param_type_name == "option"]
    also = COMMANDS[command.name].shown.split() if command.name in COMMANDS else []
    is_shown = {name for name, option in OPTIONS.items() if option.is_shown or name in also}
    shown = [param for param in options if param.name in is_shown]
    more: dict[str, list[Any]] = {title: [] for title in GROUPS.values()}
    for param in options:
        if param not in shown:
            more[GROUPS[OPTIONS[param.name].group if param.name in OPTIONS else "frame"]].append(param)
    names = [str(param.metavar) for param in arguments]
    parts = [
        filled(f"Usage: {ctx.command_path} [OPTIONS] {' '.join(names)}"),
        *(filled(paragraph) for paragraph in (command.help or "").split("\n\n")),
        section("Arguments", zip(names, (param.help or "" for param in arguments), strict=True)),
        section("Options", (option_words(param, ctx) for param in shown)),
    ]
    if everything:
        parts += [section(f"Options: {title}", (option_words(each, ctx) for each in more[title])) for title in more]
    else:
        listed = [(title, ", ".join(each.opts[0] for each in more[title])) for title in more if more[title]]
        parts.append(section(f"More options, which {ctx.command_path} --help-all explains", listed))
    parts.append(section("Example", [(line, "") for line in command.example.splitlines()], as_they_are=True))
    return "\n\n".join(part for part in parts if part) + "\n"


def section(title: str, entries: Iterable[tuple[str, str]], *, as_they_are: bool = False) -> str:
    """Return a title with entries below it, each a name and a text about it; empty if there are none.

    >>> print(section("Options", [("-o, --output PATH", "A file.")]))
    Options:
      -o, --output PATH
          A file.
    """
    listed, lines = list(entries), []
    if not as_they_are and width() >= _WIDE and all(len(name) < _SHORT for name, _ in listed):
        lines = [filled(text, f"  {name:{_SHORT}}", " " * (_SHORT + 2)) for name, text in listed]
    for name, text in listed if not lines else []:
        lines.append(f"  {name}" if as_they_are else filled(name, "  ", "    "))
        lines += [filled(text, "      ")] if text else []
    return "\n".join([filled(f"{title}:"), *lines]) if lines else ""


def filled(text: str, indent: str = "", hanging: str | None = None) -> str:
    """Return a text in lines that fit the screen, without breaking a word."""
    return textwrap.fill(
        " ".join(text.split()) or " ",
        width(),
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def width() -> int:
    """Return the width that a text may take, in columns."""
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST))


def option_words(param: Any, ctx: Any) -> tuple[str, str]:
    """Return the flags of an option and its purpose, with its choices and its default."""
    written, text = param.get_help_record(ctx)
    kind = _TYPE.search(written)
    if kind is None:
        return written, text
    choices = kind[1].split("|")
    if len(choices) > 1:
        text = f"{text} Choices: {', '.join(choices)}."
    metavar = "CHOICE" if len(choices) > 1 else _METAVARS.get(choices[0].partition("[")[0], "TEXT")
    return _TYPE.sub(f" {metavar}", written), text
