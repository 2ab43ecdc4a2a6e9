"""Compiled loops of the data stage: random words, runs of a model, and what is counted along them.

The random words are those of Philox4x64-10 (Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3,
SC 2011), a function of a key and a counter that passes all known batteries of tests. Word ``w`` of run ``i`` is word
``w`` of ``numpy.random.Philox(key=key, counter=[0, i, 0, 0])``, whoever computes it and when.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf

_ENDED = np.int32(-1)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ROUNDS = 10
_FEW = 10_000  # elements: a step of a run takes long in plain Python, for its random words


class WalkTables(NamedTuple):
    """All that a step of a run is drawn from: the graph, running sums of probabilities, and where runs end.

    What is counted are the transitions of rows: of a stored model its distinct rows, otherwise those of the choices.
    """

    first_choice: Any  # (n_states + 1)
    first_transition: Any  # (n_choices + 1)
    successor: Any  # (n_transitions)
    row: Any  # (n_choices): the distinct row of each choice; empty if each choice is a row of its own
    first_of_row: Any  # (n_rows + 1): where the transitions of each row start
    cumulative: Any  # running sums of the probabilities of each row
    chosen: Any  # (n_states): the policy's choice; empty if it draws choices
    weights: Any  # (n_choices): running sums of the policy's probabilities in each state; empty if it is uniform
    stop: Any  # (n_states): whether a run ends there


@compiled_leaf
def fill_words(key: Any, block: int, runs: Any, words: Any) -> None:
    """Write the four words of one block of each run's stream into ``words`` (4, n_runs)."""
    for i in range(len(runs)):
        c0, c1, c2, c3 = np.uint64(block + 1), runs[i], np.uint64(0), np.uint64(0)
        k0, k1 = key[0], key[1]
        for _ in range(_ROUNDS):
            high0, high1 = _high_product(_MULTIPLIER_0, c0), _high_product(_MULTIPLIER_1, c2)
            low0, low1 = _MULTIPLIER_0 * c0, _MULTIPLIER_1 * c2
            c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
            k0, k1 = k0 + _WEYL_0, k1 + _WEYL_1
        words[0, i], words[1, i], words[2, i], words[3, i] = c0, c1, c2, c3


@compiled_leaf
def _high_product(a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the product of two 64-bit words."""
    a_low, a_high, b_low, b_high = a & _LOW_HALF, a >> _HALF, b & _LOW_HALF, b >> _HALF
    cross = a_high * b_low
    middle = ((a_low * b_low) >> _HALF) + (cross & _LOW_HALF) + a_low * b_high
    return a_high * b_high + (cross >> _HALF) + (middle >> _HALF)


@compiled
def cumulate(first: Any, probability: Any, cumulative: Any) -> None:
    """Write the running sums within each group; from a group's last positive probability on they are infinite."""
    for group in range(len(first) - 1):
        total, last = 0.0, first[group]
        for i in range(first[group], first[group + 1]):
            total += probability[i]
            cumulative[i] = total
            if probability[i] > 0:
                last = i
        cumulative[last : first[group + 1]] = np.inf  # the sum may be just below 1, and must not let a word through


@compiled_leaf
def _draw(cumulative: Any, start: int, end: int, word: Any) -> int:
    """Return the first index whose running sum is above the word, read as a multiple of 2^-53 in [0, 1)."""
    uniform = np.float64(word >> np.uint64(11)) * 2.0**-53
    while end - start > 8:
        middle = (start + end) >> 1
        if cumulative[middle - 1] <= uniform:
            start = middle
        else:
            end = middle
    while cumulative[start] <= uniform:
        start += 1
    return start


@partial(compiled, small=_FEW)
def walk(tables: Any, key: Any, first_step: int, runs: Any, state: Any, steps: Any) -> None:
    """Advance all runs by ``len(steps)`` steps; write the transition of its row that each takes, or -1 behind its end.

    Runs advance side by side, so that the processor works on one while another waits for memory. A step takes two words
    of the run's stream: one for the choice, one for the successor. ``first_step`` is even; ``state`` is -1 after a
    run's end, which comes with reaching a state of ``stop``.
    """
    first_choice, first_transition, successor, row, first_of_row, cumulative, chosen, weights, stop = tables
    words, has_rows = np.empty((4, len(runs)), dtype=np.uint64), len(row) > 0
    for step in range(len(steps)):
        of_choice, of_successor = 2 * (step % 2), 2 * (step % 2) + 1
        if of_choice == 0:
            fill_words(key, (first_step + step) // 2, runs, words)
        for i in range(len(runs)):
            if state[i] == _ENDED:
                steps[step, i] = _ENDED
                continue
            if len(chosen):
                choice = np.int64(chosen[state[i]])
            else:
                start, end = np.int64(first_choice[state[i]]), np.int64(first_choice[state[i] + 1])
                if len(weights):
                    choice = _draw(weights, start, end, words[of_choice, i])
                else:
                    choice = start + np.int64(_high_product(words[of_choice, i], np.uint64(end - start)))
            transition = np.int64(first_transition[choice])
            counted_row = np.int64(row[choice]) if has_rows else choice
            first = np.int64(first_of_row[counted_row]) if has_rows else transition
            place = _draw(cumulative, first, np.int64(first_of_row[counted_row + 1]), words[of_successor, i])
            steps[step, i] = place
            reached = successor[transition + (place - first)]
            state[i] = _ENDED if stop[reached] else reached


@compiled
def count(steps: Any, counts: Any) -> None:
    """Add one to the count of each transition taken."""
    for step in range(steps.shape[0]):
        for i in range(steps.shape[1]):
            if steps[step, i] != _ENDED:
                counts[steps[step, i]] += 1
