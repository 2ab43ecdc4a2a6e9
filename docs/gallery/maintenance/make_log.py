"""Stands for the database of inspections: machines that wear, are serviced now and then, and fail."""

import csv
import random
import sys

random.seed(1)
NEXT = {"good": (("good", 0.85), ("worn", 0.14), ("failed", 0.01)), "worn": (("worn", 0.75), ("failed", 0.25))}


def weeks():
    """Yield condition, action and cost of one machine in each week of a year."""
    state = "good"
    for _ in range(52):
        if state == "failed":
            action, cost, after = "repair", 900, "good"
        elif state == "worn" and random.random() < 0.4:
            action, cost, after = "service", 120, "good"
        else:
            action, cost = "run", 0
            names, weights = zip(*NEXT[state], strict=True)
            (after,) = random.choices(names, weights)
        yield state, action, cost
        state = after


with open("inspections.csv", "w", newline="", encoding="utf-8") as file:
    out = csv.writer(file)
    out.writerow(["machine", "week", "condition", "action", "cost"])
    for machine in range(1, int(sys.argv[1]) + 1):
        out.writerows([f"M{machine:04}", week, *row] for week, row in enumerate(weeks(), start=1))
