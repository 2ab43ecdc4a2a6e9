"""Text of files is text, files are replaced as a whole, and what others wrote has limits."""

import gzip
import io
import json
import os
import random
import re
import signal
import tarfile
import time
import tomllib
import zipfile
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.command_line import plumdp
from tiers import examples, size

import plumdp as pl
from plumdp.base.edge import inert, is_left, meant, read_steadily, replacing, write_whole
from plumdp.base.errors import visible
from plumdp.base.json_values import parsed
from plumdp.data import raw_log
from plumdp.data.duckdb_engine import connect
from plumdp.data.duckdb_tables import scan
from plumdp.data.text_formats import write_events, write_utf_8
from plumdp.model.readers.umb import read_umb
from plumdp.result.data_file import read_data, write_data
from plumdp.starting.proposal import Start

CONTROL = [chr(n) for n in (*range(32), *range(127, 160), 0xAD, 0x61C, 0x200B, 0x200E, 0x2028, 0x2029, 0x202E, 0xFEFF)]
ESC = "\x1b]0;owned\x07\x1b[2J\x1b[32mverified\x9b\u202e"


# text of files is text


def test_control_characters_are_seen_and_line_breaks_stay():
    assert visible("a\n\tb é 中 €") == "a\n\tb é 中 €"
    assert visible("\x1b[2J\r\x7f\x85\u2028\u202e\U000e0001\udc80") == (
        r"\x1b[2J\x0d\u007f\u0085\u2028\u202e\udb40\udc01\udc80"
    )
    text = json.dumps("".join(CONTROL) + "\U000e0001", ensure_ascii=False)
    assert json.loads(visible(text)) == json.loads(text)  # JSON that is printed says the same


@pytest.mark.slow
def test_nothing_that_is_printed_on_a_terminal_has_a_control_character_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"case": i, "t": t, "s": f"{'open' if t == 0 else 'won'}{ESC}\nok", "a": "" if t else f"go{ESC}\nok"}
            for i in range(40) for t in (0, 1)]  # fmt: skip
    Path("log.jsonl").write_text("\n".join(json.dumps({**row, f"no{ESC}": None}) for row in rows))
    Path("bad.csv").write_text(f'x,action,next_x\na,"go{ESC}\nok",a\n"a{ESC}\nok",go,a\n')
    Path("model.py").write_text(
        "import plumdp\n(p,) = plumdp.parameters('p')\n"
        "def step(s):\n    return {'go': [(p, s._replace(x='b')), (1 - p, s)]} if s.x == 'a' else {'stay': [(1, s)]}\n"
        "model = plumdp.explore(step, {'x': 'a'}, space=plumdp.ParameterSpace.unit('p'))\n"
    )
    for words in (["count", "model.py", "bad.csv"], ["verify", f"no{ESC}"], ["info", ESC], ["start", "log.jsonl"]):
        ended = plumdp(*words)
        printed = ended.out + ended.err
        assert "\\x1b[2J" in printed, words
        assert not [each for each in printed if each in CONTROL and each not in "\n\t"], words
        assert not [line for line in printed.splitlines() if line.lstrip().startswith("ok")], words  # of a name


class Proposed(Start):
    """A proposal for a log that nobody reads."""

    _has_choice = True


def proposal(name):
    facts = [("not used", name), (name, "missing")]
    raw = raw_log("log.csv", date_format=f"%d{name}")
    format = pl.LogFormat(columns={"episode": name, "step": "t"}, states={"x": name}, actions=name)
    return Proposed(raw, format, 10, {"x": name}, goal=name, facts=facts)


@pytest.mark.parametrize("spoiled", [*CONTROL, '"', "\\", '"""', "'''", "\r\n", "\U000e0001", "#", "[certify]"])
def test_no_name_in_a_log_becomes_an_option(spoiled):
    name = f'note{spoiled}\n[certify]\noutput = "thesis.csv"\nforce = true\n#'
    options = tomllib.loads(proposal(name).to_toml(f"plumdp start {name}"))
    assert options["column"] == [f"episode={name}", "step=t"]
    assert options["table"] == ["first=10", f"initial.x={name}"]
    assert options["text"] == [f"date_format=%d{name}"]
    assert (options["goal"], options["action"], options["state"]) == (name, name, [f"x={name}"])
    assert set(options) == {"column", "table", "text", "goal", "action", "state", "keep-going", "certify"}
    assert options["certify"] == {"property": ['Pmax=? [ F "goal" ]']}


