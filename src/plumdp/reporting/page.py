"""Writes the report of a certificate: one HTML file for people, which needs no other file and no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from plumdp.base.edge import write_whole
from plumdp.base.errors import DataError, require_kind, require_path, visible
from plumdp.base.json_values import python_value
from plumdp.base.progress import working
from plumdp.base.vocabulary import Assumption, Group, Guarantee, Standing, Status
from plumdp.certifying.net_benefit import NetBenefit
from plumdp.model.language.words import is_probability, threshold_in_words, value_in_words
from plumdp.model.text import number_of
from plumdp.reporting.evidence import SECTIONS
from plumdp.reporting.sections import InlinePicture, Section, net_benefit_section, picture, sentence, watch_section
from plumdp.result.certificate import Certificate, assumptions_of, fingerprint_of
from plumdp.result.facts import rung_facts, verdict
from plumdp.result.findings import Findings, require_own
from plumdp.result.folder import require_file
from plumdp.result.headlines import plain_margin, standings
from plumdp.result.printing import approximately, percent, plain_bounds, plain_number
from plumdp.result.rungs import Ground
from plumdp.watching.watch import Watch

_WANTED = {"max": "as large as possible", "min": "as small as possible"}

_GLOSSARY = (
    ("policy", "A rule that says what to do in each state of the system."),
    (
        "value",
        "The quantity that is asked about, such as a probability or an expected cost, under the policy.",
    ),
    (
        "confidence",
        "How sure the claim is. If you made such claims again and again with a confidence of {}, each from new "
        "data, on average at most {:.6g} in 1,000 would be false, as long as what they rest on is true and none is "
        "left out because of what it says.",
    ),
    ("parameter", "A number of the model that nobody knows exactly, such as the probability of a fault."),
    ("region", "All values of the parameters that the data do not rule out. The claim holds for each of them."),
    ("whole runs", "What complete runs earned, which bounds a value without the model."),
    ("not certified", "The usual interval, an estimate and about two standard errors on each side: nothing proves it."),
    (
        "model test",
        "A comparison of the data with the model. A small p-value is evidence against the model; 1 is no evidence.",
    ),
)


@dataclass(frozen=True)
class Front:
    """The texts of the first screen; those that are empty are not shown."""

    title: str
    about: str  # system, author and date
    claim: str
    standing: str  # what a watch has said of it since then
    question: str  # with a threshold
    verdict: str
    wanted: str
    rests_on: list[str]
    would_be_false: str  # what comes before the assumptions
    assumptions: list[str]

    @property
    def grouped(self) -> list[tuple[Group, list[Assumption]]]:
        """The assumptions about model, data and plan."""
        all_of = [Assumption.of(text) for text in self.assumptions]
        found = [(group, [each for each in all_of if each.group == group]) for group in Group]
        return [(group, texts) for group, texts in found if texts]


def front_of(certificate: Certificate, *, title: str, system: str, author: str, watch: Watch | None = None) -> Front:
    """Return the texts of the first screen of a certificate's report."""
    value = value_in_words(certificate.claim.objective, system=system)
    answer = certificate.comparison.answer
    question = threshold_in_words(answer["question"], system=system) or answer["question"] if answer else ""
    compared = certificate.comparison.difference
    if compared:  # whoever compares two policies asks which is better, and for bounds on one of them only then
        margin = f", or worse by no more than {plain_margin(compared['margin'])}" if compared["margin"] else ""
        question = "Is {} better than {}{}?".format(*compared["names"], margin)
    return Front(
        title=title or sentence(value or f"A policy for {system or 'the system'}").rstrip("."),
        about=" · ".join(filter(None, [system if title else "", author, _date(certificate)])),
        claim=_claim(certificate, value),
        standing="" if watch is None else _standing(certificate, watch),
        question=question,
        verdict=certificate.decided,
        wanted=_wanted(certificate),
        rests_on=_rests_on(certificate),
        would_be_false=_would_be_false(certificate),
        assumptions=assumptions_of([certificate]),
    )


def front_of_net_benefit(found: NetBenefit, title: str, system: str, author: str) -> Front:
    """Return the texts of the first screen of the report on net benefits."""
    first = found.strategies[0].effect
    start, end = (f"{weight:.10g}" for weight in found.willingness)
    return Front(
        title=title or f"Which policy is best, at a willingness to pay from {start} to {end}",
        about=" · ".join(filter(None, [system, author, _date(first)])),
        claim=found.sentence,
        standing="",
        question="",
        verdict="",
        wanted=f"Net benefit: the willingness to pay times {found.strategies[0].effect.claim.objective}, "
        f"less {found.strategies[0].cost.claim.objective}.",
        rests_on=_rests_on(first),
        would_be_false=_would_be_false(first),
        assumptions=found.assumptions,
    )


def _date(certificate: Certificate) -> str:
    """Return the day of the certificate, as people write it."""
    try:
        day = datetime.fromisoformat(certificate.rests_on.provenance.get("date", ""))
    except ValueError:
        return ""
    return f"{day.day} {day:%B %Y}"


