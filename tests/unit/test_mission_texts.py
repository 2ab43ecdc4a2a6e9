"""Formulas with several temporal operators that are wrong or unclear are refused by name and place, and in no time."""

import pytest
from test_property import LTL, MODEL, NAMES, NUMBER, pointed

from plumdp import ModelError
from plumdp.model.language.property import parse_property

ENDLESS = (
    "this formula has F or U inside of G, W or R, or the other way round, in a way that is not translated here; join "
    "by & and | what is decided in finite time, G before what has no G, W or R, and F before what has no F or U (once "
    "negations are moved inwards), or write its automaton by another tool, as in ltl2tgba -D -G 'F(a & GF b)' > "
    'spec.hoa, and give that: HOA: {"spec.hoa"}'
)
NEVER_DONE = "a reward is collected until a mission is done, and this one never is in finite time"
VARIABLE = f"x is a state variable; {NUMBER}"
OPERAND = "where a label, a variable or a number is expected"


def unclear(read, operator):
    return f"{read}: put this, or the part of it that {operator} is about, in parentheses"


REFUSED = [
    (ENDLESS, '^"goal" W (F "odd")'),
    (ENDLESS, '^(G "goal") U "odd"'),
    (ENDLESS, '^F ("goal" & G F "odd")'),
    (ENDLESS, '^G (F ("goal" & G "odd"))'),
    (ENDLESS, '^(X F G "goal") & (F "odd")'),
    (ENDLESS, '^!("goal" U ((F "odd") & (G "low")))'),
    (unclear('"goal" & G "odd"', "F"), '^F "goal" & G "odd"'),
    (unclear('"goal" & F "odd"', "F"), '^F "goal" & F "odd"'),
    (unclear('"goal" | F "odd"', "F"), '^F "goal" | F "odd"'),
    (unclear('"goal" => X "odd"', "F"), '^F "goal" => X "odd"'),
    (unclear('"goal" & "odd"', "F"), '"low" & ^F "goal" & "odd"'),
    (unclear('"goal" | "odd"', "X"), '"low" => ^X "goal" | "odd"'),
    (unclear('"goal" & "odd"', "F"), '!^F "goal" & "odd"'),
    (unclear('"goal" & "odd"', "F"), 'X ^F "goal" & "odd"'),
    (unclear('F "goal"', "U"), 'F "goal" ^U "odd"'),
    ("U and U: put one of them in parentheses, with its formulas", '"goal" U "odd" ^U "init"'),
    (unclear('"odd" & F "init"', "U"), '"goal" ^U "odd" & F "init"'),
    (unclear('"goal" & F "odd"', "U"), '"goal" & F "odd" ^U "init"'),
    (unclear('"odd" & X door', "U"), '("goal" ^U "odd" & X door)'),
    ("W and R: put one of them in parentheses, with its formulas", '"goal" W "odd" ^R "init"'),
    ("X<=: X takes no bound; it is F=1", 'X^<=3 "goal"'),
    ("X[: X takes no bound; it is F=1", 'X^[1,2] "goal"'),
    ("X{: X takes no bound; it is F=1", 'X^{"time"}<=2 "goal"'),
    ("W<=: W takes no bound; put one on F, G or U", '"goal" W^<=3 "odd"'),
    ("R[: R takes no bound; put one on F, G or U", '"goal" R^[1,3] "odd"'),
    ("-1 is not a number of steps; give 0, 1, 2, …", 'F<=^-1 ("goal" & X "odd")'),
    ("F[5,3]: no step lies in this window", '^F[5,3] ("goal" & X "odd")'),
    ("F<0: no step lies in this window", '^F<0 ("goal" & X "odd")'),
    ("F>=: a bound without an end is not supported; write F[5,10]", '^F>=3 ("goal" & X "odd")'),
    ("half = 1/2 is not a number of steps; give 0, 1, 2, …", 'F<=^half ("goal" & X "odd")'),
    (
        VARIABLE,
        'F<=^x ("goal" & X "odd")',
    ),
    ("p is a parameter: its value is unknown", 'F<=^p X "goal"'),
    (
        '"gaol" is not a label of the model (did you mean "goal"?); it has "init", "deadlock", "goal", "odd", "low"',
        'F ("goal" & X ^"gaol")',
    ),
    ('goal is a label; write it in quotes, "goal"', 'F (^goal & X "odd")'),
    (
        f"y is not a variable or constant of the model; {NAMES}",
        'F ("goal" & X ^y=1)',
    ),
    ("p is a parameter: its value is unknown", 'F ("goal" & X ^p>0)'),
    ("x is an integer; a formula that is true or false is expected", 'F (^x & X "goal")'),
    ("x+1 is an integer; a formula that is true or false is expected", 'F (^x+1 & X "goal")'),
    ("x is an integer; a formula that is true or false is expected", "X ^x"),
    ("x is an integer; a formula that is true or false is expected", '"goal" U ^x'),
    ("mode is a text; a formula that is true or false is expected", "F (^mode & X door)"),
    ("= compares a path formula with a path formula", 'F ((X "goal") ^= (X "odd"))'),
    ("= compares a Boolean with a path formula", 'F ("goal" ^= X "odd")'),
    (
        "? : chooses between two numbers or two Booleans, not a path formula and a path formula",
        'F (door ^? X "goal" : X "odd")',
    ),
    ("+ takes numbers; this is a path formula", 'F (^(X "goal") + 1 = 2)'),
    ("- takes numbers; this is a path formula", 'F (-^(X "goal") = 1)'),
    ("min takes numbers; this is a path formula", 'F (min(^X "goal", 2) = 1)'),
    ("< takes numbers; this is a path formula", 'F (^(X "goal") < 2)'),
    (f"found ) {OPERAND}", 'F ("goal" & X^)'),
    (f"found ) {OPERAND}", 'F ("goal" & ^)'),
    ("found ] where ) is expected", 'Pmax=? [ F ("goal" & X "odd" ^]'),
    ("found ) where ] is expected", 'F ("goal" & X "odd")^)'),
    (f"found ] {OPERAND}", "Pmax=? [ F ^]"),
    (f"found ] {OPERAND}", "Pmax=? [ X ^]"),
    (f"found ] {OPERAND}", 'Pmax=? [ "goal" U ^]'),
    (
        f"U: {LTL}",
        '^U "goal"',
    ),
    (
        f"W: {LTL}",
        "^W",
    ),
    (f"found ] {OPERAND}", 'Pmax=? [ "goal" W ^]'),
    ("||: conditional probabilities are not supported; for a logical or write a single |", 'F ("goal" ^|| X "odd")'),
    ("P: operators inside formulas are not supported; use a label instead", 'F (^P>=1 [ F "goal" ] & X door)'),
    (
        "E: the CTL operators E and A are not supported; ask for a probability with Pmax=? or Pmin=?",
        'F ("goal" & ^E [ F door ])',
    ),
    ("S: operators inside formulas are not supported; use a label instead", 'F ("goal" & ^S)'),
    ("1/x>0 has no value: (1) / 0: division by zero", 'F (^1/x>0 & X "goal")'),
    ("(1/x>0) has no value: (1) / 0: division by zero", '^(1/x>0) & X "goal"'),
    ("found X where ) is expected", 'F ("goal" ^X "odd")'),
    ('found "low" where ] is expected', 'F ("goal" & X "odd") ^"low"'),
    ('"fuel" is not a reward structure; the model has "time", "energy"', 'F{^"fuel"}<=3 "goal"'),
    ('a budget is the most that may be spent: write F{"time"}<=10', 'F{"time"} ^"goal"'),
    ('a budget is the most that may be spent: write F{"time"}<=10', 'F{"time"}^=3 "goal"'),
    ('a budget is the most that may be spent: write F{"time"}<=10', 'F{"time"}^>=3 "goal"'),
    ('a budget is the most that may be spent: write F{"time"}<=10', 'F{"time"}^[1,3] "goal"'),
    ('F{time}: name the reward structure in quotes, F{"name"}; the model has "time", "energy"', 'F{^time}<=3 "goal"'),
    ("-1 is below 0, and costs are not", 'F{"time"}<=^-1 "goal"'),
    ('{"time"}: nothing is less than this budget; give a number above 0', '^F{"time"}<0 "goal"'),
    (
        VARIABLE,
        'F{"time"}<=^x "goal"',
    ),
    ("1 is one budget, and two are not supported", 'F{"time"}<=^1,{"energy"}<=2 "goal"'),
    ("F{: a budget goes with predicates alone, and is no part of a larger formula", '^F{"time"}<=3 ("goal" & F "odd")'),
    ("F{: a budget goes with predicates alone, and is no part of a larger formula", 'X (^F{"time"}<=3 "goal")'),
    ("F{: a budget goes with predicates alone, and is no part of a larger formula", '(^F{"time"}<=3 "goal") & "odd"'),
    (
        "F{: a budget goes with predicates alone, and is no part of a larger formula",
        '(^F{"time"}<=3 "goal") & (F "odd")',
    ),
    ("U{: a budget goes with predicates alone, and is no part of a larger formula", '"goal" ^U{"time"}<=3 (X "odd")'),
    ("found <= where } is expected", 'F{"time"^<=3 "goal"'),
    ('found "spec.hoa" where { is expected', 'HOA: ^"spec.hoa"'),
    ("spec: the name of a file is expected, in quotes", "HOA: {^spec}"),
    ("nowhere.hoa cannot be read as an automaton: No such file or directory", '^HOA: {"nowhere.hoa"}'),
    (f"found }} {OPERAND}", 'HOA: {"nowhere.hoa", "p" <- ^}'),
    ("p: a proposition of the automaton is expected, in quotes", 'HOA: {"nowhere.hoa", ^p <- x=1}'),
    ('found "p" where } is expected', 'HOA: {"nowhere.hoa" ^"p" <- x=1}'),
    (
        f"HOA is not a variable or constant of the model; {NAMES}",
        '^HOA {"nowhere.hoa"}',
    ),
    # finite traces
    (f"found }} {OPERAND}", 'LTLf{^} F "goal"'),
    ("found F where } is expected", 'LTLf{"goal" ^F "odd"}'),
    (f"LTLf is not a variable or constant of the model; {NAMES}", '^LTLf F "goal"'),
    ('"odd" is not a path formula; put F, G or X before it, or U between two', 'LTLf{"goal"} ^"odd"'),
    (f"found ] {OPERAND}", 'Pmax=? [ LTLf{"goal"} ^]'),
    ("no state ends a trace, so that there is none; say in which states runs end", '^LTLf{false} F "goal"'),
    ("a budget does not go with LTLf; leave out one of them", 'LTLf{"goal"} ^F{"time"}<=3 "odd"'),
    (unclear('"odd" & G "low"', "F"), 'LTLf{"goal"} ^F "odd" & G "low"'),
    ("x is an integer; a formula that is true or false is expected", 'LTLf{^x} F "goal"'),
    # rewards until a mission is done, and of one state
    (NEVER_DONE, 'R{"time"}max=? [ ^G "goal" ]'),
    (NEVER_DONE, 'R{"time"}min=? [ ^G ("goal" => X "odd") ]'),
    (NEVER_DONE, 'R{"time"}min=? [ ^G F "goal" ]'),
    (NEVER_DONE, 'R{"time"}max=? [ ^(F "goal") & (G "odd") ]'),
    ("F<=: a reward until a target takes no bound; write F, or C<=k for k steps", 'R{"time"}max=? [ ^F<=3 "goal" ]'),
    ("a budget does not go with a reward; leave out one of them", 'R{"time"}max=? [ ^"odd" U{"time"}<=3 "goal" ]'),
    ('"goal" is not a path formula; put F, G or X before it, or U between two', 'R{"time"}max=? [ ^"goal" ]'),
    ("found ] where = is expected", 'R{"time"}max=? [ I ^]'),
    ("found <= where = is expected", 'R{"time"}max=? [ I^<=3 ]'),
    ("half = 1/2 is not a number of steps; give 0, 1, 2, …", 'R{"time"}max=? [ I=^half ]'),
    (VARIABLE, 'R{"time"}max=? [ I=^x ]'),
    (
        "I: this is about the reward of a state, and states have none; C<=k sums those of steps",
        'R{"energy"}max=? [ ^I=3 ]',
    ),
]


