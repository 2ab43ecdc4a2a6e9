"""Readers of PRISM and JANI files through Storm, in the only file that imports stormpy.

One float build at a generic point gives the states and their choices. The exact polynomials come from evaluating
Storm's expression trees on the distinct valuations. At the end both are compared, transition by transition.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.errors import ModelError, needs, require_path
from plumdp.model.assemble import assemble
from plumdp.model.expressions.polynomial import Number, Polynomial, parameters
from plumdp.model.graph import FloatArray, Graph, IntArray, owners, read_only
from plumdp.model.language.formula import evaluate
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.readers.commands import choices_by_origin, transitions
from plumdp.model.readers.reward_items import means_of
from plumdp.model.readers.storm_languages import (
    Source,
    exact_constants,
    open_jani,
    open_prism,
    open_prism_intervals,
    text_of,
)
from plumdp.model.readers.storm_messages import WIDEN, storm_message
from plumdp.model.readers.umb import UmbModel, read_umb
from plumdp.model.space import ParameterSpace

_AGREEMENT = 1e-9  # between Storm's float probabilities and our polynomials at the build point


def read_prism(
    path: str | Path, *, constants: Mapping[str, Number] | None = None, space: ParameterSpace | None = None
) -> ParametricMDP:
    """Return the model of a PRISM file, or of a JANI file if it ends in ``.jani``.

    The undefined ``const double`` are the parameters. ``constants`` gives values to the other undefined constants
    (sizes, for instance), or fixes a parameter. ``space`` is the unit cube by default. It is always cut to the points
    at which every affine expression is a probability.

    In PRISM files, parameters may be in rewards, too, whose means are then unknown: ``space`` must say between which
    numbers they lie (see ``explore``).
    """
    require_path("read_prism", path)
    file = Path(path)
    if not file.is_file():
        raise ModelError(f"{file}: there is no such file")
    stormpy = _stormpy()
    try:
        return _read(stormpy, file, exact_constants(constants), space)
    except RecursionError:
        raise ModelError(f"{file}: a formula is nested too deeply") from None
    except ModelError as error:
        raise ModelError(f"{file}: ", *error.args) from None
    except RuntimeError as error:  # Storm's own
        code = "" if file.suffix.lower() == ".jani" else text_of(file)
        raise ModelError(f"{file}: ", storm_message(str(error), code)) from None


def jani_properties(path: str | Path) -> list[str]:
    """Return the properties in a JANI file, in the words of PRISM."""
    _, properties = _stormpy().parse_jani_model(str(path))
    texts = (f'"{each.get_name()}": {each.get_raw_formula()}' for each in properties)
    return [text.replace("R[exp]", "R").replace("Usteps", "U") for text in texts]


def read_prism_intervals(
    file: Path, constants: Mapping[str, Number]
) -> tuple[UmbModel, Mapping[str, bool | int | Fraction]]:
    """Return the arrays of a PRISM file whose probabilities are numbers or intervals, and its constants."""
    stormpy = _stormpy()
    try:
        program, defined = open_prism_intervals(stormpy, file, exact_constants(constants))
        options = stormpy.BuilderOptions(build_full=False)
        for switch in ("all_labels", "all_reward_models", "choice_labels", "state_valuations"):
            getattr(options, f"set_build_{switch}")(True)
        built = stormpy.build_model[stormpy.RationalInterval](program, options=options)
        umb = _export(stormpy, built, frozenset(), of_intervals=True)
        return _with_nearest_floats(umb, built), defined
    except ModelError as error:
        raise ModelError(f"{file}: ", *error.args) from None
    except RuntimeError as error:  # Storm's own
        raise ModelError(f"{file}: ", storm_message(str(error), text_of(file))) from None


def _with_nearest_floats(umb: UmbModel, built: Any) -> UmbModel:
    """Return the arrays with numbers rounded to the nearest float, as Storm rounds fractions towards 0."""
    matrix = built.transition_matrix
    edges = (entry.value for row in range(matrix.nr_rows) for entry in matrix.get_row(row))
    rewards = {}
    for name, parts in umb.rewards.items():
        model = built.reward_models[name]
        values = {"states": "state_rewards", "choices": "state_action_rewards"}
        rewards[name] = {part: _nearest_floats(getattr(model, values[part])) for part in parts}
    return replace(umb, probability=_nearest_floats(edges), rewards=rewards)


def _nearest_floats(intervals: Iterable[Any]) -> FloatArray:
    """Return the bounds of Storm's intervals of fractions (n, 2)."""
    nearest = cache(lambda text: float(Fraction(text)))
    bounds = [(nearest(str(interval.lower())), nearest(str(interval.upper()))) for interval in intervals]
    return np.array(bounds, dtype=np.float64).reshape(-1, 2)


