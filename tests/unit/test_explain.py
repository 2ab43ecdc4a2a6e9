"""A certificate is data: keeping it computes nothing, and ``explain`` finds the rest, for this certificate alone."""

import json
import pickle
import sys
import zipfile
from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path
from time import process_time

import explained
import numpy as np
import pytest
from explained import COUNTS, STUDY
from shorthand import explain

import plumdp as pl
from plumdp.reporting.read import explain_result
from plumdp.result.certificate import Certificate, fingerprint_of
from plumdp.result.data_file import read_data, write_data
from plumdp.result.findings import Findings

SOURCE = Path(pl.__file__).parent


@pytest.fixture(scope="module")
def learned():
    return explained.learned()


@pytest.fixture(scope="module")
def certificate():
    return explained.certificate()


@pytest.fixture(scope="module")
def findings():
    return explained.findings()


def entered(action):
    """Return the functions of plumdp that an action enters, as (file, name), without comprehensions."""
    seen = set()

    def note(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(SOURCE) and not frame.f_code.co_name.startswith("<"):
            seen.add((str(file.relative_to(SOURCE)), frame.f_code.co_name))

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return seen


COMPUTING = ("learning", "pipeline", "valuation", "solver", "region", "advising", "checking", "explaining", "reporting")


def computed(functions):
    """Return those of some functions that compute something about the model or the data."""
    return [(file, name) for file, name in functions if file.split("/")[0].removesuffix(".py") in COMPUTING]


@pytest.mark.slow
def test_saving_writes_what_is_there_and_solves_nothing(certificate, tmp_path):
    functions = entered(lambda: pl.write_result(certificate, tmp_path / "result", model=STUDY.model, counts=COUNTS))
    assert computed(functions) == []
    assert 10 < len(functions) <= 50  # three write each file whole; some say in which words data and assumptions are
    seconds = []
    for k in range(5):
        start = process_time()
        pl.write_result(certificate, tmp_path / f"result{k}", model=STUDY.model, counts=COUNTS)
        seconds.append(process_time() - start)
    assert min(seconds) < 0.05


def test_the_count_of_functions_sees_what_computes(certificate, learned):
    assert computed(entered(lambda: pl.explain(learned, certificate, parts=["region"])))


@pytest.mark.parametrize("keep", [pickle.dumps, repr, str, Certificate.to_dict, Certificate._repr_html_])
def test_pickling_printing_and_json_compute_nothing(certificate, keep):
    assert computed(entered(lambda: keep(certificate))) == []
    assert vars(certificate).keys() == set(Certificate.__dataclass_fields__)  # nothing is cached


@pytest.mark.slow
def test_model_and_counts_explain_as_what_was_learned_does(certificate, findings):
    """Without advice, which takes longest."""
    parts = ["ladder", "region", "expressions", "policy", "residuals"]
    assert explain(STUDY.model, COUNTS, certificate, parts=parts) == replace(findings, advice={})


def test_parts_that_are_not_wanted_stay_empty(learned, certificate, findings):
    found = pl.explain(learned, certificate, parts=["policy", "region"])
    assert found == Findings(fingerprint_of(certificate), outlines=findings.outlines, variables=findings.variables)
    with pytest.raises(pl.DataError, match=r"parts=\['rungs'\]: choose some of 'ladder', 'region', "):
        pl.explain(learned, certificate, parts=["rungs"])


def seal(folder, **changes):
    """Change entries of a certificate, and write the right hashes of all files, as someone could who knows of them."""
    content = json.loads((folder / "certificate.json").read_text()) | changes
    content.pop("hashes")
    names = [file.name for file in folder.iterdir() if file.name != "certificate.json"]
    hashes = {name: blake2b((folder / name).read_bytes(), digest_size=16).hexdigest() for name in names}
    plain = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    hashes["certificate.json"] = blake2b(plain, digest_size=16).hexdigest()
    (folder / "certificate.json").write_text(json.dumps(content | {"hashes": hashes}))


def provenance(folder, **changes):
    return json.loads((folder / "certificate.json").read_text())["provenance"] | changes


def better_bound(folder, certificate):
    seal(folder, lower=certificate.lower + 1e-9)


def other_confidence(folder, certificate):
    seal(folder, confidence=0.9999)


def fewer_assumptions(folder, certificate):
    seal(folder, assumptions=[], in_brief=[])


def other_answer(folder, certificate):
    """The question is answered with no, as no policy has so much."""
    question = 'R{"money"}>=40 [ F "end" ]'
    seal(folder, answer={"question": question, "verdict": "yes", "about": "recommended", "limit": None})


def other_counts(folder, certificate):
    more = pl.TransitionCounts(STUDY.model.graph, 2 * COUNTS.counts, COUNTS.sampling)
    write_data(folder / "data.npz", STUDY.model, more)
    seal(folder)


def other_counts_and_their_hash(folder, certificate):
    more = pl.TransitionCounts(STUDY.model.graph, 2 * COUNTS.counts, COUNTS.sampling)
    write_data(folder / "data.npz", STUDY.model, more)
    seal(folder, provenance=provenance(folder, counts=more.fingerprint))


def other_policy(folder, certificate):
    pl.PolicyTable(STUDY.model.graph, STUDY.model.graph.first_choice[:-1]).to_csv(folder / "policy.csv")
    seal(folder)


def no_options(folder, certificate):
    seal(folder, options={})


def damaged(folder, certificate):
    (folder / "data.npz").write_bytes((folder / "data.npz").read_bytes()[:-100])
    seal(folder)


TAMPERED = {
    better_bound: r"the counts and options of this certificate give lower .*, not .*: it was changed, or plumdp .* "
    "with NumPy .* made it, and this is plumdp .* with NumPy .*; certify again",
    other_confidence: "the counts and options of this certificate give lower .*, not ",
    fewer_assumptions: "the counts and options of this certificate do not give its assumptions: it was changed, or ",
    other_answer: "the counts and options of this certificate do not give its answer: it was changed, or ",
    other_counts: "the certificate rests on other counts: give those that it was certified from",
    other_counts_and_their_hash: "the counts and options of this certificate give lower .*, not ",
    other_policy: "the counts and options of this certificate do not give its policy: it was changed, or ",
    no_options: "this certificate was put together by hand: there is nothing that could be learned again",
    damaged: r"data\.npz is not what plumdp writes: ",
}


@pytest.mark.parametrize("change", TAMPERED, ids=lambda change: change.__name__)
def test_a_saved_result_that_does_not_follow_from_its_counts_has_no_report(certificate, tmp_path, change):
    """All hashes are right: only certifying again shows that something was changed."""
    pl.write_result(certificate, tmp_path / "result", model=STUDY.model, counts=COUNTS)
    change(tmp_path / "result", certificate)
    pl.read_result(tmp_path / "result")
    with pytest.raises(pl.DataError, match=TAMPERED[change]):
        explain_result(tmp_path / "result")


@pytest.mark.slow
def test_what_a_certificate_was_not_concluded_from_does_not_explain_it(learned, certificate, tmp_path):
    other = pl.case_study("betting:6").model
    for given, message in (
        (pl.learn(STUDY.model, COUNTS, confidence=0.99, objectives=[STUDY.objective]), "made with other options"),
        (pl.learn(STUDY.model, COUNTS, confidence_set="interval"), "made with other options"),
        (pl.learn(STUDY.model, replace(COUNTS, sampling="adaptive", pilot=None)), "rests on other counts"),
        (pl.learn(other, pl.simulate(other, {"p": "0.5"}, 10, rng=1, max_steps=6)), "is about another model"),
    ):
        with pytest.raises(pl.DataError, match=f"the certificate (was )?{message}"):
            pl.explain(given, certificate)
    pl.write_result(certificate, tmp_path / "result")
    with pytest.raises(pl.DataError, match="the certificate was read without its model: read it with read_result"):
        pl.explain(learned, pl.read_result(tmp_path / "result"))
    assert pl.explain(learned, pl.read_result(tmp_path / "result", STUDY.model), parts=["policy"]).variables
    with pytest.raises(pl.DataError, match=r"not Certificate: write explain\(learned, certificate\)$"):
        pl.explain(certificate, learned)


def odd_model():
    """Return a model with everything that a model can have."""
    p, q = pl.parameters("infinity", "q")

    def step(s):
        if s.at == "end":
            return {"stay": [(1, s)]}
        return {
            "go": [(p * q, s._replace(at="end")), (1 - p * q, s._replace(wet=True))],
            "infinity": [(p, s._replace(n=s.n + 1) if s.n < 2 else s), (1 - p, s._replace(at="end"))],
        }

    space = pl.ParameterSpace.box({"infinity": ("1/3", "0.9"), "q": (0, 1)}, constraints=[p - q + Fraction(1, 7)])
    labels = {"end": lambda s: s.at == "end", "": lambda s: s.wet}
    rewards = {
        "rewards": {"": lambda s: s.n, "both": lambda s: 1},
        "choice_rewards": {"both": lambda s, action: 2 if action == "go" else 0},
    }
    return pl.explore(step, {"at": "here", "n": 0, "wet": False}, space=space, labels=labels, **rewards)


def test_a_model_and_its_counts_come_back_as_they_were(tmp_path):
    model = odd_model()
    model = replace(model, constants={"N": 3, "x": Fraction(1, 3), "b": True})
    counts = pl.simulate(model, {"infinity": "1/2", "q": "1/4"}, 500, rng=1, max_steps=9)
    write_data(tmp_path / "data.npz", model, counts)
    again, seen = read_data(tmp_path / "data.npz")
    assert again.fingerprint == model.fingerprint
    assert (again.constants, [type(value) for value in again.constants.values()]) == (
        model.constants,
        [type(value) for value in model.constants.values()],
    )
    assert (again.expressions.coefficient == model.expressions.coefficient).all()
    assert {name: mask.tolist() for name, mask in again.labels.items()} == {
        name: mask.tolist() for name, mask in model.labels.items()
    }
    for name, reward in model.rewards.items():
        for part in ("state", "choice"):
            assert np.array_equal(getattr(again.rewards[name], part), getattr(reward, part))
    assert (seen.fingerprint, seen.parts, seen.report) == (counts.fingerprint, counts.parts, counts.report)
    write_data(tmp_path / "again.npz", again, seen)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "data.npz").read_bytes()


