"""Property texts become the objectives they ask for, predicates the right states, all else a clear error."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused_at
from tiers import examples

from plumdp import ModelError, ParameterSpace, explore, parameters
from plumdp.model.language.property import parse_predicate, parse_property
from plumdp.model.language.threshold import parse_threshold
from plumdp.model.objectives import Reach, Reward

MODELS = Path(__file__).parents[1] / "models"


class Robot(NamedTuple):
    """A machine that works itself up from level -1 to 4."""

    x: int
    door: bool
    mode: str


(p,) = parameters("p")
CONSTANTS = {"N": 3, "half": Fraction(1, 2), "on": True}
LABELS = {"goal": lambda s: s.x == 4, "odd": lambda s: s.x % 2 == 1, "low": lambda s: s.x < 2}


def step(s):
    if s.mode == "idle":
        return {"start": [(1, s._replace(mode="busy"))], "turn": [(1, s._replace(door=not s.door))]}
    down = s._replace(x=max(s.x - 1, -1), mode="idle")
    return {"work": [(p, s._replace(x=min(s.x + 1, 4))), (1 - p, down)], "rest": [(1, s._replace(mode="idle"))]}


MODEL = replace(
    explore(
        step,
        Robot(0, False, "idle"),
        space=ParameterSpace.unit("p"),
        labels=LABELS,
        rewards={"time": lambda s: 1.0},
        choice_rewards={"energy": lambda s, action: 2.0 * (action == "work")},
    ),
    constants=CONSTANTS,
)
STATES = [
    Robot(int(x), bool(door), str(mode)) for x, door, mode in zip(*MODEL.graph.states.values(), strict=True)
]  # 6 levels, 2 doors, 2 modes
NOWHERE = [False] * len(STATES)


def chain(**options):
    """A model without choices: 0 → 1 → 2 → 2."""
    return explore(
        lambda s: {"go": [(1, s._replace(x=min(s.x + 1, 2)))]}, {"x": 0}, space=ParameterSpace.unit("p"), **options
    )


def where(predicate):
    return [bool(predicate(state)) for state in STATES]


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("true", lambda s: True),
        ("false", lambda s: False),
        ('"goal"', lambda s: s.x == 4),
        ('!"goal"&"odd"', lambda s: s.x != 4 and s.x % 2 == 1),
        ('"init"', lambda s: s == Robot(0, False, "idle")),
        ('"deadlock"', lambda s: False),
        ("door", lambda s: s.door),
        ("on", lambda s: True),
        ('mode="idle"', lambda s: s.mode == "idle"),
        ('mode != "idle" & x>=N', lambda s: s.mode != "idle" and s.x >= 3),
        ("mode = mode", lambda s: True),
        ('door = "goal"', lambda s: s.door == (s.x == 4)),
        ('"goal" != door', lambda s: s.door != (s.x == 4)),
        ("x = -1", lambda s: s.x == -1),
        ("-x+1 > 0", lambda s: -s.x + 1 > 0),
        ("x-1-1 = 0", lambda s: s.x == 2),
        ("x/2/2 = 1", lambda s: s.x == 4),
        ("x*half >= 1.5", lambda s: s.x >= 3),
        ("x/3 = 1e0", lambda s: s.x == 3),
        ("x > .5", lambda s: s.x > 0.5),
        ("!x=1", lambda s: s.x != 1),
        ("!!door", lambda s: s.door),
        ("door = !on", lambda s: not s.door),
        ("door => x=1 => x=2", lambda s: not (not s.door or s.x == 1) or s.x == 2),
        ("x=1 <=> door => x=2", lambda s: (s.x == 1) != s.door or s.x == 2),
        ("door | x=1 & x=2", lambda s: s.door),
        ("1<x = door", lambda s: (s.x > 1) == s.door),
        ("min(x,2,N-2) = 1", lambda s: s.x >= 1),
        ("max(x,half) = half", lambda s: s.x <= 0),
        ("mod(x,3) = 2", lambda s: s.x in (-1, 2)),
        ("pow(x,2) = 4", lambda s: s.x == 2),
        ("floor(x/2) = ceil(x/2)", lambda s: s.x % 2 == 0),
        ("door ? x=1 : x=2", lambda s: s.x == (1 if s.door else 2)),
        ("door ? x=1 : on ? x=2 : x=3", lambda s: s.x == (1 if s.door else 2)),
        ("x = (door ? N : half+half)", lambda s: s.x == (3 if s.door else 1)),
        ("door & !on ? true : false & true", lambda s: False),
        ("on ? (true & false) : door", lambda s: False),
        ("(x = 1) // the rest\n | // of a line is skipped\n door", lambda s: s.x == 1 or s.door),
    ],
)
def test_a_predicate_holds_where_python_says(text, predicate):
    mask = parse_predicate(text, MODEL)
    assert mask.dtype == np.bool_
    assert not mask.flags.writeable
    assert mask.tolist() == where(predicate)


def test_the_models_own_label_wins_over_the_built_in_one():
    model = chain(labels={"deadlock": lambda s: s.x == 2})
    assert parse_predicate('"deadlock"', model).tolist() == [False, False, True]


def test_a_model_name_wins_over_a_keyword_where_a_value_is_expected():
    model = replace(chain(), constants={"F": 1, "X": 2})
    assert parse_predicate("x = F", model).tolist() == [False, True, False]
    objective = parse_property("Pmax=? [ F<=X x=X ]", model)
    assert (objective.steps, objective.target.tolist()) == ((0, 2), [False, False, True])


def test_a_variable_wins_over_a_constant_of_the_same_name():
    model = replace(chain(), constants={"x": 7})
    assert parse_predicate("x = 1", model).tolist() == [False, True, False]


STRENGTH = {"?": 0, "=>": 1, "<=>": 2, "|": 3, "&": 4, "!": 5, "=": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7}
STRENGTH |= {"+": 8, "-": 8, "*": 9, "/": 9, "negative": 10}  # the table of PRISM's manual, turned around
ATOM = 11

MEANING = {
    "=>": lambda a, b: not a or b,
    "<=>": lambda a, b: a == b,
    "|": lambda a, b: a or b,
    "&": lambda a, b: a and b,
    "!": lambda a: not a,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: Fraction(a) / b,
    "negative": lambda a: -a,
    "?": lambda a, b, c: b if a else c,
    "min": min,
    "max": max,
    "mod": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "floor": math.floor,
    "ceil": math.ceil,
}


def meaning(tree, state):
    if isinstance(tree, str):
        return atom(tree, state)
    return MEANING[tree[0]](*(meaning(operand, state) for operand in tree[1:]))


def atom(text, state):
    if text in ("true", "false"):
        return text == "true"
    if text[0].isdigit():
        return Fraction(text)
    if text.startswith('"'):
        return LABELS[text[1:-1]](state) if text[1:-1] in LABELS else text[1:-1]
    return CONSTANTS[text] if text in CONSTANTS else getattr(state, text)


def strength(tree):
    return ATOM if isinstance(tree, str) else STRENGTH.get(tree[0], ATOM)


def render(tree, draw):
    """Return the tokens of a tree, with the parentheses it needs and, as drawn, some that it does not."""
    if isinstance(tree, str):
        return [tree]
    operator, *operands = tree
    own = strength(tree)
    if own == ATOM:  # a function: each argument stands free
        parts = [part(operand, 0, draw) for operand in operands]
        return [operator, "(", *parts[0], *(token for rest in parts[1:] for token in (",", *rest)), ")"]
    if operator == "?":
        condition, then, otherwise = (part(o, n, draw) for o, n in zip(operands, (1, 1, 0), strict=True))
        return [*condition, "?", *then, ":", *otherwise]
    if len(operands) == 1:
        return ["-" if operator == "negative" else operator, *part(operands[0], own, draw)]
    left, right = part(operands[0], own, draw), part(operands[1], own + 1, draw)
    return [*left, operator, *right]


def part(tree, weakest, draw):
    tokens = render(tree, draw)
    is_text = tree in ('"idle"', '"busy"')  # which stands right behind its comparison
    return ["(", *tokens, ")"] if strength(tree) < weakest or (draw() and not is_text) else tokens


def integers(depth):
    leaf = st.sampled_from(["x", "N", "0", "1", "2", "3", "4"])
    if depth == 0:
        return leaf
    inner, numbers_inside = integers(depth - 1), numbers(depth - 1)
    small = st.sampled_from(["1", "2", "N"])
    return st.one_of(
        leaf,
        st.tuples(st.sampled_from(["+", "-", "*", "min", "max"]), inner, inner),
        st.tuples(st.just("negative"), inner),
        st.tuples(st.just("mod"), inner, small),
        st.tuples(st.just("pow"), leaf, st.sampled_from(["0", "1", "2"])),
        st.tuples(st.sampled_from(["floor", "ceil"]), numbers_inside),
        st.tuples(st.just("?"), booleans(depth - 1), inner, inner),
    )


def numbers(depth):
    leaf = st.sampled_from(["half", "0.25", "1.5", "x"])
    if depth == 0:
        return leaf
    inner = st.one_of(integers(depth - 1), numbers(depth - 1))
    return st.one_of(
        leaf,
        st.tuples(st.sampled_from(["+", "-", "*", "min", "max"]), inner, inner),
        st.tuples(st.just("/"), inner, st.sampled_from(["2", "3", "half", ("negative", "N")])),
        st.tuples(st.just("negative"), inner),
        st.tuples(st.just("?"), booleans(depth - 1), inner, inner),
    )


def booleans(depth):
    leaf = st.sampled_from(["door", "on", "true", "false", '"goal"', '"odd"'])
    if depth == 0:
        return leaf
    inner, number = booleans(depth - 1), st.one_of(integers(depth - 1), numbers(depth - 1))
    return st.one_of(
        leaf,
        *(st.tuples(st.just(operator), inner, inner) for operator in ("=>", "<=>", "|", "&", "=", "!=")),
        st.tuples(st.just("!"), inner),
        st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), number, number),
        st.tuples(st.sampled_from(["=", "!="]), st.just("mode"), st.sampled_from(['"idle"', '"busy"'])),
        st.tuples(st.just("?"), inner, inner, inner),
    )


@pytest.mark.parametrize("first", ["=>", "<=>", "|", "&", "=", "!="])
@pytest.mark.parametrize("second", ["=>", "<=>", "|", "&", "=", "!="])
def test_two_connectives_bind_as_in_the_table(first, second):
    """The three operands take all eight combinations of values; equally strong connectives group to the left."""
    a, b, c = "door", '"odd"', '"low"'
    assert len({(meaning(a, s), meaning(b, s), meaning(c, s)) for s in STATES}) == 8
    tree = (first, a, (second, b, c)) if STRENGTH[second] > STRENGTH[first] else (second, (first, a, b), c)
    assert parse_predicate(f"{a} {first} {b} {second} {c}", MODEL).tolist() == where(lambda s: meaning(tree, s))
    negated = ("!", (first, a, b)) if STRENGTH[first] > STRENGTH["!"] else (first, ("!", a), b)
    assert parse_predicate(f"!{a} {first} {b}", MODEL).tolist() == where(lambda s: meaning(negated, s))


@pytest.mark.parametrize("first", ["+", "-", "*", "/"])
@pytest.mark.parametrize("second", ["+", "-", "*", "/"])
@pytest.mark.parametrize("comparison", ["=", "!=", "<", "<=", ">", ">="])
def test_arithmetic_binds_as_in_the_table(first, second, comparison):
    """The tree of -x ∘ 5 ∘ 3, compared with its own value at x = 2."""
    a = ("negative", "x")
    tree = (first, a, (second, "5", "3")) if STRENGTH[second] > STRENGTH[first] else (second, (first, a, "5"), "3")
    pivot = Fraction(meaning(tree, Robot(2, False, "idle")))
    text = f"-x {first} 5 {second} 3 {comparison} {pivot.numerator} / {pivot.denominator} & door"
    mask = parse_predicate(text, MODEL)
    assert mask.tolist() == where(lambda s: MEANING[comparison](meaning(tree, s), pivot) and s.door)


def spaced(tokens, draw):
    """Return the tokens as text, with a space where two would grow together and elsewhere as drawn."""
    text = ""
    for token in tokens:
        glued = text[-1:].isalnum() and token[0].isalnum()
        text += (" " if glued or draw() else "") + token
    return text


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(booleans(3), st.booleans(), st.randoms(use_true_random=False))
def test_random_predicates_mean_in_text_what_their_tree_means(tree, is_minimal, random):
    """Half of the texts have no parentheses but those that the precedence of PRISM demands."""
    tokens = render(tree, lambda: not is_minimal and random.random() < 0.3)
    text = spaced(tokens, lambda: random.random() < 0.5)
    assert parse_predicate(text, MODEL).tolist() == [bool(meaning(tree, state)) for state in STATES], text


def everything(s):
    return True


def goal(s):
    return s.x == 4


@pytest.mark.parametrize(
    ("path", "target", "stay", "steps"),
    [
        ('F "goal"', goal, everything, None),
        ('F<=5 "goal"', goal, everything, (0, 5)),
        ('F<5 "goal"', goal, everything, (0, 4)),
        ('F<1 "goal"', goal, everything, (0, 0)),
        ('F=5 "goal"', goal, everything, (5, 5)),
        ('F[2,5] "goal"', goal, everything, (2, 5)),
        ('F [ 2 , 5 ] "goal"', goal, everything, (2, 5)),
        ('F<=N*2-1 "goal"', goal, everything, (0, 5)),
        ("F<=N (x=4)", goal, everything, (0, 3)),
        ('F<=N/half "goal"', goal, everything, (0, 6)),
        ('F<=min(N,2) "goal"', goal, everything, (0, 2)),
        ("F<=N (-x=-4)", goal, everything, (0, 3)),
        ('F<=0 "goal"', goal, everything, (0, 0)),
        ("X x=4", goal, everything, (1, 1)),
        ('door U "goal"', goal, lambda s: s.door, None),
        ('door U<=5 "goal"', goal, lambda s: s.door, (0, 5)),
        ('door U<5 "goal"', goal, lambda s: s.door, (0, 4)),
        ('door U=5 "goal"', goal, lambda s: s.door, (5, 5)),
        ('door U[2,5] "goal"', goal, lambda s: s.door, (2, 5)),
        ('door|x=1 U mode="busy"&door', lambda s: s.mode == "busy" and s.door, lambda s: s.door or s.x == 1, None),
        ('( F "goal" )', goal, everything, None),
        ('((door) U ("goal"))', goal, lambda s: s.door, None),
    ],
)
def test_a_path_formula_gives_target_avoid_and_steps(path, target, stay, steps):
    """What may not be passed is the complement of the left side of U, whatever the window."""
    objective = parse_property(f"Pmax=? [ {path} ]", MODEL)
    assert isinstance(objective, Reach)
    assert objective.target.tolist() == where(target)
    assert objective.avoid.tolist() == where(lambda s: not stay(s))
    assert objective.steps == steps
    assert (objective.direction, objective.complement, objective.nature) == ("max", False, None)


@pytest.mark.parametrize(
    ("path", "steps"),
    [("G door", None), ("G<=5 door", (0, 5)), ("G<5 door", (0, 4)), ("G=5 door", (5, 5)), ("G[2,5] door", (2, 5))],
)
@pytest.mark.parametrize("direction", ["max", "min"])
def test_globally_is_the_complement_of_reaching_the_opposite(path, steps, direction):
    objective = parse_property(f"P{direction}=? [ {path} ]", MODEL)
    assert isinstance(objective, Reach)
    assert objective.target.tolist() == where(lambda s: not s.door)
    assert objective.avoid.tolist() == NOWHERE
    assert (objective.steps, objective.complement, objective.direction) == (steps, True, direction)


@pytest.mark.parametrize(
    ("words", "direction", "nature"),
    [
        ("max", "max", None),
        ("min", "min", None),
        ("maxmin", "max", "robust"),
        ("minmax", "min", "robust"),
        ("maxmax", "max", "optimistic"),
        ("minmin", "min", "optimistic"),
        (" max min ", "max", "robust"),
    ],
)
def test_the_first_word_is_the_agents_and_the_second_natures(words, direction, nature):
    """Nature is robust exactly if it pulls the other way."""
    for text in (f'P{words}=? [ F "goal" ]', f'R{{"time"}}{words}=? [ F "goal" ]'):
        objective = parse_property(text, MODEL)
        assert (objective.direction, objective.nature) == (direction, nature)


@pytest.mark.parametrize(
    "text",
    [
        'Pmax=?[F"goal"]',
        ' P max = ? [ F "goal" ] ; ',
        '"arrives": Pmax=? [ F "goal" ];',
        '// how likely?\nPmax=? [ // always\n F "goal" ]\n// done',
    ],
)
def test_spaces_names_semicolons_and_comments_change_nothing(text):
    objective = parse_property(text, MODEL)
    assert isinstance(objective, Reach)
    assert objective.target.tolist() == where(goal)
    assert objective.text == text.replace("// how likely?", "").replace("// always", "").replace("// done", "").strip()


def test_a_comment_is_no_part_of_what_was_asked_and_a_name_is_no_comment():
    """Whoever prints an objective must not print words that nothing was asked of."""
    model = chain(labels={"a//b": goal})
    assert (
        parse_property('Pmax=? [ F "a//b" // P<=0.01 was certified as well\n]', model).text == 'Pmax=? [ F "a//b" \n]'
    )
    assert parse_threshold('P>=0.5 [ F "a//b" ] // surely', model).text == 'P>=0.5 [ F "a//b" ]'


def test_without_choices_a_direction_may_be_left_out():
    model = chain(rewards={"time": lambda s: 1.0})
    assert parse_property("P=? [ F x=2 ]", model).direction == "max"
    assert parse_property("R=? [ F x=2 ]", model).direction == "max"


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=7),
    st.integers(0, 7),
    st.integers(0, 7),
)
def test_passing_no_state_to_avoid_is_what_until_means(run, first, last):
    """On a single run: PRISM's definition against the words of ``Reach``, with avoid = !a and target = b."""
    steps = range(first, min(last, len(run) - 1) + 1)
    by_definition = any(run[n][1] and all(a for a, _ in run[:n]) for n in steps)
    by_walking = False
    for n, (a, b) in enumerate(run):
        if b and n in steps:
            by_walking = True
        if by_walking or not a:
            break
    assert by_walking == by_definition


