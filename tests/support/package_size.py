"""How large the package is, and the most that it may be: lines, files, public names, and what a default certify enters.

    python tests/support/package_size.py        print the figures in one line; exit with 1 if one is too large

Growth is a cost. If a figure is above its cap, look for what the change makes unnecessary, or for what exists already;
raise the cap only for something that users see and could not have before, and say so in the commit. If a figure falls,
lower its cap.
"""

import ast
import os
import sys
from collections.abc import Callable
from pathlib import Path

from closures import files_and_lines

import plumdp
from plumdp.base import compiled
from plumdp.cli.commands import COMMANDS
from plumdp.cli.options import OPTIONS

SOURCE = Path(plumdp.__file__).parents[1]
PACKAGES = ("plumdp", "plumdp_verify")
NAMESPACES = ("data", "decisions", "exchange", "model", "online", "stages")
CAPS = {
    "lines of src/plumdp": 75_431,
    "files of src/plumdp": 375,
    "lines of src/plumdp_verify": 3_374,
    "files of src/plumdp_verify": 24,
    "public names": 68,
    "commands": 14,
    "options of commands": 56,
    "parameters of a function": 12,
    "functions that certify enters": 769,
    "files that certify enters": 118,
}

CLOSURES = {  # files that a module may need, with the imports inside of functions
    "solver.solve": 49,
    "data.counts": 12,
    "data.files": 18,
    "result.show": 8,
    "plots.style": 4,
    "result.certificate": 37,
    "plots.draw": 48,
    "learning.learn": 126,
    "certifying.pipeline": 150,
}
CAPS |= {f"files in the closure of {module}": most for module, most in CLOSURES.items()}


def lines_and_files() -> dict[str, int]:
    """Return the lines and files of each package; stubs and templates are not Python that runs."""
    found = {}
    for package in PACKAGES:
        files = list((SOURCE / package).rglob("*.py"))
        found[f"lines of src/{package}"] = sum(path.read_text("utf-8").count("\n") for path in files)
        found[f"files of src/{package}"] = len(files)
    return found


def n_public_names() -> int:
    """Return the number of names at the root and in its namespaces, which are not counted themselves."""
    spaces = [getattr(plumdp, name) for name in plumdp.__all__ if name in NAMESPACES]
    listed = [getattr(space, "__all__", [name for name in vars(space) if name[0] != "_"]) for space in spaces]
    return len(plumdp.__all__) - len(spaces) + sum(map(len, listed))


def most_parameters() -> int:
    """Return the largest number of parameters of a function, without self; kernels take arrays one by one."""
    files = [each for each in (SOURCE / "plumdp").rglob("*.py") if not each.stem.endswith("kernels")]
    trees = (ast.parse(each.read_text("utf-8")) for each in files if each.parent.name != "nature")
    defined = (each.args for tree in trees for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
    named = ([each.arg for each in (*of.posonlyargs, *of.args, *of.kwonlyargs)] for of in defined)
    return max(len(names) - (names[:1] in (["self"], ["cls"])) for names in named)


def entered(run: Callable[[], object]) -> set[tuple[str, str]]:
    """Return file and qualified name of each function of the packages that a call enters, comprehensions aside."""
    codes = set()
    sys.setprofile(lambda frame, event, _: codes.add(frame.f_code) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)
    named = [(Path(code.co_filename), code) for code in codes if not code.co_name.startswith("<")]
    return {(str(p.relative_to(SOURCE)), code.co_qualname) for p, code in named if p.is_relative_to(SOURCE)}


def certify() -> Callable[[], object]:
    """Return a function that asks for a certificate with all defaults, for the second time."""
    compiled.compile_at_once()
    study = plumdp.case_study("aircraft:6,4,1")
    counts = plumdp.simulate(study.model, study.true_point, 5_000, rng=1, max_steps=10)
    plumdp.certify(study.model, counts, study.objective)
    return lambda: plumdp.certify(study.model, counts, study.objective)


def figures() -> dict[str, int]:
    """Return all figures by name."""
    functions = entered(certify())
    closures = {f"files in the closure of {each}": files_and_lines(f"plumdp.{each}")[0] for each in CLOSURES}
    return (
        lines_and_files()
        | closures
        | {
            "public names": n_public_names(),
            "commands": len(COMMANDS),
            "parameters of a function": most_parameters(),
            "options of commands": sum(bool(option.flags) for option in OPTIONS.values()),
            "functions that certify enters": len(functions),
            "files that certify enters": len({file for file, _ in functions}),
        }
    )


def too_large(measured: dict[str, int]) -> list[str]:
    """Return a sentence for each figure that is above its cap."""
    return [
        f"{measured[name]:,} {name}, and at most {cap:,} are allowed: look for what your change makes unnecessary "
        f"(see {Path(__file__).name})"
        for name, cap in CAPS.items()
        if measured[name] > cap
    ]


if __name__ == "__main__":
    os.environ |= {"PLUMDP_WARMUP": "0", "PLUMDP_THREADS": "1"}
    measured = figures()
    print("; ".join(f"{number:,} {name}" for name, number in measured.items()))
    sys.exit("\n".join(too_large(measured)) or 0)
