"""Records of learning while acting are verified with intervals that earlier updates gave; tampering is found."""

import json
import re
import shutil

import pytest
import shorthand
from support.verified_results import broken_by, witnessed_online
from typer.testing import CliRunner

import plumdp
from plumdp.base.errors import DataError
from plumdp.cli import app
from plumdp.decisions import verify


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a result, and the record that it is of."""
    folder = tmp_path_factory.mktemp("online") / "result"
    return folder, witnessed_online(folder)


def test_a_record_is_verified_with_the_bound_that_it_certifies(saved):
    folder, record = saved
    report = verify(folder)
    assert report.broken is None, report.broken
    assert re.fullmatch(
        r"that .+ had happened [\d,]+ times in [\d,]+ trials at some time of learning", report.trusted[-1]
    )
    assert json.loads((folder / "certificate.json").read_text())["lower"] == record.bound
    witness = json.loads((folder / "witness.json").read_text())
    assert any("earlier" in item for item in witness["set"]["intervals"]["list"])
    assert witness["budget"]["shares"] == {"whole_set": "19/20"}


def test_the_ends_that_a_record_keeps_are_those_of_their_counts(saved):
    """Each end is that of the beta-binomial interval of its own counts, and none is wider than the last."""
    from plumdp.base.error_budget import equal_parts
    from plumdp.confidence.binomial import beta_binomial

    (found,) = saved[1].learned.bounds.constraints
    error = equal_parts(found.error, len(found.events))
    for side, ends in enumerate((found.event_lower, found.event_upper)):
        assert (beta_binomial(*found.ends[side], error)[side] == ends).all()
    assert (beta_binomial(found.successes, found.trials, error)[0] <= found.event_lower).all()


def of_item(change):
    """Change the first interval, whose lower end is from an earlier update."""
    return lambda witness, certificate: change(witness["set"]["intervals"]["list"][0])


def as_if_fixed(witness, certificate):
    witness["set"]["intervals"]["method"] = "clopper-pearson"
    witness["data"]["sampling"] = "independent"
    certificate["guarantee"] = "finite-sample, fixed N"


def larger_bound(witness, certificate):
    for claim in (witness["claim"], certificate):
        claim["lower"] = claim["lower"] * (1 + 1e-6)


TAMPERING = {
    "no earlier counts": ("set", of_item(lambda item: item.pop("earlier"))),
    "earlier counts that show less": ("set", of_item(lambda item: item["earlier"].update(lower=[10, 18]))),
    "more successes than in all": ("set", of_item(lambda item: item["earlier"].update(lower=[10**6, 10**6]))),
    "more failures than in all": ("set", of_item(lambda item: item["earlier"].update(upper=[0, 10**6]))),
    "more successes than trials": ("set", of_item(lambda item: item["earlier"].update(lower=[1968, 1000]))),
    "half of a trial": ("set", of_item(lambda item: item["earlier"].update(lower=[1968, 3546.5]))),
    "a third number": ("set", of_item(lambda item: item["earlier"].update(lower=[1968, 3546, 1]))),
    "a narrower interval": ("set", of_item(lambda item: item.update(lower=item["lower"] + 1e-4))),
    "trials that were fixed": ("set", as_if_fixed),
    "a larger error": ("budget", lambda w, c: w["set"]["intervals"].update(error=w["set"]["intervals"]["error"] * 2)),
    "fewer events": ("set", lambda w, c: w["set"]["intervals"].update(number=1)),
    "a larger bound": ("bracket", larger_bound),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_is_rejected_in_its_layer(saved, tmp_path, kind):
    layer, change = TAMPERING[kind]
    assert broken_by(shutil.copytree(saved[0], tmp_path / "result"), change) == layer


def test_a_certificate_of_a_record_is_explained_by_what_it_was_concluded_from_and_nothing_else(saved):
    record = saved[1]
    learned, policy = record.learned, record.policy
    certificate = plumdp.conclude(learned, learned.questions[0], policy=policy, relaxation="rectangular")
    assert plumdp.explain(learned, certificate, parts=["ladder"]).about == certificate.fingerprint
    with pytest.raises(DataError, match="intervals of earlier updates count as well"):
        shorthand.explain(learned.model, learned.counts, certificate)


ONLINE = ["online", "betting:5", "--runs", "2000", "--seed", "1"]


@pytest.mark.slow
def test_the_command_saves_a_result_that_is_verified(tmp_path):
    folder = tmp_path / "result"
    done = CliRunner().invoke(app, [*ONLINE, "-o", str(folder), "--witness"])
    assert done.exit_code == 0, done.output
    assert "no policy is worth more than" in " ".join(done.output.split())
    assert sorted(file.name for file in folder.iterdir()) == ["certificate.json", "policy.csv", "witness.json"]
    done = CliRunner().invoke(app, ["verify", str(folder)])
    assert done.exit_code == 0
    assert "no policy" not in done.output  # which is not checked, so that it is not in the sentence


def test_a_witness_needs_a_folder():
    done = CliRunner().invoke(app, [*ONLINE, "--witness"])
    assert str(done.exception) == "--witness: name with --output the folder that the witness is written to"
