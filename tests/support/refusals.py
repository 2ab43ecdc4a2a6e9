"""Refusals as data: tests/texts has what is refused and in which words, and one loop tells all rows that fail."""

import math
import shlex
import tomllib
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from re import DOTALL, escape, fullmatch
from string import Template

import numpy as np
from support.command_line import plumdp

import plumdp as pl
from plumdp import ModelError

TEXTS = Path(__file__).parent.parent / "texts"
NAMES = {"np": np, "pl": pl, "math": math, "Decimal": Decimal, "Fraction": Fraction}


@cache
def _tables(file):
    return tomllib.loads((TEXTS / f"{file}.toml").read_text(encoding="utf-8"))


def rows(name):
    """Return the rows of a table, as in ``file:table``, with ``$WORDS`` of the file in full."""
    file, table = name.split(":")
    tables = _tables(file)
    words = tables.get("words", {})
    return [
        [Template(each).safe_substitute(words) if isinstance(each, str) else each for each in row]
        for row in tables[table]
    ]


def _said(call, given, error):
    try:
        call(*given)
    except error as caught:
        return str(caught)
    return None


def _is_as_written(said, message):
    """Return whether a message is the one of a row, in which ``***`` stands for anything."""
    return said is not None and fullmatch(".*".join(map(escape, message.split("***"))), said, DOTALL) is not None


def refused(name, call, error=ModelError, **names):
    """Require that what each row gives is refused in the words at its end.

    ``call`` takes what a row gives, or it is a namespace in which the row is evaluated, beside ``names`` and ``NAMES``.
    """
    does = call if callable(call) else lambda code: eval(code, {**NAMES, **call, **names})
    _require(name, [(given, message, _said(does, given, error)) for *given, message in rows(name)])


def refused_at(name, parse):
    """Require that texts are refused at the place that ``^`` marks, by the sentence at the end of their row."""
    told = []
    for marked, sentence in rows(name):
        text = marked.replace("^", "")
        told.append((text, f"{sentence}\n  {text}\n  {' ' * marked.index('^')}^", _said(parse, [text], ModelError)))
    _require(name, told)


def misused(name, run=plumdp, folder=""):
    """Require that each command line, in which ``$folder`` is a folder, is misuse, and only says what its row does."""
    told = []
    for line in rows(name):
        command, message = (Template(text).safe_substitute(folder=folder) for text in line)
        code, out, err = run(*shlex.split(command))
        said = err.rstrip("\n") if (code, out) == (2, "") else f"{code} {out} {err}"
        told.append((command, f"error: {message}", said))
    _require(name, told)


def told(name, run=plumdp, **words):
    """Require that each command line ends with the code of its row, and says what the row does; any blank is one."""
    found = []
    for line, code, said in rows(name):
        ended = run(*shlex.split(Template(line).safe_substitute(words)))
        printed = " ".join((ended.out + ended.err).split())
        found.append((line, f"{code}: {said}", f"{ended.code}: {printed}"))
    _require(name, found)


def _require(name, told):
    wrong = [row for row in told if not _is_as_written(row[2], row[1])]
    lines = [f"{given}\n  says {said!r}\n  not  {message!r}" for given, message, said in wrong]
    assert not wrong, "\n".join([f"{len(wrong)} rows of {name}:", *lines])
