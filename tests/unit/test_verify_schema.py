"""Witnesses have the form that their JSON schema says, and the page that specifies them names every part of it."""

import json
from pathlib import Path

import pytest
from support.results import files_of, result_of
from support.verified_results import functions_of

pytestmark = pytest.mark.slow

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
SCHEMA = json.loads((REFERENCE / "witness.schema.json").read_text("utf-8"))
OF_PARAMETERS = ("chance", "cost", "steps", "walk", "compared")


@pytest.mark.parametrize("name", [*OF_PARAMETERS, "rewards"])
def test_witnesses_fit_the_schema(name):
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    validator.check_schema(SCHEMA)
    witness = files_of(result_of(name))[0]
    assert [error.message for error in validator(SCHEMA).iter_errors(witness)] == []
    assert witness.get("rewards") or name != "rewards"


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


def test_the_page_names_every_part():
    page = (REFERENCE / "witness.md").read_text("utf-8")
    assert [part for part in parts(SCHEMA) if f"`{part}`" not in page] == []
