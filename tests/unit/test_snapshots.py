"""Tables of Delta Lake and Iceberg: rows that were deleted are not read, and the version is part of what is claimed."""

import sys
from pathlib import Path

import pyarrow
import pytest

import plumdp as pl
from plumdp.data.carrying import count_on
from plumdp.data.duckdb_tables import find_files
from plumdp.watching.fleets import is_fleet

deltalake = pytest.importorskip("deltalake")

CLOSED = 'P=? [ F<=3 status="closed" ]'
ROWS = pyarrow.table(
    {"episode": [1, 1, 2, 2, 3, 3], "step": [0, 1] * 3, "status": ["open", "closed"] * 3, "action": ["wait", None] * 3}
)


def step(state):
    if state.status == "closed":
        return {"stay": [(1, state)]}
    return {"wait": pl.unknown(state, state._replace(status="closed"))}


MODEL = pl.explore(step, {"status": "open"})


@pytest.fixture
def delta(tmp_path, monkeypatch):
    """Return the name of a table in this folder, in files by status, of whose three runs one was deleted."""
    monkeypatch.chdir(tmp_path)
    deltalake.write_deltalake("cases", ROWS, partition_by=["status"])
    deltalake.DeltaTable("cases").delete("episode = 3")
    return "cases"


@pytest.fixture
def iceberg(tmp_path, monkeypatch):
    """Return the same as a table of Iceberg."""
    pytest.importorskip("sqlalchemy")
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    monkeypatch.chdir(tmp_path)
    catalog = catalogs.SqlCatalog("x", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("all")
    table = catalog.create_table("all.cases", schema=ROWS.schema)
    table.append(ROWS)
    table.delete("episode = 3")
    catalog.engine.dispose()
    return "all/cases"


@pytest.mark.slow
def test_rows_that_were_deleted_are_not_read_and_the_version_is_part_of_the_certificate(delta):
    counts = pl.read_log(MODEL, delta).counts
    assert counts.total == 2
    certificate = pl.certify(MODEL, counts, CLOSED)
    said = "cases, version 1 of a table of Delta Lake (hashed: the identity and the version of the table)"
    assert certificate.rests_on.provenance["data 1"] == said
    deltalake.DeltaTable(delta).delete("episode = 2")
    later = pl.read_log(MODEL, delta).counts
    assert later.total == 1
    assert later.parts[0].key != counts.parts[0].key
    assert later.parts[0].name.startswith("cases, version 2 of")
    assert not is_fleet([delta])


@pytest.mark.slow
def test_a_table_of_iceberg_is_read_at_its_last_snapshot_or_at_one_that_is_given(iceberg):
    counts = pl.read_log(MODEL, iceberg).counts
    assert counts.total == 2
    said = pl.certify(MODEL, counts, CLOSED).rests_on.provenance["data 1"]
    assert said.startswith("all/cases, snapshot ")
    assert "of a table of Iceberg" in said
    before = sorted(Path(iceberg).glob("metadata/*.metadata.json"))[1]
    assert pl.read_log(MODEL, before).counts.total == 3
    for part in ("data", "data/*.parquet", "metadata/*.json"):
        with pytest.raises(pl.DataError, match="belong to the table cases, and also hold rows that were deleted"):
            find_files(f"{iceberg}/{part}")
    before.with_name("00002-other.metadata.json").write_text("{}", encoding="utf-8")
    with pytest.raises(pl.DataError, match="which is the last version of this table is not known; give one of"):
        pl.read_log(MODEL, iceberg)


def test_files_of_a_table_are_refused(delta, tmp_path):
    (tmp_path / "link.parquet").symlink_to(next(Path(delta).glob("*/*.parquet")).resolve())
    for part in ("cases/*/*.parquet", "cases/status=open", "cases/_delta_log", "link.parquet"):
        with pytest.raises(pl.DataError, match="belong to the table cases, and also hold rows that were deleted"):
            find_files(part)


def test_rows_of_a_table_have_no_order(delta):
    with pytest.raises(pl.DataError, match="the rows of a table of Delta Lake have no order of their own"):
        pl.read_log(MODEL, delta, order="time")
    assert pl.read_log(MODEL, delta, order="runs").counts.total == 2


def test_without_its_library_a_table_is_refused(delta, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(pl.DataError, match="Type pip install deltalake pyarrow, which read it as it is; or write"):
        pl.read_log(MODEL, delta)


def test_a_table_that_cannot_be_read_is_refused(delta):
    for file in Path(delta).glob("_delta_log/*"):
        file.unlink()
    with pytest.raises(pl.DataError, match="cases: this table of Delta Lake cannot be read"):
        pl.read_log(MODEL, delta)


# what was added since


def runs_of(*episodes, first=0, last=3):
    rows = [(run, step) for run in episodes for step in range(first, last + 1)]
    status = ["closed" if step == 3 else "open" for _, step in rows]
    action = [None if step == 3 else "wait" for _, step in rows]
    run, step = (pyarrow.array([row[i] for row in rows]) for i in (0, 1))
    return pyarrow.table({"episode": run, "step": step, "status": status, "action": action})


class DeltaTable:
    def __init__(self, folder):
        self.name = str(folder / "cases")

    def append(self, rows):
        deltalake.write_deltalake(self.name, rows, mode="append", partition_by=["status"])

    def compact(self):
        deltalake.DeltaTable(self.name).optimize.compact()

    def delete(self, which):
        deltalake.DeltaTable(self.name).delete(which)

    def replace(self, rows):
        deltalake.write_deltalake(self.name, rows, mode="overwrite")


class IcebergTable:
    def __init__(self, folder):
        pytest.importorskip("sqlalchemy")
        catalogs = pytest.importorskip("pyiceberg.catalog.sql")
        self.catalog = catalogs.SqlCatalog("x", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri())
        self.catalog.create_namespace("all")
        self.table = self.catalog.create_table("all.cases", schema=runs_of(1).schema)
        self.append, self.delete, self.replace = self.table.append, self.table.delete, self.table.overwrite
        self.name = str(folder / "all" / "cases")

    def compact(self):
        pass  # pyiceberg does not


@pytest.fixture(params=[DeltaTable, IcebergTable])
def lake(request, tmp_path):
    """Return a table with an open run and one that ended."""
    lake = request.param(tmp_path)
    lake.append(pyarrow.concat_tables([runs_of(1, last=1), runs_of(2)]))
    yield lake
    if hasattr(lake, "catalog"):
        lake.catalog.engine.dispose()


VOUCHED = pl.LogFormat(censoring="unrelated")


@pytest.mark.slow
def test_the_next_snapshot_counts_what_was_added_and_the_same_one_nothing(lake, tmp_path):
    state = tmp_path / "state.parquet"
    assert count_on(MODEL, lake.name, state, VOUCHED).counts.total == 4
    again = count_on(MODEL, lake.name, state, VOUCHED)
    assert (again.counts.total, len(again.repeated)) == (4, 1)
    lake.append(runs_of(1, first=2))
    lake.append(runs_of(3, 4))
    lake.compact()
    later = count_on(MODEL, lake.name, state, VOUCHED)
    whole = pl.read_log(MODEL, lake.name, VOUCHED).counts
    assert later.counts.counts.tolist() == whole.counts.tolist()
    assert later.counts.report.rows == whole.report.rows
    assert (later.counts.total, later.anew, later.n_open) == (12, "", 0)
    assert "added" in later.counts.parts[-1].name
    assert count_on(MODEL, lake.name, state, VOUCHED).repeated
    with pytest.raises(pl.DataError, match="which would be counted twice"):
        whole + later.counts


@pytest.mark.slow
@pytest.mark.parametrize("change", ["delete", "replace"])
def test_a_table_whose_rows_were_deleted_or_replaced_is_counted_anew_and_says_so(change, lake, tmp_path):
    state = tmp_path / "state.parquet"
    before = count_on(MODEL, lake.name, state, VOUCHED).counts
    lake.append(runs_of(3))
    if change == "delete":
        lake.delete("episode = 2")
    else:
        lake.replace(runs_of(5, 6))
    carried = count_on(MODEL, lake.name, state, VOUCHED)
    assert "deleted or replaced rows" in carried.anew
    assert "all was counted anew: " in str(carried)
    assert carried.counts.total == {"delete": 1 + 3, "replace": 6}[change]
    assert len(carried.counts.parts) == 1
    with pytest.raises(pl.DataError, match="which would be counted twice"):
        before + carried.counts


@pytest.mark.slow
def test_a_table_that_was_rewritten_beside_other_data_is_refused(lake, tmp_path):
    state = tmp_path / "state.parquet"
    count_on(MODEL, runs_of(9), state, VOUCHED)
    count_on(MODEL, lake.name, state, VOUCHED)
    lake.delete("episode = 2")
    kept = state.read_bytes()
    with pytest.raises(pl.DataError, match=r"deleted or replaced rows, so that what was added is not known; delete"):
        count_on(MODEL, lake.name, state, VOUCHED)
    assert state.read_bytes() == kept
