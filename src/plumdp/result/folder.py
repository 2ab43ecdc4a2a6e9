"""Writes results to disk, as a whole or not at all, and tries the place before the work begins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from plumdp.base.edge import is_left, replacing, unwritable
from plumdp.base.errors import DataError, Option, require_kind
from plumdp.base.json_values import digest
from plumdp.data.counts import TransitionCounts, counts_of
from plumdp.data.log import Log
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.result.certificate import Certificate
from plumdp.result.data_file import write_data
from plumdp.result.findings import Findings, require_own

CERTIFICATE, POLICY, RIVAL, FINDINGS = "certificate.json", "policy.csv", "rival.csv", "findings.json"
DATA, REPORT, WITNESS = "data.npz", "report.html", "witness.json"


def write_result(
    certificate: Certificate,
    path: str | Path,
    findings: Findings | None = None,
    *,
    model: ParametricMDP | None = None,
    counts: TransitionCounts | Log | None = None,
    witness: str = "",
    force: bool = False,
) -> None:
    """Write a certificate and its policy to a new folder, which ``read_result`` opens again.

    Parameters
    ----------
    certificate
        What is written.
    path
        The folder.
    findings
        What ``explain`` returned, if it was asked: kept as well.
    model, counts
        What the certificate follows from, kept as well, so that ``plumdp report`` can explain the result later.
    witness
        What ``decisions.make_witness`` returned: kept as well, so that others can check the result.
    force
        Replace a folder that holds an earlier result.

    Raises
    ------
    DataError
        If the folder is there already, and ``force`` is not given.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, certify, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    >>> with TemporaryDirectory() as folder:
    ...     write_result(certify(study.model, counts, study.objective), Path(folder) / "result")
    ...     sorted(file.name for file in (Path(folder) / "result").iterdir())
    ['certificate.json', 'policy.csv']
    """
    require_kind(certificate, Certificate, "write_result takes a certificate first")
    if findings is not None:
        require_kind(findings, Findings, "write_result takes findings, which explain returns, after the path")
        require_own(certificate, findings)
    if (model is None) != (counts is None):
        raise DataError("model and counts are kept together: give both, or neither")
    data = None
    if model is not None and counts is not None:
        require_model("write_result", model)
        data = model, counts_of(counts)
        sizes = [certificate.rests_on.provenance.get(name) for name in ("expressions", "steps")]
        if sizes != [model.fingerprint, f"{data[1].total}"]:
            raise DataError("the certificate rests on another model or other counts: give what was certified")
    write_results([(certificate, findings)], path, data=data, witnesses=[witness] if witness else (), force=force)


def write_results(
    results: Sequence[tuple[Certificate, Findings | None]],
    path: str | Path,
    *,
    data: tuple[ParametricMDP, TransitionCounts] | None = None,
    witnesses: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Write certificates, their findings and the data to a new folder; several to folders 1, 2, … in it.

    If there are witnesses (see ``make_witness``), there is one for each certificate, empty if it has none.

    The files are prepared in a folder beside it, which then gets its name: a crash leaves the old result, or none. Each
    certificate carries hashes of all files, beside those of the counts and of the model.
    """
    target = Path(path)
    require_folder(target, force=force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(target, error) from None
    with replacing(target) as prepared:
        for number, (certificate, findings) in enumerate(results, start=1):
            folder = prepared if len(results) == 1 else prepared / f"{number}"
            folder.mkdir(parents=True)
            if witnesses and witnesses[number - 1]:
                (folder / WITNESS).write_text(witnesses[number - 1], encoding="utf-8", newline="\n")
            _write_files(certificate, findings, data, folder)


def require_folder(path: str | Path, *, force: bool = False) -> None:
    """Refuse a place at which no new folder for a result can be made."""
    target = Path(path)
    if target.is_dir():
        others = _others(target)
        if others:
            raise DataError(f"{target} holds other files than a result ({others[0]}); name another folder")
        if not force:
            raise DataError(
                f"{target} already exists; choose another folder, or replace it with ", Option("force", True)
            )
    elif target.exists():
        raise DataError(f"{target} is a file; name a folder for the result")
    _try(target, next(parent for parent in target.absolute().parents if parent.exists()))


def _others(folder: Path) -> list[str]:
    """Return the names in a folder that belong to no result."""
    parts = {each.name: each for each in folder.iterdir() if each.name.isdecimal() and each.is_dir()}
    inside = [f"{name}/{file.name}" for name, part in parts.items() for file in part.iterdir()]
    outside = [file.name for file in folder.iterdir() if file.name not in parts and not is_left(file.name)]
    ours = (CERTIFICATE, POLICY, RIVAL, FINDINGS, DATA, REPORT, WITNESS)
    return sorted(name for name in (*outside, *inside) if name.rpartition("/")[2] not in ours)


def require_file(path: str | Path) -> None:
    """Refuse a place at which no file can be written."""
    target = Path(path)
    if target.is_dir():
        raise DataError(f"{target} is a folder; name a file in it")
    if not target.absolute().parent.exists():
        raise DataError(f"{target}: there is no folder {target.parent}; make it first")
    _try(target, target.absolute().parent)


def _try(target: Path, folder: Path) -> None:
    """Write a file without a name to the folder."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise unwritable(target, error) from None


def _write_files(
    certificate: Certificate,
    findings: Findings | None,
    data: tuple[ParametricMDP, TransitionCounts] | None,
    folder: Path,
) -> None:
    certificate.policy.to_csv(folder / POLICY)
    if certificate.comparison.rival is not None:
        certificate.comparison.rival.to_csv(folder / RIVAL)
    if findings is not None:
        (folder / FINDINGS).write_text(findings.to_json() + "\n", encoding="utf-8")
    if data is not None:
        write_data(folder / DATA, *data)
    columns = {name: column_kind(values.dtype) for name, values in certificate.policy.columns().items()}
    content = certificate.to_dict() | {"columns": columns}
    hashes = {file.name: digest(file.read_bytes()) for file in sorted(folder.iterdir())}
    hashes |= {CERTIFICATE: digest_of_content(content)}
    text = json.dumps({**content, "hashes": hashes}, indent=2, ensure_ascii=False) + "\n"
    (folder / CERTIFICATE).write_text(text, encoding="utf-8")


def column_kind(kind: Any) -> str:
    """Return the type of a column of the policy's file in words, so that it is read as it was written."""
    return {"b": "truth", "i": "integer", "f": "share"}.get(kind.kind, "text")


def digest_of_content(content: dict[str, Any]) -> str:
    """Return the hash of a JSON object, whatever its layout: of everything but its ``hashes``, which hold this one."""
    content_hashed = {name: value for name, value in content.items() if name != "hashes"}
    return digest(json.dumps(content_hashed, sort_keys=True, separators=(",", ":")).encode())
