"""Records of learning while acting are verified with intervals that earlier updates gave; tampering is found."""

import json
import re

import pytest
import shorthand
from support.tampering import rejected
from support.verified_results import witnessed_online
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


def test_tampering_is_rejected_in_its_layer(saved):
    rejected("online", saved[0])


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
