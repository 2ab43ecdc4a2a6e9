"""The README is short, and what it and the home page show can be typed: real tables come with the package."""

import re
from pathlib import Path

import pytest

from plumdp.data.duckdb_tables import example_file

ROOT = Path(__file__).parents[2]


def test_the_readme_has_at_most_900_words():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_first_pages_show_rows_that_are_there(page):
    """Lines below the header of a table are lines of the example that the page then reads."""
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = re.search(r"^```\n(\w+(?:,\w+)+\n(?:.*\n)+?)```$", text, re.MULTILINE)
    rows = Path(example_file("example:trial")).read_text(encoding="utf-8")
    assert shown is not None
    assert rows.startswith(shown[1])
