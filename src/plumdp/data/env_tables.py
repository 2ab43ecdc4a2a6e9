"""Tables made from tabular environments of Gymnasium: which states an action may lead to, and not how likely."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.model.batches import State
from plumdp.model.graph import BoolArray, FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.model.table_model import STAY, table_model


def table_from_env(
    env: Any,
    *,
    initial: int | None = None,
    labels: Mapping[str, Callable[[State], BoolArray]] | None = None,
    rewards: Mapping[str, Callable[[State], FloatArray]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], FloatArray]] | None = None,
) -> ParametricMDP:
    """Return the table of an environment that lists its transitions in ``P``, such as FrozenLake or Taxi.

    Only the successors are taken from it: the probabilities are unknown, to be learned from episodes (``sample_env``)
    or logs. The variable is called "state". Actions are called "0", "1" and so on. In states in which an episode
    terminates, "stay" is the only action, and they have the label "terminal". ``initial`` is needed if episodes start
    in different states. States that no episode can reach are left out. Labels and rewards are functions of all states
    at once, as in ``explore_batch``.

    >>> from types import SimpleNamespace
    >>> from plumdp.data import table_from_env
    >>> listed = {0: {0: [(0.4, 0, 0.0, False), (0.6, 1, 1.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
    >>> table_from_env(SimpleNamespace(P=listed), initial=0)
    ParametricMDP(2 states, 3 transitions, 1 unknown row)
    """
    owner = getattr(env, "unwrapped", env)
    listed = getattr(owner, "P", None)
    if not isinstance(listed, Mapping) or not listed:
        raise DataError(
            f"{type(owner).__name__} does not list its transitions in P, as tabular environments do; write a step "
            "function with unknown(…) for explore, or make a table of recorded episodes with model_from_log"
        )
    weights = getattr(owner, "initial_state_distrib", ())
    starts = [*np.flatnonzero(np.asarray(weights) > 0).tolist(), *([] if initial is None else [initial])]
    if not starts or (initial is None and len(starts) > 1):
        problem = f"start in {len(starts):,} states" if starts else "start in states that it does not list"
        raise DataError(
            f"episodes of {type(owner).__name__} {problem}: give initial=, the state that questions are about"
        )
    if starts[-1] not in listed:
        raise DataError(f"initial={initial!r}: {type(owner).__name__} has no such state")
    steps, terminal = _reached(_steps(listed), starts)
    rows = [(s, str(a), t) for s, a, t in steps] + [(s, STAY, s) for s in sorted(terminal)]
    source, action, target = zip(*rows, strict=True)
    ends = np.array(sorted(terminal), dtype=np.int64)
    marked = {"terminal": lambda s: np.isin(s.state, ends), **(labels or {})}
    return table_model(
        source, action, target, initial=starts[-1], labels=marked, rewards=rewards, choice_rewards=choice_rewards
    )


def _steps(listed: Mapping[int, Any]) -> dict[int, list[tuple[int, int, bool]]]:
    """Return for each state the possible steps: action, next state, and whether the episode terminates there."""
    steps: dict[int, list[tuple[int, int, bool]]] = {}
    for state, rows in listed.items():
        for action, outcomes in rows.items() if isinstance(rows, Mapping) else enumerate(rows):
            for outcome in outcomes:
                if not isinstance(outcome, tuple | list) or len(outcome) != 4:
                    form = "a probability, next state, reward and end"
                    raise DataError(f"P[{state}][{action}]: {outcome!r} is not {form}")
                probability, after, _, is_over = outcome
                if probability > 0:
                    steps.setdefault(int(state), []).append((int(action), int(after), bool(is_over)))
    return steps


def _reached(
    steps: Mapping[int, list[tuple[int, int, bool]]], starts: list[int]
) -> tuple[list[tuple[int, int, int]], set[int]]:
    """Return the steps that episodes can take, and where they terminate; where others go on, that is refused."""
    queue, reached, terminal = [*starts], {*starts}, set[int]()
    kept: list[tuple[int, int, int]] = []
    for state in queue:  # grows while it is walked
        for action, after, is_over in steps.get(state, ()):
            kept.append((state, action, after))
            if is_over:
                terminal.add(after)
            elif after not in reached:
                reached.add(after)
                queue.append(after)
    both = sorted(terminal & reached)
    if both:
        raise DataError(
            f"state {both[0]}: some episodes terminate there and others go on; a table needs a state of its own for "
            "the end, so write a step function for explore"
        )
    return kept, terminal
