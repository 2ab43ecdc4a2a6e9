"""``plumdp plot``: a picture of what the data say, from a model and data, or from a saved result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli.inputs import learn, load_objective, require_data
from plumdp.cli.options import Options
from plumdp.cli.outputs import require_new
from plumdp.cli.results import EXIT_CODES
from plumdp.model.graph import Graph
from plumdp.reporting.read import explain_result

if TYPE_CHECKING:
    from plumdp.result.findings import Findings

_OF_REGION = ("ladder", "region", "expressions", "advice")


def plot(given: Options) -> int:
    """Draw a picture of one kind, of a model and data, a saved result, or records; 3 if there is nothing to draw."""
    from plumdp.plots.style import require_format

    kind, output = given.kind, given.output
    assert output is not None
    require_format(output)
    require_new(output, force=given.force)
    for name, of_kind in (("axes", "policy"), ("at", "region")):
        if getattr(given, name) and kind != of_kind:
            raise DataError(f"--{name} is for plumdp plot {of_kind}; leave it out for {kind}")
    if kind == "online":
        picture = plumdp.draw(kind, _online([given.model, *given.data]))
    else:
        certificate, findings = _explained(given)
        if certificate.status == Status.CONTRADICTED and kind in _OF_REGION:
            reason = f"the data contradict the model, so that there is no {kind} to draw: {certificate.reason}"
            Console(stderr=True, highlight=False).print(reason, markup=False, soft_wrap=True)
            return EXIT_CODES[Status.CONTRADICTED]
        x, y, fixed = _view(given.axes, certificate.policy.graph)
        truth = _point(given.at, certificate) if given.at else None
        picture = plumdp.draw(kind, certificate, findings, truth=truth, x=x, y=y, fixed=fixed)
    picture.save(output)
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


def _online(files: list[str]) -> Any:
    """Return one or several records of one property."""
    runs = {Path(file).stem: plumdp.online.read_record(file) for file in files}
    texts = {run.objective for run in runs.values()}
    if len(texts) > 1:
        raise DataError(f"these records are of different properties: {'; '.join(sorted(texts))}")
    return runs if len(runs) > 1 else next(iter(runs.values()))


def _view(text: str, graph: Graph) -> tuple[str | None, str | None, dict[str, Any] | None]:
    """Return the variables to the right and upwards, and values of others in the kinds that they have."""
    axes: list[str] = []
    fixed: dict[str, Any] = {}
    for part in text.split(",") if text else []:
        name, equals, given = (word.strip() for word in part.partition("="))
        if name not in graph.states:
            raise DataError(f"--axes {text}: {name} is not a state variable; there are {', '.join(graph.states)}")
        by_text = {str(value).lower(): value for value in graph.states[name].tolist()}
        if not equals:
            axes.append(name)
        elif given.lower() in by_text:
            fixed[name] = by_text[given.lower()]
        else:
            raise DataError(f"--axes {text}: no state has {name}={given}")
    if len(axes) > 2:
        raise DataError(f"--axes {text}: name one or two variables, and give a value to others, as in x,y,load=2")
    x, y, *_ = [*axes, None, None]
    return x, y, fixed or None


def _point(texts: Mapping[str, str], certificate: plumdp.Certificate) -> Mapping[str, float]:
    unknown = [name for name in texts if name not in certificate.parameters]
    if unknown:
        there_are = ", ".join(certificate.parameters) or "none"
        raise DataError(f"--at {unknown[0]}={texts[unknown[0]]}: this is not a parameter; there are {there_are}")
    try:
        return {name: float(Fraction(value)) for name, value in texts.items()}
    except (ValueError, ZeroDivisionError):
        raise DataError("--at: give a number for each parameter, such as p=0.5,q=0.25") from None