def test_names_that_toml_cannot_hold_are_refused():
    with pytest.raises(pl.DataError, match=r"cannot be written to plumdp\.toml"):
        proposal("\udc80").to_toml("plumdp start log.csv")


# no cell of a file for spreadsheets runs


@given(st.text("=+-@'a1,.;\t\r\n| ＝", max_size=12))
@example("-1+cmd|' /C calc'!A0")
@settings(max_examples=examples(5000), deadline=None)
def test_no_cell_for_spreadsheets_runs_and_each_can_be_read_again(cell):
    written = inert(cell)
    assert meant(written) == cell
    for begins in re.split(r"[,;\t|\r\n]", written):  # whatever separates cells
        assert not begins.lstrip(" ").startswith(("=", "+", "-", "@", "＝")) or re.fullmatch(r"[-+]?[\d.,]*1", written)


def test_a_policy_for_spreadsheets_is_the_same_policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["=1+1", "'=1+1", "@x", "-2+3", "\tgo"]
    (p,) = pl.parameters("p")
    model = pl.explore(
        lambda s: {name: [(p, s), (1 - p, s._replace(x="=b"))] for name in names[: 1 if s.x == "=b" else None]},
        {"x": "-a"}, space=pl.ParameterSpace.unit("p"),
    )  # fmt: skip
    for drawn in (False, True):
        shares = np.where(np.arange(6) < 5, 0.2, 1.0)
        policy = pl.PolicyTable(model.graph, shares if drawn else [1, 5])
        policy.to_csv("policy.sheet.csv")
        cells = Path("policy.sheet.csv").read_text().replace('"', "").split("\n")
        assert not [cell for line in cells for cell in line.split(",") if cell.startswith(("=", "@", "-", "\t"))]
        assert np.array_equal(pl.read_policy(model, "policy.sheet.csv"), policy)


def test_rejected_rows_for_spreadsheets_run_no_cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text('x,action,next_x,=n\n0,=1+1,0,-5\n0,"@go",1,\n')
    Path("model.py").write_text(
        "import plumdp\n(p,) = plumdp.parameters('p')\n"
        "def step(s):\n    return {'go': [(p, s._replace(x=1)), (1 - p, s)]} if s.x == 0 else {'stay': [(1, s)]}\n"
        "model = plumdp.explore(step, {'x': 0}, space=plumdp.ParameterSpace.unit('p'))\n"
    )
    for name in ("rejected.csv", "rejected.sheet.csv"):
        assert plumdp("count", "model.py", "log.csv", "--rejected", name).code == 2
    as_it_is, inert_cells = (Path(name).read_text().splitlines() for name in ("rejected.csv", "rejected.sheet.csv"))
    assert as_it_is[1:] == ["unknown action,log.csv,1,0,=1+1,0,-5", "unknown action,log.csv,2,0,@go,1,"]
    assert inert_cells[0] == "reason,file,row,x,action,next_x,'=n"
    assert inert_cells[1:] == ["unknown action,log.csv,1,0,'=1+1,0,-5", "unknown action,log.csv,2,0,'@go,1,"]
    with pytest.raises(pl.DataError, match="write a file without"):
        pl.data.write_runs(pl.case_study("betting:2").model, {}, 1, "runs.sheet.csv", rng=1, max_steps=2)


@pytest.mark.slow
def test_a_policy_that_a_file_of_defaults_names_is_said_to_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rules.py").write_text("def policy(state):\n    return 'bet1'\n")
    Path("plumdp.toml").write_text('[simulate]\npolicy = "rules.py"\n')
    assert plumdp("simulate", "betting:5", "-n", "2", "-o", "a.csv").err == (
        "plumdp.toml, [simulate] policy: running rules.py\n"
    )
    assert plumdp("simulate", "betting:5", "-n", "2", "-o", "b.csv", "--policy", "rules.py").err == ""


# one way to replace a file


def test_a_link_beside_a_file_is_not_followed(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for name in ("report.html", ".report.html.new", ".plumdp-", "tmp_report.html"):
        (tmp_path / name).symlink_to(mine)
    write_whole(tmp_path / "report.html", "new")
    assert (mine.read_text(), (tmp_path / "report.html").read_text()) == ("mine", "new")
    assert not (tmp_path / "report.html").is_symlink()


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "policy.csv"
    target.write_text("old")

    def write():
        with replacing(target) as fresh:
            fresh.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    with pytest.raises(pl.DataError, match=r"policy\.csv cannot be written: No such file"), replacing(target):
        pass  # nothing was written
    assert [each.name for each in tmp_path.iterdir()] == ["policy.csv"]
    assert target.read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="permissions are others")
