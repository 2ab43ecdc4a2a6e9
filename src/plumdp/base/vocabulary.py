"""The words that options may be, and that results say: known without importing what they are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Literal, TypeAlias

Sampling: TypeAlias = Literal["independent", "trajectories", "adaptive"]
"""From what may be assumed most to what least: a number of samples per choice that was fixed beforehand; a fixed number
of runs under one policy; runs whose policy or number depends on what was seen."""

Order: TypeAlias = Literal["time", "runs"]
"""Rows lie in the order in which their steps happened; or runs are numbered in the order in which they were made, each
after the one before had ended."""

Steps: TypeAlias = str
"""What the steps of trajectories show. "consecutive": numbers that grow by one in each row, so that a row which is
missing shows; "ordered": only the order of the rows of a run; "monthly", "weekly", "daily", "every=30d": dates of which
there is one in each such period, so that a period without one shows."""

NoBets: TypeAlias = Literal["order", "overlap", "unnamed runs", "shared names", "few"]
"""Why no bets were placed by a log: nobody said what came first, rows do not name their runs, names seem to stand for
several runs, or there are too few data for the first bets."""

NoContexts: TypeAlias = Literal[
    "order", "ties", "unplaced", "observations", "independent", "size", "parts", "pilot", "file", "changed"
]
"""Why counts have no contexts, so that memory is not tested: nothing is known of the order within runs, several rows
are of one step, rows name no run or step, rows are observations with gaps, samples were drawn for each choice, the
model is too large, some data that were added have none, the pilot ends at a moment at which none were kept, their file
is older than contexts, or a log was another one when its runs were read."""

Censoring: TypeAlias = Literal["unrelated", "independent"]
"""Why runs of a log end before the outcome of their last action: for reasons that have nothing to do with it, or with
anything else that happens in the run, as those of a study that ends."""

Remembered: TypeAlias = Literal["visits", "previous", "time", "step"]
"""What of the past of its run a state of a table remembers: earlier visits of it, the action before, the steps since it
was entered, or those of the run."""

Decimal: TypeAlias = Literal[".", ","]
"""The sign before the decimals of numbers in texts."""

Form: TypeAlias = Literal["transitions", "trajectories"]
"""Rows with the state before and after, or one row per state of a run."""

LogForm: TypeAlias = Literal["transitions", "trajectories", "counts"]
"""Rows with the state before and after; rows of runs in their order; or ready-made counts of the first."""

Dialect: TypeAlias = Literal["bigquery", "snowflake", "databricks", "redshift", "spark", "trino", "postgres", "duckdb"]
"""Whose SQL."""

Sets: TypeAlias = Literal["interval", "likelihood", "table"]
"""What is drawn around the data: intervals of expressions, the likelihood with half-spaces across the objectives, or,
of a table of unknown rows, intervals and bets on values."""

Relaxation: TypeAlias = Literal["interval", "parameter", "expression", "rectangular", "coupled"]
"""From loose to tight; ``RELAXATIONS`` says of each which parameters its bounds allow for."""

RELAXATION_WORDS: Mapping[str, str] = {
    "interval": "interval by interval",
    "parameter": "parameter-wise",
    "expression": "expression-wise",
    "rectangular": "rectangular",
    "coupled": "coupled, one point for all states",
}
"""How certificates call them."""

EPISODE = "episode"  # the column that names runs
AFTER = "after"  # of observations: when an end was entered before one, 0 otherwise

_TO_TRY = "what to try: "


class ToTry(str):
    """What to try, among findings: a text that begins with these words, without which it is ``action``."""

    __slots__ = ()

    @classmethod
    def of(cls, action: str) -> ToTry:
        """Return the text of what to try."""
        return cls(f"{_TO_TRY}{action}")

    @property
    def action(self) -> str:
        """What to try, alone."""
        return self[len(_TO_TRY) :]


class Group(StrEnum):
    """What an assumption is about; each is equal to its text."""

    MODEL = "model"
    DATA = "data"
    PLAN = "plan"  # what was fixed before anybody looked at the data

    __repr__ = str.__repr__


FIXED = "fixed before looking: "  # a list of what a plan fixes begins with this


class Assumption(str):
    """What a claim rests on, in words, with its group, and in ``brief`` for a list of three lines.

    Parts of a brief text are divided by semicolons; that of a plan is a noun, for what was fixed before looking.
    Those of one ``kind`` differ in what one log has of it, such as numbers of rows; of many logs it is told once.

    >>> Assumption("no step is in the data twice, under any name", brief="no step is there twice").brief
    'no step is there twice'
    """

    __slots__ = ("brief", "group", "kind")
    group: Group
    brief: str  # empty if it is a fact more than an assumption
    kind: str  # in words, too

    def __new__(
        cls, text: str, group: Group = Group.DATA, brief: str | None = None, *, kind: str | None = None
    ) -> Assumption:
        """Return the text as an assumption of a group."""
        found = super().__new__(cls, text)
        found.group, found.brief = group, str(text) if brief is None else brief
        found.kind = str(text) if kind is None else kind
        return found

    @classmethod
    def of(cls, text: str) -> Assumption:
        """Return a text as an assumption, unless it is one."""
        return text if isinstance(text, cls) else cls(text)

    @classmethod
    def again(cls, texts: Sequence[str], in_brief: Sequence[Sequence[str] | None]) -> list[str]:
        """Return texts that were kept, as assumptions where it was kept what these are in brief: older files do not."""
        told = in_brief or [None] * len(texts)
        return [cls(text, Group(each[0]), each[1]) if each else text for text, each in zip(texts, told, strict=True)]

    @staticmethod
    def in_brief(texts: Iterable[str]) -> list[list[str] | None]:
        """Return the group of each assumption, and what it is in brief, as files keep them beside the texts."""
        return [[str(each.group), each.brief] if isinstance(each, Assumption) else None for each in texts]

    def noting(self, note: str) -> Assumption:
        """Return it with a note in brackets."""
        return Assumption(f"{self} ({note})", self.group, self.brief, kind=self.kind) if note else self


def parts_in(text: str) -> list[str]:
    """Return the parts of a text that joins several, as files keep them: reasons of a certificate, or of a pilot."""
    return [part for part in text.split("; ") if part]


def findings_in(reason: str) -> list[str]:
    """Return the findings that the reason of a certificate joins, with what to try among them told by its type."""
    return [ToTry(each) if each.startswith(_TO_TRY) else each for each in parts_in(reason)]


Nature: TypeAlias = Literal["robust", "optimistic"]
"""Against the agent, or with it."""


class Guarantee(StrEnum):
    """The assumption that "with probability at least 1 - error" rests on, equal to its text.

    >>> Guarantee.ANYTIME == "finite-sample, anytime", Guarantee("none")
    (True, 'none')
    """

    ANYTIME = "finite-sample, anytime"  # the model alone
    PLANNED = "finite-sample, planned"  # the amount of data was fixed beforehand, though more may be added at will
    FIXED = "finite-sample, fixed N"  # the amount of data was not decided by looking at outcomes
    NONE = "none"  # nothing is claimed, as the data contradict the graph

    __repr__ = str.__repr__  # the plain text at the prompt, as in JSON


class Status(StrEnum):
    """What a certificate claims; each is equal to its text.

    >>> Status.CERTIFIED == "certified", str(Status.REJECTED)
    (True, 'model rejected')
    """

    CERTIFIED = "certified"
    INCONCLUSIVE = "inconclusive"  # the bounds do not exclude the worst value
    REJECTED = "model rejected"  # no parameters explain the data
    PREMISES = "premises rejected"  # what is assumed of whole runs, or of them and the model, cannot all be true

    __repr__ = str.__repr__  # at the prompt as in JSON: the text


REJECTIONS = (Status.REJECTED, Status.PREMISES)


class Verdict(StrEnum):
    """The answer to a question with a threshold; each is equal to its text."""

    YES = "yes"
    NO = "no"
    INCONCLUSIVE = "inconclusive"

    __repr__ = str.__repr__  # at the prompt as in JSON: the text


EXIT_CODES = {Status.CERTIFIED: 0, Status.REJECTED: 3, Status.PREMISES: 3, Status.INCONCLUSIVE: 4}
VERDICT_CODES = {Verdict.YES: 0, Verdict.NO: 1, Verdict.INCONCLUSIVE: 4}
"""The exit codes of ``plumdp certify``, by the status of a certificate, or by the answer that it gives."""


class Standing(StrEnum):
    """How a policy compares with another, given a margin that does not matter; each is equal to its text."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "the same within the margin"
    NOT_WORSE = "not worse by more than the margin"
    INCONCLUSIVE = "inconclusive"

    __repr__ = str.__repr__  # at the prompt as in JSON: the text


