"""A tank with rows of hidden paths: what flows in and what is pumped out is not seen, but their sum."""

import plumdp as pl

INFLOW, PUMP = pl.parameters("inflow", "pump")
TRUTH = {"inflow": "0.55", "pump": "0.8"}
OTHERS = [f"other_{i}" for i in range(7)]
BLIND_TRUTH = {**TRUTH, **dict.fromkeys(OTHERS, "0.5")}
BAD = 'Pmin=? [ F "bad" ]'


def blind_tank(steps=6):
    """Return a tank in a space of so many parameters that it is not cut into boxes, and hidden paths are ignored."""
    return tank(steps, others=OTHERS)


def tank(steps=6, top=4, others=()):
    """Return a tank whose level goes up with the inflow, and down with the pump if nothing flows in.

    Of the row of ``on``, two outcomes are products of affine factors and the third is not: its log-likelihood is not
    concave. The pump occurs in no other row.
    """

    def step(s):
        if s.level in (0, top) or s.t == steps:
            return {"end": [(1, s)]}
        same = s._replace(t=s.t + 1)
        up, down = same._replace(level=s.level + 1), same._replace(level=s.level - 1)
        both = INFLOW * PUMP + (1 - INFLOW) * (1 - PUMP)
        return {
            "off": [(INFLOW, up), (1 - INFLOW, same)],
            "on": [(INFLOW * (1 - PUMP), up), (PUMP * (1 - INFLOW), down), (both, same)],
        }

    space, labels = (
        pl.ParameterSpace.unit("inflow", "pump", *others),
        {"bad": lambda s: s.level in (0, top)},
    )
    return pl.explore(step, {"level": 2, "t": 0}, space=space, labels=labels)
