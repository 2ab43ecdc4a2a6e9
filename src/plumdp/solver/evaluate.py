"""What a given policy is worth: against nature, with nature, or in a known MDP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plumdp.errors import ModelError
from plumdp.model.graph import FloatArray, Graph, Indices, IntArray, read_only
from plumdp.model.objective import Nature, Objective
from plumdp.model.policy import Policy, check_policy
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.game import make_game
from plumdp.solver.layout import lay_out
from plumdp.solver.solve import (
    CLOSED,
    INTERRUPTED,
    Solution,
    check_request,
    complement,
    require_problem,
    solution_of,
    solve,
    solve_game,
)


def evaluate(
    imdp: IntervalMDP,
    policy: Policy,
    objective: Objective,
    *,
    nature: Nature | None = None,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
) -> Solution:
    """Return certified values of a policy: the number of a choice for each state, or a probability for each choice.

    The policy of a certificate may be given as it is.

    >>> from plumdp import case_study, instantiate
    >>> study = case_study("betting:25")
    >>> mdp = instantiate(study.model, study.true_point)
    >>> best = solve(mdp, study.objective)
    >>> worth = evaluate(mdp, best.policy, study.objective)
    >>> print(f"{worth.lower[0]:.6f}")
    19.042863
    """
    require_problem("evaluate", imdp, objective)
    given = check_policy(imdp.graph, policy)
    if given.dtype.kind == "f":
        return _mixed(imdp, given, objective, nature, precision, max_sweeps)
    restricted, rewards = _follow(imdp, given, objective)
    solution = solve(restricted, rewards, nature=nature, precision=precision, max_sweeps=max_sweeps)
    return replace(solution, policy=read_only(given.astype(np.int32)))


def evaluate_all(
    relaxations: Sequence[IntervalMDP],
    policy: Policy,
    objective: Objective,
    natures: Sequence[Nature],
    *,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
) -> list[Solution]:
    """Return certified values of a policy for each nature: the tightest that any of several relaxations gives.

    The relaxations are of one model, in the same expressions, so that the truth is within all of them. What depends on
    the graph alone is done once, unless some nature may remove edges of it.
    """
    check_request(relaxations[0], objective, precision)
    given = check_policy(relaxations[0].graph, policy)
    chain, asked = _follow(relaxations[0], given, objective)
    chains = [replace(chain, lower=imdp.lower, upper=imdp.upper, region=imdp.region) for imdp in relaxations]
    solver = _solve_on_one_board if _have_one_board(chains, asked) else _solve_each
    found = solver(chains, asked, natures, precision, max_sweeps)
    return [replace(_tightest(of_nature, precision), policy=read_only(given.astype(np.int32))) for of_nature in found]


def _have_one_board(chains: Sequence[IntervalMDP], objective: Objective) -> bool:
    """Return whether what the graph alone decides is the same for all relaxations, whatever nature does."""
    is_endless = objective.n_steps is None and not objective.is_discounted
    absent = chains[0].upper == 0
    return is_endless and all(chain.has_fixed_support() and ((chain.upper == 0) == absent).all() for chain in chains)


def _solve_each(
    chains: Sequence[IntervalMDP], objective: Objective, natures: Sequence[Nature], precision: float, max_sweeps: int
) -> list[list[Solution]]:
    options: dict[str, Any] = {"precision": precision, "max_sweeps": max_sweeps}
    return [[solve(chain, objective, nature=nature, **options) for chain in chains] for nature in natures]


def _solve_on_one_board(
    chains: Sequence[IntervalMDP], objective: Objective, natures: Sequence[Nature], precision: float, max_sweeps: int
) -> list[list[Solution]]:
    """Solve all on one board: with one row in each state and edges that stay, only nature's moves differ."""
    flipped = objective.flipped()
    if flipped is not None:
        found = _solve_on_one_board(chains, flipped, natures, precision, max_sweeps)
        return [[complement(solution) for solution in of_nature] for of_nature in found]
    game = make_game(chains[0], objective, "robust")
    board = lay_out(game)
    found = []
    for nature in natures:
        wants = game.nature if nature == "robust" else -game.nature
        games = [replace(game, imdp=chain, nature=wants) for chain in chains]
        found.append(
            [solve_game(one, board.facing(one.imdp, wants), objective, precision, max_sweeps) for one in games]
        )
    return found


