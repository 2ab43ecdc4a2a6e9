"""Solves interval MDPs for people: models with labels take an objective as a text, and misuse is named."""

from __future__ import annotations

from plumdp.base.errors import ModelError
from plumdp.model.objectives import Nature, Objective, is_objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy
from plumdp.model.question import as_objective
from plumdp.relaxation.intervals import IntervalMDP, IntervalModel
from plumdp.solver import evaluate as policies
from plumdp.solver import solve as solver
from plumdp.solver.prepared import Prepared
from plumdp.solver.problem import Solution


def solve(
    imdp: IntervalMDP | IntervalModel,
    objective: Objective | str,
    *,
    nature: Nature | None = None,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
    start: Solution | None = None,
    prepared: Prepared | None = None,
    threads: int | None = None,
) -> Solution:
    """Return certified values of all states, and a policy that is optimal up to the precision.

    Parameters
    ----------
    imdp
        An interval model.
    objective
        The question, or its text if the model has labels, as one of ``read_interval_model`` has.
    nature
        "robust" (against the agent, the default) or "optimistic" (with the agent).
    precision
        Gap between the bounds at which the solver stops; relative for values above 1.
    max_sweeps
        After so many sweeps it stops as well, and the bounds still hold.
    start
        A solution of a similar problem, whose values and policy are the first moves.
    prepared
        What ``prepare`` returned for this objective.
    threads
        How many; by default PLUMDP_THREADS, or all cores. Results are the same.

    Returns
    -------
    Solution
        Both bounds for each state, the policy and the status.

    Examples
    --------
    >>> from plumdp import case_study
    >>> from plumdp.stages import instantiate
    >>> study = case_study("betting:25")
    >>> solution = solve(instantiate(study.model, study.true_point), study.objective)
    >>> print(f"{solution.lower[0]:.6f} {solution.upper[0]:.6f} {solution.status}")
    19.042863 19.042863 converged
    """
    mdp, asked = _problem("solve", imdp, objective)
    return solver.solve(
        mdp,
        asked,
        nature=nature,
        precision=precision,
        max_sweeps=max_sweeps,
        start=start,
        prepared=prepared,
        threads=threads,
    )


def evaluate(
    imdp: IntervalMDP | IntervalModel,
    policy: Policy,
    objective: Objective | str,
    *,
    nature: Nature | None = None,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
) -> Solution:
    """Return certified values of a policy, given by a choice for each state or a probability for each choice.

    Parameters
    ----------
    imdp
        An interval model.
    policy
        A choice for each state, a probability for each choice, or the policy of a certificate.
    objective, nature, precision, max_sweeps
        As in ``solve``.

    Returns
    -------
    Solution
        Both bounds for each state.

    Examples
    --------
    >>> from plumdp import case_study
    >>> from plumdp.stages import instantiate
    >>> study = case_study("betting:25")
    >>> mdp = instantiate(study.model, study.true_point)
    >>> best = solve(mdp, study.objective)
    >>> values = evaluate(mdp, best.policy, study.objective)
    >>> print(f"{values.lower[0]:.6f}")
    19.042863
    """
    mdp, asked = _problem("evaluate", imdp, objective)
    return policies.evaluate(mdp, policy, asked, nature=nature, precision=precision, max_sweeps=max_sweeps)


def _problem(
    function: str, model: IntervalMDP | IntervalModel, objective: Objective | str
) -> tuple[IntervalMDP, Objective]:
    """Return an interval MDP with an objective, or refuse anything else and say what to write instead."""
    if isinstance(model, IntervalModel):
        return model.mdp, as_objective(objective, model)
    if isinstance(model, ParametricMDP):
        raise ModelError(
            f"{function} takes an interval MDP, and this model has unknown parameters: write instantiate(model, point) "
            "for its probabilities at a point, or certify(model, counts, objective) for what data say"
        )
    if not isinstance(model, IntervalMDP):
        raise ModelError(
            f"{function} takes an interval MDP, such as instantiate(model, point), not {type(model).__name__}"
        )
    if isinstance(objective, str):
        raise ModelError(
            f"an interval MDP has no labels that a text could name: give {function} an IntervalModel, or the objective "
            "parse_property(text, model)"
        )
    if not is_objective(objective):
        raise ModelError(
            f"{function} takes an objective, such as parse_property(text, model), not {type(objective).__name__}"
        )
    return model, objective
