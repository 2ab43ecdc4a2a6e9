"""Our reading of PRISM and JANI files against Storm's own rational-function build, transition by transition."""

from fractions import Fraction
from pathlib import Path

import pytest

import plumdp as pl
from plumdp.model.readers.storm import read_prism

stormpy = pytest.importorskip("stormpy")

MODELS = Path(__file__).parents[1] / "models"
CASES = [
    ("synchronised", {}),
    ("merged", {}),
    ("products", {"N": 4}),
    ("die", {}),
    ("renamed", {}),
    ("affine", {"N": 5}),
    ("affine", {"N": 5, "t2": Fraction(1, 3)}),
]


def terms(polynomial, names):
    found = {}
    for term in polynomial:
        exponents = [0] * len(names)
        if term.monomial is not None:
            for variable, exponent in term.monomial:
                exponents[names.index(variable.name)] = int(exponent)
        found[tuple(exponents)] = Fraction(str(term.coeff))
    return found


def exact(function, names):
    """Return exponents → coefficient of one of Storm's functions, divided by its constant denominator."""
    if function.is_constant():
        value = Fraction(str(function.constant_part()))
        return {(0,) * len(names): value} if value else {}
    rational = function.rational_function()
    denominator = terms(rational.denominator, names)
    (constant,) = denominator.values()
    return {key: value / constant for key, value in terms(rational.numerator, names).items()}


def storm_rows(path, constants, names):
    """Return per state valuation the list of its choices, each a dict from target valuation to polynomial terms."""
    program = stormpy.parse_prism_program(str(path))
    values = {n: v if isinstance(v, int) else stormpy.Rational(str(v)) for n, v in constants.items()}
    program, _ = stormpy.instantiate_constants(program, values)
    model = stormpy.build_model[stormpy.RationalFunction](program, options=stormpy.BuilderOptions(build_full=True))
    variables = sorted(v.name for v in program.expression_manager.get_variables() if v.name in valuation_names(program))
    columns = [model.state_valuations.get_values_states(program.expression_manager.get_variable(n)) for n in variables]
    valuation = [tuple(int(column[s]) for column in columns) for s in range(model.nr_states)]
    if model.model_type.name == "DTMC":
        offsets = list(range(model.nr_states + 1))
    else:
        offsets = [*model.nondeterministic_choice_indices]
    rows = {}
    for state in range(model.nr_states):
        rows[valuation[state]] = [
            {valuation[e.column]: exact(e.value, names) for e in model.transition_matrix.get_row(choice)}
            for choice in range(offsets[state], offsets[state + 1])
        ]
    return variables, rows


def valuation_names(program):
    modules = [v.name for m in program.modules for v in (*m.integer_variables, *m.boolean_variables)]
    shared = [v.name for v in (*program.global_integer_variables, *program.global_boolean_variables)]
    return set(modules + shared)


def our_rows(model, variables):
    graph = model.graph
    valuation = list(zip(*(graph.states[name].astype(int).tolist() for name in variables), strict=True))
    rows = {}
    for state in range(graph.n_states):
        rows[valuation[state]] = [
            {
                valuation[graph.successor[t]]: model.expressions.polynomials[model.expression[t]].terms(
                    model.space.names
                )
                for t in range(graph.first_transition[c], graph.first_transition[c + 1])
            }
            for c in range(graph.first_choice[state], graph.first_choice[state + 1])
        ]
    return rows


@pytest.mark.parametrize(("name", "constants"), CASES)
def test_polynomials_equal_those_of_storms_rational_function_build(name, constants):
    path = MODELS / f"{name}.prism"
    model = read_prism(path, constants=constants)
    variables, expected = storm_rows(path, constants, list(model.space.names))
    assert our_rows(model, variables) == expected


@pytest.mark.parametrize(("name", "constants"), [case for case in CASES if case[0] != "renamed"])
def test_a_jani_file_gives_the_same_model_as_its_prism_file(name, constants, tmp_path):
    program = stormpy.parse_prism_program(str(MODELS / f"{name}.prism"))
    jani = tmp_path / f"{name}.jani"
    jani.write_text(str(program.to_jani([])[0]), encoding="utf-8")
    from_prism = read_prism(MODELS / f"{name}.prism", constants=constants)
    from_jani = read_prism(jani, constants=constants)
    variables = sorted(from_prism.graph.states)
    assert sorted(from_jani.graph.states) == variables

    def unordered(model):  # Storm sorts the edges of a JANI model differently
        rows = our_rows(model, variables)
        return {state: sorted(sorted(map(repr, choice.items())) for choice in row) for state, row in rows.items()}

    assert unordered(from_jani) == unordered(from_prism)
    assert from_jani.constants.items() <= from_prism.constants.items()  # a JANI constant may be hidden in an expression


def test_equal_probabilities_written_differently_tie():
    """In merged.prism 0.3*p and 3*q/10 lead to one successor: their sum is one expression, 3/10*p + 3/10*q."""
    model = read_prism(MODELS / "merged.prism")
    texts = [str(f) for f in model.expressions.polynomials]
    assert "3/10*p + 3/10*q" in texts
    assert len(set(texts)) == len(texts)


def test_rewards_labels_constants_and_names_come_along():
    model = read_prism(MODELS / "synchronised.prism")
    x = model.graph.states["x"]
    assert model.graph.action_names == ("go", "a.3")
    assert model.constants == {"N": 3}
    assert model.rewards["r"].state.tolist() == (2.0 * (x == 1)).tolist()
    assert model.rewards["r"].choice.tolist() == (3.0 * (model.graph.action == 0)).tolist()
    assert model.rewards[""].state.tolist() == (1.0 * (x > 0)).tolist()
    assert model.labels["end"].tolist() == (x == 3).tolist()
    assert model.graph.states["y"].min() == -1


def test_constants_have_the_value_of_their_declared_type():
    """1/7 is a rational constant, although both of its operands are integers."""
    model = read_prism(MODELS / "affine.prism", constants={"N": 5})
    assert model.constants == {"N": 5, "scale": Fraction(1, 7)}
    assert type(model.constants["N"]) is int


def test_a_deadlock_is_repaired_by_storm_and_reported():
    model = read_prism(MODELS / "renamed.prism")
    (issue,) = [issue for issue in pl.model.validate(model) if issue.kind == "deadlock"]
    assert issue.severity == "warning"
    assert "deadlock states were given a self-loop, for example (" in issue.message
