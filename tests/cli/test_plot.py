"""``plumdp plot``: pictures from a model and data, from a saved result, and misuse."""

import explained
import numpy as np
import pytest
from command_line import plumdp
from support import refusals

import plumdp as pl

STUDY = "betting:5"
WORDS = {
    "ladder": "coupled",
    "region": "what the data allow",
    "expressions": "share seen",
    "policy": "money",
    "advice": "relative benefit of one more run",
    "residuals": "observed minus expected",
}
START = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with counts of a case study and a saved result."""
    folder = tmp_path_factory.mktemp("plot")
    study, counts, certificate = explained.STUDY, explained.COUNTS, explained.certificate()
    pl.write_counts(counts, folder / "counts.parquet")
    pl.write_result(certificate, folder / "result", explained.findings())
    pl.write_result(certificate, folder / "data alone", model=study.model, counts=counts)
    return folder


@pytest.fixture
def run(place, monkeypatch):
    """Return a function that runs the command in that folder: exit code, standard output and error in one line."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "400")

    def run(*arguments):
        ended = plumdp("plot", *arguments)
        return ended.code, ended.out, " ".join(ended.err.split())

    return run


@pytest.mark.night
@pytest.mark.parametrize("kind", WORDS)
def test_every_kind_is_drawn_from_a_saved_result(kind, run, place):
    assert run(kind, "result", "-o", f"{kind}.svg") == (0, f"{kind}.svg\n", "")
    text = (place / f"{kind}.svg").read_text()
    assert text.startswith("<?xml")
    assert WORDS[kind] in text


@pytest.mark.night
@pytest.mark.parametrize("kind", ["ladder", "policy"])
def test_a_model_and_data_give_the_picture_of_the_saved_result_with_and_without_findings(kind, run, place):
    assert run(kind, "result", "-o", f"{kind}-saved.svg")[0] == 0
    for name, arguments in {"new": [STUDY, "counts.parquet"], "again": ["data alone"]}.items():
        assert run(kind, *arguments, "-o", f"{kind}-{name}.svg")[0] == 0
        assert (place / f"{kind}-{name}.svg").read_bytes() == (place / f"{kind}-saved.svg").read_bytes()


@pytest.mark.parametrize("ending", START)
def test_the_name_says_what_is_written(ending, run, place):
    assert run("region", "result", "--at", "p=0.55", "-o", f"x{ending}")[0] == 0
    assert (place / f"x{ending}").read_bytes().startswith(START[ending])


@pytest.mark.slow
def test_data_that_contradict_the_model_end_with_three_where_there_is_nothing_to_draw(run, place):
    study = pl.case_study(STUDY)
    graph = study.model.graph
    high, low = (pl.simulate(study.model, {"p": p}, 2_000, rng=1, max_steps=6).counts for p in ("0.9", "0.2"))
    odd = (graph.state_of_choice() % 2)[graph.choice_of_transition()] == 1
    pl.write_counts(pl.TransitionCounts(graph, np.where(odd, high, low), "adaptive"), place / "bad.parquet")
    code, out, err = run("region", STUDY, "bad.parquet", "-o", "bad.png")
    assert (code, out) == (3, "")
    assert err.startswith("the data reject the model, so that there is no region to draw: the data fit another p")
    assert not (place / "bad.png").exists()
    assert run("policy", STUDY, "bad.parquet", "-o", "bad.png")[0] == 0


def test_misuse_ends_with_a_sentence_and_no_picture(run, place):
    refusals.misused("commands:plot", run)
    assert not (place / "wrong.png").exists()


def test_a_picture_is_replaced_only_by_force_and_has_a_known_ending(run, place):
    (place / "old.png").write_text("old")
    said = "error: old.png already exists; choose another file, or replace it with --force"
    assert run("region", "result", "-o", "old.png") == (2, "", said)
    assert run("region", "result", "-o", "old.png", "--force")[0] == 0
    said = "error: x.jpg: pictures are written as .png, .svg, .pdf; let the name end in one of these"
    assert run("region", "result", "-o", "x.jpg") == (2, "", said)
