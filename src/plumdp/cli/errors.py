"""How misuse ends: a message in the words of the command line, or JSON, and an exit code."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

MISUSE = 2  # exit code
SCHEMA = "plumdp/error/1"

EXIT_CODES = (
    (0, "certified; or yes, the threshold is reached; or done"),
    (1, "no: the threshold is out of reach, or a check fails"),
    (2, "misuse: the message says what to change"),
    (3, "the data contradict the model"),
    (4, "nothing is certified, or not yet known"),
)

_VALUE = r"""(?:'([^']*)'|"([^"]*)"|(-?\d[\w.+-]*\w|\d))"""
_KEYWORDS = (
    *("sampling", "order", "pilot", "form", "confidence", "confidence_set", "interval_method", "misfit"),
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
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return
    bold = "\x1b[1;31merror:\x1b[0m" if sys.stderr.isatty() else "error:"
    print(f"{bold} {message}", file=sys.stderr)
