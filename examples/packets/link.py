"""A lossy link after Gilbert and Elliott: good or bad, and a sender that chooses how fast to send.

A fast packet carries two units, a robust one carries one. ``units`` is what the last packet delivered.
"""

import plumdp as pl

NAMES = ("fade", "heal", "noise", "loss_fast", "loss_robust")

fade, heal, noise, loss_fast, loss_robust = pl.parameters(*NAMES)


def step(state):
    """Send one packet, and let the link change."""
    leave, loss = (
        (fade, {"fast": noise, "robust": noise}) if state.good else (heal, {"fast": loss_fast, "robust": loss_robust})
    )
    return {
        rate: [
            ((1 - loss[rate]) * (1 - leave), state._replace(units=units)),
            ((1 - loss[rate]) * leave, state._replace(units=units, good=not state.good)),
            (loss[rate] * (1 - leave), state._replace(units=0)),
            (loss[rate] * leave, state._replace(units=0, good=not state.good)),
        ]
        for rate, units in (("fast", 2), ("robust", 1))
    }


link = pl.explore(
    step,
    {"good": True, "units": 0},
    space=pl.ParameterSpace.unit(*NAMES),
    rewards={"units": lambda state: state.units},
)
