"""Interval MDPs from arrays: what is refused, and with which message."""

import pytest

import plumdp as pl
from plumdp.relaxation.intervals import IntervalMDP

GOOD = {
    "first_choice": [0, 2, 3],
    "first_transition": [0, 2, 3, 4],
    "successor": [0, 1, 1, 1],
    "lower": [0.1, 0.5, 1, 1],
    "upper": [0.5, 0.9, 1, 1],
    "states": {"x": [0, 1]},
    "action": [0, 1, 1],
    "action_names": ("go", "stay"),
}

BAD = {
    "lower above upper": (
        {"lower": [0.6, 0.5, 1, 1]},
        "state (x=0), action 'go', successor (x=0): the bounds 0.6 and 0.5 are the lower above the upper",
    ),
    "above one": (
        {"upper": [0.5, 1.5, 1, 1]},
        "state (x=0), action 'go', successor (x=1): the bounds 0.5 and 1.5 are outside [0, 1]",
    ),
    "not a number": (
        {"lower": [float("nan"), 0.5, 1, 1]},
        "state (x=0), action 'go', successor (x=0): the bounds nan and 0.5 are not numbers",
    ),
    "too little": (
        {"upper": [0.2, 0.7, 1, 1]},
        "state (x=0), action 'go': the upper bounds sum to only 0.89999999999999991, so no distribution fits",
    ),
    "too much": (
        {"lower": [0.5, 0.75, 1, 1], "upper": [0.5, 0.9, 1, 1]},
        "state (x=0), action 'go': the lower bounds sum to 1.25, so no distribution fits",
    ),
    "empty row": (
        {"first_transition": [0, 2, 2, 4]},
        "state (x=0), action 'stay' has no transition",
    ),
    "empty state": (
        {"first_choice": [0, 3, 3]},
        "state (x=1) has no choice; give it a self-loop",
    ),
    "fewer bounds": ({"upper": [0.5, 0.9, 1]}, "4 lower bounds, but 3 upper bounds"),
    "fewer transitions": (
        {"first_transition": [0, 2, 3, 5]},
        "first_transition ends with 5, but there are 4 transitions",
    ),
    "fewer choices": ({"first_choice": [0, 2, 4]}, "first_choice ends with 4, but there are 3 choices"),
    "decreasing": ({"first_choice": [0, 4, 3]}, "first_choice must start with 0 and never decrease"),
    "successor": ({"successor": [0, 1, 2, 1]}, "successor 2 is out of range: it must be at least 0 and below 2"),
    "initial state": ({"initial_state": 7}, "initial_state 7 is out of range: it must be at least 0 and below 2"),
    "expression": (
        {"expression": [0, 1, 4, 3]},
        "expression 4 is out of range: it must be at least 0 and below 4",
    ),
    "expression count": ({"expression": [0, 1]}, "2 expressions for 4 transitions"),
    "action": ({"action": [0, 1, 2]}, "action 2 is out of range: it must be at least 0 and below 2"),
    "state variable": ({"states": {"x": [0, 1, 2]}}, "state variable x has 3 values for 2 states"),
    "fractional": ({"successor": [0, 1, 0.5, 1]}, "successor must hold 32-bit integers"),
    "matrix": ({"successor": [[0, 1, 1, 1]]}, "successor must be a one-dimensional array, not of shape (1, 4)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arrays_are_refused_with_their_reason(case):
    change, message = BAD[case]
    with pytest.raises(pl.ModelError) as caught:
        IntervalMDP.from_arrays(**(GOOD | change))
    assert str(caught.value) == message


def test_good_arrays_are_taken_as_they_are():
    imdp = IntervalMDP.from_arrays(**GOOD)
    assert imdp.graph.describe_choice(1) == "state (x=0), action 'stay'"
    assert imdp.lower[imdp.expression].tolist() == GOOD["lower"]
