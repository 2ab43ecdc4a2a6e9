"""The first minute: how little the default path compiles, and what ``plumdp warmup`` compiles ahead, for whom."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.refusals import rows
from tiers import TIER

import plumdp
from plumdp.base import compiled
from plumdp.cli import main
from plumdp.cli import warming as warmup
from plumdp.cli.warming import LIST
from plumdp.cli.warmup import STARTED

COUNTING = """
from numba.core import event
class Counting(event.Listener):
    names = []
    def on_start(self, event): self.names.append(event.data["dispatcher"].py_func.__module__)
    def on_end(self, event): pass
event.register("numba:compile", Counting())
"""
CERTIFY = """
import plumdp as pl
from plumdp.base import compiled
study = pl.case_study("betting:10")
counts = pl.simulate(study.model, study.true_point, 30, rng=1, max_steps=study.max_steps + 1)
certificate = pl.certify(study.model, counts, study.objective)
print(len([name for name in Counting.names if name.startswith("plumdp")]), len(Counting.names))
print(certificate.lower.hex(), certificate.upper.hex())
"""
WARM_UP = """
from plumdp.base import compiled
from plumdp.cli.warming import warm_up
found = warm_up()
used = [kernel for kernel in compiled.KERNELS if kernel.dispatcher.signatures]
twice = [kernel.name for kernel in used if len(kernel.dispatcher.signatures) > 1]
print(len(Counting.names), found.kernels, len(used), twice)
"""


def output_of(code, cache, *more):
    environment = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
    run = [sys.executable, "-c", COUNTING + code, *more]
    return subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.night
def test_a_first_certificate_of_a_small_model_compiles_next_to_nothing(tmp_path):
    """Compiled at once, it would be some eighty functions, and half a minute."""
    first, bounds = output_of(CERTIFY, tmp_path).splitlines()
    assert int(first.split()[0]) <= 5
    assert int(first.split()[1]) <= 8
    assert not [*tmp_path.rglob(LIST)]  # in Python, nothing is compiled behind the user's back
    assert output_of(CERTIFY, tmp_path).splitlines()[1] == bounds


@pytest.mark.night
def test_what_was_warmed_up_is_compiled_once_per_kernel_and_never_again(tmp_path):
    """By day in the cache that ``./check`` has warmed up; how many there were at first is counted at night."""
    cache = tmp_path if TIER == "night" else None
    first, again = (output_of(WARM_UP, cache).split(maxsplit=3) for _ in range(2))
    n_compiled, kernels, with_helpers = map(int, first[:3])
    assert 10 < kernels <= with_helpers <= 75
    assert kernels < with_helpers or not cache
    assert first[3].strip() == "[]"
    assert n_compiled <= 110  # with functions of numba's own: 155 before there was a bound
    assert n_compiled >= with_helpers or not cache
    assert int(again[1]) == kernels
    assert again[0] == "0"
    after, _ = output_of(CERTIFY, cache).splitlines()
    assert after == "0 0"


@pytest.mark.night
def test_warmup_says_what_it_did_and_where(capsys, monkeypatch):
    """In process, where most is compiled already, and of the default set alone."""
    monkeypatch.setattr(warmup, "SETS", ("likelihood",))
    monkeypatch.setattr(warmup, "_OTHERS", ())
    with pytest.raises(SystemExit) as ended:
        main(["warmup"])
    assert ended.value.code == 0
    captured = capsys.readouterr()
    assert re.fullmatch(r"\d+ kernels are compiled, kept in .+ \(\d+\.\d s\)\n", captured.out)
    assert captured.err == ""


@pytest.mark.parametrize(("arguments", "message"), rows("commands:warmup"))
def test_misuse_of_warmup_is_explained(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert " ".join(capsys.readouterr().err.split()).startswith(message)


READING = """
from plumdp.base import compiled
from plumdp.data import kernels
import numpy as np
compiled.compile_at_once()
kernels.count(np.zeros((1, 1), dtype=np.int32), np.zeros(1, dtype=np.int64))
print(len(Counting.names), compiled.folder_in_use())
"""


def without_write_permission():
    """Return how to start a process that must respect permissions, also if the tests run as root."""
    if os.name != "posix":
        pytest.skip("permissions of another kind")
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may write anywhere")
    return ["setpriv", "--bounding-set=-dac_override"]


@pytest.mark.night
@pytest.mark.parametrize("was_warmed_up", [True, False])
def test_a_read_only_install_uses_what_was_compiled_there_or_the_folder_of_the_user(tmp_path, was_warmed_up):
    package, home = tmp_path / "site" / "plumdp", tmp_path / "home"
    shutil.copytree(Path(plumdp.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment = kept | {"PYTHONPATH": str(package.parent), "HOME": str(home)}
    run = [sys.executable, "-c", COUNTING + READING]
    if was_warmed_up:
        subprocess.run(run, env=environment, check=True)
    for path in [package, *package.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = [
            subprocess.run(
                [*without_write_permission(), *run], env=environment, capture_output=True, text=True, check=True
            ).stdout.split()
            for _ in range(2)
        ]
    finally:
        for path in [package, *package.rglob("*")]:
            path.chmod(0o755)
    where = package if was_warmed_up else home
    assert [int(n) > 0 for n, _ in done] == [not was_warmed_up, False]
    assert all(Path(folder).is_relative_to(where) for _, folder in done)


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Return the commands that are started, in place of starting them, after one kernel was lacking."""
    commands, kernel = [], compiled.Kernel(total, {}, is_helper=False, small=10)
    monkeypatch.setattr(compiled, "KERNELS", [kernel])
    monkeypatch.setattr(compiled, "PATIENCE", 1.0)
    monkeypatch.setattr(compiled, "READING", 0.0)
    monkeypatch.setattr(compiled, "IMPORTING", 0.0)
    monkeypatch.setattr(compiled, "cache_folders", lambda: [tmp_path / "no folder" / "cache", tmp_path / "cache"])
    (tmp_path / "no folder").touch()
    monkeypatch.setattr(warmup.subprocess, "Popen", lambda command, **_: commands.append(command))
    kernel(np.arange(3.0))
    return commands


