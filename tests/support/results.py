"""Results of all kinds with witnesses, each made once and kept until the process ends; copy them before a change."""

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import paid_models
import pandas as pd
from support.verified_results import (
    COST,
    PROPERTY,
    answered,
    coins,
    compared,
    small_counts,
    small_model,
    stages,
    witnessed,
    worn,
    worn_counts,
)

import plumdp
from plumdp.data.counts import TransitionCounts


def with_learned_rewards(folder):
    model, runs = paid_models.machine(), pd.DataFrame(paid_models.runs_of(np.random.default_rng(1), 500))
    counts = plumdp.read_log(model, runs, plumdp.LogFormat(columns={"cost": "price"}), sampling="trajectories").counts
    witnessed(folder, paid_models.COST, model=model, counts=counts)


def by_intervals(model, true, sampling, **options):
    counts = replace(plumdp.simulate(model, true, 2_000, rng=1, max_steps=4), sampling=sampling)
    return lambda folder: witnessed(folder, model=model, counts=counts, confidence_set="interval", **options)


def small(text=PROPERTY, **options):
    return lambda folder: witnessed(folder, text, **options)


def of_worn(text, **options):
    return lambda folder: witnessed(folder, text, model=worn(), counts=worn_counts(), **options)


FIXED = TransitionCounts(small_model().graph, small_counts().counts, "independent")
RESULTS = {
    "chance": small(keeps_data=True),
    "cost": small(COST),
    "steps": small('Pmax=? [ F<=3 "goal" ]', memory=False, policy="uniform"),
    "once": by_intervals(stages(), {"p": 0.6, "q": 0.3}, "trajectories"),
    "walk": small(confidence_set="interval"),
    "fixed": small(confidence_set="interval", counts=FIXED),
    "twins": by_intervals(coins(), {"p": 0.5, "q": 0.5}, "adaptive", text="Rmax=? [ C ]"),
    "rewards": with_learned_rewards,
    "compared": lambda folder: compared(folder, keeps_data=True),
    "the same": lambda folder: compared(folder, "near", "near", COST),
    "complements": lambda folder: compared(folder, "twice", "near", 'Pmax=? [ G !"goal" ]'),
    "answer": lambda folder: answered(folder, 'P>=0.6 [ F "goal" ]', keeps_data=True),
}


@cache
def _made(name):
    folder = TemporaryDirectory()  # which is removed with the last reference
    RESULTS[name](Path(folder.name) / "result")
    return folder


def result_of(name="chance"):
    """Return the folder of a result."""
    return Path(_made(name).name) / "result"


def copy_of(name, folder):
    """Return a copy of a result in a folder."""
    return Path(shutil.copytree(result_of(name), folder / "result"))


def files_of(folder):
    """Return the witness and the certificate of a folder, read anew."""
    return [json.loads((folder / name).read_text()) for name in ("witness.json", "certificate.json")]
