"""Small results with witnesses, and changes of their files with hashes that fit again."""

import json
from functools import cache
from pathlib import Path

import plumdp
from plumdp.base.json_values import digest
from plumdp.data.counts import TransitionCounts
from plumdp.model.language.threshold import parse_threshold
from plumdp.model.question import ask
from plumdp.result.folder import digest_of_content
from plumdp.verifying.witness import propose_witness
from plumdp_verify.check import check_claim, exactly
from plumdp_verify.claim import read_claim
from plumdp_verify.reading import Part, Rejected
from plumdp_verify.report import Report

PROPERTY, COST = 'Pmax=? [ F "goal" ]', 'Rmin=? [ F "end" ]'


@cache
def small_model():
    """A walk with two parameters, in which one of two actions goes back, and an end with or without success."""
    p, q = plumdp.parameters("p", "q")

    def step(state):
        x = state.x
        if x in (0, 4):
            return {"stay": [(1, state)]}
        near = [(p, state._replace(x=x + 1)), (1 - p, state._replace(x=x - 1))]
        twice = [(p * q, state._replace(x=x + 1)), (p * (1 - q), state), (1 - p, state._replace(x=x - 1))]
        return {"near": near, "twice": twice}

    space = plumdp.ParameterSpace.box({"p": (0.1, 0.9), "q": (0.1, 0.9)})
    return plumdp.explore(
        step,
        {"x": 2},
        space=space,
        labels={"goal": lambda s: s.x == 4, "end": lambda s: s.x in (0, 4)},
        rewards={"": lambda s: 1.0 if s.x not in (0, 4) else 0.0},
    )


@cache
def small_counts(runs=20_000, seed=3):
    return plumdp.simulate(small_model(), {"p": 0.6, "q": 0.3}, runs, rng=seed, max_steps=200)


@cache
def worn():
    """A machine that wears until it is down, and is repaired, with rewards of both signs."""
    p, q = plumdp.parameters("p", "q")

    def step(state):
        if state.x == 3:
            return {"repair": [(q, state._replace(x=0)), (1 - q, state)]}
        after = state._replace(x=state.x + 1)
        return {"run": [(p, after), (1 - p, state)], "slow": [(p / 2, after), (1 - p / 2, state)]}

    space = plumdp.ParameterSpace.box({"p": (0.1, 0.9), "q": (0.1, 0.9)})
    rewards = {"": lambda s: -1.0 if s.x == 3 else 1.0}
    return plumdp.explore(step, {"x": 0}, space=space, labels={"down": lambda s: s.x == 3}, rewards=rewards)


@cache
def worn_counts():
    return plumdp.simulate(worn(), {"p": 0.3, "q": 0.4}, 500, rng=1, max_steps=50)


def stages():
    """Two steps, of which no run takes one twice: one that is a product, and one of another coin."""
    p, q = plumdp.parameters("p", "q")

    def step(s):
        if s.at == 0:
            return {
                "go": [
                    (p * q, s._replace(at=1, won=2)),
                    (p * (1 - q), s._replace(at=1, won=1)),
                    (1 - p, s._replace(at=1)),
                ]
            }
        if s.at == 1:
            return {"go": [(q, s._replace(at=2, won=s.won + 1)), (1 - q, s._replace(at=2))]}
        return {"stay": [(1, s)]}

    space = plumdp.ParameterSpace.box({"p": (0.1, 0.9), "q": (0.1, 0.9)})
    return plumdp.explore(step, {"at": 0, "won": 0}, space=space, labels={"goal": lambda s: s.won >= 2})


def coins():
    """Two coins that are thrown at once, three times, whose sum is worth most: two corners of the set are alike."""
    p, q = plumdp.parameters("p", "q")

    def step(s):
        if s.n >= 3:
            return {"stay": [(1, s._replace(n=4, side=0))]}
        row = ((1 - p) * (1 - q), p * (1 - q), p * q, (1 - p) * q)
        return {"throw": [(f, s._replace(n=s.n + 1, side=i)) for i, f in enumerate(row)]}

    space = plumdp.ParameterSpace.box({"p": (0.1, 0.9), "q": (0.1, 0.9)})
    return plumdp.explore(step, {"n": 0, "side": 0}, space=space, rewards={"": lambda s: (0.0, 1.0, 2.0, 1.0)[s.side]})


