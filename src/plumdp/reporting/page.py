"""Writes the report of a certificate: one HTML file for people, which needs no other file and no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from plumdp.base.errors import require_kind, require_path
from plumdp.base.json_values import python_value
from plumdp.base.progress import working
from plumdp.base.vocabulary import Standing
from plumdp.certifying.difference import standings
from plumdp.certifying.net_benefit import NetBenefit
from plumdp.reporting.evidence import SECTIONS
from plumdp.reporting.front import GLOSSARY, Front, front_of, front_of_net_benefit
from plumdp.reporting.sections import InlinePicture, Section, net_benefit_section
from plumdp.result.certificate import Certificate, Status
from plumdp.result.findings import Findings
from plumdp.result.folder import require_file, unwritable

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class _Look:
    """The look of a status on a page: a class for colours, a mark, and words."""

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
    Status.VACUOUS: _Look("vacuous", "–", "Nothing certified", "These bounds still include the worst possible value."),
}


_UNDECIDED = _Look(
    "vacuous", "–", "Not yet known which policy is better", "These bounds are on the value of one policy alone."
)


_NO_BEST = _Look("vacuous", "–", "Not yet known which policy is best")
_ONE_FOUND = _Look("vacuous", "–", "Nothing to compare: one policy was found")


def _look_of(certificate: Certificate) -> _Look:
    """Return the look of a certificate. For a comparison, it shows whether that is decided."""
    told, is_claim = certificate.comparison, certificate.status in (Status.CERTIFIED, Status.VACUOUS)
    if not told or not is_claim:
        return _LOOKS[certificate.status]
    lower, upper = python_value(told["difference"])
    is_open = Standing.UNKNOWN in standings(lower, upper, told["margin"], direction=certificate.direction)
    return _UNDECIDED if is_open else _LOOKS[Status.CERTIFIED]


@working("writing the report")
def write_report(
    certificate: Certificate | NetBenefit,
    findings: Findings | None,
    path: str | Path,
    *,
    title: str = "",
    system: str = "",
    author: str = "",
) -> None:
    """Write a report for people as one HTML file that needs no other file and no network.

    Parameters
    ----------
    certificate
        What is claimed: a certificate, or what ``net_benefit`` returned.
    findings
        What ``explain`` returned for the certificate; None for net benefits.
    title
        The heading; by default the question, in words.
    system
        What the model is of, such as "the pump": sentences then say "the probability that the pump ever reaches …".
    author
        The author of the report.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, conclude, explain, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> certificate = conclude(learned, study.objective)
    >>> findings = explain(learned, certificate, parts=["expressions"])
    >>> with TemporaryDirectory() as folder:
    ...     write_report(certificate, findings, f"{folder}/report.html", title="Five bets", author="A. Gambler")
    """
    require_path("write_report", path)
    target = Path(path)
    require_file(target)
    if isinstance(certificate, NetBenefit):
        text = _page_of_net_benefit(certificate, front_of_net_benefit(certificate, title, system, author))
    else:
        require_kind(certificate, Certificate, "write_report takes a certificate first")
        require_kind(findings, Findings, "write_report takes findings, which explain returns, after the certificate")
        assert findings is not None
        text = render(certificate, findings, title=title, system=system, author=author)
    with NamedTemporaryFile("w", dir=target.absolute().parent, encoding="utf-8", delete=False) as file:
        prepared = Path(file.name)
    try:
        prepared.write_text(text, encoding="utf-8")
        prepared.chmod(0o644)
        prepared.replace(target)
    except OSError as error:
        prepared.unlink(missing_ok=True)
        raise unwritable(target, error) from None


def render(certificate: Certificate, findings: Findings, *, title: str = "", system: str = "", author: str = "") -> str:
    """Return the report of a certificate as HTML."""
    certificate.require_own(findings)
    made = [section for make in SECTIONS if (section := make(certificate, findings)) is not None]
    front, look = front_of(certificate, title=title, system=system, author=author), _look_of(certificate)
    return _page(certificate, front, look, made, bounds=certificate.bounds_picture)


def _page_of_net_benefit(found: NetBenefit, front: Front) -> str:
    """Return the report of a comparison by the willingness to pay as HTML."""
    first = found.strategies[0].effect
    look = _LOOKS[Status.CERTIFIED] if any(each.best for each in found.strategies) else _NO_BEST
    look = _ONE_FOUND if len(found.strategies) == 1 else look
    look = _LOOKS[Status.CONTRADICTED] if first.status == Status.CONTRADICTED else look
    return _page(first, front, look, [net_benefit_section(found)])


def _page(certificate: Certificate, front: Front, look: _Look, sections: Sequence[Section], *, bounds: str = "") -> str:
    from markupsafe import Markup

    made, script = list(map(_drawn, sections)), (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            certificate=certificate,
            page_title=f"{look.words.partition(':')[0]}: {front.title}",
            front=front,
            look=look,
            bounds_picture=Markup(bounds),
            sections=[section for section in made if not section.is_folded],
            methods=[section for section in made if section.is_folded],
            glossary=GLOSSARY,
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
        finalize=_unbroken,
    )


def _drawn(section: Section) -> Section:
    """Return a section whose pictures are markup: they are ours, and their texts are escaped already."""
    from markupsafe import Markup

    pictures: list[InlinePicture] = [replace(picture, svg=Markup(picture.svg)) for picture in section.pictures]
    return replace(section, pictures=pictures)


def _policy_of_contents(script: str) -> str:
    """Return the content security policy of the page: its own styles, this one script, and nothing else."""
    own = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{own}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _unbroken(value: object) -> object:
    """Return a text in which no line ends between a number and its per cent."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value
