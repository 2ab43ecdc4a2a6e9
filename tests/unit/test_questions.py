"""A question may be about a larger model than the one that was counted, such as a product with memory."""

import numpy as np
import pytest

import plumdp as pl
from plumdp.model.parametric import Lift, ParametricMDP
from plumdp.model.question import Question

PRODUCT = '''
import numpy as np
from dataclasses import replace
from plumdp.model.graph import Graph, read_only
from plumdp.model.objectives import Reach
from plumdp.model.parametric import Lift, ParametricMDP
from plumdp.model.question import Question

def first_then(model, first, then):
    """Ask for the probability to visit ``first``, and ``then`` at the same time or later: two states of memory."""
    graph, n = model.graph, model.graph.n_states
    is_first, is_then = model.labels[first], model.labels[then]
    n_choices, n_transitions = graph.n_choices, graph.n_transitions
    def twice(offsets, n):
        return read_only(np.concatenate([offsets[:-1], offsets + n]).astype(np.int32))
    before = graph.successor + n * is_first[graph.successor]  # the memory is set on arrival
    states = {name: read_only(np.tile(values, 2)) for name, values in graph.states.items()}
    states["visited"] = read_only(np.repeat([False, True], n))
    product = Graph(
        twice(graph.first_choice, n_choices), twice(graph.first_transition, n_transitions),
        read_only(np.concatenate([before, graph.successor + n]).astype(np.int32)),
        int(graph.initial_state + n * is_first[graph.initial_state]),
        states, read_only(np.tile(graph.action, 2)), graph.action_names,
    )
    lifted = replace(
        model, graph=product, expression=read_only(np.tile(model.expression, 2)), labels={}, rewards={},
        lift=Lift(model, np.tile(np.arange(n_choices), 2)),
    )
    target = np.concatenate([np.zeros(n, bool), is_then])
    return Question(lifted, Reach(target, np.zeros(2 * n, bool), "max"))
'''


@pytest.fixture(scope="module")
def walk() -> ParametricMDP:
    """A line of five states: left at 0 is "tool", right at 4 is "site"; a step succeeds with p, and falls with 1 - p.

    The best policy goes left without the tool and right with it, so that in states 1 to 3 it needs its memory.
    """
    (p,) = pl.parameters("p")

    def step(state):
        if state.x == 5:
            return {"stay": [(1, state)]}
        left, right = (state._replace(x=min(max(state.x + by, 0), 4)) for by in (-1, 1))
        fall = state._replace(x=5)
        return {"left": [(p, left), (1 - p, fall)], "right": [(p, right), (1 - p, fall)]}

    labels = {"tool": lambda state: state.x == 0, "site": lambda state: state.x == 4}
    return pl.explore(step, {"x": 2}, space=pl.ParameterSpace.unit("p"), labels=labels)


@pytest.fixture(scope="module")
def first_then():
    names: dict = {}
    exec(PRODUCT, names)
    return names["first_then"]


@pytest.fixture(scope="module")
def counts(walk):
    return pl.simulate(walk, {"p": "0.9"}, 2000, rng=1, max_steps=50)


def test_a_product_with_an_automaton_is_one_file_and_is_certified(walk, counts, first_then):
    """Two steps to the tool and four to the site: 0.9^6 = 0.531441. A policy without memory never gets both.

    Of about 18,000 tries the normal interval of the value is 2 · 3.29 · 6 · 0.9^5 · (0.09 / 18,000)^½ = 0.052 wide.
    """
    certificate = pl.certify(walk, counts, first_then(walk, "tool", "site"))
    assert certificate.status == "certified"
    assert certificate.lower <= 0.9**6 <= certificate.upper
    assert certificate.upper - certificate.lower < 1.5 * 0.052
    action = certificate.policy.action
    assert [action(x=x, visited=False) for x in (1, 2)] == ["left", "left"]
    assert [action(x=x, visited=True) for x in (0, 1, 2, 3)] == ["right"] * 4


def test_the_region_is_that_of_the_counted_model(walk, counts, first_then):
    question = first_then(walk, "tool", "site")
    learned = pl.learn(walk, counts)
    asked, prespecified = pl.conclude(learned, question), pl.conclude(learned, 'Pmax=? [ F "site" ]')
    assert asked.rests_on.parameters == prespecified.rests_on.parameters
    assert prespecified.lower <= 0.9**2 <= prespecified.upper


def test_data_that_contradict_the_model_bound_a_product_by_its_graph_alone(walk, first_then):
    """Left always works and right hardly ever does: no p explains both. Intervals of transitions remain."""
    graph = walk.graph
    seen = np.zeros(graph.n_transitions, dtype=np.int64)
    is_left = np.isin(graph.action, [graph.action_names.index("left")])[graph.choice_of_transition()]
    is_fall = graph.successor == int(np.flatnonzero(graph.states["x"] == 5)[0])
    seen[is_left & ~is_fall] = 100_000
    seen[~is_left & is_fall & (graph.state_of_choice()[graph.choice_of_transition()] != graph.successor)] = 100_000
    data = pl.TransitionCounts(graph, seen, "adaptive")
    certificate = pl.certify(walk, data, first_then(walk, "tool", "site"))
    assert certificate.status == "model rejected"
    assert certificate.upper < 1e-3  # the way to the site is closed; the way to the tool is not


def test_a_question_about_other_rows_is_refused(walk, counts, first_then):
    question = first_then(walk, "tool", "site")
    learned, product = pl.learn(walk, counts), question.model
    other = pl.explore(
        lambda s: {"go": [(1, s)]}, {"x": 0}, space=pl.ParameterSpace.unit("p"), labels={"end": lambda s: True}
    )
    with pytest.raises(pl.ModelError, match="the question is about another model than was learned from"):
        pl.conclude(learned, Question(other, pl.parse_property('Pmax=? [ F "end" ]', other)))
    swapped = np.asarray(product.lift.choice).copy()
    swapped[[0, 1]] = swapped[[1, 0]]  # left has the row of right: same numbers, other successors
    wrong = ParametricMDP(**{**vars_of(product), "lift": Lift(walk, swapped)})
    with pytest.raises(pl.ModelError, match="choice 0 of the question's model does not have the row that it is lifted"):
        pl.conclude(learned, Question(wrong, question.objective))


def vars_of(model):
    return {name: getattr(model, name) for name in model.__dataclass_fields__}


def test_a_question_of_a_text_says_which_function_reads_it(walk):
    with pytest.raises(pl.ModelError, match=r"make the question with ask\(text, model\)"):
        Question(walk, 'Pmax=? [ F "site" ]')