def witnessed(
    folder: Path, text=PROPERTY, *, model=None, counts: TransitionCounts | None = None, keeps_data=False, **options
):
    """Save a certificate with its witness, and return it."""
    model, counts = model or small_model(), counts if counts is not None else small_counts()
    asked = ask(text, model, memory=options.pop("memory", True))
    concluding = {name: options.pop(name) for name in ("relaxation", "policy") if name in options}
    learned = plumdp.learn(model, counts, objectives=[asked], witness=True, **options)
    certificate = plumdp.conclude(learned, asked, **concluding)
    data = {"model": model, "counts": learned.counts} if keeps_data else {}
    plumdp.write_result(certificate, folder, witness=propose_witness(learned, certificate)[0], **data)
    return certificate


def compared(
    folder: Path,
    first="near",
    second="twice",
    text=PROPERTY,
    *,
    of="first",
    model=None,
    counts=None,
    keeps_data=False,
    **options,
):
    """Save the certificate of one of two policies with the comparison to the other and a witness; return both."""
    model, counts = model or small_model(), counts if counts is not None else small_counts()
    learned = plumdp.learn(model, counts, objectives=[text])
    found = plumdp.difference(learned, text, first, second, **options)
    certificate = found.with_comparison(of)
    data = {"model": model, "counts": learned.counts} if keeps_data else {}
    plumdp.write_result(certificate, folder, witness=propose_witness(learned, certificate)[0], **data)
    return found


def answered(folder: Path, text, *, model=None, counts=None, keeps_data=False):
    """Save the certificate with the answer to a threshold and a witness, and return the answer."""
    model, counts = model or small_model(), counts if counts is not None else small_counts()
    question = parse_threshold(text, model)
    learned = plumdp.learn(model, counts, objectives=[question.objective], witness=True)
    answer = plumdp.decide(learned, question)
    data = {"model": model, "counts": learned.counts} if keeps_data else {}
    plumdp.write_result(answer.answered, folder, witness=propose_witness(learned, answer.answered)[0], **data)
    return answer


def pieces_of(witness):
    """Return the parts of a cube in a witness, larger ones first."""
    found = [witness["pieces"]["tree"]]
    for each in found:
        found += each.get("halves", [])[1:]
    return found


def functions_of(witness, place=0):
    """Return the functions of a chain on the first part that has some."""
    return next(each for each in pieces_of(witness) if "values" in each)["values"][place]


def brackets_of(witness, place=0):
    """Return the multipliers of a bracket on all parts."""
    return [each["brackets"][place] for each in pieces_of(witness) if "brackets" in each]


def cut_end(end, place=0):
    """Return a function to the multipliers of an end, on the first part that some cut matters for."""
    return lambda witness: next(each[end] for each in brackets_of(witness, place) if each[end]["multipliers"])


def rewrite(folder: Path, change_witness=None, change_certificate=None):
    """Change the content of files, and write hashes that fit."""
    witness, certificate = (json.loads((folder / name).read_text()) for name in ("witness.json", "certificate.json"))
    if change_witness is not None:
        change_witness(witness)
        (folder / "witness.json").write_text(json.dumps(witness))
    if change_certificate is not None:
        change_certificate(certificate)
    rehash(folder, certificate)


def rehash(folder: Path, certificate=None):
    certificate = certificate or json.loads((folder / "certificate.json").read_text())
    names = [name for name in certificate["hashes"] if name != "certificate.json"]
    certificate["hashes"] = {name: digest((folder / name).read_bytes()) for name in names}
    certificate["hashes"]["certificate.json"] = digest_of_content(certificate)
    (folder / "certificate.json").write_text(json.dumps(certificate))


def verdict(witness, certificate) -> tuple[str, str]:
    """Return the layer that breaks and the message, both empty if none does."""
    try:
        with exactly():
            part = Part(witness, "witness.json")
            check_claim(read_claim(Part(certificate, "certificate.json"), part), part, Report())
    except Rejected as error:
        return error.layer or "files", str(error)
    return "", ""
