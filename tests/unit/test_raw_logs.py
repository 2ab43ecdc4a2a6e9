"""Files as they are: encodings, decimal commas, dates, broken lines, XES, and runs that come first."""

import gzip

import pandas as pd
import pytest
from in_format import in_format

import plumdp as pl
from plumdp.data import model_from_log, raw_log

GERMAN = """Gerät;Datum;Zustand;Maßnahme;Kosten
P1;30.09.2024;gut;keine;35,00
P1;01.10.2024;Lager laut;Tausch;4.180,50
P1;02.11.2024;gut;;0
P2;05.09.2024;gut;keine;35
P2;06.10.2024;gut;;1.000
"""
COLUMNS = {"episode": "Gerät", "step": "Datum"}


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def table(log, **more):
    return model_from_log(
        log, initial="gut", **in_format(states={"z": "lower(Zustand)"}, actions="Maßnahme", columns=COLUMNS, **more)
    )


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_a_german_export_is_read_as_it_is(encoding, tmp_path):
    """By hand: gut –keine→ laut –Tausch→ gut, and gut –keine→ gut; dates as texts would put 01.10. before 30.09."""
    file = written(tmp_path / "export.csv", GERMAN.replace("laut", "laut €"), encoding)
    log = raw_log(file, encoding=encoding, decimal=",", date_format="%d.%m.%Y")
    model = table(log)
    assert model.graph.states["z"][:2].tolist() == ["gut", "lager laut €"]
    counted = pl.read_log(model, log, pl.LogFormat(columns=COLUMNS, states={"z": "lower(Zustand)"}, actions="Maßnahme"))
    assert counted.report.matched == 3
    assert counted.report.rejected == 0


def test_a_decimal_comma_is_read_in_files_and_in_frames(tmp_path):
    """4.180,50 is 4180.5 and 1.000 is a thousand; 17.05.2021 and P-1 are not numbers."""
    text = "x;action;next_x\n4.180,00;go;1.000\n1 000;go;-2,0\n17.05.2021;go;P-1\n"
    file = written(tmp_path / "log.csv", text)
    frame = pd.read_csv(file, sep=";", dtype=str)
    for source in (file, frame):
        numbers = model_from_log(raw_log(source, decimal=",").first(2, run=""), pl.LogFormat(states="x"), initial=1000)
        assert numbers.graph.states["x"][:3].tolist() == [-2, 1000, 4180]
        texts = model_from_log(raw_log(source, decimal=","), pl.LogFormat(states="x"), initial="1000")
        assert {"17.05.2021", "P-1"} <= {*texts.graph.states["x"]}


def test_first_and_other_runs_are_all_runs_once(tmp_path):
    """P2 began first, though P1 comes first in the file; without dates it is the other way round."""
    log = raw_log(written(tmp_path / "export.csv", GERMAN), decimal=",", date_format="%d.%m.%Y")
    by_date, by_place = {"run": "Gerät", "step": "Datum"}, {"run": "Gerät"}
    assert [*table(log.first(1, **by_date)).graph.states["z"][:1]] == ["gut"]
    assert len(table(log.first(1, **by_date)).graph.states["z"]) == 1 + 3
    assert len(table(log.others(1, **by_date)).graph.states["z"]) == 2 + 3
    assert len(table(log.first(1, **by_place)).graph.states["z"]) == 2 + 3


def test_runs_with_numbers_come_in_their_order():
    frame = pd.DataFrame({"episode": ["10", "9", "2"], "x": [1, 2, 3], "action": "go", "next_x": [1, 2, 3]})
    for n, states in ((1, [3]), (2, [2, 3]), (3, [1, 2, 3])):
        model = model_from_log(raw_log(frame).first(n, run="episode"), pl.LogFormat(states="x"), initial=3)
        assert model.graph.states["x"][:-3].tolist() == states
    with pytest.raises(pl.DataError, match=r"^first=0: give a number of runs, at least 1$"):
        raw_log(frame).first(0, run="episode")


def test_a_broken_line_is_named_and_left_out_on_request(tmp_path):
    lines = GERMAN.splitlines()
    file = written(tmp_path / "export.csv", "\n".join([*lines[:3], "P1;kaputt", *lines[3:]]))
    log = raw_log(file, date_format="%d.%m.%Y")
    words = "export.csv, line 4: this line has 2 values, but the first line names 5 columns; correct the line"
    options = {"states": {"z": "lower(Zustand)"}, "actions": "Maßnahme", "columns": COLUMNS}
    model = table(raw_log(written(tmp_path / "whole.csv", GERMAN), date_format="%d.%m.%Y"))
    with pytest.raises(pl.DataError, match=words):
        pl.read_log(model, log, **in_format(**options))
    report = pl.read_log(model, log, on_unmatched="report", **in_format(**options)).report
    assert (report.matched, report.rejected, report.rows["broken line"]) == (3, 1, 1)
    assert report.worst["broken line"][0].endswith(words)
    assert "none in between is missing, although 1 line could not be read" in report.assuming[0]


