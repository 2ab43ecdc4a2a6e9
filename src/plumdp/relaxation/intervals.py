"""Interval MDPs: a graph whose transitions have probabilities between two bounds, looked up per expression."""

from __future__ import annotations

from dataclasses import dataclass

from plumdp.model.graph import FloatArray, Graph, IntArray, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import Point


@dataclass(frozen=True, eq=False)
class IntervalMDP:
    """A graph with a lower and an upper bound for each expression; transition ``t`` has those of ``expression[t]``."""

    graph: Graph
    expression: IntArray  # (n_transitions)
    lower: FloatArray  # (n_expressions)
    upper: FloatArray  # (n_expressions)


def instantiate(model: ParametricMDP, point: Point) -> IntervalMDP:
    """Return the Markov decision process at a point of the space, as intervals with lower = upper.

    Each probability is the exact value of its expression, rounded to the nearest float.

    >>> from plumdp import benchmark
    >>> study = benchmark("betting:25")
    >>> mdp = instantiate(study.model, study.true_point)
    >>> bool((mdp.lower == mdp.upper).all())
    True
    """
    probability = read_only(model.probabilities(point))
    return IntervalMDP(model.graph, model.expression, probability, probability)
