"""Every page of the gallery and of the how-to can be found from the overview that it belongs to."""

import re
from pathlib import Path

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
