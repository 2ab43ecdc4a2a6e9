"""``verify`` accepts results of tables of unknown rows, and rejects each kind of change in the layer it belongs to."""

import json

import pytest
from support.tiers import TIER
from support.verified_tables import PROPERTY, counts_of, from_log, proposed, walk, without_order

import plumdp
from plumdp.base.errors import DataError
from plumdp.decisions import make_witness

KINDS = {
    "a probability": (PROPERTY, {}),
    "tied rows": (PROPERTY, {"is_tied": True}),
    "one minus a probability": ('Pmax=? [ G !"goal" ]', {}),
    "a cost": ('Rmin=? [ F "end" ]', {}),
    "rewards in total": ("Rmax=? [ C ]", {"is_tied": True}),
    "negative rewards": ("Rmax=? [ C{0.9} ]", {"pays": -1.0}),
    "discounted rewards": ("Rmax=? [ C{0.9} ]", {}),
    "a policy that draws": (PROPERTY, {"policy": "uniform"}),
    "a cost of a policy that draws": ('Rmin=? [ F "end" ]', {"policy": "uniform", "is_tied": True}),
    "steps that are counted": ('Pmax=? [ F<=5 "goal" ]', {}),
    "steps that the policy does not see": ('Pmax=? [ F<=5 "goal" ]', {"memory": False}),
    "a mission": ("Pmax=? [ (F x=5) & (F x=1) ]", {}),
}
BY_INTERVALS = ("rewards in total", "steps that the policy does not see")
EVERY_DAY = ("tied rows", "one minus a probability", "negative rewards", "a cost of a policy that draws", "a mission")
OF_TABLE = ("is_tied", "pays")


def made(options):
    table = {name: value for name, value in options.items() if name in OF_TABLE}
    return walk(**table), {name: value for name, value in options.items() if name not in OF_TABLE}


@pytest.mark.parametrize("kind", KINDS if TIER == "night" else EVERY_DAY)
def test_results_by_bets_and_by_intervals_are_accepted(kind):
    text, options = KINDS[kind]
    model, others = made(options)
    counts = counts_of(model)
    for data in (counts, without_order(counts)):
        _, certificate, witness, broken = proposed(model, data, text, **others)
        assert broken is None, broken
        assert certificate.lower < certificate.upper
        has_bets = data is counts and kind not in BY_INTERVALS  # which say more there
        assert (json.loads(witness)["bets"] is not None) == has_bets


@pytest.mark.parametrize(("text", "policy"), [('Pmin=? [ G !"goal" ]', None), (PROPERTY, "uniform")])
def test_a_table_that_runs_may_leave_is_accepted(text, policy):
    _, _, witness, broken = proposed(*from_log(), text, policy=policy)
    assert broken is None, broken
    assert any(row is not None and row[2] == "any" for row in json.loads(witness)["chain"]["rows"])


@pytest.mark.slow
def test_bets_in_a_table_that_runs_may_leave_have_no_witness():
    """Their ends are those of two chains, which verify does not know: it says so, and proves nothing."""
    with pytest.raises(DataError, match="verify does not know bets in tables that runs may leave"):
        proposed(*from_log(has_order=True))


def test_few_data_leave_nature_free_and_are_accepted():
    """Rows that were never visited are left to nature, which may keep runs in them forever."""
    model = walk()
    for runs in (5, 20):
        _, certificate, _, broken = proposed(model, counts_of(model, runs), 'Rmin=? [ F "end" ]')
        assert broken is None, broken
        assert certificate.upper > 10


def test_what_has_no_witness_is_refused_by_name():
    model = walk()
    learned = plumdp.learn(model, counts_of(model, 50), objectives=["Rmax=? [ LRA ]"])
    with pytest.raises(DataError, match="verify does not know averages in tables of unknown rows"):
        make_witness(learned, plumdp.conclude(learned, "Rmax=? [ LRA ]"))
