"""Trees of coins: which rows have one, and that nothing but a tree of the row passes the check."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import plumdp as pl
from plumdp.confidence.coin_trees import TreeNode, affine_factors, find_tree, is_tree
from plumdp.model.expressions.polynomial import Polynomial

a, b, c, d, e = pl.parameters("a", "b", "c", "d", "e")

TREES = {
    "one coin after the other": ([a * b, a * (1 - b), 1 - a], [{b, 1 - b}, {a, 1 - a}]),
    "two coins": (
        [a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)],
        [{b, 1 - b}, {b, 1 - b}, {a, 1 - a}],
    ),
    "three levels": (
        [a * b * c, a * b * (1 - c), a * (1 - b), (1 - a) * d, (1 - a) * (1 - d) * e, (1 - a) * (1 - d) * (1 - e)],
        [{c, 1 - c}, {e, 1 - e}, {b, 1 - b}, {d, 1 - d}, {a, 1 - a}],
    ),
    "three sides": (
        [a * b, a * c, a * (1 - b - c), (1 - a) * d, (1 - a) * (1 - d)],
        [{b, c, 1 - b - c}, {d, 1 - d}, {a, 1 - a}],
    ),
    "the same coin until it comes up": (
        [a, (1 - a) * a, (1 - a) ** 2 * a, (1 - a) ** 3 * a, (1 - a) ** 4],
        [{a, 1 - a}] * 4,
    ),
    "the same coin twice on a way": (
        [a * b, a * (1 - b), (1 - a) * a, (1 - a) ** 2],
        [{b, 1 - b}, {a, 1 - a}, {a, 1 - a}],
    ),
    "an affine root": (
        [a * b / 2, a * (1 - b) / 2, (1 - a) / 2, c / 4, (1 - c) / 4, Polynomial(1) / 4],
        [{b, 1 - b}, {a / 2, (1 - a) / 2, c / 4, (1 - c) / 4, Polynomial(1) / 4}],
    ),
    "affine": ([a, b, 1 - a - b], [{a, b, 1 - a - b}]),
}

WITHOUT = {
    "squares": [a**2, 2 * a * (1 - a), (1 - a) ** 2],
    "a square below": [a * (1 - b**2), a * b**2, 1 - a],
    "a leaf and the rest": [a * b, 1 - a * b],
    "leaves that share a successor": [a * b + (1 - a), a * (1 - b)],
    "exclusive or": [a * b + (1 - a) * (1 - b), a * (1 - b) + (1 - a) * b],
}


@pytest.mark.parametrize("kind", TREES)
def test_trees_are_found_whatever_the_order_of_the_outcomes(kind):
    """The expected laws are read off the way the rows are written."""
    row, laws = TREES[kind]
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(row))
        tree = find_tree([row[i] for i in order])
        assert tree is not None
        found = {tuple(sorted(map(str, node.probabilities))) for node in tree}  # either of two coins may come first
        assert found == {tuple(sorted(map(str, law))) for law in laws}
        assert len(tree) == len(laws)


@pytest.mark.parametrize("kind", WITHOUT)
def test_rows_without_a_tree_have_none(kind):
    assert find_tree(WITHOUT[kind]) is None


def test_the_check_refuses_what_is_not_a_tree_of_the_row():
    row = [a * b, a * (1 - b), 1 - a]
    tree = find_tree(row)
    first, root = tree
    wrong = [
        (),
        (first,),  # the last outcome has no place
        (root, first),  # out of order
        (replace(first, probabilities=(b / 2, 1 - b)), root),  # the sum is not one
        (replace(first, probabilities=(1 - b, b)), root),  # another outcome
        (first, replace(root, probabilities=(a, 1 - a))),  # likewise, at the root
        (replace(first, members=(0, 0)), root),
        (TreeNode((0, 1, 2), tuple(row)),),  # not affine
    ]
    assert is_tree(row, tree)
    assert not any(is_tree(row, nodes) for nodes in wrong)


def random_row(rng, variables, depth):
    """Return the leaves of a random tree of coins with two or three sides."""
    if depth == 0 or rng.random() < 0.2:
        return [Polynomial(1)]
    x, y = (variables[i] for i in rng.integers(len(variables), size=2))
    sides = [x, 1 - x] if rng.random() < 0.7 else [x / 2, y / 3, 1 - x / 2 - y / 3]
    return [side * leaf for side in sides for leaf in random_row(rng, variables, depth - 1)]


@pytest.mark.slow
def test_random_trees_are_found_and_are_trees_of_their_rows():
    rng = np.random.default_rng(7)
    for _ in range(150):
        row = random_row(rng, [a, b, c, d, e], int(rng.integers(2, 4)))
        row = [row[i] for i in rng.permutation(len(row))]
        if len(set(row)) == len(row) > 1:
            tree = find_tree(row)
            assert tree is not None, row
            assert is_tree(row, tree)


def test_affine_factors_multiply_to_the_polynomial():
    for f in (a**2 * (1 - b) / 3, 2 * a * (1 - a), Polynomial(Fraction(1, 4)), -a * (b + c - 1)):
        constant, factors = affine_factors(f)
        product = Polynomial(constant)
        for factor, power in factors:
            assert factor.is_affine
            product = product * factor**power
        assert product == f
    assert affine_factors(a * b + c) is None
