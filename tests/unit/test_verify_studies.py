"""Evidence from other studies is verified with its own part of the error, named as trusted, and tampering is found."""

import json
import shutil

import pytest
from support.verified_results import broken_by, rehash, rewrite, witnessed, worn, worn_counts

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


def of_first(change):
    return lambda studies, listed: change(studies["list"][0])


def other_counts(studies, listed):
    """The same other counts in both files, which the interval is not from."""
    studies["list"][0]["successes"] = 2_900
    listed["p"] = [2_900, 10_000]


TAMPERING = {
    "another number of successes": ("counts", of_first(lambda study: study.update(successes=3_200))),
    "other counts in both files": ("set", other_counts),
    "more trials": ("counts", lambda studies, listed: listed.update(p=[3_050, 12_000])),
    "a study that the witness does not have": ("counts", lambda studies, listed: listed.update(q=[30, 100])),
    "a study that the certificate does not list": ("counts", lambda studies, listed: listed.pop("p")),
    "a study twice": ("budget", lambda studies, listed: studies["list"].append(studies["list"][0])),
    "another expression": ("counts", of_first(lambda study: study.update(polynomial="q"))),
    "a product": ("set", lambda studies, listed: studies["list"][1].update(polynomial="p*q")),
    "lines in a text": ("counts", of_first(lambda study: study.update(text="p\n"))),
    "a narrower interval": ("set", of_first(lambda study: study.update(upper=study["upper"] - 1e-3))),
    "an interval of one more success": ("set", of_first(lambda study: study.update(lower=study["lower"] + 1e-4))),
    "a larger error": ("budget", lambda studies, listed: studies.update(error=2 * studies["error"])),
    "an error of zero": ("budget", lambda studies, listed: studies.update(error=0.0)),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_is_rejected_in_its_layer(saved, tmp_path, kind):
    layer, change = TAMPERING[kind]
    folder = shutil.copytree(saved, tmp_path / "result")

    def changed(witness, certificate):
        change(witness["set"]["studies"], certificate["options"]["evidence"])

    assert broken_by(folder, changed) == layer


def test_without_a_share_of_the_error_studies_prove_nothing(saved, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "result")
    rewrite(folder, lambda witness: witness["budget"]["shares"].pop("evidence"))
    assert str(verify(folder).broken) == "evidence: there is no share of the error"
