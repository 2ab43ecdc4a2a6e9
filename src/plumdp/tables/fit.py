"""The test of a table: whether tied rows have the same probabilities, and whether rows stay the same over time.

The parts of a row are the choices that are tied by it, or the data before and after a boundary (``fit/time_tests.py``);
see ``fit/time_tests.py``.

Of a model that is seen as a table, what its parameters tie is tested beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import log

import numpy as np

from plumdp.base.rounding import UP
from plumdp.confidence.sets import MEMORY, TESTS, ModelCache
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.fit.context_tests import evidence_of_memory
from plumdp.fit.fit_record import FitTest, ModelFit, TestKind
from plumdp.fit.model_fit import fit_model
from plumdp.fit.part_tests import Parts, log_mean, p_value_of
from plumdp.fit.time_tests import in_words, over_time, weight_of
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.tables.intervals import visits_of, with_expressions_alone
from plumdp.tables.views import ties_rows

_NAMED = 30
_LN_2 = float(np.log(2))


def table_fit(model: ParametricMDP, counts: TransitionCounts) -> ModelFit:
    """Return the p-value of a table, valid at any time, and the tests that speak against it most.

    Half of the evidence is that of ties, and half that of changes over time, each divided equally among rows. If
    contexts were counted, that of memory has its share, and the others what is left.
    """
    rows, is_free = model.rows, model.is_free_row
    members = np.bincount(rows.number, minlength=len(is_free))
    tied, free = np.flatnonzero(is_free & (members > 1)), np.flatnonzero(is_free)
    by_choice = _against_ties(model, counts)[tied]
    weights, names, before = _boundaries(counts)
    pooled = [rows.sum_by_place(seen).astype(np.float64) for seen in (*before, counts.counts)]
    evidence, where = over_time(pooled[:-1], weights, pooled[-1], rows.first)
    changes = evidence[free] if names else np.zeros(0)
    first = rows.representative
    of_kinds = {"class": (log_mean([by_choice]), 0.5), "time": (log_mean([changes]), 0.5)}
    tests = [
        *_named(model, "class", "rows tied to that of", by_choice, first[tied]),
        *_named(model, "time", "a change over time of", changes, first[free]),
    ]
    if counts.contexts:
        share = float(MEMORY / (TESTS + MEMORY))
        place_of = rows.place_of(np.arange(model.graph.n_transitions))[1]
        memory = evidence_of_memory(counts.contexts, place_of, rows.first, free)
        of_kinds = {kind: (mean, (1 - share) * part) for kind, (mean, part) in of_kinds.items()}
        of_kinds["memory"] = memory, share
        tests.append(FitTest("memory", "what came before in the run", "", 0, memory + log(share), 0.0))
    strongest = tuple(sorted(tests, key=lambda test: -test.evidence)[:_NAMED])

    def p_of(kinds: Iterable[str]) -> float:
        terms = [mean + log(share) for mean, share in map(of_kinds.__getitem__, kinds)]
        return p_value_of(float(np.logaddexp.reduce(terms, initial=-np.inf)))

    alone = {kind: (p_of({kind} & {*of_kinds}), p_of({*of_kinds} - {kind})) for kind in ("time", "memory")}
    return ModelFit(
        p_of(of_kinds),
        read_only(np.zeros(0)),
        partial(tuple, strongest),
        p_of_time=alone["time"][0],
        p_without_time=alone["time"][1],
        p_of_memory=alone["memory"][0],
        p_without_memory=alone["memory"][1],
        change=_change(model, pooled, names, where, int(free[np.argmax(changes)])) if len(changes) else "",
    )


def _boundaries(counts: TransitionCounts) -> tuple[list[float], Sequence[str], Sequence[CountArray]]:
    """Return weight, name and counts so far of each boundary, or of each moment of bets."""
    if counts.time is not None:
        before = [*accumulate(counts.time.seen_in_parts(len(counts.counts)))]
        return [weight_of(end) for end in counts.time.ends], counts.time.names, before
    moments = () if counts.pilot is None else counts.pilot.moments
    return [weight_of(1 + i) for i in range(len(moments))], [f"step {each.sum() + 1:,}" for each in moments], moments


def _change(model: ParametricMDP, pooled: Sequence[FloatArray], names: Sequence[str], where: Indices, row: int) -> str:
    """Return the apparent change of a row, given its counts at each boundary and at the end."""
    places, graph = slice(*model.rows.first[row : row + 2]), model.graph
    early, total = pooled[where[row]][places], pooled[-1][places]
    first, last = (seen / max(seen.sum(), 1.0) for seen in (early, total - early))
    place, choice = int(np.argmax(np.abs(last - first))), int(model.rows.representative[row])
    target = graph.describe_state(int(graph.successor[graph.first_transition[choice] + place]))
    step = f"the probability that {graph.describe_choice(choice)} leads to {target}"
    return in_words(step, names[where[row]], first[place], last[place])


def _against_ties(model: ParametricMDP, counts: TransitionCounts) -> FloatArray:
    """Return ln e of each row, its parts being the choices that are tied by it."""
    rows, first = model.rows, model.graph.first_transition
    place = rows.place_of(np.arange(model.graph.n_transitions))[1]
    return Parts(counts.counts.astype(np.float64), first, rows.number, place, rows.first).evidence()


def _named(model: ParametricMDP, kind: TestKind, words: str, evidence: FloatArray, choice: Indices) -> list[FitTest]:
    """Return the strongest tests of a kind, each at its share of the evidence."""
    if not len(evidence):
        return []
    shares = evidence - np.log(2 * len(evidence))
    strongest = np.argsort(-shares, kind="stable")[:_NAMED].tolist()
    where = [model.graph.describe_choice(int(choice[i])) for i in strongest]
    return [
        FitTest(kind, f"{words} {at}", "", 0, float(shares[i]), 0.0) for i, at in zip(strongest, where, strict=True)
    ]


def view_fit(model: ParametricMDP, counts: TransitionCounts) -> ModelFit:
    """Return the p-value of a table, or of the model that it is a view of, and the tests that speak against it most.

    A model with parameters is tested twice: its rows as those of a table, and the rows that have expressions by these.
    Either has half of the error.
    """
    fit, source = table_fit(model, counts), model.source
    if source is None or not ties_rows(source):
        return fit
    part, is_kept = with_expressions_alone(source)
    cache = ModelCache(part)
    own = fit_model(part, visits_of(counts, is_kept), fixed=cache.fixed, cache=cache)
    of_expressions = (replace(test, kind="row", subject=_words(test)) for test in own.tests)
    halves = (replace(test, evidence=test.evidence - _LN_2) for test in (*fit.tests, *of_expressions))
    strongest = sorted(halves, key=lambda test: -test.evidence)
    p_values = {
        name: min(1.0, 2 * min(getattr(fit, name), getattr(own, name)) * UP)
        for name in ("p_value", "p_of_time", "p_without_time", "p_of_memory", "p_without_memory")
    }
    change = own.change if own.p_of_time < fit.p_of_time else fit.change
    return replace(fit, **p_values, change=change, name_tests=partial(tuple, strongest))


def _words(test: FitTest) -> str:
    return f"{test.parameter} differs with {test.subject}" if test.kind == "drift" else test.subject
