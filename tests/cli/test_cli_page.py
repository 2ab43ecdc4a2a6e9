"""The page about the command line: its files are written, its commands run, and they print what the page shows."""

import re
import shlex
from pathlib import Path

import pytest
from command_line import plumdp

from plumdp.cli.errors import EXIT_CODES

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "cli.md"
TEXT = PAGE.read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w.]+)`:\n\n```\w*\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
BLOCKS = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


def steps(block):
    """Return commands with what the page shows below them."""
    found = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(found[::2], found[1::2], strict=True))


def as_pattern(shown):
    """Return a pattern in which … stands for any text, however lines are broken."""
    return r"\s+".join(".*?".join(map(re.escape, word.split("…"))) for word in shown.split())


def test_every_command_of_the_page_prints_what_the_page_shows(folder, monkeypatch):
    monkeypatch.chdir(folder)
    code = 0
    for block in BLOCKS:
        before = TEXT[: TEXT.index(block)]
        for name, content in FILES.items():
            if f"`{name}`:\n" in before:
                (folder / name).write_text(content)
        for command, shown in steps(block):
            if command == "echo $?":
                assert shown.strip() == str(code)
                continue
            ended = plumdp(*shlex.split(command)[1:])
            code, printed = ended.code, ended.out + ended.err
            assert re.fullmatch(as_pattern(shown), printed.strip(), re.DOTALL), f"{command}\n{printed}"


def test_the_page_has_the_table_of_exit_codes():
    for code, words in EXIT_CODES:
        assert f"| {code} | {words} |\n" in TEXT


def test_the_page_names_every_command():
    from plumdp.cli import COMMANDS

    assert [name for name in COMMANDS if f"`{name}`" not in TEXT] == []
