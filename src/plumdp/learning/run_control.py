"""Whole runs of practice as a control for the difference of another policy to it, in a table of unknown rows."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts
from plumdp.base.errors import DataError, ModelError, WhyNot
from plumdp.confidence.sets import Counted, Evidence
from plumdp.data.practice import known_policy
from plumdp.data.returns import choices_of, counts_torn, ends_of, outcomes_of
from plumdp.data.run_record import WholeRuns
from plumdp.learning.run_ends import RunEnds, silent
from plumdp.learning.run_evidence import CHOSEN, by_lot, missed_after, objective_of_runs
from plumdp.model.graph import Indices
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import as_choices, check_policy, normalised
from plumdp.model.question import PRACTICE, Question
from plumdp.model.unmodelled_exits import out_of_table_of
from plumdp.model.values import RowIndex
from plumdp.result.rungs import Ground
from plumdp.tables.control import Step, StepKinds, difference_by_runs
from plumdp.tables.values import ChainOfPolicy, chain_of_policy


def with_control(found: Evidence, given: Counted) -> Evidence:
    """Return evidence with bounds on the differences of policies to practice, of which whole runs bound one value."""
    asked = [question for question in given.questions if question.is_controlled]
    error = equal_parts(found.budget.error_of("controlled", given.error), len(asked))
    made = [_of_question(question, given, error) for question in asked]
    return replace(found, constraints=(*found.constraints, *made))


def _of_question(question: Question, given: Counted, error: float) -> RunEnds:
    """Return bounds on the value of a policy less that of practice, or none if runs or the chain say nothing."""
    graph = question.model.graph
    assert question.policy is not None
    own = as_choices(graph, check_policy(graph, question.policy))
    both = own, known_policy(question, given.counts, PRACTICE)
    try:
        lower, upper, cap = _ends(question, own, given, error)
    except (DataError, ModelError) as problem:
        return silent(question, both, str(problem), of_practice=True)
    # bets on runs go by an order of their own, so that data before the first bets on rows may not choose the policy
    return RunEnds(question, both, True, lower, upper, error, False, (CHOSEN,), cap=cap, ground=Ground.RIVAL_RUNS)


def _ends(question: Question, own: npt.NDArray[Any], given: Counted, error: float) -> tuple[float, float, float | None]:
    """Return both ends, infinite where nothing bounds them, and the cap of a run's total if there is one."""
    runs, model, graph = question.runs, given.model, question.model.graph
    if isinstance(runs, WhyNot) or missed_after(runs, given) or out_of_table_of(model) is not None:
        return -inf, inf, None
    objective = objective_of_runs(question, model)
    runs = runs if counts_torn(objective) else runs.complete()
    planned = len(runs) if runs.has_fixed_number else runs.expected
    chain = chain_of_policy(question.model, own, question.objective)
    if planned is None or isinstance(chain, WhyNot) or chain.reduced.sign < 0:
        return -inf, inf, None
    anything = normalised(graph, np.ones(graph.n_choices))  # every action is one that practice may take
    made = outcomes_of(objective, model, runs, graph, anything, return_range=runs.return_range)
    choice = choices_of(graph, anything, model, runs, ends_of(objective, runs, model.graph, None))
    kinds, steps = _steps(model, runs, choice, _choice_of_node(question, own, chain))
    order = by_lot(runs) if runs.has_fixed_number else np.arange(len(runs))
    ends = difference_by_runs(chain.table, made.take(order), steps.take(order), kinds, error, float(planned))
    return (-inf, inf, None) if isinstance(ends, WhyNot) else (*ends, made.cap)


def _choice_of_node(question: Question, own: npt.NDArray[Any], chain: ChainOfPolicy) -> Indices:
    """Return the choice of the counted model that is taken in each open node of a chain, and -1 where one is drawn."""
    graph, state = question.model.graph, chain.table.chain.state[: chain.table.n]
    choice = np.asarray(own)[state] if chain.reduced.keeps_states else state - graph.n_states
    counted = choice if graph.memory is None else graph.memory.choice[choice]
    return np.where(choice >= 0, counted, -1)


def _steps(model: ParametricMDP, runs: WholeRuns, choice: Indices, of_node: Indices) -> tuple[StepKinds, Step]:
    """Return the kinds of steps in a chain, and steps of runs whose outcomes are there, given the choice of each row.

    Each choice is a kind. The choice of rows after the end of a run is -1.
    """
    graph, taken = model.graph, np.unique(of_node[of_node >= 0])
    row = np.flatnonzero(np.isin(choice, taken))
    if runs.missing is not None:
        row = row[runs.missing[row + 1] == runs.missing[row]]
    of_steps = [np.asarray(each, dtype=np.int64) for each in (graph.choice_of_transition(), graph.successor)]
    index = RowIndex([graph.n_choices, graph.n_states], of_steps)
    place = np.asarray(model.expression)[index.find([choice[row].astype(np.int64), runs.state[row + 1]])]
    place = np.maximum(place - len(model.expressions.polynomials), -1)
    known, nothing = np.where(of_node >= 0, np.searchsorted(taken, of_node), -1), np.zeros(len(taken))
    steps = Step(runs.run[row], np.searchsorted(taken, choice[row]), place, np.zeros(len(row)))
    return StepKinds(known, nothing, nothing), steps