def _standing(certificate: Certificate, watch: Watch) -> str:
    """Return since when a certificate is watched, and when and why it was withdrawn, if it was."""
    date = _date(certificate)
    certified, alarms = f"Certified on {date}" if date else "Certified", watch.state.open_alarms
    if watch.state.contradicting or not alarms:
        return f"{certified}, and watched since then. {watch.sentence}"
    events = watch.state.plan.events
    why = "; ".join(f"{events[alarm.kind]}: {alarm.words}" for alarm in alarms)
    return f"{certified}, and withdrawn after the data of {alarms[0].part}, because {why}."


def _claim(certificate: Certificate, value: str) -> str:
    """Return the claim in one sentence, with numbers as people write them."""
    if certificate.status != Status.CERTIFIED or not certificate.claim.claims_bounds:
        return certificate.headline
    share = is_probability(certificate.claim.objective)
    low, high = plain_bounds(certificate.lower, certificate.upper, is_probability=share)
    under = "" if certificate.claim.is_of_chain else f", under {_policy(certificate)}"
    value = value or "the value"
    how_sure = percent(certificate.confidence)
    unit = f" {certificate.claim.unit}" if certificate.claim.unit else ""
    lies = f"is {low}{unit}" if low == high else f"is between {low} and {high}{unit}"
    if_right = ", if the model is right," if certificate.claim.is_after_runs else ","
    return f"With a confidence of {how_sure}{if_right} {value} {lies}{under}."


def _policy(certificate: Certificate) -> str:
    told = certificate.comparison.difference
    if told:
        return str(told["names"][told.get("policy") == "second"])
    if certificate.how.options.get("practice"):
        return "current practice"
    return "this policy" if certificate.how.options.get("policy") == "given" else "the recommended policy"


def _wanted(certificate: Certificate) -> str:
    """Return which values are good ones if policies differ, and the estimate, in one line."""
    said = [] if certificate.claim.is_of_chain else [f"Wanted: {_WANTED[certificate.claim.direction]}."]
    if "estimate" in dict(certificate.page().facts):
        share = is_probability(certificate.claim.objective)
        estimate = plain_number(certificate.beside.estimated_value or 0.0, 0, is_probability=share)
        said.append(f"Best estimate: about {estimate}, where the data are most likely; this is not a bound.")
    if certificate.beside.approximate is not None and certificate.claim.claims_bounds:
        share = is_probability(certificate.claim.objective)
        usual = approximately(certificate.beside.approximate, is_probability=share)
        said.append(sentence(f"Not certified: {usual}"))
    if certificate.how.narrower and certificate.claim.ground == Ground.ROWS:
        said.append(sentence(certificate.how.to_narrow))
    return " ".join(said)


def _rests_on(certificate: Certificate) -> list[str]:
    """Return the grounds of the claim: data, model and model test."""
    points, quality = [], certificate.rests_on.data_quality
    if quality is not None:
        rejected = 0 if quality.report is None else quality.report.rejected
        left_out = f"; {number_of(rejected, 'row')} of the log could not be used" if rejected else ""
        points.append(f"Data: {number_of(quality.steps, 'step')} of the system{left_out}.")
    facts = dict(certificate.page().facts)
    if "outside" in facts:
        points.append(sentence(facts["outside"]))
    unknown = [name for name, _ in zip(certificate.rests_on.parameters, range(4), strict=False)]
    more = len(certificate.rests_on.parameters) - len(unknown)
    if unknown:
        named = ", ".join(unknown) + (f" and {more:,} more" if more else "")
        points.append(f"A model whose unknown numbers were learned from the data: {named}.")
    points += [
        sentence(f"{label}: {text}") for label, text in rung_facts(certificate.claim.rungs, certificate.claim.in_words)
    ]
    tested, _ = verdict(certificate.claim, certificate.rests_on, certificate.beside)
    if tested:
        points.append(sentence(f"a test of the model: {tested}"))
    if certificate.status == Status.CERTIFIED and certificate.claim.guarantee == Guarantee.ANYTIME:
        points.append(
            "It is valid even if you looked at the data while collecting them and stopped when you liked; what was "
            "asked, and how, was decided before."
        )
    if certificate.rests_on.model_tolerance:
        points.append(
            f"It allows for rows that are off by {certificate.rests_on.model_tolerance:g} in total variation."
        )
    return points


def _would_be_false(certificate: Certificate) -> str:
    """Return the sentence before the list of assumptions."""
    if not certificate.rests_on.assumptions:
        return ""
    chance = f"{100 * (1 - certificate.confidence):.6g} %"
    luck = f"otherwise only by bad luck, with a probability of at most {chance}"
    return f"The claim may be false if one of these is not true; {luck}:"


if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class _Look:
    """The look of a status on a page: a class for colours, a mark, a title, and a warning if there is one."""

    name: str
    mark: str
    title: str
    caption: str = ""  # of the picture of bounds that are not the claim
    warning: str = ""

    @property
    def words(self) -> str:
        return ": ".join(filter(None, [self.title, self.warning]))


