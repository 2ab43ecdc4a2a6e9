"""PRISM and JANI files, read through Storm: the only importer of stormpy.

One float build at a generic point gives the states and their choices; the exact polynomials come from evaluating Storm's
expression trees on the distinct valuations; at the end both are compared, transition by transition.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.errors import MissingExtra, ModelError
from plumdp.model.assemble import assemble
from plumdp.model.commands import Branch, Command, transitions
from plumdp.model.formula import Formula, literal, variable
from plumdp.model.graph import Graph, IntArray, read_only
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.polynomial import Number, exact, parameters
from plumdp.model.space import ParameterSpace
from plumdp.model.umb import UmbModel, read_umb

_AGREEMENT = 1e-9  # between Storm's float probabilities and our polynomials at the build point


@dataclass(frozen=True, eq=False)
class _Description:
    """What a model file says, whichever language it is in."""

    path: Path
    unknown: tuple[str, ...]  # undefined real constants: the parameters
    constants: Mapping[str, bool | int | Fraction]
    built: Any  # Storm's float model at the generic point
    joint_commands: Callable[[int], tuple[Command, ...]]  # choice → its synchronised commands


def read_prism(
    path: str | Path, *, constants: Mapping[str, Number] | None = None, space: ParameterSpace | None = None
) -> ParametricMDP:
    """Return the model of a PRISM file; its undefined ``const double`` are the parameters.

    ``constants`` gives values to the other undefined constants (sizes, for instance), or fixes a parameter. ``space`` is
    the unit cube by default; it is always cut to the points at which every affine expression is a probability.

    >>> from plumdp.benchmarks import prism_file
    >>> model = read_prism(prism_file("betting"), constants={"N": 25})
    >>> model.graph.n_states, model.space.names
    (3625, ('p',))
    """
    return _read(path, constants or {}, space, _open_prism)


def read_jani(
    path: str | Path, *, constants: Mapping[str, Number] | None = None, space: ParameterSpace | None = None
) -> ParametricMDP:
    """Return the model of a JANI file, in the same way as ``read_prism``."""
    return _read(path, constants or {}, space, _open_jani)


def _read(path: str | Path, constants: Mapping[str, Number], space: ParameterSpace | None, opener: Any) -> ParametricMDP:
    file = Path(path)
    if not file.is_file():
        raise ModelError(f"{file}: there is no such file")
    stormpy = _stormpy()
    try:
        description, space = opener(stormpy, file, {name: exact(value) for name, value in constants.items()}, space)
        umb = _export(stormpy, description.built)
    except RuntimeError as error:  # Storm's own errors
        raise ModelError(f"{file}: {_plain(error)}") from None
    model = _assemble(description, umb, space)
    _compare(model, umb, space, file)
    return model


def _assemble(description: _Description, umb: UmbModel, space: ParameterSpace) -> ParametricMDP:
    if len(umb.initial_states) != 1:
        raise ModelError(f"{description.path}: {len(umb.initial_states)} initial states; there must be exactly one")
    origins, first_choice_of_origin = np.unique(umb.action, return_index=True)
    commands = {int(o): description.joint_commands(int(c)) for o, c in zip(origins, first_choice_of_origin, strict=True)}
    ordered = tuple(commands.get(o, ()) for o in range(int(origins.max(initial=0)) + 1))
    state_of_choice = np.repeat(np.arange(len(umb.first_choice) - 1, dtype=np.int32), np.diff(umb.first_choice))
    unknown = dict(zip(description.unknown, parameters(*description.unknown), strict=True))
    first_transition, successor, expression = transitions(umb.states, state_of_choice, umb.action, ordered, unknown)
    names = [joint[0].action if joint else "deadlock" for joint in ordered]
    action_names = tuple(dict.fromkeys(names[o] for o in origins))
    action = np.array([action_names.index(name) if name in action_names else -1 for name in names], dtype=np.int32)
    graph = Graph(
        read_only(umb.first_choice),
        read_only(first_transition),
        read_only(successor),
        int(umb.initial_states[0]),
        {name: read_only(column) for name, column in umb.states.items()},
        read_only(action[umb.action]),
        action_names,
    )
    return assemble(
        graph,
        expression,
        space,
        labels={name: read_only(mask) for name, mask in umb.labels.items() if name != "deadlock" or mask.any()},
        rewards={
            name: RewardStructure(_part(parts, "states"), _part(parts, "choices")) for name, parts in umb.rewards.items()
        },
        constants=description.constants,
    )


def _compare(model: ParametricMDP, umb: UmbModel, space: ParameterSpace, path: Path) -> None:
    """Refuse to return a model that differs from what Storm built: same edges, same probabilities at the build point."""
    ours = _sorted_edges(model.graph.first_transition, model.graph.successor)
    theirs = _sorted_edges(umb.first_transition, umb.successor)
    same = np.array_equal(model.graph.first_transition, umb.first_transition)
    same = same and np.array_equal(model.graph.successor[ours], umb.successor[theirs])
    if same:
        generic = np.array([[float(value) for value in space.generic_point().values()]])
        values = model.expressions.evaluate(generic)[:, 0]
        difference = np.abs(values[model.expression[ours]] - umb.probability[theirs])
        same = bool(difference.max(initial=0.0) < _AGREEMENT)
    if not same:
        raise ModelError(
            f"{path}: the transitions read from the commands differ from those Storm built; please report this model"
        )


def _sorted_edges(first_transition: IntArray, successor: IntArray) -> Any:
    choice = np.repeat(np.arange(len(first_transition) - 1, dtype=np.int64), np.diff(first_transition))
    return np.argsort((choice << 32) | successor, kind="stable")


# PRISM ---------------------------------------------------------------------------------------------------------------


def _open_prism(
    stormpy: Any, path: Path, constants: dict[str, Fraction], space: ParameterSpace | None
) -> tuple[_Description, ParameterSpace]:
    program = stormpy.parse_prism_program(str(path))
    if program.model_type.name not in ("MDP", "DTMC"):
        raise ModelError(f"{path}: a {program.model_type.name.lower()} cannot be read; use an mdp or a dtmc")
    undefined = {c.name: str(c.type) for c in program.constants if not c.defined}
    program = _define(stormpy, program, undefined, {c.name for c in program.constants}, constants, path)
    unknown = _unknown(undefined, constants, path)
    space = _space(space, unknown, path)
    symbolic = program.substitute_formulas().substitute_constants()
    _refuse_parameters(symbolic, set(unknown), path)
    built, origins = _build(stormpy, program, space)
    commands = {
        command.global_index: _prism_command(module.name, number, command)
        for module in symbolic.modules
        for number, command in enumerate(module.commands)
    }

    def joint_commands(choice: int) -> tuple[Command, ...]:
        return tuple(commands[index] for index in sorted(origins.get_command_set(choice)))

    known = {c.name: _constant_value(c) for c in program.constants if c.defined}
    return _Description(path, unknown, known, built, joint_commands), space


def _prism_command(module: str, number: int, command: Any) -> Command:
    shared: dict[str, Formula] = {}
    branches = tuple(
        Branch(
            _formula(update.probability_expression, shared),
            {a.variable.name: _formula(a.expression, shared) for a in update.assignments},
        )
        for update in command.updates
    )
    return Command(command.action_name or f"{module}.{number + 1}", branches)


def _refuse_parameters(program: Any, unknown: set[str], path: Path) -> None:
    """Parameters may stand in probabilities only: everything else decides the structure, which must be known."""
    for module in program.modules:
        for command in module.commands:
            where = f"module {module.name}, action {command.action_name!r}"
            _refuse(command.guard_expression, unknown, f"{where}: the guard", path)
            for update in command.updates:
                for assignment in update.assignments:
                    _refuse(assignment.expression, unknown, f"{where}: the update of {assignment.variable.name}", path)
    for label in program.labels:
        _refuse(label.expression, unknown, f'label "{label.name}"', path)
    for name, body in re.findall(r'rewards(?:\s+"([^"]*)")?(.*?)endrewards', str(program), re.DOTALL):
        found = sorted(unknown & set(re.findall(r"[A-Za-z_]\w*", body)))
        if found:
            raise ModelError(f'{path}: rewards "{name}" depend on the parameter {found[0]}; only probabilities may')


def _refuse(expression: Any, unknown: set[str], where: str, path: Path) -> None:
    found = sorted(unknown & {v.name for v in expression.get_variables()})
    if found:
        raise ModelError(f"{path}: {where} depends on the parameter {found[0]}; only probabilities may")


def _constant_value(constant: Any) -> bool | int | Fraction:
    expression = constant.definition
    if expression.has_boolean_type():
        return bool(expression.evaluate_as_bool())
    if expression.has_integer_type():
        return int(expression.evaluate_as_int())
    return _fraction(expression.evaluate_as_rational())


# Common to both ------------------------------------------------------------------------------------------------------


def _define(
    stormpy: Any, description: Any, undefined: dict[str, str], all_names: set[str], constants: dict[str, Fraction], path: Path
) -> Any:
    """Return the model with the given constants filled in."""
    for name in constants:
        if name not in undefined:
            state = "has a value in the file already" if name in all_names else "is not a constant of the model"
            free = ", ".join(undefined) or "none"
            raise ModelError(f"{path}: {name} {state}; the undefined constants are {free}")
    values: dict[str, Any] = {}
    for name, value in constants.items():
        if undefined[name] == "bool":
            values[name] = bool(value)
        elif undefined[name] == "int":
            if value.denominator != 1:
                raise ModelError(f"{path}: the constant {name} is an int and cannot be {value}")
            values[name] = int(value)
        else:
            values[name] = stormpy.Rational(str(value))
    return stormpy.instantiate_constants(description, values)[0]


def _unknown(undefined: dict[str, str], constants: dict[str, Fraction], path: Path) -> tuple[str, ...]:
    """Return the parameters: undefined reals. Other undefined constants must be given."""
    missing = [name for name, kind in undefined.items() if name not in constants and kind not in ("rational", "double")]
    if missing:
        example = ", ".join(f'"{name}": …' for name in missing)
        raise ModelError(f"{path}: no value for {', '.join(missing)}; give constants={{{example}}}")
    return tuple(name for name in undefined if name not in constants)


def _space(space: ParameterSpace | None, unknown: tuple[str, ...], path: Path) -> ParameterSpace:
    if space is None:
        return ParameterSpace.unit(*unknown)
    if set(space.names) != set(unknown):
        raise ModelError(
            f"{path}: the space declares {', '.join(space.names) or 'nothing'}, "
            f"but the parameters of the model are {', '.join(unknown) or 'none'}"
        )
    return space


def _build(stormpy: Any, description: Any, space: ParameterSpace) -> tuple[Any, Any]:
    """Return Storm's float model at a generic point (no probability vanishes by accident) and its choice origins."""
    point = {name: stormpy.Rational(str(value)) for name, value in space.generic_point().items()}
    concrete = stormpy.instantiate_constants(description, point)[0] if point else description
    options = stormpy.BuilderOptions(build_full=False)
    for switch in ("all_labels", "all_reward_models", "choice_origins", "state_valuations"):
        getattr(options, f"set_build_{switch}")(True)
    built = stormpy.build_model[float](concrete, options=options)
    return built, built.choice_origins


