"""The stages of ``certify``, one function at a time: region, relaxation, solver."""

from plumdp.region.build import build_region as build_region
from plumdp.relaxation.intervals import instantiate as instantiate
from plumdp.solver.evaluate import evaluate as evaluate
from plumdp.solver.solve import solve as solve
