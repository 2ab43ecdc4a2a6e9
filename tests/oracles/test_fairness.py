"""No process has an unfair visit: at the truth, the expectation of one visit's factor is at most one, in fractions.

``./check`` looks at as many random rows as the mutants below need; ``PLUMDP_FAIR_ROWS=10000`` asks for more.
"""

import os
from dataclasses import replace

import fair_processes
import numpy as np
import pytest
from fair_processes import PROCESSES, ROWS_PER_CASE, random_case
from twin_outcomes import equal_outcomes_are_merged_once

from plumdp.confidence import cells, likelihood_table, run_bets
from plumdp.confidence.constants import FixedNumbers
from plumdp.confidence.observations import pool
from plumdp.fit import cell_tests

CASES = -(-int(os.environ.get("PLUMDP_FAIR_ROWS", "180")) // ROWS_PER_CASE)
KINDS = [process.__name__ for process in PROCESSES]


def expectations(name, seeds):
    """Yield the seed and the expectation of each visit of a process in random cases."""
    process = next(process for process in PROCESSES if process.__name__ == name)
    for seed in seeds:
        yield from ((seed, mean) for mean in process(random_case(seed)))


def require_fair(name, seeds):
    """Refuse a process of which some visit has an expectation above one; return how many visits were looked at."""
    n = 0
    for seed, mean in expectations(name, seeds):
        assert mean <= 1, (seed, float(mean))
        n += 1
    return n


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", KINDS)
def test_one_visit_of_any_row_has_an_expectation_of_at_most_one(name, part):
    seeds = range(part, CASES, 4)
    assert require_fair(name, seeds) >= len(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bets", "drifts", "rows", "classes", "fixed_numbers", "strips"])
def test_nothing_is_given_away_either(name):
    """These are martingales: the expectation is one, not less."""
    assert all(mean == 1 for _, mean in expectations(name, range(5)))


# Mutants, one for each process: what each of them gets wrong is found among as many cases as are looked at


def powers_are_forgotten(patch):
    """A factor of a square is counted once."""
    table = likelihood_table.likelihood_table
    patch.setattr(
        "plumdp.confidence.sets.likelihood_table",
        lambda model: replace(found := table(model), multiple=np.minimum(found.multiple, 1)),
    )


def blocks_cut_through_classes(patch):
    """The likelihood of a parameter has the outcomes that depend on it, and not all others of their classes."""

    def every(table):
        return [(np.array([i]), table.coefficients[:, i] > 0) for i in range(len(table.names))]

    patch.setattr(likelihood_table.LikelihoodTable, "blocks", property(every))


def outcomes_are_counted_for_each_other(patch):
    """The first outcome of the table and its neighbour, in one class, are mistaken for each other."""
    table, swapped = likelihood_table.likelihood_table, np.array([1, 0])

    def mistaken(model):
        found = table(model)
        counts_for = found.counts_for.copy()
        counts_for[found.counts_for < 2] = swapped[found.counts_for[found.counts_for < 2]]
        return replace(found, counts_for=counts_for)

    patch.setattr("plumdp.confidence.sets.likelihood_table", mistaken)


def one_outcome_is_not_predicted(patch):
    """Predictions of a class sum to more than one."""
    visits = cell_tests._of_visits
    patch.setattr(cell_tests, "_of_visits", lambda seen, n_outcomes: visits(seen, n_outcomes - 1))


def every_visit_tries_a_share(patch):
    """The share of one of several equal successors is tried by visits that end elsewhere."""
    patch.setattr(FixedNumbers, "trials", lambda fixed, counts: counts.visits[fixed.choice])


def successes_of_another_event(patch):
    """A trial counts for the event of its neighbour."""

    def shifted(events, counts):
        found = pool(events, counts)
        return replace(found, successes=np.minimum(np.roll(found.successes, 1), found.trials))

    patch.setattr("plumdp.confidence.observations.pool", shifted)


def rows_that_are_off_cost_nothing(patch):
    patch.setattr(fair_processes.tolerant, "range_of_bets", lambda graph, *_: np.zeros(graph.n_choices))


def each_side_has_the_weight_of_both(patch):
    patch.setattr(cells, "WEIGHTS", 2 * cells.WEIGHTS)


def hidden_outcomes_are_mistaken(patch):
    """The first two outcomes of a row with hidden paths are mistaken for each other."""
    table = likelihood_table.likelihood_table

    def mistaken(model):
        found = table(model)
        if found.paths is None:
            return found
        outcome, bets = found.paths.outcome.copy(), found.paths.bets
        outcome[[0, 1]] = outcome[[1, 0]]
        counts_for = bets.counts_for.copy()
        places = bets.first[outcome[:2]]
        counts_for[places] = counts_for[places[::-1]]
        return replace(found, paths=replace(found.paths, outcome=outcome, bets=replace(bets, counts_for=counts_for)))

    patch.setattr("plumdp.confidence.sets.likelihood_table", mistaken)


def factors_may_be_negative(patch):
    """Of a row with hidden paths, no factor is a member of the group that its visits count for."""
    table = likelihood_table.likelihood_table

    def mistaken(model):
        found = table(model)
        if found.paths is None:
            return found
        group = found.paths.table.group.copy()
        group[found.paths.visit] = group.max() + 1
        return replace(found, paths=replace(found.paths, table=replace(found.paths.table, group=group)))

    patch.setattr("plumdp.confidence.sets.likelihood_table", mistaken)


def _bets_know(patch, what):
    """Each run is scored and cut by runs that are like it alone."""
    scores = run_bets.scores_of

    def knowing(outcome, draws):
        own, found = getattr(draws, what), []
        for i in range(len(outcome)):
            like = np.flatnonzero(own[: i + 1] == own[i])
            alone = run_bets.Draws(draws.is_first[like], draws.chance[like], draws.task[like])
            found.append([each[-1] for each in scores(outcome[like], alone)])
        return np.array(found).T

    patch.setattr(run_bets, "scores_of", knowing)


def sizes_know_the_chance_of_their_run(patch):
    _bets_know(patch, "chance")


def sizes_know_the_task_of_their_run(patch):
    _bets_know(patch, "task")


MUTANTS = [
    ("likelihood", powers_are_forgotten),
    ("likelihoods_of_blocks", blocks_cut_through_classes),
    ("bets", outcomes_are_counted_for_each_other),
    ("path_likelihood", hidden_outcomes_are_mistaken),
    ("path_likelihood", factors_may_be_negative),
    ("path_bets", hidden_outcomes_are_mistaken),
    ("bets_in_cells", each_side_has_the_weight_of_both),
    ("drifts", equal_outcomes_are_merged_once),
    ("drift_half_spaces", equal_outcomes_are_merged_once),
    ("memory_bets", equal_outcomes_are_merged_once),
    ("memory_half_space", equal_outcomes_are_merged_once),
    ("memory_laws", one_outcome_is_not_predicted),
    ("rows", one_outcome_is_not_predicted),
    ("classes", one_outcome_is_not_predicted),
    ("fixed_numbers", every_visit_tries_a_share),
    ("strips", successes_of_another_event),
    ("tolerant_bets", rows_that_are_off_cost_nothing),
    ("arms", sizes_know_the_chance_of_their_run),
    ("arms", sizes_know_the_task_of_their_run),
]


@pytest.mark.parametrize(("name", "mutant"), MUTANTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_process_that_is_unfair_is_found(name, mutant, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        require_fair(name, range(30))


def test_every_process_has_a_mutant():
    assert {name for name, _ in MUTANTS} == set(KINDS)
