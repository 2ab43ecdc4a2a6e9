"""Model files are read by what their names end in, a new kind costs one line, and zero branches are left out."""

import json
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refused
from tiers import examples

import plumdp as pl
from plumdp.base.errors import MissingExtra
from plumdp.case_studies import prism_file
from plumdp.cli.inputs import load_model
from plumdp.cli.options import Options
from plumdp.cli.sources import load_source
from plumdp.model.language.property import parse_predicate
from plumdp.model.objectives.mission import Mission
from plumdp.model.readers import commands, read
from plumdp.model.readers.storm import jani_properties, read_prism


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
    assert model.fingerprint == read_prism(prism_file("betting"), constants={"N": 5}).fingerprint


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


def test_a_branch_that_is_taken_must_stay_in_the_ranges(written, request):
    """Of the last case, Storm keeps some of the bits, and builds another model without a word."""

    def read(code, *_):
        path = written(eval(code))
        try:
            pl.read_model(path)
        except pl.ModelError as error:
            raise pl.ModelError(f"{path.suffix} {str(error).removeprefix(f'{path}: ')}") from None

    refused(f"models:taken_{request.node.callspec.params['written']}", read)


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


# Broken models, and the exact message each gets


p, q = pl.parameters("p", "q")
UNIT = pl.ParameterSpace.unit("p")


def explored(outcomes, initial=None, space=UNIT):
    return pl.explore(lambda s: {"go": outcomes(s)}, initial or {"x": 0}, space=space)


def batched(outcomes, where=True, initial=0):
    return pl.model.explore_batch(lambda s: [("go", where, outcomes(s))], {"x": initial}, space=UNIT)


def test_a_broken_python_model_is_refused_with_its_reason():
    refused("models:python", globals())


MODULE = "module m\n  x : [0..1] init 0;\n  [a] x=0 -> p : (x'=1) + 1-p : true;\n  [b] x=1 -> true;\nendmodule\n"
HEAD = "mdp\nconst double p;\n"


def test_a_broken_prism_model_is_refused_with_its_reason(tmp_path, monkeypatch):
    pytest.importorskip("stormpy")
    monkeypatch.chdir(tmp_path)

    def read(text, **options):
        Path("model.prism").write_text(text, encoding="utf-8")
        read_prism("model.prism", **options)

    refused("models:prism", globals(), read=read)


def test_a_missing_file_is_named():
    pytest.importorskip("stormpy")
    with pytest.raises(pl.ModelError, match=r"^nowhere\.prism: there is no such file$"):
        read_prism("nowhere.prism")


def test_without_storm_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "stormpy", None)
    path = tmp_path / "model.prism"
    path.write_text(HEAD + MODULE, encoding="utf-8")
    with pytest.raises(MissingExtra) as caught:
        read_prism(path)
    assert str(caught.value) == "reading PRISM and JANI files needs Storm: pip install 'plumdp[storm]'"


# Texts that ask for endless work, nest without end or are none


MODEL = pl.case_study("betting:5").model


def test_hostile_predicates_are_refused_with_a_short_reason():
    for around in ("{}", "Pmax=? [ F {} ]"):

        def parse(code, around=around):
            with pytest.raises(pl.ModelError) as caught:
                (parse_predicate if around == "{}" else pl.parse_property)(around.format(eval(code)), MODEL)
            assert len(str(caught.value)) < 1500
            raise caught.value

        refused("properties:hostile_predicates", parse)


def test_hostile_properties_are_refused_with_a_reason():
    refused("properties:hostile_properties", lambda code: pl.parse_property(eval(code), MODEL))


def test_large_powers_of_one_and_of_small_numbers_are_no_problem():
    assert parse_predicate("pow(1, 1000000000) = 1 & pow(0, 1000000000) = 0 & pow(2, 1000) > money", MODEL).all()


WORDS = re.split(
    " ",
    'Pmax=? Pmin=? R{"money"}max=? [ ] ( ) F G X U <= < = > != 10 1e5 1e-5 .5 2 0 "end" "init" money step true false ! '
    '& | => <=> ? : + - * / min( max( mod( pow( floor( ceil( , C { } 0.9 discount Cdiscount " § // I S LRA || p ; E W',
)


