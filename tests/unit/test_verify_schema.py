"""Witnesses have the form that their JSON schema says, and the page that specifies them names every part of it."""

import json
from pathlib import Path

import pytest
from support.results import files_of, result_of
from support.verified_results import functions_of

pytestmark = pytest.mark.slow

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {"witness.schema.json": "witness.md", "witness_table.schema.json": "witness_tables.md"}
SCHEMA, OF_TABLE = (json.loads((REFERENCE / name).read_text("utf-8")) for name in PAGES)
OF_PARAMETERS = ("chance", "cost", "steps", "model_tolerance", "again", "average", "walk", "compared", "all")


@pytest.mark.parametrize("name", [*OF_PARAMETERS, "rewards"])
def test_witnesses_fit_the_schema(name):
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    validator.check_schema(SCHEMA)
    witness = files_of(result_of(name))[0]
    assert [error.message for error in validator(SCHEMA).iter_errors(witness)] == []
    assert witness.get("rewards") or name != "rewards"


def test_witnesses_of_tables_fit_their_schema():
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    validator.check_schema(OF_TABLE)
    for name in ("table", "rows", "table from a log"):
        witness = files_of(result_of(name))[0]
        assert [error.message for error in validator(OF_TABLE).iter_errors(witness)] == []
        assert not validator(OF_TABLE).is_valid(witness | {"more": 1})
        assert not validator(SCHEMA).is_valid(witness)


def test_what_does_not_fit_is_told():
    validator = pytest.importorskip("jsonschema").Draft202012Validator(SCHEMA)
    changes = {
        "no brackets": lambda witness: witness["pieces"]["tree"].pop("brackets"),
        "another part": lambda witness: witness.update(more=1),
        "a negative margin": lambda witness: functions_of(witness)["margins"].__setitem__(0, -1.0),
        "a count that is not whole": lambda witness: witness["rows"][0]["seen"]["all"].__setitem__(0, 0.5),
        "another kind": lambda witness: witness["chain"].update(kind="worst"),
    }
    for change in changes.values():
        changed = files_of(result_of("chance"))[0]
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
