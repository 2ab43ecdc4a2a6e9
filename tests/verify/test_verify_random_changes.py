"""``verify`` has a verdict on every change of a witness, and rejects all proofs of a false claim."""

import copy
import json
import os
import random

from support.results import files_of, result_of
from support.verified_results import PROPERTY, verdict

from plumdp_verify.reading import Rejected, read_json

N_MUTANTS = 3_000 if os.environ.get("PLUMDP_TIER") == "night" else 40


def places(value, at=()):
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*at, name))


ODD = [
    None,
    True,
    0,
    -1,
    3,
    10**400,
    0.5,
    -1e308,
    5e-324,
    "",
    "p",
    "1/3",
    "\ud800",
    [],
    {},
    [[]],
    [0],
    {"a": 1},
    "main",
]


def mutate(content, rng):
    """Change one place: another value, a copy of another place, twice, without it, or another number."""
    *way, last = rng.choice(list(places(content))[1:])
    parent = content
    for name in way:
        parent = parent[name]
    old, kind = parent[last], rng.randrange(5)
    if kind == 0:
        del parent[last]
    elif kind == 1 and isinstance(parent, list):
        parent.insert(last, copy.deepcopy(old))
    elif kind == 2:
        parent[last] = [old]
    elif kind == 3 and type(old) in (int, float):
        parent[last] = rng.choice([-old, 2 * old, old + 1, old * (1 + 1e-6), 0])
    else:
        parent[last] = copy.deepcopy(rng.choice(ODD))


def test_random_changes_have_a_verdict_and_nothing_else():
    """Any error but a rejection ends the test. With a claim that is false, all of them are rejected."""
    rng = random.Random(31)
    for _ in range(N_MUTANTS):
        witness, certificate = files_of(result_of())
        for _ in range(rng.choice((1, 1, 3))):
            mutate(witness, rng)
        text = json.dumps(witness)
        try:
            read_json(text.encode(), "witness.json")
        except Rejected:
            continue
        verdict(json.loads(text), certificate)


PROPOSED = ("functions", "margins", "steps", "multipliers", "cube", "centre", "axes", "sides", "radius", "point")


def test_a_false_claim_has_no_proof_among_random_ones():
    """The value at the estimate, which is in the set, is beyond the ends that are claimed."""
    witness, certificate = files_of(result_of())
    assert witness["claim"]["objective"] == PROPERTY
    value = certificate["estimated_value"]
    rng = random.Random(32)
    for _ in range(N_MUTANTS):
        forged = copy.deepcopy(witness)
        ends = {"lower": value + 1e-3} if rng.random() < 0.5 else {"upper": value - 1e-3}
        forged["claim"] |= ends
        numbers = [at for at in places(forged) if set(at) & set(PROPOSED) and {*at[:2]} & {"tangents", "pieces"}]
        for *way, last in rng.sample(numbers, rng.choice((1, 3, 10))):
            parent = forged
            for name in way:
                parent = parent[name]
            if type(parent[last]) is float:
                parent[last] *= rng.choice((-1, 0, 1e3, 1e-3, rng.gauss(1, 0.1), rng.gauss(1, 1e-4)))
        assert verdict(forged, certificate | ends)[0] in ("set", "values", "bracket")
