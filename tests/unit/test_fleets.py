"""A fleet of units: which are named, what is kept of each, and what stops one and no other."""

import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from coin_model import COIN
from in_format import in_format

import plumdp as pl
from plumdp.watching import fleets
from plumdp.watching import units as table
from plumdp.watching.fleets import Lists, Won, e_value, watch_many
from plumdp.watching.plan import Alarm, Plan, WatchState
from plumdp.watching.rows import watched_rows
from plumdp.watching.units import e_bh
from plumdp.watching.watch import AlarmRules, watch

FIRST = int(COIN.graph.first_transition[0])


def thrown(rng, rate, n=40):
    counts = np.zeros(COIN.graph.n_transitions, dtype=np.int64)
    heads = int(rng.binomial(n, rate))
    counts[FIRST : FIRST + 2] = heads, n - heads
    return pl.TransitionCounts(COIN.graph, counts, "adaptive")


def nights(n, changed=(), units=12, after=0.6):
    """Return days by unit; those that are changed have another rate from day 20 on."""
    return {
        f"unit-{i:02}": {
            f"2024-05-{day + 1:02}": thrown(
                np.random.default_rng(1000 * i + day), after if i in changed and day >= 20 else 0.3
            )
            for day in range(n)
        }
        for i in range(units)
    }


def on_disk(folder, given):
    for unit, days in given.items():
        (folder / unit).mkdir(parents=True, exist_ok=True)
        for name, counts in days.items():
            pl.write_counts(counts, folder / unit / f"{name}.parquet")
    return folder


def test_units_that_changed_are_named_the_most_evident_first():
    found = watch_many(COIN, nights(28, changed=(3, 7)))
    assert {unit.name for unit in found.named} == {"unit-03", "unit-07"}
    values = [unit.e_value for unit in found.named]
    assert values == sorted(values, reverse=True)
    assert min(values) >= 12 / (0.05 * 2)
    assert "about 0.6 from about 2024-05-2" in found.named[0].words
    assert found.sentence == "2 of 12 units have changed."
    assert "at most 5 % of the names on such a list are wrong, whatever units have in common" in str(found)
    assert "each such night holds by itself" in found.promise


def test_a_fleet_that_did_not_change_has_no_names():
    found = watch_many(COIN, nights(28))
    assert (found.named, found.status) == ((), "quiet")


@pytest.mark.parametrize("chosen", ["any", "unlinked"])
def test_at_a_night_that_was_chosen_by_looking_e_values_are_others_and_the_promise_says_so(chosen):
    given = nights(28, changed=(3,), units=6, after=0.8)
    fixed, looked = watch_many(COIN, given), watch_many(COIN, given, lists=Lists(nights=chosen))
    assert [unit.name for unit in looked.named] == ["unit-03"]
    assert "may have been chosen by looking" in looked.promise
    assert ("as you stated" in looked.promise) == (chosen == "unlinked")
    assert (looked.named[0].e_value < fixed.named[0].e_value) == (chosen == "any")


def test_the_e_value_of_a_unit_that_stopped_is_the_same_however_many_nights_there_were():
    """It may have stopped because of what it showed: an e-value that counted its nights would be too large."""
    given = nights(12, units=2)
    alone = dict(list(given["unit-01"].items())[:8])
    (by_itself,) = watch_many(COIN, {"unit-01": alone}).units
    both = watch_many(COIN, given | {"unit-01": alone})
    assert both.units[1] == by_itself
    assert (by_itself.n_parts, by_itself.last) == (8, "2024-05-08")
    said = "no unit stopped before others because of what these showed"
    assert [said in watch_many(COIN, some).assumptions for some in (given, {"unit-01": alone})] == [False, False]
    assert said in both.assumptions


def still(rate, n=30, unit=0):
    return [thrown(np.random.default_rng(1000 * unit + day), rate) for day in range(n)]


def test_units_that_never_changed_and_are_not_as_the_reference_says_are_not_said_to_have_changed():
    given = {"as given": still(0.3), "other": still(0.6, unit=1)}
    found = watch_many(COIN, given, rules=AlarmRules(reference={"p": 0.3}))
    assert found.sentence == "1 of 2 units differs from the reference."
    assert "a name is wrong if the unit is as the reference says" in found.promise
    assert found.named[0].words == "p is about 0.588, not 0.3 (estimates)"
    one = watch(COIN, given["other"], rules=AlarmRules(reference={"p": 0.3}))
    assert one.sentence == f"ALARM: the process differs from the reference ({one.alarms[0].part})."
    certificate = pl.certify(COIN, thrown(np.random.default_rng(9), 0.3, 400), 'P=? [ F "heads" ]')
    found = watch_many(COIN, given, certificate)
    assert found.sentence == "1 of 2 units is not as the certificate says."
    assert "a name is wrong if the unit is as the certificate says" in found.promise
    later = {"unit": still(0.3, 20) + still(0.6, 10, unit=1)}
    (unit,) = watch_many(COIN, later, rules=AlarmRules(reference={"p": 0.3})).named
    assert "from about part 21 on, not 0.3" in unit.words
    assert "a name is wrong if the unit has not changed" in watch_many(COIN, given).promise


