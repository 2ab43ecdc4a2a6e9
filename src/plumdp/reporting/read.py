"""Opens saved results: certificate, findings and policy of a folder, checked against their hashes."""

from __future__ import annotations

import csv
import json
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.confidence.sets import Guarantee
from plumdp.data.report import report_from
from plumdp.errors import DataError
from plumdp.model.graph import Graph, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.result.certificate import SCHEMA, Certificate, Status
from plumdp.result.data_quality import DataQuality
from plumdp.result.findings import Findings
from plumdp.result.folder import CERTIFICATE, FINDINGS, POLICY, digest, digest_of_content
from plumdp.result.policy_table import PolicyTable, read_policy
from plumdp.sources import KeptSource

_INFINITE = {"infinity": inf, "-infinity": -inf}
_OPTIONAL: dict[str, Any] = {  # fields that version 0.1 did not write, and what they are then
    "estimate": {}, "estimated_value": None, "gap": {}, "p_value": None, "not_coupled": "", "remark": "", "misfit": 0.0,
    "left_out": "", "not_in_likelihood": "",
    "answer": {},
}  # fmt: skip


def read_result(path: str | Path, model: ParametricMDP | None = None) -> Certificate:
    """Return the certificate in a folder that ``Certificate.save`` or ``plumdp certify -o`` wrote.

    Files that were changed since are refused. With the model that the result is about, its policy can be valued and
    simulated again; without it, the policy can be asked for actions, and written.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, certify, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    >>> certificate = certify(study.model, counts, study.objective)
    >>> with TemporaryDirectory() as folder:
    ...     certificate.save(f"{folder}/result", ladder=False)
    ...     again = read_result(f"{folder}/result")
    >>> again.lower == certificate.lower, again.policy.action(money=10, step=0)
    (True, 'bet5')
    """
    folder = Path(path)
    numbered = numbered_results(folder)
    if numbered:
        raise DataError(f"{folder} holds {len(numbered)} results: read each of them, such as {numbered[0]}")
    content = _read_certificate(folder)
    try:
        policy = _read_policy(folder, content, model)
        return certificate_from(content, policy, _read_findings(folder, content))
    except DataError:
        raise
    except (KeyError, TypeError, ValueError) as error:  # of files without hashes, which anything may be in
        raise DataError(f"{folder} is not a result that this version reads ({type(error).__name__}: {error})") from None


def numbered_results(folder: Path) -> list[Path]:
    """Return the folders 1, 2, … in a folder that hold results, if the folder holds none itself."""
    if (folder / CERTIFICATE).exists() or not folder.is_dir():
        return []
    found = [each for each in folder.iterdir() if each.name.isdecimal() and (each / CERTIFICATE).is_file()]
    return sorted(found, key=lambda each: int(each.name))


def certificate_from(content: dict[str, Any], policy: PolicyTable, findings: Findings | None) -> Certificate:
    """Return the certificate that ``Certificate.to_dict`` made this of."""
    quality = content.get("data_quality")
    findings = findings or Findings(parameters=_box(content))
    return Certificate(
        lower=-inf if content["lower"] is None else _number(content["lower"]),
        upper=inf if content["upper"] is None else _number(content["upper"]),
        policy=policy,
        confidence_set=content.get("confidence_set", content["intervals"]),
        guarantee=Guarantee(content["guarantee"]),
        status=Status(content["status"]),
        assumptions=tuple(content["assumptions"]),
        parameters=_box(content),
        data_quality=None if quality is None else _quality(quality),
        jointly=tuple(content.get("jointly", ())),
        source=KeptSource(findings),
        **{
            name: content[name]
            for name in ("objective", "direction", "confidence", "relaxation", "reason", "solver", "seconds")
        },
        provenance=content["provenance"],
        **{name: content.get(name, default) for name, default in _OPTIONAL.items()},
    )


