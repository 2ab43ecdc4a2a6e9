"""The parts of plumdp that the ablation leaves out, each by a patch of the functions that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from plumdp.base.errors import UNSAID

Patch: TypeAlias = Callable[[Any], Any]


class Part(NamedTuple):
    """A part by name, and for each place, as module:name or module:table[key], what is there without it."""

    name: str
    off: Mapping[str, Patch]  # the first place is one that is called wherever the part is used


def always(value: Any) -> Patch:
    """Return a patch by a function that returns a value."""
    return lambda _: lambda *_args, **_options: value


def given(**options: Any) -> Patch:
    """Return a patch that passes options on."""
    return lambda was: lambda *args, **others: was(*args, **{**others, **options})


def same(was: Any) -> Any:
    """Return what was there, of a place that only tells whether a part is used."""
    return was


def at_frequencies(plan: Any, probability: Any, _: Any) -> Any:
    """Return the equations of the frequencies, in place of a least favourable table."""
    equations = import_module("plumdp.tables.chain").regular_equations(plan.table, probability)
    return None if equations is None else (equations, equations.values())


def in_one_stage(was: Any) -> Any:
    """Return a patch by which weights are fixed once."""
    return lambda plan, m, sign: was(plan, replace(m, counts=(m.counts[0], m.counts[-1]), lengths=m.lengths[:1]), sign)


SETS, TABLE, REGION = "plumdp.confidence.likelihood:", "plumdp.tables.bracket:", "plumdp.region.likelihood_region:"
VALUES, LEARN, COUPLED = "plumdp.certifying.valuation:", "plumdp.learning.", "plumdp.solver.coupled."
PARTS = (
    Part("bets in cells of the space", {f"{SETS}Cells": same, f"{LEARN}learn:uses_cells": always(False)}),
    Part("likelihood of hidden paths", {
        f"{SETS}PathEvidence": same, f"{LEARN}learn:Counted": lambda was: lambda *a: was(*a[:7], False),
    }),
    Part("pieces", {"plumdp.certifying.on_pieces:find_by_pieces": same, f"{VALUES}PROVERS[pieces]": always(UNSAID)}),
    Part("expansions", {f"{VALUES}find_coupled_bounds": same, f"{VALUES}PROVERS[expansion]": always(UNSAID)}),
    Part("expansions of second order", {
        f"{COUPLED}brackets:Expandable.approximations": lambda was: lambda *a, orders: was(*a, orders=(1,)),
        f"{COUPLED}terms:expand_by_steps": lambda was: lambda *a, order: was(*a, order=1),
    }),
    Part("cycles", {f"{COUPLED}bounds:_of_average": always(UNSAID), f"{COUPLED}bounds:_cycle_term": always(UNSAID)}),
    Part("sizes of bets renewed", {f"{SETS}find_horizons": lambda was: lambda *a: was(*a)._replace(is_renewed=False)}),
    Part("bets across values", {f"{SETS}place_bets": always(None), f"{SETS}likelihood_shares": given(is_asked=False)}),
    Part("bets across outcomes", {
        f"{SETS}_across_outcomes": same, f"{SETS}likelihood_shares": given(has_many_parameters=False),
    }),
    Part("likelihoods of blocks", {
        f"{SETS}_likelihoods": same, "plumdp.confidence.likelihood_table:LikelihoodTable.blocks": lambda _: [],
    }),
    Part("intervals in the region", {f"{REGION}_strips": always([])}),
    Part("polytope around the ellipsoid", {f"{REGION}_tangents": same, f"{REGION}_MAX_RANK": lambda _: -1}),
    Part("coin trees", {"plumdp.confidence.likelihood_table:find_tree": always(None)}),
    Part("factors of products", {"plumdp.confidence.likelihood_table:_ways_of_factors": always(None)}),
    Part("search for policies", {f"{VALUES}search_policies": always([])}),
    Part("models as tables", {
        f"{LEARN}methods:SETS[table]": lambda kind: replace(kind, is_best=lambda model: model.is_table)
    }),
    Part("sets besides intervals", {
        f"{LEARN}methods:default_set": lambda _: lambda model, **_o: "table" if model.counted.is_table else "interval",
    }),
    Part("drift cuts", {
        f"{LEARN}model_tests:_within_drifts": lambda _: lambda learned, _fit: learned.region,
        "plumdp.confidence.tolerant:tolerant_shares": given(has_drifts=False),
    }),
    Part("bets on values of tables", {
        "plumdp.tables.values:table_bounds": same, f"{VALUES}PROVERS[bets]": always(UNSAID),
    }),
    Part("runs that move together", {
        "plumdp.certifying.in_tables:difference_by_intervals": same, f"{VALUES}PROVERS[intervals]": always(UNSAID),
    }),
    Part("columns of the inverse", {"plumdp.tables.contraction:_columns": always(None)}),
    Part("candidates", {
        "plumdp.tables.candidates:_trusted": lambda was: lambda *a: [np.ones_like(each) for each in was(*a)],
    }),
    Part("moments before the end", {
        f"{TABLE}best_end": lambda _: lambda *a: import_module(TABLE[:-1]).bracket_end(*a),
    }),
    Part("weights renewed", {f"{TABLE}make_stages": in_one_stage}),
    Part("a least favourable table", {"plumdp.tables.plan:_least_favourable": lambda _: at_frequencies}),
)  # fmt: skip


@contextmanager
def patched(patches: Mapping[str, Patch]) -> Iterator[None]:
    """Put something else in some places for a while."""
    undo: list[Callable[[], Any]] = []
    for place, change in patches.items():
        module, _, names = place.removesuffix("]").partition(":")
        *path, last = names.replace("[", ".").split(".")
        owner: Any = import_module(module)
        for name in path:
            owner = getattr(owner, name)
        is_table = isinstance(owner, MutableMapping)
        put = partial(owner.__setitem__ if is_table else partial(setattr, owner), last)
        undo.append(partial(put, owner[last] if is_table else vars(owner)[last]))
        put(change(owner[last] if is_table else getattr(owner, last)))
    try:
        yield
    finally:
        for back in undo:
            back()
