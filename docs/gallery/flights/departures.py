"""Departures in the order of time."""

from typing import Any

import plumdp


def read_in_order(model: Any, legs: Any) -> Any:
    """Return the counts of legs, each of which comes when its aircraft leaves again, which is when it is known."""
    ordered = legs.dropna(subset="tailnum").sort_values(["tailnum", "when"])
    again = ordered.groupby("tailnum")[["delay", "when"]].shift(-1)
    ordered = ordered.assign(next_delay=again.delay, next_distance=ordered.distance, known=again.when)
    return plumdp.read_log(
        model,
        ordered.dropna(subset="known").sort_values("known"),
        plumdp.LogFormat(
            columns={"late": "delay", "next_late": "next_delay"},
            states={"late": [-60, 15, 60, 1440], "suspect": "distance < 0"},
            actions="case when distance < 1000 then 'short' else 'long' end",
        ),
        order="time",
    )
