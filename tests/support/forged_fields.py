"""Forgeries by rule: each field that a sentence of ``verify`` uses, turned into its opposite, in results of all kinds.

Whoever forges writes hashes that fit. A forgery changes one field, or exchanges two words in all texts of a result, so
that they agree with each other, or hands over other policies, or adds an answer to a result that had none.
"""

import csv
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from support.verified_results import answered, compared, rehash, witnessed, worn, worn_counts

import plumdp
from plumdp.base.errors import DataError
from plumdp.decisions import make_witness, verify
from plumdp.model.language.property import parse_property
from plumdp.result.show import as_text
from plumdp.verifying.look import Own
from plumdp.verifying.verify import look_again

WON, COST, TURN = 'Pmax=? [ F "won" ]', 'R{"cost"}min=? [ C<=2 ]', "Rmin=? [ C<=5 ]"


@cache
def trial():
    """One step with a drug or a placebo, of which either has a chance of its own, and a price."""
    g, b = plumdp.parameters("g", "b")

    def step(s):
        if s.status != "open":
            return {"stay": [(1, s)]}
        won, lost = s._replace(status="won"), s._replace(status="lost")
        return {"drug": [(g, won), (1 - g, lost)], "placebo": [(b, won), (1 - b, lost)]}

    labels = {"won": lambda s: s.status == "won", "over": lambda s: s.status != "open"}
    rewards = {"cost": lambda s: 1.0 if s.status == "lost" else 0.0}
    space = plumdp.ParameterSpace.unit("g", "b")
    return plumdp.explore(step, {"status": "open"}, space=space, labels=labels, rewards=rewards)


@cache
def treated():
    return plumdp.simulate(trial(), {"g": 0.9, "b": 0.2}, 800, rng=1, max_steps=2)


def _given(folder):
    """Save the answer of a policy that was given to a threshold."""
    model, counts = trial(), treated()
    learned = plumdp.learn(model, counts, objectives=[WON], witness=True)
    certificate = plumdp.decide(learned, 'P>=0.5 [ F "won" ]', policy="placebo").answered
    plumdp.write_result(
        certificate, folder, witness=make_witness(learned, certificate), model=model, counts=learned.counts
    )


def _gain(folder):
    learned = plumdp.learn(trial(), treated(), objectives=[WON], witness=True)
    certificate = plumdp.decisions.improve(learned, WON).compared
    plumdp.write_result(
        certificate, folder, witness=make_witness(learned, certificate), model=trial(), counts=learned.counts
    )


def _net_benefit(folder):
    learned = plumdp.learn(trial(), treated(), objectives=[WON, COST], witness=True)
    arms = {"drug": "drug", "placebo": "placebo"}
    found = plumdp.decisions.net_benefit(learned, WON, COST, willingness=(1, 9), strategies=arms)
    certificate = found.strategies[0].cost
    plumdp.write_result(
        certificate, folder, witness=make_witness(learned, certificate), model=trial(), counts=learned.counts
    )


OF_TRIAL: dict[str, Any] = {"model": trial(), "counts": treated(), "keeps_data": True}
OF_WORN: dict[str, Any] = {"model": worn(), "counts": worn_counts(), "keeps_data": True}
IN_EUROS = parse_property(TURN, worn(), unit="€ per month")
KINDS: dict[str, Callable[[Path], Any]] = {
    "value": lambda folder: witnessed(folder, WON, **OF_TRIAL),
    "question": lambda folder: answered(folder, 'P>=0.6 [ F "won" ]', **OF_TRIAL),
    "question of one policy": _given,
    "difference": lambda folder: compared(folder, "drug", "placebo", WON, names=("drug", "placebo"), **OF_TRIAL),
    "gain": _gain,
    "net benefit": _net_benefit,
    "mission": lambda folder: witnessed(folder, "Pmax=? [ (F x=3) & (F x=1) ]", **OF_WORN),
    "unit": lambda folder: witnessed(folder, IN_EUROS, **OF_WORN),
    "difference in a unit": lambda folder: compared(
        folder, "slow", "run", IN_EUROS, names=("slow", "run"), of="second", **OF_WORN
    ),
}
WITH_WORN = ("mission", "unit", "difference in a unit")


def own(kind: str) -> Own:
    """Return the model and the counts of a reader."""
    if kind in WITH_WORN:
        return Own(worn(), worn_counts())
    return Own(trial(), treated())


@cache
def _made(kind: str) -> tuple[Any, Path]:
    folder = TemporaryDirectory()  # which is removed with the last reference
    KINDS[kind](Path(folder.name) / "result")
    return folder, Path(folder.name) / "result"


