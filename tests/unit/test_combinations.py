"""Any two features work together from end to end, or are refused with the sentence of the one table that says so."""

import re
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
import pytest
from tiers import size

import plumdp as pl
from plumdp.base.combinations import REFUSALS, refusals
from plumdp.base.vocabulary import Sampling, Trait
from plumdp.certifying.pipeline import prespecifying
from plumdp.certifying.since import certify_since
from plumdp.data import read_whole_runs
from plumdp.learning.methods import NEEDED, SETS
from plumdp.model.gaps import with_gaps
from plumdp.model.question import ask
from plumdp.relaxation.relax import RELAXATIONS
from plumdp.reporting.read import explain_result
from plumdp.verifying.look import Own
from plumdp.verifying.verify import look_again

SPACE = pl.ParameterSpace.unit("p")
WON = {"won": lambda s: (s.level == 1) & (s.x == 1)}
T = Trait


class Place(NamedTuple):
    level: Any
    x: Any


def toss(s):
    """Toss the coin, or one that wins half as often, once; then stay."""
    p, is_first = pl.parameters("p")[0], s.level == 0
    for action, chance in (("toss", p), ("try", p / 2)):
        yield action, is_first, [(chance, Place(1, 1)), (1 - chance, Place(1, 0))]
    yield "stay", ~is_first, [(1, s)]


def tossed(s):
    """Return the row of each action in one state, as ``toss`` does for all."""
    rows = {action: [(f, to) for f, to in row] for action, of, row in toss(Place(np.int64(s.level), s.x)) if of}
    return {action: [(f, s._replace(level=int(to[0]), x=int(to[1]))) for f, to in row] for action, row in rows.items()}


LOG = pd.DataFrame({"episode": range(20), "step": 0, "level": 0, "x": 0, "action": "toss", "next_level": 1})
LOG["next_x"] = [1, 0] * 10


def model_of(traits, folder):
    """Return the model of a coin with traits."""
    if T.DISK in traits:
        cost = {"cost": lambda s, action: (s.level == 0) * 1.0}
        how = {"choice_rewards": cost, "store": folder / "model", "level": lambda s: s.level}
        model = pl.model.explore_batch(toss, Place(0, 0), space=SPACE, labels=WON, **how)
    else:
        pay = pl.parameters("pay")[0] if T.LEARNED_REWARDS in traits else 1
        space = pl.ParameterSpace.unit("p", "pay") if T.LEARNED_REWARDS in traits else SPACE
        rewards = {"cost": lambda s, action: 0 if action == "stay" else pay}
        model = pl.explore(tossed, {"level": 0, "x": 0}, space=space, labels=WON, choice_rewards=rewards)
    if T.TABLE in traits:
        model = pl.model.free_rows(model)
    return with_gaps(model, [1, 2]) if T.GAPS in traits else model


QUESTIONS = {
    T.STEPS: 'Pmax=? [ F<=2 "won" ]',
    T.DISCOUNT: 'R{"cost"}max=? [ Cdiscount=0.9 ]',
    T.AVERAGE: 'R{"cost"}max=? [ S ]',
    "a reward": 'R{"cost"}max=? [ C<=2 ]',
    T.MISSION: 'Pmax=? [ F (level=0 & F "won") ]',
}
RELAXED = tuple(f"relaxation {name}" for name in RELAXATIONS)
OF_MODEL = (T.DISK, T.TABLE, T.GAPS, T.LEARNED_REWARDS)
OPTIONS = (T.MODEL_TOLERANCE, T.WITNESS, T.RUNS, T.PRESPECIFIED, T.PRACTICE, T.DRAWS, T.DIFFERENCE, T.SINCE)
KINDS = ("interval", "likelihood", "table")
ORDERS = get_args(Sampling)  # without a pilot
GROUPS = (*((each,) for each in (*OF_MODEL, *OPTIONS)), KINDS, tuple(QUESTIONS), RELAXED, ORDERS)
NOT_MADE = [{T.DISK, T.TABLE}, {T.DISK, T.GAPS}, {T.DISK, T.LEARNED_REWARDS}, {T.TABLE, T.LEARNED_REWARDS}]  # models
NO_OPTIONS = {
    T.MODEL_TOLERANCE,
    T.WITNESS,
    T.RUNS,
    T.DIFFERENCE,
    *KINDS,
    *RELAXED,
}  # of a certificate since a run
PAIRS = [
    pair
    for one, other in combinations(GROUPS, 2)
    for pair in product(one, other)
    if {*pair} not in NOT_MADE and not (T.SINCE in pair and {*pair} & NO_OPTIONS)
]
IMPLIED = {
    T.RUNS: {T.PRESPECIFIED, T.EVERY_STEP},
    T.PRACTICE: {T.DRAWS, T.EVERY_STEP},
    T.GAPS: {T.WITH_GAPS},
    "a reward": {T.STEPS},
} | {order: {T.NO_ORDER} for order in ORDERS}
NOT_KEPT = {T.DISK, T.SINCE}  # what a result cannot be learned again from
NO_PROOF = "no proof of these bounds was found, so there is no witness"  # that it was sought is all that is asked here


