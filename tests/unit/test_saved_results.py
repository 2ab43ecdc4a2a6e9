"""Results in folders: everything is there again after reading, and what was changed is refused by name."""

import json
import pickle
from dataclasses import fields, replace
from math import inf

import numpy as np
import pytest

import plumdp as pl
from plumdp.data.report import KINDS, IngestionReport
from plumdp.result.folder import write_results

STUDY = pl.case_study("betting:5")
COUNTS = pl.simulate(STUDY.model, STUDY.true_point, 1000, rng=1, max_steps=6)


@pytest.fixture(scope="module")
def certificate():
    return pl.certify(STUDY.model, COUNTS, STUDY.objective)


@pytest.fixture
def folder(certificate, tmp_path):
    certificate.save(tmp_path / "result")
    return tmp_path / "result"


def assert_same(read, written):
    """Check every field; policies by what they say, and findings by what they find."""
    own = {"policy", "source", "data_quality"}
    for name in {field.name for field in fields(written)} - own:
        assert getattr(read, name) == getattr(written, name), name
    assert read.to_dict() == written.to_dict()
    assert str(read) == str(written)
    assert read.findings() == written.findings()
    for name, values in written.policy.columns().items():
        again = read.policy.columns()[name]
        assert again.dtype.kind == values.dtype.kind
        assert again.tolist() == values.tolist()


@pytest.mark.parametrize("model", [None, STUDY.model], ids=["alone", "with the model"])
def test_everything_is_the_same_after_reading(certificate, folder, model):
    read = pl.read_result(folder, model)
    assert_same(read, certificate)
    assert len(read.findings().ladder) == 5
    assert read.policy({"money": 10, "step": 0}) == certificate.policy.action(money=10, step=0)
    assert len(read.policy) == STUDY.model.graph.n_states
    if model is not None:
        assert (read.policy.choice == certificate.policy.choice).all()


def test_a_policy_without_its_model_is_not_taken_for_one_of_the_model(folder):
    read = pl.read_result(folder)
    with pytest.raises(pl.ModelError, match="the policy belongs to another model"):
        pl.evaluate(pl.instantiate(STUDY.model, STUDY.true_point), read.policy, STUDY.objective)


def test_a_result_can_be_saved_again_and_again(certificate, folder, tmp_path):
    pl.read_result(folder).save(tmp_path / "copy")
    for name in ("certificate.json", "findings.json", "policy.csv"):
        assert (tmp_path / "copy" / name).read_bytes() == (folder / name).read_bytes()


def test_infinite_bounds_and_refused_claims_come_back(certificate, tmp_path):
    report = IngestionReport("transitions", dict.fromkeys(KINDS, 0) | {"impossible transition": 2}, {})
    quality = replace(certificate.data_quality, report=report)
    endless = replace(certificate, upper=inf, parameters={"p": (-inf, 0.5)}, data_quality=quality)
    endless.save(tmp_path / "endless", ladder=False)
    read = pl.read_result(tmp_path / "endless")
    assert (read.lower, read.upper, read.parameters) == (-inf, inf, {"p": (-inf, 0.5)})
    assert not read.claims_bounds
    assert read.headline == endless.headline


def test_the_ladder_can_be_left_out(certificate, tmp_path):
    certificate.save(tmp_path / "short", ladder=False)
    assert pl.read_result(tmp_path / "short").findings().ladder == ()
    assert pl.read_result(tmp_path / "short").findings().residuals["p_value"] == certificate.p_value


def test_the_ladder_is_what_compare_says(certificate):
    expected = pl.compare(STUDY.model, COUNTS, STUDY.objective)
    rungs = certificate.findings().ladder
    assert [(rung.relaxation, rung.lower, rung.upper) for rung in rungs] == [
        (each.relaxation, each.lower, each.upper) for each in expected
    ]


@pytest.mark.parametrize("name", ["certificate.json", "findings.json", "policy.csv"])
def test_a_changed_file_is_named(folder, name):
    file = folder / name
    file.write_text(file.read_text().replace("0", "1", 1))
    with pytest.raises(pl.DataError) as caught:
        pl.read_result(folder)
    assert str(caught.value) == (
        f"{file} was changed after the result was written: its content does not have the hash in certificate.json. "
        "Restore it, or certify again"
    )


