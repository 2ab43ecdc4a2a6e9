"""A watch of days: what it says of changes, what it keeps, and where it stops."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas
import pytest
from in_format import in_format
from row_models import listed, row_model

import plumdp as pl
from plumdp.watching.plan import WatchState
from plumdp.watching.stream import contexts_of, find_gap, named_files
from plumdp.watching.watch import AlarmRules

(fault,) = pl.parameters("fault")


def press(state):
    if state.part != "raw":
        return {"wait": [(1, state)]}
    good, scrap = state._replace(part="good"), state._replace(part="scrap")
    return {"fast": [(1 - fault, good), (fault, scrap)], "slow": [(1 - fault / 2, good), (fault / 2, scrap)]}


LABELS = {"good": lambda state: state.part == "good"}
MODEL = pl.explore(press, {"part": "raw"}, space=pl.ParameterSpace.unit("fault"), labels=LABELS)
GOOD = 'Pmax=? [ F "good" ]'
ROWS = AlarmRules(value=False)
FAST = {"raw": "fast"}


def day(number, rate, n=40, policy="uniform"):
    return pl.simulate(MODEL, {"fault": rate}, n, rng=number, max_steps=1, policy=policy)


def days(n, change=None, start=0, after=0.3):
    rates = [0.1 if change is None or i < change else after for i in range(n)]
    return {f"2024-05-{i + 1:02}": day(start + i, rate) for i, rate in enumerate(rates)}


def logs(folder, rates, n=60, first=1):
    """Write a log of runs under the fast mode for each day."""
    for number, rate in enumerate(rates, start=first):
        file = folder / f"2024-05-{number:02}.csv"
        fast = pl.PolicyTable.from_actions(MODEL.graph, lambda state: "fast" if state.part == "raw" else "wait")
        pl.data.write_runs(MODEL, {"fault": rate}, n, file, rng=number, max_steps=2, policy=fast, form="trajectories")
    return fast


def both(files):
    one, other = (pl.read_log(MODEL, file).counts for file in files)
    return one + other


def test_a_change_is_found_named_and_dated():
    found = pl.watch(MODEL, days(30, change=20), GOOD)
    (alarm,) = found.alarms
    assert found.status == "alarm"
    assert "2024-05-21" < alarm.part < "2024-05-29"
    assert re.match(r"fault was about 0\.[01]\d*, and about 0\.[23]\d* from about 2024-05-2[0-3] on", alarm.words)
    assert str(found).startswith(f"ALARM: the process has changed ({alarm.part}).")
    assert "at most one in 1,000 parts on average, whatever the parameters are" in str(found)


def test_what_did_not_change_gives_no_alarm():
    found = pl.watch(MODEL, days(30), GOOD)
    assert found.status == "quiet"
    assert found.sentence == "No alarm in 30 parts, the last one 2024-05-30."


@pytest.mark.night
def test_a_known_reference_is_faster_than_one_that_is_learned():
    both = [
        pl.watch(MODEL, days(30, change=8), rules=AlarmRules(reference=each)).alarms[:1]
        for each in (None, {"fault": 0.1})
    ]
    assert both[1]
    assert not both[0] or both[1][0].part <= both[0][0].part


@pytest.mark.slow
def test_thresholds_divide_one_promise_between_all_alarms(tmp_path):
    fast = logs(tmp_path, [0.1] * 3)
    certificate = pl.certify(MODEL, day(1, 0.1, 2000), GOOD, policy=fast)
    limits = {
        name: {kind: limit for kind, (_, limit) in pl.watch(MODEL, source, **in_format(**options)).evidence.items()}
        for name, source, options in (
            ("learned", days(2), {}),
            ("known", days(2), {"reference": {"fault": 0.1}}),
            ("both, learned", tmp_path, {"question": certificate, "reference": "learned"}),
            ("both, certified", tmp_path, {"question": certificate}),
        )
    }
    assert limits["learned"] == {"rows": 2000}
    assert limits["known"] == {"rows": 1000}
    assert limits["both, learned"] == {"rows": 4000, "value": 2000}
    assert limits["both, certified"] == {"rows": 2000, "value": 2000}


@pytest.mark.slow
def test_a_value_that_no_longer_holds_is_told_by_runs_alone(tmp_path):
    fast = logs(tmp_path, [0.1] * 4 + [0.4] * 8)
    certificate = pl.certify(MODEL, day(1, 0.1, 4000), GOOD, policy=fast)
    found = pl.watch(MODEL, tmp_path, certificate, rules=AlarmRules(reference="learned"))
    alarm = next(alarm for alarm in found.alarms if alarm.kind == "value")
    assert "2024-05-05" <= alarm.part <= "2024-05-07"
    assert re.match(r"mean return of a run about 0\.[567]\d* from about 2024-05-0[4-6] on", alarm.words)
    assert "the certified value no longer holds" in found.sentence


def test_frames_are_parts_like_files(tmp_path):
    policy = logs(tmp_path, [0.1] * 3 + [0.4] * 5)
    certificate = pl.certify(MODEL, day(0, 0.1, n=3000, policy=policy), GOOD, policy=policy)
    files = {file.stem: file for file in sorted(tmp_path.iterdir())}
    by_file, by_frame = (
        pl.watch(MODEL, parts, certificate)
        for parts in (files, {name: pandas.read_csv(file) for name, file in files.items()})
    )
    assert by_frame.alarms == by_file.alarms != ()
    assert by_frame.evidence == by_file.evidence
    with pytest.raises(pl.DataError, match="all: a part is one file, frame or counts; make parts of these 8 files"):
        pl.watch(MODEL, {"all": tmp_path})


@pytest.mark.night
def test_a_system_that_improves_gives_no_alarm_about_its_value(tmp_path):
    fast = logs(tmp_path, [0.1] * 3 + [0.01] * 8)
    certificate = pl.certify(MODEL, day(1, 0.1, 4000), GOOD, policy=fast)
    found = pl.watch(MODEL, tmp_path, certificate)
    assert not [alarm for alarm in found.alarms if alarm.kind == "value"]


@pytest.mark.slow
def test_a_certificate_from_the_data_that_are_watched_is_refused(tmp_path):
    """It would know what is watched: a planted look ahead."""
    fast = logs(tmp_path, [0.1] * 5)
    files = sorted(map(str, tmp_path.iterdir()))
    first = pl.certify(MODEL, both(files[:2]), GOOD, policy=fast)
    assert pl.watch(MODEL, tmp_path, first).n_parts == 3
    late = pl.certify(MODEL, both(files[3:]), GOOD, policy=fast)
    with pytest.raises(pl.DataError, match="older than what is watched"):
        pl.watch(MODEL, tmp_path, late)


@pytest.mark.slow
def test_a_certificate_from_counts_of_the_data_that_are_watched_is_refused(tmp_path):
    """Counts remember what they were counted from, under whichever name they are kept."""
    fast = logs(tmp_path, [0.1] * 4)
    files, counted = sorted(tmp_path.iterdir()), tmp_path / "counts"
    counted.mkdir()
    for file in files:
        pl.write_counts(pl.read_log(MODEL, file), counted / f"{file.stem}.parquet")
    certificate = pl.certify(MODEL, both(map(str, files[2:])), GOOD, policy=fast)
    with pytest.raises(pl.DataError, match="the certificate was made from 2024-05-03"):
        pl.watch(MODEL, counted, certificate)
    assert any("was made before the data that are watched" in each for each in _assumed(certificate, counted / "..", 2))


@pytest.mark.night
def test_frames_are_not_watched_against_a_certificate_that_they_made():
    """As files are not: the first parts are left out, and later ones are refused."""
    runs = pandas.DataFrame(pl.data.record(MODEL, {"fault": 0.1}, 240, rng=1, max_steps=1).columns())
    frames = [runs[runs.episode // 40 == number] for number in range(6)]
    counts = [pl.read_log(MODEL, frame).counts for frame in frames]
    early, late = (pl.certify(MODEL, sum(some[1:], some[0]), GOOD) for some in (counts[:2], counts[3:]))
    found = pl.watch(MODEL, frames, early, rules=ROWS)
    assert (found.state.n_before, found.n_parts) == (2, 4)
    for parts in (frames, counts):
        with pytest.raises(pl.DataError, match=r"was made from part 4: .*; if these are other runs that look alike"):
            pl.watch(MODEL, parts, late, rules=ROWS)
    named = [frame.assign(episode=frame.episode + 1000 * number) for number, frame in enumerate(frames)]
    assert pl.watch(MODEL, named, late, rules=ROWS).n_parts == 6  # other runs that look alike


def ready_made(folder, n, goods=(9,)):
    """Write a file of ready-made counts for each of n days."""
    for number in range(n):
        date = np.datetime64("2024-01-01") + number
        rows = f"part,action,next_part,n\nraw,fast,good,{goods[number % len(goods)]}\nraw,fast,scrap,1\n"
        (folder / f"{date}.csv").write_text(rows, encoding="utf-8")
    return sorted(map(str, folder.iterdir()))


def test_a_certificate_from_ready_made_counts_that_are_watched_is_not_compared_with_them(tmp_path):
    """A later day with the same numbers may be another day, and is watched."""
    files = ready_made(tmp_path, 6, goods=(9, 8, 7))
    certificate = pl.certify(MODEL, both(files[:2]), GOOD, policy=FAST)
    found = pl.watch(MODEL, tmp_path, certificate, rules=ROWS)
    assert (found.state.n_before, found.n_parts) == (2, 4)


def test_the_data_of_a_certificate_from_many_files_are_left_out(tmp_path):
    files = ready_made(tmp_path, 103, goods=range(5, 200))
    certificate = pl.certify(MODEL, pl.read_log(MODEL, files[:101]), GOOD, policy=FAST)
    found = pl.watch(MODEL, files, certificate, rules=ROWS)
    assert (found.state.n_before, found.n_parts) == (101, 2)


def _assumed(certificate, folder, n):
    return pl.watch(MODEL, sorted(map(str, folder.glob("*.csv")))[:n], certificate).assumptions


def test_two_files_of_one_day_are_refused(tmp_path):
    logs(tmp_path, [0.1])
    (tmp_path / "2024-05-01.json").write_text("{}", encoding="utf-8")
    with pytest.raises(pl.DataError, match="are both called 2024-05-01"):
        pl.watch(MODEL, tmp_path)


# The state


def kept(folder, *args, **options):
    file = folder / "press.watch"
    return pl.watch(MODEL, *args, state=file, **in_format(**options)), file.read_text("utf-8")


@pytest.mark.slow
def test_a_state_is_the_same_bit_for_bit_however_often_it_was_written(tmp_path):
    all_days = days(30, change=20)
    _, at_once = kept(tmp_path, all_days)
    (tmp_path / "press.watch").unlink()
    for n in (1, 7, 8, 8, 30):
        found, text = kept(tmp_path, dict(list(all_days.items())[:n]))
        assert found.n_parts == n
    assert text == at_once
    assert len(text) < 5000


def test_a_night_without_new_parts_assumes_what_the_night_before_did(tmp_path):
    (tmp_path / "days").mkdir()
    logs(tmp_path / "days", [0.1] * 3)
    both_nights = [kept(tmp_path, tmp_path / "days")[0] for _ in range(2)]
    assert str(both_nights[0]) == str(both_nights[1])
    assert "no step is missing because of its outcome" in both_nights[1].assumptions


@pytest.mark.slow
def test_certificates_about_now_look_at_memory_and_at_known_columns(tmp_path):
    """Two kinds of units fail with 0.05 and 0.3; half of the 40 days are read from the state, where days are joined."""
    (hazard,) = pl.parameters("hazard")

    model = listed({0: {"run": [(hazard, 1), (1 - hazard, 0)]}}, "hazard", at="failed", labels={"failed": 1})
    rng, days, asked = np.random.default_rng(1), {}, 'P=? [ F<=12 "failed" ]'
    for number in range(40):
        old = rng.integers(0, 2, 12)
        fails = np.minimum(rng.geometric(np.where(old, 0.3, 0.05)), 13)
        rows = [
            {"unit": unit, "step": k, "failed": int(k == fails[unit]), "type": ["new", "old"][old[unit]], "do": "run"}
            for unit in range(12)
            for k in range(min(fails[unit] + 1, 13))
        ]
        days[f"day {number}"] = pandas.DataFrame(rows)
    columns = {"episode": "unit", "action": "do"}
    how = {"columns": columns, "censoring": "unrelated", "on_unmatched": "report"}
    at_once = pl.watch(model, days, asked, **in_format(known=["type"], **how))
    half = dict([*days.items()][:20])
    state = tmp_path / "state"
    for parts in (half, days):
        found = pl.watch(model, parts, asked, state=state, **in_format(known=["type"], **how))
    assert str(found.now) == str(at_once.now)
    assert found.now.status == "model rejected"
    assert "type" in str(found.now)
    rows = pandas.concat([each.assign(unit=each.unit + 12 * i) for i, each in enumerate(days.values())])
    whole = pl.read_log(model, rows, pilot=False, **in_format(known=["type"], **how)).counts
    told = {(each.kind, each.name): each for each in contexts_of(found.state.stream.parts)}
    assert {*told} == {(each.kind, each.name) for each in whole.contexts}
    for each in whole.contexts:
        same = told[each.kind, each.name]
        order = [same.values.index(value) for value in each.values]
        for value, transition, count in zip(each.value, each.transition, each.count, strict=True):
            there = (same.value == order[value]) & (same.transition == transition)
            assert same.count[there].tolist() == [count]
    with pytest.raises(pl.DataError, match="with other options"):
        pl.watch(model, days, asked, state=state, **in_format(**how))


def test_a_state_that_was_changed_or_is_of_another_watch_is_refused(tmp_path):
    kept(tmp_path, days(3))
    file = tmp_path / "press.watch"
    with pytest.raises(pl.DataError, match="with other options"):
        kept(tmp_path, days(3), rules=AlarmRules(quiet=500))
    text = file.read_text("utf-8")
    for wrong in (text.replace('"n":3', '"n":2'), text[: len(text) // 2], "", "\ufffe\0"):
        file.write_text(wrong, encoding="utf-16" if "\0" in wrong else "utf-8")
        with pytest.raises(pl.DataError, match="it was changed"):
            kept(tmp_path, days(3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reference": "certifed"}, "reference='certifed': choose"),
        ({"reference": {"fault": 2.0}}, "not parameters that the model allows"),
        ({"reference": {"fault": 0.1, "x": 1}}, "no parameter is called x"),
        ({"quiet": "1000"}, "quiet='1000': give a number of parts"),
        ({"acknowledge": True}, "give the file of the state"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, words):
    with pytest.raises((pl.DataError, pl.ModelError), match=words):
        pl.watch(MODEL, days(2), **in_format(**options))
    with pytest.raises(pl.DataError, match="parts are one file, frame or counts each"):
        pl.watch(MODEL, day(1, 0.1))


def test_a_part_that_comes_late_is_never_closed_over(tmp_path):
    all_days = days(6)
    without = {name: counts for name, counts in all_days.items() if name != "2024-05-03"}
    found, _ = kept(tmp_path, without)
    assert (found.status, found.n_parts) == ("gap", 2)
    assert found.gap == "no part between 2024-05-02 and 2024-05-04"
    found, _ = kept(tmp_path, all_days)
    assert (found.status, found.n_parts) == ("quiet", 6)


def test_gaps_that_somebody_vouches_for_are_an_assumption_and_late_parts_then_stop_the_watch(tmp_path):
    all_days = days(6)
    without = {name: counts for name, counts in all_days.items() if name != "2024-05-03"}
    found, _ = kept(tmp_path, without, rules=AlarmRules(gaps="unrelated"))
    assert found.n_parts == 5
    assert any("have nothing to do with the outcomes in them (as you stated)" in each for each in found.assumptions)
    found, _ = kept(tmp_path, all_days, rules=AlarmRules(gaps="unrelated"))
    assert (found.status, found.n_parts) == ("gap", 5)
    assert "one came late" in found.gap


def test_a_copy_of_a_part_stops_the_watch():
    some = days(4)
    found = pl.watch(MODEL, {**some, "2024-05-05": some["2024-05-02"]})
    assert (found.status, found.n_parts) == ("gap", 4)
    assert found.gap == "2024-05-05 has data that 2024-05-02 has, too: remove it if it is a copy"


@pytest.mark.parametrize("copied", ["whole", "with others"])
def test_a_copy_is_found_however_old_it_is_also_within_other_data(tmp_path, copied):
    some = [day(i, 0.1) for i in range(42)]
    late = some[0] if copied == "whole" else some.pop() + some[0]
    kept(tmp_path, some)
    found, text = kept(tmp_path, [*some, late])
    assert (found.status, found.n_parts) == ("gap", len(some))
    assert "has data that part 1 has, too" in found.gap
    assert len(text) < 4500


def test_a_file_that_grew_after_it_was_watched_stops_the_watch(tmp_path):
    """It was watched before its day was over."""
    (folder := tmp_path / "days").mkdir()
    logs(folder, [0.1] * 3)
    whole = (folder / "2024-05-03.csv").read_text("utf-8")
    (folder / "2024-05-03.csv").write_text("".join(whole.splitlines(keepends=True)[:41]), encoding="utf-8")
    assert kept(tmp_path, folder)[0].status == "quiet"
    (folder / "2024-05-03.csv").write_text(whole, encoding="utf-8")
    found, _ = kept(tmp_path, folder)
    assert (found.status, found.n_parts) == ("gap", 3)
    assert found.gap == "2024-05-03 is not as it was when it was watched: give files that are complete"


def test_a_day_of_a_growing_log_that_was_not_over_stops_the_watch(tmp_path):
    logs(tmp_path, [0.1] * 3)
    days = {f"2024-05-0{i}": pandas.read_csv(tmp_path / f"2024-05-0{i}.csv") for i in (1, 2, 3)}
    assert kept(tmp_path, days | {"2024-05-03": days["2024-05-03"][:40]})[0].status == "quiet"
    found, _ = kept(tmp_path, days)
    assert (found.status, found.n_parts) == ("gap", 3)
    assert found.gap.startswith("2024-05-03 is not as it was when it was watched")


def test_a_day_without_runs_is_a_part_for_the_value_as_well(tmp_path):
    fast = logs(tmp_path, [0.1] * 3)
    empty = (tmp_path / "2024-05-02.csv").read_text("utf-8").splitlines()[0] + "\n"
    for number in (1, 3):
        (tmp_path / f"2024-05-0{number}.csv").write_text(empty, encoding="utf-8")
    certificate = pl.certify(MODEL, day(1, 0.1, 2000), GOOD, policy=fast)
    found = pl.watch(MODEL, tmp_path, certificate)
    assert (found.status, found.n_parts, set(found.evidence)) == ("quiet", 3, {"rows", "value"})


def test_two_days_with_the_same_numbers_are_no_copies(tmp_path):
    for number in (1, 2, 3):
        rows = "part,action,next_part,n\nraw,fast,good,9\nraw,fast,scrap,1\n"
        (tmp_path / f"2024-05-0{number}.csv").write_text(rows, encoding="utf-8")
    assert pl.watch(MODEL, tmp_path).n_parts == 3


@pytest.mark.parametrize("empty", [0, 3, 5])
def test_an_empty_day_counts_and_changes_no_other_number(empty):
    some = [*days(6).values()]
    some[empty] = replace(some[empty], counts=0 * some[empty].counts, pilot=None, parts=(), time=None, contexts=())
    found = pl.watch(MODEL, some, GOOD)
    assert found.n_parts == 6
    assert np.isfinite(found.evidence["rows"][0])
    assert found.now.claim.claims_bounds


@pytest.mark.slow
def test_an_acknowledged_alarm_begins_the_watch_anew(tmp_path):
    some = days(30, change=18)
    first, _ = kept(tmp_path, dict(list(some.items())[:27]))
    assert first.status == "alarm"
    again, _ = kept(tmp_path, dict(list(some.items())[:27]))
    assert again.status == "alarm"
    noted, _ = kept(tmp_path, some, acknowledge=True)
    assert noted.status == "quiet"
    assert noted.state.stream.n == 3
    assert noted.sentence.startswith("No alarm since that of 2024-05-2")
    assert [alarm.acknowledged for alarm in noted.alarms] == ["2024-05-27"]
    assert noted.state.share == 1 / (6 * 2)  # 27 has five binary digits
    assert (
        "(this one by itself: 99.99583333 %)"
        in pl.watch(MODEL, some, GOOD, state=tmp_path / "press.watch").now.rests_on.assumptions[0]
    )  # 0.1 % / 12 / 2


def test_rows_that_cannot_be_contradict_the_model(tmp_path):
    """Logs with such rows are refused unless they are to be reported; counts that were reported are contradicted."""
    rows = "part,action,next_part\nraw,fast,good\n"
    for number, more in ((1, ""), (2, "good,wait,scrap\n")):
        (tmp_path / f"2024-05-0{number}.csv").write_text(rows + more, encoding="utf-8")
    with pytest.raises(pl.DataError, match="impossible"):
        pl.watch(MODEL, tmp_path)
    found = pl.watch(MODEL, tmp_path, on_unmatched="report")
    assert found.status == "rejected"
    assert found.sentence.startswith("Model rejected: 2024-05-02")


# Now


@pytest.mark.slow
def test_certificates_about_now_say_what_they_assume_and_hold_after_a_change():
    found = pl.watch(MODEL, days(30, change=18), GOOD)
    value = 1 - 0.3 / 2
    whole, recent, window = found.since(None), found.now, found.window(8)
    assert not whole.lower <= value <= whole.upper
    for each in (recent, window):
        assert each.lower <= value <= each.upper
        assert each.confidence == 0.999
    assert re.match(r"nothing has changed since 2024-05-(18|19|20)", recent.rests_on.assumptions[0])
    assert "whichever start you choose, also by looking" in recent.rests_on.assumptions[0]
    assert "each night holds by itself" in window.rests_on.assumptions[0]
    assert window.rests_on.provenance["steps"] == f"{8 * 40}"
    same = found.since("2024-05-23")  # where the window begins, with a share of the error
    assert same.upper > window.upper
    assert same.beside.approximate == pytest.approx(window.beside.approximate)
    filed = "which file a step is in was decided before its outcome"
    assert all(any(filed in said for said in each.rests_on.assumptions) for each in (recent, window))
    assert not any("visits that move look like a change" in said for said in recent.rests_on.assumptions)


def test_a_start_has_its_share_of_the_error():
    found = pl.watch(MODEL, days(12), GOOD)
    assert found.since("2024-05-09").upper > found.window(4).upper
    with pytest.raises(pl.DataError, match="there is no such part; they go from 2024-05-01 to 2024-05-12"):
        found.since("2024-04-01")
    with pytest.raises(pl.DataError, match="say what certificates about now are to answer"):
        _ = pl.watch(MODEL, days(2)).now


# Rows


@pytest.mark.night
def test_many_classes_that_one_parameter_ties_are_watched_together():
    p, *_ = pl.parameters("p")
    rows = [[p / (2 + i), 1 - p / (2 + i)] for i in range(12)]
    model = row_model(rows, pl.ParameterSpace.unit("p"))
    parts = [pl.simulate(model, {"p": 0.2 if i < 40 else 0.6}, 60, rng=i, max_steps=1) for i in range(52)]
    (alarm,) = pl.watch(model, parts).alarms
    assert alarm.words.startswith("p was about 0.")
    assert alarm.part in [f"part {i}" for i in range(42, 50)]


def test_rows_of_a_table_are_watched():
    table = listed({0: {"go": [1, 2, 3]}, **{at: {"go": [(1, at)]} for at in (1, 2, 3)}}, None)
    go = table.graph.first_transition[0]
    rng, parts = np.random.default_rng(1), []
    for i in range(40):
        counts = np.zeros(table.graph.n_transitions, dtype=np.int64)
        counts[go : go + 3] = rng.multinomial(50, [0.2, 0.3, 0.5] if i < 25 else [0.5, 0.3, 0.2])
        parts.append(pl.TransitionCounts(table.graph, counts, "adaptive"))
    (alarm,) = pl.watch(table, parts).alarms
    assert "the probability that" in alarm.words
    assert alarm.since in ("part 25", "part 26", "part 27")


TWO_KINDS = " are names of two kinds, so that a missing part would not show: name all parts alike"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["2024-05", "2024-06", "2024-08"], (2, "no part between 2024-06 and 2024-08")),
        (["w-20240506", "w-20240513", "w-20240520"], None),
        (["w-20240506", "w-20240520"], (1, "no part between w-20240506 and w-20240520")),
        (["2024-05-01", "2024-05-03"], (1, "no part between 2024-05-01 and 2024-05-03")),
        (["part-1", "part-2", "part-4"], (2, "no part between part-2 and part-4")),
        (["first", "second"], None),
        (["2024-05-01T00", "2024-05-01T08", "2024-05-01T16", "2024-05-02T00"], None),
        (
            ["2024-05-01T00-00", "2024-05-01T08-00", "2024-05-02T00-00"],
            (2, "no part between 2024-05-01T08-00 and 2024-05-02T00-00"),
        ),
        (["202405012200", "202405012300", "202405020000"], None),
        (["2024-05-01_07", "2024-05-02_07", "2024-05-04_07"], (2, "no part between 2024-05-02_07 and 2024-05-04_07")),
        (["2020-W52", "2020-W53", "2021-W01", "2021-W03"], (3, "no part between 2021-W01 and 2021-W03")),
        (["2024-13-45", "2024-13-46"], None),
        (["2024-03", "2024-04", "2024-05-01"], (2, f"2024-04 and 2024-05-01{TWO_KINDS}")),
        (["2024-W18", "2024-W19", "2024-05-13", "2024-05-14"], (2, f"2024-W19 and 2024-05-13{TWO_KINDS}")),
        (["2024-05-13", "night 14", "night 15"], (1, f"2024-05-13 and night 14{TWO_KINDS}")),
        (["2024-05-01", "2024-05-02", "2024-05-09", "night 10"], (2, "no part between 2024-05-02 and 2024-05-09")),
    ],
)
def test_gaps_are_found_in_names(names, expected):
    assert find_gap(names) == expected


@pytest.mark.parametrize("names", [["a-2024-05-01", "b-2024-05-01"], ["31-05-2024", "01-06-2024"]])
def test_parts_of_one_day_or_in_another_order_are_refused(names):
    with pytest.raises(pl.DataError, match="one file for each part, with a date such as 2024-05-31 in its name"):
        find_gap(names)


def test_dots_in_names_of_files_are_no_endings_if_numbers_follow():
    files = ["a/press.2024-05-01.csv.gz", "a/press.2024-05-02.parquet", "a/1.5.csv"]
    assert [*named_files(files)] == ["press.2024-05-01", "press.2024-05-02", "1.5"]


def test_a_watch_is_told_as_text_html_and_json():
    found = pl.watch(MODEL, days(3))
    told = json.loads(json.dumps(found.to_dict()))
    assert told["schema"] == "plumdp/watch/1"
    assert (told["status"], told["n_parts"], told["last"]) == ("quiet", 3, "2024-05-03")
    assert found._repr_html_().startswith("<p><b>No alarm in 3 parts")
    assert repr(found) == "Watch(3 parts, quiet)"
    assert isinstance(found.state, WatchState)


def test_a_picture_shows_evidence_the_alarm_and_where_it_is_given():
    found = pl.watch(MODEL, days(30, change=20))
    (axes,) = pl.draw("watch", found).figure.axes
    line, limit = axes.get_lines()[:2]
    values = line.get_ydata()
    assert np.nanmax(values) >= limit.get_ydata()[0] == 2000
    assert len(values) == len(found.state.stream.parts)
    assert axes.get_title(loc="left").startswith("ALARM")
    with pytest.raises(pl.DataError, match="takes what watch returned"):
        pl.draw("watch", found.state)
