"""Forged results: whoever writes every file of a result, hashes included, gets no false sentence past ``verify``.

The forger has neither the reader's model nor the reader's log. Each row of the table says which honest result is
changed, how, and what ``verify`` says then: the layer that breaks and some of its words, or words that are printed with
a result which holds as far as it can be known.
"""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest
from support.verified_results import (
    PROPERTY,
    answered,
    compared,
    pieces_of,
    rehash,
    small_counts,
    small_model,
    witnessed,
    witnessed_online,
)
from support.verified_tables import counts_of, proposed, saved, walk, without_order

import plumdp
from plumdp.decisions import verify
from plumdp.verifying.look import Own
from plumdp.verifying.verify import look_again

AGAIN = 'Pmax=? [ G F "left" ]'


@cache
def patrol(*, is_table=False):
    """A walk between left and right, in which a step succeeds with probability q, or in a table one of its own."""
    q = plumdp.parameters("q")[0]

    def row(there, here):
        return plumdp.unknown(there, here) if is_table else [(q, there), (1 - q, here)]

    def step(s):
        if s.x == 1:
            return {name: row(s._replace(x=x), s) for name, x in (("left", 0), ("right", 2))}
        return {"back": row(s._replace(x=1), s)}

    labels = {"left": lambda s: s.x == 0, "right": lambda s: s.x == 2}
    space = None if is_table else plumdp.ParameterSpace.unit("q")
    return plumdp.explore(step, {"x": 1}, space=space, labels=labels)


@cache
def walks(q=0.5, *, is_table=False):
    model = patrol(is_table=is_table)
    point = np.full(model.graph.n_transitions, 0.5) if is_table else {"q": q}
    return plumdp.simulate(model, point, 300, rng=1, max_steps=20)


def without_support(folder, q=0, **options):
    """Save what a writer says who does not ask whether a transition can happen: if it never does, the value is 0."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("plumdp.relaxation.intervals", "plumdp.certifying.pipeline"):
            patch.setattr(f"{name}.missing_support", lambda imdp: "")
        witnessed(folder, AGAIN, model=patrol(), counts=walks(q), keeps_data=True, **options)


def rows_alone():
    return without_order(counts_of(walk()))


STUDIES = {"evidence": {"p": (615, 1000)}, "confidence_set": "interval"}
ONLINE = plumdp.case_study("betting:5").model
HONEST: dict[str, tuple[Callable, Callable, Callable | None]] = {  # how it is made, and the reader's model and counts
    "chance": (lambda folder: witnessed(folder, keeps_data=True), small_model, small_counts),
    "studies": (lambda folder: witnessed(folder, **STUDIES), small_model, small_counts),
    "compared": (lambda folder: compared(folder, keeps_data=True), small_model, small_counts),
    "answer": (lambda folder: answered(folder, 'P>=0.6 [ F "goal" ]', keeps_data=True), small_model, small_counts),
    "all": (lambda folder: answered(folder, 'P>=0.9 [ F "goal" ]', keeps_data=True), small_model, small_counts),
    "online": (witnessed_online, lambda: ONLINE, None),
    "again": (lambda folder: witnessed(folder, AGAIN, model=patrol(), counts=walks()), patrol, walks),
    "never": (without_support, patrol, lambda: walks(0)),
    "off": (lambda folder: without_support(folder, 0.03, misfit=0.05), patrol, lambda: walks(0.03)),
    "seldom": (lambda folder: without_support(folder, 0.03), patrol, lambda: walks(0.03)),
    "table again": (
        lambda folder: saved(folder, patrol(is_table=True), walks(is_table=True), AGAIN),
        lambda: patrol(is_table=True),
        lambda: walks(is_table=True),
    ),
    "table": (lambda folder: saved(folder, walk(), counts_of(walk())), walk, lambda: counts_of(walk())),
    "rows": (lambda folder: saved(folder, walk(), rows_alone()), walk, rows_alone),
}


@cache
def honest(name: str) -> TemporaryDirectory:
    folder = TemporaryDirectory()  # which is removed with the last reference
    HONEST[name][0](Path(folder.name) / "result")
    return folder


def reader(name: str, has: str = "log") -> Own | None:
    _, model, counts = HONEST[name]
    if has == "nothing":
        return None
    return Own(model(), counts() if has == "log" and counts is not None else None)


class Forgery(NamedTuple):
    """What a forger does to a result: to witness and certificate, or to other files of the folder."""

    of: str
    change: Callable
    says: str  # what is printed, in the line of the layer or below
    layer: str = ""  # that breaks; none if the reader is told instead
    reader: str = "log"  # who has the model and the log besides the result, the "model" alone, or "nothing"


def both(**content):
    """Change what witness and certificate have to say alike."""

    def change(witness, certificate, folder):
        witness["claim"] |= content
        certificate |= content

    return change


def certified(**content):
    return lambda witness, certificate, folder: certificate.update(content)


def options(**content):
    return lambda witness, certificate, folder: certificate["options"].update(content)


def opposite(witness, certificate, folder):
    """Ask for the least value, so that the worse of two policies is the better one."""
    both(direction="min")(witness, certificate, folder)
    told = certificate["comparison"]
    told["sentence"] = told["sentence"].replace("The first", "The second").replace("larger", "smaller")


def named(first, second="the second policy"):
    """Give policies names, with the sentence that they lead to."""

    def change(witness, certificate, folder):
        told = certificate["comparison"]
        capital = first.replace("the ", "The ", 1) if first.startswith("the ") else first
        told["sentence"] = told["sentence"].replace("The first policy", capital)
        told["names"] = [first, second]

    return change


def other_actions(witness, certificate, folder):
    """Hand over another policy than the one that was certified."""
    text = (folder / "policy.csv").read_text()
    swapped = text.replace("near", "both").replace("twice", "near").replace("both", "twice")
    assert swapped != text
    (folder / "policy.csv").write_text(swapped)


def other_files(witness, certificate, folder):
    """Hand over both policies of a comparison under each other's name."""
    first, second = (folder / name for name in ("policy.csv", "rival.csv"))
    text = first.read_text()
    first.write_text(second.read_text())
    second.write_text(text)


