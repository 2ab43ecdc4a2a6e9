"""What ``start`` proposes for rows of all kinds, and what it refuses."""

import json
import random
import re
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import plumdp
from support.refusals import refused

import plumdp as pl
from plumdp.data.mapping_language import parse_mapping
from plumdp.starting.roles import column_term, date_format_of, decimal_of, encoding_of, is_persistent

pytestmark = pytest.mark.slow


def pumps(n=60, months=30):
    """Return monthly inspections of pumps, in which good wears to bad, and replacing makes it good."""
    rng, rows = random.Random(1), []
    for pump in range(n):
        state = "gut"
        for month in range(months):
            act = "Tausch" if state == "schlecht" and rng.random() < 0.6 else "keine"
            day = f"{rng.randint(1, 28):02}.{month % 12 + 1:02}.{2021 + month // 12}"
            word = rng.choice([state, state.upper()])
            cost = "4.180,50" if act == "Tausch" else "35,00"
            rows.append((f"P{pump:03}", day, word, act, cost, rng.choice("abc")))
            state = "gut" if act == "Tausch" else "schlecht" if rng.random() < 0.15 else state
    return pd.DataFrame(rows, columns=["Equipment", "Datum", "Zustand", "Maßnahme", "Kosten", "Prüfer"])


def facts(found, label):
    return [text for name, text in found.facts if name == label]


def test_a_german_export_of_pumps_is_seen_for_what_it_is(tmp_path):
    frame = pumps().drop(index=[40, 41, 700])
    frame = pd.concat([frame, frame.iloc[[5]]]).sample(frac=1, random_state=1)
    frame.to_csv(tmp_path / "export.csv", sep=";", index=False, encoding="cp1252")
    found = pl.start(tmp_path / "export.csv", cost="Kosten")
    text = found.raw.text
    assert (text.encoding, text.decimal, text.date_format) == ("cp1252", ",", "%d.%m.%Y")
    assert found.format.columns == {"episode": "Equipment", "step": "Datum"}
    assert found.format.states == {"Zustand": "lower(Zustand)"}
    assert (found.format.actions, found.format.steps, found.format.censoring, found.first) == (
        "Maßnahme",
        "monthly",
        "unrelated",
        15,
    )
    assert facts(found, "not used") == ["Prüfer: what it is now says nothing about what it is next"]
    assert found.objective == 'R{"cost"}min=? [ C<=29 ]'  # runs have 30 months
    cost = found.model.rewards["cost"]
    assert {*np.round(cost.choice, 2)} == {35.0, 4180.5}
    assert found.closed
    assert found.log.report.rows["gap in steps"] + found.log.report.matched > 1200


def test_first_runs_are_no_evidence():
    """The fifteen pumps that were looked at first make the table; the rows of the other 45 are counted."""
    frame = pumps()
    found = pl.start(frame, first=15)
    seen = frame.groupby("Equipment").Datum.apply(lambda days: pd.to_datetime(days, format="%d.%m.%Y").min())
    first = seen.sort_values(kind="stable").index[:15]
    others = frame[~frame.Equipment.isin(first)]
    assert found.log.report.total == len(others) if seen.is_unique else found.log.report.total <= len(frame) * 0.75
    assert "the first 15 runs of the log" in found.log.report.assuming[-1]


def test_nothing_that_is_evidence_chooses_the_table():
    """Other rows of the runs behind the first quarter, and the same runs and dates: the same table and options."""
    frame = pumps()
    found = pl.start(frame, pl.LogFormat(columns={"episode": "Equipment", "step": "Datum"}), first=15)
    first = {*_first_runs(frame, 15)}
    changed = frame.copy()
    is_other = ~changed.Equipment.isin(first)
    changed.loc[is_other, "Zustand"] = np.where(np.arange(is_other.sum()) % 2, "kaputt", "neu")
    changed.loc[is_other, "Kosten"] = "9.999,00"
    again = pl.start(changed, pl.LogFormat(columns={"episode": "Equipment", "step": "Datum"}), first=15)
    assert again.to_toml("") == found.to_toml("")
    assert again.model.graph.fingerprint == found.model.graph.fingerprint


