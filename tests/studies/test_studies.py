"""Studies run in cells that are kept, resumed and the same whoever runs them; reports say what the rows say."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from evidence import until_refuted
from tiers import size

from plumdp.base.errors import DataError, ModelError
from plumdp.case_studies import case_study
from plumdp.confidence import run_bets
from plumdp.data.duckdb_tables import read_parquet
from studies import games, hazards, registry
from studies.free_rows import table_of
from studies.published import ELLIPSOIDS, PUBLISHED
from studies.registry import STUDIES, find_study, run_cell
from studies.report import write_report
from studies.runner import is_done, read_cells, run
from studies.study import Cell, Plan, Study


@pytest.mark.parametrize("n_risks", [1, 2])
def test_units_have_the_risks_that_the_study_states(n_risks):
    """Of n months at risk, a share of at most 5 standard deviations from the risk ends with an event."""
    frame = hazards.log_of(20_000, n_risks, np.random.default_rng(1))
    risks = hazards.risks_of(n_risks)[frame.month] * np.where(frame.arm == "treat", hazards.RATIO, 1.0)
    for arm in hazards.ARMS[:2]:
        for months in (frame.month < hazards.SPLIT, frame.month >= hazards.SPLIT):
            rows = months & (frame.arm == arm)
            risk, n = risks[rows].mean(), rows.sum()
            assert abs(frame.next_event[rows].mean() - risk) < 5 * (risk / n) ** 0.5


@pytest.mark.night
def test_sets_hold_the_truth():
    assert sum(hazards.misses(60, 1, 0.01, seed) for seed in range(size(1, 20))) == 0


@pytest.mark.night
@pytest.mark.parametrize("kind", games.KINDS)
def test_games_are_lost_no_more_often_than_the_error_allows(kind):
    n = size(3, 300)
    assert not until_refuted(games.played(kind, 0.1, n), rate=0.1).is_refuted


@pytest.mark.slow
def test_a_third_of_the_goal_is_found_out(monkeypatch):
    """Bets on whole runs that need a third of what they should win lose more games."""
    end = run_bets._lower_end
    monkeypatch.setattr(run_bets, "_lower_end", lambda value, least, side, *rest: end(value, least, 3 * side, *rest))
    assert until_refuted(games.played("runs", 0.1, 400), rate=0.1).is_refuted


SMALL = [Cell("table", instance, 1, 300) for instance in ("betting:5", "glider:5,5,4,4", "parallel:2,0")]
UNLIKE = {"memory", "build_seconds", "solve_seconds"}  # from one run to the next


def numbers(folder):
    """Return all columns that must not depend on time and place."""
    return {name: list(values) for name, values in read_cells(folder).items() if name not in UNLIKE}


@pytest.mark.night
def test_every_bracket_of_the_table_holds_the_true_value_and_relaxations_are_ordered():
    rows = run_cell(Cell("table", "aircraft:20,10", 1, 20_000))
    assert len(rows) == 8
    assert all(row["holds"] and row["lower"] <= row["value"] <= row["upper"] for row in rows)
    for sets in ("interval", "published-interval"):
        gaps = {row["relaxation"]: row["gap"] for row in rows if row["sets"] == sets}
        assert gaps["rectangular"] <= gaps["expression"] <= min(gaps["interval"], gaps["parameter"])


@pytest.mark.night
def test_a_study_goes_on_where_it_stopped(tmp_path):
    def stop(cell, seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SMALL, tmp_path, jobs=1, finished=stop)
    (first,) = [cell for cell in SMALL if is_done(cell, tmp_path)]
    again = []
    run(SMALL, tmp_path, jobs=1, finished=lambda cell, seconds: again.append(cell))
    assert sorted(cell.name for cell in [first, *again]) == sorted(cell.name for cell in SMALL)
    (tmp_path / "whole").mkdir()
    run(SMALL, tmp_path / "whole", jobs=1)
    assert numbers(tmp_path) == numbers(tmp_path / "whole")


@pytest.mark.night
def test_half_a_file_and_another_version_are_run_again(tmp_path):
    cell = SMALL[0]
    (tmp_path / f"{cell.name}.tmp").write_bytes(b"PAR1")
    assert not is_done(cell, tmp_path)
    (tmp_path / f"{cell.name}.parquet").write_bytes(b"PAR1")
    assert not is_done(cell, tmp_path)
    run([cell], tmp_path, jobs=1)
    assert is_done(cell, tmp_path)
    assert not is_done(replace(cell, seed=2), tmp_path)


TWO_STUDIES = [*SMALL, Cell("online", "aircraft:20,10", 3, 200)]


def by_cell(folder):
    """Return the numbers of each cell of both studies, without its seconds."""
    files = [folder / f"{cell.name}.parquet" for cell in TWO_STUDIES]
    unlike = {*UNLIKE, "seconds"}
    return [{name: list(column) for name, column in read_parquet([f]).items() if name not in unlike} for f in files]


@pytest.mark.night
def test_the_numbers_are_the_same_in_this_process_and_in_two_others(tmp_path):
    for jobs in (1, 2):
        run(TWO_STUDIES, tmp_path / str(jobs), jobs=jobs)
    assert by_cell(tmp_path / "1") == by_cell(tmp_path / "2")


@pytest.mark.night
def test_an_error_in_another_process_names_its_cell_and_ends_the_study(tmp_path):
    cells = [Cell("table", "aircraft:0,0", 1, 300), SMALL[0]]
    with pytest.raises(ModelError, match=r"^table aircraft:0,0, seed 1: .aircraft:0,0. is not a published instance"):
        run(cells, tmp_path, jobs=2)


@pytest.mark.night
@pytest.mark.parametrize(
    ("study", "cells", "words", "figures"),
    [
        ("table", SMALL, "The true value lies in 24 of 24 brackets.", {"gaps", "seconds"}),
        ("online", [Cell("online", "betting:5", s, 200) for s in (1, 2)], "Medians over 2 seeds", {"online"}),
        ("ellipsoid", [Cell("ellipsoid", "betting:5", 1, 300)], "## Relative gap, P_R", {"ellipsoid"}),
        ("scaling", [Cell("scaling", "betting:5", 1, 300)], "| betting:5 | 225 |", {"scaling", "memory"}),
    ],
)
def test_a_report_has_tables_and_pictures(study, cells, words, figures, tmp_path):
    run(cells, tmp_path / "cells", jobs=1)
    report = write_report(study, "quick", tmp_path / "cells", tmp_path, command="python -m studies")
    text = report.read_text(encoding="utf-8")
    assert words in text
    assert {path.stem for path in tmp_path.glob("*.png")} == figures == {path.stem for path in tmp_path.glob("*.svg")}
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"({path.name})" in text
    assert (tmp_path / "results.parquet").is_file()


@pytest.mark.night
def test_infinite_bounds_survive_the_file(tmp_path):
    """Three runs leave expressions untried, so that nothing bounds the reward of Glider from above."""
    cell = Cell("table", "glider:11,9", 1, 3)
    run([cell], tmp_path, jobs=1)
    columns = read_cells(tmp_path)
    assert np.isinf(columns["upper"]).any()
    assert list(columns["upper"]) == [row["upper"] for row in run_cell(cell)]


def test_published_figures_agree_with_themselves():
    """A published gap is the width of the published bracket, relative to the true value, up to their rounding."""
    values = {"aircraft:50,10": 0.7458826730, "betting:100": 44.8582771529, "rover:50,50": 0.5011026728}
    for instance, value in values.items():
        for entry in PUBLISHED[instance].values():
            if not entry.is_time_out:
                assert entry.gap == pytest.approx((entry.upper - entry.lower) / value, abs=0.011, rel=0.005)
    assert sum(entry.is_time_out for entries in PUBLISHED.values() for entry in entries.values()) == 6
    assert PUBLISHED.keys() == ELLIPSOIDS.keys()


def test_plans_name_case_studies():
    for study in STUDIES:
        for plan in study.plans.values():
            assert plan.seeds
            for instance in plan.instances:
                study.check(instance)


@pytest.mark.parametrize("instance", ["mixture", "mixture:1", "mixture:x", "betting:5"])
def test_a_layered_model_that_there_is_not_is_refused(instance):
    with pytest.raises(
        DataError, match=f"^{instance!r}: give one of mixture, sparse, rare, bilinear, blocks and a number"
    ):
        find_study("parameters").check(instance)


@pytest.mark.parametrize("instance", ["walk", "walk:3", "walk:x", "betting:5"])
def test_a_table_that_there_is_not_is_refused(instance):
    with pytest.raises(
        DataError, match=f"^{instance!r}: give one of walk, rare, grid, sparse, exits, near and a number"
    ):
        find_study("tables").check(instance)


@pytest.mark.parametrize("instance", ["walk:6", "rare:4", "grid:4", "exits:5", "near:20"])
def test_tables_are_certified_between_the_limit_and_twice_the_intervals(instance):
    """Their values are those of the equations at the true table, and brackets hold them."""
    model, point = table_of(instance)
    rows = [{"instance": instance} | row for row in find_study("tables").run(Cell("tables", instance, 1, 20_000))]
    n, graph = int(model.labels["deadlock"].argmax()), model.graph
    moves = np.zeros((n + 2, n + 2))
    moves[graph.choice_of_transition(), graph.successor] = point
    value = np.linalg.solve(np.eye(n) - moves[:n, :n], moves[:n, n])[graph.initial_state]
    for row in rows:
        assert row["value"] == pytest.approx(value, rel=1e-6)
        assert row["lower"] <= value <= row["upper"]
        assert row["limit"] < row["half"] < 2 * row["intervals"]
    report = find_study("tables").describe(rows)
    assert f"| {instance} |" in report[1]


def test_a_cell_is_the_same_after_it_was_sent_to_a_worker_and_so_is_what_runs_it():
    for study in STUDIES:
        cell = Cell(study.name, "betting:5", 1, 300)
        assert pickle.loads(pickle.dumps(cell)) == cell
        assert pickle.loads(pickle.dumps(study.run)) is study.run


@pytest.mark.night
def test_a_study_of_ones_own_is_one_line_in_the_table(tmp_path, monkeypatch):
    def count_states(cell):
        return [{"states": case_study(cell.instance).model.graph.n_states}]

    def describe(rows):
        return [f"{row['instance']} has {row['states']} states." for row in rows]

    plans = {"quick": Plan(("betting:5",), (1,), 1), "full": Plan(("betting:5",), (1,), 1)}
    mine = Study("states", "numbers of states", plans, count_states, describe, lambda rows, folder: [])
    monkeypatch.setattr(registry, "STUDIES", (*STUDIES, mine))
    run([Cell("states", "betting:5", 1, 1)], tmp_path / "cells", jobs=1)
    report = write_report("states", "quick", tmp_path / "cells", tmp_path, command="python -m studies states")
    lines = report.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Study states (quick)"
    assert lines[-1] == "betting:5 has 225 states."


@pytest.mark.night
def test_differences_are_no_wider_than_those_of_brackets_and_no_narrower_than_the_limit():
    rows = [
        {"instance": "betting:5", "seed": 1} | row
        for row in find_study("differences").run(Cell("differences", "betting:5", 1, 5_000))
    ]
    assert {row["rival"] for row in rows} >= {"uniform", "middle"}
    for row in rows:
        assert row["limit"] < row["width"] <= row["brackets"] * (1 + 1e-9)
        assert row["holds"]
    report = find_study("differences").describe(rows)
    assert f"{len(rows)} of {len(rows)} brackets" in report[-1]