def test_files_and_folders_have_the_usual_permissions(tmp_path):
    write_whole(tmp_path / "a", "x")
    with replacing(tmp_path / "b") as fresh:
        fresh.mkdir()
    mask = os.umask(0)
    os.umask(mask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "ab"] == [0o666 & ~mask, 0o777 & ~mask]


def write_forever(folder, writer):
    """Write a folder with two files, and a file, which say the same, again and again."""
    number = 0
    while True:
        number += 1
        content = f"{writer} {number} ".encode() * 2000
        with suppress(pl.DataError):  # if the other one was there first
            with replacing(folder / "result") as fresh:
                fresh.mkdir()
                (fresh / "one").write_bytes(content)
                (fresh / "two").write_bytes(content)
            write_whole(folder / "state", content)


def forked(run):
    """Return the number of a new process that runs a function without an end."""
    child = os.fork()
    if child:
        return child
    try:
        run()
    finally:
        os._exit(1)


def read_both(folder):
    try:
        one, two = ((folder / name).read_bytes() for name in ("one", "two"))
    except OSError as error:
        raise pl.DataError(str(error)) from None
    if one != two:
        raise pl.DataError("the files are of two writers")
    return one


def is_whole(content):
    return content == b" ".join([*content.split()[:2], b""]) * 2000


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_two_writers_that_are_killed_at_any_time_leave_no_half_state(tmp_path):
    rng = random.Random(1)
    write_whole(tmp_path / "state", b"0 0 " * 2000)
    (tmp_path / "result").mkdir()
    for name in ("one", "two"):
        (tmp_path / "result" / name).write_bytes(b"0 0 " * 2000)
    seen = set()
    for kill in range(size(10, 100)):
        writers = [forked(lambda name=2 * kill + i: write_forever(tmp_path, name)) for i in (0, 1)]
        end = time.monotonic() + rng.uniform(0.01, 0.1)
        while time.monotonic() < end:
            assert is_whole((tmp_path / "state").read_bytes())
            seen.add(read_steadily(tmp_path / "result", lambda: read_both(tmp_path / "result")))
        for writer in writers:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
        assert is_whole((tmp_path / "state").read_bytes())
        assert is_whole(read_both(tmp_path / "result"))
    assert len(seen) > 1
    others = {each.name for each in tmp_path.iterdir()} - {"state", "result"}
    assert all(map(is_left, others))


# limits


def umb(file, members):
    with tarfile.open(file, "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file


SYSTEM = {"#states": 1, "#choices": 1, "branch-probability-type": {"type": "double"}}
SMALL = {
    "index.json": json.dumps({"transition-system": SYSTEM}).encode(),
    "branch-to-target.bin": bytes(8),
    "branch-to-probability.bin": np.ones(1).tobytes(),
    "state-is-initial.bin": b"\1",
}


def told(**changes):
    return {"index.json": json.dumps({"transition-system": SYSTEM | changes.pop("system", {}), **changes}).encode()}


def named(name, size=8):
    variables = [{"name": name, "type": {"type": "uint", "size": size}}]
    return told(valuations={"states": {"classes": [{"variables": variables}]}}) | {
        "valuations/states/valuations.bin": bytes(8)
    }


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        (told(annotations=[]), "damaged: a part of it is missing, or is not what it should be"),
        ({"index.json": b"[" * 100_000}, "nested too deeply"),
        ({"index.json": b"[]"}, "damaged: a part of it is missing, or"),
        ({"branch-to-target.bin": (1 << 32).to_bytes(8, "little")}, "index 4,294,967,296 is beyond 2,147,483,647"),
        ({"actions/choices/values.bin": b"\xff" * 4}, "index 4,294,967,295 is beyond"),
        (told(system={"#states": 10**12}), "1,000,000,000,000 states and 1 choices are more than its files have"),
        (told(system={"#choices": 1.5}), "#choices is 1.5, not a whole number"),
        (named(5), "the name of a state variable is 5, not a text"),
        (named("x", 10**9), "state variable x has 1000000000 bits"),
        ({"big.bin": bytes(2**24)}, "it unpacks to more than 16,000,000 bytes"),
    ],
)
def test_archives_that_are_damaged_or_too_large_are_refused(members, problem, tmp_path, monkeypatch):
    monkeypatch.setattr("plumdp.base.edge.MOST_BYTES", 16_000_000)
    assert len(read_umb(umb(tmp_path / "small.umb", SMALL)).successor) == 1
    with pytest.raises(pl.ModelError, match=problem):
        read_umb(umb(tmp_path / "model.umb", SMALL | members))


