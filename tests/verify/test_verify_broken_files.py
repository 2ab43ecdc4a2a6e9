"""``verify`` refuses files that are damaged or hostile, with a message that says where, and runs nothing of them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.verified_results import rehash, witnessed

from plumdp.decisions import verify
from plumdp.verifying.verify import write_checker
from plumdp_verify.polynomials import parse
from plumdp_verify.reading import Rejected


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "result"
    witnessed(folder, confidence_set="interval")
    return folder


@pytest.fixture
def result(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "result")
    return tmp_path / "result"


TEXTS = {
    "": "witness.json is not JSON: Expecting value, in line 1",
    '{"format": ': "witness.json is not JSON: Expecting value, in line 1",
    "[1, 2]": "witness.json is not a JSON object",
    "\x00": "witness.json is not JSON: Expecting value, in line 1",
    '{"format": NaN}': "NaN is not a number",
    '{"format": -Infinity}': "-Infinity is not a number",
    '{"format": 1, "format": 2}': "the name 'format' is given twice",
    "[" * 100_000: "witness.json is nested too deeply",
    '{"a":' * 100_000: "witness.json is nested too deeply",
    "{}": "witness.json: 'format' is missing",
    '{"format": "plumdp/witness/0"}': "witness.json: the format is not plumdp/witness/2",
    '{"format": 3}': "witness.json: format: expected a text, found 3",
}


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_text_that_is_not_a_witness_is_refused(result, text):
    (result / "witness.json").write_text(text)
    rehash(result)
    report = verify(result)
    assert (report.broken.layer, str(report.broken)) == ("files", TEXTS[text])


def test_numbers_of_too_many_digits_and_other_encodings_are_refused(result):
    (result / "witness.json").write_text('{"format": ' + "9" * 10_000 + "}")
    rehash(result)
    assert str(verify(result).broken).startswith("witness.json is not JSON that can be read: ")
    (result / "witness.json").write_bytes(b"\xff\xfe{}")
    rehash(result)
    assert str(verify(result).broken) == "witness.json is not text in UTF-8"


def test_a_gigabyte_is_refused_without_reading_it(result):
    with (result / "witness.json").open("wb") as file:
        file.truncate(1_000_000_000)  # takes no space on disk
    assert str(verify(result).broken) == "witness.json has 1,000,000,000 bytes; at most 300,000,000 are read"


PARTS = {
    ("budget", "error"): ["0.1", "witness.json: budget: error: expected a number, found '0.1'"],
    ("budget", "shares", "whole_set"): [0.9, "witness.json: budget: shares: whole_set: expected a text, found 0.9"],
    ("budget", "shares", "model_test"): [
        "1/0",
        "witness.json: budget: shares: model_test: expected a fraction such as 4/5, found '1/0'",
    ],
    ("claim",): [None, "witness.json: claim: expected an object, found None"],
    ("set",): [[], "witness.json: set: expected an object, found []"],
    ("parameters",): [["p", "p"], "parameters need names"],
    ("parameters", 0): ["p; import os", "parameters need names"],
    ("data", "order"): ["alphabetic", "data: the order 'alphabetic' is not known"],
    ("data", "expected"): [-1, "data: the expected length is not positive"],
    ("rows", 0, "seen", "all", 0): [-3, "witness.json: rows[0]: seen: all[0]: expected a whole number, found -3"],
    ("rows", 0, "seen", "all", 1): [2.5, "witness.json: rows[0]: seen: all[1]: expected a whole number, found 2.5"],
    ("rows", 0, "seen", "pilot", 0): [
        True,
        "witness.json: rows[0]: seen: pilot[0]: expected a whole number, found True",
    ],
    ("rows", 0, "seen", "all"): [[1], "witness.json: rows[0]: seen: all: expected 2 items, found 1"],
    ("rows", 0, "ways"): [{}, "witness.json: rows[0]: ways: expected a list, found {}"],
    ("rows", 0, "ways", 0, 0, 0): [
        99,
        "witness.json: rows[0]: ways[0][0][0]: expected a whole number below 2, found 99",
    ],
    ("chain", "rows", 0, 1, 0): [
        10**6,
        "witness.json: chain: rows[0][1][0]: expected a whole number below 5, found 1000000",
    ],
    ("chain", "initial"): [-1, "witness.json: chain: initial: expected a whole number below 5, found -1"],
    ("chain", "expressions", 0): [
        "__import__('os').system('touch hacked')",
        "not a polynomial in p, q: \"__import__('os').system('touch hacked')\"",
    ],
    ("pieces", "tree", "values", 0, "margins", 0): [1e400, "witness.json is not JSON that can be read"],
    ("pieces", "tree", "values", 0, "margins", 1): [
        "x" * 100,
        f"witness.json: pieces: piece 0: values[0]: margins[1]: expected a number, found '{'x' * 39}…",
    ],
    ("pieces", "root", "axes"): [
        [[1.0, 0.0]] * 3,
        "witness.json: pieces: root: there are more axes than parameters",
    ],
}


@pytest.mark.parametrize("path", PARTS, ids=lambda path: "-".join(map(str, path)))
def test_parts_of_another_kind_are_refused_with_their_place(result, path):
    value, message = PARTS[path]
    witness = json.loads((result / "witness.json").read_text())
    part = witness
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    text = json.dumps(witness).replace("Infinity", "1e400")
    (result / "witness.json").write_text(text)
    rehash(result)
    broken = verify(result).broken
    expected = (
        "witness.json: pieces: piece 0: values[0]: margins[0]: expected a number, found inf"
        if value == float("inf")
        else message
    )
    assert str(broken) == expected
    assert not list(result.parent.rglob("hacked"))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "+",
            "p +",
            "p q",
            "2**p",
            "p^",
            "p^-1",
            "p^1000",
            "p^99",
            "1/0",
            "1e5",
            "0x10",
            "p.real",
            "(p)",
            "p*",
            "*p",
        ),
        *("9" * 500, "p^" + "9" * 50, "p\n+ 1", "π", "p[0]", "lambda: 0", "r", "1_000", "٣"),
    ],
)
def test_text_that_is_not_a_polynomial_is_refused(text):
    with pytest.raises(Rejected):
        parse(text, ["p", "q"])


@pytest.mark.slow
def test_the_checker_runs_as_one_file_without_plumdp(result, tmp_path):
    """``-I`` ignores the environment, so that the file alone, and packages that are installed, are imported."""
    write_checker(tmp_path / "verify.pyz")
    trace = "import sys, runpy; sys.argv = sys.argv[1:]; sys.modules['plumdp'] = None\n"
    run = trace + "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-I", "-c", run, str(tmp_path / "verify.pyz"), str(result)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    assert "verified: The policy's value lies between" in done.stdout
    (result / "policy.csv").write_text("x")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    assert (done.returncode, done.stdout) == (1, "files      BROKEN  policy.csv was changed since it was written\n")
    assert subprocess.run(command[:-1], capture_output=True).returncode == 2


def test_the_same_source_is_the_same_file(tmp_path):
    for name in "ab":
        write_checker(tmp_path / name)
    assert Path(tmp_path / "a").read_bytes() == Path(tmp_path / "b").read_bytes()
