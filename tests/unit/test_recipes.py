"""The recipes of CONTRIBUTING.md: each extension is one new file and one entry in a table.

The files are written into a temporary folder, as somebody would write them, and nothing of plumdp is changed.
"""

import importlib.util
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from command_line import plumdp
from shorthand import explain
from typer.testing import CliRunner

import plumdp as pl
from plumdp.certifying import valuation
from plumdp.cli import app
from plumdp.cli.commands import COMMANDS, Command
from plumdp.cli.inputs import load_model
from plumdp.cli.options import Options
from plumdp.learning.methods import SETS, SetKind
from plumdp.model.objectives import Reach
from plumdp.model.readers import read
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import expression_wise, rectangular, seen_from
from plumdp.reporting.read import explain_result
from plumdp.result.findings import relaxed_of
from plumdp.solver.nature import loops_for
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import TO_CHAIN
from studies import registry
from studies.study import Cell


def load_file(folder, name, text):
    """Return the module of a new file."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def study():
    return pl.case_study("aircraft:6,4,1")


CONFIDENCE_SET = '''
import numpy as np
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.base.vocabulary import Guarantee
from plumdp.confidence.sets import Evidence, whole_set

def everything(given):
    """All distributions: what is known without any data."""
    budget, events = given.divided(whole_set()), given.cache.events
    n, error = len(events), budget.error_of_set(given.error)
    nothing, guarantee = np.zeros(n, dtype=np.int64), Guarantee.ANYTIME
    whole = ExpressionBounds(
        given.model.expressions, events, np.zeros(n), np.ones(n), nothing, nothing, error, "no data used", guarantee
    )
    return Evidence.of("everything", whole, budget)
'''


@pytest.fixture
def everything(tmp_path, monkeypatch):
    """Add a set whose region is the whole space."""
    monkeypatch.setitem(SETS, "everything", SetKind(load_file(tmp_path, "everything", CONFIDENCE_SET).everything))
    return "everything"


@pytest.mark.slow
def test_a_confidence_set_is_one_file_and_one_entry(everything, tmp_path, study, blank_pictures):
    """All relaxations and the certificate take its region as it is, and so does all that is made of a certificate."""
    counts = pl.simulate(study.model, study.true_point, 100, rng=1, max_steps=7)
    for relaxation in ("interval", "parameter", "expression", "rectangular"):
        found = pl.certify(study.model, counts, study.objective, confidence_set=everything, relaxation=relaxation)
        assert found.how.confidence_set == "no data used"
        assert found.lower <= 0.467866 <= found.upper
        assert found.rests_on.parameters["t1"] == pytest.approx((0, 1), abs=1e-9)
    pl.write_result(found, tmp_path / "result", model=study.model, counts=counts)
    again, findings = explain_result(tmp_path / "result")
    assert (again.how.confidence_set, again.lower, again.upper) == ("no data used", found.lower, found.upper)
    assert [rung.relaxation for rung in findings.ladder][-1] == "coupled"
    pl.write_report(again, findings, tmp_path / "report.html")
    assert "no data used" in (tmp_path / "report.html").read_text(encoding="utf-8")
    for kind in ("ladder", "region", "expressions", "policy", "residuals"):
        assert pl.draw(kind, again, findings).figure.axes
    learned = pl.learn(study.model, counts, confidence_set=everything)
    advice = pl.advise(learned, study.objective, runs=100, max_steps=7)
    assert all(prediction.width == advice.predictions[0].width for prediction in advice.predictions)


@pytest.mark.night
def test_the_command_line_knows_a_confidence_set_that_was_added(
    everything, tmp_path, monkeypatch, study, blank_pictures
):
    monkeypatch.chdir(tmp_path)
    pl.write_counts(pl.simulate(study.model, study.true_point, 100, rng=1, max_steps=7), "counts.parquet")
    data = ["aircraft:6,4,1", "counts.parquet", "--confidence-set", everything]
    commands = {
        "certify": [*data, "-o", "result"],
        "report": ["result"],
        "plot": ["region", *data, "-o", "region.svg"],
        "advise": [*data, "--max-steps", "7"],
    }
    for command, arguments in commands.items():
        found = CliRunner().invoke(app, [command, *arguments])
        assert found.exit_code in (0, 4), f"{command}: {found.output} {found.exception!r}"  # 4: inconclusive
    assert "no data used" in (tmp_path / "result" / "report.html").read_text(encoding="utf-8")
    refused = CliRunner().invoke(app, ["certify", *data[:-1], "nothing"])
    assert str(refused.exception).startswith(
        "confidence_set='nothing': choose one of 'interval', 'likelihood', 'table'"
    )


NATURE = '''
from dataclasses import dataclass
import numpy as np
from plumdp.solver.nature import Loops, interval

@dataclass(frozen=True, eq=False)
class Box:
    """A region whose variables do not depend on each other."""
    names: tuple
    lower: np.ndarray
    upper: np.ndarray
    inner: object
    def minimise(self, objectives):
        return self.inner.minimise(objectives)

@dataclass(frozen=True, eq=False)
class RowBox:
    """Nature picks within the intervals of each row."""
    tables: tuple = ()
    def with_constants(self, values):
        return self

def loops(region, rows, longest, n_kept):
    room = np.empty(2 * longest)
    return Loops(interval, (room, np.full(n_kept, -1.0)), (room,))
'''


def test_a_nature_is_one_file_and_its_registration(tmp_path, study):
    """One that picks within intervals has the values of the expression-wise relaxation."""
    new = load_file(tmp_path, "row_box", NATURE)
    seen_from.register(new.Box, lambda region, expressions, lower, upper: new.RowBox())
    loops_for.register(new.RowBox, new.loops)
    inner = pl.stages.build_region(study.model.space, [], [], [])
    region = new.Box(inner.names, inner.lower, inner.upper, inner)
    by_new = pl.stages.solve(rectangular(study.model, region), study.objective)
    by_intervals = pl.stages.solve(expression_wise(study.model, inner), study.objective)
    assert (by_new.lower == by_intervals.lower).all()
    with pytest.raises(TypeError, match="nature cannot pick from int: register loops for it in solver/nature"):
        loops_for(3, 1, 1, 0)


REDUCTION = '''
from dataclasses import replace
import numpy as np
from plumdp.model.graph import read_only
from plumdp.solver.problem import Problem, Reduction

def without_copies(problem):
    """Keep one of the choices of a state that have the same row and the same reward."""
    graph, expression = problem.mdp.graph, problem.mdp.expression
    reward, first = problem.objective.terms(graph).reward, graph.first_transition
    found = {}
    for choice, state in enumerate(graph.state_of_choice().tolist()):
        row = slice(first[choice], first[choice + 1])
        key = state, reward[choice], graph.successor[row].tobytes(), expression[row].tobytes()
        found.setdefault(key, choice)
    if len(found) == graph.n_choices:
        return None
    kept = np.array([*found.values()], dtype=np.int32)
    smaller, transitions = graph.take(kept)

    def carry(mdp):
        return replace(mdp, graph=smaller, expression=read_only(mdp.expression[transitions]))

    asked = problem.objective.restricted_to(kept)
    return Reduction(Problem(carry(problem.mdp), asked, nature=problem.nature), policy=kept.__getitem__, carry=carry)
'''


@pytest.mark.parametrize("nature", ["robust", "optimistic"])
def test_a_reduction_is_one_file_and_one_entry(tmp_path, monkeypatch, nature):
    """From the start, two equal actions reach the target with 0.3 to 0.6, and a third one with 0.1 to 0.9.

    At worst 0.3 is the best, and at best 0.9.
    """
    new = load_file(tmp_path, "without_copies", REDUCTION)
    mdp = IntervalMDP.from_arrays(
        [0, 3, 4, 5], [0, 2, 4, 6, 7, 8], [1, 2, 1, 2, 1, 2, 1, 2],
        [0.3, 0.4, 0.1, 0.1, 1], [0.6, 0.7, 0.9, 0.9, 1], expression=[2, 3, 0, 1, 0, 1, 4, 4],
    )  # fmt: skip
    objective = Reach([False, True, False], [False, False, True], "max")
    never = replace(objective, target=objective.avoid, avoid=objective.target, complement=True)
    monkeypatch.setattr("plumdp.solver.solve.TO_CHAIN", (new.without_copies, *TO_CHAIN))
    for asked in (objective, never):
        found = pl.stages.solve(mdp, asked, nature=nature)
        assert found.lower[0] == pytest.approx(0.3 if nature == "robust" else 0.9)
        assert found.policy.tolist() == [1 if nature == "robust" else 0, 3, 4]
    step = new.without_copies(Problem(mdp, objective))
    assert step.problem.mdp.graph.n_choices == 4
    assert new.without_copies(step.problem) is None


PROVER = '''
from itertools import pairwise
import numpy as np
from plumdp.base.errors import UNSAID
from plumdp.region.shapes import Box
from plumdp.relaxation.relax import expression_wise
from plumdp.solver.coupled.bounds import Proof
from plumdp.solver.evaluate import evaluate_all

def in_pieces(sought, proofs):
    """Bound a value in each of many pieces of the only parameter's range, one of which has the point."""
    region, (model, objective) = sought.learned.region, (sought.question.model, sought.question.objective)
    if sought.less is not None or model.space.dimension != 1:
        return UNSAID
    start, ends = model.graph.initial_state, []
    for piece in pairwise(np.linspace(region.lower[0], region.upper[0], 101)):
        box = Box(region.names, *(np.array([end]) for end in piece))
        relaxed = [expression_wise(model, box)]
        both = evaluate_all(relaxed, sought.policy, objective, ("robust", "optimistic"), precision=1e-9)
        ends.append((min(each.lower[start] for each in both), max(each.upper[start] for each in both)))
    return Proof(float(min(ends)[0]), float(max(upper for _, upper in ends)), 0.0, 0.0, 0.0, "in pieces")
