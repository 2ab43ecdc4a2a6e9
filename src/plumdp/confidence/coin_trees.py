"""Finds trees of coins, which split rows with products of parameters into conditional laws with affine outcomes.

The row a b, a (1 - b), 1 - a throws a first coin {a, 1 - a}, and a second one {b, 1 - b} if the first has come up. Each
node of such a tree is visited when it is reached, and its outcome then has the probabilities of the node, whatever was
seen before. So the likelihood of the row is the product of those of its nodes, which is concave, and pooled over all
rows that throw the same coins.

The search proposes trees; an exact check of polynomials accepts them (``is_tree``). Which tree of a row is found
matters for pooling only, since the products along the ways to its outcomes are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations
from operator import add
from typing import TypeAlias

from plumdp.model.expressions.polynomial import Polynomial

_MAX_TRIES = 2000  # nodes that are tried for one row
_MAX_DIVISIONS = 50_000  # of polynomials, for one row
_MAX_FOR_TRIPLES = 40  # outcomes with one parent, of which all triples are looked at
_MAX_FOR_PAIRS = 400

Factors: TypeAlias = tuple[Fraction, tuple[tuple[Polynomial, int], ...]]
"""A constant, and irreducible polynomials with their powers."""

Factorise: TypeAlias = Callable[[Polynomial], Factors]
"""A function that factors a polynomial; one that remembers its results saves most of the time."""

_Outcomes: TypeAlias = dict[int, Polynomial]
_Quotients: TypeAlias = list[tuple[int, Polynomial]]


@dataclass(frozen=True)
class TreeNode:
    """A node of a tree, with its members and their conditional probabilities once it is reached.

    Members are outcomes of the row or, numbered after these, nodes that come earlier in the list of nodes.
    """

    members: tuple[int, ...]
    probabilities: tuple[Polynomial, ...]  # of the members: affine, with the sum one


def find_tree(row: Sequence[Polynomial], factored: Factorise = Polynomial.factors) -> tuple[TreeNode, ...] | None:
    """Return the nodes of a tree of coins whose leaves are the outcomes of a row, root last, or None without a tree.

    >>> from plumdp import parameters
    >>> a, b = parameters("a", "b")
    >>> [node.members for node in find_tree([a * b, a * (1 - b), 1 - a])]
    [(0, 1), (2, 3)]
    >>> find_tree([a**2, 2 * a * (1 - a), (1 - a) ** 2]) is None
    True
    """
    coins = _two_coins(row)
    if coins is not None:
        return coins
    nodes = _Search(factored).find(dict(enumerate(row)), (), len(row))
    return nodes if nodes is not None and is_tree(row, nodes) else None  # only the exact check is trusted


def _two_coins(row: Sequence[Polynomial]) -> tuple[TreeNode, ...] | None:
    """Return the tree of two independent coins a and b, without a search, if a row has their four outcomes.

    The first outcome is a b, and with a second and a third one it adds up to a and b. As the row sums to one, nothing
    else need be checked: a - a b = a (1 - b), b - a b = (1 - a) b, and 1 - a - b + a b = (1 - a) (1 - b).
    """
    if len(row) != 4 or _sum(row) != 1:
        return None
    for second, third, last in ((1, 2, 3), (1, 3, 2), (2, 3, 1)):
        a, b = row[0] + row[second], row[0] + row[third]
        if a.is_affine and b.is_affine and a * b == row[0]:
            coin = b, b.complement
            return TreeNode((0, second), coin), TreeNode((third, last), coin), TreeNode((4, 5), (a, a.complement))
    return None


def is_tree(row: Sequence[Polynomial], nodes: Sequence[TreeNode]) -> bool:
    """Return whether nodes are a tree of a row, exactly.

    Every outcome and every node but the last is a member once, the probabilities of each node are affine with the sum
    one, and their product along the way from the root to an outcome is the probability of the outcome.
    """
    n = len(row)
    if not nodes or sorted(i for node in nodes for i in node.members) != list(range(n + len(nodes) - 1)):
        return False
    reached: _Outcomes = {n + len(nodes) - 1: Polynomial(1)}
    for number, node in reversed(list(enumerate(nodes, start=n))):
        is_law = all(f.is_affine for f in node.probabilities) and _sum(node.probabilities) == 1
        if not is_law or len(node.members) != len(node.probabilities) or number not in reached:
            return False
        reached |= {i: reached[number] * f for i, f in zip(node.members, node.probabilities, strict=True)}
    return all(reached[i] == f for i, f in enumerate(row))


def affine_factors(polynomial: Polynomial, factored: Factorise = Polynomial.factors) -> Factors | None:
    """Return a nonzero polynomial as a constant times powers of affine polynomials, or None if it has other factors.

    >>> from plumdp import parameters
    >>> a, b = parameters("a", "b")
    >>> affine_factors(1 - a * b) is None
    True
    """
    constant, factors = factored(polynomial)
    return (constant, factors) if all(factor.is_affine for factor, _ in factors) else None


class _Search:
    """Searches for nodes depth first and remembers sets of outcomes that have no tree."""

    def __init__(self, factored: Factorise) -> None:
        self._factored = factored
        self._without_tree: set[frozenset[Polynomial]] = set()
        self._tries, self._divisions = _MAX_TRIES, _MAX_DIVISIONS

    def find(self, live: _Outcomes, nodes: tuple[TreeNode, ...], fresh: int) -> tuple[TreeNode, ...] | None:
        """Return nodes that join the live outcomes, the root last and the first with the number ``fresh``."""
        if all(f.is_affine for f in live.values()):
            return (*nodes, TreeNode(tuple(live), tuple(live.values())))
        outcomes = frozenset(live.values())
        if outcomes in self._without_tree:
            return None
        for parent in self._parents(live):
            self._divisions -= len(live)
            for chosen in _laws(_divided(live, parent)):
                if self._tries <= 0 or self._divisions <= 0:
                    return None
                self._tries -= 1
                total = _sum([f for _, f in chosen])
                node = TreeNode(tuple(i for i, _ in chosen), tuple(f / total for _, f in chosen))
                rest = {i: f for i, f in live.items() if i not in node.members} | {fresh: parent * total}
                tree = self.find(rest, (*nodes, node), fresh + 1)
                if tree is not None:
                    return tree
        self._without_tree.add(outcomes)
        return None

    def _parents(self, live: _Outcomes) -> list[Polynomial]:
        """Return the quotients of outcomes by one of their affine factors, highest degree first."""
        quotients = {
            (f.quotient(factor) or f).monic(): None
            for f in live.values()
            if not f.is_affine
            for factor, _ in self._factored(f)[1]
            if factor.is_affine
        }
        return sorted(quotients, key=lambda f: f.degree, reverse=True)


def _divided(live: _Outcomes, parent: Polynomial) -> _Quotients:
    """Return the outcomes that are an affine polynomial times the parent, with that polynomial."""
    quotients = []
    for i, f in live.items():
        if parent.degree <= f.degree <= parent.degree + 1:
            quotient = f.quotient(parent)
            if quotient is not None and quotient.is_affine:
                quotients.append((i, quotient))
    return quotients


def _laws(group: _Quotients) -> Iterator[_Quotients]:
    """Yield the whole group, pairs and triples that sum to a nonzero constant and are not all constants."""
    sizes = [2] * (2 < len(group) <= _MAX_FOR_PAIRS) + [3] * (3 < len(group) <= _MAX_FOR_TRIPLES)
    parts = [group] if len(group) > 1 else []
    for chosen in (*parts, *(list(part) for size in sizes for part in combinations(group, size))):
        if not all(f.is_constant for _, f in chosen):
            total = _sum([f for _, f in chosen])
            if total.is_constant and total:
                yield chosen


def _sum(polynomials: Sequence[Polynomial]) -> Polynomial:
    return reduce(add, polynomials) if polynomials else Polynomial(0)
