"""Steps of which a log has rows that differ: they alone are left out, and bets, pilots and copies of others stay."""

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from in_format import in_format
from log_models import LAMP, recount, recount_part, runs

import plumdp as pl
from plumdp.data import sql
from plumdp.data.logs import read_log
from plumdp.data.sql import counts_query

FORMS = ("transitions", "trajectories")
ANYHOW = {"on_unmatched": "report", "censoring": "unrelated"}
ROWS = runs(LAMP, {"p": 0.6}, 80, max_steps=6)[0]
(p,) = pl.parameters("p")
COIN = pl.explore(
    lambda s: {"go": [(p, s._replace(heads=1)), (1 - p, s._replace(heads=0))]},
    {"heads": 0},
    space=pl.ParameterSpace.unit("p"),
)


def dirty(form, seed, n_others=12):
    """Return the rows of runs with gaps, copies and rows that contradict others, in no order."""
    rng = np.random.default_rng(seed)
    rows = [dict(row) for row in ROWS[form] if rng.random() > 0.03]
    rows += [dict(rows[i]) for i in rng.choice(len(rows), 30)]
    rows += [dict(rows[i]) | {"lit": not rows[i]["lit"]} for i in rng.choice(len(rows), n_others)]
    return [rows[i] for i in rng.permutation(len(rows))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("file", ["log.csv", "log.parquet", "frame", "query"])
def test_copies_contradictions_and_gaps_are_counted_as_a_slow_recount_does(form, file, tmp_path):
    for seed in range(2):
        rows = dirty(form, seed)
        log = frame = pd.DataFrame(rows)
        if file == "query":
            names = {"episode": "episode", "step": "step"}
            query = counts_query(
                LAMP, pl.LogFormat(columns=names, form=form), table="log", dialect="duckdb", order="runs"
            )
            with pl.data.duckdb_engine.connect() as connection:
                connection.register("log", frame)
                log = connection.execute(query).df()
        elif file != "frame":
            log = tmp_path / f"{seed}-{file}"
            frame.to_csv(log, index=False) if file == "log.csv" else frame.to_parquet(log)
        read = read_log(LAMP, log, **in_format(**ANYHOW, **{} if file == "query" else {"order": "runs"}))
        counts, kinds = recount(rows, LAMP.graph, form)
        assert {kind: n for kind, n in read.report.rows.items() if n} == kinds
        assert min(kinds["copy"], kinds["repeated step"]) > 10
        assert np.array_equal(read.counts.counts, counts)
        first = [
            recount([row for row in rows if row["episode"] < n], LAMP.graph, form)[0].tolist() for n in (4, 16, 64)
        ]
        assert [moment.tolist() for moment in read.counts.pilot.moments] == first


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_file", [False, True])
def test_moments_of_rows_leave_out_steps_that_are_contradicted_later(form, is_file, tmp_path):
    rows = dirty(form, 1)
    log = pd.DataFrame(rows)
    if is_file:
        log.to_parquet(tmp_path / "log.parquet")
        log = tmp_path / "log.parquet"
    pilot = read_log(LAMP, log, order="time", **in_format(**ANYHOW)).counts.pilot
    assert [moment.tolist() for moment in pilot.moments] == [
        recount_part(rows, LAMP.graph, form, lambda i, _, n=n: i < n).tolist() for n in (64, 256)
    ]


def test_one_contradiction_takes_away_one_step_and_the_one_that_leads_to_it():
    """In a run 0, 1, 2, 3 whose step 2 has two states, steps 1 and 2 are not known; the next run is as it was."""
    states = [0, 0, 1, 0, 1, 0, 0, 1, 1]
    log = pd.DataFrame(
        {"episode": [1] * 5 + [2] * 4, "step": [0, 1, 2, 2, 3, 0, 1, 2, 3], "heads": states, "action": "go"}
    )
    report = read_log(COIN, log, **in_format(**ANYHOW)).report
    assert {kind: n for kind, n in report.rows.items() if n} == {
        "matched": 1 + 3,
        "censored": 2,
        "gap in steps": 1,
        "repeated step": 2,
    }
    assert [*report.worst["repeated step"]] == ["episode 1, step 2 (2 rows: heads=1 in row 3, heads=0 in row 4)"]
    assert report.assuming == (
        "rows with the same run and step are records of one step, and whether they contradict each other does not "
        "depend on where steps led",
    )


def test_a_pair_is_told_by_the_columns_of_the_log_and_its_files(tmp_path):
    for file, x in (("a.csv", 1), ("b.csv", 0)):
        rows = "".join(f"{run},0,0,go,0\n" for run in range(*((1, 9) if x else (9, 17))))
        (tmp_path / file).write_text(f"pump,the step,heads,action,next_heads\n70,3,0,go,{x}\n{rows}")
    columns = {"episode": "pump", "step": "the step"}
    report = read_log(COIN, tmp_path, **in_format(columns=columns, **ANYHOW)).report
    assert [*report.worst["repeated step"]] == [
        "episode 70, step 3 (2 rows: next_heads=1 in row 1 of a.csv, next_heads=0 in row 1 of b.csv)"
    ]


# rows of a step that differ are left out whatever they say: so nothing is learned of a step because of its outcome


def kept_heads(form, outcomes, second):
    """Return heads and tails that are counted of runs of one throw; some have another row, which says the opposite."""
    rows = []
    for run, (heads, is_twice) in enumerate(zip(outcomes, second, strict=True)):
        for outcome in (heads, 1 - heads)[: 1 + is_twice]:
            if form == "transitions":
                rows.append({"episode": run, "step": 0, "heads": 0, "action": "go", "next_heads": outcome})
            else:
                rows.append({"episode": run, "step": 1, "heads": outcome, "action": None})
        if form == "trajectories":
            rows.append({"episode": run, "step": 0, "heads": 0, "action": "go"})
    counts = read_log(COIN, pd.DataFrame(rows), **in_format(**ANYHOW)).counts.counts
    graph = COIN.graph
    is_heads = graph.states["heads"][graph.successor] == 1
    return int(counts[is_heads].sum()), int(counts[~is_heads].sum())


def distribution(form, chance=Fraction(3, 10), second=(True, False, False)):
    """Return the exact probability of each number of heads among the throws that are counted."""
    found = {}
    for outcomes in product((0, 1), repeat=len(second)):
        weight = Fraction(1)
        for heads in outcomes:
            weight *= chance if heads else 1 - chance
        kept = kept_heads(form, outcomes, second)
        found[kept] = found.get(kept, 0) + weight
    return found


def binomial(n, chance=Fraction(3, 10)):
    by_heads = {}
    for outcomes in product((0, 1), repeat=n):
        k = sum(outcomes)
        by_heads[k, n - k] = by_heads.get((k, n - k), 0) + chance**k * (1 - chance) ** (n - k)
    return by_heads


@pytest.mark.parametrize("form", FORMS)
def test_throws_that_are_counted_have_the_chances_of_all_throws(form):
    """Which of them have a false second row was fixed before: what the certificate assumes."""
    assert distribution(form) == binomial(2)


@pytest.mark.slow
def test_keeping_the_better_of_two_rows_is_found(monkeypatch):
    """Plants the error that of two rows which contradict each other the worse one is dropped, and the other counts."""
    move = f'WHEN count(*) OVER (PARTITION BY "{sql.EPISODE}", "{sql.STEP}") > 1 THEN \'duplicate\''
    assert move in sql._PLACE_OF_MOVE
    kept = move.replace("'duplicate'", "CASE WHEN \"next_heads\" = 1 THEN 'step' ELSE 'duplicate' END")
    monkeypatch.setattr(sql, "_PLACE_OF_MOVE", sql._PLACE_OF_MOVE.replace(move, kept))
    assert distribution("transitions") != binomial(2)
    assert sum(weight * k for (k, _), weight in distribution("transitions").items()) == 1 + 2 * Fraction(3, 10)


def two_runs_of_one_name(n, seed):
    """Return throws of two files that both number their runs from 0: heads are rare, so most pairs of runs agree."""
    rng = np.random.default_rng(seed)
    rows = [(run, step, 0, "go", int(rng.random() < 0.1)) for _ in range(2) for run in range(n) for step in range(3)]
    return pd.DataFrame(rows, columns=["episode", "step", "heads", "action", "next_heads"]).sample(
        frac=1, random_state=1
    )


def test_runs_that_share_names_do_not_count_where_they_agree():
    """Of two throws at 0.1 that count once if they agree, and not at all otherwise, heads are 0.01 of 0.82."""
    log = two_runs_of_one_name(60, 1)
    assert read_log(COIN, log, **in_format(**ANYHOW)).report.rows["repeated step"] == len(log)
    others = log.assign(episode=1000 + log.index)  # runs of which no step is there twice, so that most steps are not
    both = pd.concat([log, others[: len(log)], others.assign(episode=5000 + log.index)])
    read = read_log(COIN, both, order="runs", **in_format(**ANYHOW))
    assert read.report.rows["repeated step"] == len(log)
    assert not read.counts.pilot.moments


def test_a_correction_in_a_run_of_copies_elsewhere_is_no_shared_name():
    log = pd.DataFrame({"episode": np.repeat(np.arange(40), 6), "step": np.tile(np.arange(6), 40), "heads": 0})
    log = log.assign(action="go", next_heads=0)
    again = pd.concat([log, log[log.episode < 3], log[(log.episode == 9) & (log.step == 2)].assign(next_heads=1)])
    rows = read_log(COIN, again, **in_format(**ANYHOW)).report.rows
    assert (rows["copy"], rows["repeated step"]) == (18, 2)
