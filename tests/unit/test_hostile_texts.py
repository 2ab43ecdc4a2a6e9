"""Texts that ask for endless work, nest without end or are none: a sentence each, at once, and no other exception."""

import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import examples

import plumdp as pl
from plumdp.model.objectives.mission import Mission

MODEL = pl.case_study("betting:5").model
_DEEP = "this formula is nested too deeply; give its states a label in the model and name that"
_EXPONENT = "is not a number of reasonable size: its exponent is beyond 4000"

PREDICATES = {
    "pow(money, 1000000000) > 1": "(2) ** 1000000000 is too large to calculate with",
    "pow(2, 99999999999999999999) > 1": "(2) ** 99999999999999999999 is too large to calculate with",
    "pow(pow(pow(10, 1000), 1000), 1000) > 1": "** 1000 is too large to calculate with",
    "money > 1e999999999": f"'1e999999999' {_EXPONENT}",
    "money > 1e-999999999": f"'1e-999999999' {_EXPONENT}",
    f"money > {'9' * 5000}": "this number has more than 1,000 digits",
    f"{'(' * 5000}true{')' * 5000}": _DEEP,
    f"{'!' * 5000}true": _DEEP,
    f"{'-' * 5000}1 > 0": _DEEP,
    f"true{' & true' * 20000}": _DEEP,
    f"{'min(1, ' * 3000}1{')' * 3000} > 0": _DEEP,
    f"{'true ? ' * 3000}true{' : true' * 3000}": _DEEP,
    "1/0 > 0": "(1) / 0: division by zero",
    "mod(money, 0) = 1": "mod by zero or by a negative number",
    "\x00": "\x00 is not part of the property language",
}
PROPERTIES = {
    f"Pmax=? [ {'(' * 5000}F true{')' * 5000} ]": "this property has too many parentheses inside each other",
    "Pmax=? [ F<=1e999999999 true ]": f"'1e999999999' {_EXPONENT}",
    "Pmax=? [ F<=99999999999999999999 true ]": "that is more than 1,000,000,000; ask without a bound on the steps",
    "Pmax=? [ F<=1e4000*1e4000 true ]": "this number is too large",
    "Pmax=? [ F<=pow(10, 100000) true ]": "(10) ** 100000 is too large to calculate with",
    'R{"money"}max=? [ C{1e-999999999} ]': f"'1e-999999999' {_EXPONENT}",
}


@pytest.mark.parametrize("text", PREDICATES, ids=lambda text: text[:20])
def test_hostile_predicates_are_refused_with_a_short_reason(text):
    for parse, asked in ((pl.model.parse_predicate, text), (pl.parse_property, f"Pmax=? [ F {text} ]")):
        with pytest.raises(pl.ModelError) as caught:
            parse(asked, MODEL)
        assert PREDICATES[text] in str(caught.value)
        assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("text", PROPERTIES, ids=lambda text: text[:20])
def test_hostile_properties_are_refused_with_a_reason(text):
    with pytest.raises(pl.ModelError) as caught:
        pl.parse_property(text, MODEL)
    assert PROPERTIES[text] in str(caught.value)


def test_large_powers_of_one_and_of_small_numbers_are_no_problem():
    assert pl.model.parse_predicate(
        "pow(1, 1000000000) = 1 & pow(0, 1000000000) = 0 & pow(2, 1000) > money", MODEL
    ).all()


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
        (pl.model.parse_predicate, text),
        (pl.parse_property, text),
        (pl.parse_property, f"Pmax=?[F {text}]"),
    ):
        with suppress(pl.ModelError):
            assert isinstance(parse(asked, MODEL), np.ndarray | pl.Reach | pl.Reward | Mission)


GOOD = """mdp
const double p;
const int N = 2;
module m
  x : [0..N] init 0;
  [go] x=0 -> p:(x'=1) + 1-p:(x'=2);
  [stay] x>0 -> true;
endmodule
"""
FILES = {
    "not UTF-8": ("m.prism", b"// caf\xe9\n" + GOOD.encode(), "this is not a text in UTF-8 (byte 6); save it as UTF-8"),
    "UTF-16": ("m.prism", GOOD.encode("utf-16"), "this is not a text in UTF-8 (byte 0); save it as UTF-8"),
    "a large power": (
        "m.prism",
        GOOD.replace("p:", "pow(p,1000000000):").encode(),
        "module m, line 6, action 'go': (p ^ 1000000000): the exponent is too large to calculate with",
    ),
    "broken JSON": (
        "m.jani",
        b'{"a":',
        "this is not JSON, which JANI files are: Expecting value: line 1 column 6 (char 5)",
    ),
    "a list": ("m.jani", b"[1, 2]", "this is not a JANI model: it must be a JSON object"),
    "nested": ("m.jani", b"[" * 100_000, "this is not a JANI model: it is nested too deeply"),
    "JANI that is not UTF-8": ("m.jani", b'{"\xe9": 1}', "this is not a text in UTF-8 (byte 2); save it as UTF-8"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_no_models_are_refused_by_name(case, tmp_path):
    pytest.importorskip("stormpy")
    name, content, message = FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(pl.ModelError) as caught:
        pl.read_prism(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {message}"


def test_a_constant_beyond_32_bits_is_refused(tmp_path):
    pytest.importorskip("stormpy")
    path = tmp_path / "m.prism"
    path.write_text(GOOD.replace("N = 2", "N"))
    with pytest.raises(pl.ModelError, match=r"the constant N leaves the range of 32-bit integers$"):
        pl.read_prism(path, constants={"N": "1e30"})


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