@pytest.mark.slow
def test_findings_with_odd_names_come_back_as_they_were(tmp_path):
    """An action, a parameter and a state that are called infinity are no numbers."""
    model = odd_model()
    counts = pl.simulate(model, {"infinity": "1/2", "q": "1/4"}, 500, rng=1, max_steps=9)
    certificate = pl.certify(model, counts, 'Pmax=? [ F<=3 "end" ]')
    findings = explain(model, counts, certificate, parts=["expressions", "policy", "region"])
    pl.write_result(certificate, tmp_path / "result", findings)
    read, found = explain_result(tmp_path / "result")
    assert found == findings
    assert read.rests_on.parameters == certificate.rests_on.parameters


CORRUPTIONS = {
    "a successor that there is not": {"successor": lambda values: values + 1000},
    "an expression that there is not": {"expression": lambda values: values - 1},
    "offsets that decrease": {"first_transition": lambda values: values[::-1].copy()},
    "too few counts": {"counts": lambda values: values[:-1]},
    "negative counts": {"counts": lambda values: values - 10**6},
    "counts that are no numbers": {"counts": lambda values: np.array(["many"] * len(values))},
    "no text": {"about": lambda values: values[:10]},
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_file_of_arrays_that_are_not_a_model_is_refused(name, tmp_path):
    write_data(tmp_path / "data.npz", STUDY.model, COUNTS)
    with np.load(tmp_path / "data.npz") as file:
        arrays = dict(file)
    for part, change in CORRUPTIONS[name].items():
        arrays[part] = change(arrays[part])
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(pl.DataError, match=r"data\.npz is not what plumdp writes"):
        read_data(tmp_path / "data.npz")


def test_a_pickle_in_the_place_of_arrays_is_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (exec, ("raise SystemExit",))

    np.savez(tmp_path / "data.npz", about=np.array([Bomb()], dtype=object))
    with pytest.raises(
        pl.DataError, match=r"data\.npz is not what plumdp writes: a part of it is missing, or is not what it should be"
    ):
        read_data(tmp_path / "data.npz")


def test_a_file_that_unpacks_to_more_than_it_may_is_refused_before_it_is_read(tmp_path):
    """A few kilobytes that declare, and hold, 64 MB of zeros; and one compressed in a way that keeps to no limit."""
    write_data(tmp_path / "data.npz", STUDY.model, COUNTS)
    assert read_data(tmp_path / "data.npz", most=2**22)[1].total == COUNTS.total
    with zipfile.ZipFile(tmp_path / "data.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.npy", bytes(2**26))
    with pytest.raises(pl.DataError, match=r"data\.npz .*: it holds 67,\d+,\d+ bytes, and 4,194,304 are more than"):
        read_data(tmp_path / "data.npz", most=2**22)
    with zipfile.ZipFile(tmp_path / "data.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("about.npy", b"")
    with pytest.raises(pl.DataError, match="it is compressed in another way"):
        read_data(tmp_path / "data.npz", most=2**22)
