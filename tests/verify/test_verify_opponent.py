"""``verify`` and an adversary: forged parts that look right, files without an end, and texts that nobody proved.

Each of these was once accepted, or took more than a minute, or ended in something else than a verdict.
"""

import copy
import os

import pytest
from support.results import copy_of, files_of, result_of
from support.verified_results import brackets_of, rehash, rewrite, verdict

from plumdp.decisions import verify
from plumdp_verify import reading
from plumdp_verify.check import exactly
from plumdp_verify.counts import CountedRows, read_data
from plumdp_verify.intervals import event_trials, half_spaces_from_intervals, trials_of
from plumdp_verify.polynomials import parse
from plumdp_verify.reading import Part, Rejected


@pytest.fixture
def result(tmp_path):
    return copy_of("chance", tmp_path)


@pytest.fixture
def files():
    return files_of(result_of())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ends", "status", "is_verified"),
    [
        ({"lower": 0.0, "upper": 0.75}, "inconclusive", True),
        ({"lower": 0.0, "upper": 0.75}, "certified", False),
        ({"lower": 0.5, "upper": 1.0}, "inconclusive", False),  # it excludes what is worst
        ({"lower": 0.5, "upper": 1.0}, "certified", True),
    ],
)
def test_what_certifies_nothing_says_nothing_that_is_not_proved(result, ends, status, is_verified):
    changed = ends | {"status": status, "reason": "nobody is needed, as the value is 1"}
    rewrite(result, lambda w: w["claim"].update(ends), lambda c: c.update(changed))
    report = verify(result)
    assert (report.broken is None) == is_verified
    assert "value is 1" not in report.sentence  # a reason is not proved, and not repeated


def test_an_answer_is_checked_where_nothing_is_certified(files):
    witness, certificate = files
    witness["claim"] |= {"lower": 0.0, "upper": 0.75}
    certificate |= {"lower": 0.0, "upper": 0.75, "status": "inconclusive"}
    assert verdict(witness, certificate) == ("", "")
    answer = {"verdict": "yes", "about": "recommended", "limit": None}
    certificate["answer"] = answer | {"question": 'Pmax>=0.9 [ F "goal" ]'}
    assert verdict(witness, certificate)[0] == "sentence"


@pytest.mark.parametrize("number", ["0.৪", "1e9999999", "0.6 [ which holds ]", "best", "9" * 1000, "0.6\x1b[2J"])
def test_an_answer_has_no_room_for_other_words(files, number):
    """Among them digits that look like others: a Bengali four."""
    witness, certificate = files
    answer = {"question": 'P>=0.6 [ F "goal" ]', "verdict": "yes", "about": "recommended", "limit": None}
    assert verdict(witness, certificate | {"answer": answer}) == ("", "")
    answer["question"] = answer["question"].replace("0.6", number)
    assert verdict(witness, certificate | {"answer": answer})[0] == "files"


def test_a_proof_from_planned_data_needs_a_certificate_that_says_so(files):
    witness, certificate = files
    assert certificate["guarantee"] == "finite-sample, planned"
    layer, message = verdict(witness, certificate | {"guarantee": "finite-sample, anytime"})
    assert (layer, message[:28]) == ("budget", "the proof needs data of a pl")


@pytest.mark.parametrize("ways", [None, [[], []]])
def test_rows_cannot_be_left_out_of_the_likelihood(files, ways):
    witness, certificate = files
    row = next(row for row in witness["rows"] if len(row["outcomes"]) == 2)
    row["ways"] = ways
    assert verdict(witness, certificate)[0] == "counts"


def test_the_precision_of_a_law_is_compared_in_every_direction(files):
    """A parameter of which the pilot says little has a small entry, beside which that of the other one is large."""
    witness, certificate = files
    precision = witness["set"]["likelihoods"][0]["precision"]
    small = min((0, 1), key=lambda i: precision[i][i])
    precision[small][small] += 5e-4 * precision[1 - small][1 - small]
    assert verdict(witness, certificate)[0] == "bets"


def test_a_law_on_a_line_cannot_lie_anywhere(files):
    witness, certificate = files
    part = witness["set"]
    for law in (part["space_law"], part["likelihoods"][0]):
        law["basis"], law["precision"] = [[1.0], [0.0]], [[law["precision"][0][0]]]
    part["likelihoods"][0]["mean"][1] += 0.01
    assert verdict(witness, certificate)[0] == "bets"


def test_nothing_follows_from_a_set_without_points(files):
    """A constraint that no point fulfils, times a large number, would prove any bounds."""
    witness, certificate = files
    ends = {"lower": 0.99, "upper": 0.995}
    witness["claim"] |= ends
    witness["space"][0] = "-1"
    for side in ("lower", "upper"):
        for bracket in brackets_of(witness):
            bracket[side] = {"multipliers": [[0, [100.0]]], "cube": [0.0, 0.0]}
    layer, message = verdict(witness, certificate | ends)
    assert (layer, message[:18]) == ("set", "no point is known ")


