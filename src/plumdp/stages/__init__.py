"""The stages of ``certify``, one function at a time: region, relaxation, solver."""

from plumdp.region.build import build_region
from plumdp.relaxation.intervals import instantiate
from plumdp.stages.solving import evaluate, solve

__all__ = ["build_region", "evaluate", "instantiate", "solve"]
