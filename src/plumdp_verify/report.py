"""The report of a check: layers that hold, the first step that does not, and what was assumed, trusted or left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .reading import Rejected

CHAIN = "that the chain is that of the property, the model and the policy in policy.csv"
OTHER_CHAIN = "that the chain it is compared with is that of the property, the model and the policy in rival.csv"
SPACE = "that rows and parameter space are those of the model"
ALONE = "that there is no other policy, as the answer says what the value is"
COUNTS = "that the counts are those of the data"
SETTINGS = "that the settings of the method were fixed before the data (list in verify.md)"
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
        if self.broken is not None:
            verdict = "Rejected" if self.broken.is_broken else "Not verified"
            told, beside = (
                f"{verdict} ({self.broken.layer}): {self.broken}.",
                {"checks passed": [", ".join(self.passed)] * bool(self.passed)},
            )
        else:
            told = f"Verified: {self.sentence}"
            beside = {
                "of": [self.objective] * (self.objective not in self.sentence),
                "checks passed": [f"all {len(self.passed)}: {', '.join(self.passed)}"],
                "valid if": self.assumed,
                "on trust": self.trusted,
                "not checked": [*self.unchecked, OTHER_ENTRIES],
            }
        return "\n".join([told, *(f"  {name:14}  {'; '.join(texts)}" for name, texts in beside.items() if texts)])