def honest_files(kind: str) -> dict[str, Any]:
    """Return the content of the files of a result that a forger may change."""
    folder = _made(kind)[1]
    found = {name: json.loads((folder / name).read_text()) for name in ("certificate.json", "witness.json")}
    return found | {
        name: (folder / name).read_text() for name in ("policy.csv", "rival.csv") if (folder / name).exists()
    }


FIELDS = (  # of both files, where both have them; "*" is each part of a list or an object
    *("objective", "direction", "lower", "upper", "confidence", "status", "reason", "guarantee"),
    *("unit", "assumptions", "options policy", "options memory", "options objectives", "options confidence_set"),
    *("options practice", "answer question", "answer verdict", "answer about", "answer limit", "in_brief *"),
    *("comparison names", "comparison margin", "comparison policy", "comparison first *"),
    *("comparison second *", "comparison difference *", "format", "parameters", "data order", "data sampling"),
    *("data lengths *", "budget error", "budget shares *", "classes *", "rows *", "space *"),
    *(f"{part}chain {name}" for part in ("", "comparison ") for name in (
        *("kind", "complement", "discount", "initial", "target", "avoid", "expressions", "step", "states *", "rows *"),
    )),
    *("set likelihoods", "set intervals", "set bets"),
)  # fmt: skip
WORDS = (  # exchanged, as words
    *(("max", "min"), ("at least", "at most"), ("larger", "smaller"), ("more", "less"), ("yields", "costs")),
    *(("given", "found"), ("first", "second"), ("Yes", "No"), ("yes", "no"), ("F", "G"), ("drug", "placebo")),
    *(("slow", "run"), ("certified", "inconclusive"), ("the recommended policy", "practice"), (">=", "<=")),
    *(
        ("this policy has", "the value is"),
        ("this policy has", "the recommended policy has"),
        ("€ per month", "$ per day"),
    ),
    *(
        ("the recommended policy has", "the value is"),
        ("The policy's value", "The value"),
        ("max=", "="),
        ("min=", "="),
    ),
    *(("planned", "open"), ("trajectories", "adaptive"), ("99.9 %", "99.99 %"), ("is better", "is worse")),
    *(("no policy has", "the value is at most"), ("Inconclusive", "Yes"), ("C<=5", "C<=1"), ("C<=2", "C")),
)


class Forgery(NamedTuple):
    """A change of a kind of result."""

    kind: str
    field: str
    change: str
    files: dict[str, Any]


