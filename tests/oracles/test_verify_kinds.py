"""Results of every kind are verified, or have no witness by name: families, sets, relaxations and objectives.

By day a few small instances, and at night all of them. Whatever is written has passed the checker, so that accepted
results are verified once more from their files, and others are refused with exactly the words of the table.
"""

from dataclasses import replace
from functools import cache

import pytest
from support.tiers import TIER
from support.verified_results import small_counts, small_model

import plumdp
from plumdp.base.errors import DataError
from plumdp.decisions import make_witness, verify
from plumdp.model.language.threshold import parse_threshold
from studies.differences import DIFFERENCES, pairs
from studies.experiment import prepare

pytestmark = pytest.mark.slow

EVERY_DAY = {
    ("betting:5", "likelihood", None): "",
    ("betting:5", "beta-binomial", "interval"): "",
    ("betting:5", "interval", None): "",
    ("betting:5", "l1", None): "verify does not know 'l1' sets",
    ("betting:5", "ellipsoid", None): "verify does not know 'ellipsoid' sets",
    ("rover:4,4,2", "likelihood", "rectangular"): "",
    ("rover:4,4,2", "beta-binomial", None): "",
}
AT_NIGHT = {
    ("aircraft:20,10", "likelihood", None): "",
    ("aircraft:20,10", "likelihood", "interval"): "",
    ("aircraft:20,10", "interval", None): "",
    ("engagement:100", "likelihood", None): "",
    ("engagement:100", "likelihood", "rectangular"): "",
    ("engagement:100", "interval", None): "",
    ("glider:21,17", "likelihood", None): "",
    ("glider:21,17", "likelihood", "interval"): "",
    ("glider:21,17", "beta-binomial", "interval"): "",
    ("glider:21,17", "beta-binomial", None): "",
    ("parallel:5", "likelihood", None): "",
    ("parallel:5", "likelihood", "rectangular"): "",
    ("parallel:5", "beta-binomial", "interval"): "",
    ("parallel:5", "beta-binomial", None): "",
    ("parallel:5", "interval", None): "",
}
KINDS = EVERY_DAY | (AT_NIGHT if TIER == "night" else {})


def require_verdict(learned, certificate, refused, folder):
    """Save and verify a result, or require that it has no witness, in words that begin like this."""
    if refused:
        with pytest.raises(DataError) as error:
            make_witness(learned, certificate)
        assert str(error.value).startswith(refused)
        return
    plumdp.write_result(certificate, folder, witness=make_witness(learned, certificate))
    report = verify(folder)
    assert report.broken is None, report.broken


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))
def test_families_sets_and_relaxations(tmp_path, kind):
    name, of_set, relaxation = kind
    study = plumdp.case_study(name)
    counts = plumdp.simulate(study.model, study.true_point, 1_000, rng=1, max_steps=study.max_steps)
    if of_set == "beta-binomial":
        of_set, counts = "interval", replace(counts, sampling="adaptive")
    learned = plumdp.learn(study.model, counts, objectives=[study.objective], confidence_set=of_set)
    certificate = plumdp.conclude(learned, study.objective, relaxation=relaxation)
    require_verdict(learned, certificate, KINDS[kind], tmp_path / "result")


RECORDS = {"betting:5": "", "aircraft:6,4,1": ""} | (
    {"aircraft:20,10": "", "rover:10,10": "", "glider:7,6,5,4": "", "parallel:2,0": ""} if TIER == "night" else {}
)


@pytest.mark.parametrize("name", RECORDS)
def test_records_of_learning_while_acting(tmp_path, name):
    study = plumdp.case_study(name)
    environment = plumdp.online.simulator(study.model, study.true_point, rng=1, max_steps=study.max_steps + 1)
    *_, record = plumdp.learn_online(study.model, environment, study.objective, episodes=2000)
    learned = plumdp.learn(study.model, record.learned.counts, objectives=[study.objective], witness=True)
    require_verdict(learned, plumdp.conclude(learned, study.objective), RECORDS[name], tmp_path / "result")


OF_ALL = "verify does not know answers about all policies"
QUESTIONS = {
    ("Pmax>=0.6", None): "",
    ("P>=0.6", None): "",
    ("Pmax<=0.6", None): "",
    ("P>=0.9", "uniform"): "",
    ("P>=0.69", "near"): "",
    ("P>=0.9", None): OF_ALL,
    ("P>=0.69", None): OF_ALL,
}


@cache
def learned_for_goal():
    return plumdp.learn(small_model(), small_counts(), objectives=['Pmax=? [ F "goal" ]'])


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: "-".join(map(str, asked)))
def test_answers_to_thresholds(tmp_path, asked):
    question = parse_threshold(f'{asked[0]} [ F "goal" ]', small_model())
    answer = plumdp.decide(learned_for_goal(), question, policy=asked[1])
    require_verdict(learned_for_goal(), answer.answered, QUESTIONS[asked], tmp_path / "result")
    if not QUESTIONS[asked]:
        assert verify(tmp_path / "result").sentence.startswith(f"{answer.verdict.capitalize()} (")


@pytest.mark.skipif(TIER != "night", reason="at night")
@pytest.mark.parametrize("name", DIFFERENCES.plans["quick"].instances)
def test_pairs_of_policies(tmp_path, name):
    """Those of ``python -m studies differences``, with fewer runs."""
    experiment = prepare(name)
    study, counts = experiment.study, experiment.draw(10_000, 1)
    for rival, other, _, prespecified in pairs(experiment, counts):
        learned = plumdp.learn(study.model, counts, objectives=[prespecified])
        found = plumdp.difference(learned, study.objective, experiment.truth.policy, other)
        require_verdict(learned, found.with_comparison(), "", tmp_path / rival)
