"""No code decides by reading English: what it needs to know is a field, a flag, a member of an enumeration or a type.

A sentence is a text of two English words or more, or a module-level constant that is one. Words that a ``Literal``
lists are names, which the type checker knows, and so are the members of enumerations.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import plumdp

SOURCE = Path(plumdp.__file__).parent
# two words in a row that are not all capitals, as in SQL; or what stands between sentences or numbers
PROSE = re.compile(r"[A-Za-z]?[a-z]+[,;:.]? +[a-z]+|^; $|^ [a-z]+ $")
METHODS = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit"),
    *("replace", "find", "rfind", "index", "rindex", "count"),
}
PATTERNS = {"search", "match", "fullmatch", "sub", "split", "findall", "finditer", "compile"}  # of the module re
_COLUMN = "the name of a column in tables that queries write"
ALLOWED = {  # file, sentence or its beginning → why
    ("base/vocabulary.py", "; "): "files of results and of counts keep several reasons in one text",
    ("base/vocabulary.py", "what to try: "): "files of results keep findings and advice in one text",
    ("confidence/likelihood.py", "the half-space that "): "the short name of a line in a picture of the region",
    ("data/counts.py", "counts were added in the order"): "files of counts say only so that data were added",
    ("data/counts.py", "both parts were planned before"): "files of counts say only so that a sum was planned",
    ("data/duckdb_errors.py", ""): "the errors of DuckDB have no codes: their messages are translated here alone",
    ("data/duckdb_engine.py", "Query interrupted"): "DuckDB says by this message alone that Ctrl-C was pressed",
    ("data/files.py", "counts of transitions"): "the mark of a kind of file",
    ("data/ingestion.py", "stage of the run"): _COLUMN,
    ("data/matching.py", "the only action"): "a value of the column of actions, in logs of Markov chains",
    ("data/reward_values.py", "reward of the step "): _COLUMN,
    ("data/same_files.py", " first "): "the keys of parts of data, which no sentence shows",
    ("data/sql.py", "moment of the step"): _COLUMN,
    ("data/sql.py", "stage of the run"): _COLUMN,
    ("data/whole_runs.py", "chance of the run"): _COLUMN,
    ("model/readers/storm.py", "is out of range for variable"): "Storm says only so that a value is out of its range",
    (
        "model/readers/storm_messages.py",
        "",
    ): "the errors of Storm have no codes: their messages are translated here alone",
    ("plots/draw.py", "net benefit"): "the name of a picture, as users type it",
    ("plots/lists.py", " to "): "a label is shortened for a picture",
    ("reporting/sections.py", "say with max_steps how long"): "files of findings keep the message with Python's option",
    (
        "watching/plan.py",
        " (so it is, with other numbers, of",
    ): "files of watches keep what is assumed as texts, each once",
}


def text_of(node):
    """Return the text of a literal, with the fixed parts of one that is put together, or nothing."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return ""


def texts_of(node):
    """Return the texts of a literal, of the keys or members of a collection of literals, or of what makes a text."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [text for part in node.elts for text in texts_of(part)]
    if isinstance(node, ast.Dict):
        return [text for key in node.keys for text in texts_of(key)]
    if isinstance(node, ast.Call) and len(node.args) == 1:  # frozenset({…}), or a type of text
        return texts_of(node.args[0])
    return [text_of(node)]


@cache
def trees():
    """Return the terms of each file that matter here."""
    files = ((path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(SOURCE.rglob("*.py")))
    return {path: (tree.body, terms_in(tree)) for path, tree in files}


def terms_in(tree):
    kinds = (ast.Compare, ast.Call, ast.ImportFrom, ast.Subscript)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def module_of(path):
    return ".".join(("plumdp", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


@cache
def constants():
    """Return the texts of each module-level constant, by module and name."""
    found = {}
    for path, (body, _) in trees().items():
        for node in body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                pairs = [(target, node.value) for target in targets]
                if isinstance(targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = [*zip(targets[0].elts, node.value.elts, strict=True)]
                of_names = {name.id: texts_of(of) for name, of in pairs if isinstance(name, ast.Name)}
                found.setdefault(module_of(path), {}).update(of_names)
    return found


@cache
def names():
    """Return the words of all ``Literal`` types."""
    return {
        text
        for _, terms in trees().values()
        for node in terms
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal"
        for text in texts_of(node.slice)
    }


def sentences(node, known):
    """Return the sentences that a term is, or is a constant for."""
    texts = known.get(node.id, []) if isinstance(node, ast.Name) else texts_of(node)
    return [text for text in texts if PROSE.search(text) and text not in names()]


def asked(node):
    """Return the terms that a comparison or a method of texts compares with."""
    if isinstance(node, ast.Compare) and any(
        isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for op in node.ops
    ):
        return [node.left, *node.comparators]
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return []
    if isinstance(node.func.value, ast.Name) and node.func.value.id == "re":
        return node.args[:1] if node.func.attr in PATTERNS else []
    is_list = node.func.attr == "split" and not node.args  # of words that are written in one text
    return [*node.args, node.func.value] if node.func.attr in METHODS and not is_list else []


def found():
    """Yield each place where code asks for a sentence: the file, the line, and the sentence."""
    for path, (_, terms) in trees().items():
        known = dict(constants().get(module_of(path), {}))
        for node in terms:
            for each in node.names if isinstance(node, ast.ImportFrom) else ():
                known[each.asname or each.name] = constants().get(node.module, {}).get(each.name, [])
        for node in terms:
            for text in [text for term in asked(node) for text in sentences(term, known)][:1]:
                yield str(path.relative_to(SOURCE)), node.lineno, text


def allowed(file, text):
    """Return the entry of the list that allows a place, if there is one."""
    return next((entry for entry in ALLOWED if entry[0] == file and text.startswith(entry[1])), None)


@pytest.mark.slow
def test_nothing_is_decided_by_reading_english_but_where_the_list_says_why():
    places = [*found()]
    assert [place for place in places if not allowed(place[0], place[2])] == []
    assert {allowed(file, text) for file, _, text in places} == {*ALLOWED}


@pytest.mark.parametrize(
    "code",
    [
        "CHANGED = 'rows changed'\nnew = CHANGED not in reason",
        "A, B = 'first words', 'other words'\nnew = text == B",
        "KNOWN = ('first words', 'others')\nnew = text in KNOWN",
        "new = text.startswith(f'the {name} lies between ')",
        "new = text.partition('; ')[0]",
        "new = ends.split(' to ')",
        "new = re.search('is out of', str(error))",
    ],
)
def test_such_code_is_found(code, monkeypatch):
    tree = ast.parse(code)
    monkeypatch.setattr("test_no_logic_in_prose.trees", lambda: {SOURCE / "new.py": (tree.body, terms_in(tree))})
    for each in (constants, names):
        each.cache_clear()
    assert len([*found()]) == 1
    for each in (constants, names):
        each.cache_clear()


if __name__ == "__main__":
    for file, line, text in found():
        print(f"{file}:{line}: {text!r}")
