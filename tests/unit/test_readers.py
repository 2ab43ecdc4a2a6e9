"""Model files are read by what their names end in, a new kind costs one line, and zero branches are left out."""

from pathlib import Path

import numpy as np
import pytest

import plumdp as pl
from plumdp.case_studies import prism_file
from plumdp.cli.inputs import load_model
from plumdp.cli.options import Options
from plumdp.model.readers import commands, read


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
    (model, properties) = load_model(Options(model=str(coin)))
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


ALONE = """dtmc
const double p;
module m
  s : [0..2] init 0;
  x : [0..2] init 2;
  [] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [] s=1 -> x/2 : (s'=2) & (x'=1) + 1-x/2 : (s'=2) & (x'=FAR);
  [] s=2 -> true;
endmodule
"""
TOGETHER = """mdp
const double p;
module a
  x : [0..2] init 0;
  [go] x<2 -> p : (x'=x+1) + 1-p : true;
  [end] x=2 -> true;
endmodule
module b
  y : [0..1] init 0;
  [go] true -> x/2 : (y'=FAR) + 1-x/2 : (y'=0);
endmodule
"""
WIDEN = "outside its declared range; widen the range, or let a guard prevent it"


@pytest.fixture(params=["prism", "jani"])
def written(request, tmp_path):
    """Return a function that writes a PRISM text as a file of either language."""
    stormpy = pytest.importorskip("stormpy")

    def write(text):
        path = tmp_path / "model.prism"
        path.write_text(text, encoding="utf-8")
        if request.param == "jani":
            jani = str(stormpy.parse_prism_program(str(path)).to_jani([])[0])
            path = path.with_suffix(".jani")
            path.write_text(jani, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("far", ["0", "1", "4", "7", "-1"])  # beyond the range, some within its bits and some not
def test_a_branch_that_is_never_taken_may_lead_anywhere(far, written):
    """With x=2 the second branch of s=1 has probability 0: s, x are (0, 2), (1, 2), (2, 2) and (2, 1)."""
    graph = pl.read_model(written(ALONE.replace("FAR", far))).graph
    assert (graph.n_states, graph.n_transitions) == (4, 5)


def test_branches_of_synchronised_commands_are_left_out_where_their_product_vanishes(written):
    """From x=0 y stays 0, and from x=1 both branches of both modules are taken."""
    model = pl.read_model(written(TOGETHER.replace("FAR", "x=0 ? 9 : 1")))
    states = set(zip(model.graph.states["x"].tolist(), model.graph.states["y"].tolist(), strict=True))
    assert states == {(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)}
    assert model.graph.n_transitions == 2 + 4 + 4 + 1 + 1


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (
            ALONE.replace("x/2", "x/3").replace("FAR", "7"),
            {
                ".prism": f"module m, line 7, action 'm.2': x becomes 7, {WIDEN}",
                ".jani": f"the update x := 7: x becomes 7, {WIDEN}",
            },
        ),
        (
            TOGETHER.replace("FAR", "2"),
            {
                ".prism": f"module b, line 10, action 'go': y becomes 2, {WIDEN}",
                ".jani": f"the update y := 2: y becomes 2, {WIDEN}",
            },
        ),
        (
            TOGETHER.replace("FAR", "9"),  # Storm keeps some of its bits, and builds another model without a word
            dict.fromkeys(
                (".prism", ".jani"),
                "action 'go' leads to (x=2, y=9), outside the declared range of a variable; "
                "widen the range, or let a guard prevent it",
            ),
        ),
    ],
    ids=["alone", "together", "unnoticed by Storm"],
)
def test_a_branch_that_is_taken_must_stay_in_the_ranges(text, reasons, written):
    path = written(text)
    with pytest.raises(pl.ModelError) as caught:
        pl.read_model(path)
    assert str(caught.value) == f"{path}: {reasons[path.suffix]}"


@pytest.mark.parametrize("answer", [False, True], ids=["nothing_is_zero", "everything_is_zero"])
def test_a_wrong_idea_of_what_is_zero_is_found(answer, written, monkeypatch):
    monkeypatch.setattr(commands, "_is_zero", lambda probability, n: np.full(n, answer))
    with pytest.raises(pl.ModelError, match=r"please report this model$" if answer else r"leads to \(s=2, x=0\)"):
        pl.read_model(written(ALONE.replace("FAR", "0")))


def test_an_update_that_several_commands_have_is_named_itself(tmp_path):
    pytest.importorskip("stormpy")
    path = tmp_path / "model.prism"
    path.write_text(
        "mdp\nmodule m\n x : [0..2] init 0;\n [a] true -> (x'=x+1);\n [b] x>0 -> (x'=x+1);\nendmodule\n",
        encoding="utf-8",
    )
    with pytest.raises(pl.ModelError) as caught:
        pl.read_model(path)
    assert str(caught.value) == f"{path}: the update (x' = (x + 1)): x becomes 3, {WIDEN}"


def test_a_probability_that_is_negative_somewhere_cuts_the_space(written):
    model = pl.read_model(written(ALONE.replace("p : (s'=1) + 1-p", "2*p-1 : (s'=1) + 2-2*p").replace("FAR", "0")))
    assert model.space.describe() == ["p in [0.5, 1]"]


def test_a_constant_may_be_made_of_parameters(tmp_path):
    pytest.importorskip("stormpy")
    path = tmp_path / "model.prism"
    text = ALONE.replace("const double p;", "const double p;\nconst double q = 1-p;").replace("+ 1-p", "+ q")
    path.write_text(text.replace("FAR", "0"), encoding="utf-8")
    model = pl.read_model(path)
    assert (model.constants, model.space.names) == ({}, ("p",))
    assert {str(f) for f in model.expressions.polynomials} == {"1", "p", "-p + 1"}
