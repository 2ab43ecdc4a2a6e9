"""One strongly connected component: values from below, and a bound from above that is verified by induction.

Three rules make a vector a bound (Φ is one step of both players at their best, rounded against us):

- below: Φ applied to a lower bound gives a lower bound, so sweeps from zero may stop at any time;
- below, for a candidate L: Φ(L) > L wherever L > 0, since play then leaves those states almost surely, and gains on
  average; for rewards until a target Φ(L) >= L, since a play that stays for ever costs infinitely much anyway;
- above, for a candidate U: Φ(U) <= U (Park's induction); for rewards until a target Φ(U) < U, where the decrease makes
  the target certain.
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
_CHEAP_EQUATIONS = 5_000  # below, solving them again and again costs little
_MAX_PROOF = 100  # steps in which a candidate may give way


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
        if converged:
            closed, used = self._lower_high(precision, max_sweeps - sweeps)
            sweeps += used
            if closed:
                return sweeps
        if self.end - self.start <= _MAX_EQUATIONS and self._solve_equations(precision):
            return sweeps
        tolerance = precision / 16
        for _ in range(_ATTEMPTS):
            used, _ = self._raise_low(tolerance, max_sweeps - sweeps)
            closed, more = self._lower_high(precision, max_sweeps - sweeps - used)
            sweeps += used + more
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
        shift = _LIFT
        is_bound = is_close = False
        try:
            for used in range(1, max(min(budget, 2000), 1) + 1):
                n_larger, change = self._sweep(used, self.high, side=1.0, lift=lift)
                if n_larger == 0:
                    is_bound = True
                    best = np.minimum(best, guess)
                    is_close = bool((best - low <= wanted).all())
                if is_close or (is_bound and change <= precision / 64) or shift > precision / 8:
                    break
                if not is_bound and change <= shift:
                    # only rounding still moves: give way, and make values equal that are so but for rounding
                    grain = shift * max(1.0, float(np.abs(guess).max()))
                    guess[:] = np.minimum(np.ceil(guess / grain + 1.0) * grain, self.cap)
                    shift *= 4
        finally:  # also when interrupted: what is left behind is a bound
            guess[:] = best
        return is_close, used

    def _sweep(self, number: int, values: FloatArray, *, side: float, lift: float = 0.0) -> tuple[int, float]:
        return self.board.sweep(
            self.start, self.end, values, values, self.best_row,
            side=side, lift=lift, cap=self.cap, backwards=number % 2 == 0,
        )  # fmt: skip

    def _solve_equations(self, precision: float) -> bool:
        """Improve both players' moves with exact solutions of their chains; verify the result from both sides.

        First both at once, which is fast; if that fails, the agent only moves once nature has answered its last move.
        Where rounding leaves no room for the precision, a coarser result is better than none. Returns whether the
        precision was reached.
        """
        is_cheap = self.end - self.start <= _CHEAP_EQUATIONS
        for spread in (precision, 64 * precision, 4096 * precision) if is_cheap else (precision,):
            candidates = self._improve_policies(spread, at_once=True)
            if candidates is None and is_cheap:
                candidates = self._improve_policies(spread, at_once=False)
            if candidates is None:
                return False
            below, above = candidates
            if all([self._prove(self.low, below, -1.0), self._prove(self.high, above, 1.0)]):
                return spread == precision
        return False

    def _prove(self, bounds: FloatArray, candidate: FloatArray, side: float) -> bool:
        """Improve the bounds by the candidate, moved outward until induction proves it; else leave them as they are."""
        part = slice(self.start, self.end)
        before = bounds[part].copy()
        strict = (side > 0) == (self.board.rank is not None)
        better, worse = (np.maximum, np.minimum) if side < 0 else (np.minimum, np.maximum)
        proved = False
        try:
            for _ in range(_MAX_PROOF):
                bounds[part] = candidate
                stepped = np.full(self.end, -np.inf)  # a downward sweep writes only what is larger
                self.board.sweep(self.start, self.end, bounds, stepped, self.best_row, side=side)
                proved = bool(kernels.is_inductive(self.start, self.end, bounds, stepped, side, strict))
                if proved:
                    break
                outward = side * _LIFT * np.maximum(1.0, np.abs(candidate)) if strict else 0.0
                candidate = np.clip(worse(candidate, stepped[part] + outward), 0.0, self.cap)
        finally:  # also when interrupted
            bounds[part] = better(before, candidate) if proved else before
        return proved

    def _improve_policies(self, precision: float, *, at_once: bool) -> tuple[FloatArray, FloatArray] | None:
        """Return candidates below and above: the values under both players' best moves, less and plus a spread.

        The spread is a share of the expected number of steps, small enough for the precision. Moves are judged by the
        upper candidate for rewards, by the lower one for probabilities: among equals those count that get on, so that
        the chain ends. None without success.
        """
        part = slice(self.start, self.end)
        is_reward = self.board.rank is not None
        judge = self._ranks() if is_reward else self.low.copy()
        best_row = self._greedy(judge)
        if is_reward and self.board.rows[8] < 0:
            best_row = self.board.first_row  # with these the target is certain, whatever nature does
        agent_waits = not at_once
        for _ in range(_MAX_POLICIES):
            solved = self._solve_chain(judge, best_row)
            if solved is None:
                return None
            lower, upper, steps = solved
            spread = steps * float((precision / 4 * np.maximum(1.0, np.abs(lower)) / steps).min())
            below, above = np.maximum(lower - spread, 0.0), np.minimum(upper + spread, self.cap)
            new = above if is_reward else below
            change = float(np.max(np.abs(new - judge[part]) / np.maximum(1.0, np.abs(new))))
            judge = self.high.copy() if is_reward else self.low.copy()
            judge[part] = new
            greedy = self._greedy(judge)
            if change <= 1e-14:
                if not agent_waits or (greedy[part] == best_row[part]).all():
                    break
                best_row = greedy
            elif not agent_waits:
                best_row = greedy
        return below, above

    def _ranks(self) -> FloatArray:
        """Return the ranks of the component, zero outside: a helping nature that prefers small ones gets on."""
        assert self.board.rank is not None
        values = np.where(np.isinf(self.high), np.inf, 0.0)
        values[self.start : self.end] = self.board.rank[self.start : self.end]
        return values

    def _solve_chain(self, judge: FloatArray, best_row: IntArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the values of the given rows and nature's best moves by ``judge``, and the expected steps.

        The values are from the lower and from the upper values outside of the component.
        """
        from scipy.sparse import csc_array, csr_array, eye_array
        from scipy.sparse.linalg import splu

        n = self.end - self.start
        rows = self.board.rows
        offset, constants = np.zeros(n + 1, dtype=np.int32), np.ones((n, 3))
        chosen = best_row[self.start : self.end]
        size = int((rows[1][chosen + 1] - rows[1][chosen]).sum())
        column, entry = np.empty(size, dtype=np.int32), np.empty(size)
        used = kernels.chain_of_best(
            self.start, self.end, *rows[1:7], rows[9], judge, self.low, self.high, best_row, offset, column, entry,
            constants,
        )  # fmt: skip
        chain = csr_array((entry[:used], column[:used], offset), shape=(n, n))
        try:
            solution = splu(csc_array(eye_array(n) - chain)).solve(constants)
        except RuntimeError:  # singular: these moves may stay for ever
            return None
        lower, upper, steps = solution.T
        if not (np.isfinite(solution).all() and (steps > 0).all() and (lower >= -1e-9).all()):
            return None
        return lower, upper, steps

    def _greedy(self, values: FloatArray) -> IntArray:
        """Return the agent's best row for each position, and leave rows in nature's order."""
        agent = self.board.rows[8]
        best_row = self.best_row.copy()
        stepped = np.full(self.end, -np.inf if agent > 0 else np.inf)
        self.board.sweep(self.start, self.end, values, stepped, best_row, side=-1.0 if agent > 0 else 1.0)
        return best_row
