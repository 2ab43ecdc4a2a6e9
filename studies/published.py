"""The figures of Schnitzer, Abate and Parker: bounds on the value of the optimal policy after 10^5 runs, and seconds.

From the main table, and for Betting (135) and Glider (51, 47) and (71, 67) from the appendix, whose rows fit these
instances. Seconds are those of construction and robust solution on the authors' machine; a time-out is two hours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

TIME_OUT = 7200.0

SMALL_INSTANCES = ("aircraft:50,10", "betting:50", "engagement:100", "rover:50,50", "glider:21,17", "parallel:5")
INSTANCES = (
    *("aircraft:50,10", "aircraft:100,20", "aircraft:200,40"),
    *("betting:50", "betting:100", "betting:135", "betting:150"),
    *("engagement:100", "engagement:300", "engagement:1000"),
    *("rover:50,50", "rover:75,75", "rover:125,125"),
    *("glider:21,17", "glider:51,47", "glider:71,67"),
    *("parallel:5", "parallel:10", "parallel:20"),
)


@dataclass(frozen=True)
class Published:
    """One entry of the published tables; ``lower`` and ``upper`` are 0 and infinite after a time-out."""

    lower: float
    upper: float
    gap: float
    seconds: float

    @property
    def is_time_out(self) -> bool:
        """Whether there is no result."""
        return self.seconds == TIME_OUT


_NOTHING = Published(0.0, inf, inf, TIME_OUT)


_RELAXATIONS = ("interval", "parameter", "expression", "rectangular")
_ELLIPSOIDAL = ("parameter", "expression")

Table: TypeAlias = Mapping[str, Mapping[str, Published]]
"""Entries by instance and relaxation."""


def look_up(table: Table, instance: str, relaxation: str) -> Published | None:
    """Return an entry, or None if nothing was published."""
    return table.get(instance, {}).get(relaxation)


def _entries(
    *rows: tuple[float, float, float, float] | None, relaxations: tuple[str, ...] = _RELAXATIONS
) -> dict[str, Published]:
    """Return the entries of one instance by relaxation; None is a time-out."""
    return {name: _NOTHING if row is None else Published(*row) for name, row in zip(relaxations, rows, strict=True)}


PUBLISHED: Table = {
    "aircraft:50,10": _entries(
        (0.67, 0.814, 0.19, 4.04), (0.618, 0.828, 0.28, 4.62), (0.719, 0.767, 0.06, 5.72), (0.725, 0.761, 0.05, 47.12)
    ),
    "aircraft:100,20": _entries(
        (0.745, 0.906, 0.19, 30.45),
        (0.679, 0.918, 0.29, 34.71),
        (0.805, 0.865, 0.07, 39.54),
        (0.814, 0.858, 0.05, 353.36),
    ),
    "aircraft:200,40": _entries(
        (0.628, 0.92, 0.36, 688.27),
        (0.55, 0.928, 0.47, 878.04),
        (0.754, 0.85, 0.12, 882.78),
        (0.769, 0.838, 0.09, 4464.25),
    ),
    "betting:50": _entries(
        (14.4, 65.3, 1.88, 2.70), (25.8, 28.7, 0.10, 6.49), (25.8, 28.7, 0.10, 7.53), (25.8, 28.7, 0.10, 2.29)
    ),
    "betting:100": _entries(
        (16.5, 162, 3.24, 13.07), (41.8, 47.7, 0.13, 12.86), (41.8, 47.7, 0.13, 26.31), (41.8, 47.7, 0.13, 17.05)
    ),
    "betting:135": _entries(
        (17.5, 250, 3.91, 15.39), (54.7, 63.3, 0.15, 19.01), (54.7, 63.3, 0.15, 30.61), (54.7, 63.3, 0.15, 17.81)
    ),
    "engagement:100": _entries(
        (38.4, 49.3, 0.26, 5.46), (16.6, 5422, 127.35, 4.44), (39.8, 45, 0.12, 1.00), (39.8, 45, 0.12, 1.82)
    ),
    "engagement:300": _entries(
        (38.6, 46.8, 0.19, 16.55), (18.7, 3615, 84.74, 21.30), (40.8, 45.3, 0.11, 7.95), (40.8, 45.3, 0.11, 7.27)
    ),
    "engagement:1000": _entries(
        (39.1, 45.4, 0.15, 70.02), (24, 687, 15.63, 57.74), (41.3, 43.8, 0.06, 65.80), (41.3, 43.8, 0.06, 95.44)
    ),
    "rover:50,50": _entries((0, 0.797, 1.59, 92.02), (0.177, 0.833, 1.31, 136.87), (0.488, 0.515, 0.05, 115.15), None),
    "rover:75,75": _entries((0, 0.895, 1.42, 521.67), (0.0904, 0.9, 1.28, 576.92), (0.619, 0.647, 0.04, 580.21), None),
    "rover:125,125": _entries(
        (0, 0.877, 1.42, 2169.21), (0.0441, 0.922, 1.42, 2553.84), (0.599, 0.635, 0.06, 2306.29), None
    ),
    "glider:21,17": _entries(
        (41.1, 44.6, 0.08, 0.25), (42.4, 42.9, 0.01, 0.19), (42.5, 42.8, 0.01, 0.71), (42.5, 42.8, 0.01, 37.26)
    ),
    "glider:51,47": _entries(
        (89.8, 22443, 221.40, 11.37),
        (100.66, 101.21, 0.01, 1.09),
        (100.76, 101.12, 0.004, 6.24),
        (100.76, 101.12, 0.004, 5782.87),
    ),
    "glider:71,67": _entries((87, 30071, 288.64, 20.11), (103, 105, 0.01, 2.42), (103, 104, 0.01, 22.11), None),
    "parallel:5": _entries(
        (24, 29.4, 0.20, 0.31), (25.1, 28.2, 0.12, 0.40), (26.1, 27.2, 0.04, 0.80), (26.1, 27.2, 0.04, 10.16)
    ),
    "parallel:10": _entries(
        (26.4, 40.6, 0.44, 2.86), (29.7, 34.5, 0.15, 3.23), (31.1, 32.9, 0.06, 6.42), (31.1, 32.8, 0.05, 116.52)
    ),
    "parallel:20": _entries((13, 110, 3.39, 21.23), (25.4, 31.7, 0.22, 666.30), None, None),
}

ELLIPSOIDS: Table = {  # rectangular timed out on all instances
    "aircraft:50,10": _entries((0.599, 0.835, 0.32, 1.00), (0.71, 0.78, 0.09, 2.49), relaxations=_ELLIPSOIDAL),
    "aircraft:100,20": _entries((0.678, 0.919, 0.29, 17.81), (0.805, 0.866, 0.07, 56.59), relaxations=_ELLIPSOIDAL),
    "aircraft:200,40": _entries((0.575, 0.926, 0.44, 289.22), (0.768, 0.844, 0.09, 2012.05), relaxations=_ELLIPSOIDAL),
    "betting:50": _entries((24.6, 29.5, 0.18, 2.00), (24.6, 29.5, 0.18, 26.72), relaxations=_ELLIPSOIDAL),
    "betting:100": _entries((40.9, 49.5, 0.19, 10.57), (40.9, 49.5, 0.19, 591.18), relaxations=_ELLIPSOIDAL),
    "betting:135": _entries((53.6, 66.1, 0.21, 20.54), (53.6, 66.1, 0.21, 1922.39), relaxations=_ELLIPSOIDAL),
    "engagement:100": _entries((15.3, 9740, 229.13, 2.15), (35.6, 53.2, 0.41, 0.62), relaxations=_ELLIPSOIDAL),
    "engagement:300": _entries((15.7, 9110, 214.27, 7.10), (36.7, 50.6, 0.33, 3.30), relaxations=_ELLIPSOIDAL),
    "engagement:1000": _entries((16, 7857, 184.74, 21.34), (38.5, 47.7, 0.22, 20.51), relaxations=_ELLIPSOIDAL),
    "rover:50,50": _entries((0.174, 0.837, 1.32, 51.22), (0.476, 0.525, 0.10, 67.08), relaxations=_ELLIPSOIDAL),
    "rover:75,75": _entries((0.0801, 0.901, 1.30, 231.62), (0.605, 0.658, 0.08, 325.73), relaxations=_ELLIPSOIDAL),
    "rover:125,125": _entries((0.0422, 0.922, 1.43, 1647.26), None, relaxations=_ELLIPSOIDAL),
    "glider:21,17": _entries((42, 43.3, 0.03, 0.27), (42.2, 43.1, 0.02, 2.19), relaxations=_ELLIPSOIDAL),
    "glider:51,47": _entries((100, 102, 0.01, 0.62), (100.57, 101.32, 0.01, 11.74), relaxations=_ELLIPSOIDAL),
    "glider:71,67": _entries((102, 105, 0.03, 1.31), (103, 105, 0.02, 49.76), relaxations=_ELLIPSOIDAL),
    "parallel:5": _entries((23.1, 30.6, 0.28, 0.38), (24.9, 28.6, 0.14, 1.74), relaxations=_ELLIPSOIDAL),
    "parallel:10": _entries((26.9, 37.9, 0.34, 2.24), (29.3, 34.9, 0.17, 26.12), relaxations=_ELLIPSOIDAL),
    "parallel:20": _entries((22.6, 35.8, 0.46, 25.18), None, relaxations=_ELLIPSOIDAL),
}
