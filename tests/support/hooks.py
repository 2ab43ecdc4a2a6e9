"""In how many files of the core each feature is named: what stands in the way of reading the core without it.

    python tests/support/hooks.py               a row for each feature: files and lines, and the most that there may be
    python tests/support/hooks.py --files       and in which files

A hook is a line of code, no comment and no docstring, in a file that is not the feature's own. The tables of traits,
which name every feature once, do not count. If a figure falls, lower its cap; ``tests/test_sizes.py`` compares them.
"""

import io
import re
import sys
import tokenize
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "plumdp"
CORE = (
    *("base", "model", "data", "confidence", "region", "fit", "relaxation", "solver"),
    *("tables", "result", "learning", "certifying"),
)
TRAITS = {"base/combinations.py", "base/vocabulary.py"}


class Feature(NamedTuple):
    """A feature: files and rooms of its own, the names by which others know it, and in how many files they may."""

    own: str
    names: str
    cap: int


FEATURES = {
    "learned rewards": Feature(
        "model/learned_rewards data/reward_values confidence/reward_coins model/readers/reward_items",
        r"learned_rewards|LearnedRewards|LEARNED_REWARDS|no_rewards|reward_(columns|values|coins)|(terms|reward|payoff|chain|one)\.learned\b",
        28,
    ),
    "tables": Feature(
        "tables/ model/free_rows model/table_model model/unmodelled_exits",
        r"is_(of_)?tables?\b|(has|is)_free_row|free_rows|table_model|\.TABLE\b|plumdp\.tables|(?i:out_of_table)",
        41,
    ),
    "models on disk": Feature(
        "model/explore_levels model/stored_files solver/by_levels",
        r"graph\.levels|no_points|stored_files|on_disk|\.DISK\b|by_levels|explore_levels",
        15,
    ),
    "model tolerance": Feature("confidence/tolerant", r"model_tolerance|MODEL_TOLERANCE|tolerant|tolerating", 23),
    "panel data": Feature(
        "model/gaps data/observations confidence/observation_paths",
        r"\.GAPS\b|(model|counted)\.gaps\b|with_gaps|asked_expressions|counted_graph|(are_|data\.)observations|observation_paths",
        20,
    ),
    "time": Feature(
        "data/time_parts fit/time_tests certifying/since",
        r"[Tt]ime_?([Pp]arts|[Tt]ests)|is_over_time|\bCHANGED\b|Trait\.SINCE\b|certifying\.since|counts\.time|has_time",
        18,
    ),
}


@cache
def code(path: Path) -> tuple[str, ...]:
    """Return the lines of code of a file, without comments and texts in triple quotes."""
    lines = dict[int, str]()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type != tokenize.COMMENT and '"""' not in token.string:
            row, column = token.start
            lines[row] = lines.get(row, "").ljust(column) + token.string
    return tuple(lines.values())


def hooks(feature: Feature) -> dict[str, int]:
    """Return the files of the core that name a feature, and in how many lines each does."""
    found = dict[str, int]()
    for path in (each for room in CORE for each in sorted((SOURCE / room).rglob("*.py"))):
        name = path.relative_to(SOURCE).as_posix()
        if name not in TRAITS and not name.startswith(tuple(feature.own.split())):
            found[name] = sum(re.search(feature.names, line) is not None for line in code(path))
    return {name: n for name, n in found.items() if n}


if __name__ == "__main__":
    for name, feature in FEATURES.items():
        found = hooks(feature)
        print(f"{name}: {len(found)} files (at most {feature.cap}), {sum(found.values())} lines")
        if "--files" in sys.argv:
            print(*(f"  {file}: {n}" for file, n in sorted(found.items(), key=lambda each: -each[1])), sep="\n")
