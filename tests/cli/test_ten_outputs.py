"""What the commands print, one of each kind, on small data: kept texts, and as few lines as a busy person reads.

``python tests/cli/test_ten_outputs.py`` writes the texts anew: read what changed.
"""

import io
import json
import os
import re
import runpy
import sys
import tempfile
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from command_line import plumdp

import plumdp as pl

GOLDEN = Path(__file__).parents[1] / "texts" / "outputs.toml"
PUMP = """
import plumdp

wear, fail = plumdp.parameters("wear", "fail")
price = {"run": 0, "service": 120, "repair": 900}


def pumps(sudden=0):
    def week(state):
        good, worn, failed = (state._replace(condition=name) for name in ("good", "worn", "failed"))
        return {
            "good": {"run": [(wear, worn), (sudden, failed), (1 - wear - sudden, good)]},
            "worn": {"run": [(fail, failed), (1 - fail, worn)], "service": [(1, good)]},
            "failed": {"repair": [(1, good)]},
        }[state.condition]

    cost = {"cost": lambda state, action: price[action]}
    space = plumdp.ParameterSpace.unit("wear", "fail")
    return plumdp.explore(week, {"condition": "good"}, space=space, choice_rewards=cost)


pump, plant = pumps(), pumps(sudden=0.01)
"""
COST, FAILS = 'R{"cost"}min=? [ C<=12 ]', 'P<=0.9 [ F<=12 condition="failed" ]'
CERTIFY = ("certify", "pump.py:pump", "log.csv", "--sampling", "trajectories", "--confidence", "0.95")
COMMANDS = {
    "value": (*CERTIFY, "-p", COST, "--unit", "€"),
    "comparison": (*CERTIFY, "-p", COST, "--unit", "€ a quarter", "--against", "practice"),
    "yes": (*CERTIFY, "-p", FAILS, "--policy", "run"),
    "inconclusive": (*CERTIFY, "-p", FAILS.replace("0.9", "0.55"), "--policy", "run"),
    "no": (*CERTIFY, "-p", FAILS.replace("0.9", "0.1"), "--policy", "run"),
    "nothing to fear": (*CERTIFY, "-p", FAILS),
    "model rejected": ("certify", "pump.py:pump", "plant.csv", "-p", COST, "--keep-going"),
    "log rows that do not fit": ("certify", "pump.py:pump", "plant.csv", "-p", COST),
    "check-model": ("check-model", *CERTIFY[1:]),
    "advise": ("advise", *CERTIFY[1:], "-p", COST),
    "verify without a witness": ("verify", "result"),
    "solve": ("solve", "pump.py:pump", "-p", FAILS.replace("P<=0.9", "Pmax=?"), "--at", "wear=0.15,fail=0.25"),
    "watch": ("watch", "pump.py:pump", "days"),
    "start": ("start", "log.csv", "--force"),  # the last, as it writes defaults for the others
}
MOST_LINES = {"value": 14, "comparison": 16}  # of 100 columns


def make(folder):
    """Write models, logs, a result and days, in which pumps wear faster from the 17th on, to the working directory."""
    (folder / "pump.py").write_text(PUMP, encoding="utf-8")
    sys.path.insert(0, str(folder))
    made = {"log.csv": "pump.py:pump", "plant.csv": "pump.py:plant"}
    for name, model in made.items():
        at = ("--at", "wear=0.15,fail=0.25", "-n", "100", "--max-steps", "26", "--seed", "1")
        assert plumdp("simulate", model, *at, "-o", name).code == 0
    assert plumdp(*CERTIFY, "-p", COST, "-o", "result").code == 0
    (folder / "days").mkdir()
    model = runpy.run_path("pump.py")["pump"]
    for day in range(24):
        rates = {"wear": 0.15 if day < 16 else 0.5, "fail": 0.25}
        counts = pl.simulate(model, rates, 40, rng=day, max_steps=26)
        pl.write_counts(counts, folder / "days" / f"2024-05-{day + 1:02}.parquet")


def printed(name):
    """Return what a command prints in 100 columns, without what differs from run to run."""
    ended = plumdp(*COMMANDS[name])
    text = re.sub(r"\d+\.\d\d s\b", "… s", ended.out + ended.err)
    return f"{text.rstrip()}\n[exit {ended.code}]"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        patch.chdir(tmp_path_factory.mktemp("ten"))
        patch.setattr(sys, "path", [*sys.path])
        make(Path.cwd())
        yield {name: printed(name) for name in COMMANDS}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_prints_its_text(name, texts):
    assert texts[name] == tomllib.loads(GOLDEN.read_text(encoding="utf-8"))[name].strip("\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", MOST_LINES)
def test_a_claim_has_few_lines(name, texts):
    assert len(texts[name].splitlines()) - 1 <= MOST_LINES[name]


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    os.chdir(tempfile.mkdtemp())
    with redirect_stdout(io.StringIO()):
        make(Path.cwd())
    kept = (f"{json.dumps(name)} = '''\n{printed(name)}\n'''\n" for name in COMMANDS)
    head = "# What commands print in 100 columns: python tests/cli/test_ten_outputs.py\n"
    GOLDEN.write_text(head + "\n".join(kept), encoding="utf-8")