def _export(stormpy: Any, built: Any) -> UmbModel:
    from stormpy.developer import storage

    options = storage.UmbExportOptions()
    options.compression = storage.CompressionMode.NO_COMPRESSION
    options.allow_choice_origins_as_actions = True
    options.allow_choice_labeling_as_actions = False
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.umb"
        stormpy.io.export_to_umb(built, str(file), options=options)
        return read_umb(file)


_OPERATORS = {
    "AND": "&", "OR": "|", "XOR": "xor", "IMPLIES": "=>", "IFF": "<=>", "NOT": "!", "ITE": "?",
    "PLUS": "+", "MINUS": "-", "TIMES": "*", "DIVIDE": "/", "POWER": "pow", "MODULO": "mod",
    "MIN": "min", "MAX": "max", "FLOOR": "floor", "CEIL": "ceil",
    "EQUAL": "=", "NOT_EQUAL": "!=", "LESS": "<", "LESS_OR_EQUAL": "<=", "GREATER": ">", "GREATER_OR_EQUAL": ">=",
}  # fmt: skip


def _formula(expression: Any, shared: dict[str, Formula]) -> Formula:
    """Return Storm's expression tree as ours; equal subtrees become one node, so that each is evaluated once."""
    text = f"{expression} : {expression.type}"
    if text not in shared:
        if expression.is_function_application:
            operands = tuple(_formula(expression.get_operand(i), shared) for i in range(expression.arity))
            shared[text] = Formula(_OPERATORS[expression.operator.name], operands)
        elif expression.is_variable():
            shared[text] = variable(expression.get_identifier())
        elif expression.has_boolean_type():
            shared[text] = literal(bool(expression.evaluate_as_bool()))
        elif expression.has_integer_type():
            shared[text] = literal(int(expression.evaluate_as_int()))
        else:
            shared[text] = literal(_fraction(expression.evaluate_as_rational()))
    return shared[text]


def _fraction(number: Any) -> Fraction:
    return Fraction(str(number))


def _part(parts: Mapping[str, Any], name: str) -> Any:
    return read_only(parts[name]) if name in parts else None


def _plain(error: RuntimeError) -> str:
    """Return Storm's message without the name of its exception class."""
    return re.sub(r"^\w+Exception: ", "", str(error)).strip()


def _stormpy() -> Any:
    try:
        import stormpy
        import stormpy.developer
    except ImportError:
        raise MissingExtra("reading PRISM and JANI files needs Storm: pip install 'plumdp[storm]'") from None
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    return stormpy
