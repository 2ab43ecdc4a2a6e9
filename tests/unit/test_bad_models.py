"""Broken models, and the exact message each gets: what is wrong, where, and how to fix it."""

import numpy as np
import pytest

import plumdp as pl

p, q = pl.parameters("p", "q")
UNIT = pl.ParameterSpace.unit("p")


def explored(outcomes, initial=None, space=UNIT):
    return pl.explore(lambda s: {"go": outcomes(s)}, initial or {"x": 0}, space=space)


def batched(outcomes, where=True, initial=0):
    return pl.explore_batch(lambda s: [("go", where, outcomes(s))], {"x": initial}, space=UNIT)


PYTHON = {
    "row sums": (
        lambda: explored(lambda s: [(p, s), (p, s._replace(x=1))]),
        "state (x=0), action 'go': probabilities (p) + (p) sum to 2*p, not 1\n"
        "state (x=1), action 'go': probabilities (2*p) sum to 2*p, not 1",
    ),
    "row sums, many choices": (
        lambda: explored(lambda s: [(p, s._replace(x=min(s.x + 1, 3))), (p, s._replace(x=0))]),
        "state (x=0), action 'go': probabilities (p) + (p) sum to 2*p, not 1 "
        "(and 3 more choices with the same expressions)",
    ),
    "constant out of range": (
        lambda: explored(lambda s: [(1.5, s._replace(x=0)), (-0.5, s._replace(x=1))]),
        "state (x=0), action 'go': 3/2 is not a probability\nstate (x=0), action 'go': -1/2 is not a probability",
    ),
    "no choice": (
        lambda: pl.explore(lambda s: {}, {"x": 0}, space=UNIT),
        "state (x=0): no choice is possible; give it an action that stays with probability 1",
    ),
    "parameter not declared": (
        lambda: explored(lambda s: [(q, s), (1 - q, s._replace(x=1))]),
        "expression q: q is not declared; the declared parameters are p",
    ),
    "never a probability": (
        lambda: explored(lambda s: [(p + 2, s), (-1 - p, s._replace(x=1))]),
        "no point of the parameter space makes every expression a probability: "
        "parameter p: no value in [0, 1] satisfies -p - 1 >= 0",
    ),
    "empty space": (
        lambda: explored(
            lambda s: [(p, s), (1 - p, s._replace(x=1))],
            space=pl.ParameterSpace.box({"p": (0, 1), "q": (0, 1)}, constraints=[p + q - 3]),
        ),
        "the parameter space is empty: no point satisfies p in [0, 1]; q in [0, 1]; p + q - 3 >= 0",
    ),
    "space of another kind": (
        lambda: explored(lambda s: [(1, s)], space={"p": (0, 1)}),
        "space={'p': (0, 1)}: give a ParameterSpace, for example ParameterSpace.box({'p': (0, 1)})",
    ),
    "not a pair": (
        lambda: explored(lambda s: [p, s]),
        "state (x=0), action 'go': Polynomial('p') is not a pair (probability, next state)",
    ),
    "not a dict": (
        lambda: pl.explore(lambda s: [(1, s)], {"x": 0}, space=UNIT),
        "state (x=0): the step returns list; return a dict from action names to lists of (probability, next state)",
    ),
    "other variables": (
        lambda: explored(lambda s: [(1, (s.x, 1))]),
        "state (x=0), action 'go': the next state (0, 1) has not the variables x",
    ),
    "fractional state": (
        lambda: explored(lambda s: [(1, s._replace(x=0.5))]),
        "state variable x takes values of type float and int; use ints, Booleans or strings, of one kind",
    ),
    "large state": (
        lambda: explored(lambda s: [(1, s._replace(x=2**40))]),
        "state variable x leaves the range of 32-bit integers",
    ),
    "initial state": (
        lambda: explored(lambda s: [(1, s)], initial=3),
        "initial state 3: give a NamedTuple or a dict of state variables",
    ),
    "rounded float": (
        lambda: explored(lambda s: [((0.1 + 0.2) * p, s), (1 - 0.3 * p, s._replace(x=1))]),
        "the float 0.30000000000000004 looks like the rounded result of a calculation, and would not tie with the "
        "exact number; calculate with fractions.Fraction "
        "(or give Fraction(0.30000000000000004) to mean exactly this float)",
    ),
    "not a number": (lambda: explored(lambda s: [("a", s)]), "'a' is not a number; write it like 3, 0.3 or 3/10"),
    "quotient": (
        lambda: explored(lambda s: [(p / q, s), (1 - p / q, s)]),
        "(p) / (q) is not a polynomial; divide by numbers only, or give the quotient a parameter of its own",
    ),
    "batch: fractional state": (
        lambda: batched(lambda s: [(1, s._replace(x=s.x + 0.5))]),
        "action 'go': state variable x becomes float64; use ints or Booleans",
    ),
    "batch: large state": (
        lambda: batched(lambda s: [(1, s._replace(x=s.x.astype(np.int64) + 2**40))]),
        "action 'go': state variable x leaves the range of 32-bit integers",
    ),
    "batch: tuple": (
        lambda: batched(lambda s: [(1, (3,))]),
        "action 'go': the next state is (3,); give it as states._replace(…)",
    ),
    "batch: no action": (
        lambda: pl.explore_batch(lambda s: [], {"x": 0}, space=UNIT),
        "the step yields no action for a layer of 1 states, for example (x=0)",
    ),
    "batch: wrong length": (
        lambda: batched(lambda s: [(pl.model.tabulate(lambda x: p, np.array([1, 2])), s)]),
        "2 probabilities for a layer of 1 states",
    ),
    "batch: text": (
        lambda: batched(lambda s: [(1, s)], initial="idle"),
        "state variable x is 'idle'; explore_batch takes ints and Booleans",
    ),
    "no such family": (
        lambda: pl.case_study("rovers:3"),
        "'rovers:3': there is no case study 'rovers'; "
        "the families are aircraft, betting, engagement, rover, glider, parallel",
    ),
    "no such instance": (
        lambda: pl.case_study("rover:3"),
        "'rover:3' is not a published instance; write it as rover:WIDTH,HEIGHT,TRIES",
    ),
    "size is not a number": (
        lambda: pl.case_study("betting:many"),
        "'betting:many': write it as betting:ROUNDS, with whole numbers",
    ),
    "point outside the space": (
        lambda: pl.stages.instantiate(pl.case_study("betting:25").model, {"p": 0.99}),
        "at p=0.99 the expression p + 21/2000 is 1.0005, which is not a probability",
    ),
    "point of other parameters": (
        lambda: pl.stages.instantiate(pl.case_study("betting:25").model, {"p": 0.5, "r": 0.5}),
        "no parameter is called r; the parameters are p",
    ),
}


