"""``verify`` accepts results of tables of unknown rows, and rejects each kind of change in the layer it belongs to."""

import json
import shutil

import pytest
from support.tiers import TIER
from support.verified_results import broken_by
from support.verified_tables import PROPERTY, counts_of, few_rows, from_log, proposed, saved, walk, without_order

import plumdp
from plumdp.base.errors import DataError
from plumdp.decisions import make_witness, verify

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


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    saved(folder / "bets", walk(), counts_of(walk()))
    saved(folder / "tied", walk(is_tied=True), counts_of(walk(is_tied=True)))
    saved(folder / "ball", *few_rows(), 'Pmax=? [ F "good" ]')
    saved(folder / "log", *from_log())
    saved(folder / "cost", walk(), without_order(counts_of(walk())), 'Rmin=? [ F "end" ]')
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bets", "tied", "ball", "log", "cost"])
def test_all_layers_hold_and_what_is_trusted_is_named(folders, name):
    report = verify(folders / name)
    assert report.broken is None, report.broken
    bets = [] if name in ("log", "cost") else ["bets"]  # whose order is not known, so that none were placed
    assert report.passed == ["files", "budget", "counts", *bets, "set", "values", "bracket", "sentence"]
    assert "trusted: that the settings of the method were fixed before the data" in str(report)
    assert "the law of the space" not in str(report.to_dict()["trusted"])


def at(*path, to):
    """Change one part of the witness, or a number by a function."""

    def change(witness, certificate):
        part = witness
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = to(part[path[-1]]) if callable(to) else to

    return change


def claim(side, share):
    """Move an end of the claim inward by a share of its width."""

    def change(witness, certificate):
        off = share * (certificate["upper"] - certificate["lower"])
        end = certificate[side] + (off if side == "lower" else -off)
        certificate[side] = witness["claim"][side] = end

    return change


def later(factor):
    """Change what was seen last."""
    return lambda rows: [[*seen[:-1], [factor * n for n in seen[-1]]] for seen in rows]


def times(factor):
    return lambda number: factor * number


def first_row(path):
    """Return the path of the first entry of a list of vectors."""
    return (*path, 0, 0)


def elsewhere(witness):
    """Return the nodes where the table is left."""
    rows = witness["chain"]["rows"]
    return [node for node, row in enumerate(rows) if row is not None and row[2] == "any"]


def open_elsewhere(witness):
    """Return the number of the first of these nodes among those that are open."""
    return sum(row is not None for row in witness["chain"]["rows"][: elsewhere(witness)[0]])


def at_elsewhere(place, part):
    return lambda witness, certificate: witness["chain"]["rows"][elsewhere(witness)[0]].__setitem__(place, part)


