"""Advice: where more data narrow a certificate most, in numbers, in words, and as a policy to sample by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import FloatArray, Graph, IntArray
from plumdp.model.language.words import is_probability
from plumdp.model.text import listing, number_of, one_line
from plumdp.result.policy_table import write_columns
from plumdp.result.printing import plain_number
from plumdp.result.show import Page, as_html, as_text

CHOICE_COLUMNS = ("state", "action", "visits so far", "visits per advised run", "width falls per visit")
NOTICEABLE = 0.01  # share of the gradient that is worth a word
_NAMED = 3  # rows of a table in a sentence
_MOSTLY = 0.5  # share of the gradient that is worth the first word

Plan: TypeAlias = Literal["like these", "uniform", "certified policy", "advised", "given policy"]
LIKE_THESE, UNIFORM, CERTIFIED, ADVISED, GIVEN = get_args(Plan)


@dataclass(frozen=True)
class Prediction:
    """The expected width of a certificate after a number of further runs: an estimate, not a bound."""

    sampling: str  # how the runs are sampled, in words
    runs: int
    width: float
    is_alone: bool  # whether the new runs are certified by themselves, with a pilot of their own

    @property
    def amount(self) -> str:
        """The number of runs with two digits that matter."""
        return _rounded(self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        width = self.width if isfinite(self.width) else None
        uses = "new runs alone" if self.is_alone else "all runs together"
        return {"sampling": self.sampling, "runs": self.runs, "width": width, "uses": uses}


@dataclass(frozen=True)
class ClassAdvice:
    """How much one more visit of a class helps: all choices whose unknown outcomes have these probabilities.

    Of a table it is an unknown row, by the name of one choice that has it.
    """

    outcomes: tuple[str, ...]
    visits: int  # so far
    visits_per_run: float  # expected under the advised policy
    rate: float  # share of itself by which the width falls with one more visit
    share: float  # of the variance of the value that is left to it
    mean: str | None = None  # of rewards that are learned by its visits, if there are any


@dataclass(frozen=True, eq=False)
class Advice:
    """Where more data narrow a certificate most, for one policy and objective: estimates, none of which is a bound.

    ``sampling`` is a policy that makes the width fall fastest, as a probability for each choice: ``simulate`` takes it
    as it is. ``rate`` is the share of itself by which the width falls with one more visit of each choice.
    """

    graph: Graph
    objective: str
    width: float  # of the certificate now
    target: float  # the width that is wanted
    value: float | None  # of the policy at the estimate, if that lies in the region
    policy: npt.NDArray[Any]  # what is certified: choices (n_states), or probabilities (n_choices)
    n_steps: int  # seen so far
    n_runs: int | None  # from the initial state, so far; None if the data are not such runs
    max_steps: int  # at which runs are cut off
    rate: FloatArray  # (n_choices)
    visits: FloatArray  # (n_choices): so far
    visits_per_run: FloatArray  # (n_choices): expected under ``sampling``
    sampling: FloatArray  # (n_choices)
    classes: tuple[ClassAdvice, ...]  # those whose visits help most come first
    predictions: tuple[Prediction, ...]  # after the number of runs that was asked for, or twice the data
    enough: tuple[Prediction, ...]  # about how many runs bring the certificate to the target, by default half as wide
    unseen: float  # share of the gradient, from 0 to 1, that comes from rows the likelihood ignores
    directly: FloatArray  # (n_choices): more visits that are enough for the target, of rows of a table that are sampled

    def __repr__(self) -> str:
        return one_line(self, f"width {self.width:.3g}", *(f"{p.sampling}: {p.width:.3g}" for p in self.predictions))

    def page(self) -> Page:
        """Return the advice in words, and the choices at which a run helps most."""
        choices = [self.describe(int(choice)) for choice in self.best_choices()]
        table = Page("where one more run helps most", header=CHOICE_COLUMNS, rows=[*map(choice_cells, choices)])
        return Page(self.objective, self.sentences(), folded=[table])

    __str__ = as_text
    _repr_html_ = as_html

    def best_choices(self, n: int = 10) -> IntArray:
        """Return the choices (at most n) at which a run helps most: expected visits under ``sampling`` times rate."""
        worth = self.rate * self.visits_per_run
        order = np.argsort(-worth, kind="stable")[:n]
        return np.asarray(order[worth[order] > 0], dtype=np.int32)

    def sentences(self, *, file: str = "") -> list[str]:
        """Return the advice in words; ``file`` is where the policy was written."""
        by = {
            UNIFORM: "with uniform choices",
            CERTIFIED: "under the certified policy",
            LIKE_THESE: "like these",
        }
        by |= {ADVISED: f"under the policy in {file}" if file else "under the advised policy"}
        now = f"now {self._wide(self.width)}, after {number_of(self.n_steps, 'step')}"
        aim = "halve" if self.target == self.width / 2 else f"bring to {self._wide(self.target)}"
        aim += f" the width of the bracket ({now})"
        runs = [f"{p.amount} {by.get(p.sampling, p.sampling)}{_alone(p)}" for p in self.enough]
        if runs:
            found = [f"To {aim}, collect about this many more runs: {'; '.join(runs)}."]
        elif isfinite(self.width):
            found = [f"No number of runs up to 10^12 is predicted to {aim}."]
        else:
            found = [f"The bracket has an end that is not finite, after {number_of(self.n_steps, 'step')}."]
        found += self._rows() + self._rewards()
        for n, of in groupby(self.predictions, lambda p: p.runs):
            widths = [f"{self._number(p.width)} {by.get(p.sampling, p.sampling)}{_alone(p)}" for p in of]
            unit = ", in percentage points" * is_probability(self.objective)
            found.append(f"Expected width after {number_of(n, 'more run')}{unit}: {'; '.join(widths)}.")
        if any(p.is_alone for p in (*self.enough, *self.predictions)):
            found.append(
                "*Certified from the new runs alone: decide before you look at these whether to add them to the data."
            )
        if self.unseen > NOTICEABLE:
            share = f"{100 * self.unseen:.0f} % of the gradient comes from rows that the likelihood ignores"
            blind = f"{share}: the advised policy is not planned for what these rows show."
            found.insert(0 if self.unseen > _MOSTLY else len(found), blind)
        return found

    def _number(self, width: float) -> str:
        return plain_number(width * (100 if is_probability(self.objective) else 1), 0, is_probability=False)

    def _wide(self, width: float) -> str:
        """Return a width in words, that of a probability in percentage points."""
        said = self._number(width)
        return f"{said} percentage point{'s' * (said != '1')}" if is_probability(self.objective) else said

    def _rows(self) -> list[str]:
        """Return which rows of a table limit the width, and visits of single rows that are enough, in words."""
        if not self.directly.any():
            return []
        largest = [f"{each.outcomes[0]} ({100 * each.share:.0f} %)" for each in self.classes[:_NAMED]]
        order = np.argsort(-self.directly, kind="stable")
        n_rows = int((self.directly > 0).sum())
        most = [f"{_rounded(self.directly[c])} of {self.graph.describe_choice(int(c))}" for c in order[:n_rows]]
        enough = f"about {_rounded(self.directly.sum())} more visits of {number_of(n_rows, 'row')}"
        wide = self._wide(self.target)
        return [
            f"The rows that limit the width most, by their shares of the variance: {'; '.join(largest)}.",
            f"If rows can be sampled one by one, {enough} bring it to {wide}: {listing(most, _NAMED)}.",
        ]

    def _rewards(self) -> list[str]:
        """Return which means of rewards limit the width, and how many more values are enough, in words."""
        return [
            f"The mean reward {each.mean} has {100 * each.share:.0f} % of the variance, by "
            f"{number_of(each.visits, 'value')}; {self._more_values(each)}."
            for each in self.classes[:_NAMED]
            if each.mean is not None and each.share > NOTICEABLE
        ]

    def _more_values(self, each: ClassAdvice) -> str:
        """Return the number of further values for the wanted width, or the width that no number of them beats."""
        wanted = (self.target / self.width) ** 2 if self.width else 1.0
        left = wanted - (1 - each.share)  # of the variance, for this mean
        if left <= 0:
            least = self.width * max(1 - each.share, 0.0) ** 0.5
            return f"more of them alone bring the width to no less than {self._wide(least)}"
        more = max(each.visits * (each.share / left - 1), 0)
        return f"about {_rounded(more)} more of them alone bring the width to {self._wide(self.target)}"

    def to_dict(self, n: int = 10) -> dict[str, Any]:
        """Return the advice, with the n best choices, ready for JSON."""
        return {
            "objective": self.objective,
            "width": self.width if isfinite(self.width) else None,
            "target": self.target if isfinite(self.target) else None,
            "estimated_value": self.value,
            "steps": self.n_steps,
            "runs": self.n_runs,
            "max_steps": self.max_steps,
            "enough": [p.to_dict() for p in self.enough],
            "predictions": [p.to_dict() for p in self.predictions],
            "choices": [self.describe(int(choice)) for choice in self.best_choices(n)],
            "classes": [asdict(each) for each in self.classes[:n]],
            "not_in_likelihood": self.unseen,
            "visits_if_sampled_directly": float(self.directly.sum()),
        }

    def describe(self, choice: int) -> dict[str, Any]:
        """Return state, action and what visits of a choice are worth."""
        state = self.graph.state_of(choice)
        return {
            "state": {name: values[state].item() for name, values in self.graph.states.items()},
            "action": self.graph.action_names[self.graph.action[choice]],
            "rate": float(self.rate[choice]),
            "visits": int(self.visits[choice]),
            "visits_per_run": float(self.visits_per_run[choice]),
            "probability": float(self.sampling[choice]),
        }

    def columns(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Return the sampling policy as columns: state variables, action and probability, one row per choice."""
        graph = self.graph
        owner, names = graph.state_of_choice(), np.array(graph.action_names, dtype=object)
        action = "action" if "action" not in graph.states else "chosen_action"
        share = "probability" if "probability" not in graph.states else "chosen_probability"
        states = {name: values[owner] for name, values in graph.states.items()}
        return {**states, action: names[graph.action], share: self.sampling}

    def to_csv(self, path: str | Path) -> None:
        """Write the sampling policy: one line per choice, with state variables, action and probability."""
        write_columns(path, self.columns())


def choice_cells(choice: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a choice, as ``Advice.describe`` has it, in a table of these columns."""
    return (
        ", ".join(f"{name}={value}" for name, value in choice["state"].items()),
        choice["action"],
        f"{choice['visits']:,}",
        f"{choice['visits_per_run']:.3g}",
        f"{100 * choice['rate']:.2g} %",
    )


def _rounded(number: float) -> str:
    """Return a whole number with two digits that matter."""
    whole = round(number)
    return f"{round(whole, -max(0, len(str(whole)) - 2)):,}"


def _alone(prediction: Prediction) -> str:
    return "*" if prediction.is_alone else ""
