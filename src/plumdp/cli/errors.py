"""How misuse and failures end: a message in the words of the command line, or JSON, and an exit code."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from traceback import print_exception
from typing import Any, TextIO

from plumdp.model.text import cut

MISUSE, UNEXPECTED, IO_FAILED, INTERRUPTED, CLOSED_PIPE = 2, 70, 74, 130, 141  # exit codes
DEBUG = "PLUMDP_DEBUG"  # of the environment: tracebacks are shown
SCHEMA = "plumdp/error/1"

EXIT_CODES = (
    (0, "certified; or yes, the threshold is reached; or done"),
    (1, "no: the threshold is out of reach, or a check fails"),
    (2, "misuse: the message says what to change"),
    (3, "the data contradict the model"),
    (4, "nothing is certified, or not yet known"),
    (UNEXPECTED, "an unexpected error, which the message asks you to report"),
    (IO_FAILED, "input or output failed: the disk is full, or standard output cannot be written"),
    (INTERRUPTED, "interrupted by Ctrl-C"),
    (CLOSED_PIPE, "standard output was closed, as head does"),
)
_OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_VALUE = r"""(?:'([^']*)'|"([^"]*)"|(-?\d[\w.+-]*\w|-?\d))"""
_KEYWORDS = (
    *("sampling", "order", "expected", "form", "confidence", "confidence_set", "interval_method", "misfit"),
    *("relaxation", "max_steps", "runs", "table", "dialect", "threads", "cut_off", "partitions"),
)
_BEFORE = r"(^|: |\b(?:say|with|or|for|which|out) )"  # a keyword, rather than the value of a state variable
_REWRITES = (
    (r"columns=\{…\}", "--column NAME=COLUMN"),
    (r"""columns=\{['"]([^'"]+)['"]: …\}""", r"--column \1=…"),
    (r"""columns=\{['"]([^'"]+)['"]: ['"]([^'"]*)['"]\}""", r"--column \1=\2"),
    (r"""states=\{['"]([^'"]+)['"]: …\}""", r"--state \1=…"),
    (
        r"""states=\{'(\w+)': (?:'(.*?)'|"(.*?)"|(\[.*?\]))\}: """,
        lambda found: f"--state {found[1]}=" + _first(found) + ": ",
    ),
    (r"""^actions=(?:'(.*?)'|"(.*?)"): """, lambda found: f"--action {found[1] or found[2]}: "),
    (r"constants=\{(.*?)\}", lambda found: _constants(found[1])),
    (r"""on_unmatched=['"]report['"]""", "--keep-going"),
    (r"each query by itself, or say pilot=False", "each query by itself"),
    (r"\bsay pilot=False\b", "leave out --order and --sampling"),
    (r" \(force=True\)", ""),
    (r"read it alone \(read_counts\)", "give it alone"),
    (r"\bas_published=True\b", "--as-published"),
    (r"\bgive form=…", "give --form"),
    (rf"{_BEFORE}({'|'.join(_KEYWORDS)})={_VALUE}", lambda found: _option(found)),
    (r"(?<!-)\bas_published\b", "--as-published"),
    (r"\binterval_method and events are for\b", "--interval-method is for"),
    (r"\binterval_method and events\b", "--interval-method"),
    (r"\b(interval_method|confidence_set|max_steps)\b", lambda found: f"--{found[1].replace('_', '-')}"),
    (r"(leave out .*) or misfit\b", r"\1 or --misfit"),
    (r"\bwhich decide answers\b", "which certify answers"),
    (r"\bValue error, ", ""),
    (
        r"""^IO Error: .*Could not write file \\*"(.*?)(?:\.plumdp-\w+/)?([^/]*?)\\*": ([^"]+).*""",
        r"\1\2 cannot be written: \3",
    ),
    (r"\bInput should be a valid number, .* as a number", "give a number"),
    (r"\bInput should be a valid integer, .* as an integer", "give a whole number"),
)
_QUOTED = "  "  # lines that begin so show a property, or rows of a log


def in_command_line_words(message: str) -> str:
    """Return a message of the library with options where it has the keywords of Python.

    >>> in_command_line_words("misfit=1.0: leave out as_published, or say on_unmatched='report'")
    '--misfit 1.0: leave out --as-published, or say --keep-going'
    >>> in_command_line_words("say which they are with columns={…}, or give form=…")
    'say which they are with --column NAME=COLUMN, or give --form'
    """
    return "\n".join(line if line.startswith(_QUOTED) else _rewritten(line) for line in message.split("\n"))


def _rewritten(line: str) -> str:
    for pattern, words in _REWRITES:
        line = re.sub(pattern, words, line)
    return line


def _first(found: re.Match[str]) -> str:
    """Return what was found after the name."""
    return next(part for part in found.groups()[1:] if part is not None)


def _option(found: re.Match[str]) -> str:
    value = next(part for part in found.groups()[2:] if part is not None)
    return f"{found[1]}--{found[2].replace('_', '-')} {value}"


def _constants(pairs: str) -> str:
    """Return ``"N": 10, "M": 10`` as options."""
    return "--constant " + ",".join(
        f"{name}={value}" for name, value in re.findall(r"""['"](\w+)['"]: ([^,]+)""", pairs)
    )


def report(kind: str, message: str, *, as_json: bool) -> None:
    """Print an error: a sentence on standard error, or an object on standard output."""
    if as_json:
        content: dict[str, Any] = {"schema": SCHEMA, "error": {"kind": kind, "message": message}}
        print(json.dumps(content, indent=2, ensure_ascii=False), flush=True)
        return
    with suppress(OSError):  # if it cannot be said, the exit code still tells
        bold = "\x1b[1;31merror:\x1b[0m" if sys.stderr.isatty() else "error:"
        print(f"{bold} {message}", file=sys.stderr)


def report_failure(error: BaseException, *, as_json: bool) -> int:
    """Report an error that is not misuse, unless it is an interruption or a closed pipe; return its exit code."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, OSError | SystemExit) and any(isinstance(each, BrokenPipeError) for each in _chain(error)):
        return CLOSED_PIPE  # rich and typer end with SystemExit there
    if os.environ.get(DEBUG):
        with suppress(OSError):
            print_exception(error)
    if isinstance(error, OSError) or is_disk_failure(error):
        text = in_command_line_words(str(error))
        if isinstance(error, OSError):
            text = f"{error.filename or 'output cannot be written'}: {error.strerror or error}"
        report("input/output", text, as_json=as_json)
        return IO_FAILED
    what = "not enough memory" if isinstance(error, MemoryError) else f"{type(error).__name__}: {cut(str(error), 200)}"
    report(
        "unexpected",
        f"plumdp ended unexpectedly ({what}), which says nothing about the model or the data. Please report it, with "
        f"the command and what it prints with {DEBUG}=1",
        as_json=as_json,
    )
    return UNEXPECTED


def is_disk_failure(error: BaseException) -> bool:
    """Return whether an error comes from a disk that is full or fails, whatever it says: nobody misused anything."""
    for each in _chain(error):
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


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
