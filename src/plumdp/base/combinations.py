"""What does not go together: one table has all refusals of combinations, each with its sentence.

Models, questions, kinds of sets and options have traits, and whoever puts some of them together asks ``refuse``.
The page of commands shows the table, and a test tries all pairs. A new refusal is a new row.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from string import Formatter
from typing import TypeAlias

from plumdp.base.errors import DataError, Misuse, ModelError, Option, Untold
from plumdp.base.vocabulary import Trait as Trait
from plumdp.base.vocabulary import having as having

T = Trait


_Together: TypeAlias = tuple[Trait | tuple[Trait, ...], ...]  # one of each tuple inside
_OF_DATA: dict[_Together, str] = {
    (
        T.MODEL_TOLERANCE,
        T.GAPS,
    ): "{model_tolerance}: nothing is proved of that for observations after several steps; leave it out",
    (
        T.OTHER_SET,
        T.GAPS,
    ): "{confidence_set}: nothing is proved of that for observations after several steps; leave it out",
    (T.OTHER_SET, T.TABLE): "{confidence_set}: the rows of this model are unknown, without parameters; leave it out",
    (T.OTHER_SET, T.DISK): "{confidence_set}: this is for models in memory; leave it out",
    (
        T.MODEL_TOLERANCE,
        T.TABLE,
    ): "{model_tolerance}: the rows of this model are unknown, and cannot be off; leave it out",
    (
        T.MODEL_TOLERANCE,
        T.VIEW,
    ): "{model_tolerance}: {confidence_set} sees no expressions in this model; leave out one of both",
    (T.OTHER_SET, T.MODEL_TOLERANCE): (
        "{model_tolerance}: there is no tolerant set for {confidence_set}; choose 'interval' or 'likelihood'"
    ),
    (T.MODEL_TOLERANCE, T.LEARNED_REWARDS): (
        "{model_tolerance}: rewards that depend on parameters are learned by likelihood sets alone; leave it out"
    ),
    (T.OTHER_SET, T.LEARNED_REWARDS): (
        "{confidence_set}: rewards that depend on parameters are learned by likelihood sets alone; leave it out"
    ),
    (T.OTHER_SET, T.RUNS): "{confidence_set}: whole runs stand beside likelihood sets and tables alone",
    (T.OF_PARAMETERS, T.TABLE): (
        "{relaxation}: the rows of this model are unknown, without parameters; choose 'interval' or 'coupled'"
    ),
    (T.OF_PARAMETERS, T.VIEW): (
        "{relaxation}: the rows of this model are treated as unknown; choose 'interval' or 'coupled', or the "
        "confidence set 'likelihood'"
    ),
    (T.OF_POINTS, T.DISK): (
        "{relaxation}: a model that is stored on disk is solved within intervals; choose 'expression'"
    ),
    (T.RUNS, T.NOT_PRESPECIFIED): "{runs}: these are runs of a policy that was there before; say {prespecified=True}",
    (T.PRESPECIFIED, T.NO_POLICY): "{prespecified=True}: this is about a policy of your own; give one, or leave it out",
    (T.PRESPECIFIED, T.PRACTICE): "{prespecified=True}: practice is what the data do; leave it out, or name a policy",
    (T.RUNS, T.DISK): "{runs}: whole runs stand beside sets of models in memory alone; leave them out",
    (T.RUNS, T.LEARNED_REWARDS): (
        "returns of rewards that depend on parameters are not read from a log; leave the runs out"
    ),
    (T.RUNS, T.MISSION): "runs do not show what a policy of this question remembers; leave the runs out",
    (T.WATCHED, T.LEARNED_REWARDS): (
        "returns of rewards that depend on parameters are not read from a log, so none are watched"
    ),
    (T.WATCHED, T.MISSION): (
        "the certificate's policy uses memory that runs do not record, so that they cannot be valued"
    ),
    (T.EVERY_STEP, T.GAPS): "{where} needs every step to be seen; give it the model without gaps, and such data",
    (T.SINCE, T.NO_ORDER): (
        "{since}: the order of these data is not known, or they are few; read the log with {order='runs'} or "
        "{order='time'}"
    ),
    (T.SINCE, T.LEARNED_REWARDS): "{since}: sums of learned rewards are not kept for parts of the data",
    (T.WITNESS, (T.TABLE, T.VIEW)): "verify does not know tables of unknown rows",
    (T.WITNESS, T.MODEL_TOLERANCE): "verify does not know a model tolerance",
    (T.WITNESS, T.AVERAGE): "verify does not know averages in the long run",
    (T.WITNESS, T.DISK): "verify does not know models on disk",
    (T.WITNESS, T.GAPS): "verify does not know models that are seen now and then",
    (T.WITNESS, T.RUNS): (
        "verify does not know bounds by whole runs (for those of the model alone, count the log first by plumdp count, "
        "or give log.counts)"
    ),
    (T.STEP_COUNTER, T.DISK): "a model that is stored on disk has no product with a step counter",
    (T.TABLE_BETS, T.STEPS): "the number of steps is bounded: there are no bets on such values yet",
    (T.TABLE_BETS, T.AVERAGE): "there are no bets on averages in the long run yet",
    (T.SIMULATED, T.DISK, T.DRAWS): (
        "the policy of a stored model is 'uniform', or the number of a choice for each state"
    ),
    (T.COPIED, T.DISK): "a model that is stored on disk is not copied into a result: leave out model and counts",
    (T.LIST, T.DRAWS): "{where}: PRISM's list has one action for each state, but the policy draws; write .csv or .json",
    (T.LIST, T.MEMORY): (
        "{where}: PRISM's list has one action for each state, but the policy keeps memory; write .csv or .json"
    ),
}
_OF_MODELS: dict[_Together, str] = {
    (T.RUNS, T.PRACTICE, T.DIFFERENCE): (
        "whole runs are compared with those of another policy, and practice is what all of them did: ask about "
        "practice alone, or about the difference without runs"
    ),
    ((T.RUNS, T.WATCHED), T.AVERAGE): (
        "an average in the long run is not the mean of what single runs earn: runs cannot tell it"
    ),
    (T.WITH_GAPS, (T.DISK, T.TABLE, T.LEARNED_REWARDS, T.LIFTED)): (
        "with_gaps takes a model of single steps in memory, whose rows are expressions; it may not have unknown rows, "
        "learned rewards, or gaps already; if rows are unknown and all gaps are equal, let a step of the table be this"
        " gap"
    ),
    (T.FREE_ROWS, (T.DISK, T.LIFTED)): "free rows are for models in memory whose own transitions are counted",
    (T.MISSION, T.DISK): "{where}: a mission cannot be asked about a model that is stored on disk",
    (T.MISSION, T.MEMORY): "{where}: a mission cannot be asked about a model that has memory already",
    (T.STEPS, T.EXITS): (
        "{where}: runs may leave the table, so that steps must be counted; ask the property itself, or make the "
        "question with ask(property, model)"
    ),
    (T.RECORDED, T.DISK): "of a model that is stored on disk, runs can be counted (simulate), and not be recorded",
    (T.DISK, (T.STEPS, T.DISCOUNT, T.AVERAGE)): (
        "a model that is stored on disk is solved level by level: ask without a number of steps and without a "
        "discount, since every run passes each level once anyway"
    ),
    (T.DISK, T.DRAWS): "of a model that is stored on disk, give a policy as the number of a choice for each state",
    (T.DRAWS, T.DISCOUNT): (
        "a policy that draws its choices cannot be evaluated with a discount; give one choice per state, ask for "
        "rewards within a number of steps, such as C<=100, or let every step of the model end the run with the "
        "probability of one minus the discount, and ask for all rewards, C"
    ),
}


@dataclass(frozen=True)
class Refusal:
    """Traits that do not go together, one of each group, and the sentence that says so.

    Names in braces are options, with the values that were given or with their own, and ``where`` it is.
    """

    groups: tuple[frozenset[Trait], ...]
    sentence: str
    error: type[Misuse]

    def parts(self, where: str, **options: object) -> Iterator[str | Option]:
        """Yield the parts of the message, given where it is and the values of options."""
        for text, field, _, _ in Formatter().parse(self.sentence):
            yield text
            name, _, own = (field or "").partition("=")
            if name == "where":
                yield where
            elif name:
                yield Option(name, literal_eval(own) if own else options.get(name, Untold))


REFUSALS = tuple(
    Refusal(tuple(frozenset(each if isinstance(each, tuple) else (each,)) for each in together), sentence, error)
    for error, table in ((DataError, _OF_DATA), (ModelError, _OF_MODELS))
    for together, sentence in table.items()
)
"""All refusals of combinations; of several that are due, the first is said."""


def refusals(traits: Collection[Trait | bool]) -> Iterator[Refusal]:
    """Yield what is refused of something that has all of these traits."""
    stated = frozenset(traits)
    return (each for each in REFUSALS if not any(map(stated.isdisjoint, each.groups)))


def why_not(trait: Trait, *others: Trait | bool) -> str:
    """Return the sentence about a trait that does not go with others, or an empty text."""
    due = (each for each in refusals((trait, *others)) if any(trait in group for group in each.groups))
    return next(("".join(map(str, each.parts(""))) for each in due), "")


def refuse(traits: Collection[Trait | bool], where: str = "", /, **options: object) -> None:
    """Refuse traits that do not go together, given the options that had a part in it, and where it is."""
    for each in refusals(traits):
        raise each.error(*each.parts(where, **options))
