"""The standard parametric models of the field, written anew from their descriptions, against Storm at one point."""

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

import plumdp as pl

stormpy = pytest.importorskip("stormpy")

MODELS = Path(__file__).parents[1] / "models"
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "models.md"


@dataclass(frozen=True)
class Standard:
    """The sizes of a model, a point, and a property whose value at that point is neither 0 nor 1."""

    constants: dict[str, int]
    point: dict[str, Fraction]
    asked: str


def at(**numerators):
    return {name: Fraction(numerator, 10) for name, numerator in numerators.items()}


STANDARD = {
    "nand": Standard({"N": 2, "K": 1}, at(fault=1, excited=9), 'P=? [ F "reliable" ]'),
    "brp": Standard({"N": 2, "MAX": 1}, at(pK=9, pL=8), 'P=? [ F "failure" ]'),
    "crowds": Standard({"SIZE": 2, "RUNS": 2}, at(forward=8, bad=1), 'P=? [ F "exposed" ]'),
    "zeroconf": Standard({"PROBES": 3}, at(taken=6, lost=2), 'R{"probes"}=? [ F "over" ]'),
    "consensus": Standard({"K": 1}, at(heads1=5, heads2=6), 'Pmax=? [ F "disagree" ]'),
    "firewire": Standard({"DELAY": 1}, at(fast1=5, fast2=7), 'R{"rounds"}max=? [ F "elected" ]'),
    "wlan": Standard({"TRIES": 2}, at(clear1=9, clear2=7), 'Pmax=? [ F "stuck" ]'),
}


def read(name):
    return pl.read_model(MODELS / f"{name}.prism", constants=STANDARD[name].constants)


def built_by_storm(name):
    """Return Storm's model in exact rationals, and the exact value of the property in its initial state."""
    standard = STANDARD[name]
    values = {p: stormpy.Rational(str(value)) for p, value in standard.point.items()}
    program = stormpy.parse_prism_program(str(MODELS / f"{name}.prism"))
    program, _ = stormpy.instantiate_constants(program, {**standard.constants, **values})
    built = stormpy.build_model[stormpy.Rational](program)
    formula = stormpy.parse_property(standard.asked)  # Storm does not keep it alive
    exact = stormpy.model_checking(built, formula).get_value_vector()[built.initial_states[0]]
    return built, Fraction(str(exact))


@pytest.mark.parametrize("name", STANDARD)
def test_a_standard_model_has_the_size_and_the_value_that_storm_finds(name):
    standard, model = STANDARD[name], read(name)
    built, exact = built_by_storm(name)
    assert (model.graph.n_states, model.graph.n_choices) == (built.nr_states, built.nr_choices)
    assert set(model.space.names) == set(standard.point)
    question = pl.parse_property(standard.asked.replace("P=?", "Pmax=?").replace("}=?", "}max=?"), model)
    solution = pl.stages.solve(pl.stages.instantiate(model, standard.point), question, precision=1e-10)
    start = model.graph.initial_state
    assert 0 < exact != 1
    assert float(solution.lower[start]) == pytest.approx(float(exact), abs=1e-9)
    assert float(solution.upper[start]) == pytest.approx(float(exact), abs=1e-9)


def test_a_standard_model_is_learned_from_its_runs_and_certified():
    model, standard = read("zeroconf"), STANDARD["zeroconf"]
    counts = pl.simulate(model, standard.point, 300, rng=1, max_steps=60, stop=model.labels["over"])
    certificate = pl.certify(model, counts, 'Pmax=? [ F "conflict" ]')
    taken, lost = standard.point.values()
    conflict = taken * lost**3 / (1 - taken * (1 - lost**3))  # a host draws again unless all of its probes are lost
    assert 0 < certificate.lower <= conflict <= certificate.upper < 0.2


def rows_of_the_page(heading):
    """Return the rows of the table of the page on models that begins with a heading, each as a list of cells."""
    _, _, table = PAGE.read_text(encoding="utf-8").partition(f"\n| {heading} |")
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\|)\|(?!\|)", line)[1:-1]] for line in lines]


def test_the_page_on_models_tells_the_truth_about_the_standard_models():
    told = {}
    for name, kind, parameters, example in rows_of_the_page("model"):
        told[name.strip("`")] = set(re.findall(r"`(.*?)`", parameters))
        text = (MODELS / f"{name.strip('`')}.prism").read_text(encoding="utf-8")
        assert re.search(r"^(mdp|dtmc)$", text, re.MULTILINE)[0] == kind.strip("`")
        assert all(code in text for code in re.findall(r"`(.*?)`", example))
    assert told == {name: set(standard.point) for name, standard in STANDARD.items()}


def examples_of_probabilities():
    """Return each example of the page's table of probabilities, with what the page says becomes of it."""
    rows = rows_of_the_page("in a probability")
    return [(code, remedy) for _, examples, remedy in rows for code in re.findall(r"`(.*?)`", examples)]


@pytest.mark.parametrize(("code", "remedy"), examples_of_probabilities())
def test_the_page_on_models_tells_the_truth_about_probabilities(code, remedy, tmp_path):
    constant, probability = (code, "r") if code.startswith("const") else ("", code)
    path = tmp_path / "model.prism"
    path.write_text(
        f"mdp const double p; const double q; {constant}\nmodule m x : [0..2];\n"
        f"[go] x<2 -> {probability} : (x'=x+1) + 1-({probability}) : true; endmodule",
        encoding="utf-8",
    )
    if remedy == "read":
        assert pl.read_model(path).graph.n_states == 3
    else:
        assert remedy == "give it a parameter of its own"
        with pytest.raises(pl.ModelError, match=r"line 3\b.*give .* a parameter of its own"):
            pl.read_model(path)