def _read(stormpy: Any, file: Path, constants: dict[str, Fraction], space: ParameterSpace | None) -> ParametricMDP:
    source = (open_jani if file.suffix.lower() == ".jani" else open_prism)(stormpy, file, constants)
    space = _space(space, source)
    point = _build_point(source, space)
    built = _build(stormpy, source, point)
    umb = _export(stormpy, built, source.hidden)
    model = _assemble(source, built, umb, space)
    _compare(model, umb, point)
    _compare_rewards(model, umb, point)
    return model


def _assemble(source: Source, built: Any, umb: UmbModel, space: ParameterSpace) -> ParametricMDP:
    if not umb.states:
        raise ModelError("there is no state variable; a module declares some, as in x : [0..9] init 0;")
    if len(umb.initial_states) != 1:
        start = "start in one more state, with an action that leads to each of them"
        raise ModelError(f"{len(umb.initial_states)} initial states; there must be exactly one: {start}")
    by_origin = [choices for choices in choices_by_origin(umb.action) if len(choices)]
    groups = [(source.commands(built, int(choices[0])), choices) for choices in by_origin]
    unknown = dict(zip(source.unknown, parameters(*source.unknown), strict=True))
    first_transition, successor, expression = transitions(umb.states, owners(umb.first_choice), groups, unknown)
    names = [joint[0].action if joint else "deadlock" for joint, _ in groups]
    action_names = tuple(dict.fromkeys(names))
    action = np.empty(len(umb.action), dtype=np.int32)
    for name, (_, choices) in zip(names, groups, strict=True):
        action[choices] = action_names.index(name)
    graph = Graph(
        read_only(umb.first_choice),
        read_only(first_transition),
        read_only(successor),
        int(umb.initial_states[0]),
        {name: read_only(column) for name, column in umb.states.items()},
        read_only(action),
        action_names,
    )
    return assemble(
        graph,
        expression,
        space,
        labels={name: read_only(mask) for name, mask in umb.labels.items() if name != "deadlock" or mask.any()},
        rewards={
            name: RewardStructure(_part(parts, "states"), _part(parts, "choices"))
            for name, parts in umb.rewards.items()
            if name not in source.rewards
        },
        constants=source.constants,
        means={
            name: means_of(items, umb.states, graph.state_of_choice(), [action_names[a] for a in action], unknown)
            for name, items in source.rewards.items()
        },
    )


def _compare(model: ParametricMDP, umb: UmbModel, point: Mapping[str, Fraction]) -> None:
    """Refuse a model that differs from Storm's in the edges or, at the build point, in the probabilities."""
    ours = _sorted_edges(model.graph.first_transition, model.graph.successor)
    theirs = _sorted_edges(umb.first_transition, umb.successor)
    same = np.array_equal(model.graph.first_transition, umb.first_transition)
    same = same and np.array_equal(model.graph.successor[ours], umb.successor[theirs])
    if same:
        values = model.expressions.evaluate(np.array([[float(value) for value in point.values()]]))[:, 0]
        difference = np.abs(values[model.expression[ours]] - umb.probability[theirs])
        same = bool(difference.max(initial=0.0) < _AGREEMENT)
    if not same:
        raise ModelError("the commands as read differ from the transitions that Storm built; please report this model")


def _compare_rewards(model: ParametricMDP, umb: UmbModel, point: Mapping[str, Fraction]) -> None:
    """Refuse rewards that differ from Storm's at the build point."""
    at = model.expressions.evaluate(np.array([[float(value) for value in point.values()]]))[:, 0]
    for name, learned in model.learned_rewards.items():
        known, parts = model.rewards[name].choice, umb.rewards[name]
        ours = learned.added_to(np.zeros(model.graph.n_choices) if known is None else known, at, 0.0)
        of_states = parts.get("states", np.zeros(model.graph.n_states))[model.graph.state_of_choice()]
        theirs = of_states + parts.get("choices", np.zeros(model.graph.n_choices))
        if not np.allclose(ours, theirs, rtol=_AGREEMENT, atol=_AGREEMENT * float(max(learned.span))):
            raise ModelError(f'rewards "{name}" as read differ from those that Storm built; please report this model')


def _sorted_edges(first_transition: IntArray, successor: IntArray) -> Any:
    """Return the transitions in order of choice and successor."""
    place = (owners(first_transition).astype(np.int64) << 32) | successor
    is_sorted = bool((place[1:] >= place[:-1]).all())
    return slice(None) if is_sorted else np.argsort(place, kind="stable")


