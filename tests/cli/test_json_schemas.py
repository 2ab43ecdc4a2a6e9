"""What ``--json`` prints: valid JSON of a known schema, with these fields at least, of these types."""

import json

import jsonschema
import pytest
from command_line import plumdp

NUMBER, TEXT = {"type": "number"}, {"type": "string"}
BOUND = {"type": ["number", "string", "null"]}  # infinite numbers are texts, and what is not claimed is null
TEXTS = {"type": "array", "items": TEXT}
NUMBERS = {"type": "object", "additionalProperties": NUMBER}


def with_fields(schema, version=1, **fields):
    properties = {"schema": {"const": f"plumdp/{schema}/{version}"}, **fields}
    return {"type": "object", "required": list(properties), "properties": properties}


CERTIFICATE = with_fields(
    "certificate",
    status={"enum": ["certified", "inconclusive", "model rejected", "premises rejected"]},
    lower=BOUND,
    upper=BOUND,
    objective=TEXT,
    direction={"enum": ["max", "min"]},
    confidence={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    relaxation=TEXT,
    confidence_set=TEXT,
    guarantee=TEXT,
    assumptions=TEXTS,
    reason=TEXT,
    parameters={"type": "object", "additionalProperties": {"type": "array", "items": BOUND, "minItems": 2}},
    solver=TEXT,
    seconds=NUMBERS,
    provenance={"type": "object"},
    estimate=NUMBERS,
    gap=NUMBERS,
    jointly=TEXTS,
    p_value={"type": ["number", "null"]},
    model_tolerance=NUMBER,
    budget=NUMBERS,
    data_quality={"type": ["object", "null"]},
)
ANSWER = {
    "allOf": [
        CERTIFICATE,
        {
            "required": ["question", "verdict", "headline", "limit"],
            "properties": {
                "question": TEXT,
                "verdict": {"enum": ["yes", "no", "inconclusive"]},
                "headline": TEXT,
                "limit": BOUND,
            },
        },
    ]
}
INFO = with_fields(
    "info",
    model=TEXT,
    states={"type": "integer"},
    choices={"type": "integer"},
    transitions={"type": "integer"},
    variables={"type": "object"},
    parameters={"type": "object"},
    properties=TEXTS,
    issues={"type": "array"},
)
ERROR = with_fields(
    "error",
    error={
        "type": "object",
        "required": ["kind", "message"],
        "properties": {
            "kind": {"enum": ["usage", "model", "data", "missing extra", "input/output", "unexpected"]},
            "message": TEXT,
        },
        "additionalProperties": False,
    },
) | {"additionalProperties": False}


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    path = tmp_path_factory.mktemp("json") / "counts.parquet"
    assert plumdp("simulate", "betting:5", "-n", "1000", "--form", "counts", "-o", str(path)).code == 0
    return str(path)


def several(schema, n):
    return {"type": "array", "items": schema, "minItems": n, "maxItems": n}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "schema"),
    [
        (["info", "betting:5"], 0, INFO),
        (["certify", "betting:5", "COUNTS"], 0, CERTIFICATE),
        (["certify", "betting:5", "COUNTS", "-p", 'R>=1 [ F "end" ]'], 0, ANSWER),
        (["certify", "betting:5", "COUNTS", "-p", 'R>=1 [ F "end" ]', "-p", "R>=99 [ C<=2 ]"], 1, several(ANSWER, 2)),
        (["certify", "betting:5", "COUNTS", "-r", "all"], 0, several(CERTIFICATE, 5)),
        (["check-model", "betting:5", "COUNTS"], 0, with_fields("check", data_quality={"type": "object"})),
        (["certify", "betting:5", "nowhere.csv"], 2, ERROR),
        (["certify", "betting:6", "COUNTS"], 2, ERROR),
        (["certify", "betting:5", "COUNTS", "--relaxation", "loose"], 2, ERROR),
        (["certify", "betting:5", "COUNTS", "--model-tolerance", "x"], 2, ERROR),
        (["check-model", "nowhere", "COUNTS"], 2, ERROR),
        (["advise", "betting:5", "COUNTS", "--confidence", "1"], 2, ERROR),
    ],
)
def test_json_is_of_its_schema(arguments, code, schema, counts):
    ended = plumdp(*(counts if text == "COUNTS" else text for text in arguments), "--json")
    assert (ended.code, ended.err) == (code, "")
    jsonschema.validate(json.loads(ended.out), schema)
