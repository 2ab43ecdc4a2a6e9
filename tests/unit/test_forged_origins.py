"""Results of another model or other data than the reader's, whose writer made every file by the book and signed it.

``verify`` alone accepts them, as all in them fits together. One's own model and log tell them apart.
"""

import shutil
import zipfile
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from command_line import plumdp as command
from support.verified_results import PROPERTY, rehash, rewrite, small_counts, small_model, witnessed

import plumdp
from plumdp.data.counts import TransitionCounts
from plumdp.decisions import verify
from plumdp.learning.learn import TESTS
from plumdp.result.data_file import write_data
from plumdp.verifying.look import Own
from plumdp.verifying.verify import look_again

pytestmark = pytest.mark.slow


@cache
def other_model(twice="p * q", stay="p * (1 - q)", goal=4, start=2, pays=1.0, **bounds):
    """The model of ``small_model``, but for what is given."""
    p, q, r = plumdp.parameters("p", "q", "r")
    up, still = (eval(text, {"p": p, "q": q, "r": r}) for text in (twice, stay))

    def step(s):
        if s.x in (0, 4):
            return {"stay": [(1, s)]}
        more, less = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
        return {"near": [(p, more), (1 - p, less)], "twice": [(up, more), (still, s), (1 - up - still, less)]}

    space = plumdp.ParameterSpace.box({"p": (0.1, 0.9), "q": (0.1, 0.9)} | bounds)
    labels = {"goal": lambda s: s.x == goal, "end": lambda s: s.x in (0, 4)}
    rewards = {"": lambda s: pays * (s.x not in (0, 4))}
    return plumdp.explore(step, {"x": start}, space=space, labels=labels, rewards=rewards)


def by_model(text=PROPERTY, *, keeps_data=False, **parts):
    """Write a result by another model, from runs of that one."""

    def write(folder):
        model = other_model(**parts)
        counts = plumdp.simulate(model, {"p": "0.6", "q": "0.3"}, 2_000, rng=3, max_steps=200)
        witnessed(folder, text, model=model, counts=counts, keeps_data=keeps_data)

    return write


def by_counts(counts, **options):
    """Write a result by other counts."""
    return lambda folder: witnessed(folder, counts=counts, keeps_data=True, **options)


def later_bets():
    """Moments that were chosen after the data had been looked at."""
    counts = small_counts()
    lengths = tuple(0.9 * length for length in counts.pilot.lengths)
    return replace(counts, pilot=replace(counts.pilot, lengths=lengths))


@cache
def honest():
    folder = TemporaryDirectory()  # which is removed with the last reference
    witnessed(Path(folder.name) / "result", keeps_data=True)
    return folder


def changed(*, witness=None, certificate=None, data=None):
    """Write an honest result, and change it."""

    def write(folder):
        shutil.copytree(Path(honest().name) / "result", folder)
        if data is not None:
            data(folder / "data.npz")
        rewrite(folder, witness, certificate)

    return write


def one_more_reward(witness):
    """Say that rewards were looked at whose mean is a parameter."""
    seen = {name: [0, "0", "0"] for name in witness["rows"][0]["seen"]}
    witness["rewards"] = [{"class": 0, "member": 0, "seen": seen}]


def spare_error(witness):
    """Divide the error in another way, of which less is spent."""
    shares = witness["budget"]["shares"]
    shares["drifts"] = str(Fraction(shares["drifts"]) / 2)


def another_model_beside(path):
    write_data(
        path,
        replace(small_model(), labels={**small_model().labels, "goal": ~small_model().labels["goal"]}),
        small_counts(),
    )


def zeros(path):
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("zeros.npy", bytes(2**25))


def two_actions(folder):
    """Put another action before the one that was certified, which is the first or the last that a program finds."""
    witnessed(folder, confidence_set="interval")
    first, *lines = (folder / "policy.csv").read_text().splitlines()
    before = [line.replace("near", "twice,near").replace("stay", "stay,stay") for line in lines]
    (folder / "policy.csv").write_text("\n".join([f"{first},action", *before]))
    rehash(folder)