def _space(space: ParameterSpace | None, source: Source) -> ParameterSpace:
    unknown = source.unknown
    if space is None and source.rewards:
        used = {name for items in source.rewards.values() for item in items for name in item.value.variables()}
        place = next(iter(source.rewards.values()))[0].place
        names = [name for name in unknown if name in used]
        box = f"ParameterSpace.box({{{', '.join(f'{name!r}: (low, high)' for name in unknown)}}})"
        raise ModelError(
            f"{place} depend on {', '.join(names)}: say in Python between which numbers their values lie, with "
            f"read_model(…, space={box})"
        )
    if space is None:
        return ParameterSpace.unit(*unknown)
    if set(space.names) != set(unknown):
        raise ModelError(
            f"the space declares {', '.join(space.names) or 'nothing'}, "
            f"but the parameters of the model are {', '.join(unknown) or 'none'}"
        )
    return space


def _build_point(source: Source, space: ParameterSpace) -> dict[str, Fraction]:
    """Return a generic point, at which no probability vanishes by accident.

    Storm refuses negative probabilities that are the same in all states, so the point lies where those of one parameter
    are not negative, if that is more than one value. Any such point gives the same graph.
    """
    unknown = dict(zip(source.unknown, parameters(*source.unknown), strict=True))
    inside = space
    for formula in [branch.probability for command in source.numbered.values() for branch in command.branches]:
        if formula.variables() and formula.variables() <= unknown.keys():
            with suppress(ModelError):  # is raised later, with its place
                value = evaluate(formula, unknown)
                narrower = inside.cut([value]) if isinstance(value, Polynomial) and value.is_affine else inside
                inside = narrower if all(low < high for low, high in narrower.bounds) else inside
    return inside.generic_point()


def _build(stormpy: Any, source: Source, at: Mapping[str, Fraction]) -> Any:
    """Return Storm's float model at a point."""
    point = {name: stormpy.Rational(str(value)) for name, value in at.items()}
    concrete = stormpy.instantiate_constants(source.described, point)[0] if point else source.described
    options = stormpy.BuilderOptions(build_full=False)
    switches = ["all_labels", "all_reward_models", "choice_origins", "state_valuations"]
    for switch in switches + ["choice_labels"] * source.needs_choice_labels:
        getattr(options, f"set_build_{switch}")(True)
    try:
        return stormpy.build_model[float](concrete, options=options)
    except RuntimeError as error:
        if "is out of range for variable" in str(error):
            _refuse_overflow(stormpy, source, concrete)
        raise


def _refuse_overflow(stormpy: Any, source: Source, concrete: Any) -> None:
    """Refuse an update that leaves the range of its variable, with the place that a slower build by Storm finds.

    The quick build notices the damage only, which may be in the bits of another variable.
    """
    options = stormpy.BuilderOptions(build_full=False)
    options.set_exploration_checks(True)
    try:
        stormpy.build_model[stormpy.Rational](concrete, options=options)
    except RuntimeError as error:
        pattern = r"The update (.*) leads to an out-of-bounds value \((-?\d+)\) for the variable '(.*)'"
        if overflow := re.search(pattern, str(error)):
            update, value, name = overflow.groups()
            place = _place_of(update, source, concrete)
            raise ModelError(f"{place}: {name} becomes {value}, outside its declared range; {WIDEN}") from None


def _place_of(update: str, source: Source, concrete: Any) -> str:
    """Return the place of the command with an update, or the update itself if several commands have it."""
    places = set()
    if source.numbered:
        commands = [c for m in concrete.substitute_formulas().substitute_constants().modules for c in m.commands]
        places = {source.numbered[c.global_index].place for c in commands if update in map(str, c.updates)}
    return places.pop() if len(places) == 1 else f"the update {re.sub(r'^.*? : (?=[(])', '', update)}"


def _export(stormpy: Any, built: Any, hidden: frozenset[str], *, of_intervals: bool = False) -> UmbModel:
    from stormpy.developer import storage

    options = storage.UmbExportOptions()
    options.compression = storage.CompressionMode.NO_COMPRESSION
    options.allow_choice_origins_as_actions = not of_intervals
    options.allow_choice_labeling_as_actions = of_intervals
    if of_intervals:
        options.value_type = stormpy.io.UmbExportValueType.DOUBLE_INTERVAL
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.umb"
        stormpy.io.export_to_umb(built, str(file), options=options)
        return read_umb(file, skip=hidden)


def _part(parts: Mapping[str, Any], name: str) -> Any:
    return read_only(parts[name]) if name in parts else None


def _stormpy() -> Any:
    with needs("reading PRISM and JANI files needs Storm: pip install 'plumdp[storm]'"):
        import stormpy
        import stormpy.developer
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    return stormpy
