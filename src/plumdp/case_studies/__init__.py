"""The six case studies of Schnitzer, Abate and Parker by name, with models, objectives and true points."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from plumdp.base.errors import ModelError, require_kind
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import one_line


@dataclass(frozen=True, eq=False)
class CaseStudy:
    """A case study, with its model, its objective and, for experiments, the hidden true point."""

    name: str
    model: ParametricMDP
    objective: Objective
    true_point: Mapping[str, str]
    max_steps: int  # longest run of the published protocol

    def __repr__(self) -> str:
        return one_line(self, self.name, repr(self.model), self.objective.text)


@dataclass(frozen=True)
class _Family:
    """The sizes of a family in names, by ``usage``, with published instances that leave out some arguments."""

    usage: str
    n_arguments: int
    published: Mapping[tuple[int, ...], tuple[int, ...]]  # sizes in the name → all arguments
    max_steps: Mapping[tuple[int, ...], int]  # all arguments → longest run, where published
    default_steps: Callable[..., int]  # all arguments → longest run otherwise
    constants: Callable[..., dict[str, int]]  # all arguments → constants of the PRISM file
    smallest: tuple[int, ...]  # the least that each argument may be
    n_states: Callable[..., int]  # all arguments → about how many states, before they are explored
    row: int  # most transitions of a state


_BYTES = 40  # of a transition, while a model is built

_FAMILIES = {
    "aircraft": _Family(
        "aircraft:LENGTH,HEIGHT,COLLISION_HEIGHT",
        3,
        {(20, 10): (20, 10, 3), (50, 10): (50, 10, 3), (100, 20): (100, 20, 5), (200, 40): (200, 40, 12)},
        {},
        lambda length, *_: length,
        lambda length, height, collision: {"MAXX": length, "MAXY": height, "COLLISION": collision},
        (1, 0, 0),
        lambda length, height, _: (length + 1) * (height + 1) ** 2,
        15,
    ),
    "betting": _Family(
        "betting:ROUNDS",
        1,
        {},
        {},
        lambda rounds: rounds,
        lambda rounds: {"N": rounds},
        (0,),
        lambda rounds: 5 * rounds * (rounds + 5) + 22,
        9,
    ),
    "engagement": _Family(
        "engagement:LEVELS",
        1,
        {},
        {(100,): 150},
        lambda levels: levels,
        lambda levels: {"L": levels},
        (3,),
        lambda levels: 20 * levels,
        3,
    ),
    "rover": _Family(
        "rover:WIDTH,HEIGHT,TRIES",
        3,
        {(10, 10): (10, 10, 6), (50, 50): (50, 50, 9), (75, 75): (75, 75, 12), (125, 125): (125, 125, 14)},
        {(10, 10, 6): 50, (50, 50, 9): 350, (75, 75, 12): 450, (125, 125, 14): 450},
        lambda width, height, tries: (width + height) * 4,
        lambda width, height, tries: {"MAXX": width, "MAXY": height, "K": tries},
        (2, 2, 0),
        lambda width, height, tries: 7 * width * height * (tries + 2),
        6,
    ),
    "glider": _Family(
        "glider:WIDTH,HEIGHT,GOAL_X,GOAL_Y",
        4,
        {
            (11, 9): (11, 9, 10, 8),
            (21, 17): (21, 17, 20, 16),
            (51, 47): (51, 47, 45, 46),
            (71, 67): (71, 67, 62, 58),  # published as an inner goal, without saying which
        },
        {(11, 9, 10, 8): 100, (21, 17, 20, 16): 100, (51, 47, 45, 46): 600, (71, 67, 62, 58): 600},
        lambda width, height, *_: (width + height) * 5,
        lambda width, height, x, y: {"WIDTH": width, "HEIGHT": height, "GX": x, "GY": y},
        (2, 2, 0, 0),
        lambda width, height, *_: width * height,
        16,
    ),
    "parallel": _Family(
        "parallel:ROUNDS,SMALL (0 or 1)",
        2,
        {(5,): (5, 0), (6,): (6, 0), (10,): (10, 0), (20,): (20, 1)},
        {},
        lambda rounds, _: rounds,
        lambda rounds, small: {"N": rounds, "small": small},
        (0, 0),
        lambda rounds, _: 11 * rounds**3 + 80 * rounds**2 + 80,
        17,
    ),
}


def case_study(name: str) -> CaseStudy:
    """Return a case study by name, such as ``betting:50`` or ``rover:50,50``.

    The families are aircraft, betting, engagement, rover, glider and parallel.

    Parameters
    ----------
    name
        The family and its sizes; sizes that were not published have all arguments, as in ``rover:20,20,7``.

    Returns
    -------
    CaseStudy
        The model, its true point and its objective.

    Raises
    ------
    ModelError
        If there is no such case study.

    Examples
    --------
    >>> study = case_study("betting:25")
    >>> study.model.graph.n_states, study.true_point
    (3625, {'p': '0.55'})
    """
    from plumdp.model.language.property import parse_property

    require_kind(name, str, "case_study takes a name, such as 'betting:25'")
    family, arguments = _parse(name)
    _refuse_too_large(name, _FAMILIES[family], arguments)
    module = import_module(f"plumdp.case_studies.{family}")
    model = getattr(module, family)(*arguments)
    about = _FAMILIES[family]
    steps = about.max_steps.get(arguments) or about.default_steps(*arguments)
    return CaseStudy(name, model, parse_property(module.PROPERTY, model), module.TRUE_POINT, steps)


def is_case_study(name: str) -> bool:
    """Return whether a name speaks of a case study rather than of a file."""
    return name.partition(":")[0] in _FAMILIES and not Path(name).exists()


def case_study_names() -> list[str]:
    """Return the names of the published instances, family by family.

    >>> case_study_names()[:2]
    ['aircraft:20,10', 'aircraft:50,10']
    """
    small = {"betting": [(25,), (50,)], "engagement": [(100,)]}
    return [
        f"{family}:{','.join(map(str, sizes))}"
        for family, about in _FAMILIES.items()
        for sizes in about.published or small[family]
    ]


def prism_file(family: str) -> Path:
    """Return the path of a family's PRISM file, which comes with the package."""
    return Path(__file__).parent / "prism" / f"{family}.prism"


