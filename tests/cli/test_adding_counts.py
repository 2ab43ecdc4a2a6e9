"""Files of counts on the command line: they add up, say what they are made of, and ignore what is said of logs."""

import json
from functools import partial
from hashlib import blake2b
from pathlib import Path

import pytest
from command_line import plumdp
from support import refusals
from support.refusals import rows

import plumdp as pl

NAMES = "money,state_step,action,next_money,next_step\n"
MODEL = "betting:5"
ORDER = "counts were added in the order in which their data were collected, in parts not chosen by looking at them"


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Days of 1, 2, 3 rows with their counts, two of them counted together as well; and simulated counts."""
    folder = tmp_path_factory.mktemp("days")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for day in (1, 2, 3):
            Path(f"day-{day}.csv").write_text(NAMES + day * "10,0,bet1,9,1\n")
            assert plumdp("count", MODEL, f"day-{day}.csv", "-o", f"{day}.parquet").code == 0
        assert plumdp("count", MODEL, "day-2.csv", "day-3.csv", "-o", "late.parquet").code == 0
        for seed in "45":
            made = plumdp(
                "simulate", MODEL, "-n", "200", "--form", "counts", "--seed", seed, "-o", f"runs-{seed}.parquet"
            )
            assert made.code == 0, made.err
        yield folder


@pytest.fixture
def defaults():
    yield Path("plumdp.toml").write_text
    Path("plumdp.toml").unlink()


def sum_of(*files):
    model = pl.case_study(MODEL).model
    return sum(pl.read_counts(model, file) for file in files)


@pytest.mark.slow
def test_counts_are_added_as_in_python_and_keep_the_pilot_of_the_first():
    ended = plumdp("count", MODEL, "runs-4.parquet", "3.parquet", "runs-5.parquet", "-o", "sum.parquet", "--force")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1] == (
        f"sum.parquet: 2,403 steps, counted, with bets after the first 4, 16, 39, 64, 71, 97, …, 199 ({ORDER})"
    )
    written, expected = sum_of("sum.parquet"), sum_of("runs-4.parquet", "3.parquet", "runs-5.parquet")
    assert (written.fingerprint, written.sampling) == (expected.fingerprint, "adaptive")
    assert written.pilot.counts.tolist() == sum_of("runs-4.parquet").pilot.counts.tolist()


def test_the_order_of_adding_is_said_once_however_often_counts_are_added():
    total = sum_of("runs-4.parquet", "1.parquet", "3.parquet")
    assert total.pilot.rests_on == ORDER
    assert sum_of("1.parquet", "runs-4.parquet").pilot is None


@pytest.mark.night
def test_every_command_adds_counts_and_the_certificate_says_their_order():
    told = json.loads(plumdp("certify", MODEL, "runs-4.parquet", "1.parquet", "runs-5.parquet", "--json").out)
    model = pl.case_study(MODEL)
    expected = pl.certify(model.model, sum_of("runs-4.parquet", "1.parquet", "runs-5.parquet"), model.objective)
    assert (told["lower"], told["upper"]) == (expected.lower, expected.upper)
    assert any(ORDER in assumption for assumption in told["assumptions"])
    assert told["provenance"]["data 1"].startswith("day-1.csv: ")


def test_a_folder_or_pattern_of_counts_is_added():
    assert plumdp("count", MODEL, "[13].parquet").out.splitlines()[:2] == [
        "4 log rows: 4 matched, 0 rejected",
        "4 steps, adaptive, without bets, as the order of the data is not known (--order)",
    ]


@pytest.mark.slow
def test_counts_that_cannot_be_added_are_named_with_advice(folder):
    (folder / "half.parquet").write_bytes((folder / "1.parquet").read_bytes()[:50])
    plumdp("simulate", MODEL, "-n", "2", "-o", "runs.parquet")
    refusals.misused("commands:adding", partial(plumdp, "count", MODEL, "-o", "never.parquet"))
    assert not (folder / "never.parquet").exists()


def test_counts_keep_a_manifest_of_their_data():
    plumdp("count", MODEL, "1.parquet", "late.parquet", "runs-4.parquet", "-o", "all.parquet", "--force")
    told = json.loads(plumdp("count", MODEL, "all.parquet", "--json").out)
    assert (told["schema"], told["steps"], told["output"], told["pilot"]) == ("plumdp/counts/1", 1206, None, None)
    *files, runs = told["data"]
    for file, day in zip(files, (1, 2, 3), strict=True):
        content = Path(f"day-{day}.csv").read_bytes()
        assert (file["name"], file["size"]) == (f"day-{day}.csv", len(content))
        assert file["hash"] == blake2b(content, digest_size=16).hexdigest()
    assert runs == {"name": "1,200 simulated steps"}
    assert told["report"]["rows"] == {"matched": 6}
    shown = plumdp("count", MODEL, "all.parquet").out.splitlines()
    assert shown[1] == "1,206 steps, adaptive, without bets, as the order of the data is not known (--order)"
    assert [line.split(":")[0] for line in shown[2:]] == [
        "  day-1.csv",
        "  day-2.csv",
        "  day-3.csv",
        "  1,200 simulated steps",
    ]


def test_simulate_says_as_json_what_it_wrote():
    told = json.loads(plumdp("simulate", MODEL, "-n", "2", "-o", "two.csv", "--force", "--json").out)
    assert told == {"schema": "plumdp/runs/1", "output": "two.csv", "steps": 12, "runs": 2}
    command = ["simulate", MODEL, "-n", "2", "--form", "counts", "-o", "two.parquet", "--force", "--json"]
    assert json.loads(plumdp(*command).out)["data"] == [{"name": "12 simulated steps"}]


# defaults in plumdp.toml

SHARED = (
    "state = ['money=purse']\ncolumn = ['next_money=next_purse']\naction = 'lower(action)'\nform = 'transitions'\n"
    "steps = 'ordered'\norder = 'time'\nexpected = 5\ncensoring = 'unrelated'\nsampling = 'independent'\n"
)


def test_shared_options_about_logs_are_ignored_for_counts(defaults):
    expected = plumdp("count", MODEL, "1.parquet", "runs-4.parquet", "--json")
    defaults(SHARED)
    assert plumdp("count", MODEL, "1.parquet", "runs-4.parquet", "--json") == expected
    assert plumdp("count", MODEL, "day-1.csv").code == 2  # where they are about the data


def test_a_shared_claim_that_is_weaker_than_that_of_the_counts_holds(defaults):
    defaults("sampling = 'adaptive'\n")
    told = json.loads(plumdp("count", MODEL, "runs-4.parquet", "--json").out)
    assert (told["sampling"], told["pilot"]) == ("adaptive", None)


@pytest.mark.parametrize(("text", "arguments", "message"), rows("commands:options_of_counts"))
def test_an_option_for_this_command_that_does_not_apply_is_named_by_its_place(text, arguments, message, defaults):
    defaults(text)
    ended = plumdp("count", MODEL, "1.parquet", *arguments)
    assert (ended.code, ended.err.startswith(f"error: {message}")) == (2, True), ended.err
