"""Forged results: whoever writes every file of a result, hashes included, gets no false sentence past ``verify``.

The forger has neither the reader's model nor the reader's log. Each row of the table says which honest result is
changed, how, and what ``verify`` says then: the layer that breaks and some of its words, or words that are printed with
a result which holds as far as it can be known.
"""

import json

import pytest
from support.refusals import rows
from support.results import copy_of, files_of, result_of
from support.tampering import forge
from support.verified_results import rehash, small_counts, small_model

from plumdp.decisions import verify
from plumdp.verifying.look import Own
from plumdp.verifying.verify import look_again


def reader(has="log"):
    """Return the model and the counts that a reader has."""
    return None if has == "nothing" else Own(small_model(), small_counts() if has == "log" else None)


def verbs(w, c, folder):
    """Return the functions that change other files than these two, or more than one place."""
    policy, rival = folder / "policy.csv", folder / "rival.csv"

    def named(first, second="the second policy"):
        """Give policies names."""
        c["comparison"]["names"] = [first, second]

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
    look_again(folder, report, reader(has))
    assert (report.broken.layer if report.broken else "") == layer, report
    assert says in str(report)


@pytest.mark.parametrize("name", sorted({row[0] for row in FORGERIES}))
def test_what_is_forged_was_verified_before(name):
    report = verify(result_of(name))
    look_again(result_of(name), report, reader())
    assert report.broken is None, report
