"""Checkpoints: only those of the same run are gone on with, and damaged or forged files are refused by name."""

import io
import os
import pickle
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

import plumdp as pl

P, Q = pl.parameters("p", "q")


def _model(first=P, second=P / 2, space=None):
    def step(s):
        if s.x == 0:
            return {
                "go": [(first, s._replace(x=1)), (1 - first, s._replace(x=2))],
                "alt": [(second, s._replace(x=1)), (1 - second, s._replace(x=2))],
            }
        return {"stay": [(1, s)]}

    unit = pl.ParameterSpace.unit("p", "q")
    return pl.explore(step, {"x": 0}, space=space or unit, labels={"goal": lambda s: s.x == 1})


MODEL = _model()
GOAL = 'Pmax=? [ F "goal" ]'


def _run(path, model=MODEL, objective=GOAL, episodes=40, **options):
    environment = pl.online.simulator(MODEL, {"p": 0.9, "q": 0.5}, rng=1, max_steps=3)
    return list(pl.learn_online(model, environment, objective, episodes=episodes, checkpoint=path, **options))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "state.npz"
    _run(path)
    return path.read_bytes()


@pytest.fixture
def checkpoint(saved, tmp_path):
    path = tmp_path / "state.npz"
    path.write_bytes(saved)
    return path


OTHERS = {
    "a factor": {"model": _model(second=P / 4)},
    "parameters exchanged": {"model": _model(first=Q, second=Q / 2)},
    "another tie": {"model": _model(second=Q)},
    "expressions exchanged": {"model": _model(first=P / 2, second=P)},
    "a smaller space": {"model": _model(space=pl.ParameterSpace.box({"p": (0, 1), "q": (0, Fraction(1, 2))}))},
    "another objective": {"objective": 'Pmin=? [ F "goal" ]'},
    "another target": {"objective": "Pmax=? [ F x=2 ]"},
    "a relaxation": {"relaxation": "expression"},
    "growth": {"growth": 3.0},
    "spacing": {"spacing": 2.0},
    "exploration": {"exploration": 0.5},
    "precision": {"precision": 1e-3},
    "confidence": {"confidence": 0.9},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_any_other_run_is_refused(checkpoint, other):
    with pytest.raises(pl.DataError, match=r"state\.npz is of another run \(model "):
        _run(checkpoint, **OTHERS[other])


def test_the_same_run_goes_on_also_with_more_episodes_and_the_objective_as_an_object(checkpoint):
    objective = pl.parse_property(GOAL, MODEL)
    records = _run(checkpoint, episodes=60, objective=objective)
    assert (records[0].episodes, records[-1].episodes) == (40, 60)


class Evil:
    """Something that would leave a trace if it were loaded."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


def _with(**changes):
    def forge(saved):
        with np.load(io.BytesIO(saved)) as file:
            arrays = dict(file)
        buffer = io.BytesIO()
        kept = {name: value for name, value in {**arrays, **changes}.items() if value is not None}
        np.savez(buffer, **{name: value(arrays[name]) if callable(value) else value for name, value in kept.items()})
        return buffer.getvalue()

    return forge


def _huge(saved):
    """Return the file with a header that declares 728 TiB of counts."""
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999,), }".ljust(117) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = b"\x93NUMPY\x01\x00\x76\x00" + header + b"\0" * 64 if name == "counts.npy" else old.read(name)
            new.writestr(name, content)
    return buffer.getvalue()


def _pickled(saved):
    return pickle.dumps(Evil())


def _single():
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


def test_a_damaged_or_forged_checkpoint_is_refused_by_name(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(forge):
        Path("state.npz").write_bytes(eval(forge)(saved))
        _run(Path("state.npz"), episodes=60)

    refused("checkpoints:forged", run, pl.DataError)
    assert not Path("executed").exists()


def test_a_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(pl.DataError, match="is not a checkpoint of learn_online, or damaged"):
        _run(tmp_path)
