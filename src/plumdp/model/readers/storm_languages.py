"""The parameters, constants and commands of PRISM and JANI files as Storm parsed them.

Storm's module is passed as an argument: only ``storm.py`` imports it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from plumdp.base.errors import ModelError, Option
from plumdp.model.expressions.polynomial import Number, Polynomial, exact
from plumdp.model.language.formula import Formula, evaluate, literal
from plumdp.model.readers.commands import Branch, ModuleCommand
from plumdp.model.readers.reward_items import Item, formula, formula_at, reward_items
from plumdp.model.readers.storm_messages import OVERLAP, command_lines


@dataclass(frozen=True, eq=False)
class Source:
    """A parsed model file, whichever language it is in."""

    described: Any  # Storm's symbolic model, undefined only in the parameters
    unknown: tuple[str, ...]  # undefined real constants: the parameters
    constants: Mapping[str, bool | int | Fraction]
    commands: Callable[[Any, int], tuple[ModuleCommand, ...]]  # (built model, choice) → its synchronised commands
    numbered: Mapping[int, ModuleCommand]  # the commands of a PRISM file by Storm's numbers of them
    needs_choice_labels: bool = False  # whether the commands take their names from the built model
    hidden: frozenset[str] = frozenset()  # variables of the built states that are none of the model
    rewards: Mapping[str, Sequence[Item]] = field(default_factory=dict)  # structures that depend on parameters


def open_prism(stormpy: Any, path: Path, constants: dict[str, Fraction]) -> Source:
    """Return the contents of a PRISM file."""
    text = text_of(path)
    _refuse_model_type(_prism_model_type(text))
    program = stormpy.parse_prism_program(str(path))
    program, unknown = _define(stormpy, program, constants)
    symbolic = program.substitute_formulas().substitute_constants()
    for label in symbolic.labels:
        _refuse(label.expression, set(unknown), f'label "{label.name}"')
    commands, owner, lines = {}, {}, command_lines(text)
    for module in symbolic.modules:
        for number, command in enumerate(module.commands):
            line = lines.get((module.name, number))
            commands[command.global_index] = _prism_command(module.name, number, line, command, set(unknown))
            owner[command.global_index] = module.name

    def joint_commands(built: Any, choice: int) -> tuple[ModuleCommand, ...]:
        indices = sorted(built.choice_origins.get_command_set(choice))
        if len({owner[index] for index in indices}) < len(indices):
            raise ModelError(OVERLAP)
        return tuple(commands[index] for index in indices)

    rewards = reward_items(stormpy, symbolic, text, set(unknown))
    constants_of_file = _constant_values(program.constants)
    return Source(program, unknown, constants_of_file, joint_commands, commands, rewards=rewards)


def open_prism_intervals(
    stormpy: Any, path: Path, constants: dict[str, Fraction]
) -> tuple[Any, dict[str, bool | int | Fraction]]:
    """Return the program of a PRISM file without parameters, and the values of its constants."""
    _refuse_model_type(_prism_model_type(text_of(path)))
    program = stormpy.parse_prism_program(str(path))
    program, unknown = _define(stormpy, program, constants)
    if unknown:
        have = "has no value" if len(unknown) == 1 else "have no values"
        example = Option("constants", dict.fromkeys(unknown, 0.3))
        raise ModelError(f"{', '.join(unknown)} {have}; give ", example, ", or learn from data with certify")
    return program, _constant_values(program.constants)


def exact_constants(constants: Mapping[str, Number] | None) -> dict[str, Fraction]:
    """Return values of constants as fractions, and refuse by name what is not a number."""
    values = {}
    for name, value in (constants or {}).items():
        try:
            values[name] = exact(value)
        except ModelError as error:
            raise ModelError(f"the constant {name}: {error}") from None
    return values


def text_of(path: Path) -> str:
    """Return the text of a model file, which must be UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"this is not a text in UTF-8 (byte {error.start:,}); save it as UTF-8") from None


