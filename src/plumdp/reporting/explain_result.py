"""Explains a saved result: by the findings in its folder, or again from the model and the counts in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plumdp.base.errors import DataError, require_path
from plumdp.base.progress import working
from plumdp.explaining.again import learn_again
from plumdp.explaining.explain import explain
from plumdp.reporting.read import read_findings, read_result
from plumdp.result.certificate import Certificate
from plumdp.result.data_file import read_data
from plumdp.result.findings import Findings
from plumdp.result.folder import DATA


@working("explaining the result")
def explain_result(path: str | Path, *, parts: Sequence[str] = ()) -> tuple[Certificate, Findings]:
    """Return the certificate in a folder and its findings: those that were saved, or new ones.

    New ones are made as ``explain`` makes them, from the model and the counts in the folder. A certificate whose bounds
    do not follow from these is refused.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, certify, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> with TemporaryDirectory() as folder:
    ...     certify(study.model, counts, study.objective).save(f"{folder}/result", model=study.model, counts=counts)
    ...     certificate, findings = explain_result(f"{folder}/result", parts=["policy"])
    >>> findings.variables
    ('money', 'step')
    """
    require_path("explain_result", path)
    folder = Path(path)
    certificate, findings = read_result(folder), read_findings(folder)
    if findings is not None:
        return certificate, findings
    if not (folder / DATA).is_file():
        raise DataError(
            f"{folder} has no findings, and neither model nor counts that they could be made from: certify again with "
            "plumdp certify -o, or save what explain(learned, certificate) returns"
        )
    model, counts = read_data(folder / DATA)
    certificate = read_result(folder, model)
    return certificate, explain(learn_again(model, counts, certificate), certificate, parts=parts)
