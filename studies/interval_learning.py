"""Learning while acting as the paper does it, by intervals and its relaxations, for comparison with ``learn_online``.

The paper makes Clopper–Pearson intervals anew at each update, which fail more often than they say if somebody stops at
the worst update. Here intervals hold at all updates at once (beta-binomial), and each update keeps the earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import NamedTuple

import numpy as np

from plumdp.base.vocabulary import Relaxation
from plumdp.certifying.pipeline import conclude, relax
from plumdp.confidence.bounds import expression_bounds
from plumdp.confidence.sets import Evidence, whole_set
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned
from plumdp.model.events import find_events
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.online.environments import Environment
from plumdp.region.find import find_region
from plumdp.result.certificate import Certificate
from plumdp.solver.solve import solve
from studies.published_sets import ERROR


class IntervalRecord(NamedTuple):
    """What is certified after some episodes, by the names of ``OnlineRecord``."""

    episodes: int
    steps: int
    certificate: Certificate
    optimistic_bound: float
    true_value: float | None
    seconds: float

    @property
    def bound(self) -> float:
        """The certified value of the policy."""
        return self.certificate.claim.bound


def learn_by_intervals(
    model: ParametricMDP,
    environment: Environment,
    objective: Objective,
    *,
    episodes: int,
    relaxation: Relaxation = "rectangular",
    exploration: float = 0.0,
    spacing: float = 1.05,
) -> Iterator[IntervalRecord]:
    """Yield a record after each update; between updates it follows the policy that is best with nature at its best."""
    graph, counts, done, seconds = model.graph, np.zeros(model.graph.n_transitions, dtype=np.int64), 0, 0.0
    budget, events = whole_set(), None if model.is_table else find_events(model, factors=True)
    low, high = np.zeros(len(events or ())), np.ones(len(events or ()))
    learned: Learned | None = None
    while True:
        began = perf_counter()
        data = TransitionCounts(graph, counts.copy(), "adaptive")
        if model.is_table:  # data without an order have no bets
            learned = learn(model, data, like=learned)
        else:
            bounds = expression_bounds(model, data, error=budget.error_of_set(ERROR), events=events)
            low, high = np.maximum(low, bounds.event_lower), np.minimum(high, bounds.event_upper)
            evidence = Evidence.of("interval", bounds.moved_to(low, high), budget)
            region = find_region(model, evidence.constraints)
            solvers = {} if learned is None else learned.solvers
            learned = Learned(model, data, ERROR, evidence, region, {}, solvers=solvers)
        certificate = conclude(learned, objective, relaxation=relaxation, memory=False)
        best = solve(relax(learned, relaxation), objective, nature="optimistic")
        ends = best.upper if objective.direction == "max" else best.lower
        seconds += perf_counter() - began
        true_value = environment.true_value(certificate.policy.choice, objective)
        found = certificate, float(ends[graph.initial_state]), true_value, seconds
        yield IntervalRecord(done, int(counts.sum()), *found)
        if done >= episodes:
            return
        weights = exploration / np.diff(graph.first_choice)[graph.state_of_choice()]
        weights[best.policy] += 1 - exploration
        until = min(episodes, max(done + 1, int(np.ceil(spacing * done))))
        environment.run(weights, done, until, counts)
        done = until
