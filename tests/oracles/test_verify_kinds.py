"""Results of every kind are verified, or have no witness by name: families, sets, relaxations and objectives.

By day a few small instances, and at night all of them. Whatever is written has passed the checker, so that accepted
results are verified once more from their files, and others are refused with exactly the words of the table.
"""

from dataclasses import replace
from functools import cache

import pytest
from support.tiers import TIER
from support.verified_results import PROPERTY, small_counts, small_model

import plumdp
from plumdp.base.errors import DataError
from plumdp.decisions import make_witness, verify
from plumdp.model.language.threshold import parse_threshold

pytestmark = pytest.mark.slow

NONE = "no proof of these bounds was found"
GUARANTEE = "verify does not know sets without a guarantee for any number of data"
BETA = {"confidence_set": "interval", "interval_method": "beta-binomial"}
FORCED = {"confidence_set": "interval", "interval_method": "clopper-pearson"}
EVERY_DAY = {
    ("betting:5", "likelihood", None): "",
    ("betting:5", "beta-binomial", "interval"): "",
    ("betting:5", "interval", None): "",
    ("betting:5", "clopper-pearson", None): GUARANTEE,
    ("betting:5", "l1", None): "",
    ("betting:5", "ellipsoid", None): "",
    ("betting:5", "published-interval", None): GUARANTEE,
    ("betting:5", "published-ellipsoid", None): GUARANTEE,
    ("rover:4,4,2", "likelihood", "rectangular"): "",
    ("rover:4,4,2", "beta-binomial", None): "",
    ("rover:4,4,2", "ellipsoid", None): "",
}
AT_NIGHT = {
    ("aircraft:20,10", "likelihood", None): "",
    ("aircraft:20,10", "likelihood", "interval"): "",
    ("aircraft:20,10", "interval", None): "",
    ("aircraft:20,10", "l1", None): "",
    ("aircraft:20,10", "ellipsoid", None): "",
    ("engagement:100", "likelihood", None): "",
    ("engagement:100", "likelihood", "rectangular"): "",
    ("engagement:100", "interval", None): NONE,
    ("glider:21,17", "likelihood", None): "",
    ("glider:21,17", "likelihood", "interval"): "",
    ("glider:21,17", "beta-binomial", "interval"): "",
    ("glider:21,17", "beta-binomial", None): "",
    ("glider:21,17", "l1", None): "",
    ("glider:21,17", "ellipsoid", None): "",
    ("parallel:5", "likelihood", None): "",
    ("parallel:5", "likelihood", "rectangular"): "",
    ("parallel:5", "beta-binomial", "interval"): "",
    ("parallel:5", "beta-binomial", None): "",
    ("parallel:5", "interval", None): "",
    ("parallel:5", "l1", None): "",
    ("parallel:5", "ellipsoid", None): "",
}
KINDS = EVERY_DAY | (AT_NIGHT if TIER == "night" else {})


def require_verdict(learned, certificate, refused, folder):
    """Save and verify a result, or require that it has no witness, in words that begin like this."""
    if refused:
        with pytest.raises(DataError) as error:
            make_witness(learned, certificate)
        assert str(error.value).startswith(refused)
        return
    certificate.save(folder, witness=make_witness(learned, certificate))
    report = verify(folder)
    assert report.broken is None, report.broken


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))
def test_families_sets_and_relaxations(tmp_path, kind):
    name, of_set, relaxation = kind
    study = plumdp.case_study(name)
    counts = plumdp.simulate(study.model, study.true_point, 1_000, rng=1, max_steps=study.max_steps)
    options = {"beta-binomial": BETA, "clopper-pearson": FORCED}.get(of_set, {"confidence_set": of_set})
    learned = plumdp.learn(study.model, counts, objectives=[study.objective], **options)
    certificate = plumdp.conclude(learned, study.objective, relaxation=relaxation)
    require_verdict(learned, certificate, KINDS[kind], tmp_path / "result")


ALL = "verify does not know answers about all policies"
QUESTIONS = {
    ("Pmax>=0.6", None): "",
    ("P>=0.6", None): "",
    ("Pmax<=0.6", None): "",
    ("P>=0.9", "uniform"): "",
    ("P>=0.69", "near"): "",
    ("P>=0.9", None): ALL,
    ("P>=0.69", None): ALL,
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
        assert verify(tmp_path / "result").sentence == answer.sentence


def test_other_kinds_are_refused_by_name(tmp_path):
    misfit = plumdp.learn(small_model(), small_counts(), objectives=[PROPERTY], misfit=0.01)
    told = plumdp.learn(small_model(), small_counts(), objectives=[PROPERTY], evidence={"p": (60, 100)})
    for learned, refused in (
        (misfit, "verify does not know bounds with a misfit"),
        (told, "verify does not know evidence from other studies"),
    ):
        require_verdict(learned, plumdp.conclude(learned, PROPERTY), refused, tmp_path)
    learned = plumdp.learn(small_model(), small_counts(), objectives=[PROPERTY])
    compared = replace(plumdp.conclude(learned, PROPERTY), comparison={"sentence": "The first policy is better."})
    require_verdict(learned, compared, "verify does not know comparisons with another policy", tmp_path)