def test_weights_of_what_is_won_after_acknowledged_alarms_sum_to_one():
    shares = [e_value(Won(0.0, k), "fixed") for k in range(1, 2000)]
    assert 0.999 < sum(shares) <= 1
    state = WatchState.begin(Plan(watched_rows(COIN), 100))
    acknowledged = [Alarm("rows", "1", 9.0, "", "1", "3"), Alarm("value", "5", 9.0, "", "5", "7")]
    assert fleets.won_by(state, "rows").cycle == 1
    assert fleets.won_by(WatchState(state.plan, state.stream, alarms=tuple(acknowledged)), "rows").cycle == 2


def test_e_bh_names_the_largest_number_that_the_level_allows():
    """By hand: of 4 units at one half, k need 8 / k each."""
    assert e_bh([8.0, 0.0, 0.0, 0.0], 0.5) == [0]
    assert e_bh([7.9, 0.0, 0.0, 0.0], 0.5) == []
    assert e_bh([3.0, 2.7, 2.6, 0.0], 0.5) == []
    assert e_bh([2.7, 3.0, 2.0, 2.0], 0.5) == [1, 0, 2, 3]


# What is kept, and what stops


def told(found):
    return json.dumps(found.to_dict(), sort_keys=True)


def test_a_job_that_was_killed_in_the_middle_and_starts_again_finds_the_same(tmp_path, monkeypatch):
    given = nights(24, changed=(3,), units=8)
    at_once, again = tmp_path / "at once", tmp_path / "again"
    earlier = {name: dict(list(days.items())[:20]) for name, days in given.items()}
    whole = [watch_many(COIN, some, state=at_once) for some in (earlier, given)][-1]
    watch_many(COIN, earlier, state=again)
    n = 0

    def killed(*args, **options):
        nonlocal n
        n += 1
        if n == 5:
            raise KeyboardInterrupt
        return watch(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(fleets, "watch", killed)
        with pytest.raises(KeyboardInterrupt):
            watch_many(COIN, given, state=again)
    assert told(watch_many(COIN, given, state=again)) == told(whole)
    kept = [{file.name: file.read_bytes() for file in folder.iterdir()} for folder in (at_once, again)]
    assert kept[0] == kept[1]
    assert told(watch_many(COIN, given)) == told(whole)  # nor does anything depend on the state


def test_a_state_is_one_that_watch_acknowledges(tmp_path):
    given = nights(28, changed=(3,), units=4)
    assert watch_many(COIN, given, state=tmp_path).named
    watch(COIN, given["unit-03"], state=tmp_path / "unit-03.watch", acknowledge=True)
    found = watch_many(COIN, given, state=tmp_path)
    (unit,) = (unit for unit in found.units if unit.name == "unit-03")
    assert (unit.won.cycle, unit.e_value, found.named) == (2, 0.0, ())
    assert any("acknowledged because of what its own unit showed" in each for each in found.assumptions)


@pytest.mark.slow
def test_a_unit_that_cannot_be_read_or_lacks_a_day_stops_no_other(tmp_path):
    given = nights(28, changed=(3,), units=4)
    del given["unit-01"]["2024-05-10"]
    folder = on_disk(tmp_path, given)
    (folder / "unit-02" / "2024-05-03.parquet").write_bytes(b"not a table")
    found = watch_many(COIN, folder)
    assert [(unit.name, unit.status) for unit in found.units if unit.status in ("gap", "failed")] == [
        ("unit-01", "gap"),
        ("unit-02", "failed"),
    ]
    assert [unit.name for unit in found.named] == ["unit-03"]
    assert found.status == "failed"
    assert "no part between 2024-05-09 and 2024-05-11" in str(found)
    assert len(found.units) == 4  # the level is of all of them


def test_maps_of_others_find_the_same(monkeypatch):
    given = nights(6, units=5)
    monkeypatch.setattr(table, "_BATCH", 2)
    alone = told(watch_many(COIN, given))
    with ThreadPoolExecutor(2) as pool:
        assert told(watch_many(COIN, given, map=pool.map)) == alone


@pytest.mark.night
def test_several_processes_find_the_same(monkeypatch):
    given = nights(6, units=3)
    alone = told(watch_many(COIN, given))
    monkeypatch.setattr(table, "_BATCH", 2)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert told(watch_many(COIN, given, map=pool.map)) == alone


def test_one_reference_for_all_units_finds_changes_sooner():
    given = nights(23, changed=(3,), units=6)
    learned, known = (watch_many(COIN, given, rules=AlarmRules(reference=each)) for each in (None, {"p": 0.3}))
    assert known.named
    assert known.units[3].e_value > learned.units[3].e_value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 5}, "share of wrong names"),
        ({"nights": "all"}, "choose one of fixed, any, unlinked"),
        ({"alarm": "both"}, "choose 'rows' or 'value'"),
        ({"alarm": "value"}, "give a certificate"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(pl.DataError, match=message):
        watch_many(COIN, nights(2, units=1), **in_format(**options))


def test_units_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(pl.DataError, match="a folder with a folder of parts"):
        watch_many(COIN, tmp_path)
    with pytest.raises(pl.DataError, match="a folder with a folder of parts"):
        watch_many(COIN, tmp_path / "none")
