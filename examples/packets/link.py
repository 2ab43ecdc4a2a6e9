"""A lossy link after Gilbert and Elliott: good or bad, and a sender that chooses how fast to send.

A fast packet carries two units, a robust one carries one. ``units`` is what the last packet delivered.
"""

import plumdp as pl

NAMES = ("fade", "heal", "noise", "loss_fast", "loss_robust")
fade, heal, noise, loss_fast, loss_robust = pl.parameters(*NAMES)


def step(state):
    """Send one packet, and let the link change."""
    leave = fade if state.good else heal
    return {
        "fast": outcomes(state, 2, noise if state.good else loss_fast, leave),
        "robust": outcomes(state, 1, noise if state.good else loss_robust, leave),
    }


def outcomes(state, units, loss, leave):
    """Return what may become of a packet and of the link."""
    return [
        (sent * moved, state._replace(units=delivered, good=good))
        for sent, delivered in ((1 - loss, units), (loss, 0))
        for moved, good in ((1 - leave, state.good), (leave, not state.good))
    ]


link = pl.explore(
    step,
    {"good": True, "units": 0},
    space=pl.ParameterSpace.unit(*NAMES),
    rewards={"units": lambda state: state.units},
)