@pytest.mark.parametrize(("sentence", "marked"), REFUSED)
def test_what_is_wrong_or_unclear_is_refused_by_name_and_place(sentence, marked):
    marked = marked if marked.startswith(("Pmax", "R")) else f"Pmax=? [ {marked} ]"
    with pytest.raises(ModelError) as caught:
        parse_property(marked.replace("^", ""), MODEL)
    assert str(caught.value) == pointed(sentence, marked)


STATES = ('"goal"', '"odd"', '"low"', "door", "x=1", "x=2", "x=3", 'mode="idle"', "x=0")
DEEP, MUCH = "this formula is nested too deeply", "too much is to be remembered for this mission"


def joined(sign, n, formula):
    """Return many formulas about different sets of states, joined by a sign."""
    return f" {sign} ".join(formula(*(STATES[(i * factor + i // 9) % 9] for factor in (1, 5, 7)), i) for i in range(n))


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
    "(" * 99 + "door" + "".join(f" U {STATES[i % 9]})" for i in range(99)): MUCH,
    joined("&", 240, lambda a, b, c, i: f"(G<={i} (F<={300 - i} {a}))"): MUCH,
    'F<=1000000 ("goal" & F<=1000000 "odd")': MUCH,
    joined("&", 9, lambda a, b, c, i: f"((G F {a}) => (G F ({b} | {c})))"): MUCH,
    joined("&", 12, lambda a, b, c, i: f"(G ({a} => F<={40 + i} ({b} & F {c})))"): MUCH,
    joined("|", 400, lambda a, b, c, i: f"(F G ({a} | X {b}))"): MUCH,
}


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:20])
def test_long_formulas_are_refused_after_a_bounded_amount_of_work(text):
    """Work is counted: at most 400,000 pairs of formulas, below a second."""
    with pytest.raises(ModelError) as caught:
        parse_property(f"Pmax=? [ {text} ]", MODEL)
    assert LONG[text] in str(caught.value)
    assert len(str(caught.value)) < 1500
