"""The stages of ``certify``, one function at a time: region, relaxation, solver."""

from plumdp.region.build import build_region as build_region
from plumdp.relaxation.intervals import instantiate as instantiate
from plumdp.stages.solving import evaluate as evaluate
from plumdp.stages.solving import solve as solve