def prism_constants(name: str) -> dict[str, int]:
    """Return the constants that make a family's PRISM file the given instance.

    >>> prism_constants("rover:50,50")
    {'MAXX': 50, 'MAXY': 50, 'K': 9}
    """
    family, arguments = _parse(name)
    return _FAMILIES[family].constants(*arguments)


def _parse(name: str) -> tuple[str, tuple[int, ...]]:
    family, _, sizes = name.partition(":")
    about = _FAMILIES.get(family)
    if about is None:
        raise ModelError(f"{name!r}: there is no case study {family!r}; the families are {', '.join(_FAMILIES)}")
    try:
        given = tuple(int(size) for size in sizes.split(","))
    except ValueError:
        raise ModelError(f"{name!r}: write it as {about.usage}, with whole numbers") from None
    arguments = about.published.get(given, given)
    if len(arguments) != about.n_arguments or min(arguments) < 0:
        raise ModelError(f"{name!r} is not a published instance; write it as {about.usage}")
    if any(size < least for size, least in zip(arguments, about.smallest, strict=True)):
        least = ",".join(map(str, about.smallest))
        raise ModelError(f"{name!r} is too small: write it as {about.usage}, from {family}:{least} on")
    return family, arguments


def _refuse_too_large(name: str, about: _Family, arguments: tuple[int, ...]) -> None:
    """Refuse a model that would fill the memory, before it is built."""
    n_states = about.n_states(*arguments)
    n_transitions = about.row * n_states
    needed, memory = _BYTES * n_transitions, _memory()
    if needed > memory or n_transitions >= 2**31:
        size = f"about {n_states:,} states and up to {n_transitions:,} transitions"
        room = f"it takes about {needed // 10**9:,} GB to build, and this machine has {memory // 10**9:,} GB"
        raise ModelError(f"{name!r} has {size}: {room}; take smaller sizes")


def _memory() -> int:
    """Return the bytes of memory of this machine, or those of a large one if it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 40
