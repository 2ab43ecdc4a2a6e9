"""The provers of bounds in tables of unknown rows: by bets on values, and by the intervals of rows."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from plumdp.base.errors import UNSAID, WhyNot
from plumdp.certifying.valuation import Proofs, Sought, by_nature
from plumdp.model.graph import FloatArray
from plumdp.solver.coupled.bounds import Proof
from plumdp.tables.table_set import bounds_by_bets
from plumdp.tables.values import difference_by_intervals


def by_bets(sought: Sought, proofs: Proofs) -> Proof | WhyNot:
    """Return bounds by bets on temporal differences, if the set has placed any."""

    def nature(policy: npt.NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        return by_nature(sought, proofs, policy)

    return bounds_by_bets(sought.learned.bounds, sought.question, sought.choices, nature)


def by_intervals(sought: Sought, proofs: Proofs) -> Proof | WhyNot:
    """Return bounds on a difference in a table by the intervals of its rows, from runs that move together."""
    if sought.less is None or sought.uncertain.model_tolerance or not sought.question.model.counted.is_table:
        return UNSAID
    question, (first, second) = sought.question, sought.choices
    bounded = [(policy, *by_nature(sought, proofs, policy)) for policy in (first, second)]
    return difference_by_intervals(question.model, question.objective, sought.uncertain, *bounded)
