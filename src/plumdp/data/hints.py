"""What may be meant by values of a log that the model does not have."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.data.values import Texts, domain, shown, whole
from plumdp.model.graph import Graph

NUMBERED = "it is not known which action a number is"


def likely_word(given: Any, words: Sequence[str]) -> str | None:
    """Return the word that a text is likely to stand for, if there is one.

    >>> likely_word("Esat", ["west", "east", "north"]), likely_word("fly", ["west", "east"])
    ('east', None)
    """
    folded = {word.casefold(): word for word in reversed(words)}
    text = given.strip().casefold() if isinstance(given, str) else ""
    near = get_close_matches(text, folded, n=3, cutoff=0.6) if text else []
    return folded[max(near, key=lambda word: (_likeness(word, text), word[0] == text[0]))] if near else None


def _likeness(word: str, text: str) -> float:
    """Return how alike two words are; letters that changed places are the most likely mistake."""
    return 0.99 if sorted(word) == sorted(text) else SequenceMatcher(None, text, word).ratio()


def action_hint(graph: Graph, given: Any) -> str:
    """Return which action a name may stand for, or which there are if they are few."""
    word = likely_word(given, graph.action_names)
    if word is not None:
        is_same = given.strip().casefold() == word.casefold()
        return f"did you mean {word!r}?" + (" lower, upper and trim make names alike" if is_same else "")
    names = dict.fromkeys(graph.action_names)
    if whole(given) is not None:
        return f"{NUMBERED}: the model has {', '.join(map(repr, names))}, in no order that is clear"
    return f"the actions are {', '.join(map(repr, names))}" if len(names) <= 6 and all(names) else ""


def state_hint(graph: Graph, values: Sequence[Any]) -> str:
    """Return which value of a state is not one of its variable, and what such values are."""
    values = [None if isinstance(value, float) and not isfinite(value) else value for value in values]
    for (name, own), value in zip(graph.states.items(), values, strict=True):
        if value is None or domain(own).code(_column(value))[0] >= 0:
            continue
        known = domain(own)
        if isinstance(known, Texts):
            word = likely_word(value, known.words)
            if word is not None:
                return f"{name}={shown(value)}: did you mean {word}?"
            return f"{name} is {', '.join(known.words)} in the model" if len(known.words) <= 6 else ""
        return f"{name} is true or false" if known.is_truth else f"{name} is {own.min()} to {own.max()} in the model"
    return "" if None in values else "each value is known, but the model has no state with all of them"


def _column(value: Any) -> npt.NDArray[Any]:
    column = np.empty(1, dtype=np.object_)
    column[0] = value
    return column
