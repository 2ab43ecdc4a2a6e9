"""Makes normal laws of the parameters that are fixed before the data they are used for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plumdp.confidence.estimates import estimate_inside, information, with_pseudo_counts
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.space_moments import moments
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.parametric import ParametricMDP

SPACE_AS_DATA = 1e-3  # weight of the space's precision in the information, so that it is never singular


class Law(NamedTuple):
    """A normal law of the parameters."""

    mean: FloatArray  # (d)
    precision: FloatArray  # (d, d)


def law_of_space(model: ParametricMDP) -> Law:
    """Return the normal law with the mean and the covariance of the uniform law on the space."""
    mean, covariance = moments(model.space)
    return Law(mean, np.asarray(np.linalg.inv(covariance), dtype=np.float64))


def law_of_pilot(table: LikelihoodTable, pilot: FloatArray, space: Law) -> Law:
    """Return the normal law about the estimate of a pilot (n_outcomes), with its precision and the space as a prior."""
    mean, pseudo = estimate_inside(table, pilot, prior=space)
    weights = with_pseudo_counts(table, pilot, pseudo)
    return Law(read_only(mean), information(table, weights, mean) + space.precision)
