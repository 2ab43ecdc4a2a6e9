"""Types the tutorial into a fresh environment, and writes what is printed, with seconds, as ``docs/transcript.md``.

    python -m studies.transcript plumdp-0.2.0-py3-none-any.whl

The wheel is installed into a new virtual environment, without extras; files are written and commands are run in an
empty folder, in the order of the page. Seconds are those of the clock.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
FILE = re.compile(r"^`([\w.]+)`[^\n]*:\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD = """# A transcript of the tutorial

The commands of the [tutorial](tutorial.md), typed into a fresh environment: {system}, Python {python}, {cores} cores,
{day}. Nothing but the wheel was installed, and nothing was compiled beforehand: what the first commands lack is
compiled in the background, and kept. Seconds are those of the clock. Made by `python -m studies.transcript WHEEL`.
"""


def commands(page: str, folder: Path) -> Iterator[str]:
    """Write the files of the page as it goes on, and yield its commands."""
    for block in BLOCK.finditer(page):
        for name, content in FILE.findall(page[: block.start()]):
            (folder / name).write_text(content, encoding="utf-8")
        yield from re.findall(r"^\$ (.*)$", block[1], re.MULTILINE)


def typed(command: str, folder: Path, programs: Path) -> str:
    """Return a command, what it printed and the seconds it took, as a block of the page."""
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    environment.pop("PYTHONPATH", None)
    start = time.perf_counter()
    ran = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    printed = "\n".join(line.rstrip() for line in (ran.stdout + ran.stderr).splitlines())
    return f"```\n$ {command}\n{printed}\n```\n\n{seconds:.1f} s\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.resolve()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:  # kernels may still be compiled there
        environment, folder = Path(place) / "environment", Path(place) / "tutorial"
        folder.mkdir()
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        programs = environment / ("Scripts" if os.name == "nt" else "bin")
        start = time.perf_counter()
        subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", wheel], check=True)
        installed = f"```\n$ pip install plumdp\n```\n\n{time.perf_counter() - start:.0f} s\n"
        page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
        blocks = [typed(command, folder, programs) for command in commands(page, folder)]
    head = HEAD.format(
        system=platform.system(), python=platform.python_version(), cores=os.cpu_count(), day=date.today().isoformat()
    )
    (DOCS / "transcript.md").write_text("\n".join([head, installed, *blocks]), encoding="utf-8")


if __name__ == "__main__":
    main()
