"""The pictures of a report, as SVG inside the page."""

from __future__ import annotations

from plumdp.reporting.parts import Picture
from plumdp.result.certificate import Certificate
from plumdp.result.findings import Findings


def ladder(certificate: Certificate, findings: Findings) -> list[Picture]:
    return []


def advice(findings: Findings) -> list[Picture]:
    return []


def region(findings: Findings) -> list[Picture]:
    return []


def forest(findings: Findings) -> list[Picture]:
    return []


def residuals(findings: Findings) -> list[Picture]:
    return []


def policy_map(certificate: Certificate, findings: Findings) -> list[Picture]:
    return []


def model(findings: Findings) -> list[Picture]:
    return []
