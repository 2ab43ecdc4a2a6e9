"""Makes the part of ``Findings`` about the probabilities of a table, in the order of how much their rows matter."""

from __future__ import annotations

import numpy as np

from plumdp.base.errors import DataError
from plumdp.explaining.table_design import table_question
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray
from plumdp.model.policy import Policy
from plumdp.model.question import Question
from plumdp.result.findings import ExpressionRow
from plumdp.tables.table_set import TableSet


def table_rows(learned: Learned, asked: Question, policy: Policy, *, most: int = 200) -> tuple[ExpressionRow, ...]:
    """Return bounds on the probabilities of unknown rows, first those of rows that limit the width most."""
    model, bounds = learned.model.counted, learned.bounds
    assert isinstance(bounds, TableSet)
    graph, rows = model.graph, model.rows
    seen = rows.sum_by_place(learned.counts.counts)
    visits = rows.sum_by_row(seen)
    found = []
    for row in np.argsort(-_importance(learned, asked, policy, visits), kind="stable").tolist():
        if not model.is_free_row[row]:
            continue
        choice = graph.describe_choice(int(rows.representative[row]))
        for place in range(rows.first[row], rows.first[row + 1]):
            transition = rows.transition[place]
            f, to = int(model.expression[transition]), graph.describe_state(int(graph.successor[transition]))
            ends = float(bounds.lower[f]), float(bounds.upper[f])
            share = float(np.clip(seen[place] / visits[row], *ends)) if visits[row] else None
            found.append(ExpressionRow(f"{choice}, to ({to})", *ends, share, int(visits[row]), int(seen[place])))
        if len(found) >= most:
            break
    return tuple(found[:most])


def _importance(learned: Learned, asked: Question, policy: Policy, visits: FloatArray) -> FloatArray:
    """Return the share of the variance of each row (n_rows), or its visits where the value says nothing about rows."""
    try:
        question = table_question(learned, asked, policy)
    except DataError:
        return visits
    return np.asarray(question.class_rates(visits) * (visits + 1))