def test_one_process_at_a_time_compiles_what_was_lacking(started, tmp_path):
    path = tmp_path / "cache" / LIST
    assert [warmup.start_process() for _ in range(2)] == [True, False]
    assert [command[-1] for command in started] == [str(path)]
    os.utime(path, (0, 0))  # left by a process that was stopped long ago
    assert warmup.start_process()
    assert len(started) == 2


def test_no_process_is_started_where_all_kernels_are_compiled_or_none_can_be_kept(started, tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "cache_folders", lambda: [tmp_path / "no folder" / "cache"])
    assert not warmup.start_process()
    monkeypatch.setattr(compiled, "KERNELS", [])
    monkeypatch.setattr(compiled, "cache_folders", lambda: [tmp_path])
    assert not warmup.start_process()
    assert started == []


def test_the_list_is_compiled_and_deleted(started, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "nice", lambda increment: None, raising=False)
    (kernel,) = compiled.KERNELS
    monkeypatch.setattr(warmup, "resolve_name", {kernel.name: kernel}.get)
    assert warmup.start_process()
    warmup.compile_listed(tmp_path / "cache" / LIST)
    assert kernel.is_compiled
    assert not (tmp_path / "cache" / LIST).exists()
    assert not warmup.start_process()


def simulate(cache, **more):
    """Return what ``plumdp simulate`` says on standard error in an environment without settings of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PLUMDP_WARMUP", "CI")}
    run = [
        sys.executable,
        "-m",
        "plumdp",
        "simulate",
        "rover:10,10",
        "-n",
        "2000",
        "-o",
        str(cache / "runs.parquet"),
        "--force",
    ]
    environment = kept | {"NUMBA_CACHE_DIR": str(cache), **more}
    return subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stderr


@pytest.mark.night
def test_a_command_that_lacked_kernels_has_them_compiled_for_the_next_one(tmp_path):
    assert simulate(tmp_path) == f"{STARTED}\n"
    path = tmp_path / "plumdp" / LIST
    for _ in range(600):
        if not path.exists():
            break
        time.sleep(0.5)
    assert len([*path.parent.glob("*.kernel")]) >= 2
    assert simulate(tmp_path) == ""
    assert not path.exists()


@pytest.mark.night
@pytest.mark.parametrize("setting", [{"PLUMDP_WARMUP": "0"}, {"CI": "true"}])
def test_no_command_starts_a_process_where_that_is_switched_off(tmp_path, setting):
    assert simulate(tmp_path, **setting) == ""
    assert not (tmp_path / "plumdp" / LIST).exists()
