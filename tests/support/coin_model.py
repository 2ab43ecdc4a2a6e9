"""A coin that is thrown once: the smallest model with a parameter."""

import plumdp as pl

(p,) = pl.parameters("p")


def coin_step(state):
    """One throw: heads is 1, tails is 2."""
    if state.x:
        return {"stay": [(1, state)]}
    return {"go": [(p, state._replace(x=1)), (1 - p, state._replace(x=2))]}


COIN = pl.explore(coin_step, {"x": 0}, space=pl.ParameterSpace.unit("p"), labels={"heads": lambda s: s.x == 1})
