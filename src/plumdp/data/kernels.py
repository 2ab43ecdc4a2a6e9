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


@compiled_leaf
def _bin(n: int) -> int:
    """Return the number of binary digits, at most 7."""
    digits = 0
    while n > 0 and digits < 7:
        n, digits = n >> 1, digits + 1
    return digits


@compiled
def count_pasts(
    first: Any,
    state: Any,
    choice: Any,
    transition: Any,
    is_pilot: Any,
    tables: Any,
    memory: Any,
    cells: Any,
    past: Any,
    pasts: Any,
) -> None:
    """Add to ``cells`` (2, n_transitions, kinds, values) each step by its past; see ``ContextCounter`` for arguments.

    ``memory`` (3, n_choices) has the run that visited a row last, by a number, and how often, and the value of its last
    outcome. Numbers of runs go on from one call to the next, in the memory of the first row. ``past`` (n_runs) says
    which of ``pasts`` each run had before its first step here, or -1.
    """
    place, rank, successor = tables
    run_of, visits_of, last_of = memory
    ends, before, visited = pasts
    number = np.int64(0)
    for i in range(len(run_of)):
        number = max(number, run_of[i])
    for run in range(len(first) - 1):
        number += 1
        n_steps, since, taken = np.int64(0), np.int64(0), np.int64(-1)
        if past[run] >= 0:
            n_steps, since, taken = before[0, past[run]], before[1, past[run]], before[2, past[run]]
            for i in range(ends[past[run]], ends[past[run] + 1]):
                run_of[visited[0, i]] = number
                visits_of[visited[0, i]], last_of[visited[0, i]] = visited[1, i], visited[2, i]
        for i in range(first[run], first[run + 1]):
            step = n_steps + i - first[run]
            if i > first[run]:
                since = since + 1 if state[i] == state[i - 1] else np.int64(0)
                taken = transition[i - 1]
            previous = rank[taken] if taken >= 0 and successor[taken] == state[i] else 7 * (step > 0)
            visits, last = 0, 0
            if choice[i] >= 0:
                if run_of[choice[i]] == number:
                    visits, last = visits_of[choice[i]], last_of[choice[i]]
                run_of[choice[i]], visits_of[choice[i]] = number, visits + 1
                last_of[choice[i]] = 7 if transition[i] < 0 else place[transition[i]]
            if transition[i] >= 0:
                part, led = np.int64(is_pilot[i]), transition[i]
                cells[part, led, 0, _bin(visits)] += 1
                cells[part, led, 1, last] += 1
                cells[part, led, 2, previous] += 1
                cells[part, led, 3, step if step < 4 else min(_bin(step) + 1, 7)] += 1
                cells[part, led, 4, _bin(since)] += 1


_ODD = np.uint64(0x9E3779B97F4A7C15)


@compiled_leaf
def _slot(key: Any, slots: Any, numbers: Any) -> Any:
    """Return where a key is in a hash table with a power of two slots, or the free slot where it would be."""
    mask = np.uint64(len(slots) - 1)
    mixed = key ^ (key >> _HALF)
    place = ((mixed * _ODD) >> _HALF) & mask
    while numbers[place] >= 0 and slots[place] != key:
        place = (place + np.uint64(1)) & mask
    return place


@compiled
def fill_table(keys: Any, slots: Any, numbers: Any) -> None:
    """Put keys into an empty hash table, with their numbers."""
    for i in range(len(keys)):
        place = _slot(keys[i], slots, numbers)
        slots[place], numbers[place] = keys[i], i


@compiled
def read_steps(steps: Any, rows: Any, about: Any, pairs: Any, n_states: int, found: Any, is_in_pilot: Any) -> None:
    """Write state, choice and transition (3, n_steps) of rows of runs, and whether the pilot has them.

    A row (a hash) has a number, by which ``about`` says its state and choice, its state by a number among ``n_states``
    there are in the log, and its transition. In runs, where a row leads is seen in the next one: then ``pairs`` has the
    transitions of a row, the state of the next one, and whether it is one step later (1), more (2), or missing (0).
    """
    run, step, key, is_pilot = steps
    slots, numbers = rows
    (slots_of_pairs, numbers_of_pairs), transition_of_pair = pairs
    row = numbers[_slot(key[0], slots, numbers)]
    for i in range(len(key)):
        found[0, i], found[1, i], found[2, i] = about[0, row], about[1, row], about[3, row]
        is_in_pilot[i] = is_pilot[i]
        goes_on = i + 1 < len(key) and run[i + 1] == run[i]
        after = numbers[_slot(key[i + 1], slots, numbers)] if i + 1 < len(key) else row
        if n_states > 0:
            pair = row * n_states * 3
            if goes_on:
                pair += about[2, after] * 3 + (1 if step[i + 1] == step[i] + 1 else 2)
                is_in_pilot[i] = is_pilot[i] and is_pilot[i + 1]  # a step is seen when the later of its two rows is
            number = numbers_of_pairs[_slot(np.uint64(abs(pair)), slots_of_pairs, numbers_of_pairs)]
            found[2, i] = transition_of_pair[number] if number >= 0 and row >= 0 else -1
        row = after
