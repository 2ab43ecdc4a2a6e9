"""Opens saved results: certificate, policy, findings and data of a folder, checked against their hashes.

A result without findings is explained again from the model and the counts in its folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_type_hints

import numpy as np
import numpy.typing as npt

from plumdp.base.edge import MOST_BYTES, read_steadily, read_whole
from plumdp.base.errors import DataError, require_path
from plumdp.base.json_values import Finite, Share, digest, parsed, python_value, read_as
from plumdp.base.progress import working
from plumdp.base.vocabulary import Assumption, Group, Relaxation, Verdict
from plumdp.data.counts import TransitionCounts
from plumdp.data.quality import DataQuality
from plumdp.data.report import report_from
from plumdp.explaining.explain import explain, learn_again
from plumdp.model.graph import Graph, read_only
from plumdp.model.memory import no_choices
from plumdp.model.named_policy import action_column
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import ask, may_narrow, narrowed
from plumdp.result.certificate import SCHEMA, Certificate
from plumdp.result.claim import contradicted
from plumdp.result.data_file import read_data
from plumdp.result.findings import Findings
from plumdp.result.folder import (
    CERTIFICATE,
    DATA,
    FINDINGS,
    POLICY,
    RIVAL,
    digest_of_content,
)
from plumdp.result.policy_readers import read_kept, read_table
from plumdp.result.policy_table import PolicyTable, marks_of, read_policy

_OPTIONS: Mapping[str, Any] = {
    "confidence_set": str,
    "events": bool,  # of versions up to 0.3
    "model_tolerance": Share,
    "objectives": tuple[str, ...],
    "relaxation": Relaxation,
    "precision": Finite,
    "policy": Literal["given", "found"],
    "practice": bool,
    "memory": bool,
    "with_memory": tuple[bool, ...],
    "witness": bool,
    "prespecified": tuple[Mapping[str, str], ...],
}
_ANSWER = {"question": str, "verdict": Verdict, "about": Literal["recommended", "given", "only"], "limit": float | None}
_COMPARISON = {"names": tuple[str, str], "margin": Finite} | dict.fromkeys(
    ("first", "second", "difference"), tuple[float, float]
)
_COMPARED = {"policy": Literal["first", "second"], "assuming": tuple[str, ...], "by_model": bool, "cap": Finite}
_TOLD: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {  # entries that are needed, and others
    "options": ({}, _OPTIONS),
    "answer": (_ANSWER, {}),
    "comparison": (_COMPARISON, _COMPARED),
}
_Columns: TypeAlias = Mapping[str, Literal["truth", "integer", "text", "share"]]


def read_result(path: str | Path, model: ParametricMDP | None = None) -> Certificate:
    """Return the certificate in a folder that ``write_result`` or ``plumdp certify -o`` wrote.

    Parameters
    ----------
    path
        The folder.
    model
        The model that the result is about: with it, the policy can be valued and simulated again.

    Returns
    -------
    Certificate
        What was written.

    Raises
    ------
    DataError
        If files were changed since.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, certify, simulate, write_result
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    >>> certificate = certify(study.model, counts, study.objective)
    >>> with TemporaryDirectory() as folder:
    ...     write_result(certificate, f"{folder}/result")
    ...     again = read_result(f"{folder}/result")
    >>> again.lower == certificate.lower, again.policy.action(money=10, step=0)
    (True, 'bet5')
    """
    require_path("read_result", path)
    folder = Path(path)
    return read_steadily(folder, lambda: _read(folder, model))


def _read(folder: Path, model: ParametricMDP | None) -> Certificate:
    """Return the certificate in a folder, with its policy."""
    numbered = numbered_results(folder)
    if numbered:
        raise DataError(f"{folder} holds {len(numbered)} results: read each of them, such as {numbered[0]}")
    content, certificate = _read_certificate(folder)
    for name in (POLICY, RIVAL, FINDINGS, DATA):
        if name in content["hashes"]:
            _require_unchanged(folder / name, content)
    policy = _read_policy(folder, content, model)
    has_rival = model is not None and RIVAL in content["hashes"]
    rival = read_policy(policy.graph, folder / RIVAL) if has_rival else None
    claim, comparison = replace(certificate.claim, policy=policy), replace(certificate.comparison, rival=rival)
    return replace(certificate, claim=claim, comparison=comparison)


def read_findings(path: str | Path) -> Findings | None:
    """Return the findings that were saved with a result, or None if there are none."""
    file = Path(path) / FINDINGS
    content, _ = _read_certificate(Path(path))
    if FINDINGS not in content["hashes"]:
        return None
    _require_unchanged(file, content)
    try:
        return Findings.from_dict(_parsed(file, _bytes_of(file)))
    except DataError as error:
        raise DataError(f"{file} is not what plumdp writes: {error}") from None


def numbered_results(folder: Path) -> list[Path]:
    """Return the folders 1, 2, … in a folder that hold results, if the folder holds none itself."""
    if (folder / CERTIFICATE).exists() or not folder.is_dir():
        return []
    parts = [each for each in folder.iterdir() if each.name.isdecimal() and (each / CERTIFICATE).is_file()]
    return sorted(parts, key=lambda each: int(each.name))


def _certificate_from(content: dict[str, Any]) -> Certificate:
    """Return the certificate that ``Certificate.to_dict`` made this of, without its policy; others are refused."""
    origin = dict.fromkeys(("model", "counts", "objective"), str)
    read_as({"lower": float | None, "upper": float | None, "columns": _Columns, "provenance": origin}, content)
    lower, upper = python_value(content["lower"]), python_value(content["upper"])
    if (lower is None) != (upper is None) or (lower is not None and lower > upper):
        raise DataError(f"the bounds {lower} and {upper} are not a lower and an upper one")
    told = {name: content.get(name, {}) for name in ("options", "answer", "comparison")}
    if told["comparison"]:
        told["comparison"] = {"margin": 0.0, **told["comparison"]}  # up to 0.3.0 there was none
    for name, (needed, others) in _TOLD.items():
        kinds = {key: kind for key, kind in others.items() if key in read_as({}, told[name], name)}
        read_as({**kinds, **(needed if told[name] else {})}, told[name], name)
    narrower, quality = read_as(str, content.get("narrower", ""), "narrower"), _quality(content.get("data_quality"))
    given: dict[str, Any] = {
        "policy": None,
        "rival": None,
        "lower": -inf if lower is None else lower,
        "upper": inf if upper is None else upper,
        "claims_bounds": lower is not None,
        "contradiction": "",
        "data_quality": quality,
        "narrower": (narrower,) if narrower else (),
        "budget": tuple(read_as(Mapping[str, Fraction], content.get("budget"), "budget").items()),
        "options": told["options"],
        "answer": told["answer"],
        "difference": told["comparison"],
    }
    made = {}
    for name, kind in get_type_hints(Certificate).items():
        own = {each.name: given[each.name] for each in fields(kind) if each.name in given}
        made[name] = read_as(kind, content, given=own, optional=("visible_error", "ground", "rungs", "cap"))
    certificate = _with_briefs(Certificate(**made), content.get("in_brief", []))
    return replace(certificate, claim=contradicted(certificate.claim, certificate.how, certificate.rests_on))


def _with_briefs(certificate: Certificate, in_brief: Any) -> Certificate:
    """Return a certificate whose assumptions have their groups, and what they are in brief, if these were kept."""
    told, lengths = (
        read_as(tuple[tuple[Group, str] | None, ...], in_brief, "in_brief"),
        [*map(len, certificate.assuming)],
    )
    if told and len(told) != sum(lengths):
        raise DataError(f"in_brief has {len(told):,} entries, and there are {sum(lengths):,} assumptions")
    assumed = iter(Assumption.again([*chain(*certificate.assuming)], told))
    alone, more, *of_rungs = (tuple(islice(assumed, n)) for n in lengths)
    rungs = (replace(rung, premises=each) for rung, each in zip(certificate.claim.rungs, of_rungs, strict=True))
    comparison = certificate.comparison
    if more:
        comparison = replace(comparison, difference={**comparison.difference, "assuming": [*more]})
    claim, rests_on = certificate.claim, replace(certificate.rests_on, assumptions=alone)
    return replace(certificate, claim=replace(claim, rungs=tuple(rungs)), rests_on=rests_on, comparison=comparison)


def _quality(content: Any) -> DataQuality | None:
    if content is None:
        return None
    told = read_as({"steps": int, "report": Any}, content, "data_quality")
    return DataQuality(told["steps"], None if told["report"] is None else report_from(told["report"]))


def _read_certificate(folder: Path) -> tuple[dict[str, Any], Certificate]:
    """Return the content of the certificate's file, and the certificate without its policy; others are refused."""
    file = folder / CERTIFICATE
    if not folder.is_dir() or not file.is_file():
        problem = f"has no {CERTIFICATE}" if folder.is_dir() else "is not a folder"
        raise DataError(
            f"{folder} {problem}: give the folder of a result, as plumdp certify -o or write_result writes it"
        )
    content: dict[str, Any] = _parsed(file, _bytes_of(file))
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise DataError(f"{file} is not a certificate that this version reads (schema {schema!r}, not {SCHEMA!r})")
    if "hashes" not in content:
        raise DataError(f"{file} has no hashes, which tell whether a result was changed. Restore it, or certify again")
    try:
        hashes = read_as(Mapping[str, str], content["hashes"], "hashes")
        read_as(dict.fromkeys((CERTIFICATE, POLICY), str), hashes, "hashes")
        if digest_of_content(content) == hashes[CERTIFICATE]:
            return content, _certificate_from(content)
    except DataError as error:
        raise DataError(f"{file} is not what plumdp writes: {error}") from None
    raise _changed(file)