def test_a_class_that_no_row_draws_from_says_nothing(files):
    """That its members are probabilities would be any half-space, without a single trial: here that p is above 0.8.

    Nor does a row that is never visited.
    """
    witness, certificate = files
    ends = {"lower": 0.9, "upper": 0.91}
    witness["claim"] |= ends
    witness["classes"].append(["1000*p - 800", "-1000*p + 801"])
    intervals, number = witness["set"]["intervals"], len(witness["classes"]) - 1
    intervals["number"], intervals["error"] = intervals["number"] + 1, intervals["error"] / 2
    event = {"polynomial": "1000*p - 800", "once": False, "lower": 0.0, "upper": 1.0}
    intervals["list"] = [event | {"trials": []}]
    for likelihood in witness["set"]["likelihoods"]:
        likelihood["widths"] += [0.0, 0.0]
    for side in ("lower", "upper"):
        for bracket in brackets_of(witness):
            bracket[side] = {"multipliers": [[len(witness["space"]) + 1, [100.0]]], "cube": [5000.0, 5000.0]}
    layer, message = verdict(witness, certificate | ends)
    assert (layer, message[-50:]) == ("set", "these are not all rows that try the event, or others"[-50:])
    seen = {name: [0, 0] for name in witness["rows"][0]["seen"]}
    row = {"outcomes": witness["classes"][-1], "ways": [[[number, 0]], [[number, 1]]], "seen": seen}
    witness["rows"].append(row)
    intervals["list"][0]["trials"] = [[len(witness["rows"]) - 1, [0]]]
    layer, message = verdict(witness, certificate | ends)
    assert (layer, message[-40:]) == ("set", "the interval from 0 trials is too narrow")


def test_outcomes_that_cannot_happen_have_a_verdict(files):
    witness, certificate = files
    witness["classes"] += [["0", "1"], ["2*p", "-2*p + 1"]]
    n = len(witness["classes"])
    seen = {name: [0, 0, 0] for name in witness["rows"][0]["seen"]}
    row = {"outcomes": ["0", "0", "1"], "ways": [[[n - 2, 0], [n - 1, 0]], [[n - 2, 0], [n - 1, 1]], [[n - 2, 1]]]}
    witness["rows"].append(row | {"seen": seen})
    for likelihood in witness["set"]["likelihoods"]:
        likelihood["widths"] += [0.0] * 4
    assert verdict(witness, certificate) == ("", "")
    witness["rows"][-1]["outcomes"] = ["p", "-p", "1"]
    assert verdict(witness, certificate)[0] == "counts"


def data_of(classes, rows, sampling="independent") -> CountedRows:
    """Return data without an order, from classes and from the outcomes, ways and counts of rows."""
    given = [{"outcomes": f, "ways": ways, "seen": {"all": n, "pilot": [0] * len(n)}} for f, ways, n in rows]
    about = {"order": "unknown", "sampling": sampling, "lengths": [], "expected": None}
    names = ["p", "q"]
    return read_data(Part({"parameters": names, "data": about, "classes": classes, "rows": given}, "witness.json"))


def test_trials_of_an_event_are_those_of_all_rows_that_try_it():
    """Of two rows with one event, an adversary would count the one that suits him."""
    classes = [["p", "-p + 1"], ["p", "q", "-p - q + 1"]]
    rows = [
        (classes[0], [[[0, 0]], [[0, 1]]], [1, 99]),
        (classes[1], [[[1, 0]], [[1, 1]], [[1, 2]]], [80, 10, 10]),
    ]
    data = data_of(classes, rows)

    def tried(event, trials):
        return trials_of(data, Part(trials, "trials"), event_trials(data).of(parse(event, data.names), data))

    assert tried("p", [[0, [0]], [1, [0]]]) == (81, 200)
    for some in ([[0, [0]]], [[1, [0]]], []):
        with pytest.raises(Rejected, match="not all rows"):
            tried("p", some)
    assert tried("p + q", [[1, [0, 1]]]) == (90, 100)  # that 1 - p - q does not happen
    with pytest.raises(Rejected, match="do not have the probability"):
        tried("p + q", [[1, [0, 2]]])
    with pytest.raises(Rejected, match="not all rows"):
        tried("1", [[0, [0, 1]]])


COINS = ["p*q", "-p*q + p", "-p*q + q", "p*q - p - q + 1"]


def test_sums_of_outcomes_are_events_if_they_are_what_a_row_draws():
    """So that nobody picks among all sums those that suit him."""
    classes = [["p", "-p + 1"], ["q", "-q + 1"]]
    ways = [[[0, i], [1, j]] for i in (0, 1) for j in (0, 1)]
    data = data_of(classes, [(COINS, ways, [10, 20, 30, 40])])
    tries = event_trials(data)
    assert tries.of(parse("p", data.names), data) == {0: {0, 1}}
    assert tries.of(parse("q", data.names), data) == {0: {0, 2}}
    assert tries.of(parse("-q + 1", data.names), data) == {0: {1, 3}}
    assert tries.of(parse("2*p*q - p - q + 1", data.names), data) == {}  # that both coins show the same
    assert len(tries.events) == 8


