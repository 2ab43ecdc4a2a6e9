"""The five records of a certificate: the claim itself, how it was proved, what it rests on, and what is beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from plumdp.base.compiled import NO_STAGE
from plumdp.base.errors import Option
from plumdp.base.json_values import Confidence, Finite, Share
from plumdp.base.vocabulary import Guarantee, Relaxation, Status, findings_in
from plumdp.data.quality import DataQuality
from plumdp.model.language.words import is_probability
from plumdp.model.text import number_of
from plumdp.result.policy_table import PolicyTable
from plumdp.result.printing import bracket, outward
from plumdp.result.rungs import Ground, Rung


@dataclass(frozen=True, eq=False)
class Claim:
    """With the given confidence the value of the policy lies between ``lower`` and ``upper``, if the premises hold.

    ``status`` is "certified"; "inconclusive" if the bound that the policy was chosen for does not exclude the
    worst value there can be, or, for a policy of your own, neither bound excludes any value; or "model rejected" if
    no point of the parameter space explains the data: the bounds then rest on the graph alone, and ``reason`` says
    which expressions disagree. ``guarantee`` says what the confidence itself rests on.

    If the log shows what the graph says cannot happen, the model is contradicted as well, and no bound is claimed:
    ``lower`` and ``upper`` are infinite, and null in JSON.
    """

    lower: float
    upper: float
    policy: PolicyTable
    objective: str
    direction: Literal["max", "min"]
    confidence: Confidence
    guarantee: Guarantee
    status: Status
    reason: str = ""
    unit: str = ""  # what the value is counted in, such as "€ per month"
    contradiction: str = ""  # what contradicts the model or what is assumed, in words
    ground: Ground = Ground.ROWS  # what the bounds rest on, as one of the rungs does
    rungs: tuple[Rung, ...] = ()  # all that bound the value, the weakest premises first; none if the model does alone
    cap: float | None = None  # if the bounds are of whole runs, of whose totals no more than this counts
    claims_bounds: bool = (
        True  # not if data contradict the graph or what is assumed of runs, or rows changed or remember
    )

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
    def printed_bounds(self) -> tuple[str, str]:
        """Both bounds with six digits, rounded outward."""
        if not self.claims_bounds:
            return "none", "none"
        return outward(self.lower, -1), outward(self.upper, 1)

    @property
    def is_of_chain(self) -> bool:
        """Whether the question is of a model with one policy, as it does not say whether large values are good."""
        asked = self.objective.partition("=?")[0]
        return "max" not in asked and "min" not in asked

    @property
    def is_after_runs(self) -> bool:
        """Whether the bounds are those of the model, as whole runs do not say as much."""
        return bool(self.rungs) and self.ground == Ground.ROWS

    @property
    def bracket(self) -> str:
        """Both bounds and the unit as people write them, rounded outward."""
        return self.in_words(self.lower, self.upper)

    def in_words(self, lower: float, upper: float) -> str:
        """Return other bounds on the same value as people write them, rounded outward."""
        return bracket(lower, upper, self.unit, is_probability=is_probability(self.objective))


@dataclass(frozen=True)
class How:
    """How the bounds of a certificate were proved."""

    relaxation: Relaxation | Literal["untied"]
    confidence_set: str  # what was drawn around the data, in words
    solver: str  # how the solver ended
    seconds: Mapping[str, Finite]  # stage → time; what was compiled meanwhile is the entry ``compiling``
    narrower: tuple[str | Option, ...] = ()  # what helps most to get narrower bounds, in words
    not_coupled: str = ""  # why there are no coupled bounds, if they were asked for: these are then rectangular
    left_out: str = ""  # what is not used, such as what was cut to save time, in words: bounds hold
    not_in_likelihood: str = ""  # how many steps the likelihood ignores, and why: only intervals know what they show
    budget: tuple[tuple[str, Fraction], ...] = ()  # what the error is spent on, in words, and the share of each
    options: Mapping[str, Any] = field(default_factory=dict)  # of ``learn`` and ``conclude``: the same give the same

    @property
    def stage_seconds(self) -> float:
        """The seconds of all stages together, without those of compiling kernels, which is done once."""
        return sum(seconds for stage, seconds in self.seconds.items() if stage != NO_STAGE)

    @property
    def is_of_table(self) -> bool:
        """Whether the rows of the model are unknown, without parameters."""
        return self.options.get("confidence_set") == "table"

    @property
    def to_narrow(self) -> str:
        """The one thing that would narrow the bounds most, as a sentence without a full stop, or an empty text."""
        return f"to get narrower bounds: {''.join(map(str, self.narrower))}" if self.narrower else ""


@dataclass(frozen=True)
class RestsOn:
    """What a certificate rests on: assumptions, data, and where these come from."""

    assumptions: tuple[str, ...]
    parameters: Mapping[str, tuple[float, float]]  # name → smallest box that holds the region
    provenance: Mapping[str, Any]  # texts
    data_quality: DataQuality | None = None  # what became of the rows of the log
    model_tolerance: Share = 0.0  # how far every row may be off from the model, in total variation
    jointly: tuple[str, ...] = ()  # other properties: certificates of all of them hold at once with the confidence

    @property
    def absence(self) -> str:
        """Why there are no data, in words, if there are none: then no parameters are likely, and nothing is tested."""
        return "" if self.data_quality is None else self.data_quality.absence


@dataclass(frozen=True)
class Beside:
    """What is shown beside the bounds of a certificate, and claims nothing."""

    estimate: Mapping[str, Finite] = field(default_factory=dict)  # name → most likely value: not a bound
    estimated_value: Finite | None = None  # of the policy at the estimate: not a bound
    approximate: tuple[Finite, Finite] | None = None  # the usual normal interval, which nothing proves
    gap: Mapping[str, float] = field(default_factory=dict)  # what ``upper - lower`` is made of, if it is known
    p_value: Share | None = None  # of the model as a whole, valid at any time; None if it was not tested
    visible_error: Share | None = None  # of a row, below which that test hardly shows it, about: an estimate
    remark: str = ""  # what the policy does not make use of


@dataclass(frozen=True)
class Comparison:
    """What was decided about a certificate: an answer to a threshold, and how its policy compares with another."""

    answer: Mapping[str, Any] = field(default_factory=dict)  # to a threshold: question, verdict, of whom, limit
    difference: Mapping[str, Any] = field(default_factory=dict)  # with another policy: see ``Difference.comparison``
    rival: PolicyTable | None = None  # the other policy, which folders keep


def capped(cap: float | None) -> str:
    """Return the words for a value of which no more counts of a run than an amount."""
    return "" if cap is None else f", counting at most {cap:,.10g} of a run"


def contradicted(claim: Claim, how: How, rests_on: RestsOn) -> Claim:
    """Return a claim that says what contradicts the model or what is assumed, if something does."""
    rows = 0 if rests_on.data_quality is None else rests_on.data_quality.contradicting
    why = ""
    if rows:
        show = "shows" if rows == 1 else "show"
        why = f"{number_of(rows, 'log row')} {show} what the model excludes"
    elif not claim.claims_bounds:
        why = next(iter(findings_in(claim.reason)), "")
    elif claim.status == Status.REJECTED:
        why = "no parameters explain the data. Without its expressions, on the graph alone"
        if how.is_of_table:
            why = "no table explains the data. On the graph alone, without ties"
    return replace(claim, contradiction=why)
