"""What holds if nothing has changed since a run that was chosen by looking."""

import numpy as np
import pandas as pd
import pytest
from coin_model import COIN
from command_line import plumdp

import plumdp as pl
from plumdp.certifying import since
from plumdp.certifying.since import certify_since

HEADS = 'P=? [ F "heads" ]'
MODEL = """
import plumdp
(p,) = plumdp.parameters("p")
def step(state):
    if state.x:
        return {"stay": [(1, state)]}
    return {"go": [(p, state._replace(x=1)), (1 - p, state._replace(x=2))]}
model = plumdp.explore(step, {"x": 0}, space=plumdp.ParameterSpace.unit("p"))
"""


@pytest.fixture(scope="module")
def rows():
    """Return throws of a coin in their order, which is another coin from run 600 on."""
    rng = np.random.default_rng(1)
    heads = rng.random(1000) < np.where(np.arange(1000) < 600, 0.1, 0.3)
    return pd.DataFrame({"episode": range(1000), "x": 0, "action": "go", "next_x": np.where(heads, 1, 2)})


@pytest.fixture(scope="module")
def log(rows):
    return pl.read_log(COIN, rows, pl.LogFormat(form="transitions"), order="runs")


def test_where_the_model_changed_the_end_of_the_data_is_certified(log):
    whole = pl.certify(COIN, log, HEADS, confidence=0.95)
    assert whole.status == "model rejected"
    assert "(certify_since, or certify --since), which pays for the choice of the start" in whole.claim.reason
    found = certify_since(COIN, log, HEADS, "run 590", confidence=0.95)
    assert found.lower < 0.3 < found.upper < 0.5
    assert found.rests_on.assumptions[0].startswith(
        "nothing has changed since run 609; this holds for whichever start you choose"
    )
    assert "the runs of the log are numbered in the order in which they were made" in found.rests_on.assumptions[1]
    before = [*log.counts.time.seen_in_parts(COIN.graph.n_transitions)][: 1 + log.counts.time.names.index("run 609")]
    late = log.counts.counts - sum(before)
    alone = pl.certify(COIN, pl.TransitionCounts(COIN.graph, late, "adaptive"), HEADS, confidence=0.95)
    assert found.lower < alone.lower < alone.upper < found.upper  # which does not pay for the choice
    assert found.beside.approximate == pytest.approx(alone.beside.approximate)


def test_the_errors_of_all_starts_sum_to_at_most_that_which_is_printed(log, monkeypatch):
    errors = []

    def noted(*_args, confidence, **_options):
        errors.append(1 - confidence)
        raise InterruptedError

    monkeypatch.setattr(since, "certify", noted)
    for name in log.counts.time.names:
        with pytest.raises(InterruptedError):
            certify_since(COIN, log, HEADS, name, confidence=0.9)
    assert len(errors) > 25
    assert 0.05 < sum(errors) <= 0.1


def test_data_without_an_order_and_runs_after_the_last_part_are_refused(log):
    counts = pl.TransitionCounts(COIN.graph, log.counts.counts, "adaptive")
    with pytest.raises(pl.DataError, match="since='run 17': the order of these data is not known"):
        certify_since(COIN, counts, HEADS, "run 17")
    with pytest.raises(pl.DataError, match="since='Monday': no part of the data begins there or later; parts begin"):
        certify_since(COIN, log, HEADS, "Monday")


@pytest.mark.slow
def test_the_command_says_what_holds_since_a_run(rows, tmp_path):
    rows.to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "coin.py").write_text(MODEL, encoding="utf-8")
    asked = ("certify", str(tmp_path / "coin.py"), str(tmp_path / "log.csv"), "-p", "P=? [ F x=1 ]", "--order", "runs")
    assert plumdp(*asked).code == 3
    done = plumdp(*asked, "--since", "run 601")
    assert (done.code, done.err) == (0, "")
    assert "nothing has changed since run 609" in " ".join(done.out.split())
    saved = plumdp(*asked, "--since", "run 601", "-o", str(tmp_path / "result"))
    assert (saved.code, (tmp_path / "result").exists()) == (2, False)
    assert "--since and --output: ask one thing at a time" in saved.err
    for option in (("--model-tolerance", "0.1"), ("--confidence-set", "interval"), ("--witness",)):
        refused = plumdp(*asked, "--since", "run 601", *option)
        assert (refused.code, f"--since and {option[0]}: ask one thing at a time" in refused.err) == (2, True)
