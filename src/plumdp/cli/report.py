"""``plumdp report``: a report for people about a saved result, or about a model and data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

import plumdp
from plumdp.base.errors import DataError
from plumdp.cli.certify import certified
from plumdp.cli.invocation import is_typed
from plumdp.cli.options import OPTIONS, Options
from plumdp.cli.outputs import require_new
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import exit_code, print_results
from plumdp.reporting.read import explain_result

if TYPE_CHECKING:
    from plumdp.result.findings import Findings


_SCHEMA = "plumdp/report/1"


_OF_PAGES = ("output", "title", "system", "force", "json")


def report(given: Options) -> int:
    """Write a report about each result of a folder, or about what is certified of a model and data."""
    from plumdp.result.folder import CERTIFICATE, REPORT

    if not given.data:
        _require_nothing_else()
        folders = _folders(Path(given.model))
        files = [folder / REPORT for folder in folders] if given.output is None else [given.output]
        _require_places(folders, files, force=given.force)
        write_reports(given, folders, files)
        return 0
    if (Path(given.model) / CERTIFICATE).exists():
        raise DataError(f"{given.model} is a result already; leave out the data, or give a model")
    if given.relaxation == "all":
        raise DataError("--relaxation all: a report shows what looser ones certify as well; name one, or leave it out")
    target = given.output or Path(REPORT)
    require_new(target, force=given.force)
    learned, results = certified(given)
    if not given.json:
        print_results(results)
    files = _numbered(target, len(results), force=given.force)
    for result, file in zip(results, files, strict=True):
        _write(given, result.saved, plumdp.explain(learned, result.saved), file)
    _say(files, as_json=given.json)
    return exit_code(results)


def write_reports(given: Options, folders: list[Path], files: list[Path]) -> None:
    """Write a report about the result in each folder to a file, and say so."""
    for folder, file in zip(folders, files, strict=True):
        _write(given, *explain_result(folder), file)
    _say(files, as_json=given.json)


def _numbered(target: Path, n: int, *, force: bool) -> list[Path]:
    """Return a place for each of several reports, beside the given one; refuse places that are taken."""
    files = [target] if n == 1 else [target.with_stem(f"{target.stem}-{number}") for number in range(1, n + 1)]
    for file in files:
        require_new(file, force=force)
    return files


def _write(given: Options, certificate: plumdp.Certificate, findings: Findings, file: Path) -> None:
    LOGGER.info("writing %s", file)
    plumdp.write_report(certificate, findings, file, title=given.title, system=given.system)


def _folders(subject: Path) -> list[Path]:
    """Return the folders of the results that are meant."""
    from plumdp.reporting.read import numbered_results

    if not subject.is_dir():
        raise DataError(
            f"{subject} is not the folder of a result; for a model, give data as well: plumdp report MODEL DATA"
        )
    return numbered_results(subject) or [subject]


def _require_places(folders: list[Path], files: list[Path], *, force: bool) -> None:
    """Refuse one place for several reports, and places that are taken."""
    if len(files) != len(folders):
        raise DataError(
            f"--output: {folders[0].parent} holds {len(folders)} results, and a file holds one report; name one of "
            f"them, such as {folders[0]}, or leave out --output"
        )
    for file in files:
        require_new(file, force=force)


def _require_nothing_else() -> None:
    """Refuse options about certifying, which a result has behind it."""
    for name, option in OPTIONS.items():
        if option.flags and option.group != "frame" and name not in _OF_PAGES and is_typed(name):
            flag = option.flags[0]
            raise DataError(
                f"{flag}: a result is shown as it was certified; leave out {flag}, or give a model and data"
            )


def _say(files: list[Path], *, as_json: bool) -> None:
    """Print where the reports are."""
    if as_json:
        print(json.dumps({"schema": _SCHEMA, "files": [str(file) for file in files]}, indent=2, ensure_ascii=False))
        return
    for file in files:
        Console(highlight=False, soft_wrap=True).print(f"report: {file}", markup=False)
