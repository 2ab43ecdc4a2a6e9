"""Writes flights.csv, the log of a drone as its flight recorder keeps it: metres, words, and rows that are broken.

python make_log.py [FLIGHTS]
"""

import csv
import sys
from pathlib import Path

import numpy as np

import plumdp as pl

HERE = Path(__file__).parent
CELL, LOW, HIGH = 10.0, 20.0, 45.0  # metres


def main(n_flights: int) -> None:
    """Fly under uniform choices, and write what a recorder would have seen."""
    model = pl.read_model(HERE / "drone.prism", space=pl.ParameterSpace.box({"gust": (0, 0.4), "fault": (0, 0.2)}))
    flights = pl.data.record(model, {"gust": 0.15, "fault": 0.01}, n_flights, rng=1, max_steps=30)
    columns = flights.columns("trajectories")
    rng = np.random.default_rng(2)
    n = len(columns["x"])
    east = (columns["x"] + rng.uniform(0.05, 0.95, n)) * CELL
    north = (columns["y"] + rng.uniform(0.05, 0.95, n)) * CELL
    altitude = np.where(columns["high"], HIGH, LOW) + rng.normal(0, 2, n)
    broken = rng.random(n) < 0.0005  # the receiver lost the satellites
    with (HERE / "flights.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["flight", "tick", "east_m", "north_m", "altitude_m", "motor", "command"])
        for i in range(n):
            place = ["", ""] if broken[i] else [f"{east[i]:.2f}", f"{north[i]:.2f}"]
            motor = "stopped" if columns["down"][i] else "running"
            action = columns["action"][i]
            head = [columns["episode"][i], columns["step"][i]]
            writer.writerow([*head, *place, f"{altitude[i]:.1f}", motor, "" if action is None else action])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