def _opposites(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values that a field may be turned into."""
    if isinstance(value, bool):
        yield "not", not value
    elif isinstance(value, (int, float)):
        yield from (("more", value * 1.01 + (value == 0)), ("less", value * 0.99 - (value == 0)), ("negative", -value))
    elif isinstance(value, str):
        for pair in WORDS:
            yield " / ".join(pair), exchanged(value, *pair)
        yield from (("nothing", ""), ("more", f"{value} surely"))
    elif isinstance(value, list):
        yield from (("reversed", value[::-1]), ("shorter", value[1:]), ("nothing", []), ("more", [*value, 0]))
    elif value is None:
        yield from (("a number", 0), ("a list", []))
    elif isinstance(value, dict):
        yield "nothing", {}


def exchanged(value: Any, one: str, other: str) -> Any:
    """Return a value in whose texts two words have changed places."""
    if isinstance(value, str):
        return other.join(part.replace(other, one) for part in value.split(one))
    if isinstance(value, list):
        return [exchanged(each, one, other) for each in value]
    return {name: exchanged(each, one, other) for name, each in value.items()} if isinstance(value, dict) else value


def _places(content: Any, path: list[str]) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of a file that a path leads to, each with its name in what holds it."""
    name, *rest = path
    names = [name] if name != "*" else [*content][:2] if isinstance(content, dict) else [*range(len(content))][:2]
    for each in names:
        if isinstance(content, dict) and each not in content:
            continue
        if not rest:
            yield content, each
        elif isinstance(content[each], (dict, list)):
            yield from _places(content[each], rest)


def _by_field(kind: str, field: str) -> Iterator[Forgery]:
    """Yield forgeries in which one field is another one, in each file that has it."""
    honest = honest_files(kind)
    for n in range(2):
        of_both = [_places(honest[file], path) for file, path in _paths(field)]
        for holder, name in [each for places in of_both for each in [*places][n : n + 1]][:1]:
            for change, value in _opposites(holder[name]):
                files = deepcopy(honest)
                for file, path in _paths(field):
                    for part, place in [*_places(files[file], path)][n : n + 1]:
                        part[place] = deepcopy(value)
                yield Forgery(kind, field, change, files)


def _paths(field: str) -> list[tuple[str, list[str]]]:
    path = field.split()
    return [("certificate.json", path), ("witness.json", ["claim", *path]), ("witness.json", path)]


def _by_words(kind: str, *, of_policy: bool) -> Iterator[Forgery]:
    """Yield results in which words have changed places wherever they are, and perhaps given policies were found."""
    for pair in WORDS:
        files = deepcopy(honest_files(kind))
        files["certificate.json"] = exchanged(files["certificate.json"], *pair)
        files["witness.json"]["claim"] = exchanged(files["witness.json"]["claim"], *pair)
        if of_policy:
            options = files["certificate.json"]["options"]
            options["policy"] = exchanged(options["policy"], "given", "found")
        yield Forgery(kind, "all texts", " / ".join(pair), files)


def _by_names(kind: str) -> Iterator[Forgery]:
    """Yield a comparison that calls each policy by the name of the other one."""
    files = deepcopy(honest_files(kind))
    part = files["certificate.json"].get("comparison")
    if part is not None:
        files["certificate.json"]["comparison"] = exchanged(part, *part["names"])
        yield Forgery(kind, "comparison names", "with their sentence", files)


def _by_policies(kind: str) -> Iterator[Forgery]:
    """Yield results with other policies than those that were certified."""
    honest = honest_files(kind)
    for name in {"policy.csv", "rival.csv"} & honest.keys():
        columns, *rows = csv.reader(honest[name].splitlines())
        i = columns.index("action")
        words = {"drug": "placebo", "placebo": "drug", "slow": "run", "run": "slow"}
        other = [[*row[:i], words.get(row[i], row[i]), *row[i + 1 :]] for row in rows]
        for change, lines in (("other actions", other), ("a row less", rows[1:]), ("another order", rows[::-1])):
            text = "".join(",".join(line) + "\n" for line in (columns, *lines))
            yield Forgery(kind, name, change, honest | {name: text})
    if "rival.csv" in honest:
        yield Forgery(
            kind,
            "policy.csv",
            "exchanged with rival.csv",
            honest | {"policy.csv": honest["rival.csv"], "rival.csv": honest["policy.csv"]},
        )


def _by_answers(kind: str) -> Iterator[Forgery]:
    """Yield results of one policy that answer a question about all of them, with the policy's own numbers."""
    honest = honest_files(kind)
    certificate = honest["certificate.json"]
    value, _, rest = certificate["objective"].partition("=?")
    number, states = certificate["upper"] + 1e-4, rest.strip()
    question = f"{value.removesuffix('max').removesuffix('min')}>={number + 0.01:.4f} {states}"
    for who in ("only", "given", "recommended"):
        for policy in ("found", "given"):
            told = {"question": question, "verdict": "no", "about": who, "limit": number}
            options = certificate["options"] | {"policy": policy}
            files = honest | {"certificate.json": certificate | {"answer": told, "options": options}}
            yield Forgery(kind, "answer", f"{who}, {policy}", files)


def forgeries(kind: str, field: str) -> list[Forgery]:
    """Return the forgeries of a field, or by one of the other rules, that change something."""
    rules: dict[str, Callable[[], Any]] = {
        "all texts": lambda: _by_words(kind, of_policy=False),
        "all texts and the kind of policy": lambda: _by_words(kind, of_policy=True),
        "names": lambda: _by_names(kind),
        "policies": lambda: _by_policies(kind),
        "answers": lambda: _by_answers(kind),
    }
    found = rules.get(field, lambda: _by_field(kind, field))()
    return [each for each in found if each.files != honest_files(kind)]


RULES = ("all texts", "all texts and the kind of policy", "names", "policies", "answers")


def said_of(kind: str, files: dict[str, Any], folder: Path, *, has_log: bool) -> tuple[bool, list[str]]:
    """Return whether a result is verified, and what is read of it, after hashes were written anew.

    What is read is what ``verify`` prints, but for what that trusts or does not check, and the claim in the report. Of
    a reader with a log they are also the lines of assumptions in brief.
    """
    report = verify(written(kind, files, folder))
    look_again(folder, report, own(kind) if has_log else None)
    if report.broken is not None:
        return False, str(report).splitlines()
    try:
        told = plumdp.read_result(folder)
    except DataError as error:
        return False, [str(error)]
    brief = [line for line in as_text(told).splitlines() if "valid if" in line] if has_log else []
    return True, [report.sentence, *report.assumed, report.objective, told.headline, told.decided, *brief]


def written(kind: str, files: dict[str, Any], folder: Path) -> Path:
    """Return a new folder with the files of a result, whose hashes were written anew."""
    folder.mkdir()
    original = _made(kind)[1]
    for name in (each.name for each in original.iterdir()):
        content = files.get(name)
        kept = (original / name).read_bytes() if content is None else None
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_bytes(text.encode() if kept is None else kept)
    rehash(folder, files["certificate.json"])
    return folder