'''


@pytest.mark.slow
def test_a_prover_is_one_file_and_one_entry(tmp_path, monkeypatch):
    """Heads and then tails of one coin has the probability p (1 - p), which is 1/4 at most, and least at one end."""
    new = load_file(tmp_path, "in_pieces", PROVER)
    (p,) = pl.parameters("p")
    rows = {0: [(p, 1), (1 - p, 3)], 1: [(1 - p, 2), (p, 3)]}
    model = pl.explore(
        lambda s: {"toss": [(f, s._replace(x=x)) for f, x in rows.get(s.x, [(1, s.x)])]},
        {"x": 0},
        space=pl.ParameterSpace.unit("p"),
    )
    counts = pl.simulate(model, {"p": 0.45}, 500, rng=1, max_steps=3)
    learned = pl.learn(model, counts, objectives=["Pmax=? [ F x=2 ]"])
    others = {name: prover for name, prover in valuation.PROVERS.items() if name != "expansion"}
    monkeypatch.setattr(valuation, "PROVERS", {**others, "pieces": new.in_pieces})
    found = pl.conclude(learned, "Pmax=? [ F x=2 ]")
    low, high = (float(end[0]) for end in (learned.region.lower, learned.region.upper))
    assert low < 0.5 < high
    least = min(low * (1 - low), high * (1 - high))
    assert low * (1 - high) < least - (high - low) / 50 < found.lower <= least
    assert 0.25 <= found.upper < 0.25 + (high - low) / 50 < high * (1 - low)


OBJECTIVE = '''
from dataclasses import dataclass, replace
import numpy as np
from plumdp.base.errors import ModelError
from plumdp.model.objectives import Kind, Payoff

