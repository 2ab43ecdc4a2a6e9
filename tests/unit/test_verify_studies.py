"""Evidence from other studies is verified with its own part of the error, named as trusted, and tampering is found."""

import json
import shutil

import pytest
from support.tampering import rejected
from support.verified_results import rehash, witnessed, worn, worn_counts

from plumdp.decisions import verify

EVIDENCE = {"p": (3_050, 10_000), "0.5*(1 - q)": (300, 1000)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies") / "result"
    witnessed(folder, "Rmax=? [ C<=9 ]", model=worn(), counts=worn_counts(), evidence=EVIDENCE)
    return folder


@pytest.mark.slow
def test_studies_are_verified_and_said_to_be_trusted(saved):
    report = verify(saved)
    assert report.broken is None, report.broken
    first, second = report.trusted[-2:]
    assert first == (
        "that p is the same in another study as in these data, with 3,050 successes in 10,000 independent trials, "
        "whose number was fixed"
    )
    assert second.startswith("that 0.5*(1 - q), or -1/2*q + 1/2, is the same in another study")
    assert f"trusted: {first}" in str(report)


def test_the_studies_matter_for_what_is_proved(saved, tmp_path):
    """Without them the same ends do not follow, whether they are left out of one file or of both."""
    folder = shutil.copytree(saved, tmp_path / "result")
    witness, certificate = (json.loads((folder / name).read_text()) for name in ("witness.json", "certificate.json"))
    certificate["options"]["evidence"] = None
    del witness["set"]["studies"]
    (folder / "witness.json").write_text(json.dumps(witness))
    rehash(folder, certificate)
    assert verify(folder).broken.layer in ("set", "bracket")


def test_tampering_is_rejected_in_its_layer(saved):
    rejected("studies", saved)
