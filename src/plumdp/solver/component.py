"""One strongly connected component: values from below, and a bound from above that is verified by induction.

Three rules make a vector a bound (Φ is one step of both players at their best, rounded against us):

- below: Φ applied to a lower bound gives a lower bound, so sweeps from zero may stop at any time;
- below, for a candidate L: Φ(L) > L wherever L > 0. Play then leaves those states almost surely, and gains on average;
- above, for a candidate U: Φ(U) <= U for probabilities (Park's induction), Φ(U) < U for rewards, where the decrease
  makes the target certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.model.graph import FloatArray, IntArray
from plumdp.solver import kernels
from plumdp.solver.board import Board

_LIFT = 1e-13  # what an upward sweep adds for rewards, so that the decrease is strict
_ATTEMPTS = 12
_PATIENCE = 40  # sweeps before equations are solved instead
_MAX_EQUATIONS = 60_000
_MAX_POLICIES = 60


@dataclass(frozen=True, eq=False)
class Component:
    """The positions of one component, and the arrays of the whole board that its values are written to."""

    board: Board
    start: int
    end: int
    low: FloatArray
    high: FloatArray
    best_row: IntArray
    cap: float

    def solve(self, precision: float, max_sweeps: int) -> int:
        """Write certified values into ``low`` and ``high``; return the number of sweeps."""
        sweeps, converged = self._raise_low(precision / 16, min(_PATIENCE, max_sweeps))
        if not converged and self.end - self.start <= _MAX_EQUATIONS and self._solve_equations(precision):
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
            _, change = self._sweep(used, self.low, side=-1.0)
            if change <= tolerance:
                return used, True
        return used, False

    def _lower_high(self, precision: float, budget: int) -> tuple[bool, int]:
        """Guess values just above the lower bounds and sweep: once no value grows, they are upper bounds."""
        low, guess = self.low[self.start : self.end], self.high[self.start : self.end]
        best = guess.copy()
        wanted = precision * np.maximum(1.0, np.abs(low))
        guess[:] = np.minimum(low + wanted / 2, self.cap)
        lift = 0.0 if self.board.rank is None else _LIFT
        is_bound = is_close = False
        try:
            for used in range(1, max(min(budget, 2000), 1) + 1):
                n_larger, change = self._sweep(used, self.high, side=1.0, lift=lift)
                if n_larger == 0:
                    is_bound = True
                    best = np.minimum(best, guess)
                    is_close = bool((best - low <= wanted).all())
                if is_close or change <= (precision / 64 if is_bound else _LIFT):
                    break
        finally:  # also when interrupted: what is left behind is a bound
            guess[:] = best
        return is_close, used

    def _sweep(self, number: int, values: FloatArray, *, side: float, lift: float = 0.0) -> tuple[int, float]:
        return self.board.sweep(
            self.start, self.end, values, values, self.best_row,
            side=side, lift=lift, cap=self.cap, backwards=number % 2 == 0,
        )  # fmt: skip

    def _solve_equations(self, precision: float) -> bool:
        """Improve both players' moves with exact solutions of their chains; verify the result from both sides."""
        solved = self._improve_policies(precision)
        if solved is None:
            return False
        value, spread = solved
        below, above = np.maximum(value - spread, 0.0), np.minimum(value + spread, self.cap)
        return self._accept(self.low, below, -1.0) and self._accept(self.high, above, 1.0)

    def _accept(self, bounds: FloatArray, candidate: FloatArray, side: float) -> bool:
        """Improve the bounds by the candidate if induction proves it, else leave them as they are."""
        part = slice(self.start, self.end)
        before = bounds[part].copy()
        bounds[part] = candidate
        stepped = np.full(self.end, -side * np.inf)
        self.board.sweep(self.start, self.end, bounds, stepped, self.best_row, side=side)
        proved = bool(kernels.is_inductive(self.start, self.end, bounds, stepped, side))
        better = np.maximum if side < 0 else np.minimum
        bounds[part] = better(before, candidate) if proved else before
        return proved

    def _improve_policies(self, precision: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the values under both players' best moves, and a spread around them; None without success.

        The spread is a share of the expected number of steps, small enough for the precision. Moves are judged by value
        plus spread for rewards (minus for probabilities): among equals those that get on, so that the chain ends.
        """
        values, sign = (self.low.copy(), -1.0) if self.board.rank is None else (self._ranks(), 1.0)
        part = slice(self.start, self.end)
        for _ in range(_MAX_POLICIES):
            solved = self._solve_chain(values)
            if solved is None:
                return None
            value, steps = solved
            spread = steps * float((precision / 4 * np.maximum(1.0, np.abs(value)) / steps).min())
            change = float(np.max(np.abs(value + sign * spread - values[part]) / np.maximum(1.0, np.abs(value))))
            values[part] = value + sign * spread
            if change <= 1e-14:
                break
        return value, spread

    def _ranks(self) -> FloatArray:
        """Return the upper bounds with ranks for the component: moves by rank reach the target from everywhere."""
        assert self.board.rank is not None
        values = self.high.copy()
        values[self.start : self.end] = self.board.rank[self.start : self.end]
        finite = values[np.isfinite(values)]
        values[: self.start] = (
            np.where(np.isinf(values[: self.start]), np.inf, 0.0) if len(finite) else values[: self.start]
        )
        return values

    def _solve_chain(self, values: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        from scipy.sparse import csc_array, csr_array, eye_array
        from scipy.sparse.linalg import splu

        n = self.end - self.start
        rows = self.board.rows
        best_row = self._greedy(values)
        offset, constant = np.zeros(n + 1, dtype=np.int32), np.zeros(n)
        size = n * len(self.board.buffer)
        column, entry = np.empty(size, dtype=np.int32), np.empty(size)
        used = kernels.chain_of_best(
            self.start, self.end, *rows[1:7], rows[9], values, best_row, offset, column, entry, constant
        )
        chain = csr_array((entry[:used], column[:used], offset), shape=(n, n))
        try:
            factors = splu(csc_array(eye_array(n) - chain))
        except RuntimeError:  # singular: these moves may stay for ever
            return None
        value, steps = factors.solve(constant), factors.solve(np.ones(n))
        usable = np.isfinite(value) & np.isfinite(steps) & (steps > 0) & (value >= -1e-9)
        return (np.clip(value, 0.0, self.cap), steps) if usable.all() else None

    def _greedy(self, values: FloatArray) -> IntArray:
        """Return the agent's best row for each position, and leave rows in nature's order."""
        agent = self.board.rows[8]
        best_row = self.best_row.copy()
        stepped = np.full(self.end, -np.inf if agent > 0 else np.inf)
        self.board.sweep(self.start, self.end, values, stepped, best_row, side=-1.0 if agent > 0 else 1.0)
        return best_row
