"""The README is short, and the trial that comes with the package is what its page says."""

from pathlib import Path

import pandas as pd
import pytest

from plumdp.data.duckdb_tables import example_file

KAPLAN_MEIER = {  # share of the ill after 360 and 720 days, by lifelines from the days of ACTG 175
    "zidovudine": (0.10334, 0.25274),
    "zidovudine+didanosine": (0.04077, 0.12868),
    "zidovudine+zalcitabine": (0.03894, 0.12266),
    "didanosine": (0.04900, 0.15602),
}


def test_the_readme_has_at_most_900_words():
    assert len((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split()) <= 900


def test_the_life_table_of_the_trial_is_that_of_kaplan_and_meier():
    """Who is lost within a step has no row, and who becomes ill has: steps of a year are 13 points off in three."""
    rows = pd.read_parquet(example_file("example:trial"))
    rows["falls_ill"] = rows.groupby("patient").status.shift(-1) == "ill"
    steps = rows.dropna(subset="treatment").groupby(["treatment", "month"]).falls_ill.agg(["mean", "size"])
    for drug, both in KAPLAN_MEIER.items():
        well = (1 - steps["mean"][drug]).cumprod()
        assert (1 - well[11], 1 - well[23]) == pytest.approx(both, abs=0.001)


def test_few_patients_of_the_trial_are_lost_within_a_step():
    rows = pd.read_parquet(example_file("example:trial"))
    lost = rows[rows.treatment.isna() & (rows.status == "well") & (rows.month < 24)].month.value_counts()
    assert lost.sum() == 191
    assert (lost / (rows[rows.status == "well"].month.value_counts())).max() < 0.0105
