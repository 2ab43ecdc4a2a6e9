"""Each case study is the same model as a PRISM file and as a Python constructor: transition by transition."""

import numpy as np
import pytest

import plumdp as pl
from plumdp.case_studies import prism_constants, prism_file
from plumdp.model.readers.storm import read_prism

pytest.importorskip("stormpy")

SMALLEST = ["aircraft:20,10", "betting:25", "engagement:50", "rover:10,10", "glider:11,9", "parallel:5"]


def transitions(model):
    """Return (source valuation, action, target valuation) → polynomial."""
    graph = model.graph
    names = sorted(graph.states)
    valuations = list(zip(*(graph.states[name].tolist() for name in names), strict=True))
    found = {}
    for choice, state in enumerate(graph.state_of_choice()):
        for t in range(graph.first_transition[choice], graph.first_transition[choice + 1]):
            key = (valuations[state], graph.action_names[graph.action[choice]], valuations[graph.successor[t]])
            assert key not in found
            found[key] = model.expressions.polynomials[model.expression[t]]
    return found


def initial(model):
    return {name: values[model.graph.initial_state] for name, values in model.graph.states.items()}


def by_valuation(model, values):
    names = sorted(model.graph.states)
    columns = (model.graph.states[name].tolist() for name in names)
    return dict(zip(zip(*columns, strict=True), np.asarray(values).tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLEST)
def test_prism_file_and_constructor_agree(name):
    built = pl.case_study(name).model
    read = read_prism(prism_file(name.split(":")[0]), constants=prism_constants(name), space=built.declared_space)
    assert transitions(read) == transitions(built)
    assert read.space == built.space
    assert initial(read) == initial(built)
    assert set(read.labels) == set(built.labels)
    for label in built.labels:
        assert by_valuation(read, read.labels[label]) == by_valuation(built, built.labels[label])
    assert set(read.rewards) == set(built.rewards)
    for reward in built.rewards:
        assert by_valuation(read, read.rewards[reward].state) == by_valuation(built, built.rewards[reward].state)


@pytest.mark.parametrize("name", SMALLEST)
def test_the_property_beside_the_file_is_the_objective_of_the_study(name):
    study = pl.case_study(name)
    text = prism_file(name.split(":")[0]).with_suffix(".props").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line and not line.startswith("//")]
    assert line == study.objective.text
