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

import numpy as np
import pytest
from support.refusals import rows
from support.tampering import forge
from support.verified_results import (
    PROPERTY,
    answered,
    compared,
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


def verbs(w, c, folder):
    """Return the functions that change other files than these two, or more than one place."""
    policy, rival = folder / "policy.csv", folder / "rival.csv"

    def named(first, second="the second policy"):
        """Give policies names, with the sentence that they lead to."""
        told = c["comparison"]
        capital = first.replace("the ", "The ", 1) if first.startswith("the ") else first
        told["sentence"] = told["sentence"].replace("The first policy", capital)
        told["names"] = [first, second]

    def other_actions():
        """Hand over another policy than the one that was certified."""
        text = policy.read_text()
        swapped = text.replace("near", "both").replace("twice", "near").replace("both", "twice")
        assert swapped != text
        policy.write_text(swapped)

    def exchanged_files():
        """Hand over both policies of a comparison under each other's name."""
        texts = policy.read_text(), rival.read_text()
        rival.write_text(texts[0])
        policy.write_text(texts[1])

    def more_runs():
        """Prove the bounds that invented counts lead to, beside the data that are there."""
        _, found, text, broken = proposed(walk(), without_order(counts_of(walk(), 20_000, 7)))
        assert broken is None
        w.clear()
        w.update(json.loads(text))
        c.update(lower=found.lower, upper=found.upper)

    def traded_rows():
        """Let two nodes of the chain use each other's counts, with values that fit."""
        numbers = [row[2] for row in w["chain"]["rows"] if row is not None and isinstance(row[2], int)]
        one, other = numbers[:2]
        for row in w["chain"]["rows"]:
            if row is not None and row[2] in (one, other):
                row[2] = one + other - row[2]
        nothing = "Nothing certified: the bounds do not exclude the worst value, 0 (between 0 and 1, confidence 95 %)."
        n = len(w["values"]["lower"])
        w["claim"].update(lower=0.0, upper=1.0, sentence=nothing)
        c.update(lower=0.0, upper=1.0, status="nothing certified", reason="")
        w["values"] |= {"lower": [0.0] * n, "upper": [1.0] * n}
        w["bets"] = None

    def never_seen():
        """Take the interval of an outcome that the mission rests on from below."""
        row, place = w["support"][0]
        item = next(item for item in w["intervals"]["list"] if item["row"] == row)
        item["lower"][place] = 0.0

    def chosen_later():
        """Bet on a policy that was chosen when all data were there, and say that it was found."""
        shutil.rmtree(folder)
        saved(folder, walk(), counts_of(walk()), policy="go")
        for part, name in ((w, "witness.json"), (c, "certificate.json")):
            part.clear()
            part.update(json.loads((folder / name).read_text()))
        assert c["options"]["objectives"] == [""]
        c["options"]["objectives"] = [PROPERTY]

    def with_file(name, text):
        """Add a file to the folder and to what the certificate lists."""
        (folder / name).write_text(text)
        c["hashes"][name] = ""

    def renamed(text):
        """Give the first study another text in both files."""
        listed = c["options"]["evidence"]
        listed[text] = listed.pop("p")
        w["set"]["studies"]["list"][0]["text"] = text

    return {name: value for name, value in locals().items() if callable(value)}


FORGERIES = rows("tampering:forgeries")


@pytest.mark.slow
@pytest.mark.parametrize("row", FORGERIES, ids=lambda row: row[2])
def test_a_forgery_is_told(row, tmp_path):
    of, layer, _, change, says, has = row
    folder = shutil.copytree(Path(honest(of).name) / "result", tmp_path / "result")
    w, c = (json.loads((folder / file).read_text()) for file in ("witness.json", "certificate.json"))
    forge(w, c, change, folder=folder, **verbs(w, c, folder))
    (folder / "witness.json").write_text(json.dumps(w))
    rehash(folder, c)
    report = verify(folder)
    look_again(folder, report, reader(of, has))
    assert (report.broken.layer if report.broken else "") == layer, report
    assert says in str(report)


@pytest.mark.parametrize("name", sorted({row[0] for row in FORGERIES} - {"never", "off"}))
def test_what_is_forged_was_verified_before(name):
    folder = Path(honest(name).name) / "result"
    report = verify(folder)
    look_again(folder, report, reader(name))
    assert report.broken is None, report