@settings(max_examples=examples(300))
@given(st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join))
@example("Pmax=? [ F money < ¼ ]")
@example("x\ud800")
def test_only_a_model_error_comes_out_of_any_text(text):
    for parse, asked in (
        (parse_predicate, text),
        (pl.parse_property, text),
        (pl.parse_property, f"Pmax=?[F {text}]"),
    ):
        with suppress(pl.ModelError):
            assert isinstance(parse(asked, MODEL), np.ndarray | pl.model.Reach | pl.model.Reward | Mission)


GOOD = """mdp
const double p;
const int N = 2;
module m
  x : [0..N] init 0;
  [go] x=0 -> p:(x'=1) + 1-p:(x'=2);
  [stay] x>0 -> true;
endmodule
"""


def test_files_that_are_no_models_are_refused_by_name(tmp_path):
    pytest.importorskip("stormpy")

    def read(name, code):
        (tmp_path / name).write_bytes(eval(code))
        read_prism(tmp_path / name)

    refused("models:no_models", read)


def test_a_constant_beyond_32_bits_is_refused(tmp_path):
    pytest.importorskip("stormpy")
    path = tmp_path / "m.prism"
    path.write_text(GOOD.replace("N = 2", "N"))
    with pytest.raises(pl.ModelError, match=r"the constant N leaves the range of 32-bit integers$"):
        read_prism(path, constants={"N": "1e30"})


TOO_LARGE = {
    "rover:100000,100000,5": "490,000,000,000 states and up to 2,940,000,000,000 transitions: it takes about 117,6",
    "betting:999999999999": "5,000,000,000,015,000,000,000,002 states",
    "glider:300000,300000,1,1": "90,000,000,000 states and up to 1,440,000,000,000 transitions",
    "aircraft:9999,99999,1": "100,000,000,000,000 states",
    "engagement:999999999999": "19,999,999,999,980 states",
    "parallel:99999,0": "11,000,469,987,300,149 states",
    f"betting:{'9' * 400}": "GB to build",
}


@pytest.mark.parametrize("name", TOO_LARGE, ids=lambda name: name[:20])
def test_a_case_study_beyond_the_memory_is_refused_before_it_is_built(name):
    with pytest.raises(pl.ModelError) as caught:
        pl.case_study(name)
    assert TOO_LARGE[name] in str(caught.value)
    assert str(caught.value).endswith(" GB; take smaller sizes")


@pytest.mark.parametrize(
    "name", ["betting:25", "engagement:20", "rover:10,10", "glider:11,9", "aircraft:20,10", "parallel:6"]
)
def test_estimated_sizes_are_about_right(name):
    from plumdp.case_studies import _FAMILIES, _parse

    family, arguments = _parse(name)
    graph = pl.case_study(name).model.graph
    states = _FAMILIES[family].n_states(*arguments)
    assert graph.n_states <= states < 1.5 * graph.n_states
    assert graph.n_transitions <= _FAMILIES[family].row * states < 3 * graph.n_transitions


def test_properties_in_a_jani_file_are_asked_by_name(tmp_path):
    stormpy = pytest.importorskip("stormpy")
    (tmp_path / "m.prism").write_text(
        "dtmc\nmodule m\n x : [0..2] init 0;\n [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);\n [] x>0 -> true;\nendmodule\n"
        'rewards "cost"\n true : 1;\nendrewards\n'
    )
    program = stormpy.parse_prism_program(str(tmp_path / "m.prism"))
    jani, _ = program.to_jani([])
    content = json.loads(str(jani))
    reach = {"op": "F", "exp": {"op": "=", "left": "x", "right": 1}, "step-bounds": {"upper": 3}}
    values = {"op": "Pmax", "exp": reach}
    query = {"op": "filter", "fun": "max", "states": {"op": "initial"}, "values": values}
    content["properties"] = [{"name": "top", "expression": query}]
    (tmp_path / "m.jani").write_text(json.dumps(content))
    assert jani_properties(tmp_path / "m.jani") == ['"top": Pmax=? [true U<=3 (x = 1)]']
    _, texts = load_source(str(tmp_path / "m.jani"), {})
    assert pl.parse_property(texts[0], pl.read_model(tmp_path / "m.jani")).steps == (0, 3)
