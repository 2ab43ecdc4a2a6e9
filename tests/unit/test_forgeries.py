"""Forged results: whoever writes every file of a result, hashes included, gets no false sentence past ``verify``.

The forger has neither the reader's model nor the reader's log. Each row of the table says which honest result is
changed, how, and what ``verify`` says then: the layer that breaks and some of its words, or words that are printed with
a result which holds as far as it can be known.
"""

import json
import shutil

import pytest
from support.refusals import rows
from support.results import copy_of, files_of, patrol, result_of, rows_alone, walks
from support.tampering import forge
from support.verified_results import (
    PROPERTY,
    rehash,
    small_counts,
    small_model,
)
from support.verified_tables import counts_of, proposed, saved, walk, without_order

from plumdp.decisions import verify
from plumdp.verifying.look import Own
from plumdp.verifying.verify import look_again

READERS = {  # the model and the counts that a reader has
    "again": (patrol, walks),
    "never": (patrol, lambda: walks(0)),
    **dict.fromkeys(("off", "seldom"), (patrol, lambda: walks(0.03))),
    "table again": (lambda: patrol(is_table=True), lambda: walks(is_table=True)),
    "table": (walk, lambda: counts_of(walk())),
    "rows": (walk, rows_alone),
}


def reader(name, has="log"):
    model, counts = READERS.get(name, (small_model, small_counts))
    if has == "nothing":
        return None
    return Own(model(), counts() if has == "log" else None)


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
        nothing = "Inconclusive: the bounds do not exclude the worst value, 0 (between 0 and 1, confidence 95 %)."
        n = len(w["values"]["lower"])
        w["claim"].update(lower=0.0, upper=1.0, sentence=nothing)
        c.update(lower=0.0, upper=1.0, status="inconclusive", reason="")
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

    return {name: value for name, value in locals().items() if callable(value)}


FORGERIES = rows("tampering:forgeries")


@pytest.mark.slow
@pytest.mark.parametrize("row", FORGERIES, ids=lambda row: row[2])
def test_a_forgery_is_told(row, tmp_path):
    of, layer, _, change, says, has = row
    folder = copy_of(of, tmp_path)
    w, c = files_of(folder)
    forge(w, c, change, folder=folder, **verbs(w, c, folder))
    (folder / "witness.json").write_text(json.dumps(w))
    rehash(folder, c)
    report = verify(folder)
    look_again(folder, report, reader(of, has))
    assert (report.broken.layer if report.broken else "") == layer, report
    assert says in str(report)


@pytest.mark.parametrize("name", sorted({row[0] for row in FORGERIES} - {"never", "off"}))
def test_what_is_forged_was_verified_before(name):
    report = verify(result_of(name))
    look_again(result_of(name), report, reader(name))
    assert report.broken is None, report
