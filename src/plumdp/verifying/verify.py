"""Verifies the folder of a result with the checker, and writes the checker as one file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from flint import fmpq

from plumdp.base.errors import DataError, ModelError
from plumdp.base.vocabulary import Assumption
from plumdp.data.counts import TransitionCounts
from plumdp.data.quality import DataQuality
from plumdp.model.parametric import ParametricMDP
from plumdp.result.data_file import difference
from plumdp.result.folder import CERTIFICATE, DATA, WITNESS
from plumdp.verifying.look import Look, NotCompared, Own
from plumdp.verifying.second_look import (
    check_data,
    check_directions,
    check_model,
    check_settings,
    check_words,
    has_bets,
)
from plumdp.verifying.set_proof import shares_part
from plumdp_verify import check, counts
from plumdp_verify.chain import Chain, Step
from plumdp_verify.intervals import check_once
from plumdp_verify.polynomials import parse
from plumdp_verify.reading import Part, Rejected, require
from plumdp_verify.report import Report

_MAIN = "import sys\n\nfrom plumdp_verify.__main__ import main\n\nsys.exit(main(sys.argv[1:]))\n"


_PROBLEMS = (
    *(DataError, ModelError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError),
    *(AttributeError, StopIteration),  # of options that are something else than they should be
)
Check = Callable[[Look], None]


def verify(path: str | Path) -> Report:
    """Return which layers of the proof in the folder of a result hold, from its files to its printed sentence.

    Parameters
    ----------
    path
        The folder of a result that was saved with a witness.

    Returns
    -------
    Report
        What holds, what does not, and what is trusted; nothing that made the result is used.

    Examples
    --------
    >>> print(verify("no-such-folder"))
    Rejected (files): no-such-folder is not a folder with a result.
    """
    return check.verify(Path(path))


def look_again(path: str | Path, report: Report, own: Own | None = None) -> None:
    """Add layers to a report of a result that holds: its model, counts, bets and trials, each compared with others.

    The model and the counts are one's own, or else those in the folder of the result.
    """
    if report.broken is not None:
        return
    look = Look(Path(path), own)
    name = "data" if own is None else "model"
    try:
        settled = check_words(look) if own is not None or look.saved is not None else []
        report.trusted = [text for text in report.trusted if own is None or text not in settled]
        for name, check_layer in _layers(look, report).items():
            check_layer(look)
            report.hold(name)
    except Rejected as error:
        error.layer = name
        report.broken = error
    except _PROBLEMS as error:
        report.broken = NotCompared(str(error), name)
    except MemoryError:
        report.broken = NotCompared("there is not enough memory", name)


def _layers(look: Look, report: Report) -> dict[str, Check]:
    """Return the layers that there are files for, in the order in which each may rest on those before."""
    counts = None if look.own is None else look.own.counts
    layers: dict[str, Check] = {} if look.own is None else {"model": check_model}
    if counts is not None:
        layers["log"] = partial(_check_log, counts=counts)
    elif look.has_counts:
        layers["data"] = check_data
    if look.has_counts and has_bets(look):
        if counts is not None or look.is_prespecified:
            layers["directions"] = check_directions
        else:
            report.unchecked.append("the directions of bets (what was pre-specified has no text)")
    if (look.own is not None or look.has_counts) and has_trials(look):
        layers["trials"] = check_trials
    return layers


def _check_log(look: Look, *, counts: TransitionCounts) -> None:
    """Require that counts, and all that was fixed before they were looked at, are what one's own log leads to."""
    learned = look.learned
    require(learned.conflict is None, f"these data reject the model: {learned.conflict}")
    contradiction = DataQuality(learned.counts.total, learned.counts.report).contradiction
    require(not contradiction, f"these data reject the model: {contradiction}")
    check_data(look)
    differs = [difference(look.folder / DATA, look.model, each) for each in (counts, learned.counts) if look.saved]
    require("" in (differs or [""]), f"{DATA}: the counts in it are others than those of the log")
    same = look.witness["budget"]["shares"] == shares_part(learned.budget)
    require(same, "the error is divided in another way than by the options of the certificate")
    _check_assumptions(look)
    check_settings(look)


def _check_assumptions(look: Look) -> None:
    """Require that all assumptions about one's own log are there, in full and in brief; the first may have a note."""
    mine = look.learned.assumptions_about(rewards=look.question().objective.cap > 1)
    told = enumerate(zip(look.certificate["assumptions"], look.certificate["in_brief"], strict=False))
    kept = [(text if i else text[: len(mine[0])], brief) for i, (text, brief) in told]
    missing = next((each for each in zip(mine, Assumption.in_brief(mine), strict=True) if each not in kept), None)
    require(missing is None, f"{CERTIFICATE}: an assumption is missing, or is another one in brief: {missing}")


def write_checker(path: str | Path) -> None:
    """Write the checker as one file, which runs without plumdp: ``python verify.pyz RESULT``; it needs python-flint."""
    source = Path(check.__file__).parent
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        files = {f"plumdp_verify/{file.name}": file.read_text(encoding="utf-8") for file in sorted(source.glob("*.py"))}
        for name, content in {"__main__.py": _MAIN, **files}.items():
            archive.writestr(ZipInfo(name), content)  # without a date: the same source is the same file


def has_trials(look: Look) -> bool:
    """Return whether some interval is that of an event which runs try at most once."""
    intervals = (look.witness.get("set") or {}).get("intervals")
    return intervals is not None and any(item["once"] for item in intervals["list"])


def check_trials(look: Look) -> None:
    """Require that no run of the model, whatever its policy, tries an event twice that is said to be tried once."""
    witness = Part(look.witness, WITNESS)
    check_once(Part(witness["set"]["intervals"].value, "the model"), counts.read_data(witness), _all_runs(look.model))


def _all_runs(model: ParametricMDP) -> Chain:
    """Return a chain with the paths of all policies: from each state to its choices, and from these to successors."""
    graph, names = model.graph, list(model.space.names)
    expressions = [parse(str(f), names) for f in model.expressions.polynomials]
    successor, expression = graph.successor.tolist(), model.expression.tolist()
    steps: list[Step | None] = [
        Step({}, list(range(graph.n_states + first, graph.n_states + last)), [])
        for first, last in pairwise(graph.first_choice.tolist())
    ]
    steps += [
        Step({}, successor[first:last], expression[first:last])
        for first, last in pairwise(graph.first_transition.tolist())
    ]
    return Chain("total", False, fmpq(1), graph.initial_state, expressions, steps, {})