def test_a_certificate_that_was_only_laid_out_anew_is_the_same(certificate, folder):
    content = json.loads((folder / "certificate.json").read_text())
    (folder / "certificate.json").write_text(json.dumps(content))
    assert pl.read_result(folder).to_dict() == certificate.to_dict()


MISUSES = {
    "nothing": ("nowhere", "{0} is not a folder: give the folder of a result, as plumdp certify -o or save() writes "
                           "it"),
    "empty": ("empty", "{0} has no certificate.json: give the folder of a result, as plumdp certify -o or save() "
                       "writes it"),
    "several": ("both", "{0} holds 2 results: read each of them, such as {0}/1"),
    "no json": ("broken", "{0}/certificate.json cannot be read: Expecting value: line 1 column 1 (char 0)"),
    "other json": ("other", "{0}/certificate.json is not a certificate that this version reads (schema "
                            "'plumdp/comparison/1', not 'plumdp/certificate/1')"),
    "no policy": ("torn", "{0}/policy.csv is missing: it is part of the result"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISUSES)
def test_what_is_not_a_result_is_refused_with_a_reason(certificate, tmp_path, case):
    name, message = MISUSES[case]
    (tmp_path / "empty").mkdir()
    write_results([certificate, certificate], tmp_path / "both", ladder=False)
    for each, text in {"broken": "", "other": '{"schema": "plumdp/comparison/1"}'}.items():
        (tmp_path / each).mkdir()
        (tmp_path / each / "certificate.json").write_text(text)
    certificate.save(tmp_path / "torn", ladder=False)
    (tmp_path / "torn" / "policy.csv").unlink()
    with pytest.raises(pl.DataError) as caught:
        pl.read_result(tmp_path / name)
    assert str(caught.value) == message.format(tmp_path / name)
    assert pl.read_result(tmp_path / "both" / "2").to_dict() == certificate.to_dict()


def test_the_result_of_another_model_is_refused(folder):
    with pytest.raises(pl.DataError, match=r"is a result about another model: that one has the fingerprint \w{8}, "):
        pl.read_result(folder, pl.case_study("betting:6").model)


def test_folders_of_version_0_1_still_open(certificate, folder):
    """That version wrote neither findings nor a schema, nor hashes but the policy's."""
    content = json.loads((folder / "certificate.json").read_text())
    content["hashes"] = {"policy.csv": content["hashes"]["policy.csv"]}
    for name in ("schema", "columns", "gap", "estimate", "estimated_value", "p_value", "misfit", "not_coupled"):
        del content[name]
    (folder / "certificate.json").write_text(json.dumps(content))
    (folder / "findings.json").unlink()
    read = pl.read_result(folder)
    assert read.headline == certificate.headline
    assert read.policy.columns()["money"].dtype == np.int32
    assert read.policy.action(money=10, step=0) == certificate.policy.action(money=10, step=0)
    assert read.findings().parameters == certificate.parameters
    assert read.findings().expressions == ()


@pytest.mark.parametrize(
    ("change", "what"),
    [({"lower": []}, "TypeError"), ({"status": "fine"}, "ValueError"), ({"data_quality": {}}, "KeyError")],
)
def test_what_is_wrong_in_files_without_hashes_gets_a_sentence(folder, change, what):
    content = json.loads((folder / "certificate.json").read_text())
    (folder / "certificate.json").write_text(json.dumps(content | change | {"hashes": {}}))
    with pytest.raises(pl.DataError, match=rf"result is not a result that this version reads \({what}: "):
        pl.read_result(folder)


def test_a_pickled_certificate_has_no_data_but_what_was_found():
    fresh = pl.certify(STUDY.model, COUNTS, STUDY.objective)
    bare = pickle.dumps(fresh)
    assert len(bare) < len(pickle.dumps(fresh.policy)) + 20_000
    assert pickle.loads(bare).findings().residuals == {}
    found = fresh.findings()
    again = pickle.loads(pickle.dumps(fresh))
    assert again.findings() == found
    assert again.to_dict() == fresh.to_dict()
