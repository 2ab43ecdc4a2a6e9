"""The proposal that ``start`` makes of a log: how it is read, which table its first runs make, and what is evidence."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from plumdp.base.errors import DataError, visible
from plumdp.base.vocabulary import Order, Remembered, Sampling
from plumdp.data.columns import named
from plumdp.data.log import Log
from plumdp.data.log_format import LogFormat
from plumdp.data.log_models import action_name, model_from_log
from plumdp.data.logs import read_log
from plumdp.data.mapping_language import parse_mapping
from plumdp.data.names import quoted
from plumdp.data.raw_logs import RawLog
from plumdp.fit.remembered import find_remembered
from plumdp.model.graph import BoolArray, FloatArray, Graph
from plumdp.model.language.predicate import parse_predicate
from plumdp.model.parametric import ParametricMDP
from plumdp.model.table_model import as_in
from plumdp.model.text import number_of, one_line
from plumdp.result.printing import outward
from plumdp.starting.roles import column_term, is_harm, look_at
from plumdp.tables.fit import table_fit

_EVIDENT = 0.05  # p-value of memory from which on it is said

_MOST_PRICES = 40  # of a list that is proposed


@dataclass(frozen=True, eq=False)
class Start:
    """A log, what its columns are, and how many of its first runs make the table."""

    raw: RawLog
    format: LogFormat  # columns with the run and the step of a row, and others with another name; states; actions
    first: int
    initial: Mapping[str, Any]
    end: str = ""  # a formula of states: where nothing happens any more
    goal: str = ""
    reward: tuple[str, str] = ("", "")  # "cost" or "reward", and the column
    maybe: tuple[str, str] = ("", "")  # the same of a column that may be one
    order: Order | None = None  # what came first, if it is known
    sampling: Sampling = "adaptive"  # "trajectories" if all runs began together
    within: int = 1  # steps of a run, about
    last: str = ""  # a formula of where most runs end that do not end where they begin
    closed: bool = False  # whether there are no other states than those of the first runs
    remember: Remembered | None = None  # what each state remembers of its run
    facts: Sequence[tuple[str, str]] = ()  # what was seen, in words

    def __repr__(self) -> str:
        return one_line(self, f"states {', '.join(self.format.variables)}", f"first {number_of(self.first, 'run')}")

    def __str__(self) -> str:
        width = max((len(label) for label, _ in self.facts), default=0)
        return "\n".join(f"{label:{width}}  {text}" for label, text in self.facts)

    @property
    def _part(self) -> dict[str, str]:
        columns = named(self.format.columns, self.format.variables)
        return {"run": columns.get("episode", ""), "step": columns.get("step", "")}

    @property
    def _log(self) -> RawLog:
        """The log with what its states remember."""
        if self.remember is None:
            return self.raw
        states, action = self.format.states, self.format.actions
        action = action if isinstance(action, str) else ""
        return self.raw.remember(self.remember, **self._part, states=states, action=action)

    @cached_property
    def model(self) -> ParametricMDP:
        """The table: states, actions and successors of the first runs, with unknown rows."""
        first, rewards = self._log.first(self.first, **self._part), dict[str, Any]()
        out_of_table: dict[str, tuple[float, float]] = {}
        ends = state_formula(self.end) if self.end else None
        if self.reward[1]:
            means, out_of_table = self._means
            rewards = {self.reward[0]: _by_choice(means, ends)}
        return model_from_log(
            first,
            self.format,
            initial=self.initial,
            ends=ends,
            labels={"goal": state_formula(self.goal)} if self.goal else None,
            choice_rewards=rewards,
            out_of_table={} if self.closed else out_of_table,
            closed=self.closed,
        )

    @cached_property
    def log(self) -> Log:
        """The data of the other runs on the table. Rows that cannot be read are left out, and the report says so."""
        return self._read(self._log.others(self.first, **self._part, means=self._earned))

    @property
    def memory(self) -> str:
        """What the first runs remember that states do not tell, and what to do, in words, if that is evident."""
        counts = self._read(self._log.first(self.first, **self._part)).counts
        found = find_remembered(self.model, counts.contexts)
        if found is None or table_fit(self.model, counts).p_of_memory > _EVIDENT:
            return ""
        what, context = found
        say = f"say --remember {what.option}" if what.option else "ask whole runs"
        return f"{what.words(self.model, context)}: {say}"

    def _read(self, raw: RawLog) -> Log:
        return read_log(
            self.model,
            raw,
            self.format,
            order=self.order,
            sampling=self.sampling,
            on_unmatched="report",
        ).capped(self.run_cap or None)

    @property
    def objective(self) -> str:
        """What is asked: to reach the goal, or the least cost or largest reward of as many steps as a run has."""
        if (kind := self.reward[0]) and self.reward[1]:
            return f'R{{"{kind}"}}{self._best("min" if kind == "cost" else "max")} [ C<={self.within} ]'
        bound = "" if self._has_choice else f"<={self.within}"  # a chain surely ends at last
        return f'P{self._best("max")} [ F{bound} "goal" ]' if self.goal else ""

    @property
    def is_prespecified(self) -> bool:
        """Whether the number of runs was fixed before they had outcomes, so that bets are placed."""
        return self.sampling == "trajectories"

    @property
    def _has_choice(self) -> bool:
        return int(np.diff(self.model.graph.first_choice).max()) > 1

    def _best(self, direction: str) -> str:
        """Return what asks for the value of the best policy, or for that of a chain, which has no policies."""
        return f"{direction}=?" if self._has_choice else "=?"

    @property
    def at_ends(self) -> tuple[int, float]:
        """How many of the first rows have a cost or reward and no action, and the sum of it, which is in no result."""
        left = [each for each in self._means[0] if each.action is None]
        return sum(each.n_paid for each in left), sum(each.total for each in left)

    @property
    def _earned(self) -> str:
        """The column of costs or rewards, in words; nothing if it is a list of prices."""
        column = self.reward[1]
        if is_price_list(column, self.format):
            return ""
        return f"{column} (without that of rows without an action)" if column and self.at_ends[0] else column

    @property
    def prices(self) -> str:
        """The costs or rewards as a list of prices, an expression, if each action always had one in each state."""
        column = self.reward[1]
        states, actions = self.format.terms, self.format.actions
        if not column or is_price_list(column, self.format) or not isinstance(actions, str):
            return ""
        known = [each for each in self._means[0] if each.action is not None]
        names = [*_plain(states), *parse_mapping(actions).columns()]
        if len(names) != len(states) + 1 or not all(each.is_constant for each in known):
            return ""
        paid = [((*each.state, each.action), each.total / each.n) for each in known if each.n_paid]
        if not 0 < len(paid) <= _MOST_PRICES or any("'" in str(value) for values, _ in paid for value in values):
            return ""
        whens = []
        for values, price in sorted(paid, key=str):
            pairs = zip(map(column_term, names), values, strict=True)
            is_here = (
                f"{name} = '{value}'" if isinstance(value, str) else f"{name} = {value}" for name, value in pairs
            )
            whens.append(f"when {' and '.join(is_here)} then {price:.10g}")
        return f"case {' '.join(whens)} else 0 end"

    @cached_property
    def _means(self) -> tuple[list[_Earned], dict[str, tuple[float, float]]]:
        """What each state and action earned in the first runs, and the least and the most of a step."""
        kind, column = self.reward
        with look_at(self.raw.first(self.first, **self._part)) as look:
            terms, actions = [look.sql(name, term) for name, term in self.format.terms.items()], self.format.actions
            action = look.sql("", actions) if isinstance(actions, str) else quoted("action")
            keys = ", ".join(f"{term} AS v{i}" for i, term in enumerate([*terms, action]))
            value = f"TRY_CAST({look.sql('', quoted(column) if column in look.types else column)} AS DOUBLE)"
            numbers = f"count(*), count_if({value} <> 0), fsum({value}), min({value}), max({value})"
            rows = look.rows(f"SELECT {keys}, {numbers} FROM {{rows}} WHERE isfinite({value}) GROUP BY ALL")
        if not rows:
            raise DataError(f"column {column} has no numbers; name another with --cost or --reward")
        earned = [
            _Earned(row[:-6], action_name(row[-6]), row[-5], row[-4], row[-3], row[-2] == row[-1]) for row in rows
        ]
        least, most = min(row[-2] for row in rows), max(row[-1] for row in rows)
        return earned, {kind: (min(0.0, float(least)), max(0.0, float(most)))}

    @cached_property
    def run_cap(self) -> float:
        """The most that one of the first runs cost or earned, rounded up to two digits.

        It is 0 if rows name no runs, or if so many steps cannot come to more.
        """
        if not (self.reward[1] and self._part["run"]):
            return 0.0
        with look_at(self.raw.first(self.first, **self._part)) as look:
            column = self.reward[1]
            value = f"TRY_CAST({look.sql('', quoted(column) if column in look.types else column)} AS DOUBLE)"
            totals = f"SELECT abs(fsum({value})) AS total FROM {{rows}} GROUP BY {quoted(self._part['run'])}"
            ((most,),) = look.rows(f"SELECT max(total) FROM ({totals}) WHERE isfinite(total)")
        cap, most_of_step = float(outward(most or 0, 1, 2)), max(map(abs, self._means[1][self.reward[0]]))
        return cap if cap < self.within * most_of_step else 0.0

    def next_command(self, file: str) -> str:
        """Return a command that asks for a value, of which more is known than of a difference."""
        asked, cost = self.objective, []
        if not asked and self.maybe[1]:
            asked = replace(self, reward=self.maybe).objective
            cost = [f"--{self.maybe[0]}", self.maybe[1]]
        asked = asked or f"P{self._best('min' if is_harm(self.last) else 'max')} [ F<={self.within} {self.last} ]"
        return shlex.join(["plumdp", "certify", file, *cost, "-p", asked])

    @property
    def table(self) -> dict[str, str]:
        """How the first runs make a table, in the words of the command line."""
        made = {"first": str(self.first), "end": self.end, "closed": "true" if self.closed else ""}
        made |= {f"initial.{name}": str(value) for name, value in self.initial.items()}
        return {name: value for name, value in made.items() if value}

    def to_toml(self, command: str) -> str:
        """Return the options that say all this, for ``plumdp.toml``."""
        defaults = {"encoding": "utf-8", "decimal": ".", "date_format": ""}
        texts = {name: getattr(self.raw.text, name) for name in defaults}
        named = {
            "text": [f"{name}={value}" for name, value in texts.items() if value != defaults[name]],
            "column": [f"{name}={column}" for name, column in self.format.columns.items()],
            "state": [f"{name}={term}" for name, term in self.format.terms.items()],
            "action": self.format.actions or "",
            "steps": self.format.steps or "",
            "remember": self.remember or "",
            "known": [*self.format.known],
            "censoring": self.format.censoring or "",
            "order": self.order or "",
            "sampling": self.sampling if self.is_prespecified else "",
            "keep-going": True,
            "table": [f"{name}={value}" for name, value in self.table.items()],
            "goal": self.goal,
            self.reward[0] or "cost": self.reward[1],
            "run-cap": self.run_cap,
        }
        meant: dict[str, Any] = {key: value for key, value in named.items() if value}
        lines = [f"{key} = {_toml(value)}" for key, value in meant.items()]
        if self.objective:
            own: dict[str, Any] = {"property": [self.objective]} | (
                {"prespecified": True} if self.is_prespecified else {}
            )
            meant["certify"] = own
            lines += ["", "[certify]", *(f"{key} = {_toml(value)}" for key, value in own.items())]
        said = visible("\n".join([command, *(f"{label}: {words}" for label, words in self.facts)]))
        text = "\n".join([*(f"# {line}" for line in said.split("\n")), "", *lines, ""])
        with suppress(tomllib.TOMLDecodeError):
            if tomllib.loads(text) == meant:
                return text
        raise DataError("names in this log cannot be written to plumdp.toml: rename its columns")


def _toml(value: Any) -> str:
    """Return a text, a truth value or a list of texts, with every character that nobody sees as an escape."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    written = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in written)