def _tightest(solutions: Sequence[Solution], precision: float) -> Solution:
    """Return the intersection of bounds that all hold."""
    lower, upper = solutions[0].lower, solutions[0].upper
    for other in solutions[1:]:
        lower, upper = np.maximum(lower, other.lower), np.minimum(upper, other.upper)
    ended = {solution.status for solution in solutions}
    status = INTERRUPTED if INTERRUPTED in ended else CLOSED
    return solution_of(lower, upper, solutions[0].policy, precision, sum(s.sweeps for s in solutions), status)


def _follow(imdp: IntervalMDP, chosen: Indices, objective: Objective) -> tuple[IntervalMDP, Objective]:
    """Return the model that has only the chosen rows, and the objective with their rewards."""
    graph = imdp.graph
    lengths = np.diff(graph.first_transition)[chosen]
    first = np.zeros(len(chosen) + 1, dtype=np.int32)
    np.cumsum(lengths, out=first[1:])
    kept = np.repeat(graph.first_transition[chosen] - first[:-1], lengths) + np.arange(first[-1], dtype=np.int32)
    one_each = np.arange(len(chosen) + 1, dtype=np.int32)
    restricted = replace(
        graph,
        first_choice=read_only(one_each),
        first_transition=read_only(first),
        successor=read_only(graph.successor[kept]),
        action=read_only(graph.action[chosen]),
    )
    followed = replace(imdp, graph=restricted, expression=read_only(imdp.expression[kept]))
    return followed, objective.restricted_to(chosen)


def _mixed(
    imdp: IntervalMDP,
    weights: FloatArray,
    objective: Objective,
    nature: Nature | None,
    precision: float,
    max_sweeps: int,
) -> Solution:
    """Evaluate a policy that draws its choice: first the draw, as a step of its own, then the choice."""
    if objective.is_discounted:
        raise ModelError(
            "a policy that draws its choices cannot be evaluated with a discount; give one choice per state"
        )
    split = _split(imdp, weights)
    n_states = imdp.graph.n_states
    solution = solve(split, objective.stretched(imdp.graph), nature=nature, precision=precision, max_sweeps=max_sweeps)
    likeliest = _likeliest(imdp.graph, weights)
    return replace(solution, lower=solution.lower[:n_states], upper=solution.upper[:n_states], policy=likeliest)


def _split(imdp: IntervalMDP, weights: FloatArray) -> IntervalMDP:
    """Return the model in which each state draws one of its choices, which become states with one row each."""
    graph, n_states, n_choices = imdp.graph, imdp.graph.n_states, imdp.graph.n_choices
    draws = np.arange(n_states, n_states + n_choices, dtype=np.int32)
    first = np.concatenate([graph.first_choice[:-1], graph.first_transition + n_choices])
    states = {name: np.concatenate([values, values[graph.state_of_choice()]]) for name, values in graph.states.items()}
    n_expressions = len(imdp.lower)
    split = Graph(
        read_only(np.arange(n_states + n_choices + 1, dtype=np.int32)),
        read_only(first.astype(np.int32)),
        read_only(np.concatenate([draws, graph.successor])),
        graph.initial_state,
        states,
        read_only(np.zeros(n_states + n_choices, dtype=np.int32)),
        ("",),
    )
    expression = np.concatenate([n_expressions + np.arange(n_choices), imdp.expression]).astype(np.int32)
    lower, upper = np.concatenate([imdp.lower, weights]), np.concatenate([imdp.upper, weights])
    region = None if imdp.region is None else imdp.region.with_constants(weights)
    return replace(
        imdp,
        graph=split,
        expression=read_only(expression),
        lower=read_only(lower),
        upper=read_only(upper),
        region=region,
    )


def _likeliest(graph: Graph, weights: FloatArray) -> IntArray:
    order = np.lexsort((-weights, graph.state_of_choice()))
    return read_only(order[graph.first_choice[:-1]].astype(np.int32))
