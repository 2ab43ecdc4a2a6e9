"""Writes interval models as PRISM's explicit text files: ``.tra``, ``.lab``, ``.sta``, ``.srew`` and ``.trew``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import FloatArray, Graph
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP, IntervalModel


def write_tra(model: IntervalModel, path: str | Path) -> None:
    """Write the transitions as ``state choice successor [lower,upper] action``, and all else to files beside it.

    Files of rewards that an earlier model left beside it are deleted, as a reader would take them for this one's.
    """
    file = Path(path)
    check_words(file, "action", model.graph.action_names)
    _check_labels(file, model.labels)
    _write(file, _transitions(model.mdp))
    _write(file.with_suffix(".lab"), _labels(model))
    _write(file.with_suffix(".sta"), _states(file, model.graph))
    for old in (*file.parent.glob(f"{file.stem}*.srew"), *file.parent.glob(f"{file.stem}*.trew")):
        if old.stem.removeprefix(file.stem).isdigit() or old.stem == file.stem:
            old.unlink()
    for number, (name, reward) in enumerate(model.rewards.items(), 1):
        stem = file.stem if len(model.rewards) == 1 else f"{file.stem}{number}"
        _write(file.with_name(f"{stem}.srew"), _state_rewards(name, reward, model.graph))
        _write(file.with_name(f"{stem}.trew"), _choice_rewards(name, reward, model.graph))


def check_words(file: Path, thing: str, names: Iterable[str]) -> None:
    """Refuse names with blanks, which separate columns in texts."""
    for name in names:
        if name and (len(name.split()) != 1 or name != name.strip()):
            raise ModelError(f"{file}: {thing} {name!r} has blanks, which a text cannot hold; write a file .umb")


def _check_labels(file: Path, labels: Iterable[str]) -> None:
    for name in labels:
        if '"' in name or "\n" in name or name == "init":
            raise ModelError(f"{file}: label {name!r} cannot be written; give it another name")


def _write(file: Path, lines: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.writelines(f"{line}\n" for line in lines)


def _transitions(mdp: IntervalMDP) -> Iterable[str]:
    graph, choice = mdp.graph, mdp.graph.choice_of_transition()
    state = graph.state_of_choice()
    local = np.arange(graph.n_choices) - graph.first_choice[state]
    yield f"{graph.n_states} {graph.n_choices} {graph.n_transitions}"
    columns = (
        state[choice].tolist(),
        local[choice].tolist(),
        graph.successor.tolist(),
        mdp.lower[mdp.expression].tolist(),
        mdp.upper[mdp.expression].tolist(),
        graph.action[choice].tolist(),
    )
    names = [f" {name}" if name else "" for name in graph.action_names]
    for source, number, target, lower, upper, action in zip(*columns, strict=True):
        yield f"{source} {number} {target} [{lower!r},{upper!r}]{names[action]}"


def _labels(model: IntervalModel) -> Iterable[str]:
    masks = {"init": np.arange(model.graph.n_states) == model.graph.initial_state, **model.labels}
    yield " ".join(f'{number}="{name}"' for number, name in enumerate(masks))
    held: dict[int, list[str]] = {}
    for number, mask in enumerate(masks.values()):
        for state in np.flatnonzero(mask).tolist():
            held.setdefault(state, []).append(str(number))
    for state in sorted(held):
        yield f"{state}: {' '.join(held[state])}"


def _states(file: Path, graph: Graph) -> Iterable[str]:
    columns = [text_column(file, name, graph) for name in graph.states]
    yield f"({','.join(graph.states)})"
    for state, values in enumerate(zip(*columns, strict=True)):
        yield f"{state}:({','.join(values)})"


def text_column(file: Path, name: str, graph: Graph) -> list[str]:
    """Return the values of a state variable as words: numbers, ``true`` and ``false``, or texts without separators."""
    values = graph.states[name]
    texts = [str(value).lower() for value in values.tolist()] if values.dtype.kind == "b" else [*map(str, values)]
    for text in set(texts) | {name}:
        if any(mark in text for mark in "(),&=:[]\n\t") or text != text.strip():
            problem = f"state variable {name}: {text!r} has marks that separate values in this format"
            raise ModelError(f"{file}: {problem}; choose another one")
    return texts


def _state_rewards(name: str, reward: RewardStructure, graph: Graph) -> Iterable[str]:
    values = np.zeros(graph.n_states) if reward.state is None else reward.state
    yield from _header(name, "State")
    yield f"{graph.n_states} {np.count_nonzero(values)}"
    for state in np.flatnonzero(values).tolist():
        yield f"{state} {float(values[state])!r}"


def _choice_rewards(name: str, reward: RewardStructure, graph: Graph) -> Iterable[str]:
    """Yield the rewards of choices, which PRISM writes beside each of their transitions."""
    values: FloatArray = np.zeros(graph.n_choices) if reward.choice is None else reward.choice
    state = graph.state_of_choice()
    edges = graph.transitions_of(np.flatnonzero(values))
    yield from _header(name, "Transition")
    yield f"{graph.n_states} {graph.n_choices} {len(edges)}"
    choice = graph.choice_of_transition()
    for edge in edges.tolist():
        at = int(choice[edge])
        local = at - int(graph.first_choice[state[at]])
        yield f"{state[at]} {local} {graph.successor[edge]} {float(values[at])!r}"


def _header(name: str, part: str) -> Iterable[str]:
    yield f'# Reward structure "{name}"' if name else "# Reward structure"
    yield f"# {part} rewards"