def _changed(file: Path) -> DataError:
    return DataError(
        f"{file} was changed after the result was written: its content does not have the hash in {CERTIFICATE}. "
        "Restore it, or certify again"
    )


def _bytes_of(file: Path) -> bytes:
    try:
        return read_whole(file, 2**31 if file.name == DATA else MOST_BYTES)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None


def _parsed(file: Path, content: bytes) -> Any:
    """Return the value of a file of JSON."""
    try:
        return parsed(content)
    except DataError as error:
        raise DataError(f"{file} cannot be read: {error}") from None


def _require_unchanged(file: Path, content: dict[str, Any]) -> None:
    """Refuse a file whose hash is not that in the certificate."""
    if not file.is_file():
        raise DataError(f"{file} is missing: it is part of the result")
    if digest(_bytes_of(file)) != content["hashes"][file.name]:
        raise _changed(file)


def _read_policy(folder: Path, content: dict[str, Any], model: ParametricMDP | None) -> PolicyTable:
    """Return the policy, on the graph of the model if that is given."""
    file = folder / POLICY
    if model is None:
        return _stand_in(file, content["columns"], content["provenance"])
    known = content["provenance"]["model"]
    if known != model.graph.fingerprint:
        raise DataError(
            f"{folder} is a result about another model: that one has the fingerprint {known[:8]}, this one "
            f"{model.graph.fingerprint[:8]}; give the model that was certified, or none"
        )
    question = ask(content["objective"], model, memory=content.get("options", {}).get("memory", False))
    has_steps = [*content["columns"]][len(model.graph.states)] != action_column(model.graph)
    if has_steps and may_narrow(question):  # the product with all actions is too large, and the file has the policy's
        question = narrowed(question, read_kept(file, model.graph, no_choices(model, question.objective)))
    return read_policy(question.model, file)


