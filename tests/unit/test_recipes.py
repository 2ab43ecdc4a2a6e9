"""The recipes of docs/explanation/architecture.md: each extension is one new file and one entry in a table.

The files are written into a temporary folder, as somebody would write them, and nothing of plumdp is changed.
"""

import importlib.util

import pytest

import plumdp as pl
from plumdp.cli.arguments import load
from plumdp.experiments import studies
from plumdp.experiments.study import Cell
from plumdp.learning import SETS, ConfidenceMethod
from plumdp.model.readers import read
from plumdp.relaxation.relax import seen_from
from plumdp.solver.nature import loops_for


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
    return pl.case_study("aircraft:20,10")


CONFIDENCE_SET = '''
from dataclasses import dataclass
import numpy as np
from plumdp.confidence.sets import Guarantee

@dataclass(frozen=True, eq=False)
class Everything:
    """All distributions: what is known without any data."""
    intervals: tuple
    method: str = "no data used"
    guarantee: Guarantee = Guarantee.ANYTIME

def everything(model, counts, *, error):
    n = len(model.expressions)
    return Everything((np.zeros(n), np.ones(n)))
'''


def test_a_confidence_set_is_one_file_and_one_entry(tmp_path, monkeypatch, study):
    """Its region is the whole space, which all relaxations and the certificate take as it is."""
    new = load_file(tmp_path, "everything", CONFIDENCE_SET)
    entry = ConfidenceMethod(new.everything, lambda model, _: pl.build_region(model.space, [], [], []))
    monkeypatch.setitem(SETS, "everything", entry)
    counts = pl.simulate(study.model, study.true_point, 100, rng=1, max_steps=21)
    for relaxation in ("interval", "parameter", "expression", "rectangular"):
        found = pl.certify(study.model, counts, study.objective, confidence_set="everything", relaxation=relaxation)
        assert found.intervals == "no data used"
        assert found.lower <= 0.28835 <= found.upper
        assert found.parameters["t1"] == pytest.approx((0, 1), abs=1e-9)


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

def loops(region, n_rows, longest):
    return Loops(interval, (np.empty(longest),))
'''


def test_a_nature_is_one_file_and_its_registration(tmp_path, study):
    """One that picks within intervals has the values of the expression-wise relaxation."""
    new = load_file(tmp_path, "row_box", NATURE)
    seen_from.register(new.Box, lambda region, expressions, lower, upper: new.RowBox())
    loops_for.register(new.RowBox, new.loops)
    inner = pl.build_region(study.model.space, [], [], [])
    region = new.Box(inner.names, inner.lower, inner.upper, inner)
    by_new = pl.solve(pl.rectangular(study.model, region), study.objective)
    by_intervals = pl.solve(pl.expression_wise(study.model, inner), study.objective)
    assert (by_new.lower == by_intervals.lower).all()
    with pytest.raises(TypeError, match="nature cannot pick from int: register loops for it in solver/nature"):
        loops_for(3, 1, 1)


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


def test_a_reader_is_one_file_and_one_line(tmp_path, monkeypatch):
    new = load_file(tmp_path, "coin", READER)
    monkeypatch.setitem(read.READERS, ".coin", new.read_coin)
    (tmp_path / "my.coin").write_text("heads\n", encoding="utf-8")
    assert pl.read_model(tmp_path / "my.coin").space.names == ("heads",)
    model, properties = load(str(tmp_path / "my.coin"), [])
    assert (model.graph.n_states, properties) == (3, [])


STUDY = """
from plumdp.case_studies import case_study
from plumdp.experiments.study import Plan, Study

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


def test_a_study_with_its_picture_is_one_file_and_one_line(tmp_path, monkeypatch):
    new = load_file(tmp_path, "states", STUDY)
    monkeypatch.setattr(studies, "STUDIES", (*studies.STUDIES, new.STATES))
    rows = studies.run_cell(Cell("states", "betting:5", 1, 1))
    assert new.STATES.describe(rows) == ["225 states"]
    (figure,) = new.STATES.draw(rows, tmp_path)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_what_was_added_is_gone_after_its_test():
    assert set(SETS) == {"interval", "l1", "ellipsoid"}
    assert ".coin" not in read.READERS
    assert [study.name for study in studies.STUDIES] == ["table", "online", "ellipsoid", "scaling"]
