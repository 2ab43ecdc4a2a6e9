"""What results print: one text for each kind of answer, few lines, and none of the words that were given up."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

import pytest

import plumdp as pl
from plumdp.base.vocabulary import Status
from plumdp.decisions import improve

GOLDEN = Path(__file__).parents[1] / "texts" / "printed.toml"
STUDY = pl.case_study("betting:5")
FORMER = (
    *("assuming  ", "approximately", "unproved", "not yet known", "nothing certified", "contradicted", "fortune"),
    *("misfit", "announced", "cut off", "elsewhere", "the policy found", "remainder", "opponent", "conflict"),
)
MOST_LINES = 17  # of 100 columns


def learned():
    counts = pl.simulate(STUDY.model, STUDY.true_point, 2_000, rng=1, max_steps=6)
    return pl.learn(STUDY.model, counts, objectives=[STUDY.objective])


KINDS = {
    "value": lambda known: pl.conclude(known, STUDY.objective),
    "given": lambda known: pl.conclude(known, STUDY.objective, policy="bet0"),
    "yes": lambda known: pl.decide(known, 'R{"money"}>=10 [ F "end" ]'),
    "inconclusive": lambda known: pl.decide(known, 'R{"money"}>=11.5 [ F "end" ]'),
    "no": lambda known: pl.decide(known, 'R{"money"}>=20 [ F "end" ]'),
    "difference": lambda known: pl.difference(known, STUDY.objective, "bet0", "uniform", names=("caution", "chance")),
    "undecided": lambda known: replace(KINDS["difference"](known), lower=-0.3, upper=0.1),
    "same": lambda known: pl.difference(known, STUDY.objective, "bet0", "bet0"),
    "gain": lambda known: improve(known, STUDY.objective, over="uniform"),
}


@pytest.fixture(scope="module")
def printed():
    known = learned()
    return {name: str(make(known)) for name, make in KINDS.items()}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_answer_prints_its_text(name, printed):
    """``python tests/unit/test_printed.py`` writes the texts anew: read what changed."""
    assert printed[name] == tomllib.loads(GOLDEN.read_text(encoding="utf-8"))[name].strip("\n")


def test_claims_come_first_and_no_former_word_is_printed(printed):
    for name, text in printed.items():
        assert re.match(r"(Certified|Inconclusive|Yes|No|Model rejected)\b", text), name
        assert not [word for word in FORMER if word in text], name


@pytest.mark.parametrize("name", KINDS)
def test_an_answer_has_few_lines(name, printed):
    lines = [part for line in printed[name].splitlines() for part in wrap(line, 100, subsequent_indent=" " * 18)]
    assert len(lines) <= MOST_LINES


def test_a_rejected_model_has_no_interval():
    one = pl.conclude(learned(), STUDY.objective)
    claim = replace(one.claim, status=Status.REJECTED, claims_bounds=False, contradiction="82 log rows do not fit")
    text = str(replace(one, claim=claim))
    assert text.startswith("Model rejected: 82 log rows do not fit. Nothing is claimed.")
    assert "not certified" not in text


if __name__ == "__main__":
    known = learned()
    texts = [f'{name} = """\n{make(known)}\n"""\n' for name, make in KINDS.items()]
    GOLDEN.write_text(
        "# What is printed, by kind of answer: python tests/unit/test_printed.py\n"
        + "\n".join(text.replace("\\", "\\\\") for text in texts),
        encoding="utf-8",
    )