def _json_of(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise ModelError(f"this is not JSON, which JANI files are: {error}") from None
    except RecursionError:
        raise ModelError("this is not a JANI model: it is nested too deeply") from None
    if not isinstance(content, dict):
        raise ModelError("this is not a JANI model: it must be a JSON object")
    return content


def _prism_model_type(text: str) -> str:
    """Return the keyword that says what kind of model a PRISM file holds."""
    kinds = r"mdp|dtmc|ctmc|ctmdp|pta|popta|pomdp|smg|ma|nondeterministic|probabilistic|stochastic"
    code = re.sub(r"//.*", "", text)
    if re.search(r":\s*clock\b", code):  # Storm would take it for an integer
        return "pta"
    match = re.search(rf"^\s*({kinds})\b", code, re.MULTILINE)
    kind = match[1] if match else "mdp"
    return {"nondeterministic": "mdp", "probabilistic": "dtmc", "stochastic": "ctmc"}.get(kind, kind)


_REMEDIES = {
    "ctmc": "; if time does not matter, write its jumps as a dtmc, with parameters for their probabilities",
    "pta": "; write its clocks as int variables of an mdp, which an action of all modules moves on",
    "pomdp": "; an mdp of the same commands has policies that see every variable",
}


def _refuse_model_type(kind: str) -> None:
    if kind not in ("mdp", "dtmc"):
        raise ModelError(f"this is a {kind}; only an mdp or a dtmc can be read{_REMEDIES.get(kind, '')}")


def _prism_command(module: str, number: int, line: int | None, command: Any, unknown: set[str]) -> ModuleCommand:
    action = command.action_name or f"{module}.{number + 1}"
    place = f"module {module}, " + (f"line {line}, " if line else "") + f"action {action!r}"
    _refuse(command.guard_expression, unknown, f"{place}: the guard")
    shared: dict[str, Formula] = {}
    branches = []
    for update in command.updates:
        for assignment in update.assignments:
            _refuse(assignment.expression, unknown, f"{place}: the update of {assignment.variable.name}")
        moves = {a.variable.name: formula_at(place, a.expression, shared) for a in update.assignments}
        branches.append(Branch(formula_at(place, update.probability_expression, shared), moves))
    return ModuleCommand(action, tuple(branches), place)


def _refuse(expression: Any, unknown: set[str], where: str) -> None:
    used = sorted(unknown & {v.name for v in expression.get_variables()})
    if used:
        _refuse_parameter(f"{where} depends", used[0])


def _refuse_parameter(depends: str, name: str) -> NoReturn:
    value = Option("constants", {name: ...})
    raise ModelError(f"{depends} on the parameter {name}; only probabilities may: give {name} a value, ", value)


def _constant_values(constants: Any) -> dict[str, bool | int | Fraction]:
    """Return the values of the defined constants, each of which may be written in terms of earlier ones.

    Those that depend on parameters, such as ``const double q = 1-p``, have none.
    """
    values: dict[str, bool | int | Fraction] = {}
    for constant in constants:
        definition = formula(constant.definition, {}) if constant.defined else None
        if definition is not None and definition.variables() <= values.keys():
            value = evaluate(definition, values)
            number = value.constant if isinstance(value, Polynomial) else value
            values[constant.name] = _typed(number, str(constant.type))
    return values


def _typed(value: bool | int | Fraction, kind: str) -> bool | int | Fraction:
    return bool(value) if kind == "bool" else int(value) if kind == "int" else Fraction(value)


def open_jani(stormpy: Any, path: Path, constants: dict[str, Fraction]) -> Source:
    """Return the contents of a JANI file."""
    content = _json_of(path)
    model, _ = stormpy.parse_jani_model(str(path))
    _refuse_model_type(str(content.get("type", "mdp")))
    model, unknown = _define(stormpy, model, constants)
    _refuse_jani_parameters(content, set(unknown))
    automata = list(model.substitute_constants().automata)
    transient = {v["name"] for v in _jani_variables(content) if v.get("transient")}
    single = {a.location_variable.name for a in automata if len(a.locations) == 1}
    commands: dict[int, ModuleCommand] = {}

    def joint_commands(built: Any, choice: int) -> tuple[ModuleCommand, ...]:
        names = sorted(built.choice_labeling.get_labels_of_choice(choice))
        for index in built.choice_origins.get_edge_index_set(choice):
            if index not in commands:
                automaton, edge = model.decode_automaton_and_edge_index(index)
                action = names[0] if names else f"{automata[automaton].name}.{edge + 1}"
                commands[index] = _jani_command(action, automata[automaton], edge, transient | single)
        return tuple(commands[index] for index in sorted(built.choice_origins.get_edge_index_set(choice)))

    kinds = {c.name: str(c.type) for c in model.constants}
    given = {c["name"]: c["value"] for c in content.get("constants", []) if isinstance(c.get("value"), int | float)}
    values = {name: _typed(exact(value), kinds[name]) for name, value in {**given, **constants}.items()}
    return Source(model, unknown, values, joint_commands, {}, True, frozenset(transient | single))


def _jani_command(action: str, automaton: Any, edge: int, hidden: set[str]) -> ModuleCommand:
    place = f"automaton {automaton.name}, action {action!r}"
    shared: dict[str, Formula] = {}
    branches = []
    for destination in automaton.edges[edge].destinations:
        moves = {automaton.location_variable.name: literal(int(destination.target_location_index))}
        moves |= {a.variable.name: formula_at(place, a.expression, shared) for a in destination.assignments}
        visible = {name: value for name, value in moves.items() if name not in hidden}
        branches.append(Branch(formula_at(place, destination.probability, shared), visible))
    return ModuleCommand(action, tuple(branches), place)


def _jani_variables(content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for owner in [content, *content.get("automata", [])]:
        yield from owner.get("variables", [])


def _refuse_jani_parameters(content: Mapping[str, Any], unknown: set[str]) -> None:
    """Refuse parameters outside probabilities, except in the rewards of PRISM files."""
    for automaton in content.get("automata", []):
        inside = [{k: v for k, v in location.items() if k != "name"} for location in automaton.get("locations", [])]
        for edge in automaton.get("edges", []):
            outcomes = [destination.get("assignments") for destination in edge.get("destinations", [])]
            inside += [edge.get("guard"), edge.get("assignments"), *outcomes]
        used = sorted(unknown & set(_identifiers([inside, automaton.get("variables")])))
        if used:
            _refuse_parameter(f"automaton {automaton['name']}: a guard, update or reward depends", used[0])


def _identifiers(tree: Any) -> Iterator[str]:
    """Yield the names in a JANI expression, which are its strings, except those that are not expressions."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, list):
        for item in tree:
            yield from _identifiers(item)
    elif isinstance(tree, dict):
        for key, item in tree.items():
            if key not in ("comment", "op", "ref", "name", "type"):
                yield from _identifiers(item)


def _define(stormpy: Any, description: Any, constants: dict[str, Fraction]) -> tuple[Any, tuple[str, ...]]:
    """Return the model with the given constants filled in, and its parameters, which are the other undefined reals."""
    undefined = {c.name: str(c.type) for c in description.constants if not c.defined}
    for name in constants:
        if name not in undefined:
            is_known = name in {c.name for c in description.constants}
            state = "has a value in the file already" if is_known else "is not a constant of the model"
            free = ", ".join(undefined) or "none"
            raise ModelError(f"{name} {state}; the undefined constants are {free}")
    values: dict[str, Any] = {}
    for name, value in constants.items():
        if undefined[name] == "bool":
            if value not in (0, 1):
                raise ModelError(f"the constant {name} is a bool and cannot be {value}")
            values[name] = bool(value)
        elif undefined[name] == "int":
            if value.denominator != 1:
                raise ModelError(f"the constant {name} is an int and cannot be {value}")
            if abs(value) >= 2**31:
                raise ModelError(f"the constant {name} leaves the range of 32-bit integers")
            values[name] = int(value)
        else:
            values[name] = stormpy.Rational(str(value))
    missing = [name for name, kind in undefined.items() if name not in constants and kind not in ("rational", "double")]
    if missing:
        example = Option("constants", dict.fromkeys(missing, ...))
        raise ModelError(f"no value for {', '.join(missing)}; give ", example)
    unknown = tuple(name for name in undefined if name not in constants)
    return stormpy.instantiate_constants(description, values)[0], unknown