@pytest.mark.parametrize(
    ("content", "steps", "discount"),
    [
        ("C", None, None),
        ("C<=5", 5, None),
        ("C<5", 4, None),
        ("C<=2*N", 6, None),
        ("Cdiscount=9/10", None, Fraction(9, 10)),
        ("Cdiscount=0.9", None, Fraction(9, 10)),
        ("C discount = half", None, Fraction(1, 2)),
        ("C<=5 discount=9/10", 5, Fraction(9, 10)),
        ("C<=5discount=9/10", 5, Fraction(9, 10)),
        ("C{0.9}", None, Fraction(9, 10)),
        ("C{9/10}<=5", 5, Fraction(9, 10)),
        ("C { 1 - 1/N } <= 5", 5, Fraction(2, 3)),
        ("(C<=5)", 5, None),
    ],
)
def test_a_cumulative_reward_has_steps_and_an_exact_discount(content, steps, discount):
    objective = parse_property(f'R{{"energy"}}min=? [ {content} ]', MODEL)
    assert isinstance(objective, Reward)
    assert objective.reward is MODEL.rewards["energy"]
    assert (objective.direction, objective.target) == ("min", None)
    assert (objective.steps, objective.discount) == (steps, discount)


def test_a_reward_until_a_target_has_that_target():
    objective = parse_property('R{"time"}max=? [ F "goal" & door ]', MODEL)
    assert isinstance(objective, Reward)
    assert objective.reward is MODEL.rewards["time"]
    assert objective.target.tolist() == where(lambda s: s.x == 4 and s.door)
    assert (objective.steps, objective.discount) == (None, None)