@dataclass(frozen=True, eq=False)
class Prize:
    """The expected prize of the state where a run ends; a run that never ends has no prize."""
    prize: np.ndarray  # (n_states): 0 where runs do not end
    direction: str
    nature: str | None = None
    text: str = ""
    kind: Kind = Kind.END
    n_steps: None = None

    @property
    def target(self):
        return self.prize > 0
    @property
    def cap(self):
        return float(self.prize.max())
    def terms(self, graph):
        return Payoff(np.zeros(graph.n_choices), 1.0, self.target, self.prize)
    def at_step(self, values, step):
        return np.where(self.target, self.prize, values)
    def is_vacuous(self, bound):
        return bound >= self.cap if self.direction == "min" else bound <= 0
    def flipped(self):
        return None
    def restricted_to(self, choices):
        return self
    def stretched(self, graph):
        return replace(self, prize=np.concatenate([self.prize, np.zeros(graph.n_choices)]))
    def check_size(self, graph):
        if len(self.prize) != graph.n_states:
            raise ModelError(f"prizes are given for {len(self.prize)} states, but the model has {graph.n_states}")
'''


@pytest.fixture
def prize(tmp_path):
    return load_file(tmp_path, "prize", OBJECTIVE).Prize


@pytest.mark.parametrize(
    ("direction", "nature", "value"),
    [("max", "robust", 4.4), ("max", "optimistic", 5.6), ("min", "robust", 0.0), ("min", "optimistic", 0.0)],
)
def test_an_objective_is_one_file(prize, direction, nature, value):
    """The first choice leads to prizes 2 and 8, each with 0.4 to 0.6: 4.4 to 5.6. The second one never ends."""
    transitions = [1, 2, 3, 1, 2, 3]
    lower, upper = [0.4, 0.4, 1, 1, 1, 1], [0.6, 0.6, 1, 1, 1, 1]
    imdp = IntervalMDP.from_arrays([0, 2, 3, 4, 5], [0, 2, 3, 4, 5, 6], transitions, lower, upper)
    found = pl.stages.solve(imdp, prize(np.array([0.0, 2.0, 8.0, 0.0]), direction), nature=nature)
    assert found.lower[0] <= value <= found.upper[0]
    assert found.upper[0] - found.lower[0] < 1e-12
    assert found.policy[0] == (0 if direction == "max" else 1)
    with pytest.raises(pl.ModelError, match="prizes are given for 3 states, but the model has 4"):
        pl.stages.solve(imdp, prize(np.ones(3), direction))


@pytest.mark.slow
@pytest.mark.parametrize("relaxation", ["parameter", "expression", "rectangular"])
def test_a_new_objective_has_certificates(prize, study, relaxation):
    """Equal prizes of 3 are worth three times the probability to come to one of them."""
    counts = pl.simulate(study.model, study.true_point, 1000, rng=1, max_steps=7)
    options = {"relaxation": relaxation, "policy": study.model.graph.first_choice[:-1]}
    reach = pl.model.Reach(study.model.labels["goal"], np.zeros_like(study.model.labels["goal"]), "max")
    by_chance = pl.certify(study.model, counts, reach, **options)
    by_prize = pl.certify(study.model, counts, prize(3.0 * reach.target, "max"), **options)
    assert by_prize.status == by_chance.status == "certified"
    assert (by_prize.lower, by_prize.upper) == pytest.approx((3 * by_chance.lower, 3 * by_chance.upper), rel=1e-9)


@pytest.mark.slow
def test_a_certificate_of_a_new_objective_is_explained_saved_and_reported(prize, study, tmp_path, blank_pictures):
    """It has no text, so that only what was learned knows what was asked."""
    counts = pl.simulate(study.model, study.true_point, 1000, rng=1, max_steps=7)
    asked = prize(3.0 * study.model.labels["goal"], "max")
    learned = pl.learn(study.model, counts, objectives=[asked])
    found = pl.conclude(learned, asked)
    findings = pl.explain(learned, found)
    assert findings.ladder[-1] == relaxed_of(found)
    pl.write_result(found, tmp_path / "result", findings, model=study.model, counts=counts)
    pl.write_report(*explain_result(tmp_path / "result"), tmp_path / "report.html")
    page = unescape((tmp_path / "report.html").read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")
    assert found.headline in page
    with pytest.raises(pl.DataError, match="the question has no text, so that it cannot be learned again from model"):
        explain(study.model, counts, found)


READER = '''
from pathlib import Path
import plumdp as pl

