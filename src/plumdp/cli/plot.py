"""``plumdp plot``: a picture of what the data say, from a model and data, or from a saved result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from plumdp import library
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli import arguments
from plumdp.cli.groups import with_options
from plumdp.cli.options import ModelOptions, OnePropertyOptions, OptionalLogOptions, SetOptions, require_new
from plumdp.cli.results import EXIT_CODES

Kind = Literal["ladder", "region", "expressions", "policy", "advice", "model", "residuals", "online"]


@dataclass(frozen=True)
class PictureOptions:
    """What is shown, and where it is written."""

    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")]
    force: Annotated[bool, typer.Option("--force", help="Replace the file of an earlier run.")] = False
    x: Annotated[str | None, typer.Option("--x", metavar="NAME", help="Of a policy: the variable to the right.")] = None
    y: Annotated[str | None, typer.Option("--y", metavar="NAME", help="Of a policy: the variable upwards.")] = None
    fix: Annotated[
        list[str] | None,
        typer.Option("--fix", metavar="NAME=VALUE", help="Of a policy: the value of another variable."),
    ] = None
    truth: Annotated[
        str | None,
        typer.Option("--truth", metavar="VALUE", help="What is known to be true: a value, or of a region NAME=VALUE,…"),
    ] = None

    def __post_init__(self) -> None:
        library.require_format(self.output)
        require_new(self.output, force=self.force)


@with_options
def plot(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="What is drawn: ladder, region, expressions, …")],
    model: ModelOptions,
    log: OptionalLogOptions,
    asked: OnePropertyOptions,
    sets: SetOptions,
    picture: PictureOptions,
) -> None:
    """Draw bounds of relaxations, the region, expressions, the policy, advice, the model, residuals, or learning.

    MODEL may also be the folder of a saved result, and for online records of plumdp online. Kinds: ladder (what each
    relaxation certifies), region (the parameters that explain the data), expressions (each unknown probability),
    policy (over two state variables), advice (where more data help), model (a small one as a graph), residuals (where
    data and model differ), online (bounds over runs). Ends with 0, or with 3 if the data contradict the model.
    """
    require_options(kind, picture)
    if kind == "online":
        figure = _online([model.model, *(log.data or [])], _number(kind, picture.truth))
    else:
        certificate = _certificate(model, log, asked, sets)
        _require_region(kind, certificate)
        truth = _point(picture.truth) if kind == "region" else _number(kind, picture.truth)
        fixed = _values(certificate.policy.graph, picture.fix or [])
        _require_names(certificate, picture, truth if kind == "region" else None)
        figure = library.figure_of(kind, certificate, truth=truth, x=picture.x, y=picture.y, fixed=fixed)
    library.write_figure(figure, picture.output)
    print(picture.output)


def require_options(kind: Kind, picture: PictureOptions) -> None:
    """Refuse options of other kinds."""
    for option, value in (("--x", picture.x), ("--y", picture.y), ("--fix", picture.fix)):
        if value and kind != "policy":
            raise DataError(f"{option} is for plumdp plot policy; leave it out for {kind}")
    if picture.truth is not None and kind not in ("ladder", "region", "online"):
        raise DataError(f"--truth is for ladder, region and online; leave it out for {kind}")


def _certificate(
    model: ModelOptions, log: OptionalLogOptions, asked: OnePropertyOptions, sets: SetOptions
) -> library.Certificate:
    """Return the certificate of a folder, or that of a model and data."""
    if Path(model.model).is_dir():
        if log.data:
            raise DataError(f"{model.model} is the folder of a result, which needs no data: leave out {log.data[0]}")

        return library.read_result(model.model)
    data = log.given(model.model)
    read, objective = asked.load(model)
    return library.conclude(sets.learn(read, data.read(read), [objective]), objective)


def _online(files: list[str], truth: float | None) -> Any:
    """Return the figure of one or several records."""

    runs = {Path(file).stem: library.read_record(file) for file in files}
    texts = {run.objective for run in runs.values()}
    if len(texts) > 1:
        raise DataError(f"these records are of different properties: {'; '.join(sorted(texts))}")
    records = {name: run.records for name, run in runs.items()}
    shown = records if len(records) > 1 else next(iter(records.values()))
    with library.styled():
        return library.online_figure(shown, objective=texts.pop(), truth=truth)


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
    pairs = arguments.pairs("--truth", [text])
    try:
        return {name: float(Fraction(value)) for name, value in pairs.items()}
    except (ValueError, ZeroDivisionError):
        raise DataError(f"--truth {text}: give a number for each parameter, such as p=0.5,q=0.25") from None


def _require_region(kind: Kind, certificate: library.Certificate) -> None:
    """End with 3 if there is nothing to draw because the data contradict the model."""
    if certificate.status == Status.CONTRADICTED and kind in ("ladder", "region", "expressions", "advice"):
        from rich.console import Console

        reason = f"the data contradict the model, so that there is no {kind} to draw: {certificate.reason}"
        Console(stderr=True, highlight=False).print(reason, markup=False, soft_wrap=True)
        raise typer.Exit(EXIT_CODES[Status.CONTRADICTED])


def _require_names(certificate: library.Certificate, picture: PictureOptions, truth: Any) -> None:
    """Refuse variables and parameters that there are not."""
    variables = certificate.policy.graph.states
    for option, name in (("--x", picture.x), ("--y", picture.y)):
        if name is not None and name not in variables:
            raise DataError(f"{option} {name}: not a state variable; there are {', '.join(variables)}")
    for name in truth or ():
        if name not in certificate.parameters:
            known = ", ".join(certificate.parameters) or "none"
            raise DataError(f"--truth {picture.truth}: {name} is not a parameter; there are {known}")


def _values(graph: library.Graph, texts: list[str]) -> dict[str, Any]:
    """Return values of state variables in the kinds that the variables have."""
    found: dict[str, Any] = {}
    for name, text in arguments.pairs("--fix", texts).items():
        if name not in graph.states:
            raise DataError(f"--fix {name}={text}: {name} is not a state variable; there are {', '.join(graph.states)}")
        known = {str(value).lower(): value for value in graph.states[name].tolist()}
        if text.lower() not in known:
            raise DataError(f"--fix {name}={text}: no state has this value of {name}")
        found[name] = known[text.lower()]
    return found
