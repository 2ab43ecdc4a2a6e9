"""Words that were given up stay out of what is printed, and out of the pages for users."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORMER = re.compile(
    r"\b(announced|fortunes?|misfits?|not yet known|nothing certified|the policy found|opponents?|sum over starts|"
    r"unproved|MODEL CONTRADICTED|contradict(s|ed)? the model|model is contradicted|behavior|analyze)\b"
)
PRINTED = re.compile(FORMER.pattern + r"|\b(cut off|remainders?|approximately)\b")
PAGES = [page for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] if "_build" not in page.parts]


def literals(code):
    """Return the texts in a module that are no docstrings."""
    tree = ast.parse(code)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [node.value for node in constants if id(node) not in told]


def test_no_message_option_or_key_has_a_former_word():
    files = [*ROOT.glob("src/**/*.py")]
    texts = [(file.name, text) for file in files for text in literals(file.read_text(encoding="utf-8"))]
    assert len(texts) > 10_000
    assert [pair for pair in texts if PRINTED.search(pair[1])] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_a_former_word(page):
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert [match[0] for match in FORMER.finditer(prose)] == []


def test_former_words_are_found_in_texts_and_not_in_docstrings():
    code = (
        'def f():\n    """Return what was announced."""\n    return f"they contradict the model: {1}", {"fortune": 2}'
    )
    found = [match[0] for text in literals(code) if (match := PRINTED.search(text))]
    assert found == ["contradict the model", "fortune"]