def read_coin(path, *, constants=None, space=None):
    """Read a file with one word, the name of a coin's parameter."""
    name = Path(path).read_text(encoding="utf-8").strip()
    (p,) = pl.parameters(name)
    step = lambda s: {"toss": [(p, s._replace(x=1)), (1 - p, s._replace(x=2))] if s.x == 0 else [(1, s)]}
    return pl.explore(step, {"x": 0}, space=space or pl.ParameterSpace.unit(name))
'''


@pytest.mark.slow
def test_a_reader_is_one_file_and_one_line(tmp_path, monkeypatch, blank_pictures):
    new = load_file(tmp_path, "coin", READER)
    monkeypatch.setitem(read.READERS, ".coin", new.read_coin)
    (tmp_path / "my.coin").write_text("heads\n", encoding="utf-8")
    assert pl.read_model(tmp_path / "my.coin").space.names == ("heads",)
    model, properties = load_model(Options(model=str(tmp_path / "my.coin")))
    assert (model.graph.n_states, properties) == (3, [])
    pl.write_counts(pl.simulate(model, {"heads": 0.5}, 100, rng=1, max_steps=2), tmp_path / "counts.parquet")
    data = [str(tmp_path / name) for name in ("my.coin", "counts.parquet")]
    for arguments in (
        ["certify", *data, "-p", "Pmax=? [ F x=1 ]", "-o", str(tmp_path / "result")],
        ["report", str(tmp_path / "result")],
    ):
        assert CliRunner().invoke(app, arguments).exit_code == 0
    assert (tmp_path / "result" / "report.html").exists()


COMMAND = """
from plumdp.base.errors import DataError, Option
from plumdp.cli.inputs import load_model

def sizes(given):
    if given.model_tolerance:
        raise DataError(Option("model_tolerance", given.model_tolerance), ": states are counted; leave it out")
    print(load_model(given)[0].graph.n_states)
"""


def test_a_command_is_one_file_and_one_entry(tmp_path, monkeypatch):
    """It has the options that it names and those of all commands, and its errors speak of options."""
    monkeypatch.setitem(sys.modules, "plumdp.cli.sizes", load_file(tmp_path, "sizes", COMMAND))
    summary = "Print how many states there are."
    entry = Command("sizes", {"model": "MODEL"}, "model model_tolerance", summary, "plumdp sizes betting:5")
    monkeypatch.setitem(COMMANDS, "sizes", entry)
    assert plumdp("sizes", "betting:5") == (0, "225\n", "")
    text = plumdp("sizes", "-h").out
    assert all(
        words in text for words in (summary, "--constant", "--model-tolerance", "--verbose", "plumdp sizes betting:5")
    )
    assert plumdp("sizes", "betting:5", "--model-tolerance", "0.1") == (
        2,
        "",
        "error: --model-tolerance 0.1: states are counted; leave it out\n",
    )


STUDY = """
from plumdp.case_studies import case_study
from studies.study import Plan, Study

def run(cell):
    return [{"states": case_study(cell.instance).model.graph.n_states}]

def draw(rows, folder):
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots()
    axes.bar(range(len(rows)), [row["states"] for row in rows])
    figure.savefig(folder / "states.png")
    plt.close(figure)
    return [folder / "states.png"]

STATES = Study("states", "How many states there are.", {"quick": Plan(("betting:5",), (1,), 1)}, run,
               lambda rows: [f"{row['states']} states" for row in rows], draw)
"""


@pytest.mark.night
def test_a_study_with_its_picture_is_one_file_and_one_line(tmp_path, monkeypatch):
    new = load_file(tmp_path, "states", STUDY)
    monkeypatch.setattr(registry, "STUDIES", (*registry.STUDIES, new.STATES))
    rows = registry.run_cell(Cell("states", "betting:5", 1, 1))
    assert new.STATES.describe(rows) == ["225 states"]
    (figure,) = new.STATES.draw(rows, tmp_path)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_what_was_added_is_gone_after_its_test():
    assert "everything" not in SETS
    assert ".coin" not in read.READERS
    assert [*valuation.PROVERS] == ["nature", "expansion", "pieces", "intervals", "bets"]
    assert "sizes" not in COMMANDS
    assert [study.name for study in registry.STUDIES] == [
        "table",
        "online",
        "ellipsoid",
        "scaling",
        "limit",
        "parameters",
        "tables",
        "differences",
    ]
