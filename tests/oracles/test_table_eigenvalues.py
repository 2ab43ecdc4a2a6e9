"""Eigenvalues that bounds on tables rest on are never too small: exact ones on small chains, planted ones refused."""

import numpy as np
import pytest

from plumdp.solver.coupled.chain import PolicyChain
from plumdp.tables import joint
from plumdp.tables.chain import OpenChain, regular_equations
from plumdp.tables.joint import is_above, largest_norm


class Solved:
    """The equations of a walk on n nodes with exits, with or without their inverse."""

    def __init__(self, n, rng, *, dense):
        here = np.arange(n)
        to = np.stack([np.minimum(here + 1, n - 1), np.maximum(here - 1, 0), np.full(n, n), np.full(n, n + 1)], axis=1)
        first = np.arange(0, 4 * n + 1, 4)
        chain = PolicyChain(
            np.arange(n + 2, dtype=np.int32), first, to.ravel().astype(np.int32), np.arange(4 * n), np.zeros(n),
            np.array([1.0, 0.0]), 0, False, 1.0,
        )  # fmt: skip
        self.table = OpenChain(chain, np.arange(4 * n), np.zeros(4 * n), 4 * n)
        self.rows = rng.dirichlet([4, 4, 0.4, 0.4], size=n).ravel()
        self.equations = regular_equations(self.table, self.rows)
        self.exact = np.linalg.inv(np.eye(n) - self.equations.moves.toarray())
        self.inverse = self.exact if dense else None


def case(seed, *, dense, n=40):
    """Return equations, and a probability, weights and scales that differ by orders, with the exact eigenvalue."""
    rng = np.random.default_rng(seed)
    near = Solved(n, rng, dense=dense)
    probability = rng.dirichlet([1, 1, 1, 1], size=n).ravel()
    weight, scale = rng.exponential(size=n) * 10.0 ** rng.uniform(-2, 2, n), 10.0 ** rng.uniform(-3, 0, n)
    moves = near.table.chain.rows(probability, near.table.successor, n + 2)[:, :n].tocsr()
    plain = moves.toarray()
    form = np.diag(plain.T @ weight) - plain.T @ np.diag(weight) @ plain
    matrix = scale[:, None] * (near.exact.T @ form @ near.exact) * scale
    return near, probability, moves, weight, scale, float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1])


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_norms_are_above_the_exact_ones_and_not_by_much(seed, dense, monkeypatch):
    monkeypatch.setattr(joint, "_SMALL", 1000 if dense else 0)
    near, probability, _, weight, scale, exact = case(seed, dense=dense)
    found = largest_norm(near, probability, weight, scale)
    assert np.sqrt(exact) <= found <= 1.06 * np.sqrt(exact)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_value_that_is_a_thousandth_too_small_is_refused_and_one_above_is_proved(seed, dense, monkeypatch):
    monkeypatch.setattr(joint, "_SMALL", 1000 if dense else 0)
    near, _, moves, weight, scale, exact = case(seed, dense=dense)
    assert not is_above(near, moves, weight, scale, 0.999 * exact)
    assert is_above(near, moves, weight, scale, 1.01 * exact)


def test_a_proposal_from_below_is_never_taken_at_its_word(monkeypatch):
    """Lanczos may stop too early: half of the eigenvalue is proposed, and no factor of it that is tried is enough."""
    near, probability, _, weight, scale, exact = case(1, dense=True)
    monkeypatch.setattr(joint, "_proposed", lambda *_: exact / 2)
    assert largest_norm(near, probability, weight, scale) == np.inf


def test_nothing_to_bound_is_zero():
    near, probability, _, weight, scale, _ = case(1, dense=True)
    assert largest_norm(near, probability, 0 * weight, scale) == largest_norm(near, probability, weight, 0 * scale) == 0