def state_formula(text: str) -> Any:
    """Return a function of all states that a formula over their variables is."""

    def holds(states: Any) -> BoolArray:
        numbers, n = np.arange(len(states[0]) + 1, dtype=np.int32), len(states[0])
        stays = np.zeros(n, dtype=np.int32)
        graph = Graph(numbers, numbers, numbers[:n], 0, states._asdict(), stays, ("stay",))
        named: Any = SimpleNamespace(graph=graph, labels={}, rewards={}, constants={})
        return parse_predicate(text, named)

    return holds


class _Earned(NamedTuple):
    """What the rows with a state and an action earned or cost."""

    state: tuple[Any, ...]
    action: str | None
    n: int  # rows
    n_paid: int  # those where it is not 0
    total: float
    is_constant: bool  # whether all had the same


def _plain(states: Mapping[str, Any]) -> list[str]:
    """Return the columns that are state variables as they are."""
    columns = [(term, parse_mapping(term).columns()) for term in states.values() if isinstance(term, str)]
    return [of[0] for term, of in columns if len(of) == 1 and term in (of[0], quoted(of[0]))]


def is_price_list(term: str, format: LogFormat) -> bool:
    """Return whether costs or rewards are an expression of the state and the action alone, as somebody states it."""
    if not term or not isinstance(format.actions, str):
        return False
    with suppress(DataError):
        return {*parse_mapping(term).columns()} <= {*_plain(format.terms), *parse_mapping(format.actions).columns()}
    return False


def _by_choice(earned: Sequence[_Earned], ends: Any) -> Any:
    """Return a function of all states and an action: the mean of the first runs, nan if unknown, 0 where they end."""

    def mean(states: Any, action: str) -> FloatArray:
        found: dict[tuple[Any, ...], list[_Earned]] = {}
        for each in earned:
            if each.action == action:  # several spellings may be one value
                key = tuple(as_in(column, value) for column, value in zip(states, each.state, strict=False))
                found.setdefault(key, []).append(each)
        n = len(earned[0].state)  # what states remember comes after these
        rows = (found.get(key, ()) for key in zip(*(column.tolist() for column in states[:n]), strict=True))
        means = np.array([sum(one.total for one in of) / sum(one.n for one in of) if of else nan for of in rows])
        return means if ends is None else np.where(ends(states), 0.0, means)

    return mean