def _first_runs(frame, n):
    began = pd.to_datetime(frame.Datum, format="%d.%m.%Y").groupby(frame.Equipment).min()
    place = pd.Series(range(len(frame)), index=frame.index).groupby(frame.Equipment).min()
    return pd.DataFrame({"began": began, "place": place}).sort_values(["began", "place"]).index[:n]


def test_numbers_get_bins_whose_edges_are_written():
    rng = np.random.default_rng(1)
    level = np.cumsum(rng.normal(size=(80, 40)), axis=1).ravel()
    frame = pd.DataFrame({"run": np.repeat(np.arange(80), 40), "t": np.tile(np.arange(40), 80), "level": level})
    frame.loc[frame.t == 0, "level"] = 100.0
    found = pl.start(frame)
    assert found.format.states["level"].startswith("case when level < ")
    assert found.format.states["level"].count(" then ") == 4
    assert found.format.actions == "'go'"
    assert facts(found, "action") == [
        "no column looks like a decision, so this is a chain with one action, go (or say which: --action)"
    ]
    assert found.model.graph.n_states == 5


def test_a_state_that_is_forgotten_at_once_is_taken_if_nothing_else_is_one():
    """Noise beside it cannot be told from it, and is said to be odd as well; beside a real state it is left out."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"run": np.repeat(np.arange(60), 10), "t": np.tile(np.arange(10), 60)})
    frame["x"], frame["action"] = rng.integers(0, 3, 600), rng.choice(["l", "r"], 600)
    found = pl.start(frame, initial={"x": 0})
    assert found.format.states == {"x": "x"}
    said = "x: what it is now says nothing about what it is next, but nothing else looks like a state"
    assert facts(found, "odd") == [said]
    kept = pl.start(frame.assign(y=np.repeat(rng.integers(0, 2, 120), 5)), initial={"y": 0})
    assert (kept.format.states, facts(kept, "odd")) == ({"y": "y"}, [])


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("done", ["", "wait"])
def test_runs_that_go_on_from_where_the_first_ones_ended_contradict_the_table(closed, done):
    """Else their steps, and what these cost, would be left out as rows without an action, and nothing would say so."""
    rows = []
    for run in range(60):
        closes, reopens = 1 + run % 3, run >= 15 and run % 2
        states = ["open"] * closes + ["closed"] + ["open", "closed"] * reopens
        acts = ["wait" if x == "open" else done for x in states[:-1]] + [""]
        rows += [(run, t, x, act, 10.0 * (x == "open")) for t, (x, act) in enumerate(zip(states, acts, strict=True))]
    found = pl.start(pd.DataFrame(rows, columns=["run", "t", "status", "action", "cost"]), cost="cost")
    assert found.end == 'status="closed"'
    found = replace(found, closed=closed)
    assert found.log.report.contradicting == 23
    result = pl.certify(found.model, found.log, found.objective)
    assert result.status == "model rejected"


def test_where_some_of_the_first_runs_go_on_is_no_end():
    """One run in 40 is opened again: whoever takes "closed" for an end loses what happens after."""
    rows = []
    for run in range(160):
        states = ["open"] * (1 + run % 3) + ["closed"] + ["open", "closed"] * (run % 40 == 5)
        rows += [(run, step, state, "work" if state == "open" else "look") for step, state in enumerate(states)]
    found = pl.start(pd.DataFrame(rows, columns=["case", "day", "state", "action"]))
    assert ("odd", "state = closed looks like an end, but 1 of 41 rows go on from there") in found.facts
    assert "end" not in dict(found.facts)


def test_transitions_need_no_order():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, size=400)
    frame = pd.DataFrame({"x": x, "action": "go", "next_x": np.where(rng.random(400) < 0.5, x + 1, 0)})
    found = pl.start(frame)
    assert (found.first, found.end) == (100, "x=3")
    assert found.log.report.total == 300


def test_a_hopeless_file_is_refused_with_what_it_lacks_and_what_to_do(tmp_path):
    def start(text):
        (tmp_path / "log.csv").write_text(text, encoding="utf-8")
        pl.start(tmp_path / "log.csv")

    refused("logs:hopeless", {"pd": pd}, pl.DataError, start=start)


def test_texts_are_judged_by_some_of_their_values(tmp_path):
    assert decimal_of({"a": ["1.5", "2"]}) == "."
    assert decimal_of({"a": ["1,5", "2"], "b": ["x, y"]}) == ","
    assert date_format_of({"a": ["12/31/2024", "01/02/2024"]}) == ("%m/%d/%Y", "")
    assert date_format_of({"a": ["2024-01-31"]}) == ("", "")
    (tmp_path / "a.csv").write_text("ä;ö", encoding="utf-16")
    (tmp_path / "b.csv").write_text("ä;ö", encoding="utf-8")
    assert [encoding_of([str(tmp_path / name)]) for name in ("a.csv", "b.csv")] == ["utf-16", "utf-8"]


def test_a_value_that_ends_runs_is_persistent_and_noise_is_not():
    assert is_persistent({("new", "open"): 50, ("open", "closed"): 50, ("closed", "the end of the run"): 50})
    assert not is_persistent({("a", "a"): 26, ("a", "b"): 24, ("b", "a"): 25, ("b", "b"): 25})


def test_the_command_writes_options_with_which_the_log_is_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pumps().to_csv("export.csv", sep=";", index=False, encoding="cp1252")
    refused = plumdp("info", "export.csv")
    assert refused.code == 2
    assert "error: export.csv is a log, not a model: plumdp start export.csv looks at its rows" in refused.err
    ended = plumdp("start", "export.csv")
    assert ended.code == 0
    following = ended.out.splitlines()[-1]
    assert following.startswith("  plumdp certify export.csv --cost Kosten -p 'R{\"cost\"}min=? [ C<=29 ]'")
    options = tomllib.loads((tmp_path / "plumdp.toml").read_text(encoding="utf-8"))
    assert options["column"] == ["episode=Equipment", "step=Datum"]
    assert (options["table"][0], options["steps"], options["keep-going"]) == ("first=15", "monthly", True)
    again = plumdp("start", "export.csv")
    assert (again.code, again.err.startswith("error: plumdp.toml already exists")) == (2, True)
    found = pl.start("export.csv")
    info, count = plumdp("info", "export.csv", "--json"), plumdp("count", "export.csv", "--json")
    assert f'"states": {found.model.graph.n_states}' in info.out
    assert f'"steps": {found.log.counts.total}' in count.out
    asked = plumdp("start", "export.csv", "--goal", 'Zustand="schlecht"', "--force", "--confidence", "0.9", "-o", "out")
    said = "Certified: under the recommended policy, the probability that the system ever reaches “goal” is "
    assert said in " ".join(asked.out.split())
    assert (tmp_path / "out" / "report.html").is_file()


def visits(n=200):
    """Return visits of patients who leave, or are cured; every row has an action, the last ones too."""
    rng, rows = random.Random(2), []
    for patient in range(n):
        state, t = "ill", 0
        while state == "ill":
            rows.append((patient, t, state, rng.choice(["drug", "wait"])))
            state, t = rng.choices(["ill", "cured", "left"], [0.4, 0.4, 0.2])[0], t + 1
        rows.append((patient, t, state, "wait"))
    return pd.DataFrame(rows, columns=["patient", "visit", "status", "therapy"])


def test_an_end_that_is_given_says_which_last_rows_are_ends():
    found = pl.start(visits(), end='status="cured"|status="left"')
    assert found.format.censoring is None
    assert facts(found, "end") == ['status="cured"|status="left"']
    assert not [text for text in facts(found, "assumed") if "before the outcome" in text]
    assert (
        pl.start(visits(), end='status="cured"').format.censoring == "unrelated"
    )  # for all that is known, some just stop
    with pytest.raises(pl.ModelError, match=r'status is "curd" in no state \(did you mean cured\?\)'):
        pl.start(visits(), end='status="curd"')
    with pytest.raises(pl.DataError, match="no first run ever reaches such a state"):
        pl.start(visits(), end='status="cured"&status="left"')


def test_where_runs_of_one_length_stop_is_no_end():
    """Each run has three rows with an action, and every third state is first met in the last of them."""
    rows = [(run, t, ["new", "old", "torn"][t] if run % 2 else "new", "use") for run in range(80) for t in range(3)]
    frame = pd.DataFrame(rows, columns=["run", "t", "state", "action"])
    found = pl.start(frame)
    assert (found.end, found.format.censoring) == ("", "unrelated")
    longer = pd.concat([frame, pd.DataFrame([(0, 3, "new", "use")], columns=frame.columns)])
    assert pl.start(longer).end == 'state="torn"'


def test_rows_that_are_all_there_twice_are_read_once():
    found = pl.start(pd.concat([pumps(), pumps()]), first=15)
    assert facts(found, "odd") == ["450 exact duplicates, counted once"]
    assert found.within == pl.start(pumps(), first=15).within


def test_costs_in_several_columns_are_added_and_rewards_are_not_costs():
    rows = [(run, t, "ab"[(run + t) % 2], "go", 2.0 + t % 2, 1.0 + t % 3) for run in range(40) for t in range(6)]
    frame = pd.DataFrame(rows, columns=["run", "t", "state", "action", "labour cost", "parts_cost"])
    begins = {"initial": {"state": "a"}}
    said = facts(pl.start(frame, **begins), "reward")
    both = "'\"labour cost\" + parts_cost'"
    assert said == [f"labour cost and parts_cost may be costs: say --cost {both}"]
    found = pl.start(frame, cost='"labour cost" + parts_cost', **begins)
    assert {*found.format.states} == {"state"}
    assert found.model.rewards["cost"].choice == pytest.approx([4.5, 4.5], abs=0.6)
    with pytest.raises(pl.DataError, match="the log has no such column"):
        pl.start(frame, cost="costs")
    gains = frame.drop(columns="parts_cost").rename(columns={"labour cost": "reward"})
    assert '--reward reward -p \'R{"reward"}=? [ C<=5 ]' in pl.start(gains, **begins).next_command("x.csv")


def test_rows_with_their_next_state_are_not_cut_off():
    rows = [(run, t, (run + t) % 2, "go", (run + t + 1) % 2) for run in range(40) for t in range(6)]
    found = pl.start(pd.DataFrame(rows, columns=["run", "t", "x", "action", "next_x"]), initial={"x": 1})
    assert (found.format.censoring, facts(found, "form")) == (None, ["each row has the next state, in next_x"])


def test_a_comparison_with_an_order_is_written_down_and_reported(tmp_path, monkeypatch):
    """The report learns again what was pre-specified: the policies of both, and bets on their difference."""
    monkeypatch.chdir(tmp_path)
    visits().to_csv("visits.csv", index=False)
    asked = ("--goal", 'status="cured"', "--order", "runs", "--against", "practice", "--confidence", "0.9")
    ended = plumdp("start", "visits.csv", *asked, "-o", "out")
    assert (ended.code in (0, 4), ended.err) == (True, "")
    assert "report: out/report.html" in ended.out
    assert tomllib.loads((tmp_path / "plumdp.toml").read_text(encoding="utf-8"))["order"] == "runs"


def counted(*data):
    return json.loads(plumdp("count", "nights/a.csv", *data, "--json").out)


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Return a folder with a log of 45 pumps, one of the night after, in which they go on, and both as one export."""
    folder = tmp_path_factory.mktemp("nights")
    frame = pumps(45).assign(Kosten=35.0)
    is_last = frame.groupby("Equipment").cumcount() == 29
    (folder / "nights").mkdir()
    for name, rows in (("nights/a", frame[~is_last]), ("nights/b", frame[is_last]), ("grown", frame)):
        rows.to_csv(folder / f"{name}.csv", index=False)
    (folder / "plumdp.toml").write_text('cost = "Kosten"\n', encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert plumdp("start", "nights/a.csv", "--cost", "Kosten", "--force").code == 0
    return folder


def test_runs_that_made_the_table_are_no_evidence_in_any_file(nights, monkeypatch):
    """Twelve of 45 pumps made it; the other 33 have 28 steps in the first file, and one more with the second."""
    monkeypatch.chdir(nights)
    grown, both, alone = counted("grown.csv"), counted("nights/a.csv", "nights/b.csv"), counted("nights/a.csv")
    assert (grown["steps"], both["steps"], alone["steps"]) == (33 * 29, 33 * 29, 33 * 28)
    assert grown["report"]["assuming"] == alone["report"]["assuming"]
    assert counted("nights/b.csv")["steps"] == 0


def test_a_certificate_from_no_data_has_no_bounds(nights, monkeypatch):
    monkeypatch.chdir(nights)
    ended = plumdp("certify", "nights/a.csv", "nights/b.csv", "--policy", "practice")
    headline, _, rest = ended.out.partition("\nquery ")
    assert (ended.code, headline) == (4, "Inconclusive: nothing is claimed.")
    said = "there are no data (each run has one row, and a step ends in the next row: give all files of these runs to"
    assert f"because {said} one count)" in " ".join(rest.split())
    assert re.findall(r"^(whole runs|the model) +nothing: ", rest, re.M) == ["whole runs", "the model"]
    assert "between" not in rest


@pytest.mark.parametrize("log", ["nights", "nights/*.csv"])
def test_a_folder_or_pattern_is_one_log(nights, monkeypatch, tmp_path, log):
    monkeypatch.chdir(nights)
    shutil.copytree("nights", tmp_path / "nights")
    monkeypatch.chdir(tmp_path)
    first = plumdp("start", log, "--goal", 'Zustand="schlecht"')
    assert (first.code, first.err) == (0, "")
    again = plumdp("certify", log, "-p", 'Pmax=? [ F "goal" ]')
    assert again.out.splitlines()[0] in first.out


def test_rows_without_runs_cannot_be_told_from_those_that_made_the_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        rows = [(i % 2, "go", (i // 2) % 2, name) for i in range(60)]
        pd.DataFrame(rows, columns=["x", "action", "next_x", "file"]).to_csv(name, index=False)
    assert plumdp("start", "a.csv", "--state", "x").code == 0
    both = plumdp("count", "a.csv", "a.csv", "b.csv")
    assert (both.code, "a.csv made the table, and its rows name no runs: count it alone" in both.err) == (2, True)
    assert plumdp("count", "a.csv", "b.csv").code == 0


def test_few_states_that_are_all_seen_in_several_runs_are_taken_for_all_and_that_is_said():
    rows = [(run, t, "ab"[(run + t) % 2], "go") for run in range(40) for t in range(6)]
    begins = {"initial": {"state": "b"}}
    found = pl.start(pd.DataFrame(rows, columns=["run", "t", "state", "action"]), **begins)
    assert found.closed
    assert "closed=true" in found.to_toml("")
    words = "there are no other states than these 2; a log that shows one rejects the table (if so: remove closed=true)"
    assert facts(found, "assumed")[-1] == words
    rare = [(0, 6, "c", "go"), (0, 7, "a", "go"), *rows]
    assert not pl.start(pd.DataFrame(rare, columns=["run", "t", "state", "action"]), **begins).closed


def test_results_say_that_costs_are_those_of_the_first_runs():
    rows = [(run, t, "ab"[t % 2], "go", 3.5) for run in range(40) for t in range(6)]
    found = pl.start(pd.DataFrame(rows, columns=["run", "t", "state", "action", "cost"]), cost="cost")
    certificate = pl.certify(found.model, found.log, found.objective)
    said = "the cost of a step depends on state and action alone, and is on average what it was in the first 10 runs"
    assert any(text.startswith(said) for text in certificate.rests_on.assumptions)


def test_results_say_that_costs_of_rows_without_an_action_are_left_out():
    """What a failure costs, in the last row of a run, is no cost of a step."""
    rows = []
    for run in range(60):
        rows += [(run, t, "good", "go", 1.0) for t in range(1 + run % 3)]
        rows.append((run, 1 + run % 3, "failed", "", 900.0))
    found = pl.start(pd.DataFrame(rows, columns=["run", "t", "state", "action", "cost"]), cost="cost")
    said = "15 rows of the first runs without an action have a cost, too, 13,500 in all, that is in no result"
    assert facts(found, "odd") == [said]
    certificate = pl.certify(found.model, found.log, found.objective)
    assert certificate.upper < 10
    said = "the cost (without that of rows without an action) of a step depends on state and action alone"
    assert any(text.startswith(said) for text in certificate.rests_on.assumptions)


def test_an_example_by_name_is_the_table_of_its_first_runs_and_the_others_are_evidence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path(pl.__file__).parent / "data" / "tables" / "trial.parquet"
    rows = pd.read_parquet(file)
    steps = rows[rows.patient > 535].treatment.notna().sum()
    assert plumdp("start", "example:trial").code == 0
    for data in ([], ["example:trial"], [str(file)]):
        counted = plumdp("count", "example:trial", *data, "--json").out
        assert (f'"steps": {steps}' in counted, '"name": "example:trial"' in counted) == (True, True)
    wrong = plumdp("start", "example:trail", "--force")
    assert "example:trail: there is no such example; there are example:flights and example:trial" in wrong.err


@pytest.mark.night
@pytest.mark.parametrize(
    "policies",
    [
        "--policy zidovudine+didanosine --against zidovudine --prespecified",
        "--policy zidovudine+didanosine --against practice",
        "--against practice",
    ],
)
def test_a_comparison_on_which_bets_were_placed_has_a_report(tmp_path, monkeypatch, policies):
    """Its report is made from the folder, which does not say which of both policies was pre-specified."""
    monkeypatch.chdir(tmp_path)
    assert plumdp("start", "example:trial").code == 0
    asked = ["-p", 'Pmin=? [ F<=12 status="ill" ]', "--sampling", "trajectories", "--confidence", "0.95", "-o", "out"]
    assert plumdp("certify", "example:trial", *asked, *policies.split()).code in (0, 4)
    assert plumdp("report", "out").code == 0


def test_rewards_that_are_never_above_0_are_costs_in_the_next_command():
    rows = [(run, t, "ab"[t % 2], "go", -1.0 - t % 2) for run in range(40) for t in range(6)]
    frame = pd.DataFrame(rows, columns=["run", "t", "state", "action", "reward"])
    found = pl.start(frame)
    assert facts(found, "reward") == ["reward may be a reward, though never above 0: say --cost '0 - reward'"]
    assert "--cost '0 - reward' -p 'R{\"cost\"}=? [ C<=5 ]" in found.next_command("x.csv")
    given = pl.start(frame, reward="reward")
    assert given.objective.startswith('R{"cost"}=?')
    assert given.model.rewards["cost"].choice.min() >= 1


def test_harm_is_made_rare_and_what_ends_all_runs_is_asked_within_as_many_steps_as_they_have():
    assert pl.start(patients("ill")).next_command("x.csv") == "plumdp certify x.csv -p 'Pmin=? [ F<=2 state=\"ill\" ]'"
    assert "'Pmax=? [ F<=2 state=\"home\" ]'" in pl.start(patients("home")).next_command("x.csv")
    asked = pl.start(patients("ill", "home"), end='state="ill" | state="home"').next_command("x.csv")
    assert "'Pmax=? [ F<=2 state=\"home\" ]'" in asked  # to end at all is neither good nor bad


def test_of_a_chain_a_value_is_asked_in_which_there_is_no_policy():
    chain = patients("ill", actions=["drug"])
    assert pl.start(chain).next_command("x.csv").endswith("-p 'P=? [ F<=2 state=\"ill\" ]'")
    assert pl.start(chain, goal='state="ill"').objective == 'P=? [ F<=2 "goal" ]'
    assert pl.start(patients("ill"), goal='state="ill"').objective == 'Pmax=? [ F "goal" ]'


def patients(*ends, actions=("drug", "wait")):
    rows = []
    for run in range(40):
        action, end = actions[run // 2 % len(actions)], ends[min(run % 4, len(ends) - 1)]
        rows += [(run, 0, "well", action), (run, 1, "well", action), (run, 2, end, None)]
    return pd.DataFrame(rows, columns=["patient", "t", "state", "action"])


def test_files_as_people_have_them_are_read(tmp_path):
    """Names of columns between rows, an index without a name, texts for missing values and for truth."""
    frame = patients("home").assign(state=lambda rows: rows.state.where(rows.patient % 7 > 0, "NA"))
    frame["late"] = (frame.patient % 2 == 0) ^ (frame.t > 1)
    plain = frame.to_csv()
    (tmp_path / "twice.csv").write_text(plain + plain.replace("\n", "\n9").replace("\n9", "\n"), encoding="utf-8")
    found = pl.start(tmp_path / "twice.csv")
    assert found.format.columns == {"episode": "patient", "step": "t"}
    odd = facts(found, "odd")
    assert "1 line repeats the names of the columns, left out" in odd
    assert "state: NA (6) taken as missing" in odd
    assert found.initial["state"] == "well"
    assert "NA" not in {*found.model.graph.states["state"].tolist()}
    assert found.initial.get("late", 0) in (0, 1)
    assert found.log.counts.total > 0


def test_an_action_that_nobody_ever_took_is_refused_from_a_function_too(tmp_path, monkeypatch):
    """Where the function fails, or outside of the table, its only action is taken; the same policy is not better."""
    monkeypatch.chdir(tmp_path)
    ends = [int(end) for end in np.random.default_rng(1).geometric(0.3, 80)]  # alike whatever came before
    rows = [(unit, t, "ok" if t < end else "failed") for unit, end in enumerate(ends) for t in range(end + 1)]
    pd.DataFrame(rows, columns=["unit", "month", "status"]).to_csv("units.csv", index=False)
    assert plumdp("start", "units.csv", "--state", "status").code == 0
    asked = ["certify", "units.csv", "-p", 'P=? [ F<=3 status="failed" ]', "--against", "practice", "--policy"]
    Path("absent.py").write_text("def policy(status):\n    return 'replace' if status == 'ok' else 'go'\n")
    ended = plumdp(*asked, "absent.py")
    assert (ended.code, "state (status=ok): 'replace' is not its only action, 'go'" in ended.err) == (2, True)
    Path("same.py").write_text("def policy(status):\n    return {'ok': 'go'}[status]\n")
    ended = plumdp(*asked, "same.py")
    assert (ended.code, ended.out.partition(" do ")[0]) == (1, "Certified: same and practice")


def test_ends_are_those_of_a_flag_and_the_last_reward_counts():
    """A walk of five places; at the last, half of the runs earn 1. The hole at 7 is reached once, and is an end."""
    rng = np.random.default_rng(1)
    rows = [(run, t, t, "go", float(t == 4 and rng.random() < 0.5), t + 1) for run in range(400) for t in range(5)]
    rows[2] = (0, 2, 2, "go", 0.0, 7)
    log = pd.DataFrame(rows, columns=["episode", "t", "obs", "action", "reward", "next_obs"])
    log = log[(log.episode > 0) | (log.t < 3)].assign(prob=0.5, truncated=False)
    found = pl.start(log.assign(terminated=log.next_obs.isin([5, 7])), reward="reward")
    assert (found.format.states, found.end) == ({"obs": "obs"}, "obs=5 | obs=7")
    assert found.model.rewards["reward"].choice.max() == pytest.approx(log[log.episode < 100].reward.sum() / 99)
    cut = log.assign(terminated=log.next_obs == 7, truncated=log.next_obs == 5)
    assert pl.start(cut, reward="reward").end == "obs=7"
    assert pl.start(cut, end="obs=5").end == "obs=5"
    limited = log.assign(done=log.next_obs.isin([5, 7]), next_obs=log.next_obs.replace(5, 0))
    assert pl.start(limited.drop(columns="truncated")).end == "obs=7"  # the longest runs end at a limit
    with pytest.raises(pl.DataError, match=r"terminated says that runs are over in \(obs=0\), but 100 rows"):
        pl.start(limited.rename(columns={"done": "terminated"}))


@pytest.mark.parametrize("name", ["level", "order", "range", "all", "values", "row", "if", "true", "wind speed", 'a"b'])
def test_a_column_is_quoted_where_sql_would_read_its_name_otherwise(name):
    term = column_term(name)
    for text in ("lower({})", "case when {} < 3 then 1 else 0 end", "({}) = 3 and ({}) = 4", "if({}, 1, 0)"):
        assert parse_mapping(text.replace("{}", term)).columns() == [name]
    assert (term == name) == (name in ("level", "order"))


def test_the_step_of_a_row_may_be_part_of_the_state():
    rows = [(unit, month, "ok" if month < 2 or unit % 3 else "bad") for unit in range(60) for month in range(3)]
    found = pl.start(pd.DataFrame(rows, columns=["unit", "month", "status"]), pl.LogFormat(states=["status", "month"]))
    assert (dict(found.format.states), found.format.columns["step"]) == (
        {"status": "status", "month": "month"},
        "month",
    )


def test_names_of_ends_may_have_apostrophes_and_other_marks_are_refused():
    rows = [(run, t, "open" if t < 2 else "won't fix" if run % 3 else "lost") for run in range(80) for t in range(3)]
    frame = pd.DataFrame(rows, columns=["case", "t", "status"]).assign(action="go")
    frame["done"], frame.loc[frame.t == 2, "action"] = frame.t == 2, ""
    found = pl.start(frame)
    assert (found.end, found.log.report.rows["matched"]) == ('status="lost" | status="won\'t fix"', 120)
    marked = frame.assign(status=frame.status.str.replace("'", '"'))
    with pytest.raises(pl.DataError, match="says that runs are over in 'won\"t fix'; write this name without '\"'"):
        pl.start(marked)


def test_the_line_of_pandas_in_a_refusal_mends_the_log(tmp_path):
    """Runs go up or down between 1 and 3 until they are over, which no row shows; the names have spaces."""
    rng, rows = random.Random(1), []
    for run in range(80):
        place, t = 2, 0
        while 0 < place < 4:
            rows.append((run, t, place, "go", (after := place + rng.choice((-1, 1))) in (0, 4)))
            place, t = after, t + 1
    log = pd.DataFrame(rows, columns=["run no", "t", "my place", "action", "done"])
    with pytest.raises(pl.DataError) as caught:
        pl.start(log)
    exec(str(caught.value).partition("in pandas ")[2].partition("; or say")[0], {"log": log})
    log.to_csv(tmp_path / "log.csv", index=False)
    found = pl.start(tmp_path / "log.csv")
    assert (found.model.graph.n_states, found.end) == (4, 'my_place="over"')