@pytest.mark.parametrize("case", PYTHON)
def test_a_broken_python_model_is_refused_with_its_reason(case):
    build, message = PYTHON[case]
    with pytest.raises(pl.ModelError) as caught:
        build()
    assert str(caught.value) == message


MODULE = "module m\n  x : [0..1] init 0;\n  [a] x=0 -> p : (x'=1) + 1-p : true;\n  [b] x=1 -> true;\nendmodule\n"
HEAD = "mdp\nconst double p;\n"
OWN_PARAMETER = (
    "write its value as a number or, if it depends on parameters, "
    "give the whole a parameter of its own (const double r;) and write r"
)
PRISM = {
    "syntax": (
        "mdp\nmodule m\n  x : [0..1] init 0;\n  [a] x=0 -> x'=1;\nendmodule\n",
        {},
        'line 4, column 15: ":" is expected here\n    [a] x=0 -> x\'=1;\n                ^',
    ),
    "guard": (
        HEAD + MODULE.replace("x=0 ->", "x<p ->"),
        {},
        "module m, line 5, action 'a': the guard depends on the parameter p; only probabilities may: "
        "give p a value, constants={'p': …}",
    ),
    "update": (
        HEAD + MODULE.replace("(x'=1)", "(x'=p>0.5 ? 1 : 0)"),
        {},
        "module m, line 5, action 'a': the update of x depends on the parameter p; only probabilities may: "
        "give p a value, constants={'p': …}",
    ),
    "label": (
        HEAD + MODULE + 'label "far" = x>p;\n',
        {},
        "label \"far\" depends on the parameter p; only probabilities may: give p a value, constants={'p': …}",
    ),
    "rewards": (
        HEAD + MODULE + 'rewards "cost"\n  x=0 : p;\nendrewards\n',
        {},
        'line 8: rewards "cost" depend on p: say in Python between which numbers their values lie, with '
        "read_prism(…, space=ParameterSpace.box({'p': (low, high)}))",
    ),
    "constant missing": (
        "mdp\nconst int N;\n" + HEAD[4:] + MODULE.replace("[0..1]", "[0..N]"),
        {},
        "no value for N; give constants={'N': …}",
    ),
    "constant unknown": (
        HEAD + MODULE,
        {"constants": {"M": 3}},
        "M is not a constant of the model; the undefined constants are p",
    ),
    "constant given twice": (
        HEAD + "const int N = 2;\n" + MODULE,
        {"constants": {"N": 3}},
        "N has a value in the file already; the undefined constants are p",
    ),
    "constant of the wrong type": (
        "mdp\nconst int N;\n" + HEAD[4:] + MODULE,
        {"constants": {"N": 2.5}},
        "the constant N is an int and cannot be 5/2",
    ),
    "row sums": (
        HEAD + MODULE.replace("1-p : true", "p : true"),
        {},
        "state (x=0), action 'a': probabilities (p) + (p) sum to 2*p, not 1",
    ),
    "rational function": (
        HEAD + "const double q;\n" + MODULE.replace("p : (x'=1) + 1-p", "p/(p+q) : (x'=1) + q/(p+q)"),
        {},
        "module m, line 6, action 'a': (p) / (p + q) is not a polynomial; divide by numbers only, "
        "or give the quotient a parameter of its own",
    ),
    "continuous time": (
        "ctmc\n" + HEAD[4:] + MODULE,
        {},
        "this is a ctmc; only an mdp or a dtmc can be read; if time does not matter, write its jumps as a dtmc, "
        "with parameters for their probabilities",
    ),
    "space of other parameters": (
        HEAD + MODULE,
        {"space": pl.ParameterSpace.unit("r")},
        "the space declares r, but the parameters of the model are p",
    ),
    "variable out of range": (
        HEAD + MODULE.replace("(x'=1)", "(x'=x+2)"),
        {},
        "module m, line 5, action 'a' leads to (x=2), outside the declared range of a variable; "
        "widen the range, or let a guard prevent it",
    ),
    "several initial states": (
        HEAD + MODULE.replace(" init 0", "") + "init x>=0 endinit\n",
        {},
        "2 initial states; there must be exactly one: start in one more state, "
        "with an action that leads to each of them",
    ),
    "function": (
        HEAD + MODULE.replace("p : (x'=1) + 1-p", "1-exp(-p*3) : (x'=1) + exp(-p*3)"),
        {},
        "line 5, column 15: there is no function exp in the PRISM language; "
        + OWN_PARAMETER
        + "\n    [a] x=0 -> 1-exp(-p*3) : (x'=1) + exp(-p*3) : true;\n                ^",
    ),
    "function on a line of its own": (
        HEAD + MODULE.replace("p : (x'=1)", "// a comment\n    sqrt(p) : (x'=1)"),
        {},
        "line 6, column 5: there is no function sqrt in the PRISM language; "
        + OWN_PARAMETER
        + "\n      sqrt(p) : (x'=1) + 1-p : true;\n      ^",
    ),
    "logarithm": (
        HEAD + MODULE.replace("p : (x'=1) + 1-p", "log(p,2) : (x'=1) + 1-log(p,2)"),
        {},
        f"module m, line 5, action 'a': (log(p, 2)) is not calculated exactly; {OWN_PARAMETER}",
    ),
    "root": (
        HEAD + MODULE.replace("p : (x'=1) + 1-p", "pow(p, 0.5) : (x'=1) + 1-pow(p, 0.5)"),
        {},
        "module m, line 5, action 'a': pow(p, 1/2): only whole exponents are possible; "
        "give the power a parameter of its own",
    ),
    "parameter in an exponent": (
        HEAD + MODULE.replace("p : (x'=1) + 1-p", "pow(0.5, p) : (x'=1) + 1-pow(0.5, p)"),
        {},
        "module m, line 5, action 'a': pow(1/2, p): only whole exponents are possible; "
        "give the power a parameter of its own",
    ),
    "least of a parameter": (
        HEAD + MODULE.replace("p : (x'=1) + 1-p", "min(p, 0.5) : (x'=1) + 1-min(p, 0.5)"),
        {},
        "module m, line 5, action 'a': p depends on a parameter and cannot be compared or rounded; "
        "give the result a parameter of its own",
    ),
    "ratio in a constant": (
        HEAD + "const double q = 1/p;\n" + MODULE.replace("p : (x'=1) + 1-p", "1-q : (x'=1) + q").replace("[a]", "[]"),
        {"space": pl.ParameterSpace.box({"p": (2, 3)})},
        "module m, line 6, action 'm.1': (1) / (p) is not a polynomial; divide by numbers only, "
        "or give the quotient a parameter of its own",
    ),
    "rewards without a name": (
        HEAD + MODULE + "rewards\n  [a] true : 2*p;\nendrewards\n",
        {},
        "line 8: rewards depend on p: say in Python between which numbers their values lie, with "
        "read_prism(…, space=ParameterSpace.box({'p': (low, high)}))",
    ),
    "rewards of commands without an action": (
        HEAD + MODULE + "rewards\n  [] true : 2*p;\nendrewards\n",
        {"space": pl.ParameterSpace.unit("p")},
        "line 8: rewards depend on parameters and are given to commands without an action: name the action",
    ),
    "rewards that are products": (
        HEAD + MODULE + 'rewards "cost"\n  x=0 : 2*p*p;\nendrewards\n',
        {"space": pl.ParameterSpace.unit("p")},
        "rewards 'cost': 2*p^2 has products of parameters; give sums of parameters and numbers",
    ),
    "negative probability": (
        HEAD + MODULE.replace("p : (x'=1) + 1-p", "p*p-1 : (x'=1) + 2-p*p"),
        {},
        "the probability ((p * p) - 1) is negative, at least for some values of the parameters; "
        "correct it, or give it a parameter of its own",
    ),
    "Boolean constant missing": (
        HEAD + "const bool b;\n" + MODULE,
        {},
        "no value for b; give constants={'b': …}",
    ),
    "Boolean constant of another value": (
        HEAD + "const bool b;\n" + MODULE,
        {"constants": {"b": 2}},
        "the constant b is a bool and cannot be 2",
    ),
    "constant that is not a number": (
        HEAD + MODULE,
        {"constants": {"p": "half"}},
        "the constant p: 'half' is not a number; write it like 3, 0.3 or 3/10",
    ),
    "clock": (
        HEAD + MODULE.replace("init 0;", "init 0;\n  y : clock;"),
        {},
        "this is a pta; only an mdp or a dtmc can be read; write its clocks as int variables of an mdp, "
        "which an action of all modules moves on",
    ),
    "partly observed": (
        "pomdp\nobservables x endobservables\n" + HEAD[4:] + MODULE,
        {},
        "this is a pomdp; only an mdp or a dtmc can be read; an mdp of the same commands has policies that see every "
        "variable",
    ),
    "no module": (HEAD, {}, "there is no state variable; a module declares some, as in x : [0..9] init 0;"),
    "no type": (HEAD[4:] + MODULE, {}, "line 1, column 1: mdp or dtmc is expected here\n  const double p;\n  ^"),
    "byte order mark": (
        "\ufeff" + HEAD + MODULE,
        {},
        "line 1, column 1: there is a byte order mark before this; save the file as UTF-8 without one\n  mdp\n  ^",
    ),
    "no initial state": (
        HEAD + MODULE.replace("init 0", "init 7"),
        {},
        "no state is initial: correct the values after init, or the condition between init and endinit, "
        "so that all variables are in their ranges",
    ),
    "range upside down": (
        HEAD + MODULE.replace("[0..1]", "[1..0]"),
        {},
        "the range of a variable has its lower bound above its upper bound",
    ),
    "parameter in a range": (
        HEAD + MODULE.replace("[0..1]", "[0..p]"),
        {},
        "line 4, column 11: a whole number without parameters is expected here\n    x : [0..p] init 0;\n            ^",
    ),
    "variable of reals": (
        HEAD + MODULE.replace("[0..1]", "double"),
        {},
        "line 4, column 3: a state variable is a bool, an int, or a range such as [0..9]\n"
        "    x : double init 0;\n    ^",
    ),
    "name declared twice": (
        HEAD + "const double x;\n" + MODULE,
        {},
        "line 5, column 3: x is declared twice; rename one of them\n    x : [0..1] init 0;\n    ^",
    ),
    "name not declared": (
        HEAD + MODULE.replace("p : (x'=1)", "r : (x'=1)"),
        {},
        "line 5, column 14: r is not declared; declare it, as in const double r;\n"
        "    [a] x=0 -> r : (x'=1) + 1-p : true;\n               ^",
    ),
    "name misspelt": (
        HEAD + MODULE.replace("x", "level") + 'label "far" = levle>0;\n',
        {},
        'line 8, column 15: levle is not declared (did you mean level?)\n  label "far" = levle>0;\n                ^',
    ),
    "assigned but not declared": (
        HEAD + MODULE.replace("(x'=1)", "(y'=1)"),
        {},
        "line 5: y is not declared; declare it, as in y : [0..9] init 0;\n    [a] x=0 -> p : (y'=1) + 1-p : true;",
    ),
    "no semicolon": (
        HEAD + MODULE.replace("true;\n  [b]", "true\n  [b]"),
        {},
        "line 6, column 4: what comes before does not end in ;\n    [b] x=1 -> true;\n     ^",
    ),
    "guard that is not a condition": (
        HEAD + MODULE.replace("x=0 ->", "x ->"),
        {},
        "line 5: expression for guard must evaluate to type 'bool'.",
    ),
    "composition": (
        HEAD + MODULE + "system m endsystem\n",
        {},
        "system … endsystem is not read; modules synchronise on the actions that they share",
    ),
    "overlapping commands of a chain": (
        "dtmc\n" + HEAD[4:] + MODULE.replace("x=1", "true"),
        {},
        "several commands of a dtmc are possible in one state; make their guards exclusive, or use an mdp",
    ),
}


@pytest.mark.parametrize("case", PRISM)
def test_a_broken_prism_model_is_refused_with_its_reason(case, tmp_path):
    pytest.importorskip("stormpy")
    text, options, message = PRISM[case]
    path = tmp_path / "model.prism"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(pl.ModelError) as caught:
        pl.read_prism(path, **options)
    assert str(caught.value) == f"{path}: {message}"


def test_a_missing_file_is_named():
    pytest.importorskip("stormpy")
    with pytest.raises(pl.ModelError, match=r"^nowhere\.prism: there is no such file$"):
        pl.read_prism("nowhere.prism")


def test_without_storm_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "stormpy", None)
    path = tmp_path / "model.prism"
    path.write_text(HEAD + MODULE, encoding="utf-8")
    with pytest.raises(pl.MissingExtra) as caught:
        pl.read_prism(path)
    assert str(caught.value) == "reading PRISM and JANI files needs Storm: pip install 'plumdp[storm]'"