def test_the_only_reward_structure_needs_no_name():
    model = chain(rewards={"time": lambda s: 1.0})
    assert parse_property("Rmin=? [ C<=3 ]", model).reward is model.rewards["time"]


def test_a_model_without_rewards_says_so():
    with pytest.raises(ModelError) as caught:
        parse_property("Rmin=? [ C<=3 ]", chain())
    said = "R without a name: the model has no reward structure\n  Rmin=? [ C<=3 ]\n  ^"
    assert str(caught.value) == said


NAMES = "variables: x, door, mode; constants: N, half, on"


@pytest.mark.parametrize("table", ["refused", "missions"])
def test_what_is_not_supported_wrong_or_unclear_is_refused_by_name_and_place(table):
    refused_at(f"properties:{table}", lambda text: parse_property(text, MODEL))


@pytest.mark.parametrize("text", ["", "  \n ", "// only a comment"])
def test_an_empty_text_is_refused_with_an_example(text):
    with pytest.raises(ModelError) as caught:
        parse_property(text, MODEL)
    assert str(caught.value) == 'the property is empty; write for example Pmax=? [ F "goal" ]'
    with pytest.raises(ModelError) as caught:
        parse_predicate(text, MODEL)
    assert str(caught.value) == 'the predicate is empty; write for example "goal" or x > 0'


