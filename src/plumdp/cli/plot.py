"""``plumdp plot``: a picture of what the data say, from a model and data, or from a saved result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli import arguments as args
from plumdp.cli.options import LogOptions, ModelOptions, SetOptions, load_with_one_property, require_new
from plumdp.cli.results import EXIT_CODES

if TYPE_CHECKING:
    from plumdp.result.findings import Findings


Kind = Literal["ladder", "region", "expressions", "policy", "advice", "model", "residuals", "online"]


_Kind = Annotated[Kind, typer.Argument(metavar="KIND", help="What is drawn: ladder, region, expressions, …")]
_Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")]
_X = Annotated[str | None, typer.Option("--x", metavar="NAME", help="Of a policy: the variable to the right.")]
_Y = Annotated[str | None, typer.Option("--y", metavar="NAME", help="Of a policy: the variable upwards.")]
_Fix = Annotated[
    list[str] | None, typer.Option("--fix", metavar="NAME=VALUE", help="Of a policy: the value of another variable.")
]
_Truth = Annotated[
    str | None,
    typer.Option("--truth", metavar="VALUE", help="What is known to be true: a value, or of a region NAME=VALUE,…"),
]


def plot(
    *,
    kind: _Kind,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.OptionalData = None, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    property: args.Property = None,
    confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    misfit: args.Misfit = 0.0, evidence: args.Evidence = None,
    output: _Output, force: args.ReplaceFile = False, x: _X = None, y: _Y = None, fix: _Fix = None,
    truth: _Truth = None, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Draw bounds of relaxations, the region, expressions, the policy, advice, the model, residuals, or learning.

    MODEL may also be the folder of a saved result, and for online records of plumdp online. Kinds: ladder (what each
    relaxation certifies), region (the parameters that explain the data), expressions (each unknown probability),
    policy (over two state variables), advice (where more data help), model (a small one as a graph), residuals (where
    data and model differ), online (bounds over runs). Ends with 0, or with 3 if the data contradict the model.
    """
    from plumdp.plots.style import require_format

    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    sets = SetOptions(confidence, confidence_set, misfit, evidence)
    require_format(output)
    require_new(output, force=force)
    _require_options(kind, {"--x": x, "--y": y, "--fix": fix}, truth)
    if kind == "online":
        picture = plumdp.draw(kind, _online([model, *(data or [])]), truth=_number(kind, truth))
    else:
        certificate, findings = _explained(kind, ModelOptions(model, constant, space), log, property, sets)
        _require_region(kind, certificate)
        true_value = _point(truth) if kind == "region" else _number(kind, truth)
        fixed = _values(certificate.policy.graph, fix or []) or None
        _require_variables(certificate, {"--x": x, "--y": y})
        if kind == "region":
            _require_parameters(certificate, truth)
        picture = plumdp.draw(kind, certificate, findings, truth=true_value, x=x, y=y, fixed=fixed)
    picture.save(output)
    print(json.dumps({"schema": "plumdp/plot/1", "files": [str(output)]}) if as_json else output)


def _require_options(kind: Kind, of_policy: Mapping[str, object], truth: str | None) -> None:
    """Refuse options of other kinds."""
    for option, value in of_policy.items():
        if value and kind != "policy":
            raise DataError(f"{option} is for plumdp plot policy; leave it out for {kind}")
    if truth is not None and kind not in ("ladder", "region", "online"):
        raise DataError(f"--truth is for ladder, region and online; leave it out for {kind}")


def _explained(
    kind: Kind, model: ModelOptions, log: LogOptions, property: str | None, sets: SetOptions
) -> tuple[plumdp.Certificate, Findings]:
    """Return the certificate of a folder, or that of a model and data, and what the picture shows of it."""
    if Path(model.model).is_dir():
        if log.data:
            raise DataError(f"{model.model} is the folder of a result, which needs no data: leave out {log.data[0]}")
        return plumdp.explain_result(model.model, parts=[kind])
    log.require_data(model.model)
    read, objective = load_with_one_property(model, property)
    learned = sets.learn(read, log.read(read), [objective])
    certificate = plumdp.conclude(learned, objective)
    return certificate, plumdp.explain(learned, certificate, parts=[kind])


def _online(files: list[str]) -> Any:
    """Return one or several records of one property."""
    runs = {Path(file).stem: plumdp.online.read_record(file) for file in files}
    texts = {run.objective for run in runs.values()}
    if len(texts) > 1:
        raise DataError(f"these records are of different properties: {'; '.join(sorted(texts))}")
    return runs if len(runs) > 1 else next(iter(runs.values()))


def _number(kind: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        raise DataError(f"--truth {text}: give a number, the true value, for {kind}") from None


def _point(text: str | None) -> Mapping[str, float] | None:
    if text is None:
        return None
    try:
        return {name: float(Fraction(value)) for name, value in args.pairs("--truth", [text]).items()}
    except (ValueError, ZeroDivisionError):
        raise DataError(f"--truth {text}: give a number for each parameter, such as p=0.5,q=0.25") from None


def _require_region(kind: Kind, certificate: plumdp.Certificate) -> None:
    """End with 3 if there is nothing to draw because the data contradict the model."""
    if certificate.status == Status.CONTRADICTED and kind in ("ladder", "region", "expressions", "advice"):
        from rich.console import Console

        reason = f"the data contradict the model, so that there is no {kind} to draw: {certificate.reason}"
        Console(stderr=True, highlight=False).print(reason, markup=False, soft_wrap=True)
        raise typer.Exit(EXIT_CODES[Status.CONTRADICTED])


def _require_variables(certificate: plumdp.Certificate, names: Mapping[str, str | None]) -> None:
    """Refuse variables that there are not."""
    variables = certificate.policy.graph.states
    for option, name in names.items():
        if name is not None and name not in variables:
            raise DataError(f"{option} {name}: not a state variable; there are {', '.join(variables)}")


def _require_parameters(certificate: plumdp.Certificate, truth: str | None) -> None:
    """Refuse parameters that there are not."""
    for name in _point(truth) or ():
        if name not in certificate.parameters:
            there_are = ", ".join(certificate.parameters) or "none"
            raise DataError(f"--truth {truth}: {name} is not a parameter; there are {there_are}")


def _values(graph: plumdp.model.Graph, texts: list[str]) -> dict[str, Any]:
    """Return values of state variables in the kinds that the variables have."""
    values: dict[str, Any] = {}
    for name, text in args.pairs("--fix", texts).items():
        if name not in graph.states:
            raise DataError(f"--fix {name}={text}: {name} is not a state variable; there are {', '.join(graph.states)}")
        by_text = {str(value).lower(): value for value in graph.states[name].tolist()}
        if text.lower() not in by_text:
            raise DataError(f"--fix {name}={text}: no state has this value of {name}")
        values[name] = by_text[text.lower()]
    return values