def _read_certificate(folder: Path) -> dict[str, Any]:
    """Return the content of the certificate's file; one that is not a certificate, or was changed, is refused."""
    file = folder / CERTIFICATE
    if not folder.is_dir() or not file.is_file():
        problem = f"has no {CERTIFICATE}" if folder.is_dir() else "is not a folder"
        raise DataError(f"{folder} {problem}: give the folder of a result, as plumdp certify -o or save() writes it")
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read: {error}") from None
    schema = content.get("schema", SCHEMA) if isinstance(content, dict) else None  # version 0.1 wrote none
    if schema != SCHEMA or "status" not in content or "intervals" not in content:
        raise DataError(f"{file} is not a certificate that this version reads (schema {schema!r}, not {SCHEMA!r})")
    expected = content.get("hashes", {}).get(CERTIFICATE)
    if expected is not None and digest_of_content(content) != expected:
        raise _changed(file)
    return content


def _changed(file: Path) -> DataError:
    return DataError(
        f"{file} was changed after the result was written: its content does not have the hash in {CERTIFICATE}. "
        "Restore it, or certify again"
    )


def _require_unchanged(file: Path, content: dict[str, Any]) -> None:
    expected = content.get("hashes", {}).get(file.name)
    if not file.is_file():
        raise DataError(f"{file} is missing: it is part of the result")
    if expected is not None and digest(file.read_bytes()) != expected:
        raise _changed(file)


def _read_findings(folder: Path, content: dict[str, Any]) -> Findings | None:
    file = folder / FINDINGS
    if FINDINGS not in content.get("hashes", {}) and not file.exists():
        return None  # of version 0.1
    _require_unchanged(file, content)
    return Findings.from_json(file.read_text(encoding="utf-8"))


def _read_policy(folder: Path, content: dict[str, Any], model: ParametricMDP | None) -> PolicyTable:
    """Return the policy, on the graph of the model if that is given."""
    file = folder / POLICY
    _require_unchanged(file, content)
    if model is None:
        return _stand_in(file, content.get("columns"))
    known = content["provenance"].get("model")
    if known is not None and known != model.graph.fingerprint:
        raise DataError(
            f"{folder} is a result about another model: that one has the fingerprint {known[:8]}, this one "
            f"{model.graph.fingerprint[:8]}; give the model that was certified, or none"
        )
    return read_policy(file, model)


def _stand_in(file: Path, kinds: dict[str, str] | None) -> PolicyTable:
    """Return the table of a policy whose model is not there: on a graph in which each state has its action alone."""
    with file.open(newline="", encoding="utf-8") as opened:
        header, *rows = csv.reader(opened)
    texts = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    *variables, action = header
    names = sorted(set(texts[action]))
    number = {name: i for i, name in enumerate(names)}
    each = read_only(np.arange(len(rows) + 1, dtype=np.int32))
    graph = Graph(
        first_choice=each,
        first_transition=each,
        successor=read_only(each[:-1].copy()),
        initial_state=0,
        states={name: read_only(_column(texts[name], (kinds or {}).get(name))) for name in variables},
        action=read_only(np.array([number[name] for name in texts[action]], dtype=np.int32)),
        action_names=tuple(names),
    )
    return PolicyTable(graph, each[:-1])


def _column(texts: list[str], kind: str | None) -> npt.NDArray[Any]:
    """Return the values of a state variable; of version 0.1, which did not write its kind, what they look like."""
    if kind is None:
        is_number = all(text.removeprefix("-").isdecimal() for text in texts)
        kind = "integer" if is_number else "truth" if set(texts) <= {"True", "False"} else "text"
    if kind == "truth":
        return np.array([text == "True" for text in texts])
    return np.array(texts, dtype=np.int32) if kind == "integer" else np.array(texts)


def _quality(content: dict[str, Any]) -> DataQuality:
    report = content["report"]
    return DataQuality(content["steps"], None if report is None else report_from(report))


def _box(content: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {name: (_number(low), _number(high)) for name, (low, high) in content["parameters"].items()}


def _number(value: float | str) -> float:
    return _INFINITE[value] if isinstance(value, str) else value
