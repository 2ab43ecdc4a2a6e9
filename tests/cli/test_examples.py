"""The four jobs of examples/README.md, on small logs: their commands run, and print what the page shows."""

import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from command_line import plumdp

EXAMPLES = Path(__file__).parents[2] / "examples"
BLOCKS = dict(
    zip(
        ("drone", "frozen_lake", "packets", "interval_models"),
        re.findall(r"^```console\n(.*?)^```$", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL),
        strict=True,
    )
)
SIZES = {"drone": 300, "packets": 200_000, "frozen_lake": 50}  # flights, rows, episodes

pytestmark = pytest.mark.slow


@pytest.fixture(params=BLOCKS)
def job(request, tmp_path, monkeypatch):
    """Return the name of a job, in a copy of its folder."""
    folder = tmp_path / request.param
    made = shutil.ignore_patterns("*.csv", "*.parquet", "*.drn", "*.umb", "*.json", "result")
    shutil.copytree(EXAMPLES / request.param, folder, ignore=made)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    return request.param


def run_script(name, size, capsys):
    """Run a script with a size of its own, and return what it prints."""
    before, sys.argv = sys.argv, [name, str(size)]
    try:
        runpy.run_path(name, run_name="__main__")
    finally:
        sys.argv = before
    return capsys.readouterr().out


def shape(text):
    """Return a text as a pattern: numbers may be others, and … is any text; lines may be broken elsewhere."""
    words = [re.sub(r"[\d,.]*\d", lambda _: "\0", word) for word in text.split()]
    return r"\s+".join(re.escape(word).replace("\0", r"[\d,.]*\d").replace("…", ".*?") for word in words)


def test_a_job_runs_as_its_page_says(job, capsys):
    steps = re.split(r"^\$ (.*)\n", BLOCKS[job], flags=re.MULTILINE)[1:]
    for command, shown in zip(steps[::2], steps[1::2], strict=True):
        tool, *arguments = shlex.split(command)
        if tool == "python":
            printed = run_script(arguments[0], SIZES[job], capsys)
        else:
            ended = plumdp(*arguments)
            assert ended.code in (0, 1), ended.err
            printed = ended.out + ended.err
        assert not shown.strip() or re.match(shape(shown), printed.strip(), re.DOTALL), f"{command}\n{printed}"
    assert len(BLOCKS[job].splitlines()) <= 40