def test_an_archive_with_two_members_of_one_name_is_refused(tmp_path):
    file = umb(tmp_path / "model.umb", SMALL)
    with tarfile.open(file) as archive:
        members = [(each, archive.extractfile(each).read()) for each in archive]
    with tarfile.open(file, "w") as archive:
        for entry, content in (*members, members[0]):
            archive.addfile(entry, io.BytesIO(content))
    with pytest.raises(pl.ModelError, match=r"index\.json is in it twice"):
        read_umb(file)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the files would take place on disk")
def test_a_file_of_a_result_that_is_larger_than_what_is_read_is_refused(tmp_path):
    study = pl.case_study("betting:2")
    counts = pl.simulate(study.model, study.true_point, 20, rng=1, max_steps=3)
    certificate = pl.certify(study.model, counts, study.objective)
    pl.write_result(certificate, tmp_path / "result", model=study.model, counts=counts)
    for name in ("data.npz", "policy.csv", "certificate.json"):
        os.truncate(tmp_path / "result" / name, 2**40)
        with pytest.raises(pl.DataError, match=rf"{name} has 1,099,511,627,776 bytes; at most"):
            pl.read_result(tmp_path / "result")


def test_many_labels_are_read_in_one_pass_and_too_many_are_refused(tmp_path, monkeypatch):
    text = "@type: MDP\n@parameters\n\n@reward_models\n\n@nr_states\n1\n@nr_choices\n1\n@model\nstate 0 init {}\n"
    took = []
    for n in (10_000, 40_000):
        (tmp_path / "m.drn").write_text(f"{text.format(' '.join(map(str, range(n))))}\taction 0\n\t\t0 : 1\n")
        start = time.process_time()
        assert len(pl.exchange.read_interval_model(tmp_path / "m.drn").labels) == n
        took.append(time.process_time() - start)
    assert took[1] < 9 * took[0]  # names looked up in lists took 16 times as long
    monkeypatch.setattr("plumdp.exchange.read_drn.MOST_BYTES", 1000)
    with pytest.raises(pl.ModelError, match="40,001 labels of 1 states, which are too many"):
        pl.exchange.read_interval_model(tmp_path / "m.drn")


@pytest.fixture(scope="module")
def arrays():
    """Return the arrays of the file of a model and its counts."""
    study = pl.case_study("betting:5")
    packed = io.BytesIO()
    write_data(packed, study.model, pl.simulate(study.model, study.true_point, 50, rng=1, max_steps=6))
    packed.seek(0)
    return dict(np.load(packed))


@pytest.mark.parametrize(
    ("about", "more", "problem"),
    [
        ({"constants": {"N": ["Fraction", "1e9999999999"]}}, {}, "its exponent is beyond 4000"),
        ({"constants": []}, {}, "a part of it is missing, or is not what it should be"),
        ({"constants": {"N": ["int", "9" * 5000]}}, {}, "a part of it is missing, or is not"),
        ({"spaces": [[["p"], [["0", "1e99999"]], []]] * 2}, {}, "its exponent is beyond 4000"),
        ({"expressions": [[["p"], [["1", [10**9]]]]]}, {}, "a power is not a whole number from 0 to 16,384"),
        ({}, {"more": np.zeros(3)}, "it holds more.npy"),
        ({}, {"state 0": np.zeros(2**24, np.uint8)}, "it holds 16,.* bytes, and 16,000,000 are more than enough"),
    ],
)
def test_data_of_a_result_that_are_unknown_or_too_large_are_refused(
    about, more, problem, arrays, tmp_path, monkeypatch
):
    monkeypatch.setattr("plumdp.base.edge.MOST_BYTES", 16_000_000)
    content = json.dumps(json.loads(arrays["about"].tobytes()) | about).encode()
    np.savez_compressed(tmp_path / "data.npz", **(arrays | more | {"about": np.frombuffer(content, np.uint8)}))
    with pytest.raises(pl.DataError, match=problem):
        read_data(tmp_path / "data.npz")


