"""Expansions of second order of a policy's value on boxes of parameters, many at once, with bounds on their errors.

On a box, |x[i]| <= 1 for each i, so that |β·x| is at most Σ|β[i]|, and |xᵀ Q x| at most Σ|Q[i, j]|. With W an
expansion and e a bound on its residuals on the box, as in ``residuals.py``, let M >= 0 be numbers for the nodes with

    e(s) + Σ_t f_t(x) M(s_t) <= M(s)    at every x of the box.

Then the expected sum of e until a run is over is at most M, by induction, as e > 0. So the value differs from W by no
more than M at every point of the box at which rows are laws. M is proposed by equations at the centre, and multiplied
by a number that makes the inequality true.

An average in the long run is g = c + D / T, with D the reward of a cycle less c for each of its steps, and T its length
(see ``by_cycles``). Here c is a function of second order too, at which the expansion of D is zero. So g differs from it
by what D differs from zero, divided by the least T.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plumdp.base.rounding import SQUARES_UNDERFLOW, UNIT, UP
from plumdp.model.graph import BoolArray, FloatArray, owners
from plumdp.region.box_forms import BoxForms, forms_on_boxes
from plumdp.region.boxes import Boxes, Quadratic
from plumdp.solver.chains import chain_equations
from plumdp.solver.coupled.chain import PolicyChain, fixed_states
from plumdp.solver.coupled.terms import Term

_DENSE = 120  # open nodes up to which all equations are inverted together
_ROUNDS = 3  # in which M is improved


@dataclass(frozen=True, eq=False)
class BoxTerm:
    """One term of a sum of values, with the chain that is expanded on boxes."""

    weight: float
    term: Term
    steps: FloatArray | None = None  # (n_open) of the cycles of an average in the long run: 1 in the cycle, 0 before it
    start: int = 0  # the node where the cycle starts

    def expand(self, boxes: Boxes) -> Quadratic:
        """Return the value of the chain on boxes."""
        chain, used = self.term.chain.with_coins().with_own_expressions()
        forms = forms_on_boxes(self.term.model.expressions, used, boxes, chain.discount)
        rows = _BoxRows(chain, forms)
        if self.term.objective.n_steps is not None:
            return _by_steps(rows, self.term)
        return _until_end(rows, self.steps, chain.initial if self.steps is None else self.start)


def sum_on_boxes(terms: Sequence[BoxTerm], boxes: Boxes) -> Quadratic:
    """Return the weighted sum of values on boxes, about one centre each."""
    value, slope, curvature, error = terms[0].expand(boxes).times(terms[0].weight)
    for each in terms[1:]:
        more = each.expand(boxes).times(each.weight)
        value, slope, curvature, error = value + more[0], slope + more[1], curvature + more[2], (error + more[3]) * UP
    return Quadratic(value, slope, curvature, error)


class _BoxExpansion(NamedTuple):
    """Values, slopes and curvatures of all nodes: (b, n_nodes), (b, n_nodes, d) and (b, n_nodes, d, d)."""

    values: FloatArray
    slopes: FloatArray
    curvatures: FloatArray

    @property
    def sizes(self) -> FloatArray:
        """The largest absolute values on the boxes, up to rounding."""
        return np.asarray(np.abs(self.values) + np.abs(self.slopes).sum(2) + np.abs(self.curvatures).sum((2, 3)))

    def at(self, node: int, error: FloatArray) -> Quadratic:
        """Return the function of a node with an error, which is infinite where it is not a number."""
        parts = self.values[:, node], self.slopes[:, node], self.curvatures[:, node]
        return Quadratic(*parts, np.where(error >= 0, error, np.inf))


def _zeros(b: int, n: int, d: int) -> _BoxExpansion:
    return _BoxExpansion(np.zeros((b, n)), np.zeros((b, n, d)), np.zeros((b, n, d, d)))


@dataclass(frozen=True, eq=False)
class _BoxRows:
    """The rows of a chain on boxes."""

    chain: PolicyChain
    forms: BoxForms

    def of(self, part: FloatArray) -> FloatArray:
        """Return a part of the forms for each transition."""
        return np.asarray(part[:, self.chain.expression])

    def total(self, of_transitions: FloatArray) -> FloatArray:
        """Return the sums over the transitions of each open node."""
        return np.asarray(np.add.reduceat(of_transitions, self.chain.first[:-1], axis=1))

    def after(self, of_nodes: FloatArray) -> FloatArray:
        """Return the numbers of the nodes that transitions lead to."""
        return np.asarray(of_nodes[:, self.chain.successor])

    def gamma(self) -> FloatArray:
        """Return the rounding of a row's sums, relative to the sizes of their terms."""
        return (np.diff(self.chain.first) + 32) * UNIT

    def solver(self) -> Callable[[FloatArray], FloatArray]:
        """Return a function that solves the equations x = right + P x at the centres, for right (b, n_open, k)."""
        chain, means = self.chain, self.of(self.forms.means)
        n, b = chain.n_open, len(means)
        if n > _DENSE:
            every = [chain_equations(chain, each) for each in means]

            def solve(right: FloatArray) -> FloatArray:
                nothing = np.full(right.shape[1:], np.inf)
                return np.stack([nothing if e is None else e.solve(r) for e, r in zip(every, right, strict=True)])

            return solve
        is_open = chain.successor < n
        node = np.repeat(np.arange(n), np.diff(chain.first))
        place = np.arange(b)[:, None] * n * n + (node * n + chain.successor)[is_open]
        moves = np.bincount(place.ravel(), means[:, is_open].ravel(), b * n * n).reshape(b, n, n)
        inverse = np.linalg.inv((1 + 1e-12) * np.eye(n) - moves)  # never singular by zeros alone
        return lambda right: np.asarray(inverse @ right)

    def first(self, values: FloatArray) -> FloatArray:
        """Return Σ β_t w(s_t) for each open node (b, n_open, d)."""
        return self.total(self.of(self.forms.spreads) * self.after(values)[:, :, None])

    def second(self, values: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return sym Σ β_t w¹(s_t)ᵀ + Σ Γ_t w(s_t) for each open node (b, n_open, d, d)."""
        forms = self.forms
        products = self.total(self.of(forms.spreads)[..., None] * self.after(slopes)[:, :, None, :])
        found = (products + products.swapaxes(2, 3)) / 2
        if forms.curvatures is not None:
            found += self.total(self.of(forms.curvatures) * self.after(values)[:, :, None, None])
        return np.asarray(found)

    def mean(self, of_nodes: FloatArray) -> FloatArray:
        """Return Σ a_t times the number, vector or matrix of s_t."""
        means = self.of(self.forms.means)
        return self.total(means.reshape(*means.shape, *(1,) * (of_nodes.ndim - 2)) * self.after(of_nodes))

    def higher(self, after: _BoxExpansion) -> FloatArray:
        """Return bounds on the parts of degree three or more of Σ f_t W(s_t)."""
        forms, (values, slopes, curvatures) = self.forms, (self.after(part) for part in after)
        cubic = self.total(self.of(forms.spreads)[..., None, None] * curvatures[:, :, None])
        rest = np.zeros(cubic.shape[:2])
        if forms.curvatures is not None:
            bends = self.of(forms.curvatures)
            cubic = cubic + self.total(slopes[..., None, None] * bends[:, :, None])
            # the sums of Γ_t and of tails over a row are zero, so that the mean of W may be subtracted
            parts = [
                part - self.mean(whole)[:, owners(self.chain.first)]
                for part, whole in ((values, after.values), (slopes, after.slopes), (curvatures, after.curvatures))
            ]
            apart = np.abs(parts[2]).sum((2, 3))
            rest = self.total(np.abs(bends).sum((2, 3)) * apart)
            rest += self.total(self.of(forms.tails) * (np.abs(parts[0]) + np.abs(parts[1]).sum(2) + apart))
        cubic = (cubic + cubic.transpose(0, 1, 3, 4, 2) + cubic.transpose(0, 1, 4, 2, 3)) / 3
        return np.asarray(np.abs(cubic).sum((2, 3, 4)) + rest)

    def sizes(self) -> FloatArray:
        """Return the largest absolute values of the forms of transitions (b, n_transitions), without tails."""
        forms = self.forms
        size = np.abs(forms.means) + np.abs(forms.spreads).sum(2)
        return self.of(size if forms.curvatures is None else size + np.abs(forms.curvatures).sum((2, 3)))

    def residuals(self, after: _BoxExpansion, here: _BoxExpansion, paid: _BoxExpansion) -> FloatArray:
        """Return bounds on |paid + Σ f_t W(s_t) - W'(s)| on the boxes, which are positive, for W after and W' here."""
        n, chain = self.chain.n_open, self.chain
        parts = (
            paid.values + self.mean(after.values) - here.values[:, :n],
            paid.slopes + self.first(after.values) + self.mean(after.slopes) - here.slopes[:, :n],
            paid.curvatures + self.second(*after[:2]) + self.mean(after.curvatures) - here.curvatures[:, :n],
        )
        sizes, errors = self.after(after.sizes), self.of(self.forms.errors)
        # the mean of W that is subtracted in higher terms is no larger than the sizes of its row
        means = self.total(np.abs(self.of(self.forms.means)) * sizes)
        size = paid.sizes + here.sizes[:, :n] + self.total(self.sizes() * sizes)
        rounding = self.gamma() * size + self.total(errors * sizes) + self.total(errors) * means
        found = _BoxExpansion(*parts).sizes + self.higher(after) + rounding * (1 + 1e-9) + 64 * SQUARES_UNDERFLOW
        if chain.model_tolerance:
            lowest, highest = (
                end.reduceat(
                    self.after(after.values + side * (after.sizes - np.abs(after.values))), chain.first[:-1], axis=1
                )
                for end, side in ((np.minimum, -1.0), (np.maximum, 1.0))
            )
            found = found + chain.model_tolerance * chain.discount * (highest - lowest + 16 * UNIT * means)
        return np.asarray(found * UP)

    def growth(self, margins: FloatArray) -> FloatArray:
        """Return bounds on Σ f_t M(s_t) less its float at the centre, for numbers M of nodes (b, n_nodes)."""
        after = np.abs(self.after(margins))
        found = np.abs(self.first(margins)).sum(2)
        if self.forms.curvatures is not None:
            bends = self.of(self.forms.curvatures) * self.after(margins)[:, :, None, None]
            found = found + np.abs(self.total(bends)).sum((2, 3)) + self.total(self.of(self.forms.tails) * after)
        rounding = self.gamma() * (self.total(self.sizes() * after) + np.abs(margins[:, : self.chain.n_open]))
        if self.chain.model_tolerance:
            ends = [
                end.reduceat(self.after(margins), self.chain.first[:-1], axis=1) for end in (np.minimum, np.maximum)
            ]
            found = found + self.chain.model_tolerance * self.chain.discount * (ends[1] - ends[0])
        return np.asarray((found + rounding + self.total(self.of(self.forms.errors) * after)) * UP)


def _until_end(rows: _BoxRows, steps: FloatArray | None, start: int) -> Quadratic:
    """Return the value in a node, or the average over cycles that start there, until runs are over."""
    chain, solve = rows.chain, rows.solver()
    n, (b, _, d) = chain.n_open, rows.forms.spreads.shape
    w, paid, average = _zeros(b, chain.n_nodes, d), _zeros(b, n, d), _zeros(b, 1, d)
    w.values[:, n:], paid.values[:] = chain.known, chain.reward
    length = np.zeros((b, chain.n_nodes))
    if steps is not None:
        length[:, :n] = solve(np.broadcast_to(steps[:, None], (b, n, 1)))[:, :, 0]
    for k in range(3):
        right = rows.mean(w.values) if k == 0 else rows.first(w.values) if k == 1 else rows.second(*w[:2])
        found = solve((paid[k] + right).reshape(b, n, -1))
        if steps is not None:  # less c for each step, so that nothing is left at the start
            less = found[:, start] / length[:, start, None]
            found = found - length[:, :n, None] * less[:, None]
            average[k][:] = less.reshape(average[k].shape)
            paid[k][:] -= (steps[:, None] * less[:, None]).reshape(paid[k].shape)
        w[k][:, :n] = found.reshape(w[k][:, :n].shape)
    margin = _margins(rows, solve, rows.residuals(w, w, paid))[:, start]
    if steps is None:
        return w.at(start, margin)
    # (1 - P) t is at most k in each step of a cycle, so that t is at most k T
    most = np.where(steps > 0, length[:, :n] - rows.mean(length) + rows.growth(length), -np.inf).max(1)
    shortest = np.maximum(length[:, start] / most * (1 - 1e-12), 1.0)
    return average.at(0, (w.sizes[:, start] + margin) / shortest * UP)


def _margins(rows: _BoxRows, solve: Callable[[FloatArray], FloatArray], e: FloatArray) -> FloatArray:
    """Return numbers M of the open nodes with e + Σ f_t M(s_t) <= M(s) on the boxes, infinite where none are found."""
    n = rows.chain.n_open
    margins, more = np.zeros((len(e), rows.chain.n_nodes)), np.zeros_like(e)
    for _ in range(_ROUNDS):
        margins[:, :n] = solve((e + more)[:, :, None])[:, :, 0]
        more = rows.growth(margins)
    left = margins[:, :n] - rows.mean(margins) - more
    # s M - P s M >= s left >= e for s = max e / left, if what is left is positive everywhere
    is_proved = (left > 0).all(1) & (margins >= 0).all(1)
    scale = np.where(is_proved, (e / np.where(left > 0, left, 1.0)).max(1) * UP, np.inf)
    return np.asarray(margins[:, :n] * scale[:, None])


def _by_steps(rows: _BoxRows, term: Term) -> Quadratic:
    """Return the value within a number of steps in the initial node, by backward induction with margins."""
    chain, objective = rows.chain, term.objective
    n, (b, _, d) = chain.n_open, rows.forms.spreads.shape
    assert objective.n_steps is not None
    w, paid, margins = _zeros(b, chain.n_nodes, d), _zeros(b, n, d), np.zeros((b, chain.n_nodes))
    paid.values[:] = chain.reward
    for step in range(objective.n_steps, -1, -1):
        here = _zeros(b, chain.n_nodes, d)
        if step < objective.n_steps:
            here.values[:, :n] = paid.values + rows.mean(w.values)
            here.slopes[:, :n] = rows.first(w.values) + rows.mean(w.slopes)
            here.curvatures[:, :n] = rows.second(*w[:2]) + rows.mean(w.curvatures)
            # M = e + P M of the step after it, at every point of a box
            later = rows.residuals(w, here, paid) + rows.mean(margins) + rows.growth(margins)
            margins[:, :n] = later * UP
        is_fixed, known = _fixed(term, chain, step)
        here.values[:, is_fixed] = known[is_fixed]
        here.slopes[:, is_fixed], here.curvatures[:, is_fixed], margins[:, is_fixed] = 0.0, 0.0, 0.0
        w = here
    return w.at(chain.initial, margins[:, chain.initial])


def _fixed(term: Term, chain: PolicyChain, step: int) -> tuple[BoolArray, FloatArray]:
    """Return the nodes whose value at a step follows from the objective alone, and these values."""
    n_states, state = term.model.graph.n_states, chain.state[: chain.n_nodes - chain.n_payments]
    is_fixed = fixed_states(term.objective, n_states, step)[state]
    known = term.objective.at_step(np.zeros(n_states), step)[state]
    paid = chain.known[len(chain.known) - chain.n_payments :]
    return np.append(is_fixed, np.ones(len(paid), dtype=np.bool_)), np.append(known, paid)
