"""``plumdp certify --witness`` and ``plumdp verify``: what they print, and how they end."""

import json

import pytest
from command_line import plumdp


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("verify")
    runs = str(path / "runs.parquet")
    assert plumdp("simulate", "rover:10,10", "-n", "2000", "--seed", "1", "-o", runs).code == 0
    options = "--order", "runs", "-o", str(path / "result"), "--witness"
    assert plumdp("certify", "rover:10,10", runs, *options).code == 0
    return path


def test_a_result_with_a_witness_is_verified(folder):
    ended = plumdp("verify", str(folder / "result"))
    assert ended.code == 0
    assert "verified: The policy's value lies between" in ended.out
    content = json.loads(plumdp("verify", str(folder / "result"), "--json").out)
    assert (content["schema"], content["verified"], content["broken"]) == ("plumdp/verification/1", True, None)


def test_a_broken_step_is_named_and_ends_with_one(folder, tmp_path):
    ended = plumdp("verify", str(tmp_path))
    assert (ended.code, ended.out) == (
        1,
        "files      BROKEN  certificate.json cannot be read: No such file or directory\n",
    )


def test_the_checker_is_written_once(tmp_path):
    name = str(tmp_path / "verify.pyz")
    assert plumdp("verify", "--write-checker", name).code == 0
    assert plumdp("verify", "--write-checker", name).code == 2
    assert plumdp("verify").code == 2


def test_a_witness_needs_a_folder(folder):
    ended = plumdp("certify", "rover:10,10", str(folder / "runs.parquet"), "--order", "runs", "--witness")
    assert ended.code == 2