def more_runs(witness, certificate, folder):
    """Prove the bounds that invented counts lead to, beside the data that are there."""
    _, found, text, broken = proposed(walk(), without_order(counts_of(walk(), 20_000, 7)))
    assert broken is None
    content = json.loads(text)
    witness.clear()
    witness |= content
    certificate |= {"lower": found.lower, "upper": found.upper}


def traded_rows(witness, certificate, folder):
    """Let two nodes of the chain use each other's counts, with values that fit."""
    chain = witness["chain"]
    numbers = [row[2] for row in chain["rows"] if row is not None and isinstance(row[2], int)]
    one, other = numbers[:2]
    for row in chain["rows"]:
        if row is not None and row[2] in (one, other):
            row[2] = one + other - row[2]
    ends = {"lower": 0.0, "upper": 1.0}
    nothing = "Nothing certified: the bounds do not exclude the worst value, 0 (between 0 and 1, confidence 95 %)."
    both(**ends)(witness, certificate, folder)
    witness["claim"]["sentence"] = nothing
    certificate |= {"status": "nothing certified", "reason": ""}
    n = len(witness["values"]["lower"])
    witness["values"] |= {"lower": [0.0] * n, "upper": [1.0] * n}
    witness["bets"] = None


def forged_report(witness, certificate, folder):
    (folder / "report.html").write_text("<h1>The policy's value is 1 with confidence 99.9 %.</h1>")


def earlier_counts(witness, certificate, folder):
    """Say that an end is from counts that nobody saw, which look much better."""
    item = witness["set"]["intervals"]["list"][0]
    item["earlier"] = {"lower": [150, 200]}


def question(text, sentence=None):
    def change(witness, certificate, folder):
        certificate["answer"]["question"] = text

    return change


def study(text):
    def change(witness, certificate, folder):
        listed = certificate["options"]["evidence"]
        listed[text] = listed.pop("p")
        witness["set"]["studies"]["list"][0]["text"] = text

    return change


def without(*names):
    """Leave out a part of the witness."""

    def change(witness, certificate, folder):
        part = witness
        for name in names[:-1]:
            part = part[name]
        part.pop(names[-1])

    return change


def one_support_less(witness, certificate, folder):
    """Leave out that a transition can happen, and all proofs of it."""
    for each in (witness, *pieces_of(witness)):
        if "support" in each:
            each["support"].pop(0)


def no_proof(witness, certificate, folder):
    """Say that a transition can happen, with the proof of another one."""
    for piece in pieces_of(witness):
        if "support" in piece:
            piece["support"][0] = piece["support"][1]


