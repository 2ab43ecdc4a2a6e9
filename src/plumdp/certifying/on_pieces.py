"""The prover of bounds on pieces of the region, each with one point for all states."""

from __future__ import annotations

import numpy as np

from plumdp.base.errors import UNSAID, WhyNot
from plumdp.certifying.valuation import Proofs, Sought
from plumdp.confidence.path_evidence import LiftedConstraints
from plumdp.confidence.path_likelihood import PathLevelSet
from plumdp.learning.learned import Learned
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region.box_forms import Inequality
from plumdp.region.boxes import Slack
from plumdp.region.cutting import MATTERS
from plumdp.solver.coupled.bounds import Proof
from plumdp.solver.coupled.pieces import find_by_pieces

_MOST_STATES = 1_000_000  # of a model, one policy of which may reach few


def by_pieces(sought: Sought, proofs: Proofs) -> Proof | WhyNot:
    """Return bounds with one point for all states on pieces of the region, where an expansion on all of it is poor."""
    question, region = sought.question, sought.learned.with_points(sought.question.model)
    whole = proofs.get("expansion")
    slacks = slacks_of(sought.learned)
    is_good = whole is not None and not slacks and whole.remainder <= MATTERS * (whole.upper - whole.lower)
    if is_good or region is None or question.model.graph.n_states > _MOST_STATES:
        return UNSAID
    rest = question.objective, region, sought.uncertain
    found = find_by_pieces(question.model, sought.policy, *rest, less=sought.less, slacks=slacks)
    return UNSAID if isinstance(found, WhyNot) else found  # why there is no expansion at all is said already


def slacks_of(learned: Learned) -> list[Slack]:
    """Return the slacks of sets that the region does not hold as half-spaces."""
    names, found = learned.model.space.names, list[Slack]()
    found += [each for each in learned.bounds.of_kind(PathLevelSet) if each.threshold > -np.inf]
    for each in learned.bounds.of_kind(LiftedConstraints):
        for polynomial, offset, _ in each.inequalities(names):
            found.append(Inequality(ExpressionTable.build([polynomial], names), offset))
    return found
