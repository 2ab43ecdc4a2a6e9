"""Automata of all other formulas of linear temporal logic by Spot, if it is installed (conda-forge has it)."""

from __future__ import annotations

from plumdp.base.errors import MissingExtra, ModelError, needs
from plumdp.model.graph import BoolArray
from plumdp.model.missions.automaton import Automaton
from plumdp.model.missions.hoa import parse_hoa
from plumdp.model.missions.logic import Path
from plumdp.model.missions.recurrence import Recurrence

_MOST_STEPS = 100  # of a window, which Spot has no operator for that stays short


def translated(path: Path, n_states: int, *, is_max: bool) -> tuple[Automaton | Recurrence, bool] | None:
    """Return the automaton of a formula, as ``read_hoa`` does, or None if Spot is not installed."""
    try:
        with needs("Spot"):
            import spot
    except MissingExtra:
        return None
    if not hasattr(spot, "translate"):  # another package of that name
        return None
    states: dict[str, BoolArray] = {}
    formula = for_spot(path, states)
    automaton = spot.translate(formula, "deterministic", "generic", "complete")
    return parse_hoa(automaton.to_str("hoa"), states.__getitem__, n_states, is_max=is_max)


def for_spot(path: Path, states: dict[str, BoolArray]) -> str:
    """Return a formula in the syntax of Spot, where p0, p1, … are sets of states, which are added to ``states``."""
    if path.states is not None:
        name = next((name for name, other in states.items() if (other == path.states).all()), f"p{len(states)}")
        states[name] = path.states
        return name
    parts = [for_spot(each, states) for each in path.operands]
    names = {"=>": "->", "<=>": "<->"}
    if path.window is None:
        operator = names.get(path.operator, path.operator)
        return f"{operator}({parts[0]})" if len(parts) == 1 else f"(({parts[0]}) {operator} ({parts[1]}))"
    return _windowed(path.operator, parts, *path.window)


def _windowed(operator: str, parts: list[str], first: int, last: int) -> str:
    """Return F, G or U with steps by X: ``a U[i,j] b`` is b, or a and the same one step later."""
    if last > _MOST_STEPS:
        raise ModelError(
            f"{operator}[{first},{last}]: beside operators without steps, take at most {_MOST_STEPS} steps"
        )
    stay, goal = parts[0] if operator == "U" else "1" if operator == "F" else "0", parts[-1]
    join, other = ("&", "|") if operator != "G" else ("|", "&")
    text = f"({goal})"
    for step in reversed(range(last)):
        later = f"({stay}) {join} X({text})"
        text = f"(({goal}) {other} ({later}))" if step >= first else f"({later})"
    return text