def test_data_of_a_result_with_a_changed_byte_are_refused(arrays, tmp_path):
    file = tmp_path / "data.npz"
    np.savez_compressed(file, **arrays)
    read_data(file)
    packed = file.read_bytes()
    for item in sorted(zipfile.ZipFile(file).infolist(), key=lambda each: each.compress_size)[-3:]:
        for place in (61, 70, 100):  # also such that zlib fails
            content = bytearray(packed)
            content[item.header_offset + place + len(item.filename)] ^= 0xFF
            file.write_bytes(content)
            with pytest.raises(pl.DataError, match="is not what plumdp writes"):
                read_data(file)


def test_event_logs_are_read_trace_by_trace_and_no_deeper_than_they_are(tmp_path):
    event = '<event><string key="concept:name" value="go"/></event>'
    (tmp_path / "log.xes").write_text(f"<log>{f'<trace>{event}</trace>' * 3}</log>")
    assert write_events(str(tmp_path / "log.xes"), str(tmp_path / "rows")) == ["concept:name"]
    assert len((tmp_path / "rows").read_text().splitlines()) == 3
    (tmp_path / "deep.xes").write_text("<log>" + "<a>" * 100 + "</a>" * 100 + "</log>")
    with pytest.raises(pl.DataError, match="inside each other at more than 64 levels"):
        write_events(str(tmp_path / "deep.xes"), str(tmp_path / "rows"))


def zstd(*blocks):
    """Return a frame of zstd: of each block its kind, its size, and what is stored of it."""
    heads = [(i == len(blocks) - 1) | kind << 1 | size << 3 for i, (kind, size, _) in enumerate(blocks)]
    stored = [head.to_bytes(3, "little") + content for head, (*_, content) in zip(heads, blocks, strict=True)]
    return bytes.fromhex("28b52ffd 00 58") + b"".join(stored)


def test_packed_logs_that_unpack_to_very_much_are_refused_before(tmp_path, monkeypatch):
    monkeypatch.setattr("plumdp.base.edge.MOST_BYTES", 2_000_000)
    log = b"episode,step,x,action\n" + b"".join(b"%d,%d,%d,go\n" % (i // 9, i % 9, i % 7) for i in range(90_000))
    text = zstd((0, 22, log[:22]), (1, 1 << 17, b"0"))  # a repeated byte, as whoever forges one would write it
    for name, packed, is_read in (
        ("log.csv.gz", gzip.compress(log), True),
        ("log.csv.zst", zstd((0, 22, log[:22]), (0, 11, b"0,1,0,stay\n")), True),
        ("bomb.csv.gz", gzip.compress(log) + gzip.compress(bytes(40_000_000)), False),
        ("bomb.csv.zst", text + bytes.fromhex("502a4d18 01000000 00") + text * 20, False),
        ("bomb.xes.gz", gzip.compress(b"<log>" + b" " * 40_000_000 + b"</log>"), False),
    ):
        (tmp_path / name).write_bytes(packed)
        outcome = nullcontext() if is_read else pytest.raises(pl.DataError, match=r"may unpack to .* g?unz\w+ it, and")
        with outcome, connect() as connection:
            connection.execute(f"SELECT count(*) FROM {scan(connection, [str(tmp_path / name)])}").fetchall()


def test_packed_logs_that_are_damaged_are_refused(tmp_path):
    packed = bytearray(gzip.compress(os.urandom(5000)))
    packed[len(packed) // 2 :] = b""
    (tmp_path / "log.csv.gz").write_bytes(packed)
    with pytest.raises(pl.DataError, match="this is not packed by gzip, or was not written to its end"):
        write_utf_8(str(tmp_path / "log.csv.gz"), str(tmp_path / "copy"), "latin-1")


def test_json_has_limits(monkeypatch):
    assert parsed('{"a": [1]}') == {"a": [1]}
    monkeypatch.setattr("plumdp.base.json_values._MOST", 100)
    for text, problem in (
        ("[" * 90 + "]" * 90, "has 180 bytes"),
        ("[" * 50, "Expecting"),
        ("[" * 50 + "]" * 50, "deep"),
        ('{"lower": 0.9, "lower": 0.1}', "the name 'lower' is given twice"),
    ):
        with pytest.raises(pl.DataError, match=problem):
            parsed(text)
