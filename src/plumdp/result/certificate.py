"""The ``Certificate``: a policy, bounds on its value, the confidence, and everything that the claim rests on.

Part of it is the quality of the data: the number of steps, and what became of the rows of the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from plumdp.base.clock import NO_STAGE
from plumdp.base.errors import DataError, Option, require_kind
from plumdp.base.json_values import Confidence, Finite, Share, digest, json_value
from plumdp.base.vocabulary import CHANGED, RELAXATION_WORDS, Guarantee, Relaxation, Status, findings_in
from plumdp.data.counts import TransitionCounts, counts_of
from plumdp.data.log import Log
from plumdp.data.quality import DataQuality
from plumdp.model.language.words import steps_in_words
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.text import listing, one_line
from plumdp.result.findings import Findings, Rung
from plumdp.result.policy_table import PolicyTable
from plumdp.result.printing import GUARANTEES, approximately, outward, percent, shares, verdict_on_model
from plumdp.result.show import Fact, Page, as_html, as_text, bounds_svg

SCHEMA = "plumdp/certificate/1"

_WORDS: dict[str, str] = {**RELAXATION_WORDS, "untied": "without the expressions"}
_OF_TABLES = {
    "interval": "each row within its intervals",
    "coupled": "bets on the value of this policy, and each row within its intervals",
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """With the given confidence the value of the policy lies between ``lower`` and ``upper``, if the assumptions hold.

    ``status`` is "certified"; "nothing certified" if the bound that the policy was chosen for does not exclude the
    worst value there can be, or, for a policy of your own, neither bound excludes any value; or "model contradicted" if
    no point of the parameter space explains the data: the bounds then rest on the graph alone, and ``reason`` says
    which expressions disagree. ``guarantee`` says what the confidence itself rests on.

    If the log shows what the graph says cannot happen, the model is contradicted as well, and no bound is claimed:
    ``lower`` and ``upper`` are infinite, and null in JSON. ``data_quality`` says what became of the rows of the log.
    """

    lower: float
    upper: float
    policy: PolicyTable
    objective: str
    direction: Literal["max", "min"]
    confidence: Confidence
    relaxation: Relaxation | Literal["untied"]
    confidence_set: str  # what was drawn around the data, in words
    guarantee: Guarantee
    assumptions: tuple[str, ...]
    status: Status
    reason: str
    parameters: Mapping[str, tuple[float, float]]  # name → smallest box that holds the region
    solver: str  # how the solver ended
    seconds: Mapping[str, Finite]  # stage → time; what was compiled meanwhile is the entry ``compiling``
    provenance: Mapping[str, Any]  # texts
    data_quality: DataQuality | None = None
    estimate: Mapping[str, Finite] = field(default_factory=dict)  # name → most likely value: not a bound
    estimated_value: Finite | None = None  # of the policy at the estimate: not a bound
    approximate: tuple[Finite, Finite] | None = None  # the usual normal interval, which nothing proves
    gap: Mapping[str, float] = field(default_factory=dict)  # what ``upper - lower`` is made of, if it is known
    jointly: tuple[str, ...] = ()  # other properties: certificates of all of them hold at once with the confidence
    p_value: Share | None = None  # of the model as a whole, valid at any time; None if it was not tested
    visible_error: Share | None = None  # of a row, below which that test hardly shows it, about: an estimate
    narrower: tuple[str | Option, ...] = ()  # what helps most to get narrower bounds, in words
    not_coupled: str = ""  # why there are no coupled bounds, if they were asked for: these are then rectangular
    remark: str = ""  # what the policy does not make use of
    left_out: str = ""  # what is not used, such as what was cut to save time, in words: bounds hold
    not_in_likelihood: str = ""  # how many steps the likelihood ignores, and why: only intervals know what they show
    misfit: Share = 0.0  # how far every row may be off from the model, in total variation
    budget: tuple[tuple[str, Fraction], ...] = ()  # what the error is spent on, in words, and the share of each
    unit: str = ""  # what the value is counted in, such as "€ per month"
    answer: Mapping[str, str] = field(default_factory=dict)  # to a threshold: question, verdict, sentence, plain
    comparison: Mapping[str, Any] = field(default_factory=dict)  # with another policy: see ``Difference.comparison``
    rival: PolicyTable | None = None  # the other policy of the comparison, which folders keep
    options: Mapping[str, Any] = field(default_factory=dict)  # of ``learn`` and ``conclude``: the same give the same
    is_over_time: bool = False  # whether rows changed while the data were collected, which files say by null bounds

    @property
    def claims_bounds(self) -> bool:
        """Whether bounds are a claim; not if data contradict the graph or what is assumed of runs, or rows changed."""
        is_of_graph = self.data_quality is None or not self.data_quality.contradicting
        return is_of_graph and not self.is_over_time and self.status != Status.PREMISES

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ValueError(
                f"the lower bound {self.lower} is above the upper bound {self.upper}: nothing is certified"
            )

    @property
    def bound(self) -> float:
        """The bound that the policy was made for: the lower one if large values are better, else the upper one."""
        return self.lower if self.direction == "max" else self.upper

    @property
    def stage_seconds(self) -> float:
        """The seconds of all stages together, without those of compiling kernels, which is done once."""
        return sum(seconds for stage, seconds in self.seconds.items() if stage != NO_STAGE)

    @property
    def printed_bounds(self) -> tuple[str, str]:
        """Both bounds with six digits, rounded outward."""
        if not self.claims_bounds:
            return "none", "none"
        return outward(self.lower, -1), outward(self.upper, 1)

    def __repr__(self) -> str:
        low, high = self.printed_bounds
        return one_line(self, f"{low} to {high}", f"confidence {self.confidence:.10g}", self.status, self.objective)

    def page(self) -> Page:
        """Return the claim and what it rests on."""
        spent = [(words, f"{100 * float(share):.3g} %") for words, share in self.budget]
        budget = (
            [Page(f"what the error of {100 * (1 - self.confidence):.6g} % is spent on", facts=spent)] if spent else []
        )
        return Page(self.headline, facts=self.facts(), folded=budget, picture=self.bounds_picture)

    __str__ = as_text
    _repr_html_ = as_html

    @property
    def bounds_picture(self) -> str:
        """The bounds and the estimate on a line, as SVG; empty if no bound is claimed."""
        if not self.claims_bounds:
            return ""
        return bounds_svg(self.objective, self.lower, self.upper, self.printed_bounds, self.estimated_value)

    @property
    def is_of_chain(self) -> bool:
        """Whether the question is of a model with one policy, as it does not say whether large values are good."""
        asked = self.objective.partition("=?")[0]
        return "max" not in asked and "min" not in asked

    @property
    def headline(self) -> str:
        """The claim in one sentence, which says up to which step the question looks."""
        return self.claim(steps_in_words(self.objective))

    def claim(self, steps: str = "") -> str:
        """Return the claim in one sentence."""
        share = percent(self.confidence)
        unit = f" {self.unit}" if self.unit else ""
        between = "between {} and {}{}{}".format(*self.printed_bounds, unit, steps)
        subject = "value" if self.is_of_chain else "policy's value"
        data = self.data_quality
        if data is not None and data.contradicting:
            rows = (
                "1 row of the data shows"
                if data.contradicting == 1
                else f"{data.contradicting:,} rows of the data show"
            )
            return f"MODEL CONTRADICTED: {rows} what the model says cannot happen. No bound is claimed."
        if not self.claims_bounds:
            what = next(iter(findings_in(self.reason)), "") if self.status == Status.PREMISES else CHANGED
            return f"{self.status.upper()}: {what}. No bound is claimed."
        if self.status == Status.CERTIFIED:
            low, high = self.printed_bounds
            value = f"lies {between}" if low != high else f"is {low.replace('infinity', 'infinite')}{unit}{steps}"
            return f"The {subject} {value} with confidence {share}."
        if self.status == Status.CONTRADICTED:
            why = "no parameters explain the data. Without its expressions, on the graph alone"
            if self.is_of_table:
                why = "no table explains the data. On the graph alone, without ties"
            return f"MODEL CONTRADICTED: {why}, the {subject} lies {between} with confidence {share}."
        if self.reason:
            return f"Nothing certified: {self.reason}."
        worst = self.printed_bounds[0 if self.direction == "max" else 1]
        return f"Nothing certified: the bounds do not exclude the worst value, {worst} ({between}, confidence {share})."

    def facts(self) -> list[Fact]:
        """Return the facts behind the claim: labels and texts."""
        report = None if self.data_quality is None else self.data_quality.report
        left = f"{report.departures}; bounds take the worst and the best" if report and report.elsewhere else ""
        facts = [*([("elsewhere", left)] if left else []), ("objective", self.objective)]
        if not self.claims_bounds:
            return [*facts, *self.premises()]
        facts += [
            ("relaxation", self._relaxation_in_words()),
            ("confidence set", f"{self.confidence_set}; {GUARANTEES[self.guarantee]}"),
        ]
        if self.not_in_likelihood:
            tighter = "on new data, bounds may be tighter with the confidence set 'interval'"
            facts.append(("likelihood", f"ignores {self.not_in_likelihood}; {tighter}"))
        if self.remark:
            facts.append(("policy", self.remark))
        if self.left_out:
            facts.append(("left out", f"{self.left_out}; the bounds hold, and could be narrower"))
        if self.jointly:
            facts.append(("jointly", self._company()))
        if self.misfit:
            facts.append(("misfit", f"the bounds allow for rows that are off by {self.misfit:g} in total variation"))
        if self.parameters:
            boxes = self.parameters.items()
            box = listing([f"{name} in [{outward(low, -1)}, {outward(high, 1)}]" for name, (low, high) in boxes])
            facts.append(("parameters", box))
        if self.estimated_value is not None and not self._absence:
            point = listing([f"{name} = {value:.6g}" for name, value in self.estimate.items()])
            where = f"at the most likely {point}" if point else "by what was seen"
            facts.append(("estimate", f"about {self.estimated_value:.6g} {where} (not a bound)"))
        if self.approximate is not None and not self._absence:
            facts.append(("approximately", approximately(self.approximate)))
        if parts := ", ".join(f"{share} {name}" for name, share in shares(self.gap)):
            facts.append(("width", f"{outward(self.upper - self.lower, 1, 3)}: {parts}"))
        if self.narrower:
            facts.append(("narrower", self.to_narrow))
        facts += self.premises()
        if self.solver != "converged":
            facts.append(("solver", self.solver))
        return facts

    def premises(self) -> list[Fact]:
        """Return the facts behind every claim from the same data: the data, the model test, the assumptions.

        Whatever is claimed beside the bounds, such as a difference, is printed with them.
        """
        facts = []
        if self.data_quality is not None:
            facts.append(("data", str(self.data_quality)))
        if self.p_value is not None:
            facts.append(("model test", "".join(self.verdict)))
        if self.reason not in self.headline:
            facts += [("because" if not i else "", text) for i, text in enumerate(findings_in(self.reason))]
        return facts + [("assuming", each) for each in (*self.assumptions, *self.comparison.get("assuming", ()))]

    @property
    def _absence(self) -> str:
        """Why there are no data, in words, if there are none: then no parameters are likely, and nothing is tested."""
        return "" if self.data_quality is None else self.data_quality.absence

    @property
    def verdict(self) -> tuple[str, str]:
        """What the test of the model says, in words, and how strong the evidence is; empty if there was no test."""
        if self.p_value is None or self._absence:
            return "" if self.p_value is None else "nothing was tested, as there are no data", ""
        return verdict_on_model(self.p_value, self.status, 1 - self.confidence, self.misfit, self.visible_error)

    @property
    def to_narrow(self) -> str:
        """The one thing that would narrow the bounds most, as a sentence without a full stop, or an empty text."""
        return f"to get narrower bounds: {''.join(map(str, self.narrower))}" if self.narrower else ""

    @property
    def is_of_table(self) -> bool:
        """Whether the rows of the model are unknown, without parameters."""
        return self.options.get("confidence_set") == "table"

    def _relaxation_in_words(self) -> str:
        if self.is_of_table and self.relaxation in _OF_TABLES:
            words, without = _OF_TABLES, (_OF_TABLES["interval"], "bets on the value of this policy")
        else:
            words, without = _WORDS, (_WORDS["rectangular"], "coupled bounds")
        if not self.not_coupled:
            return words[self.relaxation]
        return "{}; there are no {}: {}".format(*without, self.not_coupled)

    def _company(self) -> str:
        """Return in words with which certificates this one holds."""
        others = "1 other property" if len(self.jointly) == 1 else f"{len(self.jointly):,} other properties"
        together = f"the certificates of {others} that were computed together with it"
        return f"holds together with {together}: all of them at once with this confidence"

    @property
    def fingerprint(self) -> str:
        """A hash of the claim, and of the model and the counts that it follows from: what findings are about."""
        names = ("objective", "lower", "upper", "confidence", "relaxation", "confidence_set")
        origin = [self.provenance.get(name) for name in ("expressions", "counts", "objective")]
        return digest(repr([*(getattr(self, name) for name in names), *origin]).encode())

    @property
    def rung(self) -> Rung:
        """Its rung in a ladder of relaxations."""
        return Rung(self.relaxation, self.lower, self.upper, str(self.status))

    def require_own(self, findings: Findings) -> None:
        """Refuse the findings about another certificate."""
        if findings.about != self.fingerprint:
            raise DataError("these findings are about another certificate: give those that explain made of this one")

    def save(
        self,
        path: str | Path,
        findings: Findings | None = None,
        *,
        model: ParametricMDP | None = None,
        counts: TransitionCounts | Log | None = None,
        witness: str = "",
        force: bool = False,
    ) -> None:
        """Write the certificate and its policy to a new folder, which ``read_result`` opens again.

        Parameters
        ----------
        findings
            What ``explain`` returned, if it was asked: kept as well.
        model, counts
            What the certificate follows from, kept as well, so that ``plumdp report`` can explain the result later.
        witness
            What ``decisions.make_witness`` returned: kept as well, so that others can check the result.
        force
            Replace a folder that holds an earlier result.
        """
        if findings is not None:
            require_kind(findings, Findings, "save takes findings, which explain returns")
            self.require_own(findings)
        if (model is None) != (counts is None):
            raise DataError("model and counts are kept together: give both, or neither")
        data = None
        if model is not None and counts is not None:
            require_model("save", model)
            data = model, counts_of(counts)
            sizes = [self.provenance.get(name) for name in ("expressions", "steps")]
            if sizes != [model.fingerprint, f"{data[1].total}"]:
                raise DataError("the certificate rests on another model or other counts: give what was certified")
        from plumdp.result.folder import write_results  # what is shown is read without what writes it

        write_results([(self, findings)], path, data=data, witnesses=[witness] if witness else (), force=force)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the policy, ready for JSON; infinite numbers as text, bounds not claimed as null."""
        names = [name for name in self.__dataclass_fields__ if name not in ("policy", "rival", "is_over_time")]
        content = {"schema": SCHEMA} | {name: json_value(getattr(self, name)) for name in names}
        content |= {"narrower": "".join(map(str, self.narrower)), "budget": json_value(dict(self.budget))}
        unclaimed = {} if self.claims_bounds else {"lower": None, "upper": None}
        return {
            name: told for name, told in content.items() if told or name not in ("answer", "comparison")
        } | unclaimed

    def to_json(self) -> str:
        """Return everything but the policy as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


def premises_of(certificates: Iterable[Certificate]) -> list[Fact]:
    """Return the premises of several certificates, each once."""
    return [*dict.fromkeys(fact for each in certificates for fact in each.premises())]


def assumptions_of(certificates: Iterable[Certificate]) -> list[str]:
    """Return the assumptions of several certificates, each once."""
    return [text for label, text in premises_of(certificates) if label == "assuming"]


class Certificates(list[Certificate]):
    """A list of certificates, which notebooks show as a table."""

    def page(self) -> Page:
        """Return the bounds of each, and what all of them rest on."""
        header = ("objective", "relaxation", "lower", "upper", "confidence", "status")
        rows = [
            (each.objective, each.relaxation, *each.printed_bounds, f"{each.confidence:.10g}", str(each.status))
            for each in self
        ]
        same = [i for i in (0, 4) if len({row[i] for row in rows}) == 1]  # columns that need no place in each row
        said = ", ".join(f"{header[i]} {rows[0][i]}" if i else rows[0][i] for i in same)
        kept = [i for i in range(len(header)) if i not in same]
        cells = [[row[i] for i in kept] for row in rows]
        return Page(said, header=[header[i] for i in kept], rows=cells, facts=premises_of(self))

    _repr_html_ = as_html
