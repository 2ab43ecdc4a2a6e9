"""Policies in C and in structured text do in every state what their tables say, once they are compiled."""

import re
import subprocess

import numpy as np
import pytest
from test_policy_rules import GRAPH, STUDIES

import plumdp as pl
from plumdp.base.errors import DataError
from plumdp.exchange import write_policy
from plumdp.exchange.policy_files import c_code, structured_text
from plumdp.result.policy_table import PolicyTable
from plumdp.stages import instantiate, solve


def drawn(graph, seed=1):
    """Return a policy with one action in each state, drawn at random."""
    rng = np.random.default_rng(seed)
    return PolicyTable(graph, rng.integers(graph.first_choice[:-1], graph.first_choice[1:]).astype(np.int32))


def best(name):
    study = pl.case_study(name)
    return PolicyTable(study.model.graph, solve(instantiate(study.model, study.true_point), study.objective).policy)


def numbered(graph):
    """Return the columns as numbers, those of texts by the place of a text among all of them."""
    columns = (
        np.unique(each, return_inverse=True)[1] if each.dtype.kind == "U" else each for each in graph.states.values()
    )
    return [each.astype(int).tolist() for each in columns]


def actions(policy):
    *_, names = policy.columns().values()
    return names.tolist()


def answers_in_c(policy, folder, columns):
    """Compile the function with a program that prints its answer for each line of its input."""
    path = folder / "policy.c"
    write_policy(policy, path)
    types = re.search(r"int policy\((.*)\)", path.read_text())[1].split(", ")
    scans = "".join(f" long v{n};" for n in range(len(types)))
    reads = " && ".join(f'scanf("%ld", &v{n}) == 1' for n in range(len(types)))
    calls = ", ".join(f"v{n}" for n in range(len(types)))
    (folder / "main.c").write_text(
        f'#include <stdio.h>\n#include "policy.c"\nint main(void) {{{scans} while ({reads}) '
        f'printf("%d\\n", policy({calls})); return 0; }}\n'
    )
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run(["gcc", *strict, "-o", str(folder / "main"), str(folder / "main.c")], check=True)
    lines = "\n".join(" ".join(map(str, row)) for row in zip(*columns, strict=True))
    done = subprocess.run([str(folder / "main")], input=lines, capture_output=True, text=True, check=True)
    names = dict(re.findall(r"#define (\w+) (\d+)", path.read_text()))
    return [int(line) for line in done.stdout.split()], names


def run_structured_text(text, arguments):
    """Interpret a function in structured text: IF, ELSE, RETURN, assignments, and comparisons of numbers."""
    body = text.partition("END_VAR\n")[2].partition("END_FUNCTION")[0]
    names = re.findall(r"^    (\w+) : \w+;", text.partition("VAR_INPUT\n")[2].partition("END_VAR")[0], flags=re.M)
    code, depth = ["def policy(" + ", ".join(names) + "):"], 1
    for line in body.splitlines():
        line = line.strip()
        if line.startswith("IF "):
            condition = line[3:].removesuffix(" THEN").replace("NOT", "not").replace(" OR ", " or ")
            code.append("    " * depth + "if " + re.sub(r"(?<![<>]) = ", " == ", condition) + ":")
            depth += 1
        elif line == "ELSE":
            code.append("    " * (depth - 1) + "else:")
        elif line == "END_IF;":
            depth -= 1
        elif line.startswith("policy := "):
            code.append("    " * depth + "result = " + line[10:].rstrip(";"))
        else:
            assert line == "RETURN;"
            code.append("    " * depth + "return result")
    scope = {}
    exec("\n".join([*code, "    return result"]), scope)
    return [scope["policy"](*row) for row in zip(*arguments, strict=True)]


POLICIES = {"rooms": lambda: drawn(GRAPH), **{name: (lambda name=name: best(name)) for name in STUDIES}}


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_compiled_code_does_what_the_table_says_in_every_state(name, tmp_path):
    policy = POLICIES[name]()
    found, constants = answers_in_c(policy, tmp_path, numbered(policy.graph))
    done = policy.tree.done
    assert [done[number] for number in found] == actions(policy)
    assert [constants[f"POLICY_{re.sub(chr(92) + 'W', '_', each).upper()}"] for each in done] == [
        f"{number}" for number in range(len(done))
    ]


@pytest.mark.parametrize("name", POLICIES)
def test_structured_text_does_what_the_table_says_in_every_state(name):
    policy = POLICIES[name]()
    text = structured_text(policy)
    found = run_structured_text(text, numbered(policy.graph))
    assert [policy.tree.done[number] for number in found] == actions(policy)
    assert text.count("IF ") == text.count("END_IF;")


def test_values_that_no_state_has_are_refused(tmp_path):
    policy = drawn(GRAPH)
    outside = [[0, 3, -1, 0], [0, 0, 0, 1], [9, 0, 0, -9]]  # of n, of the room, of the room, of n
    found, _ = answers_in_c(policy, tmp_path, outside)
    assert found == [-1, -1, -1, -1]
    assert run_structured_text(structured_text(policy), outside) == [-1, -1, -1, -1]


def test_texts_are_numbered_by_constants_and_comments():
    policy = drawn(GRAPH)
    code, text = c_code(policy), structured_text(policy)
    assert "#define POLICY_ROOM_THE__OLD__HALL 2" in code
    assert 'in_room : INT; (* 0 is exit, 1 is hall, 2 is the "old" hall *)' in text


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (
            lambda: PolicyTable.from_actions(
                GRAPH, lambda s: {"run": 0.5, "turn": 0.5} if s.room != "exit" else "rest"
            ),
            "draws its actions",
        ),
        (lambda: pl.certify(*_deadline(), 'Pmax=? [ F<=3 room="exit" ]').policy, "keeps memory"),
    ],
)
def test_policies_that_a_controller_cannot_follow_are_refused(policy, why):
    with pytest.raises(DataError) as refused:
        c_code(policy())
    assert str(refused.value) == f"a controller has one action in each state, but the policy {why}; write .py"


def _deadline():
    (p,) = pl.parameters("p")

    def step(s):
        if s.room == "exit":
            return {"rest": [(1, s)]}
        out = s._replace(room="exit")
        return {"run": [(p, out), (1 - p, s)], "wait": [(p / 2, out), (1 - p / 2, s)]}

    model = pl.explore(step, {"room": "hall"}, space=pl.ParameterSpace.unit("p"))
    return model, pl.simulate(model, {"p": 0.5}, 50, rng=1, max_steps=4)
