"""The stages of ``certify``, one function at a time: bounds, region, relaxation, solver."""

from plumdp.confidence.bounds import ExpressionBounds as ExpressionBounds
from plumdp.confidence.bounds import expression_bounds as expression_bounds
from plumdp.region.build import build_region as build_region
from plumdp.region.build import project as project
from plumdp.region.conflict import Conflict as Conflict
from plumdp.region.shapes import Polytope as Polytope
from plumdp.relaxation.intervals import IntervalMDP as IntervalMDP
from plumdp.relaxation.intervals import instantiate as instantiate
from plumdp.relaxation.relax import expression_wise as expression_wise
from plumdp.relaxation.relax import interval_wise as interval_wise
from plumdp.relaxation.relax import parameter_wise as parameter_wise
from plumdp.relaxation.relax import rectangular as rectangular
from plumdp.solver.evaluate import evaluate as evaluate
from plumdp.solver.prepared import Prepared as Prepared
from plumdp.solver.prepared import prepare as prepare
from plumdp.solver.problem import Solution as Solution
from plumdp.solver.solve import solve as solve
