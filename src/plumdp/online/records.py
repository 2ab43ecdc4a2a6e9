"""Saves the records of learning while acting as JSON, and reads them again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from plumdp.base.edge import read_whole, write_whole
from plumdp.base.errors import DataError, fault_of
from plumdp.base.json_values import parsed
from plumdp.base.vocabulary import Assumption
from plumdp.model.objectives import Direction, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import as_objective
from plumdp.model.text import number_of, one_line
from plumdp.online.loop import OnlineRecord
from plumdp.result.show import Page, as_html, as_json, as_text

SCHEMA = "plumdp/online/1"
_SHOWN = 10  # records in a notebook
_NUMBERS = ("bound", "optimistic_bound", "true_value", "width", "seconds")
_NAMES = ("episodes", "steps", *_NUMBERS, "status")


@dataclass(frozen=True, eq=False)
class OnlineRun:
    """The numbers of the records of learning while acting, by the names of ``OnlineRecord``.

    Policies are not kept. Save them with ``write_policy``. ``draw("online", run)`` draws it.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, learn_online
    >>> from plumdp.online import simulator
    >>> study = case_study("betting:5")
    >>> environment = simulator(study.model, study.true_point, rng=1, max_steps=6)
    >>> records = learn_online(study.model, environment, study.objective, episodes=100, spacing=3.0)
    >>> run = OnlineRun.of(records, study.model, study.objective, confidence=0.999)
    >>> with TemporaryDirectory() as folder:
    ...     run.save(Path(folder) / "record.json")
    ...     read_record(Path(folder) / "record.json").records[-1]["episodes"]
    100
    """

    picture: ClassVar = "online"

    objective: str
    direction: Direction
    confidence: float
    records: tuple[Mapping[str, Any], ...]
    assumptions: tuple[str, ...] = ()  # of all records

    def __repr__(self) -> str:
        last = self.records[-1] if self.records else {"episodes": 0}
        return one_line(
            self, number_of(len(self.records), "record"), number_of(last["episodes"], "episode"), self.objective
        )

    def page(self) -> Page:
        """Return the first and the last records, and what they rest on."""
        shown = self.records if len(self.records) <= _SHOWN else [self.records[0], *self.records[1 - _SHOWN :]]
        rows = [
            (f"{row['episodes']:,}", f"{row['bound']:.6g}", f"{row['optimistic_bound']:.6g}", row["status"])
            for row in shown
        ]
        headline = f"{self.objective} ({number_of(len(self.records), 'record')}, confidence {self.confidence:.10g})"
        header, facts = ("episodes", "certified", "no policy is better", "status"), self.assumptions
        return Page(headline, header=header, rows=rows, facts=[("assuming", Assumption.of(each)) for each in facts])

    SCHEMA: ClassVar[str] = SCHEMA
    TOLD: ClassVar[str] = "objective direction confidence assumptions records"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json

    @staticmethod
    def of(
        records: Iterable[OnlineRecord], model: ParametricMDP, objective: Objective | str, *, confidence: float = 0.999
    ) -> OnlineRun:
        """Return the numbers of the records that ``learn_online`` yields for this model and objective."""
        asked = as_objective(objective, model)
        rows, assumptions = [], dict[str, None]()
        for record in records:
            rows.append({name: getattr(record, name) for name in _NAMES} | {"status": str(record.status)})
            assumptions |= dict.fromkeys(record.learned.assumptions)
        return OnlineRun(asked.text, asked.direction, confidence, tuple(rows), tuple(assumptions))

    def save(self, path: str | Path) -> None:
        """Write the run as JSON, which ``read_record`` reads again."""
        write_whole(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")


def read_record(path: str | Path) -> OnlineRun:
    """Return the run of ``learn_online`` that ``OnlineRun.save`` wrote to a file.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    OnlineRun
        The records.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     OnlineRun("Pmax=? [ F x=1 ]", "max", 0.999, ()).save(Path(folder) / "record.json")
    ...     read_record(Path(folder) / "record.json")
    OnlineRun(0 records, 0 episodes, Pmax=? [ F x=1 ])
    """
    try:
        content = parsed(read_whole(Path(path)))
        if content["schema"] != SCHEMA:
            raise DataError(f"it has the schema {content['schema']}, not {SCHEMA}")
        records = tuple(
            {n: float(record[n]) if n in _NUMBERS and record[n] is not None else record[n] for n in _NAMES}
            for record in content["records"]
        )
        assumptions = tuple(map(str, content.get("assumptions", ())))
        return OnlineRun(content["objective"], content["direction"], float(content["confidence"]), records, assumptions)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not a record of learning: {fault_of(error)}") from None
