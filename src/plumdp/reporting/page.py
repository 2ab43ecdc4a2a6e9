"""Writes the report of a certificate: one HTML file for people, which needs no other file and no network."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from plumdp.confidence.sets import Guarantee
from plumdp.reporting.evidence import SECTIONS
from plumdp.reporting.parts import Picture, Section
from plumdp.result.certificate import Certificate, Status
from plumdp.result.findings import Findings
from plumdp.result.folder import require_file, unwritable

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class _Look:
    """How a page tells the status of its certificate: by a class for colours, a mark, and words."""

    name: str
    mark: str
    words: str
    caption: str = ""  # of the picture of bounds that are not the claim


_LOOKS = {
    Status.CERTIFIED: _Look("certified", "✓", "Certified"),
    Status.CONTRADICTED: _Look(
        "contradicted",
        "✗",
        "Model contradicted: do not rely on this policy",
        "On the graph alone, whatever the probabilities of the model: not a claim about the model.",
    ),
    Status.VACUOUS: _Look("vacuous", "–", "Nothing certified", "These bounds do not exclude the worst value."),
    Status.NO_GUARANTEE: _Look(
        "estimate", "≈", "No guarantee: an estimate, nothing proves it", "Nothing proves these numbers."
    ),
}


def write_report(certificate: Certificate, findings: Findings, path: str | Path) -> None:
    """Write a report for people as one HTML file that needs nothing else: no other file, and no network.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, certify, explain, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> certificate = certify(study.model, counts, study.objective)
    >>> findings = explain(study.model, counts, certificate, parts=["expressions", "n_expressions"])
    >>> with TemporaryDirectory() as folder:
    ...     write_report(certificate, findings, f"{folder}/report.html")
    """
    target = Path(path)
    require_file(target)
    text = render(certificate, findings)
    with NamedTemporaryFile("w", dir=target.absolute().parent, encoding="utf-8", delete=False) as file:
        prepared = Path(file.name)
    try:
        prepared.write_text(text, encoding="utf-8")
        prepared.chmod(0o644)
        prepared.replace(target)
    except OSError as error:
        prepared.unlink(missing_ok=True)
        raise unwritable(target, error) from None


def render(certificate: Certificate, findings: Findings) -> str:
    """Return the report of a certificate as HTML."""
    from markupsafe import Markup

    certificate.require_own(findings)
    made = [make(certificate, findings) for make in SECTIONS]
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            certificate=certificate,
            title=f"{_LOOKS[certificate.status].words.partition(':')[0]}: {certificate.objective}",
            look=_LOOKS[certificate.status],
            headline=certificate.headline,
            verdict=certificate.answer.get("sentence", ""),
            first_words=_first_words(certificate),
            bounds_picture=Markup(certificate.bounds_picture),
            sections=[_drawn(section) for section in made if section is not None],
            css=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),
            script=Markup(script),
            policy_of_contents=_policy_of_contents(script),
        )
    )


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _drawn(section: Section) -> Section:
    """Return a section whose pictures are markup: they are ours, and their texts are escaped already."""
    from markupsafe import Markup

    pictures: list[Picture] = [replace(picture, svg=Markup(picture.svg)) for picture in section.pictures]
    return replace(section, pictures=pictures)


def _policy_of_contents(script: str) -> str:
    """Return what the page may load: its own styles, this one script, and nothing from anywhere."""
    own = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{own}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _first_words(certificate: Certificate) -> list[str]:
    """Return what must be said beside the claim."""
    found = []
    if certificate.status == Status.CERTIFIED and certificate.guarantee == Guarantee.ANYTIME:
        found.append("This is valid even if you looked at the data while collecting it and stopped when you liked.")
    if certificate.estimated_value is not None and certificate.claims_bounds:
        found.append(
            f"The estimate is about {certificate.estimated_value:.6g}: where the data are most likely, not a bound."
        )
    if certificate.misfit:
        found.append(
            f"The bounds allow for rows of the model that are off by {certificate.misfit:g} in total variation."
        )
    return found
