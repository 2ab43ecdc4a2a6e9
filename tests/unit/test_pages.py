"""Pages of the documentation: links lead somewhere, every page can be reached, and tests that are named exist."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_of_the_gallery_has_a_card_that_waits_for_its_answer():
    text = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")
    pages = sorted(page.parent.name for page in DOCS.glob("gallery/*/index.md"))
    cards = re.findall(
        r"^:link: (\w+)/index\n:link-type: doc\n.+\n```\{raw\} html\n(.*)\n```\n:::$", text, re.MULTILINE
    )
    assert sorted(cards) == [(name, f'<div class="answer" id="{name}"></div>') for name in pages]


def test_every_how_to_is_in_the_list():
    text = (DOCS / "howto" / "index.md").read_text(encoding="utf-8")
    listed = [
        line for block in re.findall(r"^```\{toctree\}\n.*?\n\n(.*?)^```", text, re.M | re.S) for line in block.split()
    ]
    assert sorted(listed) == sorted(page.stem for page in DOCS.glob("howto/*.md") if page.stem != "index")


ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def text_of(page):
    """Return a page without its blocks of code, in which brackets mean other things."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    """Return the links of a page that lead nowhere in the repository."""
    broken = []
    for link in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        if file == "report.html":  # made when the page runs; test_site.py looks for it
            continue
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](#one) [b](#two) [c](no.md) [d](page.md#one)\n```\n[e](no.md)\n```\n", encoding="utf-8")
    assert broken_links(page) == ["#two", "no.md"]


def test_pages_that_code_cites_exist():
    sources = [path for folder in ("src", "tests", "studies") for path in (ROOT / folder).rglob("*.py")]
    cited = {page for path in sources for page in re.findall(r"docs/[\w/]+\.md", path.read_text(encoding="utf-8"))}
    assert len(cited) > 8
    assert [page for page in sorted(cited) if not (ROOT / page).exists()] == []


def test_every_page_is_in_a_table_of_contents():
    docs = ROOT / "docs"
    listed = set()
    for page in docs.glob("**/*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r".*<(.+)>", r"\1", name) for name in names]
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    pages = {page.resolve() for page in docs.glob("**/*.md")} - {(docs / "index.md").resolve()}
    assert pages - listed == set()
    assert listed - pages == set()


def missing_tests(text):
    """Return the tests that a page names, as file, file::name or ::name of the file before, and that do not exist."""
    missing, file = [], None
    for named, name in re.findall(r"`((?:[a-z]+/test_\w+\.py)?)(?:::(test_\w+))?`", text):
        file = ROOT / "tests" / named if named else file
        if not (named or name):
            continue
        if not file.exists() or f"def {name}(" not in file.read_text(encoding="utf-8") + "def (":
            missing.append(f"{named}::{name}")
    return missing


def test_the_tests_that_check_claims_and_statements_exist():
    text = (DOCS / "proofs" / "tests.md").read_text(encoding="utf-8")
    assert len(re.findall(r"`[\w/.]*(?:test_\w+\.py|::test_)", text)) > 80
    assert missing_tests(text) == []


def test_a_test_that_does_not_exist_is_missing():
    here = "unit/test_pages.py"
    text = f"`{here}::test_no_such` `::test_a_broken_link_is_found` `{here}` `unit/test_not_there.py` `::test_x`"
    assert missing_tests(text) == [f"{here}::test_no_such", "unit/test_not_there.py::", "::test_x"]
