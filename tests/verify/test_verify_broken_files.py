"""``verify`` refuses files that are damaged or hostile, with a message that says where, and runs nothing of them."""

import json
import os
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
from support.refusals import refused
from support.tampering import forge
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


def test_text_that_is_not_a_witness_is_refused(result):
    def read(code):
        (result / "witness.json").write_text(eval(code))
        rehash(result)
        broken = verify(result).broken
        assert broken.layer == "files"
        raise broken

    refused("tampering:broken_texts", read, Rejected)


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


def test_parts_of_another_kind_are_refused_with_their_place(result):
    honest = [json.loads((result / name).read_text()) for name in ("witness.json", "certificate.json")]

    def check(change):
        witness, certificate = deepcopy(honest)
        forge(witness, certificate, change)
        (result / "witness.json").write_text(json.dumps(witness).replace("Infinity", "1e400"))
        rehash(result)
        raise verify(result).broken

    refused("tampering:broken_parts", check, Rejected)
    assert not list(result.parent.rglob("hacked"))


def test_text_that_is_not_a_polynomial_is_refused():
    some = "|+|p +|p q|2**p|p^|p^-1|p^1000|p^99|1/0|1e5|0x10|p.real|(p)|p*|*p|p\n+ 1|π|p[0]|lambda: 0|r|1_000|٣"
    for text in (*some.split("|"), "9" * 500, "p^" + "9" * 50):
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
    assert "Verified: Pmax=? [" in done.stdout
    (result / "policy.csv").write_text("x")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    assert (done.returncode, done.stdout) == (1, "Rejected (files): policy.csv was changed since it was written.\n")
    assert subprocess.run(command[:-1], capture_output=True).returncode == 2


def test_the_same_source_is_the_same_file(tmp_path):
    for name in "ab":
        write_checker(tmp_path / name)
    assert Path(tmp_path / "a").read_bytes() == Path(tmp_path / "b").read_bytes()