def test_an_outcome_that_a_row_has_twice_is_no_event():
    """Nobody picks the one of the two that suits him."""
    classes = [["p", "-p + 1"]]
    outcomes = ["1/2*p", "1/2*p", "-p + 1"]
    data = data_of(classes, [(outcomes, [[[0, 0]], [[0, 0]], [[0, 1]]], [90, 10, 100])])
    assert event_trials(data).of(parse("1/2*p", data.names), data) == {}
    assert event_trials(data).of(parse("p", data.names), data) == {0: {0, 1}}


def test_a_step_that_tries_an_event_twice_counts_once():
    """The second trial of p depends on the first, so that the number of both is not fixed."""
    classes = [["p", "-p + 1"]]
    outcomes, ways = ["p^2", "-p^2 + p", "-p + 1"], [[[0, 0], [0, 0]], [[0, 0], [0, 1]], [[0, 1]]]
    item = {"polynomial": "p", "once": False, "trials": [[0, [0]]], "lower": 0.01, "upper": 0.99}
    part = {"error": 0.01, "method": "clopper-pearson", "number": 3, "list": [item]}
    once = data_of(classes, [(classes[0], [[[0, 0]], [[0, 1]]], [500, 500])])
    twice = data_of(classes, [(outcomes, ways, [250, 250, 500])])
    with exactly():
        assert len(list(half_spaces_from_intervals(Part(part, "intervals"), once))) == 2
        with pytest.raises(Rejected, match="do not have the probability"):
            list(half_spaces_from_intervals(Part(part, "intervals"), twice))
        item["trials"] = [[0, [0, 1]], [0, [0]]]
        with pytest.raises(Rejected, match="one trial of an event, not two"):
            list(half_spaces_from_intervals(Part(part, "intervals"), twice))
        item["trials"] = [[0, [0, 1]]]
        assert len(list(half_spaces_from_intervals(Part(part, "intervals"), twice))) == 2


def test_files_without_an_end_are_refused(result):
    for make in (lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero"), lambda path: path.mkdir()):
        path = result / "policy.csv"
        path.unlink()
        make(path)
        assert str(verify(result).broken) == "policy.csv is not a file"
        if path.is_dir():
            break
        path.unlink()
        path.write_text("")


def test_texts_that_take_long_are_refused_at_once(result, files):
    names = ",".join(f'"{i}":0' for i in range(100_000))
    (result / "witness.json").write_text("{" + names + ',"5":1}')
    rehash(result)
    assert str(verify(result).broken) == "the name '5' is given twice"
    witness, certificate = files
    answer = {"question": "P" + " " * 1_000_000, "verdict": "yes", "about": "recommended", "limit": None}
    assert verdict(witness, certificate | {"answer": answer})[1].endswith("a text is too long, or cannot be printed")


def test_work_that_takes_more_than_a_minute_is_refused_before_it_is_done(files, monkeypatch):
    witness, certificate = files
    n = 330
    many = copy.deepcopy(witness)
    many["parameters"] += [f"x{i}" for i in range(n - 2)]
    many["set"]["space_law"] = {"mean": [0.0] * n, "basis": [[0.0] * n] * n, "precision": [[0.0] * n] * n}
    assert "takes more than 30,000,000 operations" in verdict(many, certificate)[1]
    witness["chain"]["rows"][0] = [0, [0] * 5_000, [0] * 5_000]
    witness["chain"]["expressions"][0] = "+".join(["1/" + "7" * 400, *(f"p^{i}" for i in range(60))])
    monkeypatch.setattr(reading, "_MAX_WORK", 100_000)
    assert "takes more than" in verdict(witness, certificate)[1]


def test_what_is_printed_moves_no_cursor(files):
    witness, certificate = files
    layer, message = verdict(witness, certificate | {"status": "\x1b[2J\nverified: all of it \ud800" + "x" * 1000})
    assert layer == "files"
    assert message.isprintable()
    assert len(message) < 400


@pytest.mark.parametrize(
    ("blocks", "layer"),
    [
        ([[], [], ["q"]], "bets"),
        ([[], ["p", "q"], ["q"]], "bets"),
        ([[], ["p"], ["r"]], "bets"),
        ([[], ["q"], ["p"]], "set"),
    ],
    ids=str,
)
def test_likelihoods_of_blocks_are_about_different_parameters(files, blocks, layer):
    """If the blocks of two parameters are swapped, no evidence follows from the widths."""
    witness, certificate = files
    assert [each["block"] for each in witness["set"]["likelihoods"]] == [[], ["p"], ["q"]]
    for each, block in zip(witness["set"]["likelihoods"], blocks, strict=True):
        each["block"] = block
    assert verdict(witness, certificate)[0] == layer
