"""No field that a sentence of ``verify`` uses can be turned into its opposite, in any kind of result."""

from itertools import product
from re import findall
from typing import Any

import pytest
from support.forged_fields import FIELDS, KINDS, RULES, Forgery, exchanged, forgeries, honest_files, said_of, written
from support.tiers import TIER

from plumdp.decisions import verify

pytestmark = pytest.mark.slow

STILL_TRUE = {  # field, part of the change, whether for readers without a log only: why other words are verified
    **dict.fromkeys(
        product(("lower", "upper", "confidence", "comparison difference *", "comparison first *"), ("",), (False,)),
        "what is printed is what is proved, and says less",
    ),
    ("unit", "", False): "the unit is listed as trusted",
    ("options practice", "not", True): "that the policy is practice is listed as trusted",
    ("options policy", "given / found", False): "which policy it is, is listed as trusted",
    ("answer", "given", False): "it is asked of policy.csv, whose value is at most that",
    ("answer question", "", False): "another question, to which that is the answer",
    ("comparison margin", "", False): "another margin, of which that is true",
    **dict.fromkeys(
        product(("objective", "all texts"), ("min= / =", "max= / ="), (False,)),
        "the bracket is that of the policy, whatever nature is said to be",
    ),
    ("objective", "", True): "it is trusted that the chain is that of the property",
    ("all texts", "F / G", True): "it is trusted that the chain is that of the property",
    ("all texts", "given / found", False): "a name that was not given is listed as trusted",
    ("all texts", "€ per month", False): "the unit is listed as trusted",
}
OF_ONE = ("mission",)  # of which nothing says that the policy is the best one
LESS = "under this policy", "under the recommended policy"
WHO = (  # changes of who is who
    *("given / found", "drug / placebo", "slow / run", "the recommended policy / practice"),
    *("this policy has / the recommended policy has", "this policy has / the value is"),
)


def is_exempt(forgery: Forgery, *, has_log: bool) -> bool:
    """Return whether what is printed of a forgery is other than before, and true."""
    return (forgery.kind in OF_ONE and forgery.field == "all texts" and forgery.change == "max / min") or any(
        forgery.field == field and change in forgery.change and not (alone and has_log)
        for field, change, alone in STILL_TRUE
    )


def chosen(field: str) -> list[tuple[Forgery, bool]]:
    """Return all forgeries of a field by night; by day one, of another kind of result for each field."""
    number = (*FIELDS, *RULES).index(field)
    kinds = [*KINDS][number % len(KINDS) :] + [*KINDS][: number % len(KINDS)]
    if TIER == "night":
        return [*product((each for kind in kinds for each in forgeries(kind, field)), (True, False))]
    found = next((found for kind in kinds if (found := forgeries(kind, field))), [])
    return [(each, bool(number % 2)) for each in found[number % len(found) :][:1]]


@pytest.mark.parametrize("field", [*FIELDS, *RULES])
def test_a_forgery_is_refused_or_changes_nothing_that_is_printed(field, tmp_path):
    passed = []
    for i, (forgery, has_log) in enumerate(chosen(field)):
        kind = forgery.kind
        is_verified, text = said_of(kind, forgery.files, tmp_path / f"{i}", has_log=has_log)
        if is_verified and not is_exempt(forgery, has_log=has_log):
            honest = said_of(kind, honest_files(kind), tmp_path / f"{i} before", has_log=has_log)
            assert honest[0], honest
            new = [line for line in text if line not in honest[1] and line.replace(*LESS) not in honest[1]]
            passed += [(kind, forgery.change, has_log, new)] if new else []
    assert not passed


def test_honest_results_of_all_kinds_are_verified_with_model_and_data(tmp_path):
    for kind in KINDS:
        is_verified, text = said_of(kind, honest_files(kind), tmp_path / kind, has_log=True)
        assert is_verified, text
        assert verify(tmp_path / kind).broken is None


def renamed(kind: str) -> dict[str, Any]:
    """Return the files of a result about another property, with other names and another unit, that fit together."""
    files = honest_files(kind)
    text = files["certificate.json"]["objective"]
    certificate, claim = files["certificate.json"], files["witness.json"]["claim"]
    words = [(text[text.index("[") :], '[ F "other" ]' if text[0] == "P" else "[ C<=7 ]"), ("€ per", "$ per")]
    words += [("drug", "aspirin"), ("placebo", "water"), ("slow", "good"), ("run", "best")]
    for one, other in words:
        certificate = exchanged(certificate, one, other)
        claim = exchanged(claim, one, other)
    return files | {"certificate.json": certificate, "witness.json": files["witness.json"] | {"claim": claim}}


@pytest.mark.parametrize("kind", KINDS)
def test_who_has_no_model_is_told_to_trust_the_property_and_all_names(kind, tmp_path):
    files = [honest_files(kind), renamed(kind)]
    swapped = [each for rule in RULES[:3] for each in forgeries(kind, rule)]
    files += [each.files for each in swapped if each.field == "comparison names" or each.change in WHO]
    reports = [verify(written(kind, each, tmp_path / f"{i}")) for i, each in enumerate(files)]
    assert [each.broken for each in reports[:2]] == [None, None]
    for objective, report in [
        (each["certificate.json"]["objective"], report) for each, report in zip(files, reports, strict=True)
    ]:
        if report.broken is None:
            assert report.objective.startswith(objective)
            about = report.objective.removeprefix(objective).partition(", asked ")[0]
            for file in ["policy.csv", "rival.csv"][: 1 + ("rival.csv" in about)]:
                chain = f"is that of the property, the model and the policy in {file}"
                assert any(text.endswith(chain) for text in report.trusted)
            plain = ("the recommended policy", "the baseline", "practice")
            said = report.sentence.replace(objective, "").partition("; P")[0]
            names = findall('"[^"]*"', said + about)
            names += [each for each in plain if each in report.sentence.lower()]
            assert all(any(name in text for text in report.trusted) for name in names), report
