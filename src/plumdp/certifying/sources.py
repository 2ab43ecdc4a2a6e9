"""Sources of findings: what a certificate asks for the parts of its report, without importing what makes them.

What makes findings asks the pipeline for further certificates, so that the pipeline cannot import it; and it needs
matplotlib and jinja2, which take time to import. It is imported by name when it is first needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from plumdp.learning.learn import Learned
from plumdp.model.objective import Objective
from plumdp.result.certificate import Certificate
from plumdp.result.findings import Findings, Rung


@dataclass(frozen=True, eq=False)
class LearnedSource:
    """Makes findings from what was learned: the data, and the region of the parameters."""

    learned: Learned
    objective: Objective
    is_given: bool  # whether the policy is the user's own
    precision: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "learned", replace(self.learned, solvers={}))  # copies of the model, made again

    def findings(self, certificate: Certificate) -> Findings:
        """Return the findings without the ladder."""
        found: Findings = _reporting("gather").gather(self.learned, self.objective, certificate)
        return found

    def ladder(self, certificate: Certificate) -> tuple[Rung, ...]:
        """Return what each relaxation certifies; all of the user's own policy, if there is one."""
        policy = certificate.policy if self.is_given else None
        rungs: tuple[Rung, ...] = _reporting("gather").ladder(
            self.learned, self.objective, certificate, policy=policy, precision=self.precision
        )
        return rungs

    def report(self, certificate: Certificate, path: str | Path) -> None:
        """Write the report as one file."""
        _reporting("page").write_report(certificate, path)

    def page(self, certificate: Certificate) -> str:
        """Return the certificate for notebooks."""
        return _notebook(certificate)

    def kept(self, findings: Findings) -> KeptSource:
        """Return a source that has these findings, and no data."""
        return KeptSource(findings)


@dataclass(frozen=True, eq=False)
class KeptSource:
    """Findings that were made before: of a certificate that was read from a folder, or pickled."""

    kept_findings: Findings

    def findings(self, certificate: Certificate) -> Findings:
        """Return the findings."""
        return self.kept_findings

    def ladder(self, certificate: Certificate) -> tuple[Rung, ...]:
        """Return the ladder, which is empty if it was left out."""
        return self.kept_findings.ladder

    def report(self, certificate: Certificate, path: str | Path) -> None:
        """Write the report as one file."""
        _reporting("page").write_report(certificate, path)

    def page(self, certificate: Certificate) -> str:
        """Return the certificate for notebooks."""
        return _notebook(certificate)

    def kept(self, findings: Findings) -> KeptSource:
        """Return the source itself: it has nothing but findings."""
        return self


def _notebook(certificate: Certificate) -> str:
    text: str = _reporting("notebook").certificate_html(certificate)
    return text


def _reporting(module: str) -> Any:
    return import_module(f"plumdp.reporting.{module}")
