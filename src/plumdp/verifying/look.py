"""Collects what a result is compared with: its own files, and the model and the log of whoever looks at it again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from csv import reader
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.edge import MOST_BYTES
from plumdp.data.counts import TransitionCounts
from plumdp.data.pilots import with_drawn_pilot
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned
from plumdp.learning.methods import SETS
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question, ask
from plumdp.result.data_file import read_data
from plumdp.result.folder import CERTIFICATE, DATA, POLICY, RIVAL, WITNESS
from plumdp.result.policy_table import PolicyTable, read_policy
from plumdp_verify.claim import Claim, read_claim
from plumdp_verify.reading import Part, Rejected, require

_MOST_COUNTS = 200  # arrays of counts, one for each moment, and sums of rewards

ModelAt = Callable[[Mapping[str, Fraction]], ParametricMDP]
"""A function from values of all parameters to a model, which is read with these in their place."""


class NotCompared(Rejected):
    """The reason why something could not be compared, which does not say that it differs."""

    is_broken = False


@dataclass(frozen=True)
class Own:
    """The model of whoever looks again, the counts of their log, and a reader that takes numbers for parameters."""

    model: ParametricMDP
    counts: TransitionCounts | None = None
    at: ModelAt | None = None


@dataclass(frozen=True)
class Look:
    """A result, and the model and counts that it is compared with: one's own, or those in its folder."""

    folder: Path
    own: Own | None = None

    @cached_property
    def witness(self) -> dict[str, Any]:
        """The content of its witness."""
        return dict(json.loads((self.folder / WITNESS).read_text(encoding="utf-8")))

    @cached_property
    def certificate(self) -> dict[str, Any]:
        """The content of its certificate."""
        return dict(json.loads((self.folder / CERTIFICATE).read_text(encoding="utf-8")))

    @cached_property
    def claim(self) -> Claim:
        """What its certificate says, as the checker reads it."""
        return read_claim(Part(self.certificate, CERTIFICATE), Part(self.witness, WITNESS))

    @property
    def has_counts(self) -> bool:
        """Whether there are counts to compare it with."""
        return (self.folder / DATA).exists() or (self.own is not None and self.own.counts is not None)

    @cached_property
    def saved(self) -> tuple[ParametricMDP, TransitionCounts] | None:
        """The model and the counts in its folder, if they are there."""
        if not (self.folder / DATA).exists():
            return None
        most, model = MOST_BYTES, None if self.own is None else self.own.model
        if model is not None:
            arrays = _MOST_COUNTS * (1 + 3 * len(model.learned_rewards))
            most = min(most, 2**24 + 2 * model.nbytes + 8 * arrays * model.graph.n_transitions)
        return read_data(self.folder / DATA, most=most)

    @cached_property
    def model(self) -> ParametricMDP:
        """The model, as the kind of set sees it."""
        if self.own is None:
            assert self.saved is not None
            return self.saved[0]
        return SETS[self.certificate["options"]["confidence_set"]].view(self.own.model)

    @property
    def counts(self) -> TransitionCounts:
        """The counts, with their pilot."""
        if self.own is not None and self.own.counts is not None:
            return self.learned.counts
        assert self.saved is not None
        counts = self.saved[1]
        is_whole = counts.pilot is not None or not SETS[self.certificate["options"]["confidence_set"]].has_bets
        return counts if is_whole else with_drawn_pilot(counts, is_table=False)

    @cached_property
    def learned(self) -> Learned:
        """What one's own counts lead to, with the options of the certificate."""
        assert self.own is not None
        assert self.own.counts is not None
        options = self.certificate["options"]
        return learn(
            self.own.model,
            self.own.counts,
            objectives=self.prespecified(self.own.model),
            confidence=self.certificate["confidence"],
            confidence_set=options["confidence_set"],
        )

    @property
    def _given(self) -> list[str]:
        """The files of policies that may have been pre-specified, as they have no text."""
        compared = self.certificate.get("comparison", {})
        files = [POLICY] * (self.certificate["options"]["policy"] == "given") + [RIVAL] * bool(compared)
        return files[::-1] if compared.get("policy") == "second" else files

    @property
    def is_prespecified(self) -> bool:
        """Whether the folder has all that was pre-specified: each question's text, or the policies that it is about."""
        options = self.certificate["options"]
        if len({len(options[name]) for name in ("objectives", "with_memory", "prespecified")}) > 1:
            return False
        named = list(zip(options["objectives"], self._policies(), strict=True))
        has_all = bool(named) and all(text or names for text, names in named)
        return has_all and sum(len(names) for _, names in named) in (0, len(self._given))

    def _policies(self) -> Iterator[list[str]]:
        """Yield which policies of each question were pre-specified as files."""
        options = self.certificate["options"]
        for text, prespecified in zip(options["objectives"], options["prespecified"], strict=True):
            yield [name for name in ("policy", "against") if not text and prespecified.get(name) == "given"]

    def prespecified(self, model: ParametricMDP) -> list[Question]:
        """Return the questions that were pre-specified, about a model."""
        options, files, asked = self.certificate["options"], iter(self._given), list[Question]()
        if not self.is_prespecified:
            raise NotCompared("what was pre-specified has no text, and is not a policy in the folder")
        for text, memory, names in zip(options["objectives"], options["with_memory"], self._policies(), strict=True):
            question = ask(text or self.witness["claim"]["objective"], model, memory=memory)
            policies: dict[str, Any] = {name: np.asarray(self.policy(question, next(files))) for name in names}
            asked.append(replace(question, **policies))
        return asked

    def question(self, model: ParametricMDP | None = None) -> Question:
        """Return the question that the result answers, of the model unless another one is given."""
        memory = self.certificate["options"]["memory"]
        return ask(self.witness["claim"]["objective"], model or self.model, memory=memory)

    def policy(self, question: Question, file: str = POLICY) -> PolicyTable:
        """Return one of its policies, for a question; a file with more columns may mean another one to others."""
        table = read_policy(question.model.graph, self.folder / file)
        with (self.folder / file).open(encoding="utf-8-sig", newline="") as lines:
            columns = next(reader(lines))
        require(columns == [*table.columns()], f"{file}: its columns are not those of a policy")
        return table
