"""Results in folders: everything is there again after reading, and what was changed is refused by name."""

import json
import pickle
from copy import copy
from dataclasses import replace
from hashlib import blake2b
from math import inf

import explained
import pytest
from explained import COUNTS, STUDY
from refusals import refused
from shorthand import altered, compare, said

import plumdp as pl
from plumdp.data.report import KINDS, IngestionReport
from plumdp.reporting.read import explain_result, read_findings
from plumdp.result.folder import write_results

MORE = pl.simulate(STUDY.model, STUDY.true_point, 10, rng=2, max_steps=6)
FILES = ("certificate.json", "data.npz", "findings.json", "policy.csv")


@pytest.fixture(scope="module")
def certificate():
    return explained.certificate()


@pytest.fixture(scope="module")
def findings():
    return explained.findings()


@pytest.fixture
def folder(certificate, findings, tmp_path):
    pl.write_result(certificate, tmp_path / "result", findings, model=STUDY.model, counts=COUNTS)
    return tmp_path / "result"


def assert_same(read, written):
    """Check every field; policies, and advice in the words of an interface, by what they say."""
    (one, other), own = (said(read), said(written)), {"policy", "data_quality", "narrower"}
    for name in other.keys() - own:
        assert one[name] == other[name], name
    assert read.to_dict() == written.to_dict()
    assert str(read) == str(written)
    for name, values in written.policy.columns().items():
        again = read.policy.columns()[name]
        assert again.dtype.kind == values.dtype.kind
        assert again.tolist() == values.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("model", [None, STUDY.model], ids=["alone", "with the model"])
def test_everything_is_the_same_after_reading(certificate, findings, folder, model):
    read = pl.read_result(folder, model)
    assert_same(read, certificate)
    assert read_findings(folder) == findings
    assert len(findings.ladder) == 5
    assert read.policy({"money": 10, "step": 0}) == certificate.policy.action(money=10, step=0)
    assert len(read.policy) == STUDY.model.graph.n_states
    if model is not None:
        assert (read.policy.choice == certificate.policy.choice).all()


def test_a_policy_without_its_model_is_not_taken_for_one_of_the_model(folder):
    read = pl.read_result(folder)
    with pytest.raises(pl.ModelError, match="the policy belongs to another model"):
        pl.stages.evaluate(pl.stages.instantiate(STUDY.model, STUDY.true_point), read.policy, STUDY.objective)


def test_a_result_can_be_saved_again_and_again(certificate, folder, tmp_path):
    pl.write_result(pl.read_result(folder), tmp_path / "copy", read_findings(folder), model=STUDY.model, counts=COUNTS)
    for name in FILES:
        assert (tmp_path / "copy" / name).read_bytes() == (folder / name).read_bytes()


def test_infinite_bounds_and_refused_claims_come_back(certificate, tmp_path):
    report = IngestionReport("transitions", dict.fromkeys(KINDS, 0) | {"impossible transition": 2}, {})
    quality = replace(certificate.rests_on.data_quality, report=report)
    endless = altered(certificate, claims_bounds=False, parameters={"p": (-inf, 0.5)}, data_quality=quality)
    pl.write_result(endless, tmp_path / "endless")
    read = pl.read_result(tmp_path / "endless")
    assert (read.lower, read.upper, read.rests_on.parameters) == (-inf, inf, {"p": (-inf, 0.5)})
    assert not read.claim.claims_bounds
    assert read.headline == endless.headline


def test_what_was_not_given_is_not_saved(certificate, tmp_path):
    pl.write_result(certificate, tmp_path / "short")
    assert sorted(file.name for file in (tmp_path / "short").iterdir()) == ["certificate.json", "policy.csv"]
    assert read_findings(tmp_path / "short") is None
    with pytest.raises(pl.DataError, match="model and counts are kept together: give both, or neither"):
        pl.write_result(certificate, tmp_path / "half", model=STUDY.model)
    other = "the certificate rests on another model or other counts: give what was certified"
    for model, counts in ((pl.case_study("betting:6").model, COUNTS), (STUDY.model, COUNTS.planned_sum(MORE))):
        with pytest.raises(pl.DataError, match=other):
            pl.write_result(certificate, tmp_path / "half", model=model, counts=counts)
    assert not (tmp_path / "half").exists()


