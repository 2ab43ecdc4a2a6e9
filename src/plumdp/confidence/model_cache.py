"""Keeps what learning needs of a model alone, whatever the data and the confidence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from plumdp.confidence.constants import FixedNumbers, find_fixed_numbers
from plumdp.confidence.contrasts import Contrast, find_contrasts, parts_by_action
from plumdp.confidence.likelihood_table import LikelihoodTable, likelihood_table
from plumdp.model.events import Events, find_events
from plumdp.model.parametric import ParametricMDP


@dataclass(frozen=True, eq=False)
class ModelCache:
    """Parts that depend on a model alone, each of which is found when it is first asked for, and kept."""

    model: ParametricMDP

    @cached_property
    def events(self) -> Events:
        """The events of the model, with factors."""
        return find_events(self.model, factors=True)

    @cached_property
    def table(self) -> LikelihoodTable:
        """The likelihood as a table of affine outcomes."""
        return likelihood_table(self.model)

    @cached_property
    def fixed(self) -> FixedNumbers:
        """The numbers that the model fixes."""
        return find_fixed_numbers(self.model)

    @cached_property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The ways in which rows may differ, also for single actions."""
        contrasts = find_contrasts(self.model)
        return (*contrasts, *parts_by_action(self.model, contrasts))
