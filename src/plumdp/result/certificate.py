"""What may be claimed: a policy, bounds on its value, the confidence, and everything that the claim rests on."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from plumdp.base.clock import NO_STAGE
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status as Status
from plumdp.confidence.sets import Guarantee
from plumdp.model.text import html_table, listing, one_line
from plumdp.relaxation.relax import RELAXATIONS
from plumdp.relaxation.relax import Relaxation as Relaxation
from plumdp.result.data_quality import DataQuality
from plumdp.result.findings import Findings, Rung, Source
from plumdp.result.folder import write_results
from plumdp.result.policy_table import PolicyTable
from plumdp.result.shapes import plain

SCHEMA = "plumdp/certificate/1"

GUARANTEES = {
    Guarantee.ANYTIME: "proved for any number of samples, whenever you stopped",
    Guarantee.PLANNED: "proved for any number of samples that was planned, and whatever was added to them",
    Guarantee.FIXED: "proved for any number of samples that was fixed beforehand",
    Guarantee.ASYMPTOTIC: "proved in the limit of many samples, not for any number of them",
    Guarantee.NONE: "without a proof",
}

_DOUBT = 0.05  # smaller p-values are worth a word

_WORDS = {name: each.words for name, each in RELAXATIONS.items()} | {"untied": "without the expressions"}


@dataclass(frozen=True, eq=False)
class Certificate:
    """With the given confidence the value of the policy lies between ``lower`` and ``upper``, if the assumptions hold.

    ``status`` is "certified"; "nothing certified" if the bound that the policy was chosen for does not exclude the
    worst value there can be, or, for a policy of your own, neither bound excludes any value; "model contradicted" if no
    point of the parameter space explains the data: the bounds then rest on the graph alone, and ``reason`` says which
    expressions disagree; or "no guarantee" if nothing proves the confidence, as with the published constructions, so
    that the bounds are an estimate. ``guarantee`` says what the confidence itself rests on.

    If the log shows what the graph says cannot happen, the model is contradicted as well, and no bound is claimed:
    ``lower`` and ``upper`` are infinite, and null in JSON. ``data_quality`` says what became of the rows of the log.
    """

    lower: float
    upper: float
    policy: PolicyTable
    objective: str
    direction: Literal["max", "min"]
    confidence: float
    relaxation: Relaxation | Literal["untied"]
    confidence_set: str  # what was drawn around the data, in words
    guarantee: Guarantee
    assumptions: tuple[str, ...]
    status: Status
    reason: str
    parameters: Mapping[str, tuple[float, float]]  # name → smallest box that holds the region
    solver: str  # how the solver ended
    seconds: Mapping[str, float]  # stage → time; what was compiled meanwhile is the entry ``compiling``
    provenance: Mapping[str, str]
    data_quality: DataQuality | None = None
    estimate: Mapping[str, float] = field(default_factory=dict)  # name → most likely value: not a bound
    estimated_value: float | None = None  # of the policy at the estimate: not a bound
    gap: Mapping[str, float] = field(default_factory=dict)  # what ``upper - lower`` is made of, if it is known
    jointly: tuple[str, ...] = ()  # other properties: certificates of all of them hold at once with the confidence
    p_value: float | None = None  # of the model as a whole, valid at any time; None if it was not tested
    not_coupled: str = ""  # why there are no coupled bounds, if they were asked for: these are then rectangular
    remark: str = ""  # what the policy does not make use of
    left_out: str = ""  # what was cut to save time, in words: bounds hold, and more work could narrow them
    not_in_likelihood: str = ""  # how many steps the likelihood ignores, and why: only intervals know what they show
    misfit: float = 0.0  # how far every row may be off from the model, in total variation
    budget: tuple[tuple[str, Fraction], ...] = ()  # what the error is spent on, in words, and the share of each
    answer: Mapping[str, Any] = field(
        default_factory=dict
    )  # to a threshold: ``question``, ``verdict`` and ``sentence``
    source: Source | None = field(default=None, repr=False)  # of findings; None if there are none besides these fields

    @property
    def claims_bounds(self) -> bool:
        """Whether the bounds are a claim or at least an estimate; nothing is if the data contradict the graph."""
        return self.data_quality is None or not self.data_quality.contradicting

    @property
    def is_proved(self) -> bool:
        """Whether something proves the confidence; if not, the bounds are an estimate."""
        return self.guarantee != Guarantee.NONE

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

    def __str__(self) -> str:
        return self.describe()

    def describe(self, *, budget: bool = False) -> str:
        """Return the claim and what it rests on, as ``print`` shows it, on request with what the error is spent on."""
        facts = self.facts() + (self._spent() if budget else [])
        return "\n".join([self.headline, *(f"  {label:14}  {text}" for label, text in facts)])

    def _spent(self) -> list[tuple[str, str]]:
        labels = ["error", *[""] * len(self.budget)]
        parts = [f"{100 * float(share):.3g} % for {words}" for words, share in self.budget]
        return list(zip(labels, parts, strict=False))

    def _repr_html_(self) -> str:
        if self.source is not None:
            return self.source.page(self)
        return f"<p><b>{html.escape(self.headline)}</b></p>{html_table(self.facts())}"

    @property
    def headline(self) -> str:
        """The claim in one sentence."""
        share = percent(self.confidence) + (" (asymptotically)" if self.guarantee == Guarantee.ASYMPTOTIC else "")
        between = "between {} and {}".format(*self.printed_bounds)
        data = self.data_quality
        if data is not None and data.contradicting:
            rows = (
                "1 row of the data shows"
                if data.contradicting == 1
                else f"{data.contradicting:,} rows of the data show"
            )
            return f"MODEL CONTRADICTED: {rows} what the model says cannot happen. No bound is claimed."
        if self.guarantee == Guarantee.NONE:
            return f"Estimate, no guarantee: the policy's value may lie {between}."
        if self.status == Status.CERTIFIED:
            low, high = self.printed_bounds
            value = f"lies {between}" if low != high else f"is {low.replace('infinity', 'infinite')}"
            return f"The policy's value {value} with confidence {share}."
        if self.status == Status.CONTRADICTED:
            return (
                "MODEL CONTRADICTED: no parameters explain the data. Without its expressions, on the graph alone, the "
                f"policy's value lies {between} with confidence {share}."
            )
        if self.reason:
            return f"Nothing certified: {self.reason}."
        worst = self.printed_bounds[0 if self.direction == "max" else 1]
        return f"Nothing certified: the bounds do not exclude the worst value, {worst} ({between}, confidence {share})."

    def facts(self) -> list[tuple[str, str]]:
        """Return what the claim rests on: labels and texts."""
        words = _WORDS[self.relaxation]
        if self.not_coupled:
            words = f"{_WORDS['rectangular']}; there are no coupled bounds: {self.not_coupled}"
        facts = [
            ("objective", self.objective),
            ("relaxation", words),
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
        if self.estimated_value is not None:
            point = listing([f"{name} = {value:.6g}" for name, value in self.estimate.items()])
            facts.append(("estimate", f"about {self.estimated_value:.6g} at the most likely {point} (not a bound)"))
        if shares := ", ".join(f"{share} {name}" for name, share in _shares(self.gap)):
            facts.append(("width", f"{outward(self.upper - self.lower, 1, 3)}: {shares}"))
        if self.data_quality is not None:
            facts.append(("data", str(self.data_quality)))
        if self.p_value is not None:
            facts.append(("model test", _verdict(self.p_value, self.status, 1 - self.confidence, self.misfit)))
        if self.reason not in self.headline:
            facts += [("because" if not i else "", text) for i, text in enumerate(self.reason.split("; ")) if text]
        facts += [("assuming", assumption) for assumption in self.assumptions]
        if self.solver != "converged":
            facts.append(("solver", self.solver))
        return facts

    def _company(self) -> str:
        """Return in words with which certificates this one holds."""
        others = "1 other property" if len(self.jointly) == 1 else f"{len(self.jointly):,} other properties"
        return f"holds together with the certificates of {others}: all of them at once with this confidence"

    def findings(self, *, ladder: bool = True) -> Findings:
        """Return what a report shows besides: region, expressions, advice, test of the model, and the ladder.

        The ladder is what each relaxation certifies from the same data, which takes longer than all other parts. What
        was found once is kept; a certificate that was pickled knows what had been found before.
        """
        return replace(self._parts, ladder=self._ladder if ladder else ())

    @cached_property
    def _parts(self) -> Findings:
        return Findings(parameters=dict(self.parameters)) if self.source is None else self.source.findings(self)

    @cached_property
    def _ladder(self) -> tuple[Rung, ...]:
        return () if self.source is None else self.source.ladder(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: without the data, of which only the source of the findings knows."""
        state = dict(self.__dict__)
        parts, ladder = state.pop("_parts", Findings(parameters=dict(self.parameters))), state.pop("_ladder", ())
        if self.source is not None:
            state["source"] = self.source.kept(replace(parts, ladder=ladder))
        return state

    def save(self, path: str | Path, *, force: bool = False, ladder: bool = True) -> None:
        """Write certificate, findings and policy to a new folder, which ``read_result`` opens again.

        A folder that holds an earlier result is replaced with ``force``; ``ladder=False`` leaves out what other
        relaxations certify, which takes the longest to find.
        """
        write_results([self], path, force=force, ladder=ladder)

    def report(self, path: str | Path) -> None:
        """Write a report for people as one HTML file that needs nothing else: no other file, and no network."""
        if self.source is None:
            raise DataError("this certificate was put together by hand: a report needs one that certify has made")
        self.source.report(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the policy, ready for JSON; infinite numbers as text, bounds not claimed as null."""
        return {
            "schema": SCHEMA,
            "status": str(self.status),
            "lower": plain(self.lower) if self.claims_bounds else None,
            "upper": plain(self.upper) if self.claims_bounds else None,
            "objective": self.objective,
            "direction": self.direction,
            "confidence": self.confidence,
            "relaxation": self.relaxation,
            "confidence_set": self.confidence_set,
            "guarantee": str(self.guarantee),
            "assumptions": list(self.assumptions),
            "reason": self.reason,
            "parameters": plain(self.parameters),
            "solver": self.solver,
            "seconds": dict(self.seconds),
            "provenance": dict(self.provenance),
            "estimate": dict(self.estimate),
            "estimated_value": self.estimated_value,
            "gap": plain(self.gap),
            "jointly": list(self.jointly),
            "p_value": self.p_value,
            "not_coupled": self.not_coupled,
            "remark": self.remark,
            "left_out": self.left_out,
            "not_in_likelihood": self.not_in_likelihood,
            "misfit": self.misfit,
            "budget": {words: float(share) for words, share in self.budget},
            "data_quality": None if self.data_quality is None else self.data_quality.to_dict(),
        } | ({"answer": dict(self.answer)} if self.answer else {})

    def to_json(self) -> str:
        """Return everything but the policy as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


def outward(value: float, side: int, digits: int = 6) -> str:
    """Return a bound with some digits, rounded down (side -1) or up (side 1): what is printed is a bound as well.

    >>> outward(0.12345678, -1), outward(0.12345678, 1, digits=3)
    ('0.123456', '0.124')
    """
    if abs(value) == float("inf"):
        return "infinity" if value > 0 else "-infinity"
    rounding = ROUND_CEILING if side > 0 else ROUND_FLOOR
    rounded = Context(prec=digits, rounding=rounding).plus(Decimal(value)).normalize()
    return f"{rounded:f}" if 1e-6 <= abs(value) < 1e12 or not value else str(rounded)


def percent(confidence: float) -> str:
    """Return a confidence in per cent with ten digits, or as many as it takes to tell it from certainty.

    >>> percent(0.999), percent(1 - 1e-13)
    ('99.9 %', '99.99999999999 %')
    """
    text = f"{100 * confidence:.10g}"
    return f"{text} %" if float(text) < 100 else f"{(100 * Decimal(repr(confidence))).normalize():f} %"


def _shares(parts: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the share of each part of a sum in per cent, in words; parts below a thousandth are left out."""
    total = sum(parts.values())
    return [(name, f"{100 * part / total:.3g} %") for name, part in parts.items() if total and part / total >= 1e-3]


def _verdict(p_value: float, status: Status, error: float, misfit: float) -> str:
    """Return what a p-value says of the model, in words; whether that is contradicted has been decided.

    Intervals contradict a model at their own share of the error, so that the p-value need not be small; and the share
    that tests have beside them is smaller than the error.

    >>> _verdict(1.0, Status.CERTIFIED, 0.001, 0.0)
    'the data show no sign that the model is wrong (p = 1)'
    """
    text = f"p = {outward(p_value, 1, 2).lower()}"
    if misfit and p_value <= error:
        return f"no parameters explain the data ({text}); the bounds allow for rows that are off"
    if status == Status.CONTRADICTED:
        unseen = ", though tests of rows and drifts show no sign of it" if p_value > _DOUBT else ""
        return f"no parameters explain the data{unseen} ({text})"
    if p_value <= _DOUBT:
        return f"some doubt whether the model is right ({text}), but not enough to reject it"
    return f"the data show no sign that the model is wrong ({text})"