def test_the_ladder_is_what_compare_says(findings):
    expected = compare(STUDY.model, COUNTS, STUDY.objective)
    assert [(rung.relaxation, rung.lower, rung.upper) for rung in findings.ladder] == [
        (each.how.relaxation, each.lower, each.upper) for each in expected
    ]


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_named(folder, name):
    file = folder / name
    file.write_bytes(file.read_bytes().replace(b"0", b"1", 1))
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
    "nothing": ("nowhere", "{0} is not a folder: give the folder of a result, as plumdp certify -o or write_result "
                           "writes it"),
    "empty": ("empty", "{0} has no certificate.json: give the folder of a result, as plumdp certify -o or write_result "
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
    write_results([(certificate, None), (certificate, None)], tmp_path / "both")
    for each, text in {"broken": "", "other": '{"schema": "plumdp/comparison/1"}'}.items():
        (tmp_path / each).mkdir()
        (tmp_path / each / "certificate.json").write_text(text)
    pl.write_result(certificate, tmp_path / "torn")
    (tmp_path / "torn" / "policy.csv").unlink()
    with pytest.raises(pl.DataError) as caught:
        pl.read_result(tmp_path / name)
    assert str(caught.value) == message.format(tmp_path / name)
    assert pl.read_result(tmp_path / "both" / "2").to_dict() == certificate.to_dict()


def test_the_result_of_another_model_is_refused(folder):
    with pytest.raises(pl.DataError, match=r"is a result about another model: that one has the fingerprint \w{8}, "):
        pl.read_result(folder, pl.case_study("betting:6").model)


def hash_of(content):
    return blake2b(content, digest_size=16).hexdigest()


def seal(folder, content):
    """Write a certificate with the right hashes of all files, as someone could who knows how they are made."""
    content = {name: value for name, value in content.items() if name != "hashes"}
    plain = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    hashes = {name: hash_of((folder / name).read_bytes()) for name in FILES[1:]}
    hashes["certificate.json"] = hash_of(plain)
    (folder / "certificate.json").write_text(json.dumps(content | {"hashes": hashes}))


def changed(content, path, value):
    """Return a copy of nested objects and lists with another value at a place; without it, if that is ..."""
    content, (first, *rest) = copy(content), path
    if rest:
        content[first] = changed(content[first], rest, value)
    elif value is ...:
        del content[first]
    else:
        content[first] = value
    return content


def refused_when_sealed(table, folder, file, read, change):
    """Require that each change of a file, under hashes that fit, is refused in the words of its row."""
    honest = {name: (folder / name).read_bytes() for name in FILES}
    content = json.loads(honest[file]) if file.endswith(".json") else None

    def read_changed(code):
        for name, there in honest.items():
            (folder / name).write_bytes(there)
        change(eval(code, globals() | {"content": content}))
        try:
            read(folder)
        except pl.DataError as error:
            raise pl.DataError(str(error).removeprefix(f"{folder}/{file}")) from None

    refused(f"results:{table}", read_changed, pl.DataError)


def test_a_certificate_with_right_hashes_and_wrong_values_is_refused_in_words(folder):
    refused_when_sealed("certificate", folder, "certificate.json", pl.read_result, lambda made: seal(folder, made))


def test_a_result_of_version_0_3_0_is_read(folder):
    """It had no margin, nothing in brief, no assumptions of a comparison, no visible error, and nothing narrower."""
    content = json.loads((folder / "certificate.json").read_text())
    ends = {name: [0.5, "infinity"] for name in ("first", "second", "difference")}
    content["comparison"] = {"names": ["mine", "yours"], "policy": "first", **ends}
    seal(
        folder,
        {name: value for name, value in content.items() if name not in ("visible_error", "narrower", "in_brief")},
    )
    read = pl.read_result(folder)
    assert (read.beside.visible_error, read.how.narrower, read.comparison.difference["margin"]) == (None, (), 0.0)
    assert read.lower == content["lower"]


def test_findings_with_right_hashes_and_wrong_values_are_refused_in_words(folder):
    certificate = json.loads((folder / "certificate.json").read_text())

    def change(found):
        (folder / "findings.json").write_text(json.dumps(found))
        seal(folder, certificate)

    refused_when_sealed("findings", folder, "findings.json", explain_result, change)


def test_certificates_that_were_not_written_by_plumdp_are_refused_in_words(folder):
    def change(made):
        seal(folder, made) if isinstance(made, dict) else (folder / "certificate.json").write_text(made)

    refused_when_sealed("texts", folder, "certificate.json", pl.read_result, change)


def test_policies_with_right_hashes_that_are_not_policies_are_refused_in_words(folder):
    certificate = json.loads((folder / "certificate.json").read_text())

    def change(text):
        (folder / "policy.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        seal(folder, certificate)

    refused_when_sealed("policies", folder, "policy.csv", pl.read_result, change)


def test_what_was_sealed_without_a_change_is_read(certificate, folder):
    seal(folder, json.loads((folder / "certificate.json").read_text()))
    assert_same(pl.read_result(folder), certificate)


def test_a_width_that_is_infinite_is_written_as_text_and_comes_back(certificate, tmp_path):
    endless = altered(certificate, upper=inf, gap={"statistics": 0.5, "relaxation": inf})
    pl.write_result(endless, tmp_path / "endless")
    assert "Infinity" not in (tmp_path / "endless" / "certificate.json").read_text()
    assert pl.read_result(tmp_path / "endless").beside.gap == endless.beside.gap


def test_actions_and_states_with_odd_characters_come_back_without_the_model(tmp_path):
    (p,) = pl.parameters("p")
    odd = 'a\u2028b\x0cc,"d'

    def step(s):
        return {odd: [(p, s._replace(v="end")), (1 - p, s)], "b": [(1, s)]} if s.v == odd else {"c": [(1, s)]}

    model = pl.explore(step, {"v": odd}, space=pl.ParameterSpace.unit("p"), labels={"end": lambda s: s.v == "end"})
    made = pl.certify(model, pl.simulate(model, {"p": 0.5}, 50, rng=1, max_steps=5), 'Pmax=? [ F "end" ]')
    pl.write_result(made, tmp_path / "odd")
    assert pl.read_result(tmp_path / "odd").policy.action(v=odd) == odd


def test_a_pickled_certificate_is_the_same_and_has_no_data(certificate):
    pickled = pickle.dumps(certificate)
    assert len(pickled) < len(pickle.dumps(certificate.policy)) + 20_000
    assert_same(pickle.loads(pickled), certificate)
