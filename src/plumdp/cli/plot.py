"""``plumdp plot``: a picture of what the data say, from a model and data, or from a saved result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli.inputs import learn, load_objective, require_data
from plumdp.cli.options import Options
from plumdp.cli.outputs import require_new
from plumdp.cli.results import EXIT_CODES
from plumdp.reporting.read import explain_result

if TYPE_CHECKING:
    from plumdp.result.findings import Findings

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
    certificate, findings = _explained(given)
    if certificate.status == Status.CONTRADICTED and kind in _OF_REGION:
        reason = f"the data contradict the model, so that there is no {kind} to draw: {certificate.reason}"
        Console(stderr=True, highlight=False).print(reason, markup=False, soft_wrap=True)
        return EXIT_CODES[Status.CONTRADICTED]
    truth = _point(given.at, certificate) if given.at else None
    plumdp.draw(kind, certificate, findings, truth=truth).save(output)
    print(json.dumps({"schema": "plumdp/plot/1", "files": [str(output)]}) if given.json else output)
    return 0


def _explained(given: Options) -> tuple[plumdp.Certificate, Findings]:
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


def _point(texts: Mapping[str, str], certificate: plumdp.Certificate) -> Mapping[str, float]:
    unknown = [name for name in texts if name not in certificate.parameters]
    if unknown:
        there_are = ", ".join(certificate.parameters) or "none"
        raise DataError(f"--at {unknown[0]}={texts[unknown[0]]}: this is not a parameter; there are {there_are}")
    try:
        return {name: float(Fraction(value)) for name, value in texts.items()}
    except (ValueError, ZeroDivisionError):
        raise DataError("--at: give a number for each parameter, such as p=0.5,q=0.25") from None
