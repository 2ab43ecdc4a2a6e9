"""Interval MDPs from arrays: what is refused, and with which message."""

from refusals import refused

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


def test_bad_arrays_are_refused_with_their_reason():
    refused("solver:arrays", lambda change: IntervalMDP.from_arrays(**(GOOD | eval(change))))


def test_good_arrays_are_taken_as_they_are():
    imdp = IntervalMDP.from_arrays(**GOOD)
    assert imdp.graph.describe_choice(1) == "state (x=0), action 'stay'"
    assert imdp.lower[imdp.expression].tolist() == GOOD["lower"]