_LOOKS = {
    Status.CERTIFIED: _Look("certified", "✓", "Certified"),
    Status.REJECTED: _Look(
        "contradicted",
        "✗",
        "Model rejected",
        "On the graph alone, whatever the probabilities of the model: not a claim about the model.",
        "do not rely on this policy",
    ),
    Status.PREMISES: _Look("contradicted", "✗", "Assumptions rejected", warning="do not rely on this policy"),
    Status.INCONCLUSIVE: _Look("vacuous", "–", "Inconclusive", "These bounds still include the worst possible value."),
}


_UNDECIDED = _Look("vacuous", "–", "Inconclusive which policy is better")


_WITHDRAWN = _Look("contradicted", "✗", "Withdrawn", "As it was certified.", "do not rely on this certificate")
_NO_BEST = _Look("vacuous", "–", "Inconclusive which policy is best")
_ONE_FOUND = _Look("vacuous", "–", "Nothing to compare", warning="one policy was found")


def _look_of(certificate: Certificate) -> _Look:
    """Return the look of a certificate. For a comparison, it shows whether that is decided."""
    told, is_claim = certificate.comparison.difference, certificate.status in (Status.CERTIFIED, Status.INCONCLUSIVE)
    if not told or not is_claim:
        return _LOOKS[certificate.status]
    lower, upper = python_value(told["difference"])
    is_open = Standing.INCONCLUSIVE in standings(lower, upper, told["margin"], direction=certificate.claim.direction)
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
    watch: Watch | None = None,
) -> None:
    """Write a report for people as one HTML file that needs no other file and no network.

    Parameters
    ----------
    certificate
        What is claimed: a certificate, or what ``net_benefit`` returned.
    findings
        What ``explain`` returned for the certificate; None for net benefits.
    path
        The file.
    title
        The heading; by default the question, in words.
    system
        What the model is of, such as "the pump": sentences then say "the probability that the pump ever reaches …".
    author
        The author of the report.
    watch
        What ``watch`` returned for the certificate: the report then says whether it was withdrawn, when and why.

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
        if watch is not None and (
            watch.certificate is None or fingerprint_of(watch.certificate) != fingerprint_of(certificate)
        ):
            raise DataError("the watch is not of this certificate: give what watch(…, certificate=…) returned for it")
        text = render(certificate, findings, title=title, system=system, author=author, watch=watch)
    write_whole(target, text)


def render(
    certificate: Certificate,
    findings: Findings,
    *,
    title: str = "",
    system: str = "",
    author: str = "",
    watch: Watch | None = None,
) -> str:
    """Return the report of a certificate as HTML."""
    require_own(certificate, findings)
    made = [section for make in SECTIONS if (section := make(certificate, findings)) is not None]
    front, look = front_of(certificate, title=title, system=system, author=author, watch=watch), _look_of(certificate)
    if watch is not None:
        made.insert(0, watch_section(watch))
        look = _WITHDRAWN if watch.status in ("alarm", "rejected") else look
    asked = picture("difference", certificate).svg if certificate.comparison.difference else certificate.page().picture
    return _page(certificate, front, look, made, bounds=asked)


def _page_of_net_benefit(found: NetBenefit, front: Front) -> str:
    """Return the report of a comparison by the willingness to pay as HTML."""
    first = found.strategies[0].effect
    look = _LOOKS[Status.CERTIFIED] if any(each.best for each in found.strategies) else _NO_BEST
    look = _ONE_FOUND if len(found.strategies) == 1 else look
    look = _LOOKS[Status.REJECTED] if first.status == Status.REJECTED else look
    return _page(first, front, look, [net_benefit_section(found)])


def _glossary(certificate: Certificate) -> list[tuple[str, str]]:
    """Return the words of this report with their meanings; the confidence is its own."""
    claim, has_parameters = certificate.claim, bool(certificate.rests_on.parameters)
    has_usual = certificate.beside.approximate is not None and claim.claims_bounds
    is_there = {"parameter": has_parameters, "region": has_parameters and claim.claims_bounds}
    is_there |= {"whole runs": bool(claim.rungs), "not certified": has_usual}
    sure, often = percent(certificate.confidence), 1000 * (1 - certificate.confidence)
    return [(word, text.format(sure, often)) for word, text in _GLOSSARY if is_there.get(word, True)]


def _page(certificate: Certificate, front: Front, look: _Look, sections: Sequence[Section], *, bounds: str = "") -> str:
    from markupsafe import Markup

    made, script = list(map(_drawn, sections)), (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            certificate=certificate,
            page_title=f"{look.title}: {front.title}",
            front=front,
            look=look,
            bounds_picture=Markup(bounds),
            sections=[section for section in made if not section.is_folded],
            methods=[section for section in made if section.is_folded],
            glossary=_glossary(certificate),
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

    pictures: list[InlinePicture] = [replace(each, svg=Markup(each.svg)) for each in section.pictures]
    return replace(section, pictures=pictures)


def _policy_of_contents(script: str) -> str:
    """Return the content security policy of the page: its own styles, this one script, and nothing else."""
    own = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{own}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _unbroken(value: object) -> object:
    """Return a text with control characters as escapes, in which no line ends between a number and its per cent."""
    return visible(value).replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value
