#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""The environments that plumdp is tested in, one session each; `./check` is the one command for while you work.

`pipx run nox -s plain` makes a fresh environment and runs what CI runs in it. What follows `--` goes to pytest.
"""

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"

WORKERS = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")
NIGHTLY = "https://pypi.anaconda.org/scientific-python-nightly-wheels/simple"
FAST, QUICK = ("-m", "not slow", "tests"), {"PLUMDP_TIER": "quick"}


@nox.session
def plain(session: nox.Session) -> None:
    """Run the fast tests with what a plain install has; those of an extra are skipped."""
    session.install("-e", ".", "--group", "test")
    session.run("pytest", *WORKERS, *FAST, *session.posargs, env=QUICK)


@nox.session(python="3.11", default=False)
def oldest(session: nox.Session) -> None:
    """Run the fast tests with the oldest versions that pyproject.toml allows."""
    pins = Path(session.create_tmp()) / "oldest.txt"
    lowest = ("--resolution", "lowest-direct", "--python-version", "3.11")
    session.run_install("uv", "pip", "compile", "-q", *lowest, "pyproject.toml", "-o", str(pins), silent=True)
    session.install("-e", ".", "--group", "test", "--constraint", str(pins))
    warnings = ("-o", "filterwarnings=default")  # old versions warn about newer versions of what they use
    session.run("pytest", *WORKERS, *warnings, *FAST, *session.posargs, env=QUICK)


@nox.session(python="3.14", default=False)
def nightly(session: nox.Session) -> None:
    """Run the fast tests with nightly wheels and release candidates, as new as numba allows (SPEC 4)."""
    newest = ("--upgrade", "--prerelease", "allow", "--index-strategy", "unsafe-best-match")
    session.install(*newest, "--extra-index-url", NIGHTLY, "-e", ".", "--group", "test")
    session.run("uv", "pip", "list", external=True)
    warnings = ("-o", "filterwarnings=default")  # what is deprecated is reported, and fails when it is gone
    session.run("pytest", *WORKERS, *warnings, *FAST, *session.posargs, env=QUICK)


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Measure which lines the fast tests run; lines of compiled kernels are left out, for nothing sees them."""
    session.install("-e", ".[gym]", "--group", "test", "--group", "coverage")
    session.run("coverage", "run", "-m", "pytest", *FAST, *session.posargs, env=QUICK)
    session.run("coverage", "xml")
    session.run("coverage", "report")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site; a warning is an error."""
    session.install("-e", ".", "--group", "docs")
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html", *session.posargs)


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build wheel and source distribution, check what they say of themselves, and try the wheel where it is alone."""
    session.install("build", "twine")
    dist = Path(session.create_tmp()) / "dist"
    session.run("python", "-m", "build", "--outdir", str(dist))
    built = sorted(str(file) for file in dist.iterdir())
    session.run("twine", "check", "--strict", *built)
    session.install(*(file for file in built if file.endswith(".whl")))
    session.chdir(dist)
    session.run("plumdp", "info", "betting:5")


if __name__ == "__main__":
    nox.main()