def test_an_open_quotation_mark_may_hide_rows_and_is_refused_even_then(tmp_path):
    file = written(tmp_path / "export.csv", GERMAN.replace("P1;01", '"P1;01'))
    with pytest.raises(pl.DataError, match="line 3: a quotation mark is opened that is not closed"):
        pl.read_log(
            table(raw_log(written(tmp_path / "whole.csv", GERMAN), date_format="%d.%m.%Y")),
            raw_log(file, date_format="%d.%m.%Y"),
            pl.LogFormat(columns=COLUMNS, states={"z": "lower(Zustand)"}, actions="Maßnahme"),
            on_unmatched="report",
        )


def test_lines_that_end_in_two_ways_are_named(tmp_path):
    file = tmp_path / "export.csv"
    file.write_bytes(b"x,action,next_x\n0,go,1\r\n1,go,0\r\n")
    with pytest.raises(pl.DataError, match=r"export.csv: some lines end with a carriage return and some do not"):
        model_from_log(file, pl.LogFormat(states=["x"]), initial={"x": 0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "cp12"}, "encoding='cp12': Python knows no encoding of this name; take for example 'cp1252' or "),
        ({"decimal": "'"}, "decimal=\"'\": choose '.' or ','"),
        ({"date_format": "dd.mm.yyyy"}, "date_format='dd.mm.yyyy': write it as in '%d.%m.%Y', which reads 17.05.2021"),
    ],
)
def test_words_that_say_nothing_are_refused(options, message):
    with pytest.raises(pl.DataError) as caught:
        raw_log("export.csv", **options)
    assert str(caught.value).startswith(message)


def test_a_file_in_another_encoding_says_so(tmp_path):
    file = written(tmp_path / "export.csv", GERMAN, "cp1252")
    with pytest.raises(pl.DataError, match=r"line 1: this is not text in UTF-8; .* with encoding='cp1252'"):
        table(file)
    with pytest.raises(pl.DataError, match=r"export.csv: this is not text in utf-16 .*; name another with encoding=…"):
        table(raw_log(file, encoding="utf-16"))


XES = """<?xml version="1.0" encoding="UTF-8"?>
<log xmlns="http://www.xes-standard.org/">
<global scope="event"><string key="concept:name" value="none"/></global>
<trace><string key="concept:name" value="c1"/>
 <event><string key="concept:name" value="register"/>
  <date key="time:timestamp" value="2025-01-04T07:24:00+00:00"/></event>
 <event><string key="concept:name" value="close"/><string key="org:role" value="junior"/>
  <date key="time:timestamp" value="2025-01-05T07:24:00+01:00"/></event></trace>
</log>"""


@pytest.mark.parametrize("name", ["log.xes", "log.xes.gz"])
def test_events_of_xes_are_rows(name, tmp_path):
    packed = gzip.compress(XES.encode()) if name.endswith("gz") else XES.encode()
    (tmp_path / name).write_bytes(packed)
    columns = {"episode": "case:concept:name", "step": "time:timestamp"}
    states = {"at": '"concept:name"'}
    model = model_from_log(
        tmp_path / name, pl.LogFormat(columns=columns, states=states, actions="'go'"), initial="register"
    )
    assert model.graph.states["at"][:2].tolist() == ["close", "register"]


@pytest.mark.parametrize(
    ("text", "message"),
    [(XES[:300], "this is not XES, or was not written to its end"), ("<log/>", "there is no event in a trace")],
)
def test_a_file_that_is_no_event_log_is_refused(text, message, tmp_path):
    (tmp_path / "log.xes").write_text(text)
    with pytest.raises(pl.DataError, match=message):
        model_from_log(tmp_path / "log.xes", pl.LogFormat(states="x"), initial=0)


def test_contains_finds_a_part_of_a_text():
    frame = pd.DataFrame({"a": ["Schlecht, Lager laut", "gut", None], "action": "go", "next_a": ["gut"] * 3})
    model = model_from_log(frame, pl.LogFormat(states={"loud": "contains(lower(a), 'laut')"}), initial=1)
    assert model.graph.states["loud"][:2].tolist() == [0, 1]
    with pytest.raises(pl.DataError, match="found a number where a text is expected"):
        model_from_log(frame, pl.LogFormat(states={"loud": "contains(a, 3)"}), initial=1)


def test_states_that_no_run_reaches_are_given_in_also():
    def step(state):
        return {"age": [(1, state._replace(age=min(state.age + 1, 9)))]}

    model = pl.explore(step, {"age": 5}, also=[{"age": 2}, {"age": 8}])
    assert sorted(model.graph.states["age"].tolist()) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert model.graph.states["age"][model.graph.initial_state] == 5
    with pytest.raises(pl.ModelError, match=r"^also: \{'years': 2\} has not the variables age, in this order$"):
        pl.explore(step, {"age": 5}, also=[{"years": 2}])


def test_first_runs_of_a_log_without_their_column_are_refused(tmp_path):
    (tmp_path / "log.csv").write_text("case,t,x\n1,1,0\n2,1,0\n")
    other = raw_log(tmp_path / "log.csv").first(1, run="trace", step="t")
    with pytest.raises(
        pl.DataError, match=r"^the log has no column trace, which says what its first runs are; it has case, t, x$"
    ):
        model_from_log(other, pl.LogFormat(states="x"), initial=0)
