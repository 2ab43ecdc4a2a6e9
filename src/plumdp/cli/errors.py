"""Ends commands after misuse and failures: a message in the words of the command line, or JSON, and an exit code."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from traceback import format_exception
from typing import Any, NamedTuple, TextIO

from plumdp.base.edge import controlled
from plumdp.base.errors import Misuse, Option, Untold, chain_of, visible
from plumdp.model.text import cut

FILE = "plumdp.toml"  # defaults of options
FOR_ALL = ""  # the place of an option above all tables of a file of defaults


class Defaults(NamedTuple):
    """The context of a command, and where a file gives its defaults: ``FOR_ALL``, or the file and the table."""

    context: Any
    places: Mapping[str, str]  # by parameter


_GIVEN: ContextVar[tuple[str, ...]] = ContextVar("given", default=())
_DEFAULTS: ContextVar[Defaults | None] = ContextVar("defaults", default=None)


def remember(given: Sequence[str]) -> None:
    """Keep the arguments of the command that runs."""
    _GIVEN.set(tuple(given))
    _DEFAULTS.set(None)


def remember_defaults(context: Any, places: Mapping[str, str]) -> None:
    """Keep where the defaults of the command that runs are written."""
    _DEFAULTS.set(Defaults(context, places))


def command_line() -> str:
    """Return the command that runs, as one would type it again; nothing if it was not typed."""
    return shlex.join(["plumdp", *_GIVEN.get()]) if _GIVEN.get() else ""


def is_typed(parameter: str) -> bool:
    """Return whether an option is on the command line."""
    return _source(parameter) == "COMMANDLINE"


def in_file(parameter: str) -> Any:
    """Return what a file of defaults says of an option that is on the command line, too, or None."""
    defaults = _DEFAULTS.get()
    return defaults.context.default_map.get(parameter) if defaults is not None and is_typed(parameter) else None


def is_shared(parameter: str) -> bool:
    """Return whether an option is given for all commands alike, so that it does not matter if it does not apply."""
    return _place(parameter) == FOR_ALL


def where_given(parameter: str) -> str:
    """Return an option with the place where it is given: as on the command line, or in a table of a file."""
    place = _place(parameter)
    name = parameter.replace("_", "-")
    return f"{place} {name}" if place else f"--{name}"


def _place(parameter: str) -> str | None:
    """Return the place in a file of defaults that gives an option, or None if the command line does."""
    defaults = _DEFAULTS.get()
    return None if defaults is None or _source(parameter) != "DEFAULT_MAP" else defaults.places[parameter]


def _source(parameter: str) -> str | None:
    """Return the origin of an option, in a word of Typer."""
    defaults = _DEFAULTS.get()
    source = None if defaults is None else defaults.context.get_parameter_source(parameter)
    return None if source is None else str(source.name)


MISUSE, UNEXPECTED, IO_FAILED, INTERRUPTED, CLOSED_PIPE = 2, 70, 74, 130, 141  # exit codes
DEBUG = "PLUMDP_DEBUG"  # of the environment: tracebacks are shown
SCHEMA = "plumdp/error/1"

EXIT_CODES = (
    (0, "certified, done, or yes: the threshold is reached, the policy is good enough"),
    (1, "no: the threshold is out of reach, the policy is not better, a check fails, or a process has changed"),
    (2, "misuse: the message says what to change"),
    (3, "the data reject the model, or what is assumed of whole runs"),
    (4, "nothing is certified, inconclusive, could not be compared, or a part is missing"),
    (UNEXPECTED, "an unexpected error, which the message asks you to report"),
    (IO_FAILED, "input or output failed: the disk is full, or standard output cannot be written"),
    (INTERRUPTED, "interrupted by Ctrl-C"),
    (CLOSED_PIPE, "standard output was closed, as head does"),
)
_OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_NAMES = {
    "columns": "column",
    "states": "state",
    "actions": "action",
    "constants": "constant",
    "rng": "seed",
}
_NAMES |= {"return_range": "range", "table": "DATA", "gaps": "censoring"}
_NAMES |= {name: f"table {name}" for name in ("first", "end", "closed", "initial")}
_NAMES |= {name: f"text {name}" for name in ("encoding", "decimal", "date_format")}
_PHRASES = {  # what Python says, and what the command line has in its place
    "on_unmatched='report'": "--keep-going",
    "pilot=False": "leave out --order and --sampling",
    "columns={…}": "--column NAME=COLUMN",
    "with_gaps(model, [1, 2, 3])": "--observation-gaps 1,2,3",
    "read_counts": "plumdp count MODEL COUNTS... -o SUM",
    "read_log": "plumdp count, whose counts can be added to these",
    "decide": "certify",
    "advise": "plumdp advise",
}
_OF_OTHERS = (  # texts of Typer
    (r"\bValue error, ", ""),
    (r"\bInput should be a valid number, .* as a number", "give a number"),
    (r"\bInput should be a valid integer, .* as an integer", "give a whole number"),
)


def in_command_line_words(*parts: str | Option) -> str:
    """Return a message with its options as they are written on the command line.

    >>> in_command_line_words(Option("model_tolerance", 1.0), ": leave out ", Option("confidence_set"))
    '--model-tolerance 1: leave out --confidence-set'
    """
    message = "".join(part if isinstance(part, str) else _spelled(part) for part in parts)
    for pattern, words in _OF_OTHERS:
        message = re.sub(pattern, words, message)
    return message


def _spelled(option: Option) -> str:
    """Return an option, and its value unless it is a switch or the reader has to give one."""
    if str(option) in _PHRASES:
        return _PHRASES[str(option)]
    name, value = _NAMES.get(option.name, option.name), option.value
    name, _, key = name.partition(" ")
    name = name if name.isupper() else f"--{name}".replace("_", "-")
    if key and isinstance(value, Mapping):
        return " ".join(f"{name} {shlex.quote(f'{key}.{part}={entry}')}" for part, entry in value.items())
    if key:
        return f"{name} {key}={'…' if value is ... else str(value).lower() if value is True else value}"
    if value is Untold or value is True or value is ...:
        return name
    if isinstance(value, list | tuple):
        value = f"[{','.join(map(str, value))}]"
    if isinstance(value, Mapping):
        value = ",".join(f"{key}={_entry(entry)}" for key, entry in value.items())
        value = f"{{{value}}}" if option.name == "actions" else value
    return f"{name} {value:.10g}" if isinstance(value, float) else f"{name} {value}"


def _entry(value: object) -> str:
    if isinstance(value, tuple):  # successes and trials
        return "/".join(map(str, value))
    return "…" if value is ... else f"{value}"


def report(kind: str, message: str, *, as_json: bool) -> None:
    """Print an error: a sentence on standard error, or an object on standard output."""
    if as_json:
        content: dict[str, Any] = {"schema": SCHEMA, "error": {"kind": kind, "message": message}}
        print(visible(json.dumps(content, indent=2, ensure_ascii=False)), flush=True)
        return
    with suppress(OSError):  # if it cannot be said, the exit code still tells
        bold = "\x1b[1;31merror:\x1b[0m" if sys.stderr.isatty() else "error:"
        print(f"{bold} {visible(message)}", file=controlled(sys.stderr))


def report_failure(error: BaseException, *, as_json: bool) -> int:
    """Report an error that is not misuse, unless it is an interruption or a closed pipe; return its exit code."""
    if any(isinstance(each, KeyboardInterrupt) for each in chain_of(error)):  # a library may have made it another error
        return INTERRUPTED
    if isinstance(error, OSError | SystemExit) and any(isinstance(each, BrokenPipeError) for each in chain_of(error)):
        return CLOSED_PIPE  # rich and typer end with SystemExit there
    if os.environ.get(DEBUG):
        with suppress(OSError):
            sys.stderr.write(visible("".join(format_exception(error))))
    if isinstance(error, OSError) or is_disk_failure(error):
        text = in_command_line_words(*(error.args if isinstance(error, Misuse) else [str(error)]))
        if isinstance(error, OSError):
            text = f"{error.filename or 'output cannot be written'}: {error.strerror or error}"
        report("input/output", text, as_json=as_json)
        return IO_FAILED
    problem = (
        "not enough memory" if isinstance(error, MemoryError) else f"{type(error).__name__}: {cut(str(error), 200)}"
    )
    report(
        "unexpected",
        f"plumdp ended unexpectedly ({problem}), which says nothing about the model or the data. Please report it, "
        f"with the command and what it prints with {DEBUG}=1",
        as_json=as_json,
    )
    return UNEXPECTED


def is_disk_failure(error: BaseException) -> bool:
    """Return whether an error comes from a disk that is full or fails, whatever it says: nobody misused anything."""
    for each in chain_of(error):
        if isinstance(each, OSError) and each.errno in _OF_DISKS:
            return True
        if type(each).__name__ == "IOException" and any(os.strerror(code) in str(each) for code in _OF_DISKS):
            return True  # of DuckDB
    return False


def flushed(code: int) -> int:
    """Write what is still to be written; return the exit code, another one if the result could not be printed."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = CLOSED_PIPE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:
        if code != IO_FAILED:  # which was reported already
            report("input/output", f"output cannot be written: {error.strerror or error}", as_json=False)
        code = IO_FAILED
    for stream in (sys.stdout, sys.stderr):
        _let_end(stream)
    return code


def _let_end(stream: TextIO) -> None:
    """Let a stream that cannot be written take what is left in it, which Python writes when it ends, to nowhere."""
    try:
        stream.flush()
    except (OSError, ValueError):  # a ValueError if it is closed
        with suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
