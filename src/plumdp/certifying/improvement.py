"""Finds the policy with the largest certified gain over a baseline, such as what is done today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.base.vocabulary import REJECTIONS, Standing
from plumdp.certifying.claims import to_narrow
from plumdp.certifying.difference import Difference, acts_alike, check_margin, difference_of
from plumdp.certifying.pipeline import comparing, conclude, relax
from plumdp.certifying.policy_search import search_policies
from plumdp.learning.learned import Learned, of_learned
from plumdp.learning.methods import SETS
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy
from plumdp.model.question import PRACTICE, Asked, Question, ask, is_practice
from plumdp.region.conflict import Conflict
from plumdp.result.certificate import Certificate
from plumdp.result.policy_table import PolicyTable
from plumdp.result.printing import outward
from plumdp.result.show import Page, as_html, as_json, as_text

_MOST_CERTIFIED = 3  # policies whose differences are proved, of all that a search proposes
_FOUND = "the recommended policy"


@dataclass(frozen=True, eq=False)
class Improvement:
    """A policy that is better than a baseline, with the confidence of its certificate, or else the baseline itself.

    ``difference`` is that of the best policy that was found to the baseline, also if it is not certified to be better.
    """

    picture: ClassVar = "difference"

    difference: Difference
    baseline: str  # in words
    n_compared: int  # policies whose difference to the baseline was bounded; all of these bounds hold jointly

    @property
    def is_better(self) -> bool:
        """Whether the policy is certified to be better than the baseline; if not, it is the baseline."""
        return Standing.BETTER in self.difference.verdicts

    @property
    def certificate(self) -> Certificate:
        """The bounds on the value of the policy."""
        return self.difference.first if self.is_better else self.difference.second

    @property
    def compared(self) -> Certificate:
        """The certificate with the comparison to the baseline, if there is one, as folders keep it."""
        if not self.n_compared:
            return self.certificate
        return self.difference.with_comparison("first" if self.is_better else "second")

    @property
    def policy(self) -> PolicyTable:
        """The policy to follow."""
        return self.certificate.policy

    @property
    def gain(self) -> float:
        """How much better than the baseline the policy is at least, and 0 if it is the baseline."""
        ends = self.difference.lower, -self.difference.upper
        return ends[self.certificate.claim.direction == "min"] if self.is_better else 0.0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the claim rests on, in words."""
        return self.difference.assumptions

    @property
    def headline(self) -> str:
        """Whether there is a better policy than the baseline, and how much better it is, in words."""
        if self.is_better or self.certificate.status in REJECTIONS:
            return self.difference.headline
        is_alone = self.difference.is_claim and not self.n_compared
        why = f"Inconclusive: no other policy than {self.baseline} was found." if is_alone else self.difference.headline
        return f"{why} Keep {self.baseline}: no policy is known to be better."

    def __repr__(self) -> str:
        return f"Improvement({'by at least ' + outward(self.gain, -1) if self.is_better else 'none certified'})"

    def page(self) -> Page:
        """Return the gain, the bounds on both values, and what they rest on."""
        rules = self.policy.short_rules if self.is_better else ""
        facts = [*([("policy", rules)] if rules else []), *self.difference.page().facts]
        return Page(self.headline, self.difference.brackets, facts=facts, folded=[self.certificate])

    SCHEMA: ClassVar[str] = "plumdp/improvement/1"
    TOLD: ClassVar[str] = "is_better gain headline baseline compared=n_compared assumptions certificate difference"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json


