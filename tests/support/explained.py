"""Betting with 1,000 runs, certified and explained once for all files of a worker: advice takes longest."""

from functools import cache

import plumdp as pl

STUDY = pl.case_study("betting:5")
COUNTS = pl.simulate(STUDY.model, STUDY.true_point, 1000, rng=1, max_steps=6)


@cache
def learned():
    return pl.learn(STUDY.model, COUNTS, objectives=[STUDY.objective])


@cache
def certificate():
    return pl.conclude(learned(), STUDY.objective)


@cache
def findings():
    return pl.explain(learned(), certificate())
