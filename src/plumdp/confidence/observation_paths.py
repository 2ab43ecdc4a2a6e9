"""Writes the outcomes of observations as sums over the hidden paths that lead there.

Affine expressions of single steps are factors, and so are the factors of others. With a variable for each of them,
powers of the matrix of single steps are polynomials whose terms are paths, those with the same factors as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from plumdp.confidence.path_sums import HiddenPath, PathSum, find_path_sums, total
from plumdp.confidence.space_moments import is_nonnegative
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.gaps import Row, action_after, copies_of, partly, rows_after
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

_MOST = 400  # paths to an outcome, of which more take too long


def sums_of_observations(model: ParametricMDP) -> dict[Polynomial, PathSum]:
    """Return the outcomes of a model whose choices are observations as sums over paths, those that have few."""
    assert model.gaps is not None
    graph, gaps, polynomials = model.graph, model.gaps, model.expressions.polynomials
    single, transitions = graph.take(np.flatnonzero(gaps == 1))
    factors: dict[Polynomial, Polynomial] = {}
    steps: list[Row] = []
    for start, end in pairwise(single.first_transition.tolist()):
        row = _in_factors([polynomials[f] for f in model.expression[transitions[start:end]]], model.space, factors)
        if row is None:
            return {}
        steps.append(dict(zip(single.successor[start:end].tolist(), row, strict=True)))
    found: dict[Polynomial, PathSum] = {}
    longer, state, longest = np.flatnonzero(gaps != 1), graph.state_of_choice(), int(gaps.max())
    other = graph.n_states - 1
    copies = copies_of(other - len(model.ends) * (longest - 1), model.ends, longest)
    for action in np.unique(single.action).tolist():
        rows = rows_after(single, steps, action, longest, copies)
        for choice in longer.tolist():
            if graph.action_names[graph.action[choice]] == action_after(graph.action_names[action], int(gaps[choice])):
                outcomes: Row = rows[abs(int(gaps[choice]))][int(state[choice])]
                outcomes = outcomes if gaps[choice] > 0 else partly(outcomes, copies, other) or {}
                for t in range(*graph.first_transition[choice : choice + 2].tolist()):
                    outcome = polynomials[model.expression[t]]
                    if outcome not in found:
                        paths = _paths(outcomes[int(graph.successor[t])], factors)
                        found |= {outcome: paths} if len(paths) <= _MOST and total(paths) == outcome else {}
    return found


def _in_factors(
    row: Sequence[Polynomial], space: ParameterSpace, factors: dict[Polynomial, Polynomial]
) -> list[Polynomial] | None:
    """Return a row of single steps in variables for factors that are at least zero on the space, or None."""
    if all(f.is_constant or (f.is_affine and is_nonnegative(f, space)) for f in row):
        sums: list[PathSum] | None = [
            (HiddenPath(f.constant, ()) if f.is_constant else HiddenPath(Fraction(1), ((f, 1),)),) for f in row
        ]
    else:
        sums = find_path_sums(row, space)
    for paths in sums or ():
        for f, _ in (each for path in paths for each in path.factors):
            factors.setdefault(f, parameters(f"factor_{len(factors)}")[0])
    formal = [
        [HiddenPath(c, tuple((factors[f], n) for f, n in of_path)) for c, of_path in paths] for paths in sums or ()
    ]
    return None if sums is None else [total(tuple(paths)) for paths in formal]


def _paths(formal: Polynomial, factors: dict[Polynomial, Polynomial]) -> PathSum:
    """Return a polynomial in variables for factors as a sum over paths."""
    names = {str(variable): f for f, variable in factors.items()}
    return tuple(
        HiddenPath(constant, tuple((names[name], n) for name, n in zip(names, powers, strict=True) if n))
        for powers, constant in formal.terms(tuple(names)).items()
    )
