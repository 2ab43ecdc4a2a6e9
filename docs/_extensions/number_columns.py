"""Columns of numbers are set to the right, so that digits stand under each other."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

NUMBER = re.compile(
    r"""
    [-−–+~≤≥<>]?\s* [\d.,]*\d[\d.,]*     # a sign, and digits
    (\s*[×·]\s*10\^?[-−\d]+)? \s*       # a power of ten
    (%|s|ms|ns|GB|MB)? (\s/\s([\d.,]+|TO))?  # a unit, and what it is compared with
    | [–-] | TO |                        # nothing
    """,
    re.VERBOSE,
)


class NumberColumns(SphinxPostTransform):
    """Gives the class ``number`` to every cell of a column whose cells are all numbers or empty."""

    default_priority = 400

    def run(self) -> None:
        """Look at each table of the page."""
        for group in self.document.findall(nodes.tgroup):
            rows = list(group.findall(nodes.row))
            body = [row for row in rows if not isinstance(row.parent, nodes.thead)]
            for column in range(int(group["cols"])):
                cells = [row[column] for row in rows if column < len(row)]
                texts = [row[column].astext().strip() for row in body if column < len(row)]
                if any(re.search(r"\d", text) for text in texts) and all(map(NUMBER.fullmatch, texts)):
                    for cell in cells:
                        cell["classes"].append("number")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(NumberColumns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
