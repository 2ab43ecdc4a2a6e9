"""Audits a certificate by new runs: the value of its policy from these alone, without the model's probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Literal

import numpy as np

from plumdp.base.errors import DataError, Option, require_kind
from plumdp.base.progress import working
from plumdp.base.rounding import down, up
from plumdp.base.vocabulary import LogForm
from plumdp.confidence import run_bets
from plumdp.confidence.bounded_means import Tally, evidence_outside, mean_bounds, numbers_to_exclude, p_value
from plumdp.data.mappings import Actions, StateMaps
from plumdp.data.returns import Range, outcomes_of, range_of_returns, scaled
from plumdp.data.run_record import WholeRuns
from plumdp.data.whole_runs import read_whole_runs
from plumdp.learning.assumptions import assumptions_of_runs
from plumdp.learning.methods import error_of
from plumdp.model.gaps import refuse_gaps
from plumdp.model.language.property import as_objective
from plumdp.model.objectives import Objective
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.question import ask
from plumdp.model.text import number_of, one_line
from plumdp.result.certificate import Certificate
from plumdp.result.policy_table import PolicyTable
from plumdp.result.printing import outward, percent
from plumdp.result.show import Page, as_html, as_json, as_text

_HALVINGS = 20  # of the distance of a mean that would be told

AuditVerdict = Literal["not contradicted", "contradicted"]


@dataclass(frozen=True, eq=False)
class Audit:
    """Bounds on the value of a certified policy from new runs alone, and whether they contradict its certificate.

    ``visible`` is about how far outside of the certified bounds a value must be so that as many runs contradict them in
    half of all cases, or None if they would do so for no value: an estimate.
    """

    lower: float
    upper: float
    confidence: float
    n_runs: int
    n_incomplete: int  # of these, which count with all returns that they might have had
    p_value: float  # of the certified bounds, valid at any time
    certified: Range
    return_range: Range  # of all returns
    spread: float  # the standard deviation of returns: an estimate
    objective: str
    assumptions: tuple[str, ...]
    visible: float | None = None

    @property
    def verdict(self) -> AuditVerdict:
        """Whether the runs contradict the certificate, with an error of at most one minus the confidence."""
        return "contradicted" if self.p_value <= 1 - self.confidence else "not contradicted"

    @property
    def sentence(self) -> str:
        """The bounds and the verdict in words."""
        low, high = outward(self.lower, -1), outward(self.upper, 1)
        certified = f"between {outward(self.certified[0], -1)} and {outward(self.certified[1], 1)}"
        found = f"they contradict the certificate ({certified}), p-value {outward(self.p_value, 1, digits=2)}"
        if self.verdict == "not contradicted":
            tell = "they would hardly contradict any value"
            if self.visible is not None:
                tell = f"if the value were about {self.visible:.2g} outside, half of all such audits would show it"
            found = f"they do not contradict the certificate ({certified}); {tell} (an estimate)"
        return (
            f"{number_of(self.n_runs, 'run')} under the policy: value between {low} and {high} with confidence "
            f"{percent(self.confidence)}, from these runs alone; {found}."
        )

    def __repr__(self) -> str:
        return one_line(self, number_of(self.n_runs, "run"), self.verdict, self.objective)

    def page(self) -> Page:
        """Return the bounds, the verdict, and what they rest on."""
        return Page(self.sentence, facts=[("assuming", each) for each in self.assumptions])

    SCHEMA: ClassVar[str] = "plumdp/audit/1"
    TOLD: ClassVar[str] = (
        "lower upper confidence n_runs n_incomplete p_value verdict certified return_range spread visible "
        "objective assumptions sentence"
    )
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json


@working("auditing the certificate")
def audit(
    certificate: Certificate,
    model: ParametricMDP,
    runs: Any,
    *,
    confidence: float = 0.999,
    return_range: Range | None = None,
    columns: Mapping[str, str] | None = None,
    states: StateMaps | None = None,
    actions: Actions | None = None,
    form: LogForm | None = None,
    expected: float | None = None,
) -> Audit:
    """Return bounds on the value of a certified policy from new runs under it, and whether they contradict it.

    The runs must be new, start in the initial state, and follow the policy: a step that contradicts it is an error.
    Each counts until its return is decided; one that ends earlier counts with all returns that it might have had. The
    model says what states and steps count, and no probability of it is used. You may look as often as you like, and
    stop when you like.

    Parameters
    ----------
    certificate, model
        The certificate, and the model that it is about. ``read_result(folder, model)`` opens a saved one.
    runs
        A log with a run and a step in each row, as ``read_log`` reads it; so are ``columns``, ``states``, ``actions``
        and ``form``.
    confidence
        Probability that the bounds hold; the verdict is wrong with probability at most one minus it.
    return_range
        Two numbers between which all returns lie, chosen before looking. Default: 0 and 1 for probabilities, and
        what steps, discount and rewards of the model allow; sums of rewards without these need it.
    expected
        How many runs you announced before there were any, if runs are numbered in the order in which they were made and
        each had ended before the next began. A wrong guess costs width, never validity.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, certify, simulate
    >>> from plumdp.data import write_runs
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> found = certify(study.model, counts, study.objective)
    >>> with TemporaryDirectory() as folder:
    ...     fresh = f"{folder}/fresh.parquet"
    ...     steps = write_runs(study.model, study.true_point, 2_000, fresh, rng=2, max_steps=7, policy=found.policy)
    ...     audit(found, study.model, fresh, return_range=(0, 100)).verdict
    'not contradicted'
    """
    error = error_of(confidence)
    objective = audited(certificate, model)
    read = read_whole_runs(model, runs, columns=columns, states=states, actions=actions, form=form, expected=expected)
    require_fresh(certificate, read)
    policy = certificate.policy
    made = outcomes_of(objective, model, read, policy.graph, policy, return_range=return_range)
    lower, upper, within = made.lower, made.upper, made.within
    claimed, spread = claimed_shares(certificate, within), float(np.std(lower / 2 + upper / 2))
    if expected is None:
        seen = Tally.of(lower), Tally.of(upper)
        bounds, evidence = mean_bounds(*seen, error), evidence_outside(*seen, claimed)
        visible = _visible(claimed, len(read), error, spread)
    else:
        bounds = run_bets.mean_ends(lower, upper, error, expected)
        evidence = run_bets.log_evidence_outside(lower, upper, claimed, error, expected)
        visible = run_bets.estimate_visible(claimed, len(read), error, spread)
    return Audit(
        lower=made.value(bounds[0], -1),
        upper=made.value(bounds[1], 1),
        confidence=confidence,
        n_runs=len(read),
        n_incomplete=int((~made.is_complete).sum()),
        p_value=p_value(evidence),
        certified=(certificate.lower, certificate.upper),
        return_range=within,
        spread=spread * (within[1] - within[0]),
        objective=certificate.objective,
        assumptions=(*assumptions_of_runs(read, made, objective), *_of_draws(policy)),
        visible=None if visible is None else visible * (within[1] - within[0]),
    )


def runs_to_audit(
    certificate: Certificate,
    model: ParametricMDP,
    deviation: float,
    *,
    confidence: float = 0.999,
    return_range: Range | None = None,
    spread: float | None = None,
) -> int:
    """Return about how many runs an audit needs to show that a value is this far outside of the certified bounds.

    So many tell it about half of the time, and twice as many nearly always. This is for returns that vary as much as
    they can, as those of probabilities do, unless ``spread`` is their standard deviation, such as that of an earlier
    audit.

    >>> from plumdp import case_study, certify, simulate
    >>> study = case_study("rover:4,4,2")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=study.max_steps)
    >>> found = certify(study.model, counts, study.objective)
    >>> 0 < runs_to_audit(found, study.model, 0.1) < runs_to_audit(found, study.model, 0.05)
    True
    """
    error, objective = error_of(confidence), audited(certificate, model)
    if not deviation > 0 or not isfinite(deviation):
        raise DataError(Option("deviation", deviation), ": give how far the value is off, a number above 0")
    within = range_of_returns(objective, model, certificate.policy.graph, certificate.policy, return_range)
    width = within[1] - within[0]
    varies = 1.0 if spread is None else spread / width
    needed = numbers_to_exclude(claimed_shares(certificate, within), deviation / width, error, varies)
    if needed is None:
        low, high = outward(within[0], -1), outward(within[1], 1)
        raise DataError(
            Option("deviation", deviation),
            f": no value between {low} and {high} is so far outside of the certified bounds",
        )
    return needed


def _visible(claimed: Range, n_runs: int, error: float, spread: float) -> float | None:
    """Return about how far outside of what is claimed a mean is told by so many runs in half of all cases."""
    few, enough = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (few + enough) / 2
        needed = numbers_to_exclude(claimed, middle, error, spread)
        few, enough = (few, middle) if needed is None or needed <= n_runs else (middle, enough)
    needed = numbers_to_exclude(claimed, enough, error, spread)
    return enough if needed is not None and needed <= n_runs else None


def audited(certificate: Certificate, model: ParametricMDP) -> Objective:
    """Return the certified question, on the model whose states runs show. One without a value to audit is refused."""
    require_kind(certificate, Certificate, "an audit takes a certificate, such as read_result(folder, model)")
    require_model("audit", model)
    refuse_gaps("audit", model)
    if not certificate.claims_bounds:
        raise DataError("the certificate claims no bounds, as its data contradict the model: there is nothing to audit")
    if model.learned_rewards:
        raise DataError("returns of rewards that depend on parameters are not read from a log, so there is no audit")
    if not certificate.objective:
        raise DataError(
            "the objective of this certificate has no text, so that it cannot be asked again; certify a property"
        )
    graph = certificate.policy.graph
    own = graph if graph.memory is None else graph.memory.graph
    if own.fingerprint != model.graph.fingerprint:
        raise DataError("the certificate's policy is not on this model: open it with read_result(folder, model)")
    objective = as_objective(certificate.objective, model)
    asked = graph if graph.memory is None else ask(objective, model, memory=graph).model.graph
    if isinstance(objective, Mission) or graph.fingerprint != asked.fingerprint:
        raise DataError("the certificate's policy uses memory that runs do not record, so that runs cannot audit it")
    return objective


def claimed_shares(certificate: Certificate, within: Range) -> Range:
    """Return the certified bounds as shares of the range, rounded outward."""
    lower, upper = (np.array([each]) for each in (certificate.lower, certificate.upper))
    return float(scaled(lower, within, down)[0]), float(scaled(upper, within, up)[0])


def require_fresh(certificate: Certificate, runs: WholeRuns) -> None:
    """Refuse a file that the certificate was made from: a policy does well in the data that it was chosen by."""
    quality = certificate.data_quality
    before = set() if quality is None or quality.report is None else {each.hash for each in quality.report.files}
    for file in runs.files:
        if file.hash and file.hash in before:
            raise DataError(f"{file.name}: the certificate was made from these data; an audit needs new runs")


def _of_draws(policy: PolicyTable) -> Iterator[str]:
    if policy.weights is not None:
        yield "where the policy draws its action, it was drawn with these probabilities"