@cache
def two_coins():
    """Runs in which the parameter p is 0.6 for one action, and 0.47 for the other."""
    model = other_model("r * q", "r * (1 - q)", r=(0.1, 0.9))
    drawn = plumdp.simulate(model, {"p": "0.6", "q": "0.3", "r": "0.47"}, 3_000, rng=1, max_steps=200)
    return TransitionCounts(small_model().graph, drawn.counts, "adaptive")


def untested(folder):
    """Claim what follows if the model is right, without the test that says it is not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TESTS, "model", lambda learned, fixed: learned)
        witnessed(folder, counts=two_coins(), confidence_set="interval")


OWN = {"small": (small_model, small_counts), "two coins": (small_model, two_coins)}
FORGERIES = {  # what the forger writes, whose model and log the reader has, and what is said in which layer
    "a narrower space": (by_model(p=("0.59", "0.61"), keeps_data=True), "small", "model", "space: that of the model"),
    "a narrower space without data": (by_model(p=("0.59", "0.61")), "small", "model", "space: that of the model is"),
    "another row off the chain": (
        by_model(twice="p * (1 - q)", stay="p * q"), "small", "model", "those of the model are others"
    ),
    "a tie off the chain": (by_model(twice="p * p", stay="p * (1 - p)"), "small", "model", "of the model are others"),
    "another target": (by_model(goal=3), "small", "model", "the run is over in one of chain and model"),
    "another start": (by_model(start=3), "small", "model", "the initial state is another one"),
    "other rewards": (by_model('Rmin=? [ F "end" ]', pays=0.5), "small", "model", "the model has another reward"),
    "another model beside the witness": (
        changed(data=another_model_beside), "small", "model", "data.npz: its part 'label 0'"
    ),
    "invented runs": (by_counts(small_counts(seed=4)), "small", "log", "others than those of the data"),
    "no order": (
        by_counts(replace(small_counts(), pilot=None), confidence_set="interval"),
        "small", "log", "the order of the data is 'unknown'",
    ),
    "samples that were planned": (
        by_counts(replace(small_counts(), pilot=None, sampling="independent")), "small", "log", "of the data is"
    ),
    "bets at other moments": (by_counts(later_bets()), "small", "log", "the lengths of the data is"),
    "another division of the error": (changed(witness=spare_error), "small", "log", "the error is divided in another"),
    "values of a reward that there is not": (changed(witness=one_more_reward), "small", "log", "rewards: they are"),
    "data that contradict the model": (untested, "two coins", "log", "these data reject the model"),
    "an archive that unpacks to too much": (changed(data=zeros), "small", "model", "Not verified (model): "),
    "a second action for each state": (two_actions, "small", "model", "its columns are not those of a policy"),
    "another kind of set": (
        changed(certificate=lambda c: c["options"].update(confidence_set="interval")), "small", "log", ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_another_model_or_other_data_than_ones_own_are_found(name, tmp_path):
    write, whose, layer, said = FORGERIES[name]
    write(tmp_path / "result")
    report = verify(tmp_path / "result")
    assert report.broken is None, report.broken
    look_again(tmp_path / "result", report, Own(*(each() for each in OWN[whose])))
    assert report.broken is not None
    assert (report.broken.layer, said in str(report)) == (layer, True), report


def test_a_file_of_defaults_beside_a_result_runs_nothing(tmp_path, monkeypatch):
    """Whoever sends a folder may put a file into it that names code as the model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plumdp.toml").write_text('[verify]\nmodel = "evil.py"\n')
    (tmp_path / "evil.py").write_text('open("ran", "w").close()\n')
    witnessed(tmp_path / "result", confidence_set="interval")
    ended = command("verify", "result")
    assert (ended.code, (tmp_path / "ran").exists()) == (0, False)
