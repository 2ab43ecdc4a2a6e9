"""Model files are read by what their names end in, and a new kind of file costs one function and one line."""

from pathlib import Path

import pytest

import plumdp as pl
from plumdp.case_studies import prism_file
from plumdp.cli.arguments import load
from plumdp.model.readers import read


def read_coin(path, *, constants=None, space=None):
    """Return a coin that is tossed until it shows heads; the file holds the name of its parameter."""
    name = Path(path).read_text(encoding="utf-8").strip()
    (heads,) = pl.parameters(name)
    tosses = [(heads, {"shown": 1}), (1 - heads, {"shown": 0})]

    def step(state):
        return {"toss": [(probability, state._replace(**outcome)) for probability, outcome in tosses]}

    return pl.explore(step, {"shown": 0}, space=space or pl.ParameterSpace.unit(name))


@pytest.fixture
def coin(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "READERS", {**read.READERS, ".coin": read_coin})
    path = tmp_path / "model.coin"
    path.write_text("bias\n", encoding="utf-8")
    return path


def test_a_reader_of_ones_own_is_one_line_in_the_table(coin):
    model = pl.read_model(coin)
    assert (model.graph.n_states, model.space.names) == (2, ("bias",))


def test_the_space_reaches_the_reader(coin):
    space = pl.ParameterSpace.box({"bias": (0.25, 0.5)})
    assert pl.read_model(coin, space=space).declared_space == space


def test_the_command_line_reads_what_is_in_the_table(coin):
    (model, properties) = load(str(coin), [])
    assert model.space.names == ("bias",)
    assert properties == []


@pytest.mark.parametrize("ending", [".prism", ".nm", ".PRISM"])
def test_a_prism_file_may_have_any_of_the_usual_endings(ending, tmp_path):
    path = tmp_path / f"betting{ending}"
    path.write_bytes(prism_file("betting").read_bytes())
    pytest.importorskip("stormpy")
    model = pl.read_model(path, constants={"N": 5})
    assert model.fingerprint == pl.read_prism(prism_file("betting"), constants={"N": 5}).fingerprint


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.txt", "there is no reader for a file that ends in .txt; the endings are .prism, .nm, .pm, .sm, .jani"),
        ("model", "there is no reader for a file without an ending; the endings are .prism, .nm, .pm, .sm, .jani"),
    ],
)
def test_a_file_of_unknown_kind_is_refused(name, message, tmp_path):
    path = tmp_path / name
    path.write_text("mdp", encoding="utf-8")
    with pytest.raises(pl.ModelError) as caught:
        pl.read_model(path)
    assert str(caught.value) == f"{path}: {message}"


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(pl.ModelError, match=r"^nowhere\.txt: there is no such file$"):
        pl.read_model("nowhere.txt")
