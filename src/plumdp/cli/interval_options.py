"""Which interval model is meant: a file, or a parametric model at a point; shared by ``solve`` and ``export``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from plumdp import library
from plumdp.base.errors import ModelError
from plumdp.cli import arguments
from plumdp.cli.arguments import pairs
from plumdp.cli.progress import LOGGER
from plumdp.cli.sources import chosen_properties, read_properties

At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="NAME=VALUE", help="Take a parametric model at this point of its parameters."),
]


@dataclass(frozen=True)
class IntervalModelOptions:
    """An interval model, and where a parametric one is taken."""

    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="An interval model: .umb, .tra, .drn, or a PRISM file with intervals such as [0.5,0.8]. With --at, "
            "any other model or case study.",
        ),
    ]
    constant: arguments.Constants = None
    at: At = None

    def load(self) -> tuple[library.IntervalModel, list[str]]:
        """Return the model, and the properties that come with it."""
        LOGGER.info("reading the model %s", self.model)
        if self.at or library.is_case_study(self.model):
            read, properties = arguments.load(self.model, self.constant or [])
            point = pairs("--at", self.at or []) or library.case_study(self.model).true_point
            return library.model_at(read, point), properties
        path = Path(self.model)
        if not path.is_file():
            raise ModelError(f"{self.model}: there is no such file, and no case study of this name (try betting:50)")
        constants = pairs("--constant", self.constant or [])
        return library.read_interval_model(path, constants=constants), read_properties(path)

    def ask(self, text: str | None) -> tuple[library.IntervalModel, library.Objective | library.Threshold]:
        """Return the model, and what is asked: the given text, or the only property that comes with the model."""
        model, properties = self.load()
        if text is None and len(properties) != 1:
            known = f"which of these is asked: {'; '.join(properties)}" if properties else "what is asked"
            none = "" if properties else "no property comes with the model; "
            raise ModelError(f"{self.model}: {none}say with --property {known}")
        (chosen,) = properties if text is None else chosen_properties(self.model, [text], properties)
        return model, library.as_question(chosen, model)


def is_interval_file(model: str) -> bool:
    """Return whether a text names a file of an interval model, by its ending."""
    ending = Path(model).suffix.lower()
    return ending in library.INTERVAL_READERS and ending not in library.LANGUAGES
