"""Witnesses have the form that their JSON schema says, and the page that specifies them names every part of it."""

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from paid_models import COST as PAID
from paid_models import counts_of as paid_counts
from paid_models import one_payment
from support.verified_results import COST, PROPERTY, answered, compared, functions_of, witnessed, worn, worn_counts
from support.verified_tables import counts_of, from_log, proposed, walk, without_order

pytestmark = pytest.mark.slow

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {"witness.schema.json": "witness.md", "witness_table.schema.json": "witness_tables.md"}
SCHEMA, OF_TABLE = (json.loads((REFERENCE / name).read_text("utf-8")) for name in PAGES)
KINDS = {
    "chance": (PROPERTY, {}),
    "cost": (COST, {"confidence_set": "interval"}),
    "steps": ('Pmax=? [ F<=3 "goal" ]', {"memory": False, "policy": "uniform"}),
    "misfit": (PROPERTY, {"misfit": 0.01, "confidence_set": "interval"}),
    "studies": (PROPERTY, {"evidence": {"p": (615, 1000)}, "confidence_set": "interval"}),
    "support": ('Pmax=? [ G F "down" ]', {"model": worn(), "counts": worn_counts()}),
    "average": ("Rmax=? [ LRA ]", {"model": worn(), "counts": worn_counts()}),
}


@pytest.fixture(scope="module")
def witnesses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name, (text, options) in KINDS.items():
        witnessed(folder / name, text, **options)
    compared(folder / "comparison", "near", "near", COST)
    answered(folder / "all", 'P>=0.9 [ F "goal" ]')
    names = [*KINDS, "comparison", "all"]
    return {name: json.loads((folder / name / "witness.json").read_text("utf-8")) for name in names}


@pytest.mark.parametrize("name", [*KINDS, "comparison", "all"])
def test_witnesses_fit_the_schema(witnesses, name):
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    validator.check_schema(SCHEMA)
    assert [error.message for error in validator(SCHEMA).iter_errors(witnesses[name])] == []


def test_rewards_with_unknown_means_fit_the_schema(tmp_path):
    validator = pytest.importorskip("jsonschema").Draft202012Validator(SCHEMA)
    model, values = one_payment(), np.random.default_rng(1).random(200)
    witnessed(tmp_path / "paid", PAID, model=model, counts=paid_counts(model, values, expected=200.0))
    witness = json.loads((tmp_path / "paid" / "witness.json").read_text("utf-8"))
    assert witness["rewards"]
    assert [error.message for error in validator.iter_errors(witness)] == []


def test_witnesses_of_tables_fit_their_schema():
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    validator.check_schema(OF_TABLE)
    counts = counts_of(walk())
    for model, data, policy in (
        (walk(), counts, None),
        (walk(), without_order(counts), "uniform"),
        (*from_log(), None),
    ):
        witness = json.loads(proposed(model, data, policy=policy)[2])
        assert [error.message for error in validator(OF_TABLE).iter_errors(witness)] == []
        assert not validator(OF_TABLE).is_valid(witness | {"more": 1})
        assert not validator(SCHEMA).is_valid(witness)


def test_what_does_not_fit_is_told(witnesses):
    validator = pytest.importorskip("jsonschema").Draft202012Validator(SCHEMA)
    changes = {
        "no brackets": lambda witness: witness["pieces"]["tree"].pop("brackets"),
        "another part": lambda witness: witness.update(more=1),
        "a negative margin": lambda witness: functions_of(witness)["margins"].__setitem__(0, -1.0),
        "a count that is not whole": lambda witness: witness["rows"][0]["seen"]["all"].__setitem__(0, 0.5),
        "another kind": lambda witness: witness["chain"].update(kind="worst"),
    }
    for change in changes.values():
        changed = deepcopy(witnesses["chance"])
        change(changed)
        assert not validator.is_valid(changed)


def parts(schema):
    """Yield the names of all parts of a schema."""
    for name, part in schema.get("properties", {}).items():
        yield name
        yield from parts(part)
    for below in (schema.get("items"), *schema.get("anyOf", ())):
        if isinstance(below, dict):
            yield from parts(below)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_names_every_part(name):
    page = (REFERENCE / PAGES[name]).read_text("utf-8")
    schema = json.loads((REFERENCE / name).read_text("utf-8"))
    assert [part for part in parts(schema) if f"`{part}`" not in page] == []
