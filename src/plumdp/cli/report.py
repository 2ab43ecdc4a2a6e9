"""``plumdp report`` and ``plumdp plot``: a report or a picture of a saved result, or of a model and data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.progress import tell
from plumdp.base.vocabulary import EXIT_CODES, REJECTIONS, Status
from plumdp.cli.certify import certified
from plumdp.cli.errors import is_typed
from plumdp.cli.inputs import learn, load_objective, require_data
from plumdp.cli.options import OPTIONS, Options
from plumdp.cli.outputs import require_new
from plumdp.cli.results import exit_code, print_results
from plumdp.model.expressions.polynomial import exact
from plumdp.reporting.read import explain_result

if TYPE_CHECKING:
    from plumdp.plots.draw import Picture
    from plumdp.result.certificate import Certificate
    from plumdp.result.findings import Findings

_SCHEMA = "plumdp/report/1"
_WORSE = 0.2  # share of units that may be worse than what a picture says is reached
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


def _write(given: Options, certificate: Certificate, findings: Findings, file: Path) -> None:
    tell(f"writing {file}")
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


_OF_REGION = ("ladder", "region", "expressions", "advice")


def plot(given: Options) -> int:
    """Draw a picture of one kind, of a model and data or a saved result; 3 if there is nothing to draw."""
    from plumdp.plots.style import require_format

    kind, output = given.kind, given.output
    assert output is not None
    require_format(output)
    require_new(output, force=given.force)
    if given.at and kind != "region":
        raise DataError(f"--at is for plumdp plot region; leave it out for {kind}")
    if kind == "units":
        _of_units(given).save(output)
        print(json.dumps({"schema": "plumdp/plot/1", "files": [str(output)]}) if given.json else output)
        return 0
    certificate, findings = _explained(given)
    if certificate.status in REJECTIONS and kind in _OF_REGION:
        reason = f"the data reject the model, so that there is no {kind} to draw: {certificate.claim.reason}"
        Console(stderr=True, highlight=False).print(reason, markup=False, soft_wrap=True)
        return EXIT_CODES[Status.REJECTED]
    truth = _point(given.at, certificate) if given.at else None
    plumdp.draw(kind, certificate, findings, truth=truth).save(output)
    print(json.dumps({"schema": "plumdp/plot/1", "files": [str(output)]}) if given.json else output)
    return 0


def _of_units(given: Options) -> Picture:
    """Return the picture of a table of units, and of what 80 % of such units reach, a share that nobody chose."""
    from plumdp.watching.shares import share_worse
    from plumdp.watching.units import read_units_table

    if given.data or not Path(given.model).is_file():
        raise DataError("plumdp plot units takes the file of a table, which certify --by -o wrote, such as it.parquet")
    return plumdp.draw("units", share_worse(read_units_table(given.model), share=_WORSE))


def _explained(given: Options) -> tuple[Certificate, Findings]:
    """Return the certificate of a folder, or that of a model and data, and what the picture shows of it."""
    if Path(given.model).is_dir():
        if given.data:
            raise DataError(f"{given.model} is the folder of a result, which needs no data: leave out {given.data[0]}")
        return explain_result(given.model, parts=[given.kind])
    require_data(given)
    read, objective = load_objective(given)
    learned = learn(given, read, [objective])
    certificate = plumdp.conclude(learned, objective)
    return certificate, plumdp.explain(learned, certificate, parts=[given.kind])


def _point(texts: Mapping[str, str], certificate: Certificate) -> Mapping[str, float]:
    unknown = [name for name in texts if name not in certificate.rests_on.parameters]
    if unknown:
        there_are = ", ".join(certificate.rests_on.parameters) or "none"
        raise DataError(f"--at {unknown[0]}={texts[unknown[0]]}: this is not a parameter; there are {there_are}")
    try:
        return {name: float(exact(value)) for name, value in texts.items()}
    except (ValueError, ZeroDivisionError):
        raise DataError("--at: give a number for each parameter, such as p=0.5,q=0.25") from None
