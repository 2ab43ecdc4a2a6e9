"""A walk along states in each of which one of two coins is thrown, with parameters of its own: as untied as can be."""

from functools import cache

import plumdp as pl
from plumdp.model.parametric import ParametricMDP

WINS = 'R{"wins"}max=? [ F "end" ]'


@cache
def row_of_arms(n_states: int) -> ParametricMDP:
    """Return a model in which action a wins in state i with probability ai, and action b with bi; then comes i + 1."""
    names = [f"{arm}{i}" for i in range(n_states) for arm in "ab"]
    chances = dict(zip(names, pl.parameters(*names), strict=True))

    def step(state):
        if state.at == n_states:
            return {"stay": [(1, state)]}
        ahead = [state._replace(at=state.at + 1, won=won) for won in (1, 0)]
        return {arm: list(zip((f, 1 - f), ahead, strict=True)) for arm in "ab" for f in [chances[f"{arm}{state.at}"]]}

    return pl.explore(
        step,
        {"at": 0, "won": 0},
        space=pl.ParameterSpace.unit(*names),
        rewards={"wins": lambda state: state.won},
        labels={"end": lambda state: state.at == n_states},
    )


def chances(n_states: int, **others: float) -> dict[str, float]:
    """Return a point at which all coins are fair but some."""
    return {f"{arm}{i}": 0.5 for i in range(n_states) for arm in "ab"} | others
