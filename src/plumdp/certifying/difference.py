"""Compares two policies by what the data say about the difference of their values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from math import inf, isnan, nextafter
from typing import Any, Literal

from plumdp.base.vocabulary import Verdict
from plumdp.certifying.pipeline import conclude, default_relaxation, relax
from plumdp.certifying.valuation import Sought, best_ends, prove
from plumdp.learning.learned import Learned, require_learned
from plumdp.model.policy import Policy, check_policy, memory_of
from plumdp.model.question import Asked, Question, ask
from plumdp.result.certificate import Certificate, Status, outward, percent
from plumdp.result.json_values import json_value
from plumdp.result.printing import fact_lines
from plumdp.solver.coupled.bounds import Proof


@dataclass(frozen=True, eq=False)
class Difference:
    """Bounds on the value of the first policy less that of the second, which hold jointly with both certificates."""

    lower: float
    upper: float
    first: Certificate
    second: Certificate
    names: tuple[str, str] = ("the first policy", "the second policy")
    not_coupled: str = ""  # why the bounds are no better than the difference of both brackets

    @property
    def verdict(self) -> Verdict:
        """Whether the first policy is better: yes, no, or not known yet."""
        sign = 1 if self.first.direction == "max" else -1
        if not self.is_claim or self.lower <= 0 <= self.upper:
            return Verdict.UNKNOWN
        return Verdict.YES if sign * self.lower > 0 else Verdict.NO

    @property
    def is_claim(self) -> bool:
        """Whether the bounds are proved, under the assumptions of both certificates."""
        return self.first.status != Status.CONTRADICTED

    @property
    def sentence(self) -> str:
        """Which policy is better and by how much, in words."""
        if not self.is_claim:
            return "Not yet known: the data contradict the model, so that nothing follows from them."
        share = f"with confidence {percent(self.first.confidence)}"
        first, second = self.names
        if self.verdict == Verdict.UNKNOWN:
            ends = f"{outward(self.lower, -1)} and {outward(self.upper, 1)}"
            return f"Not yet known: the value of {first} less that of {second} lies between {ends}, {share}."
        better = first if self.verdict == Verdict.YES else second
        low, high = (self.lower, self.upper) if self.lower > 0 else (-self.upper, -self.lower)
        word = "larger" if self.first.direction == "max" else "smaller"
        amount = f"at least {outward(low, -1)} and at most {outward(high, 1)}"
        better = better.replace("the ", "The ", 1) if better.startswith("the ") else better
        return f"{better} is better: its value is {word} by {amount}, {share}."

    def __repr__(self) -> str:
        return f"Difference({self.lower:.6g} to {self.upper:.6g}, {self.first.objective})"

    @property
    def brackets(self) -> str:
        """The bounds on both values, each in a line."""
        return "\n".join(
            f"  {name}: between {' and '.join(each.printed_bounds)}"
            for name, each in zip(self.names, (self.first, self.second), strict=True)
        )

    def __str__(self) -> str:
        return "\n".join([self.sentence, self.brackets, *fact_lines(self.first.premises())])

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.sentence)}</b></p>{self.first._repr_html_()}{self.second._repr_html_()}"

    @property
    def comparison(self) -> dict[str, Any]:
        """The sentence, the names, and the bounds of both values and of the difference, as folders keep them."""
        one, other = ((each.lower, each.upper) for each in (self.first, self.second))
        ends = {"first": one, "second": other, "difference": (self.lower, self.upper)}
        bounds = {name: json_value(list(each)) for name, each in ends.items()}
        return {"sentence": self.sentence, "names": list(self.names), **bounds}

    def with_comparison(self, of: Literal["first", "second"] = "first", assuming: tuple[str, ...] = ()) -> Certificate:
        """Return the certificate of one policy with the comparison to the other, which its ``save`` keeps as well.

        ``assuming`` says what the comparison rests on beside the assumptions of both certificates.
        """
        kept, rival = (self.first, self.second) if of == "first" else (self.second, self.first)
        return replace(kept, comparison={**self.comparison, "policy": of, "assuming": [*assuming]}, rival=rival.policy)

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "schema": "plumdp/difference/1",
            "lower": json_value(self.lower),
            "upper": json_value(self.upper),
            "verdict": str(self.verdict),
            "sentence": self.sentence,
            "not_coupled": self.not_coupled,
            "assumptions": list(self.first.assumptions),
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
        }


def difference(
    learned: Learned,
    objective: Asked,
    first: Policy,
    second: Policy,
    *,
    names: tuple[str, str] = ("the first policy", "the second policy"),
    precision: float = 1e-6,
) -> Difference:
    """Return bounds on the value of one policy less that of another.

    Values of two policies move together with the parameters, so that their difference may be known better than either.
    The bounds hold jointly with everything else that follows from ``learned``, and are never wider than the difference
    of both certificates. Both policies may be chosen by looking at all data. One of them, or both, may count steps.

    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> print(difference(learned, study.objective, "bet0", "uniform").sentence)
    The first policy is better: its value is larger by at least 1.72165 and at most 2.11794, with confidence 99.9 %.
    """
    require_learned("difference", learned)
    question = ask(objective, learned.model, memory=memory_of(first, second))
    chosen, rival = (check_policy(question.model.graph, policy) for policy in (first, second))
    one, other = (conclude(learned, question, policy=policy, precision=precision) for policy in (chosen, rival))
    return difference_of(learned, question, one, other, names=names, precision=precision)


def difference_of(
    learned: Learned,
    question: Question,
    one: Certificate,
    other: Certificate,
    *,
    names: tuple[str, str],
    precision: float = 1e-6,
) -> Difference:
    """Return bounds on the value of one policy less that of another, given the certificates of both."""
    lower, upper = _less(one.lower, other.upper, -inf), _less(one.upper, other.lower, inf)
    apart = {"both": Proof(lower, upper, 0.0, 0.0, 0.0, "of both")}
    uncertain = relax(learned, default_relaxation(learned), question.model)
    sought = Sought(learned, question, uncertain, one.policy, other.policy, precision)
    proofs, reason = prove(sought, apart)
    return Difference(*best_ends(proofs.values()), one, other, names, reason if len(proofs) == 1 else "")


def _less(one: float, other: float, side: float) -> float:
    """Return a difference rounded toward a side, or the side itself if both are infinite."""
    value = one - other
    return side if isnan(value) else nextafter(value, side)