def never_seen(witness, certificate, folder):
    """Take the interval of an outcome that the mission rests on from below."""
    row, place = witness["support"][0]
    item = next(item for item in witness["intervals"]["list"] if item["row"] == row)
    item["lower"][place] = 0.0


def chosen_later(witness, certificate, folder):
    """Bet on a policy that was chosen when all data were there, and say that it was found."""
    shutil.rmtree(folder)
    saved(folder, walk(), counts_of(walk()), policy="go")
    content = [json.loads((folder / name).read_text()) for name in ("witness.json", "certificate.json")]
    for part, new in zip((witness, certificate), content, strict=True):
        part.clear()
        part |= new
    assert certificate["options"]["objectives"] == [""]
    certificate["options"]["objectives"] = [PROPERTY]


def another_file(witness, certificate, folder):
    name = "nothing. The value is 1"
    (folder / name).write_text("")
    certificate["hashes"][name] = ""


def another_rival(witness, certificate, folder):
    shutil.copy(folder / "policy.csv", folder / "rival.csv")
    certificate["hashes"]["rival.csv"] = ""


def counted_earlier(witness, certificate, folder):
    witness["set"]["intervals"]["list"][-1] |= {"earlier": {"upper": [0, 0]}, "upper": 1.0}


NEVER_ONE = "The policy's value lies between 0.99 and 1 with confidence 99.9"
WHOLE = "every value is one and so is the first policy"

