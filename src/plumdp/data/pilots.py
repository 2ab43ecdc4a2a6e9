"""How large a pilot is, by rules that do not look at what came later, and what a result that used it rests on."""

from __future__ import annotations

from plumdp.data.counts import EMPTY_WEIGHT, Pilot, PilotEnd
from plumdp.errors import DataError
from plumdp.model.text import number_of

FEW_RUNS = 5_000
_FEW, _SOME = 4, 20  # parameters
SMALLEST = 16  # runs or rows: the size with which powers of two start, whatever the data
WHY_EMPTY = f"fewer than {10 * SMALLEST} runs or rows, or it is not clear which came first"
POWERS_RATIO = 13.0  # of main to pilot data: a pilot between a tenth and a twentieth leaves 9 to 19 times as much


def pilot_share(n_runs: int, n_parameters: int) -> float:
    """Return which share of a number of runs, fixed beforehand, is best spent as a pilot.

    Five in a hundred, ten if there are fewer than 5,000 runs; with five parameters or more a tenth, with more than
    twenty a fifth, since a pilot must find a direction among all of them. (Parameters are those of the space; on which
    combinations of them the outcomes depend is not known where data are counted.) The share only decides how wide a
    result is: any share is valid.

    >>> pilot_share(100_000, 3), pilot_share(1_000, 3), pilot_share(100_000, 20), pilot_share(100_000, 21)
    (0.05, 0.1, 0.1, 0.2)
    """
    if n_parameters > _SOME:
        return 0.2
    return 0.1 if n_parameters > _FEW or n_runs < FEW_RUNS else 0.05


def planned_size(n_runs: int, n_parameters: int, share: float | None = None) -> int:
    """Return how many of a number of runs, fixed beforehand, are the pilot; by default the share of ``pilot_share``.

    At least one run is left as main data. Zero means that there is no pilot.

    >>> planned_size(100_000, 3), planned_size(1_000, 3, 0.25), planned_size(3, 3), planned_size(10, 3, 0.99)
    (5000, 250, 0, 9)
    """
    if share is None:
        share = pilot_share(n_runs, n_parameters)
    if not 0 <= share < 1:
        raise DataError(f"pilot={share}: it is a share of the runs, from 0 (no pilot) to less than 1")
    return min(round(share * n_runs), max(0, n_runs - 1))


def power_of_two_pilot(n: int) -> tuple[int, float]:
    """Return size and weight of the pilot of data that may have ended, after n runs or rows, because of what they show.

    The size is the largest power of two 2^i that is at most n/10, from 16 on, and the weight is 9/10 of
    1/((i − 3)(i − 2)): 9/20 for 16, then 9/60, 9/120 and so on. Fewer than 160 runs or rows have an empty pilot, and
    the last tenth of the error. For each size there is one pilot, whatever the end, and all weights, that of the empty
    one included, sum to at most one; so the union bound covers every end. (Rounded to the nearest float, those of all
    sizes below 2^63 sum to less than 0.99: rounding does no harm.)

    >>> power_of_two_pilot(640), power_of_two_pilot(160), power_of_two_pilot(159)
    ((64, 0.075), (16, 0.45), (0, 0.1))
    """
    size = 1 << max(0, (n // 10).bit_length() - 1)
    if size < SMALLEST:
        return 0, EMPTY_WEIGHT
    place = (size // SMALLEST).bit_length()  # 1, 2, … for 16, 32, …
    return size, (1 - EMPTY_WEIGHT) / (place * (place + 1))


def pilot_assumption(pilot: Pilot) -> str:
    """Return in plain words what a result rests on that was chosen by looking at the pilot.

    >>> import numpy as np
    >>> print(pilot_assumption(Pilot(np.array([3, 0, 4]))))
    the pilot (7 steps) was set aside without looking at the other data, and its size was fixed beforehand
    """
    steps = number_of(pilot.total, "step")
    if pilot.end == PilotEnd.POWER_OF_TWO and pilot.weight == EMPTY_WEIGHT:  # which is that of no other size
        text = (
            f"the pilot is empty ({WHY_EMPTY}); the data may have ended because of what they showed, so only "
            f"{pilot.weight:.2g} of the error is used: the rest is for ends with a pilot"
        )
    elif pilot.end == PilotEnd.PLANNED:
        text = f"the pilot ({steps}) was set aside without looking at the other data, and its size was fixed beforehand"
    else:
        text = (
            f"the pilot ({steps}) is the first part of the data, and its size is one of {SMALLEST}, {2 * SMALLEST}, "
            f"{4 * SMALLEST}, … runs or rows; the data may have ended because of what they showed, so what was chosen "
            f"by this pilot uses only {pilot.weight:.2g} of the error"
        )
    return f"{text}; {pilot.rests_on}" if pilot.rests_on else text
