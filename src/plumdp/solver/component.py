"""One strongly connected component: values from below, and a bound from above that is verified by induction.

Three rules make a vector a bound (Φ is one step of both players at their best, rounded against us):

- below: Φ applied to a lower bound gives a lower bound, so sweeps from zero may stop at any time;
- below, for a candidate L: Φ(L) > L wherever L > 0. Play then leaves those states almost surely, and gains on average;
- above, for a candidate U: Φ(U) <= U for probabilities (Park's induction), Φ(U) < U for rewards, where the decrease
  makes the target certain.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray, IntArray
from plumdp.solver import kernels
from plumdp.solver.game import Game

_LIFT = 1e-13  # what an upward sweep adds, so that rounding does not spoil the induction
_ATTEMPTS = 12
_PATIENCE = 40  # sweeps before equations are solved instead
_MAX_EQUATIONS = 60_000
_MAX_POLICIES = 60


class Component:
    """The states of one component, and the arrays of the whole model that its values are written to."""

    def __init__(
        self, game: Game, states: IntArray, low: FloatArray, high: FloatArray, policy: IntArray, buffers: Any
    ) -> None:
        self.game, self.states, self.low, self.high, self.policy = game, states, low, high, policy
        self.buffers = buffers
        self.cap = float(high[states[0]])

    def solve(self, precision: float, max_sweeps: int) -> int:
        """Write certified values into ``low`` and ``high``; return the number of sweeps."""
        sweeps, converged = self._raise_low(precision / 16, min(_PATIENCE, max_sweeps))
        if not converged and len(self.states) <= _MAX_EQUATIONS and self._solve_equations(precision):
            return sweeps
        tolerance = precision / 16
        for _ in range(_ATTEMPTS):
            used, _ = self._raise_low(tolerance, max_sweeps - sweeps)
            sweeps += used
            closed, used = self._lower_high(precision, max_sweeps - sweeps)
            sweeps += used
            if closed or sweeps >= max_sweeps:
                break
            tolerance /= 8
        return sweeps

    def _raise_low(self, tolerance: float, budget: int) -> tuple[int, bool]:
        """Sweep from below until a sweep changes little; every sweep leaves lower bounds."""
        for used in range(1, max(budget, 1) + 1):
            _, change = self._sweep(used, -1.0, 0.0, self.low)
            if change <= tolerance:
                return used, True
        return used, False

    def _lower_high(self, precision: float, budget: int) -> tuple[bool, int]:
        """Guess values just above the lower bounds and sweep: once no value grows, they are upper bounds."""
        low, best = self.low[self.states], self.high[self.states]
        wanted = precision * np.maximum(1.0, np.abs(low))
        self.high[self.states] = np.minimum(low + wanted / 2, self.cap)
        is_bound = is_close = False
        try:
            for used in range(1, max(min(budget, 2000), 1) + 1):
                n_larger, change = self._sweep(used, 1.0, _LIFT, self.high)
                if n_larger == 0:
                    is_bound = True
                    best = np.minimum(best, self.high[self.states])
                    is_close = bool((best - low <= wanted).all())
                if is_close or change <= (precision / 64 if is_bound else _LIFT):
                    break
        finally:  # also when interrupted: what is left behind is a bound
            self.high[self.states] = best
        return is_close, used

    def _sweep(self, number: int, side: float, lift: float, values: FloatArray) -> tuple[int, float]:
        order = self.states if number % 2 else self.states[::-1]
        result: tuple[int, float] = kernels.sweep(
            order, *self.game.all_rows, side, lift, self.cap, values, self.policy, *self.buffers
        )
        return result

    def _solve_equations(self, precision: float) -> bool:
        """Improve both players' moves with exact solutions of their chains; verify the result from both sides."""
        solved = self._improve_policies()
        if solved is None:
            return False
        value, steps = solved
        scale = np.maximum(1.0, np.abs(value))
        drift = float((precision / 4 * scale / steps).min())
        below = np.maximum(value - drift * steps, 0.0)
        above = np.minimum(value + drift * steps, self.cap)
        return self._accept(self.low, below, -1.0) and self._accept(self.high, above, 1.0)

    def _accept(self, bounds: FloatArray, candidate: FloatArray, side: float) -> bool:
        """Replace the bounds by the candidate if induction proves it, else leave them as they are."""
        before = bounds[self.states]
        bounds[self.states] = candidate
        proved = kernels.is_inductive(self.states, *self.game.all_rows, side, bounds, self.policy, *self.buffers)
        if not proved:
            bounds[self.states] = before
        return bool(proved)

    def _improve_policies(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the values under both players' best moves and the expected number of steps, or None without success."""
        values = self.low.copy()
        value = values[self.states]
        for _ in range(_MAX_POLICIES):
            solved = self._solve_chain(values)
            if solved is None:
                return None
            new, steps = solved
            change = np.max(np.abs(new - value) / np.maximum(1.0, np.abs(new)))
            value = new
            values[self.states] = value
            if change <= 1e-14:
                return value, steps
        return value, steps

    def _solve_chain(self, values: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        from scipy.sparse import csc_array, csr_array, eye_array
        from scipy.sparse.linalg import MatrixRankWarning, splu

        n = len(self.states)
        local = np.full(len(values), -1, dtype=np.int32)
        local[self.states] = np.arange(n, dtype=np.int32)
        longest = len(self.buffers[0])
        offset, constant = np.zeros(n + 1, dtype=np.int32), np.zeros(n)
        column, entry = np.empty(n * longest, dtype=np.int32), np.empty(n * longest)
        n_entries = kernels.chain_of_best(
            self.states, local, *self.game.all_rows, values, offset, column, entry, constant, *self.buffers,
            np.empty(longest),
        )  # fmt: skip
        chain = csr_array((entry[:n_entries], column[:n_entries], offset), shape=(n, n))
        with warnings.catch_warnings():
            warnings.simplefilter("error", MatrixRankWarning)
            try:
                factors = splu(csc_array(eye_array(n) - chain))
                value, steps = factors.solve(constant), factors.solve(np.ones(n))
            except (RuntimeError, MatrixRankWarning):
                return None
        is_sound = (
            np.isfinite(value).all() and np.isfinite(steps).all() and (steps > 0).all() and (value >= -1e-9).all()
        )
        return (np.clip(value, 0.0, self.cap), steps) if is_sound else None
