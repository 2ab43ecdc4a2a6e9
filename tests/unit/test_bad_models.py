"""Broken models, and the exact message each gets: what is wrong, where, and how to fix it."""

from pathlib import Path

import pytest
from refusals import refused

import plumdp as pl

p, q = pl.parameters("p", "q")
UNIT = pl.ParameterSpace.unit("p")


def explored(outcomes, initial=None, space=UNIT):
    return pl.explore(lambda s: {"go": outcomes(s)}, initial or {"x": 0}, space=space)


def batched(outcomes, where=True, initial=0):
    return pl.explore_batch(lambda s: [("go", where, outcomes(s))], {"x": initial}, space=UNIT)


def test_a_broken_python_model_is_refused_with_its_reason():
    refused("models:python", globals())


MODULE = "module m\n  x : [0..1] init 0;\n  [a] x=0 -> p : (x'=1) + 1-p : true;\n  [b] x=1 -> true;\nendmodule\n"
HEAD = "mdp\nconst double p;\n"


def test_a_broken_prism_model_is_refused_with_its_reason(tmp_path, monkeypatch):
    pytest.importorskip("stormpy")
    monkeypatch.chdir(tmp_path)

    def read(text, **options):
        Path("model.prism").write_text(text, encoding="utf-8")
        pl.read_prism("model.prism", **options)

    refused("models:prism", globals(), read=read)


def test_a_missing_file_is_named():
    pytest.importorskip("stormpy")
    with pytest.raises(pl.ModelError, match=r"^nowhere\.prism: there is no such file$"):
        pl.read_prism("nowhere.prism")


def test_without_storm_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "stormpy", None)
    path = tmp_path / "model.prism"
    path.write_text(HEAD + MODULE, encoding="utf-8")
    with pytest.raises(pl.MissingExtra) as caught:
        pl.read_prism(path)
    assert str(caught.value) == "reading PRISM and JANI files needs Storm: pip install 'plumdp[storm]'"