@of_learned
@working("looking for a better policy")
@one_blas_thread()
def improve(
    learned: Learned,
    objective: Asked,
    *,
    over: Policy = PRACTICE,
    margin: float = 0.0,
    name: str = "",
    precision: float = 1e-6,
) -> Improvement:
    """Return the policy with the largest certified gain over a baseline, or the baseline if none is certified.

    The probability that a policy is returned which is worse than the baseline is at most one minus the confidence. All
    candidates are compared on one region, so that the best of them may be chosen by looking at all data.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    objective
        The question, or its text.
    over
        The baseline: any ``Policy``, or "practice" for how often the data take each action in each state, which is the
        default. In a table, practice is that of the first data, as bets on its value are placed on the rest:
        pre-specify it to ``learn`` by ``Question(model, objective, against="practice")``, and a policy that you chose
        before you looked at the data in the same way.
    margin
        A difference that does not matter, as of ``difference``, for what is said of a policy that is not better.
    name
        What sentences call the baseline.
    precision
        As in ``conclude``.

    Returns
    -------
    Improvement
        The policy, and the bounds on its gain.

    Examples
    --------
    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> better = improve(learned, study.objective)
    >>> print(better.headline.partition(" under ")[0])
    Certified: the expected “money” until the system reaches “end” is 3.74 to 4.37 higher
    >>> better.policy.action(money=10, step=0)
    'bet5'
    """
    check_margin(margin)
    question = ask(objective, learned.model, memory=learned.model.counted.is_table)
    name = name or (PRACTICE if is_practice(over) else "the baseline")
    other = conclude(learned, question, policy=over, precision=precision)
    differences = [
        difference_of(learned, question, one, other, margin=margin, names=(_FOUND, name), precision=precision)
        for one in _candidates(learned, question, other, precision)
    ]
    best = max(differences, key=_worst_gain, default=Difference(0.0, 0.0, other, other, (_FOUND, name), is_same=True))
    # the data did choose it, so that nobody can pre-specify it
    how = best.first.how
    found = replace(best.first, how=replace(how, options={**how.options, "policy": "found"}))
    narrower = how.narrower and to_narrow(learned, found)
    first = replace(best.first, how=replace(how, narrower=narrower))
    return Improvement(replace(best, first=first), name, len(differences))


def with_baseline(
    objectives: Sequence[Asked], model: ParametricMDP, over: Policy, *, prespecified: bool = False
) -> list[Question]:
    """Return the questions to pre-specify to ``learn``: the objectives, and a baseline that the data did not choose."""
    questions = [ask(each, model, memory=model.counted.is_table) for each in objectives]
    return [one for each in questions for one in comparing(each, None, over, prespecified=prespecified)]


def _worst_gain(difference: Difference) -> float:
    """Return the least gain over the baseline that is certified, which may be negative."""
    return difference.lower if difference.first.claim.direction == "max" else -difference.upper


def _candidates(learned: Learned, question: Question, baseline: Certificate, precision: float) -> list[Certificate]:
    """Return certificates of policies that may be better than the baseline.

    They are the one that is best by itself, and those whose estimated difference has the best bounds. In a table, they
    are the one that is best against nature, and all that bets were placed on.
    """
    graph, rival = question.model.graph, check_policy(question.model.graph, baseline.policy)
    prespecified = SETS[learned.kind].policies(learned.bounds, question)
    if prespecified is not None and not isinstance(learned.region, Conflict):
        robust = learned.at_points(question).robust(relax(learned, "interval", question.model), precision).policy
        policies = {each.tobytes(): each for each in (robust, *(each for _, each in prespecified))}
        others = [policy for policy in policies.values() if not acts_alike(graph, policy, rival)]
        return [conclude(learned, question, policy=policy, precision=precision) for policy in others]
    best = conclude(learned, question, precision=precision)
    given = check_policy(graph, best.policy)
    certificates = [] if acts_alike(graph, given, rival) else [best]
    region = learned.with_points(question.model)
    if region is None:
        return certificates
    solver = learned.at_points(question)
    candidates = search_policies(question.model, question.objective, region, [given], solver, rival=rival)
    others = [each.policy for each in candidates if not any(map(each.does, (given, rival)))]
    more = (conclude(learned, question, policy=policy, precision=precision) for policy in others[:_MOST_CERTIFIED])
    return [*certificates, *more]
