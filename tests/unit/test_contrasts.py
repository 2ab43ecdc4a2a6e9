"""Contrasts: one cell for each open choice, chosen by the model alone."""

import numpy as np
import pytest
from cell_models import cell_model

import plumdp as pl
from plumdp.confidence.contrasts import NONE, find_contrasts

p, q = pl.parameters("p", "q")
SPACE = pl.ParameterSpace.unit("p", "q")
COIN = [[p, 1 - p]]


def open_choices(model):
    """Return which choices have a transition with an unknown probability, by going through all of them."""
    graph = model.graph
    found = []
    for choice in range(graph.n_choices):
        transitions = range(graph.first_transition[choice], graph.first_transition[choice + 1])
        found.append(any(not model.expressions.polynomials[model.expression[t]].is_constant for t in transitions))
    return np.array(found)


@pytest.mark.slow
def test_every_open_choice_is_in_one_cell_and_no_other_choice_is():
    for name in ("betting:5", "rover:10,10", "aircraft:20,10", "parallel:5"):
        model = pl.case_study(name).model
        for contrast in find_contrasts(model):
            assert np.array_equal(contrast.cell != NONE, open_choices(model))
            used = contrast.cell[contrast.cell != NONE]
            assert len(contrast.levels) == len(contrast.cells) == used.max() + 1 == len(np.unique(used))
            assert (np.diff(contrast.levels) > 0).all()


def test_a_variable_with_few_values_has_a_cell_for_each():
    model = cell_model([[[p, 1 - p]], [[q, 1 - q]], [[p, 1 - p]]], SPACE)
    (contrast,) = find_contrasts(model)
    assert (contrast.name, contrast.kind) == ("h", "variable")
    assert contrast.levels.tolist() == [0, 1, 2]
    assert contrast.cells == ("h = 0", "h = 1", "h = 2")
    state = model.graph.state_of_choice()
    assert np.array_equal(contrast.value[contrast.cell >= 0], model.graph.states["h"][state][contrast.cell >= 0])


def test_a_variable_with_many_values_has_sixteen_runs_of_neighbours_with_their_means():
    """Values 0 to 39 in sixteen runs; by hand, the first three values of bin i are those with ⌊16 v / 40⌋ = i."""
    (contrast,) = find_contrasts(cell_model([COIN] * 40, SPACE))
    bins = [[v for v in range(40) if 16 * v // 40 == i] for i in range(16)]
    assert contrast.levels.tolist() == [np.mean(values) for values in bins]
    assert contrast.cells[0] == "h from 0 to 2"


def test_actions_are_one_against_the_others():
    model = cell_model([[[p, 1 - p], [q, 1 - q], [p, q / 2, 1 - p - q / 2]]], pl.ParameterSpace.simplex("p", "q"))
    found = {contrast.name: contrast for contrast in find_contrasts(model)}
    assert set(found) == {"row 0", "row 1", "row 2"}
    assert sorted(found["row 1"].cell[found["row 1"].cell >= 0].tolist()) == [0, 0, 1]
    assert found["row 1"].cells == ("other actions", "action 'row 1'")


def test_what_does_not_vary_is_no_contrast():
    assert find_contrasts(cell_model([COIN], SPACE)) == []


def test_contrasts_do_not_depend_on_names_of_parameters():
    a, b = pl.parameters("a", "b")
    one = find_contrasts(cell_model([[[p, 1 - p]], [[q, 1 - q]]], SPACE))
    other = find_contrasts(cell_model([[[a, 1 - a]], [[b, 1 - b]]], pl.ParameterSpace.unit("a", "b")))
    assert [contrast.cells for contrast in one] == [contrast.cells for contrast in other]
