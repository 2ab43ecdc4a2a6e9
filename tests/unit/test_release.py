"""What a release says of itself agrees in all places: version, dependencies, papers, and the names of files."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import plumdp

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONDA_NAMES = {"duckdb": "python-duckdb", "matplotlib": "matplotlib-base", "lazy-loader": "lazy_loader"}


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_stated_in_one_place():
    """``src/plumdp/__init__.py``; the tag and the heading in the changelog are compared with it when it is released."""
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/plumdp/__init__.py"
    for name in ("CITATION.cff", "recipe/recipe.yaml", "docs/conf.py", "README.md"):
        assert plumdp.__version__ not in text(name), f"{name} states the version, too"


def test_the_changelog_has_unreleased_changes_on_top():
    headings = re.findall(r"^## (.*)$", text("CHANGELOG.md"), flags=re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+( - \d{4}-\d\d-\d\d)?", heading) for heading in headings[1:])


def test_the_conda_recipe_needs_what_the_package_needs():
    needed = []
    for requirement in PROJECT["project"]["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(>=[\d.]+)", requirement).groups()
        needed.append(f"{CONDA_NAMES.get(name, name)} {bound}")
    run = text("recipe/recipe.yaml").partition("  run:\n")[2].partition("\n\n")[0]
    python, *others = re.findall(r"- (.*)", run)
    assert python == f"python {PROJECT['project']['requires-python']}"
    assert others == needed


def test_every_minor_version_of_python_that_is_named_is_tested():
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    tested = ast.literal_eval(re.search(r"python: (\[.*\])", text(".github/workflows/check.yml")).group(1))
    assert tested == named


def test_actions_are_named_by_the_hash_of_their_commit():
    """A tag can be moved to other code, a hash cannot."""
    used = [line for path in (ROOT / ".github/workflows").glob("*.yml") for line in re.findall("uses: .*", text(path))]
    assert used
    assert [line for line in used if not re.fullmatch(r"uses: [\w/-]+@[0-9a-f]{40} # v[\d.]+", line)] == []


@pytest.mark.parametrize("name", ["README.md", "CITATION.cff"])
def test_the_paper_is_named_by_its_number(name):
    assert "https://arxiv.org/abs/2605.01339" in text(name)