def _stand_in(file: Path, kinds: dict[str, str], provenance: dict[str, str]) -> PolicyTable:
    """Return the table of a policy whose model is not there: on a graph in which states have only the actions taken.

    These lead nowhere, by which others see that choices of the model have other numbers.
    """
    texts = read_table(file)
    if texts.keys() != kinds.keys() or not all(len(column) for column in texts.values()):
        raise DataError(f"{file} is not what plumdp writes: it needs rows with the columns {', '.join(kinds)}")
    columns = {name: _column(file, name, values, kinds[name]) for name, values in texts.items()}
    shares = columns.pop([*columns][-1]) if "share" in kinds.values() else None  # of a policy that draws
    actions = columns.pop([*columns][-1])
    is_first = np.ones(len(actions), dtype=np.bool_)
    if shares is not None:  # the rows of a state follow one another
        is_first[1:] = np.any([values[1:] != values[:-1] for values in columns.values()], axis=0)
    names, number = np.unique(actions, return_inverse=True)
    graph = Graph(
        first_choice=read_only(np.append(np.flatnonzero(is_first), len(number)).astype(np.int32)),
        first_transition=read_only(np.zeros(len(number) + 1, dtype=np.int32)),
        successor=read_only(np.zeros(0, dtype=np.int32)),
        initial_state=0,
        states={name: read_only(values[is_first]) for name, values in columns.items()},
        action=read_only(number.astype(np.int32)),
        action_names=tuple(names.tolist()),
    )
    each = np.arange(len(number), dtype=np.int32)
    return PolicyTable(graph, each if shares is None else shares, marks_of(provenance))


def _column(file: Path, name: str, texts: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    """Return the values of a state variable."""
    if kind == "truth":
        return np.array(texts == "True")
    if kind == "text":
        return texts.astype(str)
    try:
        return texts.astype(np.float64 if kind == "share" else np.int32)
    except (ValueError, OverflowError):
        raise DataError(f"{file} is not what plumdp writes: column {name} has values that are not numbers") from None


@working("explaining the result")
def explain_result(path: str | Path, *, parts: Sequence[str] = ()) -> tuple[Certificate, Findings]:
    """Return the certificate in a folder and its findings: those that were saved, or new ones.

    New ones are made as ``explain`` makes them, from the model and the counts in the folder. A certificate whose bounds
    do not follow from these is refused.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, certify, simulate, write_result
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> with TemporaryDirectory() as folder:
    ...     certificate = certify(study.model, counts, study.objective)
    ...     write_result(certificate, f"{folder}/result", model=study.model, counts=counts)
    ...     certificate, findings = explain_result(f"{folder}/result", parts=["policy"])
    >>> findings.variables
    ('money', 'step')
    """
    require_path("explain_result", path)
    folder = Path(path)
    certificate, findings, data = read_steadily(folder, lambda: _opened(folder))
    if findings is not None:
        return certificate, findings
    if data is None:
        raise DataError(
            f"{folder} has no findings, and neither model nor counts that they could be made from: certify again with "
            "plumdp certify -o, or save what explain(learned, certificate) returns"
        )
    return certificate, explain(learn_again(*data, certificate), certificate, parts=parts)


def _opened(folder: Path) -> tuple[Certificate, Findings | None, tuple[ParametricMDP, TransitionCounts] | None]:
    """Return the certificate in a folder with its findings, or else with the model and the counts if there are some."""
    certificate, findings = read_result(folder), read_findings(folder)
    data = read_data(folder / DATA) if findings is None and (folder / DATA).is_file() else None
    return certificate if data is None else read_result(folder, data[0]), findings, data
