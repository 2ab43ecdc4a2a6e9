"""Questions for the least budget, or the least number of steps, as ``quantile(B, P>=0.9 [ F{"fuel"}<=B "goal" ])``.

The words are Storm's. Whether the least or the largest B is meant follows from the rest, and may be said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from plumdp.model.language.predicate import NamedModel
from plumdp.model.language.threshold import Threshold, parse_threshold
from plumdp.model.language.tokens import Token, Tokens
from plumdp.model.missions.budget import Budget
from plumdp.model.objectives import Reach
from plumdp.model.objectives.mission import Mission

_STEPS = "step"


@dataclass(frozen=True, eq=False)
class Quantile:
    """The question for the least (``is_least``) or the largest budget with which a threshold is kept."""

    text: str
    name: str  # of the reward that is spent, or "step"
    is_least: bool
    with_nothing: Threshold  # with a budget of 0
    before: str
    after: str
    model: NamedModel

    def __repr__(self) -> str:
        return f"Quantile({self.text})"

    def at(self, most: Fraction | int) -> Threshold:
        """Return the threshold with a budget."""
        return parse_threshold(f"{self.before}{most}{self.after}", self.model)

    def forever(self) -> Threshold:
        """Return the threshold without a bound."""
        objective, (spent, _) = self.with_nothing.objective, self.task(0)
        reach = Reach(
            spent.target,
            spent.avoid,
            objective.direction,
            complement=_is_complement(self.with_nothing),
            nature=objective.nature,
        )
        return replace(self.with_nothing, objective=replace(reach, text=objective.text), text=self.text)

    def task(self, most: Fraction | int) -> tuple[Budget, Mission]:
        """Return the budget, which may be of steps, and the question with it."""
        objective = self.at(most).objective
        if isinstance(objective, Mission) and isinstance(objective.task, Budget):
            return objective.task, objective
        assert isinstance(objective, Reach)
        assert objective.steps is not None
        ones = np.ones(self.model.graph.n_choices, dtype=np.int64)
        budget = Budget(_STEPS, ones, objective.steps[1], Fraction(1), objective.target, objective.avoid)
        mission = Mission(budget, objective.complement, objective.direction, objective.nature, text=objective.text)
        return budget, mission


def is_quantile(text: str) -> bool:
    """Return whether a property asks for a budget.

    >>> is_quantile('quantile(B, P>=0.9 [ F<=B "goal" ])'), is_quantile('P>=0.9 [ F "goal" ]')
    (True, False)
    """
    return text.lstrip().startswith("quantile")


def parse_quantile(text: str, model: NamedModel) -> Quantile:
    """Return the question for a budget, ``quantile(min B, P>=0.9 [ … <=B … ])``, where min or max may be left out.

    >>> from plumdp import case_study
    >>> model = case_study("rover:4,4,2").model
    >>> parse_quantile('quantile(B, Pmax>=0.9 [ F<=B "target" ])', model).is_least
    True
    """
    tokens = Tokens(text)
    for word in ("quantile", "("):
        tokens.expect(word)
    said = tokens.take().text if tokens.next.text in ("min", "max") else ""
    variable = tokens.take()
    if variable.kind != "word" or variable.text in (*model.graph.states, *model.constants):
        what = "is a name of the model" if variable.kind == "word" else "is not a name"
        raise tokens.error(
            f"{variable.text or 'nothing'} {what}; name the budget by a letter, as in quantile(B, …)", variable
        )
    tokens.expect(",")
    start, place = tokens.next, _place(tokens, variable)
    last = tokens.all[-2]
    if last.text != ")":
        tokens.index = len(tokens.all) - 1
        raise tokens.unexpected("where ) is expected")
    before, after = text[start.position : place.position], text[place.position + len(variable.text) : last.position]
    zero = parse_threshold(f"{before}0{after}", model)
    objective = zero.objective
    is_budget = isinstance(objective, Mission) and isinstance(objective.task, Budget)
    if not is_budget and not (isinstance(objective, Reach) and objective.steps is not None):
        raise tokens.error(
            f"{variable.text}: a budget or a number of steps is asked for one F, U or G with predicates, as in "
            f'P>=0.9 [ F<={variable.text} "goal" ]',
            place,
        )
    name = objective.task.name if isinstance(objective, Mission) and isinstance(objective.task, Budget) else _STEPS
    is_least = ((zero.comparison in (">", ">=")) != _is_complement(zero)) != zero.is_negated
    if said and (said == "min") != is_least:
        kept = "least" if is_least else "largest"
        other = "max" if said == "min" else "min"
        raise tokens.error(
            f"{said} {variable.text}: here the {kept} is asked for, write {other} {variable.text}", variable
        )
    return Quantile(text.strip(), name, is_least, zero, before, after, model)


def _is_complement(threshold: Threshold) -> bool:
    return bool(getattr(threshold.objective, "complement", False))


def _place(tokens: Tokens, variable: Token) -> Token:
    """Return where the variable is, which is once, behind ``<=``."""
    places = [i for i in range(tokens.index, len(tokens.all)) if tokens.all[i].text == variable.text]
    example = f'F{{"fuel"}}<={variable.text} or F<={variable.text}'
    if len(places) != 1:
        count = "not at all" if not places else "more than once"
        raise tokens.error(f"{variable.text} is used {count}; use it once, as in {example}", variable)
    if tokens.all[places[0] - 1].text != "<=":
        raise tokens.error(f"{variable.text} is the most that may be spent; write {example}", tokens.all[places[0]])
    return tokens.all[places[0]]
