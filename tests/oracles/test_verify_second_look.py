"""``plumdp verify`` compares the chain with the model, and the directions of bets with what came before them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from paid_models import COST as PAID
from paid_models import machine, runs_of
from support.verified_results import (
    COST,
    PROPERTY,
    compared,
    rewrite,
    small_counts,
    small_model,
    stages,
    witnessed,
)

import plumdp
from plumdp.case_studies import prism_file
from plumdp.confidence import likelihood
from plumdp.decisions import verify
from plumdp.model.question import ask
from plumdp.verifying.look import Look, Own
from plumdp.verifying.second_look import check_chain, check_data, check_directions, check_words
from plumdp.verifying.verify import look_again
from plumdp.verifying.witness import propose_witness
from plumdp_verify.reading import Rejected

pytestmark = pytest.mark.slow


def saved(folder: Path, model, counts, text=PROPERTY) -> Path:
    learned = plumdp.learn(model, counts, objectives=[text])
    certificate = plumdp.conclude(learned, text)
    plumdp.write_result(
        certificate, folder, witness=propose_witness(learned, certificate)[0], model=model, counts=learned.counts
    )
    return folder


def check_own(folder, model):
    check_chain(Look(folder, Own(model)), model)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("look") / "result", small_model(), small_counts())


def test_rewards_with_unknown_means_are_compared_at_points(tmp_path):
    model = machine()
    runs = pd.DataFrame(runs_of(np.random.default_rng(1), 300))
    counts = plumdp.read_log(model, runs, plumdp.LogFormat(columns={"cost": "price"}), sampling="trajectories").counts
    folder = saved(tmp_path / "result", model, counts, PAID)
    report = verify(folder)
    look_again(folder, report, Own(machine()))
    assert report.passed[-3:] == ["model", "data", "directions"]
    rewrite(folder, lambda witness: witness["chain"]["rows"][0].__setitem__(0, "repair + 2"))
    with pytest.raises(Rejected, match="another reward"):
        check_own(folder, machine())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda chain: chain["states"]["x"].__setitem__(0, 77), "a state that the model does not have"),
        (lambda chain: chain.update(initial=1), "the initial state is another one"),
        (lambda chain: chain.update(target=chain["avoid"], avoid=chain["target"]), "target"),
        (lambda chain: chain["rows"][0].__setitem__(0, 2.0), "another reward"),
        (lambda chain: chain["expressions"].reverse(), "another row"),
        (lambda chain: chain["rows"][0][1].reverse(), "another row"),
        (lambda chain: chain.update(complement=True), "complement of the chain"),
        (lambda chain: chain.update(kind="discounted", discount="9/10"), "kind of the chain"),
    ],
)
def test_a_chain_of_another_model_is_found(result, change, told):
    witness = json.loads((result / "witness.json").read_text())
    before = json.dumps(witness)
    rewrite(result, lambda content: change(content["chain"]))
    try:
        with pytest.raises(Rejected, match=told):
            check_own(result, small_model())
    finally:
        (result / "witness.json").write_text(before)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('Pmax=? [ F<=3 "goal" ]', {}),
        ('Pmax=? [ F<=3 "goal" ]', {"memory": False, "policy": "uniform"}),
        ("Pmax=? [ (F x=3) & (F x=1) ]", {}),
    ],
)
def test_chains_with_memory_and_draws_are_compared_too(tmp_path, text, options):
    folder = tmp_path / "result"
    witnessed(folder, text, keeps_data=True, **options)
    report = verify(folder)
    look_again(folder, report, Own(small_model()))
    assert report.passed[-3:] == ["model", "data", "directions"], report.broken
    chain = json.loads((folder / "witness.json").read_text())["chain"]
    node = next(i for i, row in enumerate(chain["rows"]) if row is not None and len(set(row[1])) > 1)
    rewrite(folder, lambda content: content["chain"]["rows"][node][1].reverse())
    with pytest.raises(Rejected, match="another row"):
        check_own(folder, small_model())
    if chain["step"] is not None:
        rewrite(folder, lambda content: content["chain"]["rows"][node][1].reverse())
        rewrite(folder, lambda content: content["chain"]["step"].__setitem__(chain["rows"][node][1][0], 9))
        with pytest.raises(Rejected, match=r"another number of steps|is over in one of chain and model"):
            check_own(folder, small_model())


def test_the_chains_of_both_policies_are_compared(tmp_path):
    folder = tmp_path / "result"
    compared(folder, "near", "uniform", COST, keeps_data=True)
    report = verify(folder)
    look_again(folder, report, Own(small_model()))
    assert report.passed[-3:] == ["model", "data", "directions"], report.broken
    rewrite(folder, lambda witness: witness["comparison"]["chain"]["rows"][0][1].reverse())
    with pytest.raises(Rejected, match="another row"):
        check_own(folder, small_model())
    (folder / "rival.csv").unlink()
    with pytest.raises(Rejected, match=r"there is no rival\.csv"):
        check_own(folder, small_model())


def prespecified_policies(folder, of):
    """A result about the difference of two policies that were pre-specified, or about the first of them alone."""
    model = small_model()
    asked = plumdp.model.Question(model, ask(COST, model).objective, policy="near", against="twice")
    learned = plumdp.learn(model, small_counts(), objectives=[asked])
    if of == "both":
        certificate = plumdp.difference(learned, COST, "near", "twice").with_comparison()
    else:
        certificate = plumdp.conclude(learned, replace(asked, against=None))
    witness, _ = propose_witness(learned, certificate)
    plumdp.write_result(certificate, folder, witness=witness, model=model, counts=learned.counts)
    report = verify(folder)
    look_again(folder, report, Own(model))
    return report


def test_directions_of_prespecified_policies_that_the_folder_has_are_looked_at(tmp_path):
    report = prespecified_policies(tmp_path / "result", "both")
    assert report.passed[-2:] == ["data", "directions"], report.broken
    assert report.unchecked == []


def test_directions_of_prespecified_policies_that_the_folder_lacks_are_not_looked_at(tmp_path):
    """The gradients are those of two policies, and the folder has one of them."""
    report = prespecified_policies(tmp_path / "result", "one")
    assert report.passed[-2:] == ["model", "data"], report.broken
    assert report.unchecked == ["the directions of bets (what was pre-specified has no text)"]


def test_directions_that_are_not_those_of_the_estimate_are_found(tmp_path, monkeypatch):
    """Gradients whose parameters are exchanged: whoever chose them did not do so by the data before."""
    honest = likelihood.directions_of_stages

    def exchanged(*given):
        last, gradients, texts = honest(*given)
        return last, gradients[:, :, ::-1].copy(), texts

    with monkeypatch.context() as patch:
        patch.setattr(likelihood, "directions_of_stages", exchanged)
        saved(tmp_path / "result", small_model(), small_counts())
    with pytest.raises(Rejected, match="others than the data before"):
        check_directions(Look(tmp_path / "result"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda w: [side["units"].__setitem__(2, minus(side["units"][2])) for side in bets_of(w)], "bets of stage 2"),
        (lambda w: [side["units"].__setitem__(1, minus(side["units"][1], 0.5)) for side in bets_of(w)], "stage 1"),
        (lambda w: w["rows"][0]["seen"]["all"].__setitem__(0, w["rows"][0]["seen"]["all"][0] + 1), "rows: they are"),
        (lambda w: w["space"].__setitem__(0, "p - 3/5"), "space: that of the model"),
        (lambda w: w["set"]["space_law"]["mean"].__setitem__(0, 0.6), "law of the space"),
    ],
)
def test_bets_on_a_side_that_later_data_show_and_other_counts_are_found(result, change, told):
    before = (result / "witness.json").read_text()
    rewrite(result, change)
    try:
        with pytest.raises(Rejected, match=told):
            check_directions(Look(result)) if "stage" in told else check_data(Look(result))
    finally:
        (result / "witness.json").write_text(before)


def bets_of(witness):
    return witness["set"]["bets"]["list"]


def minus(step, factor=-1):
    return [factor * x for x in step]


def test_parts_that_are_missing_have_a_verdict(result):
    before = (result / "witness.json").read_text()
    rewrite(result, lambda witness: witness["chain"].pop("states"))
    report = verify(result)
    look_again(result, report, Own(small_model()))
    (result / "witness.json").write_text(before)
    assert (report.broken.layer, report.broken.is_broken, str(report.broken)) == ("model", False, "'states'")


def test_an_answer_about_the_value_is_one_of_a_model_without_choices(result):
    before = (result / "certificate.json").read_text()
    answer = {"question": 'Pmax>=0.6 [ F "goal" ]', "verdict": "yes", "about": "only", "limit": None}
    rewrite(result, change_certificate=lambda certificate: certificate.update(answer=answer))
    with pytest.raises(Rejected, match="other policies"):
        check_words(Look(result, Own(small_model())))
    (result / "certificate.json").write_text(before)


def test_a_prism_file_is_read_again_with_numbers_for_its_parameters(tmp_path):
    pytest.importorskip("stormpy")
    file = prism_file("betting")
    model = plumdp.read_model(file, constants={"N": 4})
    counts = plumdp.simulate(model, {"p": 0.55}, 2000, rng=1, max_steps=5)
    text = "Rmax=? [ F step=4 ]"
    folder = saved(tmp_path / "result", model, counts, plumdp.case_study("betting:4").objective.text or text)
    report = verify(folder)
    look_again(folder, report, Own(model, counts, lambda point: plumdp.read_model(file, constants={"N": 4, **point})))
    assert report.passed[-3:] == ["model", "log", "directions"], report.broken


def test_events_that_another_policy_tries_twice_are_found(tmp_path):
    """The chain of a policy that draws its actions has rows of its own, and does not show which events they try."""
    of_walk = {"confidence_set": "interval", "policy": "uniform", "relaxation": "parameter"}
    witnessed(tmp_path / "walk", **of_walk, keeps_data=True)
    counts = plumdp.simulate(stages(), {"p": 0.6, "q": 0.3}, 1_000, rng=1, max_steps=3)
    witnessed(tmp_path / "stages", model=stages(), counts=counts, confidence_set="interval", keeps_data=True)

    def call_once(content):
        content["set"]["intervals"]["method"] = "clopper-pearson"
        for item in content["set"]["intervals"]["list"]:
            item["once"] = True

    rewrite(tmp_path / "walk", call_once, lambda c: c.update(guarantee="finite-sample, fixed N"))
    for name, passed, layer in (("walk", "data", "trials"), ("stages", "trials", None)):
        report = verify(tmp_path / name)
        assert report.broken is None, report.broken
        look_again(tmp_path / name, report)
        assert (report.passed[-1], report.broken and report.broken.layer) == (passed, layer)