class Trait(Enum):
    """What may not go together with something else, in words."""

    DISK = "a model on disk"
    TABLE = "a model whose rows are unknown"
    VIEW = "a model that is seen as a table"
    EXITS = "a table that runs may leave"
    GAPS = "observations with gaps"
    LEARNED_REWARDS = "learned rewards"
    LIFTED = "a model whose rows are counted in another one"
    MEMORY = "memory"
    MISSION = "a mission"
    STEPS = "a number of steps"
    AVERAGE = "an average in the long run"
    DISCOUNT = "a discount"
    DIFFERENCE = "a difference of policies"
    PRACTICE = "current practice"
    NO_POLICY = "no policy of your own"
    DRAWS = "a policy that draws its actions"
    PRESPECIFIED = "a pre-specified policy"
    NOT_PRESPECIFIED = "a policy that is not pre-specified"
    RUNS = "whole runs"
    WITNESS = "a witness"
    MODEL_TOLERANCE = "a model tolerance"
    OTHER_SET = "a set that is not made for it"
    OF_PARAMETERS = "the relaxations parameter, expression and rectangular"
    OF_POINTS = "the relaxations rectangular and coupled"
    SINCE = "a certificate since a run"
    NO_ORDER = "data without an order"
    EVERY_STEP = "advice, practice of several actions, online learning, recorded and whole runs, watching"
    WITH_GAPS = "making observations with gaps"
    FREE_ROWS = "making rows unknown"
    STEP_COUNTER = "a step counter"
    TABLE_BETS = "bets on values in a table"
    RECORDED = "recorded runs"
    SIMULATED = "simulated runs"
    COPIED = "model and data in a result"
    WATCHED = "watching"
    LIST = "PRISM's list of actions"


def having(*traits: Trait | bool) -> frozenset[Trait]:
    """Return the traits among those that may be so, each given as ``is_so and trait``."""
    return frozenset(each for each in traits if isinstance(each, Trait))


class NumberHint(str):
    """A hint that actions are numbers of which nobody said what they are."""

    __slots__ = ()
