"""Writes claims.xes.gz: a year of insurance claims as a workflow system records them, in XES (IEEE 1849).

python make_log.py [CLAIMS [FILE]] [--new-form]

With --new-form, claims that are registered from July on have fewer complete files.
"""

import gzip
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
YEAR, END = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
FORM = datetime(2025, 7, 1, tzinfo=UTC)
TEAMS = {"junior": ["Ana", "Ben", "Cem"], "senior": ["Dora", "Emil"]}
HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1849-2016" xes.features="" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <extension name="Lifecycle" prefix="lifecycle" uri="http://www.xes-standard.org/lifecycle.xesext"/>
  <extension name="Organizational" prefix="org" uri="http://www.xes-standard.org/org.xesext"/>
  <extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
"""


class Event(NamedTuple):
    """An event of a claim; decisions of the office are among them, and so is what came of these."""

    name: str
    time: datetime
    role: str = ""
    lifecycle: str = "complete"


def claim(rng: random.Random, registered: datetime, complete: float) -> Iterator[Event]:
    """Yield the events of one claim, also those after the end of the year."""
    now, asked = registered, 0
    yield Event("register", now)
    now += _days(rng, 1, 3)
    is_complete = rng.random() < complete
    yield Event("complete" if is_complete else "missing", now)
    while not is_complete:
        writes = rng.random() < 0.85
        now += _days(rng, 0, 1)
        yield Event("write" if writes else "call", now)
        is_complete = rng.random() < ((0.6 if asked == 0 else 0.2) if writes else 0.75)
        asked += 1
        now += (_days(rng, 4, 14) if is_complete else timedelta(days=14)) if writes else _days(rng, 0, 2)
        yield Event("complete" if is_complete else "missing", now)
    role = "junior" if rng.random() < 0.8 else "senior"
    now += timedelta(hours=2) + _days(rng, 0, 4)
    yield Event(f"{role} assesses", now - timedelta(hours=2), role, "start")
    yield Event(f"{role} assesses", now, role)
    is_rejected = rng.random() < 0.35
    now += _days(rng, 3, 9) if is_rejected else _days(rng, 0, 2)
    yield Event(f"{role} rejects", now, role) if is_rejected else Event("pay", now)
    if is_rejected:
        appeals = rng.random() < (0.15 if role == "senior" else 0.7 if asked else 0.3)
        now += _days(rng, 2, 30) if appeals else timedelta(days=30)
        yield Event("appeal" if appeals else "accept", now)
    yield Event("close", now + _days(rng, 0, 5))


def _days(rng: random.Random, least: float, most: float) -> timedelta:
    return timedelta(minutes=1 + round(1440 * rng.uniform(least, most)))


def trace(rng: random.Random, number: int, registered: datetime, complete: float) -> str:
    """Return a claim as the system writes it: events repeated or out of order, a few damaged."""
    events = [event for event in claim(rng, registered, complete) if event.time < END]
    people = {role: rng.choice(team) for role, team in TEAMS.items()}
    lines = [_xes(event, {} if rng.random() < 0.0003 else _texts(event, people)) for event in events]
    if rng.random() < 0.01:
        lines.append(lines[-1])
    if rng.random() < 0.01:
        lines.insert(0, lines.pop())
    return f'  <trace>\n    <string key="concept:name" value="claim {number}"/>\n{"".join(lines)}  </trace>\n'


def _texts(event: Event, people: dict[str, str]) -> dict[str, str]:
    who = {"org:role": event.role, "org:resource": people[event.role]} if event.role else {}
    return {"concept:name": event.name, "lifecycle:transition": event.lifecycle} | who


def _xes(event: Event, texts: dict[str, str]) -> str:
    strings = "".join(f'<string key="{key}" value="{value}"/>' for key, value in texts.items())
    return f'    <event>{strings}<date key="time:timestamp" value="{event.time.isoformat()}"/></event>\n'


def main(n_claims: int, path: Path, *, new_form: bool) -> None:
    """Write the claims in the order in which they were registered."""
    rng = random.Random(2025)
    days = sorted(rng.uniform(0, 365) for _ in range(n_claims))
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        file.write(HEADER)
        for number, day in enumerate(days, 1):
            registered = YEAR + timedelta(minutes=round(1440 * day))
            complete = 0.4 if new_form and registered >= FORM else 0.55
            file.write(trace(rng, number, registered, complete))
        file.write("</log>\n")


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    n_claims, name = [*arguments, *["40000", "claims.xes.gz"][len(arguments) :]]
    main(int(n_claims), HERE / name, new_form="--new-form" in sys.argv)
