"""Pages of the gallery: run at full or at small sizes, with the reports that they write beside them.

The front matter of a page names the sizes that may be smaller, as in ``small: {rows: 200_000}``, and one of its cells
has a line ``rows = 20_000_000``. With ``-D gallery_sizes=small``, as in the tests, that line says what ``small`` does.
With ``-D gallery_only=storm`` the cells of no other page of the gallery are run.

The cards of the overview show what the pages found: the answer and the picture of their reports, and the minutes.
"""

from __future__ import annotations

import re
import shutil
from functools import partialmethod
from pathlib import Path

import yaml
from myst_nb.sphinx_ import NbMetadataCollector
from nbclient import NotebookClient
from sphinx.application import Sphinx
from sphinx.config import Config

FRONT = re.compile(r"\A---\n(.*?)^---\n", re.MULTILINE | re.DOTALL)


def with_small_sizes(text: str) -> str:
    """Return a page with the sizes of its front matter; refuse names that no line of the page sets.

    >>> print(with_small_sizes("---\\nsmall: {rows: 10}\\n---\\nrows = 20_000\\n"))
    ---
    small: {rows: 10}
    ---
    rows = 10
    <BLANKLINE>
    """
    front = FRONT.match(text)
    small = yaml.safe_load(front[1]).get("small", {}) if front else {}
    for name, size in small.items():
        text, n_lines = re.subn(rf"^{name} = [\d_]+$", f"{name} = {size}", text, flags=re.MULTILINE)
        if n_lines != 1:
            raise ValueError(f"{n_lines} lines set {name!r} to a number, not one")
    return text


def choose_page(app: Sphinx, config: Config) -> None:
    """Leave out the cells of all pages but one, if one is named."""
    others = {page.parent.name for page in Path(app.srcdir).glob("gallery/*/index.md")} - {config.gallery_only}
    if config.gallery_only:
        config.nb_execution_excludepatterns = [f"gallery/{name}/*" for name in sorted(others)]


def choose_sizes(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the sizes of a page as it is read, if small ones are asked for."""
    if name.startswith("gallery/") and app.config.gallery_sizes == "small":
        source[0] = with_small_sizes(source[0])


def copy_reports(app: Sphinx, error: Exception | None) -> None:
    """Copy the reports that pages have written next to these pages."""
    source, built = Path(app.srcdir), Path(app.outdir)
    for report in source.glob("gallery/*/*.html"):
        if error is None and app.builder.format == "html":
            shutil.copy(report, built / report.parent.relative_to(source))


CLAIM = re.compile(r'<p class="(?:verdict|sentence)">(.*?)</p>.*?(<svg.*?</svg>)', re.DOTALL)


def show_answers(app: Sphinx, error: Exception | None) -> None:
    """Put the answer of each page that was run, with its picture and minutes, on its card in the overview."""
    overview = Path(app.outdir) / "gallery" / "index.html"
    if error is not None or not overview.is_file():
        return
    text = overview.read_text(encoding="utf-8")
    for report in sorted(overview.parent.glob("*/report.html")):
        name, claim = report.parent.name, CLAIM.search(report.read_text(encoding="utf-8"))
        ran = NbMetadataCollector.get_exec_data(app.env, f"gallery/{name}/index")
        if claim is not None and ran is not None and ran["runtime"] is not None:
            minutes = f"{max(ran['runtime'] / 60, 0.1):.1f} minutes to run"
            answer = f'{claim[2]}<p>{claim[1]}</p><p class="minutes">{minutes}</p>'
            text = text.replace(f'<div class="answer" id="{name}"></div>', f'<div class="answer">{answer}</div>')
    overview.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the steps, and join the pieces in which commands print: MyST-NB would end each with a line."""
    NotebookClient.__init__ = partialmethod(NotebookClient.__init__, coalesce_streams=True)
    app.add_config_value("gallery_sizes", "full", "env", [str])
    app.add_config_value("gallery_only", "", "env", [str])
    app.connect("config-inited", choose_page)
    app.connect("source-read", choose_sizes)
    app.connect("build-finished", copy_reports)
    app.connect("build-finished", show_answers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