BETS, CHAIN, VALUES, INTERVALS = ("bets",), ("chain",), ("values",), ("intervals",)
ERRORS, UPPER = (*BETS, "errors"), (*BETS, "sides", "upper")
TAMPERING = {
    "another kind": ("bets", "files", at("kind", to="tables")),
    "no kind": ("bets", "budget", lambda w, c: w.pop("kind")),
    "a larger error of bets on the value": ("bets", "budget", at(*ERRORS, "side", to=times(1.01))),
    "a larger error of bets on rows": ("bets", "budget", at(*ERRORS, "rows", to=times(1.01))),
    "a larger error of the mixture": ("bets", "budget", at(*ERRORS, "ball", to=times(1.01))),
    "a larger error of intervals": ("bets", "budget", at(*INTERVALS, "error", to=times(1.01))),
    "more events than the error is for": ("bets", "budget", at(*INTERVALS, "number", to=times(2))),
    "shares of policies that are too large": ("bets", "budget", at(*BETS, "shares", to=["1", "1"])),
    "a share that is not positive": ("bets", "budget", at(*BETS, "shares", to=["1", "0"])),
    "no question": ("bets", "budget", at(*BETS, "questions", to=0)),
    "another policy's share": ("bets", "budget", lambda w, c: w["bets"].update(shares=["9/10", "1/10"], policy=1)),
    "an end of the data that was not planned": ("bets", "budget", at("data", "order", to="open")),
    "a larger share of the budget": ("bets", "budget", at("budget", "shares", "value_bets", to="9/10")),
    "a share that is missing": ("bets", "budget", lambda w, c: w["budget"]["shares"].pop("joint_bets")),
    "an order that is not known": ("bets", "counts", at("data", "order", to="unknown")),
    "lengths that do not grow": ("bets", "counts", at("data", "lengths", 0, to=1e9)),
    "moments that go back": ("bets", "counts", at("rows", 0, 0, 0, to=10**6)),
    "a moment that is missing": ("bets", "counts", at("rows", 0, to=lambda seen: seen[1:])),
    "a place that is missing": ("bets", "counts", at("rows", 0, to=lambda seen: [n[1:] for n in seen])),
    "a negative count": ("bets", "counts", at("rows", 0, -1, 0, to=-1)),
    "a successor that is missing": ("bets", "counts", at(*CHAIN, "rows", 0, 1, to=lambda nodes: nodes[1:])),
    "a row that does not exist": ("bets", "counts", at(*CHAIN, "rows", 0, 2, to=99)),
    "a known row that does not sum to one": ("bets", "counts", at(*CHAIN, "rows", 0, to=[0.0, [1, 2], ["1/2", "1/3"]])),
    "a target where runs go on": ("bets", "counts", at(*CHAIN, "target", to=lambda nodes: [*nodes, 0])),
    "a reward of a probability": ("bets", "counts", at(*CHAIN, "rows", 0, 0, to=1.0)),
    "a kind that is not known": ("bets", "counts", at(*CHAIN, "kind", to="average")),
    "a discount": ("bets", "counts", at(*CHAIN, "discount", to="9/10")),
    "a reward where the table is left": ("log", "counts", at_elsewhere(0, 1.0)),
    "a successor where the table is left": ("log", "counts", at_elsewhere(1, [0])),
    "a row without probabilities of a cost": ("cost", "counts", at(*CHAIN, "rows", 0, to=[0.0, [], "any"])),
    "a value where the table is left": (
        "log",
        "values",
        lambda w, c: w["values"]["lower"].__setitem__(open_elsewhere(w), 0.1),
    ),
    "a mixture over tied rows": ("tied", "bets", at(*BETS, "mixed", to=lambda nodes: [0, 1, 2])),
    "a bet on a known row": ("bets", "bets", at(*BETS, "kept", to=[0, 1, 2, 3, 4])),
    "a node twice": ("bets", "bets", at(*BETS, "kept", to=lambda nodes: [*nodes, nodes[0]])),
    "a reference that is not positive": ("bets", "bets", at(*first_row((*BETS, "reference")), to=0.0)),
    "a bet on a row that is too large": ("bets", "bets", at(*first_row((*BETS, "sizes")), to=times(100))),
    "a mixture that is too wide": ("bets", "bets", at(*BETS, "cut", 0, to=times(100))),
    "a spread that is not positive": ("bets", "bets", at(*BETS, "spread", 0, to=0.0)),
    "a stage without weights": ("bets", "bracket", at(*UPPER, "weights", to=lambda rows: rows[1:])),
    "weights of no stage": ("bets", "bets", at(*UPPER, "weights", to=lambda rows: [*rows, *rows, *rows])),
    "an interval that is too narrow": ("bets", "set", at(*INTERVALS, "list", 0, "lower", 0, to=times(1.01))),
    "an upper end that is too small": ("bets", "set", at(*INTERVALS, "list", 0, "upper", 0, to=times(0.99))),
    "intervals of another row": ("bets", "set", at(*INTERVALS, "list", 0, "row", to=1)),
    "intervals that are missing": ("bets", "set", at(*INTERVALS, "list", to=lambda rows: rows[1:])),
    "too few events": ("bets", "set", at(*INTERVALS, "number", to=1)),
    "fewer data": ("bets", "set", at("rows", 0, to=lambda seen: [[n // 10 for n in each] for each in seen])),
    "a known row without bets": ("bets", "set", at(*BETS, "kept", to=lambda nodes: nodes[1:])),
    "a ball beyond the mixture": ("ball", "set", at(*BETS, "mixed", to=[])),
    "a mixture that is too narrow": ("ball", "set", at(*BETS, "cut", to=lambda row: [x / 20 for x in row])),
    "a ball of a row that is not known": ("ball", "set", at(*BETS, "known", to=[])),
    "a larger lower value": ("bets", "values", at(*VALUES, "lower", 0, to=times(1.001))),
    "a smaller upper value": ("bets", "values", at(*VALUES, "upper", 0, to=times(0.999))),
    "a lower value in the last digits": ("bets", "values", at(*VALUES, "lower", 0, to=times(1 + 1e-12))),
    "too few steps": ("bets", "values", at(*VALUES, "steps_lower", 0, to=times(0.5))),
    "a negative number of steps": ("bets", "values", at(*VALUES, "steps_lower", 0, to=-1.0)),
    "too few steps of a cost": ("cost", "values", at(*VALUES, "steps_upper", 0, to=times(0.5))),
    "rewards that pay for less": ("cost", "values", at(*VALUES, "paid", to=times(0.1))),
    "another cost": ("cost", "values", at(*CHAIN, "rows", 0, 0, to=1.1)),
    "a start above what is proved": ("bets", "values", at(*BETS, "start", "lower", 0, to=times(1.01))),
    "a start below what is proved": ("bets", "values", at(*BETS, "start", "upper", 0, to=times(0.99))),
    "another successor": ("bets", "values", at(*CHAIN, "rows", 0, 1, to=lambda nodes: nodes[::-1])),
    "a larger lower end": ("bets", "bracket", claim("lower", 0.01)),
    "a smaller upper end": ("bets", "bracket", claim("upper", 0.01)),
    "a larger lower end of tied rows": ("tied", "bracket", claim("lower", 0.01)),
    "a smaller upper end of a cost": ("cost", "bracket", claim("upper", 0.01)),
    "larger weights": ("bets", "bracket", at(*UPPER, "weights", 0, to=lambda row: [1.5 * w for w in row])),
    "weights that are far too large": (
        "bets",
        "bracket",
        at(*UPPER, "weights", 0, to=lambda row: [99 * w for w in row]),
    ),
    "another centre": ("bets", "bracket", at(*UPPER, "centre", 0, to=times(0.9))),
    "another scale": ("bets", "bracket", at(*UPPER, "scale", to=times(1.2))),
    "a scale that is not positive": ("bets", "bracket", at(*UPPER, "scale", to=-1.0)),
    "fewer known rows": (
        "bets",
        "bracket",
        lambda w, c: w["bets"].update(known=w["bets"]["known"][1:], ball=[s for s in w["bets"]["ball"] if s]),
    ),
    "more data": ("bets", "bracket", at("rows", to=later(3))),
    "a side without bets": ("bets", "bracket", at(*UPPER, to=None)),
    "no bets": ("bets", "bracket", at(*BETS, to=None)),
    "another initial state": ("cost", "bracket", at(*CHAIN, "initial", to=1)),
    "one minus the value": ("bets", "bracket", at(*CHAIN, "complement", to=True)),
    "more confidence in the sentence": (
        "bets",
        "sentence",
        at("claim", "sentence", to=lambda s: s.replace("95", "99")),
    ),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_is_rejected_in_its_layer(folders, tmp_path, kind):
    name, layer, change = TAMPERING[kind]
    assert broken_by(shutil.copytree(folders / name, tmp_path / "result"), change) == layer


def test_what_has_no_witness_is_refused_by_name():
    model = walk()
    learned = plumdp.learn(model, counts_of(model, 50), objectives=["Rmax=? [ LRA ]"])
    with pytest.raises(DataError, match="verify does not know averages in tables of unknown rows"):
        make_witness(learned, plumdp.conclude(learned, "Rmax=? [ LRA ]"))
