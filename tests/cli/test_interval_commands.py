"""``plumdp solve``, and policies and files of ``plumdp certify``: as text and JSON, exit codes, and misuse."""

import json
from pathlib import Path

import pytest
from command_line import plumdp
from support import refusals

import plumdp as pl

MODELS = Path(__file__).parents[1] / "models"

STUDY = "betting:5"
ROBOT = (MODELS / "robot.drn").read_text()
GOAL = 'Pmaxmin=? [ F "goal" ]'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with an interval model, counts of a case study, and a policy for it."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "robot.drn").write_text(ROBOT)
    study = pl.case_study(STUDY)
    pl.write_counts(pl.simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6), folder / "counts.parquet")
    timid = pl.PolicyTable(study.model.graph, study.model.graph.first_choice[:-1])
    for ending in (".csv", ".json", ".txt"):
        pl.exchange.write_policy(timid, folder / f"timid{ending}")
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    """Return a function that runs a command in the folder: exit code, standard output and standard error."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: plumdp(*map(str, arguments))


def test_solve_says_the_value_the_nature_and_the_first_action(run):
    """By hand: nature at its worst lets "go" reach the goal with 0.3, and at its best with 0.5."""
    code, out, err = run("solve", "robot.drn", "-p", GOAL)
    assert (code, err) == (0, "")
    assert out.startswith("The probability that the system ever reaches “goal” is 29.9999 % to 30.0001 % under ")
    assert "go, in state=0" in out
    assert "3 states, 4 choices, 6 transitions" in out


@pytest.mark.parametrize(
    ("asked", "nature", "value"),
    [
        (["-p", GOAL], "robust", 0.3),
        (["-p", 'Pmaxmax=? [ F "goal" ]'], "optimistic", 0.5),
        (["-p", 'Pmax=? [ F "goal" ]'], "robust", 0.3),
    ],
)
def test_a_property_without_nature_is_robust(run, asked, nature, value):
    code, out, _ = run("solve", "robot.drn", *asked, "--json")
    facts = json.loads(out)
    assert (code, facts["schema"], facts["nature"]) == (0, "plumdp/solution/1", nature)
    assert facts["lower"] <= value <= facts["upper"]
    assert facts["upper"] - facts["lower"] < 1e-6
    assert set(facts) == {
        *("schema", "model", "property", "direction", "nature", "lower", "upper", "status", "sweeps", "seconds"),
        *("states", "choices", "transitions", "has_intervals", "initial_state", "action"),
    }


@pytest.mark.parametrize(("number", "verdict", "expected"), [("0.29", "yes", 0), ("0.31", "no", 1), ("0.3", "", None)])
def test_a_threshold_is_answered_with_an_exit_code(run, number, verdict, expected):
    code, out, _ = run("solve", "robot.drn", "-p", f'P>={number} [ F "goal" ]', "--json")
    facts = json.loads(out)
    if expected is None:  # 0.3 is within the rounding of the bounds
        assert (facts["verdict"], code) in (("yes", 0), ("inconclusive", 4))
    else:
        assert (facts["verdict"], code) == (verdict, expected)


@pytest.mark.parametrize(
    ("asked", "remark"),
    [
        (['P>=0.29 [ F "goal" ]'], "ask Pminmin>=0.29 for all policies."),
        (['Pmax>=0.29 [ F "goal" ]'], ""),
        (['P>=0.31 [ F "goal" ]'], ""),
    ],
)
def test_solve_says_that_a_yes_is_about_one_policy(run, asked, remark):
    remark = remark and f"Other policies may do worse: {remark}"
    said = " ".join(run("solve", "robot.drn", "-p", *asked)[1].split()).partition(" property ")[0]
    assert said.partition(", with nature ")[2] == f"against it. {remark}".strip()
    assert json.loads(run("solve", "robot.drn", "-p", *asked, "--json")[1])["remark"] == remark
    every = run("solve", "robot.drn", "-p", 'Pminmin>=0.29 [ F "goal" ]', "--json")
    assert json.loads(every[1])["verdict"] == "no"


def test_solve_writes_a_policy_that_is_replaced_only_by_force(run, folder):
    command = ["solve", "robot.drn", "-p", GOAL, "-o", "best.csv"]
    assert run(*command)[0] == 0
    assert (folder / "best.csv").read_text().splitlines()[:2] == ["state,action", "0,go"]
    code, _, err = run(*command)
    assert (code, err) == (2, "error: best.csv already exists; choose another file, or replace it with --force\n")
    assert run(*command, "--force")[0] == 0


def test_solve_takes_a_case_study_at_its_true_point(run):
    code, out, _ = run("solve", STUDY, "--json")
    study = pl.case_study(STUDY)
    value = pl.stages.solve(pl.stages.instantiate(study.model, study.true_point), study.objective).lower[0]
    assert (code, json.loads(out)["lower"]) == (0, value)
    assert json.loads(out)["has_intervals"] is False


def test_nothing_is_cut_on_a_narrow_screen(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out = run("solve", "robot.drn", "-p", GOAL)[1]
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 40


def test_misuse_of_solve(run):
    refusals.misused("commands:solve", run)


def test_a_wrong_row_is_named_by_file_and_line(run, folder):
    (folder / "wrong.drn").write_text(ROBOT.replace("[0.5, 0.7]", "[0.8, 0.9]"))
    code, out, err = run("solve", "wrong.drn", "-p", GOAL, "--json")
    message = json.loads(out)["error"]["message"]
    assert (code, err) == (2, "")
    assert message.startswith("wrong.drn, line 14: state (state=0), action 'go': the lower bounds sum to 1.1")


@pytest.mark.parametrize("ending", [".csv", ".json", ".txt"])
def test_policy_certifies_a_policy_of_ones_own(run, ending):
    """Betting nothing keeps the 10 that one starts with, whatever the parameter is."""
    code, out, _ = run("certify", STUDY, "counts.parquet", "--policy", f"timid{ending}", "--json")
    facts = json.loads(out)
    assert (code, facts["status"]) == (0, "certified")
    assert facts["lower"] <= 10 <= facts["upper"]
    assert facts["upper"] - facts["lower"] < 1e-3


def test_policy_prints_and_writes_what_certify_does(run, folder):
    code, out, _ = run("certify", STUDY, "counts.parquet", "--policy", "timid.csv", "-o", "timid")
    assert code == 0
    assert " ".join(out.split()).startswith(
        "Certified: under this policy, the expected “money” until the system reaches “end” is 9.99999 to 10.0001 "
    )
    assert (folder / "timid" / "policy.csv").read_text() == (folder / "timid.csv").read_text()


@pytest.mark.slow
def test_misuse_of_policy(run, folder):
    lines = (folder / "timid.csv").read_text().splitlines()
    (folder / "short.csv").write_text("\n".join(lines[:1] + lines[4:]))
    (folder / "other.csv").write_text("x,action\n1,go\n")
    (folder / "fly.csv").write_text("\n".join([lines[0], "10,0,fly", *lines[2:]]))
    (folder / "rules.py").write_text("def policy(state):\n    return 'fly'\n")
    (folder / "half.csv").write_text(f"{lines[0]},probability\n10,0,bet0,0.5\n")
    refusals.misused("commands:policies", run)


MIXED = """
print("this is not a result")


