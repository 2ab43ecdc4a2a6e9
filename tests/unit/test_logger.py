"""The logger: it names every stage with its seconds, to those who ask, and is silent otherwise."""

import logging
import re
import subprocess
import sys

import pytest

import plumdp as pl

STUDY = pl.case_study("betting:5")
COUNTS = pl.simulate(STUDY.model, STUDY.true_point, 100, rng=1, max_steps=6)


def test_every_stage_of_a_certificate_is_logged_with_its_seconds(caplog):
    pl.certify(STUDY.model, COUNTS, STUDY.objective)  # what has to be compiled is compiled here
    with caplog.at_level(logging.DEBUG, logger="plumdp"):
        certificate = pl.certify(STUDY.model, COUNTS, STUDY.objective)
    lines = [record.getMessage() for record in caplog.records if record.name == "plumdp"]
    assert lines == [f"{stage}: {seconds:.3f} s" for stage, seconds in certificate.seconds.items()]
    assert len(lines) >= 3
    assert all(re.fullmatch(r"\w+: \d+\.\d{3} s", line) for line in lines)


@pytest.mark.slow
def test_nothing_is_printed_unless_asked_for():
    code = """
import plumdp as pl
study = pl.case_study("betting:5")
pl.certify(study.model, pl.simulate(study.model, study.true_point, 100, rng=1, max_steps=6), study.objective)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
