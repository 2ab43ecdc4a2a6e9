"""The report of a check: layers that hold, the first step that does not, and what was assumed, trusted or left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .reading import Rejected

LAYERS = {
    "files": "files are those that were written, and the kind of result is known",
    "budget": "the error is divided, and no part spends more than its share",
    "counts": "rows and classes have probabilities that sum to one, and are counted once",
    "bets": "bets and laws follow from what was seen before the data they are used on",
    "set": "the set of parameters follows from the counts",
    "values": "the functions are below and above the policy's value at every point of the set",
    "bracket": "the bracket follows from the functions and the set",
    "sentence": "the printed sentence follows from the bracket",
    "data": "counts, space and law are those of the data and the model in the folder",
    "log": "counts, their order and all settings are those that your data lead to, counted again by your model",
    "directions": "bets are along gradients that were found before the data they are used on",
    "trials": "no run of the model tries an event twice whose interval rests on that",
    "model": "space, rows, direction and the chain of the policy are those of your model, which was read again",
}
CHAIN = "that the chain is that of the property, the model and the policy in policy.csv"
OTHER_CHAIN = "that the chain it is compared with is that of the property, the model and the policy in rival.csv"
SPACE = "that rows and parameter space are those of the model"
ALONE = "that there is no other policy, as the answer says what the value is"
COUNTS = "that the counts are those of the data"
SETTINGS = "that the settings of the method were fixed before the data (list in verify.md)"
AUTOMATON = "that the file with the automaton, which the objective names, is the one that was meant"
ASKED = "that property, options and pre-specified policies were chosen before the data were looked at"
SETTLED = {
    "model": (CHAIN, OTHER_CHAIN, SPACE, "policy.csv", "rival.csv"),
    "data": ("data.npz",),
    "log": ("data.npz", COUNTS, SETTINGS),
}
"""What need not be trusted, and is not unchecked any more, if a layer holds that not all reports have."""

OTHER_ENTRIES = "entries of certificate.json that are not printed here"


@dataclass
class Report:
    """The layers that hold, and the first step that does not."""

    passed: list[str] = field(default_factory=list)
    broken: Rejected | None = None
    sentence: str = ""
    objective: str = ""
    assumed: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)  # files, and what else a reader might take for checked

    def hold(self, name: str) -> None:
        """Note that a layer holds, and what it settles."""
        self.passed.append(name)
        self.trusted = [text for text in self.trusted if text not in SETTLED.get(name, ())]
        self.trusted += [ASKED] if name == "log" else []
        self.unchecked = [text for text in self.unchecked if text not in SETTLED.get(name, ())]

    @contextmanager
    def layer(self, name: str) -> Iterator[None]:
        """Make a context in which a step that does not hold is one of a layer, which holds otherwise."""
        try:
            yield
        except Rejected as error:
            error.layer = error.layer or name
            raise
        self.hold(name)

    def to_dict(self) -> dict[str, object]:
        """Return it ready for JSON."""
        told = self.broken
        return {
            "schema": "plumdp/verification/1",
            "verified": self.broken is None,
            "passed": list(self.passed),
            "broken": None if told is None or not told.is_broken else {"layer": told.layer, "step": str(told)},
            "not_compared": None if told is None or told.is_broken else {"layer": told.layer, "step": str(told)},
            "sentence": self.sentence,
            "objective": self.objective,
            "assumed": list(self.assumed),
            "trusted": list(self.trusted),
            "not_checked": list(self.unchecked),
        }

    def __str__(self) -> str:
        lines = [f"{name:10} ok  {LAYERS[name]}" for name in self.passed]
        if self.broken is not None:
            verdict = "BROKEN " if self.broken.is_broken else "could not compare:"
            return "\n".join([*lines, f"{self.broken.layer:10} {verdict} {self.broken}"])
        lines += [f"verified: {self.sentence}", f"of: {self.objective}"]
        lines += [f"assuming: {text}" for text in self.assumed]
        lines += [f"trusted: {text}" for text in self.trusted]
        return "\n".join([*lines, f"not checked: {', '.join([*self.unchecked, OTHER_ENTRIES])}"])
