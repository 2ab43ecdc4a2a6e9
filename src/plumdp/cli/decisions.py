"""What ``plumdp certify`` decides beyond one value: policies within thresholds, least budgets, and net benefits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions
from plumdp.cli.results import EXIT_CODES, VERDICT_CODES, Result, exit_code, print_decisions, with_command, worst_code

if TYPE_CHECKING:
    from plumdp.model.question import Question


@dataclass(frozen=True)
class Decision:
    """All that a command was given; each way to decide prints and saves what is certified, and ends the command."""

    model: ModelOptions
    log: LogOptions
    asked: PropertyOptions
    sets: SetOptions
    folder: FolderOptions
    as_json: bool

    def within(self, subject_to: list[str]) -> NoReturn:
        """Certify policies that keep within thresholds, and end with 0, or 4 if some is not known."""
        from plumdp.model.language.threshold import parse_threshold
        from plumdp.model.question import ask_all

        read, objectives = self.asked.load(self.model)
        limits = [parse_threshold(text, read).objective for text in subject_to]
        learned = self._learn(read, ask_all([*objectives, *limits], read, memory=False))
        found = [plumdp.decisions.certify_within(learned, each, subject_to=subject_to) for each in objectives]
        print_decisions(found, [None] * len(found), as_json=self.as_json)
        code = self._save(learned, [each.certificate for each in found])
        raise typer.Exit(code or (0 if all(each.is_feasible for each in found) else EXIT_CODES[Status.VACUOUS]))

    def on_budgets(self) -> NoReturn:
        """Find the least budgets that are asked for, and end with the exit code."""
        from plumdp.model.language.quantile import is_quantile, parse_quantile
        from plumdp.model.objective import digest
        from plumdp.model.question import ask_all

        read, texts = self.asked.texts(self.model)
        others = [text for text in texts if not is_quantile(text)]
        if others:
            raise DataError(f"--property {others[0]}: ask for quantiles by themselves")
        questions = [parse_quantile(text, read) for text in texts]
        objectives = {digest(each.forever().objective): each.forever().objective for each in questions}
        learned = self._learn(read, ask_all([*objectives.values()], read))
        found = [plumdp.decisions.quantile(learned, each) for each in questions]
        print_decisions(found, [None] * len(found), as_json=self.as_json)
        code = self._save(learned, [each.answer.answered for each in found])
        is_contradicted = code == EXIT_CODES[Status.CONTRADICTED]
        raise typer.Exit(code if is_contradicted else worst_code({VERDICT_CODES[each.possible] for each in found}))

    def on_net_benefit(self, willingness: str) -> NoReturn:
        """Certify which policy has the largest net benefit, and end with 0, or 4 if that is known nowhere."""
        from plumdp.model.question import ask_all

        try:
            start, end = map(float, willingness.split(":"))
        except ValueError:
            raise DataError(f"--willingness {willingness}: write FROM:TO, such as 0:50000") from None
        read, objectives = self.asked.load(self.model)
        if len(objectives) != 2:
            raise DataError(f"--willingness: ask two properties, the effect and the cost, not {len(objectives)}")
        learned = self._learn(read, ask_all(objectives, read, memory=False))
        found = plumdp.decisions.net_benefit(learned, *objectives, willingness=(start, end))
        print_decisions([found], [None], as_json=self.as_json)
        code = self._save(learned, [each for one in found.strategies for each in (one.effect, one.cost)])
        is_known = any(one.best for one in found.strategies)
        is_contradicted = code == EXIT_CODES[Status.CONTRADICTED]
        raise typer.Exit(code if is_contradicted else 0 if is_known else EXIT_CODES[Status.VACUOUS])

    def _learn(self, model: plumdp.model.ParametricMDP, questions: Sequence[Question]) -> plumdp.Learned:
        counts = self.log.read_for(self.model, model)
        return self.sets.learn(model, counts, questions, witness=self.folder.witness)

    def _save(self, learned: plumdp.Learned, certificates: list[plumdp.Certificate]) -> int:
        """Save certificates if that is asked for, and return their exit code."""
        self.folder.write(learned, [with_command(each) for each in certificates])
        return exit_code([Result(each) for each in certificates])
