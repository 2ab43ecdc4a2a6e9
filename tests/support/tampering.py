"""Tampering as data: tests/texts/tampering.toml has what is changed in a result, and the layer that must reject it."""

import json
from copy import deepcopy
from fractions import Fraction
from re import search

from support.refusals import rows
from support.verified_results import brackets_of, cut_end, functions_of, pieces_of, verdict

ANSWER = {"question": 'Pmax>=0.6 [ F "goal" ]', "verdict": "yes", "about": "recommended", "limit": None}
PARTS = {  # by name, of a witness and its certificate, where they are there
    "shares": lambda w, c: w["budget"]["shares"],
    "bets": lambda w, c: w["set"]["bets"],
    "intervals": lambda w, c: w["set"]["intervals"],
    "item": lambda w, c: w["set"]["intervals"]["list"][0],
    "law": lambda w, c: w["set"]["likelihoods"][0],
    "side": lambda w, c: w["set"]["bets"]["list"][0],
    "root": lambda w, c: w["pieces"]["root"],
    "sides": lambda w, c: w["pieces"]["root"]["sides"],
    "halves": lambda w, c: next(each for each in pieces_of(w) if "halves" in each)["halves"],
    "with_values": lambda w, c: [each for each in pieces_of(w) if "values" in each],
    "all_values": lambda w, c: [each["values"][0] for each in pieces_of(w) if "values" in each],
    "chain": lambda w, c: w["chain"],
    "values": lambda w, c: functions_of(w),
    "other_values": lambda w, c: functions_of(w, 1),
    "last_values": lambda w, c: functions_of(w, -1),
    "other": lambda w, c: w["comparison"]["chain"],
    "told": lambda w, c: c["comparison"],
    "paid": lambda w, c: w["rewards"][0],
}


def _parts(w, c):
    found = {}
    for name, part in PARTS.items():
        try:
            found[name] = part(w, c)
        except (LookupError, TypeError, StopIteration):
            continue
    return found


def opposite(certificate):
    """Say that the second policy is the better one."""
    low, high = certificate["comparison"]["difference"]
    certificate["comparison"]["difference"] = [-high, -low]


def _verbs(w, c):
    """Return the functions that change more than one number of a result."""

    def both(**claim):  # so that it is only the proof that does not fit
        c.update(claim)
        w["claim"].update(claim)

    def larger(stage, name="steps"):
        """Make bets of a stage, or units of them, larger wherever their side is looked at."""
        for side in w["set"]["bets"]["list"]:
            if stage < side["until"]:
                side[name][stage] = [
                    [1.01 * x for x in row] if isinstance(row, list) else 1.01 * row for row in side[name][stage]
                ]

    def sums(part, change):
        """Change number, sum and sum of squares of the first reward in a part of the data."""
        number, *of_values = w["rewards"][0]["seen"][part]
        new = change(number, *map(Fraction, of_values))
        w["rewards"][0]["seen"][part] = [new[0], *map(str, new[1:])]

    def exchanged(*names):
        """Exchange parts of both policies."""
        if "chain" in names:
            w["chain"], w["comparison"]["chain"] = w["comparison"]["chain"], w["chain"]
        for piece in pieces_of(w):
            for name in {"values", "brackets"} & set(names) & set(piece):
                piece[name][:2] = piece[name][1::-1]

    def moved(by):
        """Add a number to all functions of the first chain."""
        for piece in pieces_of(w):
            for function in piece["values"][0]["functions"] if "values" in piece else ():
                function[0] += by

    def cuts(end, factor):
        """Multiply the multipliers of cuts that prove an end of the first bracket."""
        for bracket in brackets_of(w):
            bracket[end]["multipliers"] = [[i, [factor * x for x in y]] for i, y in bracket[end]["multipliers"]]

    def later_trials():
        """Add an interval of q, whose class is drawn from after another one of the same row."""
        number = next(i for i, members in enumerate(w["classes"]) if "q" in members)
        step = [number, w["classes"][number].index("q")]
        ways = [row["ways"] for row in w["rows"]]
        row = next(i for i, of_row in enumerate(ways) if [step] in [way[1:] for way in of_row])
        trials = [[row, [i for i, way in enumerate(ways[row]) if step in way]]]
        added = {"polynomial": "q", "trials": trials, "once": False, "lower": 0.2, "upper": 1.0}
        w["set"]["intervals"]["list"].append(added)

    local = {"both": both, "larger": larger, "sums": sums, "exchanged": exchanged, "later_trials": later_trials}
    local |= {"moved": moved, "cuts": cuts, "cut": lambda end, place=0: cut_end(end, place)(w)}
    return local | {"opposite": opposite}


NAMES = {"ANSWER": ANSWER, "Fraction": Fraction, "brackets_of": brackets_of, "pieces_of": pieces_of}


def forge(w, c, statement, **names):
    """Change a witness and its certificate by a statement."""
    exec(statement, {"w": w, "c": c, **NAMES, **names, **_verbs(w, c), **_parts(w, c)})


def let_pass(row, honest, **names):
    """Return how a changed result was let pass or rejected in another way than its row says, or nothing.

    A row has the layers that may reject the change, what it is, a statement that makes it, and perhaps words that are
    said then.
    """
    layers, what, change, *words = row
    w, c = deepcopy(honest)
    forge(w, c, change, **names)
    assert [w, c] != honest, what
    layer, message = verdict(w, c)
    if layer in layers.split("|") and all(search(each, message) for each in words):
        return ""
    return f"{what}: rejected in {layer or 'no layer'!r} ({message}), not in {layers!r}"


def rejected(table, folder, certificate=None):
    """Require that a result holds, and that each change in a table is rejected in its layer."""
    honest = [json.loads((folder / name).read_text()) for name in ("witness.json", "certificate.json")]
    honest[1] |= certificate or {}
    assert verdict(*honest) == ("", "")
    wrong = [each for row in rows(f"tampering:{table}") if (each := let_pass(row, honest))]
    assert not wrong, "\n".join(wrong)
