"""Witnesses of tables: random ones are accepted, narrower brackets are not, and errors in ``tables/`` are found.

Each planted error makes a false certificate, which ``verify`` rejects in the layer that is named with it.
"""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.tiers import TIER, size
from support.verified_results import rewrite
from support.verified_tables import PROPERTY, counts_of, few_rows, proposed, saved, walk

import plumdp
from plumdp.confidence import bounds
from plumdp.decisions import verify
from plumdp.tables import bracket, contraction, table_set
from plumdp.tables.plan import BettingStage
from plumdp.verifying.look import Own
from plumdp.verifying.verify import look_again
from plumdp_verify import table_deviation
from studies.free_rows import table_of

pytestmark = pytest.mark.slow
GOOD = 'Pmax=? [ F "good" ]'


def in_layer(folder):
    """Return the first layer that does not hold, with those that use plumdp, or None."""
    report = verify(folder)
    look_again(folder, report)
    return None if report.broken is None else report.broken.layer


def no_curvature(patch):
    patch.setattr(bracket, "curvature", np.zeros_like)


def no_miss(patch):
    patch.setattr(contraction.Contraction, "functional", lambda near, weight: 0.0)


def rows_are_too_certain(patch):
    honest = contraction.row_bounds

    def bounds_of_rows(*args):
        found = honest(*args)
        return replace(found, beta=found.beta / 4, radius=found.radius / 4)

    patch.setattr(contraction, "row_bounds", bounds_of_rows)


def intervals_are_too_narrow(patch):
    honest = bounds.beta_binomial
    patch.setattr(bounds, "beta_binomial", lambda k, n, error: honest(k, n, 100 * error))


def both_sides_have_all_of_the_error(patch):
    patch.setattr(table_set, "equal_parts", lambda error, n: error)


def a_moment_counts_twice(patch):
    honest = table_set.pooled
    patch.setattr(table_set, "pooled", lambda model, counts: 2 * honest(model, counts))


def tied_rows_are_mixed(patch):
    honest = bracket.make_reference

    def reference(plan, *errors):
        found = honest(plan, *errors)
        return replace(found, is_mixed=plan.is_kept & plan.table.is_free)

    patch.setattr(bracket, "make_reference", reference)


def weights_look_at_all_data(patch):
    def stages(plan, moments, sign):
        made = []
        for before, after in pairwise(moments.counts):
            planned = plan.table.visits(after - before) + 0.5
            weight = bracket.next_weights(plan, moments.counts[-1], made, sign, planned)
            made.append(BettingStage(weight, after - before))
        return made

    patch.setattr(bracket, "make_stages", stages)


def the_policy_is_chosen_later(patch):
    """Bets are on a policy that is another one than the pilot leads to, in the last state of the walk."""
    honest = table_set.candidates_of

    def candidates(question, outlook):
        graph = question.model.graph
        policy = honest(question, outlook)[0].copy()
        (state,) = np.flatnonzero(graph.states["x"] == 5)
        policy[state] = sum(graph.first_choice[state : state + 2]) - 1 - policy[state]  # the other one of two
        return (policy,)

    patch.setattr(table_set, "candidates_of", candidates)


WALK = (walk(), counts_of(walk()), PROPERTY)
TIED = (walk(is_tied=True), counts_of(walk(is_tied=True)), PROPERTY)
PLANTED = {  # with the layer that rejects its result, and the table
    no_curvature: ("bracket", WALK),
    no_miss: ("bracket", (*few_rows(), GOOD)),
    rows_are_too_certain: ("bracket", WALK),
    intervals_are_too_narrow: ("set", WALK),
    both_sides_have_all_of_the_error: ("budget", WALK),
    a_moment_counts_twice: ("counts", WALK),
    tied_rows_are_mixed: ("bets", TIED),
    weights_look_at_all_data: ("directions", WALK),
    the_policy_is_chosen_later: ("directions", WALK),
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_error_is_found_in_its_layer(tmp_path, monkeypatch, plant):
    layer, (model, counts, text) = PLANTED[plant]
    with monkeypatch.context() as patch:
        plant(patch)
        saved(tmp_path / "result", model, counts, text)
    assert in_layer(tmp_path / "result") == layer


def test_without_an_error_all_layers_hold(tmp_path):
    for name, case in {"walk": WALK, "few": (*few_rows(), GOOD)}.items():
        saved(tmp_path / name, *case)
        assert in_layer(tmp_path / name) is None


def test_the_chain_is_compared_with_the_model(tmp_path):
    saved(tmp_path / "result", *TIED)
    for model, layer in ((TIED[0], None), (WALK[0], "model")):
        report = verify(tmp_path / "result")
        look_again(tmp_path / "result", report, Own(model))
        assert (None if report.broken is None else report.broken.layer) == layer


def random_case(seed):
    """Return a random walk, runs of a random number, a property, and options."""
    rng = np.random.default_rng(seed)
    model = walk(is_tied=bool(rng.random() < 0.4), size=int(rng.integers(3, 9)), pays=float(rng.choice([1.0, 0.25])))
    counts = counts_of(model, int(np.exp(rng.uniform(np.log(30), np.log(20_000)))), seed=seed)
    texts = [PROPERTY, 'Pmin=? [ F "goal" ]', 'Pmax=? [ G !"goal" ]', 'Rmin=? [ F "end" ]', "Rmax=? [ C ]"]
    if rng.random() < 0.2:
        return model, counts, "Rmax=? [ C{0.95} ]", {}
    return model, counts, str(rng.choice(texts)), {"policy": "uniform"} if rng.random() < 0.3 else {}


@pytest.mark.parametrize("seed", range(size(2, 150)))
def test_random_tables_are_accepted_and_narrower_brackets_are_not(tmp_path, monkeypatch, seed):
    """With as many rounds in both, a bracket and its proof agree to a thousandth of its width."""
    model, counts, text, options = random_case(seed)
    monkeypatch.setattr(contraction, "_STALLS", table_deviation._STALLS)
    monkeypatch.setattr(contraction, "_ROUNDS", table_deviation._ROUNDS)
    certificate = saved(tmp_path / "result", model, counts, text, **options)
    assert in_layer(tmp_path / "result") is None
    off = 1e-3 * (certificate.upper - certificate.lower)
    for name, end in (("lower", certificate.lower + off), ("upper", certificate.upper - off)):
        if np.isfinite(end):
            kept = (tmp_path / "result" / "witness.json").read_text(), certificate.lower, certificate.upper
            changed = {"lower": kept[1], "upper": kept[2]} | {name: end}
            changed = {key: value for key, value in changed.items() if np.isfinite(value)}
            rewrite(
                tmp_path / "result",
                lambda witness, changed=changed: witness["claim"].update(changed),
                lambda content, changed=changed: content.update(changed),
            )
            assert verify(tmp_path / "result").broken.layer == "bracket"


@pytest.mark.parametrize("instance", ["sparse:700" if TIER == "night" else "sparse:30"])
def test_a_table_of_many_rows_is_accepted(instance):
    model, point = table_of(instance)
    counts = plumdp.simulate(model, point, 20_000, rng=1, max_steps=400, stop=model.labels["deadlock"])
    _, _, witness, broken = proposed(model, counts, GOOD)
    assert broken is None
    assert json.loads(witness)["bets"] is not None
