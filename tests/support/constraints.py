"""The constraints of evidence by kind, for tests that look at them."""

from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.likelihood import LevelSet, LinearConstraints


def likelihood_of(found):
    """Return the likelihood that the region is made of."""
    return found.of_kind(LevelSet)[0]


def half_spaces_of(found):
    """Return the half-spaces across directions."""
    return found.of_kind(LinearConstraints)[0]


def across_outcomes_of(found):
    """Return the half-spaces across outcomes."""
    return found.of_kind(LinearConstraints)[1]


def strips_of(found):
    """Return the intervals of events."""
    return found.of_kind(ExpressionBounds)[0]
