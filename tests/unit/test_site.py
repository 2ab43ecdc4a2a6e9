"""The site is built: no warning, and no dead link.

At night all pages of the gallery are run, at small sizes; ``nox -s docs`` runs them at full size. ``./check`` runs one
of them, and a page that is written here, for what is not about any page.
"""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tiers import TIER

DOCS = Path(__file__).parents[2] / "docs"
GALLERY = sorted(page.parent.name for page in DOCS.glob("gallery/*/index.md"))
ONE = "storm"  # has everything: a model file, data, pictures, a report
RUN = GALLERY if TIER == "night" else [ONE]
WORDS = "every word of this line is whole, however many bytes the line has: "
PRINTING = f"""---
orphan: true
file_format: mystnb
kernelspec: {{name: python3}}
---
# Words

```{{code-cell}}
%%bash
echo "{10 * WORDS}"
```
"""
MOST_LINES = 60  # that a user writes for one page of the gallery
CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INCLUDED = re.compile(r"^```\{literalinclude\} (\S+)$", re.MULTILINE)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the site, built where nothing is written into the repository."""
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    made = shutil.ignore_patterns("_build", "*.parquet", "*.csv", "*.xes", "result", "report.html")
    shutil.copytree(DOCS, folder / "docs", ignore=made)
    for name in set(GALLERY) - set(RUN):  # which link to the report that they would write
        (folder / "docs" / "gallery" / name / "report.html").write_text("not run", encoding="utf-8")
    (folder / "docs" / "words.md").write_text(PRINTING, encoding="utf-8")
    options = ("-W", "--keep-going", "-q", "-b", "html", "-D", "gallery_sizes=small")
    options += () if TIER == "night" else ("-D", f"gallery_only={ONE}", "-D", "html_theme=basic")
    command = [sys.executable, "-m", "sphinx", *options, str(folder / "docs"), str(folder / "html")]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    return folder / "html"


class Links(HTMLParser):
    """Collects where a page leads, and the places in it that others may lead to."""

    def __init__(self):
        super().__init__()
        self.targets, self.places = set(), set()

    def handle_starttag(self, tag, attributes):
        """Look at the attributes of one element."""
        named = dict(attributes)
        self.places |= {named[name] for name in ("id", "name") if named.get(name)}
        self.targets |= {named[name] for name in ("href", "src") if named.get(name)}


def links_of(page):
    found = Links()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def dead_links(folder):
    """Return the links within a site that lead to no file, or to no place in it."""
    pages = {page.resolve(): links_of(page) for page in folder.glob("**/*.html") if page.name != "report.html"}
    dead = set()
    for page, found in pages.items():
        for target in found.targets:
            parts = urlsplit(html.unescape(target))
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            file = file / "index.html" if file.is_dir() else file
            is_place = not parts.fragment or file not in pages or unquote(parts.fragment) in pages[file].places
            if not file.exists() or not is_place:
                dead.add(f"{page.name}: {target}")
    return dead


@pytest.mark.night
def test_no_link_of_the_site_is_dead(site):
    assert len(list(site.glob("**/*.html"))) > 50
    assert dead_links(site) == set()


def test_dead_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<p id="x"><a href="b.html">', encoding="utf-8")
    (tmp_path / "c.html").write_text(
        '<a href="a.html#x"><a href="a.html#y"><img src="https://x.org/y.png">', encoding="utf-8"
    )
    assert dead_links(tmp_path) == {"a.html: b.html", "c.html: a.html#y"}


SOUGHT = (
    *("confidence interval", "off-policy evaluation", "pass^k", "survival", "mean first passage time"),
    *("time in state", "importance sampling"),
)


@pytest.mark.night
@pytest.mark.parametrize("words", SOUGHT)
def test_the_search_of_the_site_finds_what_people_look_for(words, site):
    """The index has a heading with these words, which is among the first that are found."""
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    titles = json.loads(index[index.index("{") : index.rindex("}") + 1])["alltitles"]
    assert any(words in title.lower() for title in titles)


@pytest.mark.night
def test_what_commands_print_is_not_broken_within_words(site):
    """Notebooks get it in pieces of a hundred bytes."""
    page = (site / "words.html").read_text(encoding="utf-8")
    printed = re.sub("<[^>]+>", "", page).partition("echo")[2].partition("\n")[2]
    assert (10 * WORDS).strip() in printed


@pytest.mark.night
def test_nothing_comes_from_the_network(site):
    for page in site.glob("**/*.html"):
        assert not re.search(r'<(script|link|img|iframe)[^>]*(src|href)="https?:', page.read_text(encoding="utf-8")), (
            page
        )


@pytest.mark.night
@pytest.mark.parametrize("name", RUN)
def test_a_page_of_the_gallery_ends_in_a_report(site, name):
    report = (site / "gallery" / name / "report.html").read_text(encoding="utf-8")
    assert re.search(r"With a confidence of [\d.]+\s%", report)
    page = (site / "gallery" / name / "index.html").read_text(encoding="utf-8")
    assert "Traceback" not in page


@pytest.mark.parametrize("name", GALLERY)
def test_a_page_of_the_gallery_is_short(name):
    folder = DOCS / "gallery" / name
    text = (folder / "index.md").read_text(encoding="utf-8")
    code = CELL.findall(text) + [(folder / file).read_text(encoding="utf-8") for file in INCLUDED.findall(text)]
    lines = [line for part in code for line in part.splitlines() if line.strip() and not line.startswith(":")]
    assert 10 < len(lines) <= MOST_LINES


@pytest.mark.night
def test_signatures_say_arraylike_and_not_what_numpy_makes_of_it(site):
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    assert "ArrayLike" in text
    assert [word for word in ("_Buffer", "_SupportsArray", "~plumdp.") if word in text] == []


@pytest.mark.night
def test_narrow_columns_of_tables_break_no_word(site):
    """With "anywhere", a browser takes a column to be as narrow as a letter; with "break-word", as a word."""
    rules = (site / "_static" / "pages.css").read_text(encoding="utf-8")
    assert "td code { overflow-wrap: break-word;" in rules
    assert not re.search(r"^[^\n]*td[^\n]*(anywhere;|break-all)", rules, re.MULTILINE)
