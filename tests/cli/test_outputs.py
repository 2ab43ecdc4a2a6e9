"""What commands write: as a whole or not at all, with hashes, and refused before the work if it cannot be written."""

import json
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from pathlib import Path

import pytest
from shorthand import altered
from support import refusals
from typer.testing import CliRunner

import plumdp as pl
from plumdp.cli import app
from plumdp.data.counts import Pilot
from plumdp.result.folder import require_folder

RUNNER = CliRunner()
STUDY = pl.case_study("betting:5")
COUNTS = pl.simulate(STUDY.model, STUDY.true_point, 1000, rng=1, max_steps=6)


@cache
def certificate():
    return pl.certify(STUDY.model, COUNTS, STUDY.objective)


@pytest.fixture
def counts(tmp_path):
    pl.write_counts(COUNTS, tmp_path / "counts.parquet")
    return str(tmp_path / "counts.parquet")


@pytest.mark.slow
def test_the_certificate_carries_hashes_of_policy_counts_and_model(counts, tmp_path):
    result = RUNNER.invoke(app, ["certify", "betting:5", counts, "-o", str(tmp_path / "deep" / "result")])
    assert result.exit_code == 0, result.output
    folder = tmp_path / "deep" / "result"
    saved = json.loads((folder / "certificate.json").read_text())
    hashes = saved.pop("hashes")
    for name in ("data.npz", "policy.csv"):
        assert hashes[name] == blake2b((folder / name).read_bytes(), digest_size=16).hexdigest()
    content = json.dumps(saved, sort_keys=True, separators=(",", ":")).encode()
    assert hashes["certificate.json"] == blake2b(content, digest_size=16).hexdigest()
    assert sorted(hashes) == sorted(file.name for file in folder.iterdir())
    assert saved["provenance"]["counts"] == COUNTS.fingerprint
    assert saved["provenance"]["expressions"] == STUDY.model.fingerprint
    assert sorted(file.name for file in folder.parent.iterdir()) == ["result"]


@pytest.mark.night
def test_other_counts_have_another_hash():
    arrays = [COUNTS.counts, COUNTS.counts + 1]
    made = [pl.TransitionCounts(COUNTS.graph, array, "trajectories") for array in arrays]
    made.append(pl.TransitionCounts(COUNTS.graph, arrays[0], "adaptive"))
    pilots = [
        arrays[0],
        Pilot(arrays[0], ratio=2.0),
        Pilot(arrays[0], "power of four"),
        Pilot(0 * arrays[0], "power of four"),
        Pilot(arrays[0], expected=5),
        Pilot(arrays[0], lengths=(16,)),
        Pilot(arrays[0], moments=(0 * arrays[0], arrays[0]), lengths=(4, 16)),
        0 * arrays[0],
        Pilot(arrays[0], rests_on="x"),
    ]
    made += [pl.TransitionCounts(COUNTS.graph, arrays[0], "trajectories", pilot) for pilot in pilots]
    assert len({counts.fingerprint for counts in made}) == len(made) == 12
    assert made[0].fingerprint == replace(COUNTS, pilot=None, contexts=()).fingerprint


def test_an_earlier_result_is_replaced_only_by_force(tmp_path):
    pl.write_result(certificate(), tmp_path / "result")
    before = (tmp_path / "result" / "certificate.json").read_text()
    (tmp_path / "result" / "policy.csv").write_text("old")
    with pytest.raises(
        pl.DataError, match=r"result already exists; choose another folder, or replace it with force=True"
    ):
        pl.write_result(certificate(), tmp_path / "result")
    assert (tmp_path / "result" / "policy.csv").read_text() == "old"
    pl.write_result(certificate(), tmp_path / "result", force=True)
    assert (tmp_path / "result" / "policy.csv").read_text().startswith("money,step,action")
    assert (tmp_path / "result" / "certificate.json").read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["result"]


def test_a_folder_with_other_files_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(pl.DataError, match=r"holds other files than a result \(thesis.tex\); name another folder"):
        pl.write_result(certificate(), tmp_path, force=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_failure_on_the_way_leaves_nothing_or_the_old_result(tmp_path):
    """An action's name that is no text cannot be written to the file of the policy."""
    pl.write_result(certificate(), tmp_path / "old")
    graph = replace(STUDY.model.graph, action_names=tuple("\ud800" for _ in STUDY.model.graph.action_names))
    broken = altered(certificate(), policy=pl.PolicyTable(graph, certificate().policy.choice))
    for name in ("new", "old"):
        with pytest.raises(UnicodeEncodeError):
            pl.write_result(broken, tmp_path / name, force=True)
    assert [file.name for file in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old" / "policy.csv").read_text().startswith("money,step,action")


def test_places_that_cannot_be_written_are_refused_before_the_work(tmp_path):
    """The log of the commands does not exist: that would be found first if the work began."""
    (tmp_path / "file").write_text("here")
    refusals.misused("commands:places", folder=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_relative_path_is_tried_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    require_folder(Path("a/b/c"))
    assert not list(tmp_path.iterdir())