def policy(money, step):
    return {"bet0": 0.5, "bet1": 0.5} if money > 3 else "bet0"
"""


@pytest.mark.night
def test_a_threshold_is_answered_for_the_policy_of_a_file(run, folder):
    """The policy draws; of a file with its probabilities the answer is the same."""
    (folder / "mixed.py").write_text(MIXED)
    code, out, _ = run("certify", STUDY, "counts.parquet", "--policy", "mixed.py", "--json")
    low, high = (json.loads(out)[name] for name in ("lower", "upper"))
    assert code == 0
    assert 10 < low < high < 11
    middle = (low + high) / 2, 4, "inconclusive"
    for number, expected, verdict in ((low - 0.1, 0, "yes"), (high + 0.1, 1, "no"), middle):
        asked = ["-p", f'R{{"money"}}>={number} [ F "end" ]', "--json"]
        code, out, _ = run("certify", STUDY, "counts.parquet", "--policy", "mixed.py", *asked)
        assert (code, json.loads(out)["verdict"]) == (expected, verdict)
        assert "this policy has at " in json.loads(out)["headline"]
    run("certify", STUDY, "counts.parquet", "--policy", "mixed.py", "-o", "mixed", *asked)
    assert json.loads((folder / "mixed" / "certificate.json").read_text())["answer"]["verdict"] == "inconclusive"
    code, out, _ = run("certify", STUDY, "counts.parquet", "--policy", "mixed/policy.csv", "--json")
    assert [json.loads(out)[name] for name in ("lower", "upper")] == [low, high]


@pytest.mark.night
def test_what_is_exported_holds_what_was_certified(run, folder):
    """Read again, the intervals alone give the bound of the relaxation of intervals: never above that of certify."""
    model = "learned.umb"
    command = ["certify", STUDY, "counts.parquet", "-o", model, "--force"]
    code, out, _ = run(*command)
    assert code == 0
    assert out.startswith("Certified: under the recommended policy, the ")
    claim = "the true probabilities lie in the intervals with confidence 99.9 %"
    assert f"\n{model}: interval model, 225 states; {claim}\n" in out
    assert json.loads(run(*command, "--json")[1])["status"] == "certified"
    assert run(*command[:3], "-o", "best.json", "--force")[1].endswith("\nbest.json: policy, 225 states\n")
    facts = json.loads(run("solve", model, "-p", 'R{"money"}maxmin=? [ F "end" ]', "--json")[1])
    certified = json.loads(run("certify", STUDY, "counts.parquet", "--json")[1])
    assert facts["lower"] <= certified["lower"] + 1e-6
    assert facts["has_intervals"]
    valued = json.loads(run("certify", STUDY, "counts.parquet", "--policy", "best.json", "--json")[1])
    assert valued["lower"] == pytest.approx(certified["lower"])


@pytest.mark.slow
def test_models_and_policies_are_converted(run, folder):
    assert run("solve", "robot.drn", "-o", "robot.umb")[1] == "robot.umb: interval model, 3 states\n"
    assert json.loads(run("solve", "robot.drn", "-p", GOAL, "--json")[1])["lower"] == pytest.approx(0.3)
    assert run("solve", STUDY, "--at", "p=0.3", "-o", "low.umb")[0] == 0
    solved = run("solve", "low.umb", "-p", 'R{"money"}max=? [ F "end" ]', "--json")
    assert json.loads(solved[1])["lower"] == pytest.approx(10)
    assert run("certify", STUDY, "counts.parquet", "-o", "result", "--json")[0] == 0
    assert run("certify", STUDY, "counts.parquet", "--policy", "result", "-o", "same.csv")[0] == 0
    assert (folder / "same.csv").read_text() == (folder / "result" / "policy.csv").read_text()


def test_misuse_of_certify(run):
    refusals.misused("commands:certify", run)


def test_a_model_that_the_data_contradict_is_exported_with_a_warning_and_exit_code_3(run, folder):
    """Bets are won with 0.1 in the first steps and with 0.9 later, but the model has one p for all of them."""
    study = pl.case_study(STUDY)
    low, high = (pl.simulate(study.model, {"p": p}, 2_000, rng=1, max_steps=6).counts for p in ("1/10", "9/10"))
    graph = study.model.graph
    is_early = graph.states["step"][graph.state_of_choice()[graph.choice_of_transition()]] < 3
    mixed = pl.TransitionCounts(graph, low * is_early + high * ~is_early, "adaptive")
    pl.write_counts(mixed, folder / "mixed.parquet")
    code, out, _ = run("certify", STUDY, "mixed.parquet", "-o", "mixed.umb")
    assert code == 3
    assert "\nmixed.umb: interval model, 225 states; Model rejected: " in out