def test_a_predicate_is_a_state_formula_and_nothing_else():
    refused_at("properties:predicates", lambda text: parse_predicate(text, MODEL))


def test_in_a_text_of_several_lines_the_error_shows_the_right_one():
    with pytest.raises(ModelError) as caught:
        parse_property("Pmax=? [ // first\n\tF y=1 // second\n]", MODEL)
    message = f"y is not a variable or constant of the model; {NAMES}\n  \tF y=1 // second\n  \t  ^"
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["(" * 3000 + "door" + ")" * 3000, " | ".join(["door"] * 30000)])
def test_a_formula_too_deep_for_python_is_refused(text):
    with pytest.raises(ModelError, match=r"^this formula is nested too deeply; give its states a label in the model"):
        parse_predicate(text, MODEL)


SETS = ('"goal"', '"odd"', '"low"', "door", "x=1", "x=2", "x=3", 'mode="idle"', "x=0")
DEEP, MUCH = "this formula is nested too deeply", "this mission needs too much memory"


def joined(sign, n, formula):
    """Return many formulas about different sets of states, joined by a sign."""
    return f" {sign} ".join(formula(*(SETS[(i * factor + i // 9) % 9] for factor in (1, 5, 7)), i) for i in range(n))


LONG = {
    "X " * 4900 + "door": DEEP,
    "G F " * 2400 + "door": DEEP,
    "F " + "!" * 9900 + "door": DEEP,
    "!(" * 3000 + "F door" + ")" * 3000: DEEP,
    "(" * 4900 + "F door" + ")" * 4900: "this property has too many parentheses inside each other",
    "F (door & " * 900 + "on" + ")" * 900: DEEP,
    joined("&", 900, lambda a, b, c, i: f"(F {a})"): DEEP,
    joined("&", 240, lambda a, b, c, i: f"(F ({a} & X ({b} & X {c})))"): MUCH,
    joined("<=>", 700, lambda a, b, c, i: f"(F {a})"): DEEP,
    "(" * 99 + "door" + "".join(f" U {SETS[i % 9]})" for i in range(99)): MUCH,
    joined("&", 240, lambda a, b, c, i: f"(G<={i} (F<={300 - i} {a}))"): MUCH,
    'F<=1000000 ("goal" & F<=1000000 "odd")': MUCH,
}


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:20])
def test_long_formulas_are_refused_after_a_bounded_amount_of_work(text):
    """Work is counted: at most 400,000 pairs of formulas, below a second."""
    with pytest.raises(ModelError) as caught:
        parse_property(f"Pmax=? [ {text} ]", MODEL)
    assert LONG[text] in str(caught.value)
    assert len(str(caught.value)) < 1500


WALK = (MODELS / "walk.prism").read_text()


def expected(objective, model, horizon=2000):
    """Return the value in the initial state by walking backwards in time, in the words of ``Reach`` and ``Reward``."""
    graph = model.graph
    probability = model.probabilities({"p": Fraction(3, 10)})[model.expression]
    best = np.maximum if (objective.direction == "max") != getattr(objective, "complement", False) else np.minimum

    def step_back(value, earned):
        ahead = graph.sum_by_choice(probability * value[graph.successor]) + earned
        return best.reduceat(ahead, graph.first_choice[:-1])

    if isinstance(objective, Reach):
        first, last = objective.steps or (0, horizon)
        value = np.zeros(graph.n_states)
        for n in range(last, -1, -1):
            value = np.where(objective.avoid, 0.0, step_back(value, 0.0) if n < last else 0.0)
            value = np.where(objective.target, 1.0, value) if n >= first else value
        value = 1 - value if objective.complement else value
    else:
        discount, reward, value = float(objective.discount or 1), objective.reward, np.zeros(graph.n_states)
        state = 0.0 if reward.state is None else reward.state
        choice = 0.0 if reward.choice is None else reward.choice
        for _ in range(horizon if objective.steps is None else objective.steps):
            value = state + step_back(discount * value, choice)
            value = value if objective.target is None else np.where(objective.target, 0.0, value)
    return value[graph.initial_state]


@pytest.mark.parametrize("direction", ["max", "min"])
@pytest.mark.parametrize(
    "text",
    [
        *(f'P [ F{window} "b"&x>2 ]' for window in ("", "<=3", "<3", "=3", "[2,4]", "<=0", "<=N+1")),
        *(f'P [ "a" U{window} "b" ]' for window in ("", "<=3", "<3", "=1", "=3", "[1,1]", "[2,4]", "[1,6]")),
        'P [ x!=3 U[2,5] "b" ]',
        'P [ !("a" & x>1) | x=4 U[1,3] x=3 | x=1 ]',
        'P [ X "b" ]',
        "P [ G x>0 ]",
        'P [ G !"b" | x=5 ]',
        "P [ G x=0 => x>3 => x=5 ]",
        'R [ F "b" ]',
        "R [ C<=4 ]",
        "R [ C<4 ]",
        "R [ C<=0 ]",
        "R [ Cdiscount=9/10 ]",
        "R [ C<=3 discount=9/10 ]",
    ],
)
def test_the_objective_has_the_value_that_storm_finds(text, direction, tmp_path):
    stormpy = pytest.importorskip("stormpy")
    from plumdp.model.readers.storm import read_prism

    file = tmp_path / "walk.prism"
    file.write_text(WALK)
    text = text.replace("P ", f"P{direction}=? ").replace("R ", f'R{{"cost"}}{direction}=? ')
    model = read_prism(file)
    program, _ = stormpy.instantiate_constants(stormpy.parse_prism_program(str(file)), {"p": 0.3})
    properties = stormpy.parse_properties(text, program)
    built = stormpy.build_model(program, properties)
    environment = stormpy.Environment()
    environment.solver().min_max().precision = stormpy.Rational("1e-10")
    found = stormpy.model_checking(built, properties[0], environment=environment).get_value_vector()
    in_storm = found[built.initial_states[0]]
    assert expected(parse_property(text, model), model) == pytest.approx(in_storm, abs=1e-6)
