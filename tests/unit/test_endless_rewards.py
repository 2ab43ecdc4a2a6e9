"""Infinite rewards: the certificate tells a target that no policy surely reaches from a lack of data."""

import numpy as np
import pytest

import plumdp as pl

(P,) = pl.parameters("p")


def _model(has_detour):
    """Return a walk that wins with p and is lost otherwise; with a detour there is an action that tries again."""

    def step(s):
        if s.at == 0:
            go = [(P, s._replace(at=1)), (1 - P, s._replace(at=2))]
            again = [(P, s._replace(at=1)), (1 - P, s)]
            return {"go": go, "retry": again} if has_detour else {"go": go}
        return {"stay": [(1, s)]}

    return pl.explore(
        step,
        {"at": 0},
        space=pl.ParameterSpace.unit("p"),
        labels={"goal": lambda s: s.at == 1},
        rewards={"steps": lambda s: 1.0},
    )


def _certificate(model, counts, direction="min", **options):
    seen = np.zeros(model.graph.n_transitions, dtype=np.int64)
    seen[:2] = counts
    data = pl.TransitionCounts(model.graph, seen, "independent")
    return pl.certify(model, data, f'R{{"steps"}}{direction}=? [ F "goal" ]', **options)


_END = ", so its expected reward is infinite, as long as every transition of the model can happen"


@pytest.mark.parametrize(("counts", "lower"), [((0, 0), 1), ((600, 400), np.inf), ((1000, 0), 1)])
def test_a_target_that_no_policy_surely_reaches_is_named_as_such(counts, lower):
    """If p may be 1, the first step may always win; if not, the infinite value is proved."""
    certificate = _certificate(_model(has_detour=False), counts)
    assert (certificate.lower, certificate.upper) == (pytest.approx(lower), np.inf)
    assert certificate.reason == f"no policy reaches the target with certainty{_END}"
    if lower == 1:
        assert certificate.status == "nothing certified"
        assert certificate.headline == f"Nothing certified: {certificate.reason}."
    else:
        assert certificate.status == "certified"
        assert certificate.headline == "The policy's value is infinite with confidence 99.9 %."
        assert ("because", certificate.reason) in certificate.facts()


def test_a_given_policy_that_may_miss_the_target_is_named_as_such():
    model = _model(has_detour=True)
    certificate = _certificate(model, (600, 400), policy=[0, 2, 3])
    assert certificate.reason == f"this policy does not surely reach the target{_END}"
    assert certificate.headline == "The policy's value is infinite with confidence 99.9 %."
    assert _certificate(model, (600, 400), policy=[1, 2, 3]).status == "certified"


def test_a_lack_of_data_is_still_called_one():
    certificate = _certificate(_model(has_detour=True), (0, 0))
    assert certificate.upper == np.inf
    assert certificate.reason == "there are no data (all counts are 0)"
    assert certificate.headline == "Nothing certified: there are no data (all counts are 0)."
