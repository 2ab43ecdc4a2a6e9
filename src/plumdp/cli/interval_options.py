"""Which interval model is meant: a file, or a parametric model at a point; shared by ``solve`` and ``export``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import plumdp
from plumdp.base.errors import ModelError
from plumdp.cli import arguments
from plumdp.cli.arguments import pairs
from plumdp.cli.progress import LOGGER
from plumdp.cli.sources import chosen_properties, read_properties

if TYPE_CHECKING:
    from plumdp.model.language.threshold import Threshold
    from plumdp.model.objective import Objective


@dataclass(frozen=True)
class IntervalModelOptions:
    """An interval model, and where a parametric one is taken."""

    model: str
    constant: Sequence[str] | None
    at: Sequence[str] | None

    def load(self) -> tuple[plumdp.exchange.IntervalModel, list[str]]:
        """Return the model, and the properties that come with it."""
        from plumdp.case_studies import is_case_study

        LOGGER.info("reading the model %s", self.model)
        if self.at or is_case_study(self.model):
            read, properties = arguments.load(self.model, self.constant or [])
            point = pairs("--at", self.at or []) or plumdp.case_study(self.model).true_point
            return plumdp.exchange.model_at(read, point), properties
        path = Path(self.model)
        if not path.is_file():
            raise ModelError(f"{self.model}: there is no such file, and no case study of this name (try betting:50)")
        constants = pairs("--constant", self.constant or [])
        return plumdp.exchange.read_interval_model(path, constants=constants), read_properties(path)

    def ask(self, text: str | None) -> tuple[plumdp.exchange.IntervalModel, Objective | Threshold]:
        """Return the model, and what is asked: the given text, or the only property that comes with the model."""
        from plumdp.model.language.threshold import as_question

        model, properties = self.load()
        if text is None and len(properties) != 1:
            expected = f"which of these is asked: {'; '.join(properties)}" if properties else "what is asked"
            none = "" if properties else "no property comes with the model; "
            raise ModelError(f"{self.model}: {none}say with --property {expected}")
        (chosen,) = properties if text is None else chosen_properties(self.model, [text], properties)
        return model, as_question(chosen, model)


def is_interval_file(model: str) -> bool:
    """Return whether a text names a file of an interval model, by its ending."""
    from plumdp.exchange.read_intervals import INTERVAL_READERS, LANGUAGES

    ending = Path(model).suffix.lower()
    return ending in INTERVAL_READERS and ending not in LANGUAGES
