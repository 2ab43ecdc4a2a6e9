"""What a module makes a reader know: the files that it imports, and those that these import, and so on.

    python tests/support/closures.py certifying.pipeline     print the files and lines of a module's closure, by name

Syntax trees are read, and imports inside functions count, so that nothing is hidden by moving an import into one.
The first file of the whole package is not followed: it names everything, by its stub and by ``kinds.py``, which adds
features to the tables of the core. What stands in a table is not what a reader of its room must know.
"""

import ast
import sys
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


@cache
def files() -> dict[str, Path]:
    """Return the file of each module of the package by its name; a package is its first file."""
    paths = [path.relative_to(SOURCE) for path in (SOURCE / "plumdp").rglob("*.py")]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): SOURCE / path for path in paths}


@cache
def listed(package: str) -> dict[str, str]:
    """Return the module that each name of a package comes from, where a stub lists its names."""
    stub = files()[package].with_suffix(".pyi")
    if not stub.name.startswith("__init__") or not stub.exists():
        return {}
    nodes = [node for node in ast.parse(stub.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: f"{package}.{node.module}" for node in nodes for alias in node.names if node.module}


@cache
def imported(module: str) -> frozenset[str]:
    """Return the modules of the package that a module imports anywhere, with the packages that these are in."""
    if module == "plumdp":
        return frozenset()
    found = set()
    for node in ast.walk(ast.parse(files()[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module in files():
            inside = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in files() else listed(node.module).get(alias, node.module)
                      for alias, name in inside.items()}  # fmt: skip
    parts = [name.split(".") for name in found if name in files()]
    return frozenset(".".join(each[: n + 1]) for each in parts for n in range(len(each))) - {module}


def closure(module: str) -> set[str]:
    """Return all modules that a module needs, itself among them."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imported(name)
    return seen


def files_and_lines(module: str) -> tuple[int, int]:
    """Return the number of files in the closure of a module, and their lines; first files of packages do not count."""
    paths = [files()[name] for name in closure(module)]
    counted = [path for path in paths if path.name != "__init__.py"]
    return len(counted), sum(path.read_text("utf-8").count("\n") for path in counted)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        n, lines = files_and_lines(f"plumdp.{argument}")
        print(f"{argument}: {n} files, {lines:,} lines", *sorted(closure(f"plumdp.{argument}")), sep="\n  ")