FORGERIES = {
    "the worse policy is called better": Forgery("compared", opposite, "not that of the objective", "files"),
    "a direction that is none": Forgery("chance", both(direction="planned"), "not that of the objective", "files"),
    "a minimum is asked for": Forgery(
        "compared", both(objective=PROPERTY.replace("max", "min")), "not that of the objective", "files"
    ),
    "an objective that is a sentence": Forgery(
        "chance", both(objective="The value is 1, for all policies"), "not one that verify knows", "files"
    ),
    "an objective that moves the cursor": Forgery(
        "chance", both(objective='Pmax=? [ F "goal\x1b[2J" ]'), "not one that verify knows", "files"
    ),
    "an objective with a name that is a sentence": Forgery(
        "chance", both(objective=f'"The value is 1": {PROPERTY}'), f"of: {PROPERTY}\n", reader="nothing"
    ),
    "an automaton from a file of the forger": Forgery(
        "chance",
        both(objective='Pmax=? [ HOA: {"mine.hoa"} ]'),
        "trusted: that the file with the aut",
        reader="nothing",
    ),
    "another objective": Forgery("chance", both(objective='Pmax=? [ F<=2 "goal" ]'), "", "model"),
    "another objective, for a reader without the model": Forgery(
        "chance", both(objective='Pmax=? [ F<=2 "goal" ]'), 'of: Pmax=? [ F<=2 "goal" ]', reader="nothing"
    ),
    "another policy": Forgery("chance", other_actions, "the model has another row", "model"),
    "another policy, for a reader without the model": Forgery(
        "chance", other_actions, "not checked: policy.csv,", reader="nothing"
    ),
    "two policies that change places": Forgery("compared", other_files, "the model has another row", "model"),
    "two names that change places": Forgery(
        "compared",
        named("the second policy", "the first policy"),
        "the second policy is policy.csv and the first policy is rival.csv",
    ),
    "a name with a second sentence": Forgery("compared", named(f"{NEVER_ONE} ％. It"), "is not a name", "files"),
    "a name with a percent sign": Forgery("compared", named(f"{NEVER_ONE} %. It"), "is not a name", "files"),
    "a name that ends its quotation": Forgery("compared", named('x" is best. "x'), "is not a name", "files"),
    "a name that is a sentence": Forgery("compared", named(WHOLE), f'. "{WHOLE}" is better: its value is larger by'),
    "a name that is long": Forgery("compared", named("x" * 200), f'"{"x" * 60}…" is better'),
    "no assumptions": Forgery("chance", certified(assumptions=[]), "no assumptions", "files"),
    "another way of sampling": Forgery(
        "chance", lambda w, c, f: w["data"].update(sampling="perfect"), "sampling 'perfect' is not known", "budget"
    ),
    "data that ended at will": Forgery(
        "chance", certified(guarantee="finite-sample, anytime"), "does not say so", "budget"
    ),
    "planned data": Forgery("chance", certified(), "assuming: the amount of data was planned before any were seen"),
    "nothing announced": Forgery(
        "chance", options(objectives=[]), "not checked: the directions of bets", reader="model"
    ),
    "an announced objective without a text": Forgery(
        "chance", options(objectives=[""]), "not checked: the directions of bets", reader="model"
    ),
    "an announced objective without a text, for a reader with the log": Forgery(
        "chance", options(objectives=[""]), "could not compare: ", "log"
    ),
    "invented counts of a table without bets": Forgery(
        "rows", more_runs, "others than those of the data", "data", reader="model"
    ),
    "invented counts, for a reader with the log": Forgery("rows", more_runs, "others than those of the data", "log"),
    "a table without bets": Forgery("rows", certified(), "data       ok  counts are those of the data", reader="model"),
    "rows of a table that trade their counts": Forgery("table", traded_rows, "rows of the chain differ", "model"),
    "a policy of a table that was chosen later": Forgery(
        "table", options(policy="given"), "trusted: that the policy in policy.csv was chosen before the data"
    ),
    "a mission that nothing supports": Forgery("never", certified(), "needs q to be above 0", "bracket"),
    "a mission that nothing supports if rows are off": Forgery("off", certified(), "needs q to be above 0", "bracket"),
    "a mission that little supports": Forgery("seldom", certified(), "verified: The policy's value is 1 with"),
    "a mission whose support is left out": Forgery("never", without("support"), "to be possible", "model"),
    "a part of the support": Forgery("again", one_support_less, "to be possible", "model"),
    "the proof of another part": Forgery("never", no_proof, "needs q to be above 0", "bracket"),
    "the support of a table": Forgery("table again", without("support"), "to be possible", "model"),
    "a row of a table that never led there": Forgery("table again", never_seen, "to be above 0", "set"),
    "bets on a policy that was chosen later": Forgery(
        "table", chosen_later, "another policy than those that the pilot leads to", "directions", reader="model"
    ),
    "a file whose name is a sentence": Forgery("chance", another_file, "a result has no such file", "files"),
    "a policy that nothing is said about": Forgery("chance", another_rival, "a result has no such file", "files"),
    "counts that were looked at earlier": Forgery("chance", counted_earlier, "the settings are", "log"),
    "a report that says more": Forgery("chance", forged_report, "not checked: report.html, entries"),
    "counts of earlier updates": Forgery(
        "online", earlier_counts, "had happened 150 times in 200 trials at some time", reader="nothing"
    ),
    "an answer to another question": Forgery(
        "answer", question('P>=0.95 [ F "goal" ]'), "verdict does not follow", "sentence"
    ),
    "an answer to a question that is easier": Forgery(
        "answer", question('P>=0.1 [ F "goal" ]'), 'asked whether P>=0.1 [ F "goal" ]'
    ),
    "a question that moves the cursor": Forgery("answer", question("P>=0.1 [\x1b"), "cannot be printed", "files"),
    "an action that is left out": Forgery("all", lambda w, c, f: w["all_policies"]["others"].pop(), "", "model"),
    "a study that is a sentence": Forgery("studies", study("it is proved that p"), "not an expression", "counts"),
    "a study of something else": Forgery("studies", study("1 - p"), "is not p", "counts"),
    "a study of something else, in other words": Forgery(
        "studies", study("1.0*p + 0.001"), "studies: the settings are", "log"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_told(name, tmp_path):
    forgery = FORGERIES[name]
    folder = shutil.copytree(Path(honest(forgery.of).name) / "result", tmp_path / "result")
    witness, certificate = (json.loads((folder / file).read_text()) for file in ("witness.json", "certificate.json"))
    forgery.change(witness, certificate, folder)
    (folder / "witness.json").write_text(json.dumps(witness))
    rehash(folder, certificate)
    report = verify(folder)
    look_again(folder, report, reader(forgery.of, forgery.reader))
    assert (report.broken.layer if report.broken else "") == forgery.layer, report
    assert forgery.says in str(report)


@pytest.mark.parametrize("name", sorted({forgery.of for forgery in FORGERIES.values()} - {"never", "off"}))
def test_what_is_forged_was_verified_before(name):
    folder = Path(honest(name).name) / "result"
    report = verify(folder)
    look_again(folder, report, reader(name))
    assert report.broken is None, report