def answer(given, folder):
    """Return what is certified with some features, by public functions alone, with its model, data and witness."""
    model = model_of(given, folder)
    point = {"p": 0.6, "pay": 0.5} if T.LEARNED_REWARDS in given else {"p": 0.6}
    if T.TABLE in given:
        graph = model.graph
        point = np.where(np.diff(graph.first_transition)[graph.choice_of_transition()] > 1, 0.5, 1.0)
    counts = pl.simulate(model, point, 100, rng=1, max_steps=2)
    for sampling in given & {*ORDERS}:
        counts = replace(counts, pilot=None, contexts=(), sampling=sampling)
    text = next((QUESTIONS[each] for each in given if each in QUESTIONS), 'Pmax=? [ F "won" ]')
    policy = "toss" if given & {T.RUNS, T.PRESPECIFIED} else None
    policy = "practice" if T.PRACTICE in given else policy
    policy = (lambda s: {"toss": 0.5, "try": 0.5} if s.level == 0 else "stay") if T.DRAWS in given else policy
    how: Any = {
        "confidence": 0.99,
        "confidence_set": next((each for each in given if each in KINDS), None),
        "model_tolerance": 0.01 if T.MODEL_TOLERANCE in given else 0.0,
    }
    is_prespecified = bool(given & {T.RUNS, T.PRESPECIFIED})
    if T.SINCE in given:
        return (
            certify_since(model, counts, text, "run 17", policy=policy, prespecified=is_prespecified),
            model,
            counts,
            None,
        )
    runs = read_whole_runs(model, LOG) if T.RUNS in given else None
    relaxation: Any = next((each.removeprefix("relaxation ") for each in given if each in RELAXED), None)
    if not given & {T.WITNESS, T.DIFFERENCE, T.RUNS}:
        how = {**how, "policy": policy, "prespecified": is_prespecified}
        return pl.certify(model, counts, text, relaxation=relaxation, **how), model, counts, None
    question = prespecifying(ask(text, model), policy, prespecified=is_prespecified, runs=runs)
    learned = pl.learn(model, counts, objectives=[question], witness=T.WITNESS in given, **how)
    if T.DIFFERENCE in given:
        return pl.difference(learned, text, "toss", "try").with_comparison(), model, learned.counts, None
    found = pl.conclude(learned, question, relaxation=relaxation, policy=policy)
    return found, model, learned.counts, pl.decisions.make_witness(learned, found) if T.WITNESS in given else None


def lost(result, folder):
    """Return what is lost of a result that is saved, read, learned again, explained, reported and verified."""
    found, model, counts, witness = result
    pl.write_result(found, folder, model=model, counts=counts, witness=witness)
    again, findings = explain_result(folder, parts=["expressions"])
    pl.write_report(again, findings, folder.with_suffix(".html"))
    said, was = ((one.to_dict(), str(one), *map(str, one.policy.columns().items())) for one in (again, found))
    if witness is not None:
        report = pl.decisions.verify(folder)
        look_again(folder, report, Own(model, counts))
        if report.broken is not None:
            return f"not verified against one's own model and data: {report.broken}"
    return "" if said == was else f"saved: {said}\nnot {was}"


def refused(given):
    """Return the sentences that may be said of some features, as patterns."""
    kind = next((each for each in given if each in KINDS), "likelihood")
    kind = "table" if T.TABLE in given and not {*given} & {*KINDS} else kind
    traits = {each for each in given if isinstance(each, T)}
    traits |= {implied for each in given for implied in IMPLIED.get(each, ())}
    traits |= {T.VIEW} if kind == "table" and T.TABLE not in given else set()
    traits |= {t for each in given if each in RELAXED for t in RELAXATIONS[each.removeprefix("relaxation ")].traits}
    wrong = [{T.OTHER_SET, each} for each in (traits & NEEDED) - SETS[kind].goes_with]
    due = [each for those in (traits, *wrong) for each in refusals(those)]
    return [re.sub(r"\\{.*?\\}", ".*", re.escape(each.sentence)) for each in due]


def fault(given, folder):
    """Return what is wrong with the answer to a pair of features, if there is something."""
    sentences = refused(given)
    try:
        result = answer({*given}, folder)
    except (pl.DataError, pl.ModelError) as error:
        said = str(error)
        is_told = any(re.search(each, said) for each in sentences) or (T.WITNESS in given and NO_PROOF in said)
        return "" if is_told else f"{given} are refused without a row of the table: {said}"
    if sentences or result[0].lower > result[0].upper:
        return f"{given} should be refused: {sentences}"
    return "" if {*given} & NOT_KEPT else lost(result, folder / "result")


@pytest.mark.slow
def test_any_two_features_work_together_or_are_refused_by_the_table(tmp_path, blank_pictures):
    """By day all pairs that are refused, and some of the others."""
    others = [pair for pair in PAIRS if not refused(pair)]
    pairs = [pair for pair in PAIRS if refused(pair)] + others[:: size(14, 1)]
    assert [wrong for n, pair in enumerate(pairs) if (wrong := fault(pair, tmp_path / f"{n}"))] == []


def test_the_page_of_commands_has_every_refusal(monkeypatch):
    pytest.importorskip("docutils")
    docs = Path(__file__).parents[2] / "docs"
    monkeypatch.syspath_prepend(str(docs / "_extensions"))
    from commands import Refusals

    shown = Refusals.run(None)[0].astext()
    assert [each.sentence for each in REFUSALS if "".join(map(str, each.parts("…"))) not in shown] == []
    assert "```{refusals}\n```" in (docs / "reference" / "commands.md").read_text("utf-8")


def test_each_trait_is_in_the_table_and_each_sentence_says_what_to_do_once():
    assert {trait for each in REFUSALS for group in each.groups for trait in group} == {*T}
    assert len({each.sentence for each in REFUSALS}) == len(REFUSALS)
