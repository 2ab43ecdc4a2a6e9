"""What the first runs of a log show: actions, states, ends, the pace of steps, and where runs begin."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from plumdp.base.errors import DataError, Option, in_line
from plumdp.base.vocabulary import Censoring
from plumdp.data.censoring import MOST, WHAT_TO_DO, CensoredRuns, told
from plumdp.data.log_format import LogFormat
from plumdp.data.mapping_language import parse_mapping
from plumdp.data.names import quoted
from plumdp.data.remembering import VARIABLES
from plumdp.model.table_model import state_type
from plumdp.model.text import listing, number_of
from plumdp.model.values import whole
from plumdp.starting.proposal import state_formula
from plumdp.starting.roles import (
    ColumnProfile,
    LoadedRows,
    action_of,
    column_term,
    columns_of,
    in_runs,
    is_gain,
    is_persistent,
    moment_of,
    pairs_of,
    rewards_of,
    variable_of,
    words_of,
)

_MOST_VALUES, _MOST_NUMBERS, _BINS = 30, 12, 5  # of a column as it is; numbers that are not put into bins; bins
_ROWS_PER_STATE = 40
_FEW_CENSORED = 0.25  # of the first runs: the others then are hardly half, from where on it has to be said
_MARKS = re.compile(r'["\\\n]')  # that formulas do not take in names
_BLANKS = ("na", "n/a", "nan", "null", "-", "--", "?", "??")  # texts for what is missing
_FORGOTTEN = "what it is now says nothing about what it is next"
_PERIODS = {"daily": ("day", 0.9, 1.1), "weekly": ("week", 6.5, 7.5), "monthly": ("month", 27, 32)}
_MOST_ARMS = 8
_FEW_STATES, _SEVERAL_RUNS = 20, 5  # of a table without other states, each in so many of the first runs
EXAMPLE = (
    "A log has a row for each step of each run, in four columns or more:\n  case,day,state,action\n"
    "  7,2024-01-31,new,wait\n  7,2024-02-01,open,repair\n  7,2024-02-03,closed,"
)


class _Value(NamedTuple):
    """A value of a state variable, and in how many rows it is there."""

    value: str
    n: int
    last: int  # as the last of its run
    over: int  # likewise, in shorter runs than the longest, or without an action
    left: int  # before another value


class FirstRunsLook:
    """What the first runs show; only its methods ask the table."""

    def __init__(
        self,
        look: LoadedRows,
        run: str,
        step: str,
        after: Mapping[str, str],
        profiles: Sequence[ColumnProfile],
        *,
        has_dates: bool,
    ) -> None:
        self._look, self._run, self._step, self._after, self._has_dates = look, run, step, after, has_dates
        self._profiles = [each for each in profiles if each.name not in after.values()]
        self._order = in_runs(run, step) if run and step else ""
        self._facts: list[tuple[str, str]] = []
        self._numeric: dict[str, bool] = {}  # whether the values of a state variable are whole numbers
        flags = {each.name: look.flag(each.name) for each in self._profiles if each.hint("flag")}
        self._flags = {name: sql for name, sql in flags.items() if sql}

    def propose(
        self,
        format: LogFormat,
        reward: tuple[str, str],
        end: str,
        initial: Mapping[str, Any],
        known: str = "",
    ) -> dict[str, Any]:
        """Return all that a proposal has beyond run and order; ``known`` is a column for the state, known at starts."""
        steps = format.steps or self._steps()
        acting = self._action(str(format.actions or ""))
        used = parse_mapping(acting).columns() if acting else []
        rest = [each for each in self._profiles if each.name not in used]
        valued = columns_of(reward[0], self._look.types) if reward[0] else rewards_of(rest)
        if reward[0] and reward[0] not in (*valued, *map(column_term, valued)):  # a list of prices, of texts as well
            valued = [name for name in valued if not self._look.types[name].startswith("VARCHAR")]
        chosen = self._states(format, [each for each in rest if each.name not in (*valued, known)])
        if known:
            chosen |= self._known(known)
        self._settle_form(chosen)
        seen = self._valuations(chosen)
        columns = zip(*seen, strict=True) if seen else ([] for _ in chosen)
        self._numeric = {name: None not in map(whole, of) for name, of in zip(chosen, columns, strict=True)}
        flagged = self._flagged_end(chosen, acting, end)
        found_end, in_log, last = flagged or (self._given_end(end, chosen) if end else self._end(chosen, acting))
        actions = acting or "'go'"
        if in_log and not self._after:
            actions = f"case when {in_log} then '' else {self._worded(actions)} end"
        if not acting:
            chain = "no column looks like a decision, so this is a chain with one action, go (or say which: --action)"
            self._facts.append(("action", chain))
        if acting and self._run:
            self._note_arms(acting, used)
        maybe = self._maybe(valued) if valued and not reward[0] else ("", "")
        closed = self._closed(chosen)
        cut = self._censoring(acting, in_log)
        if in_log or not found_end:
            self._note_ends(in_log, steps)
        begins = self._initial(chosen, initial)
        length = 1
        if self._order:
            run, step = quoted(self._run), quoted(self._step)
            steps_each = f"count(DISTINCT ({run}, {step}))::DOUBLE / greatest(count(DISTINCT {run}), 1)"
            length = max(1, round(self._look.number(steps_each)) - (not self._after))
        return {
            "format": replace(format, states=chosen, actions=actions, steps=steps, censoring=format.censoring or cut),
            "initial": begins, "end": found_end,
            "within": length,
            "reward": self._never_below_0(reward[1], reward[0]) if reward[0] else ("", ""), "maybe": maybe,
            "last": last or self._last(chosen, begins), "closed": closed, "facts": tuple(self._facts),
        }  # fmt: skip

    def _maybe(self, valued: Sequence[str]) -> tuple[str, str]:
        """Say which columns may be costs or rewards, and return the kind and term of the first."""
        by_kind = {"cost": [name for name in valued if not is_gain(name)], "reward": [*filter(is_gain, valued)]}
        terms = {kind: " + ".join(map(column_term, names)) for kind, names in by_kind.items() if len(names) > 1}
        ways = {kind: terms.get(kind, " ".join(names)) for kind, names in by_kind.items() if names}
        said = {kind: self._never_below_0(kind, term) for kind, term in ways.items()}
        sign = {kind: ", though never above 0" if known[0] != kind else "" for kind, known in said.items()}
        are = {kind: f"a {kind}" if len(names) == 1 else f"{kind}s" for kind, names in by_kind.items()}
        parts = [f"{' and '.join(by_kind[kind])} may be {are[kind]}{sign[kind]}" for kind in said]
        say = " or ".join(f"--{kind} {shlex.quote(term)}" for kind, term in said.values())
        self._facts.append(("reward", f"{', '.join(parts)}: say {say}"))
        return next(iter(said.values()))

    def _never_below_0(self, kind: str, term: str) -> tuple[str, str]:
        """Return a reward that is never above 0 as a cost, as bounds of tables need numbers that are not negative."""
        column = column_term(term) if term in self._look.types else term
        value = f"TRY_CAST({self._look.sql('', column)} AS DOUBLE)"
        is_loss = kind == "reward" and self._look.number(f"max({value}) <= 0 AND min({value}) < 0")
        return ("cost", f"0 - ({column})" if " " in column else f"0 - {column}") if is_loss else (kind, term)

    def _closed(self, chosen: Mapping[str, Any]) -> bool:
        """Return whether the states seem to be all there are: few, and each of them in several of the first runs."""
        if not self._run:
            return False
        there = " AND ".join(f"v{i} <> ''" for i in range(len(chosen)))
        keys = ", ".join(f"v{i}" for i in range(len(chosen)))
        rows = self._all_states(chosen, f"{quoted(self._run)} AS run")
        states = f"SELECT {keys}, count(DISTINCT run) AS n FROM ({rows}) GROUP BY ALL"
        ((n_states, least),) = self._look.rows(f"SELECT count(*), min(n) FROM ({states}) WHERE {there}")
        return bool(1 < n_states <= _FEW_STATES and least >= _SEVERAL_RUNS)

    def _steps(self) -> str | None:
        """Return the pace of dates, if it is regular, after a look at what is missing or there several times."""
        if not self._order:
            return None
        run, step = quoted(self._run), quoted(self._step)
        copies = self._look.n_copies
        several = self._look.number(f"count(*) - count(DISTINCT ({run}, {step}))")
        odd = [f"{number_of(copies, 'exact duplicate')}, counted once"] if copies else []
        odd += (
            [f"{number_of(int(several), 'row')} with run and step of another row, but other values"] if several else []
        )
        pace = self._pace() if self._has_dates else None
        if pace is not None:
            number = f"date_diff('{_PERIODS[pace][0]}', TIMESTAMP '1970-01-01', {moment_of(self._step)})"
            missing = self._missing(number)
            self._facts.append(("pace", f"{pace}, one step in each period"))
            odd += [f"{100 * missing:.2g} % of the periods between first and last have no row"] if missing else []
        elif not self._has_dates:
            missing = self._missing(f"TRY_CAST({step} AS DOUBLE)")
            few = 0 < missing < 0.5
            odd += [f"{100 * missing:.2g} % of the steps between first and last have no row"] if few else []
        self._facts += [("odd", each) for each in odd]
        return pace

    def _missing(self, number: str) -> float:
        rows = f"SELECT {quoted(self._run)} AS run, {number} AS x FROM {{rows}}"
        spans = f"SELECT max(x) - min(x) + 1 AS wide, count(DISTINCT x) AS there FROM ({rows}) GROUP BY run"
        ((wide, there),) = self._look.rows(f"SELECT sum(wide), sum(there) FROM ({spans})")
        return 1 - float(there) / float(wide) if wide else 0.0

    def _pace(self) -> str | None:
        run, moment = quoted(self._run), moment_of(self._step)
        moments = f"SELECT DISTINCT {run} AS run, {moment} AS x FROM {{rows}}"
        before = "lag(x) OVER (PARTITION BY run ORDER BY x)"
        gap = f"SELECT run, x, date_diff('hour', {before}, x) / 24.0 AS days FROM ({moments})"
        ((usual,),) = self._look.rows(f"SELECT median(days) FROM ({gap})")
        for word, (unit, low, high) in _PERIODS.items():
            if usual is not None and low <= usual <= high:
                again = f"1 - count(DISTINCT (run, date_trunc('{unit}', x)))::DOUBLE / count(*)"
                ((share,),) = self._look.rows(f"SELECT {again} FROM ({gap})")
                return word if share < 0.02 else None
        return None

    def _action(self, given: str) -> str:
        """Return the expression of actions, or nothing if there are none."""
        if given:
            return column_term(given) if given in self._look.types else given
        last_only = self._last_only() if self._order else []
        name = action_of(self._profiles, last_only, _MOST_VALUES)
        if not name:
            return ""
        term = self._folded(name)
        self._facts.append(("action", f"{name}: {_shown(self._look.values(self._look.sql(name, term)))}"))
        return term

    def _note_arms(self, acting: str, used: Sequence[str]) -> None:
        """Say how whole runs are compared, if each of the first runs has one action, and these are few."""
        of_run = f"any_value({self._look.sql('', acting)}) AS arm, count(DISTINCT {self._look.sql('', acting)}) AS n"
        of_runs = f"SELECT {of_run} FROM {{rows}} WHERE {quoted(self._run)} NOTNULL GROUP BY {quoted(self._run)}"
        seen = self._look.rows(
            f"SELECT arm, count(*), max(n) FROM ({of_runs}) WHERE n > 0 AND arm::VARCHAR <> '' GROUP BY 1"
        )
        if not 2 <= len(seen) <= _MOST_ARMS or any(n != 1 or n_runs < _SEVERAL_RUNS for _, n_runs, n in seen):
            return
        first, second, *_ = sorted((str(arm) for arm, *_ in seen), key=lambda arm: (arm, len(arm)))
        chance = next((each.name for each in self._profiles if each.is_chance), "")
        columns = [f"arm={used[0]}", *([f"chance={chance}"] if chance else [])]
        say = ["--policy", first, "--against", second, "--prespecified", *(w for c in columns for w in ("--column", c))]
        self._facts.append(
            (
                "arms",
                "each run has one action: if that was settled before the run began, compare whole runs, which need no "
                f"model, with plumdp certify {shlex.join(say)}",
            )
        )

    def _worded(self, term: str) -> str:
        """Return actions as texts, those that are a column of numbers or truth values too."""
        kind = next((kind for name, kind in self._look.types.items() if term == column_term(name)), "VARCHAR")
        if kind.startswith(("VARCHAR", "ENUM")):
            return term
        if kind == "BOOLEAN":
            return f"case when {term} then '1' else '0' end"
        numbers = [number for value in self._look.values(term) if (number := whole(value)) is not None]
        whens = " ".join(f"when {term} = {number} then '{number}'" for number in numbers[:_MOST_VALUES])
        return f"case {whens} else '' end" if whens else "''"

    def _last_only(self) -> list[str]:
        """Return columns that are missing in the ends of runs, and hardly anywhere else."""
        names = [each.name for each in self._profiles if 0 < each.n_present < each.n_rows and not each.is_time]
        if not names:
            return []
        blank = {name: f"coalesce(trim({quoted(name)}::VARCHAR), '') = ''" for name in names}
        last = f"lead(1) OVER ({self._order}) IS NULL AS is_last"
        shares = ", ".join(f"avg((({test}) = is_last)::INTEGER)" for test in blank.values())
        (found,) = self._look.rows(f"SELECT {shares} FROM (SELECT *, {last} FROM {{rows}})")
        return [name for name, share in zip(names, found, strict=True) if share >= 0.97]

    def _folded(self, name: str) -> str:
        """Return a column as a text in lower case, if that makes fewer values of it."""
        term, text = column_term(name), f"trim({quoted(name)}::VARCHAR)"
        n, lower = (self._look.number(f"count(DISTINCT {each})") for each in (text, f"lower({text})"))
        return f"lower({term})" if lower < n else term

    def _states(self, format: LogFormat, rest: Sequence[ColumnProfile]) -> dict[str, Any]:
        """Return the variables of a state: those given, or columns that change in a run, few enough for the rows."""
        if format.variables:
            return dict(format.terms) or {variable_of(name): self._term(name) for name in format.variables}
        reasons = {each.name: self._unfit(each) for each in rest}
        forgotten = [each.name for each in rest if not reasons[each.name] and self._is_forgotten(each)]
        reasons |= dict.fromkeys(forgotten, _FORGOTTEN)
        able = {name: self._term(name) for name, reason in reasons.items() if not reason}
        if not able:  # a state that is forgotten at once is one all the same, if nothing else is
            able = {name: self._term(name) for name in forgotten}
            self._facts += [("odd", f"{name}: {_FORGOTTEN}, but nothing else looks like a state") for name in able]
        if self._after.keys() & able.keys():
            reasons |= {name: f"the log has no next_{name}" for name in able if name not in self._after}
            able = {name: term for name, term in able.items() if name in self._after}
        left = ((name, reason) for name, reason in reasons.items() if name not in able)
        self._facts += [("not used", f"{name}: {reason}") for name, reason in left]
        values = {name: self._look.values(self._look.sql(name, term)) for name, term in able.items()}
        limit, chosen = self._look.number("count(*)") / _ROWS_PER_STATE, dict[str, str]()
        for name in sorted(able, key=lambda name: len(values[name])):
            terms = ", ".join(self._look.sql(name, term) for term in (*chosen.values(), able[name]))
            joint = self._look.number(f"count(DISTINCT row({terms}))")
            if chosen and joint > limit:
                reason = f"with it there are {joint:,.0f} states, too many for the first runs"
                self._facts.append(("not used", f"{name}: {reason}"))
            else:
                chosen[variable_of(name)] = able[name]
                self._facts.append(("state", f"{name}: {_shown(values[name])}"))
                if blank := self._blanks(name) if name in self._look.types else {}:
                    self._facts.append(("odd", f"{name}: {_shown(blank)} taken as missing"))
                if len(values[name]) > _MOST_NUMBERS:
                    self._facts.append(("odd", f"{name} has {len(values[name])} values; {_joined(name, values[name])}"))
        if not chosen:
            names = ", ".join(self._look.types)
            raise DataError(
                f"no column looks like a state, that is, changes in a run; the columns are {names}. If there is one, "
                "say which with ",
                Option("states", ...),
                f". {EXAMPLE}",
            )
        return chosen

    def _known(self, name: str) -> dict[str, Any]:
        """Return the variable of a column that is the same in all rows of a run."""
        if name not in self._look.types:
            names = ", ".join([*VARIABLES, *self._look.types])
            raise DataError(Option("remember", name), f": choose one of {names}")
        changing = f"SELECT count(DISTINCT {quoted(name)}) AS n FROM {{rows}} GROUP BY {quoted(self._run)}"
        if self._run and self._look.rows(f"SELECT 1 FROM ({changing}) WHERE n > 1 LIMIT 1"):
            why = f": {name} changes in a run, so that not all of it is known when the run begins; say --state {name}"
            raise DataError(Option("remember", name), why)
        return {variable_of(name): self._term(name)}

    def _unfit(self, each: ColumnProfile) -> str:
        """Return the reason why a column is not part of the state, or an empty text."""
        if each.name in self._flags:
            return "says after which step a run is over"
        if each.is_chance:
            return "seems to be the chance of the action"
        if each.is_time:
            return "dates"
        if each.n_present < 0.5 * each.n_rows:
            return f"missing in {100 * (1 - each.n_present / max(each.n_rows, 1)):.3g} % of the rows"
        if each.n_distinct < 2:
            return "one value"
        if each.hint("reward") and each.is_number:
            return "numbers that may be a cost or a reward"
        if not each.is_number and each.n_distinct > _MOST_VALUES:
            return f"{self._look.number(f'count(DISTINCT {quoted(each.name)})'):,} values"
        if each.is_whole and each.n_distinct > 0.9 * each.n_rows:
            return "another number in nearly every row"
        if not self._order:
            return ""
        name = quoted(each.name)
        changing = f"SELECT count(DISTINCT {name}) AS n FROM {{rows}} GROUP BY {quoted(self._run)}"
        ((share,),) = self._look.rows(f"SELECT avg((n > 1)::INTEGER) FROM ({changing})")
        if share < 0.01:
            return f"the same in all rows of a run; say --remember {each.name} if what happens depends on it"
        return ""

    def _is_forgotten(self, each: ColumnProfile) -> bool:
        """Return whether a value of a column says nothing about the next one of its run."""
        term = self._look.sql(each.name, self._term(each.name))
        return bool(self._order) and not is_persistent(pairs_of(self._look, term, self._order))

    def _term(self, name: str) -> str:
        """Return a column as it is, in lower case, or numbers in bins of about as many rows."""
        if name not in self._look.types:
            return name
        if self._look.types[name] == "BOOLEAN":
            return f"case when {column_term(name)} then 1 else 0 end"
        about = next((each for each in self._profiles if each.name == name), None)
        if about is None:  # the run or the step of a row
            return column_term(name)
        if not about.is_number:
            blank = " or ".join(f"{column_term(name)} = '{value}'" for value in self._blanks(name))
            return f"case when {blank} then '' else {self._folded(name)} end" if blank else self._folded(name)
        if about.is_whole and about.n_distinct <= _MOST_NUMBERS:
            return column_term(name)
        shares = ", ".join(f"{i / _BINS}" for i in range(1, _BINS))
        ((edges,),) = self._look.rows(
            f"SELECT quantile_disc(TRY_CAST({quoted(name)} AS DOUBLE), [{shares}]) FROM {{rows}}"
        )
        return _binned(column_term(name), sorted({float(f"{edge:.6g}") for edge in edges}))

    def _blanks(self, name: str) -> dict[str, int]:
        """Return the values of a column that stand for missing ones, with how often each is there."""
        values = self._look.values(quoted(name))
        found = {value: n for value, n in values.items() if value.lower() in _BLANKS}
        return found if len(found) < len(values) else {}

    def _end(self, states: Mapping[str, Any], acting: str) -> tuple[str, str, str]:
        """Return a formula of states that no run leaves, the same over columns, and that of the most frequent.

        The last step of the longest runs is no end, if something is done there: it may be where the recorder stopped.
        """
        for variable, term in states.items():
            rows = self._ends_of(variable, term, acting)
            enough = max(2.0, 0.05 * sum(each.last for each in rows))
            often = [each for each in rows if each.last >= max(0.95 * each.n, enough) and 2 * each.over >= each.last]
            ends = [each.value for each in often if not each.left]
            for each in often:
                if each.left:
                    runs = f"{each.left:,} of {each.n:,} rows go on from there"
                    self._facts.append(("odd", f"{variable} = {each.value} looks like an end, but {runs}"))
            if ends and len(ends) < len(rows) and isinstance(term, str) and not _MARKS.search("".join(ends)):
                self._facts.append(("end", f"{variable} = {', '.join(ends)}: no run goes on from there"))
                in_log = " or ".join(self._in_log({variable: term}, [each]) for each in ends)
                formulas = [self._equation(variable, each) for each in ends]
                return " | ".join(formulas), in_log, formulas[0]
        return "", "", ""

    def _given_end(self, end: str, states: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return a formula that was given, the same over columns if that is short, and the formula again."""
        rows = self._valuations(states)
        columns = (np.array(self._typed(*each)) for each in zip(states, zip(*rows, strict=True), strict=True))
        holds = state_formula(end)(state_type(states)(*columns))
        ended = [row for row, is_end in zip(rows, holds, strict=True) if is_end]
        if not ended:
            raise DataError(Option("end", end), ": no first run ever reaches such a state")
        self._facts.append(("end", end))
        is_short = len(ended) <= _MOST_VALUES and all(isinstance(term, str) for term in states.values())
        if not is_short or _MARKS.search("".join(map("".join, ended))):
            return end, "", ""
        return end, " or ".join(self._in_log(states, row) for row in ended), ""

    def _flagged_end(self, states: Mapping[str, Any], acting: str, end: str) -> tuple[str, str, str] | None:
        """Return the same of the states in which a column says that runs are over; None if there is no such column.

        In rows with their next state it speaks of that one, in others of the state of the row, where nothing is done.
        """
        is_cut = " AND ".join(f"{sql} = 0" for name, sql in self._flags.items() if "truncated" in words_of(name))
        over = [(name, sql) for name, sql in self._flags.items() if "truncated" not in words_of(name)]
        if not over or end or not (self._order or self._after):
            return None
        name, is_over = over[0][0], f"coalesce({over[0][1]} = 1{f' AND {is_cut}' * bool(is_cut)}, FALSE)"
        acts = f"coalesce({self._look.sql('', acting)}::VARCHAR, '') <> ''" if acting else "FALSE"
        if not self._after and (n := self._look.number(f"count_if({is_over} AND {acts})")):
            self._refuse_last_actions(name, int(n), states)
        length = f"count(*) OVER (PARTITION BY {quoted(self._run)})" if self._run else "0"
        own, after = (f"[{', '.join(self._texts(states, after=each))}]" for each in (False, bool(self._after)))
        rows = f"SELECT {own} AS own, {after} AS place, {is_over} AS is_over, {length} AS length FROM {{rows}}"
        goes_on = "SELECT own AS place, count(*) AS n FROM steps GROUP BY own" if self._after else "SELECT [''], 0"
        is_limit = "bool_and(length = longest) FILTER (is_over)" if "done" in words_of(name) else "FALSE"
        found = self._look.rows(
            f"WITH steps AS ({rows}), known AS (SELECT *, max(length) OVER () AS longest FROM steps), "
            f"left_again(place, n) AS ({goes_on}) SELECT place, count_if(NOT is_over) + coalesce(any_value(n), 0), "
            f"{is_limit} FROM known LEFT JOIN left_again USING (place) "
            "GROUP BY place HAVING bool_or(is_over) ORDER BY place"
        )
        ends = [tuple(place) for place, n_on, at_limit in found if not (n_on and at_limit)]
        if hard := [(each, mark[0]) for place in ends for each in place if (mark := _MARKS.search(each))]:
            raise DataError(f"{name} says that runs are over in {hard[0][0]!r}; write this name without {hard[0][1]!r}")
        for place, n_on, at_limit in found:
            if n_on and not at_limit:
                where = ", ".join(f"{name}={value}" for name, value in zip(states, place, strict=True))
                raise DataError(
                    f"{name} says that runs are over in ({where}), but {number_of(n_on, 'row')} of the first runs go "
                    "on from there; add what tells these apart to the state with ",
                    Option("states", ...),
                )
        if not ends:
            return None
        formulas = ["&".join(map(self._equation, states, place)) for place in ends]
        self._facts.append(("end", f"{name}: {listing(formulas, most=6)}"))
        in_log = "" if self._after else " or ".join(self._in_log(states, place) for place in ends)
        return " | ".join(formulas), in_log, ""

    def _refuse_last_actions(self, flag: str, n: int, states: Mapping[str, Any]) -> None:
        """Refuse runs that are over after an action in their last row, as no row has the state that it led to."""
        column = next(name for each in states.items() for name in self._columns(*each))
        after = f"log[{column!r}].astype(str).groupby(log[{self._run!r}]).shift(-1)"
        line = f"log['next_{column}'] = {after}.mask(log[{flag!r}], 'over')"
        raise DataError(
            f"{flag} says that {number_of(n, 'run')} of the first are over after the action in their last row, and the "
            "log has no row with the state that it led to, so that this outcome would be lost; add such a row without "
            f"an action to each run, or a column with the next state, in pandas {line}; or say with ",
            Option("end", ...),
            " in which states nothing happens any more",
        )

    def _settle_form(self, chosen: Mapping[str, Any]) -> None:
        """Settle whether rows have their next state: only if that is there for each column of the state."""
        if not self._after:
            return
        used = {name for each in chosen.items() for name in self._columns(*each)}
        lacking, names = [f"next_{name}" for name in sorted(used - self._after.keys())], ", ".join(self._after.values())
        if not lacking:
            self._facts.append(("form", f"each row has the next state, in {', '.join(self._after[n] for n in used)}"))
            self._require_next(chosen)
            return
        if not self._order:
            raise DataError(
                f"the log has {names}, but no {lacking[0]}; give this column, or say which columns name the run of a "
                "row and its place there, with ",
                Option("columns", {"episode": ..., "step": ...}),
            )
        self._after = {}
        self._facts.append(("form", f"the next state is that of the next row; not read: {names}"))

    def _require_next(self, chosen: Mapping[str, Any]) -> None:
        """Refuse rows whose next state is missing, as it is where runs end: what led there would be left out."""
        is_missing = " OR ".join(f"coalesce({text}, '') = ''" for text in self._texts(chosen, after=True))
        is_here = " AND ".join(f"coalesce({text}, '') <> ''" for text in self._texts(chosen))
        if n := int(self._look.number(f"count_if(({is_missing}) AND {is_here})")):
            raise DataError(
                f"{number_of(n, 'row')} of the first runs {'has' if n == 1 else 'have'} a state and no next state; "
                "if runs end there, write a state for that, such as over; or leave out the columns "
                f"{', '.join(self._after.values())}, so that the next row has the next state"
            )

    def _columns(self, variable: str, term: Any) -> list[str]:
        return columns_of(term, self._look.types) if isinstance(term, str) else [variable]

    def _texts(self, states: Mapping[str, Any], *, after: bool = False) -> list[str]:
        return [f"trim({self._look.sql(*each, after=after)}::VARCHAR)" for each in states.items()]

    def _all_states(self, states: Mapping[str, Any], *more: str) -> str:
        """Return the query for the states of all rows as texts, those after a step as well."""
        sides = (False, True) if self._after else (False,)
        named = ([f"{text} AS v{i}" for i, text in enumerate(self._texts(states, after=side))] for side in sides)
        return " UNION ALL ".join(f"SELECT {', '.join([*names, *more])} FROM {{rows}}" for names in named)

    def _valuations(self, states: Mapping[str, Any]) -> list[tuple[str, ...]]:
        """Return the states of the first runs, as texts."""
        there = " AND ".join(f"v{i} <> ''" for i in range(len(states)))
        return self._look.rows(f"SELECT DISTINCT * FROM ({self._all_states(states)}) WHERE {there} ORDER BY ALL")

    def _ends_of(self, variable: str, term: Any, acting: str = "") -> list[_Value]:
        """Return the values of a variable, those that are the last of most runs first."""
        length = f"count(*) OVER (PARTITION BY {quoted(self._run)})" if self._run else "0"
        if self._after:
            one, other = (self._texts({variable: term}, after=after)[0] for after in (False, True))
            own = f"SELECT {one} AS value, 0 AS last, 0 AS is_over, 0 AS has_left FROM {{rows}}"
            is_over = "(length < max(length) OVER ())::INTEGER" if self._order else "1"
            reached = f"SELECT {other} AS value, {length} AS length FROM {{rows}}"
            never = f"value NOT IN (SELECT {one} FROM {{rows}} WHERE {one} NOTNULL)"
            reached = f"SELECT value, 1, {is_over} AS is_over, 0 FROM ({reached})"
            rows = f"{own} UNION ALL SELECT * FROM ({reached}) WHERE {never}"
        elif self._order:
            value, last = f"trim({self._look.sql(variable, term)}::VARCHAR)", f"lead(1) OVER ({self._order}) IS NULL"
            idle = f"coalesce(trim({self._look.sql('', acting)}::VARCHAR), '') = ''" if acting else "FALSE"
            left = f"coalesce(lead({value}) OVER ({self._order}) <> {value}, FALSE) AS has_left"
            runs = f"SELECT {value} AS value, {last} AS last, {length} AS length, {idle} AS idle, {left} FROM {{rows}}"
            over = "last AND (idle OR length < max(length) OVER ())"
            flags = f"last::INTEGER AS last, ({over})::INTEGER AS is_over, has_left::INTEGER AS has_left"
            rows = f"SELECT value, {flags} FROM ({runs})"
        else:
            return []
        sums = "sum(last) AS n, sum(is_over), sum(has_left)"
        query = f"SELECT value, count(*), {sums} FROM ({rows}) WHERE value <> '' GROUP BY value ORDER BY n DESC, value"
        return [_Value(value, *map(int, numbers)) for value, *numbers in self._look.rows(query)]

    def _last(self, states: Mapping[str, Any], initial: Mapping[str, Any]) -> str:
        """Return a formula of the value that most runs end with, and do not begin with."""
        found = [
            (each.last, self._equation(variable, each.value))
            for variable, term in states.items()
            for each in self._ends_of(variable, term)
            if self._typed(variable, [each.value]) != [initial[variable]] and not _MARKS.search(each.value)
        ]
        return max(found, default=(0, ""))[1]

    def _censoring(self, acting: str, in_log: str) -> Censoring | None:
        """Return that ends of runs have nothing to do with their last outcomes, if most have an action at their end."""
        if not self._order or self._after:  # each row shows its outcome
            return None
        acts = f"coalesce({self._look.sql('', acting)}::VARCHAR, '') <> ''" if acting else "TRUE"
        ended = f"coalesce({self._look.sql('', in_log)}, FALSE)" if in_log else "FALSE"
        last = f"SELECT {acts} AND NOT {ended} AS is_cut, lead(1) OVER ({self._order}) IS NULL AS is_last FROM {{rows}}"
        ((share,),) = self._look.rows(f"SELECT avg(is_cut::INTEGER) FROM ({last}) WHERE is_last")
        if not share or share <= _FEW_CENSORED:
            return None
        ends = (
            f"{100 * share:.3g} % of runs end before the outcome of their last action, for reasons that have nothing to"
        )
        self._facts.append(("assumed", f"{ends} do with it; if that is wrong, so is every result"))
        return "unrelated"

    def _note_ends(self, in_log: str, pace: str | None) -> None:
        """Say in which step many runs stop that are not at an end."""
        if not self._order or self._after:
            return
        is_cut = f"NOT coalesce({self._look.sql('', in_log)}, FALSE)" if in_log else "TRUE"
        of_run, last = f"OVER (PARTITION BY {quoted(self._run)})", f"lead(1) OVER ({self._order}) IS NULL"
        length = f"count(*) {of_run}"
        if pace is not None:  # a step whose row is missing is one, too
            began, ended = (f"{end}({period_of(pace, self._step)}) {of_run}" for end in ("min", "max"))
            length = f"date_diff('{_PERIODS[pace][0]}', {began}, {ended}) + 1"
        rows = f"SELECT least({length} - 1, {MOST}) AS length, {is_cut} AS is_cut, {last} AS is_last FROM {{rows}}"
        found = self._look.rows(f"SELECT length, is_cut, count(*) FROM ({rows}) WHERE is_last GROUP BY ALL")
        if notable := CensoredRuns.of(*map(np.array, zip(*found, strict=True))).notable():
            self._facts.append(("censored", f"{told(notable)}; {WHAT_TO_DO}"))

    def _initial(self, states: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state in which all of the first runs begin, or the given one; without runs, the usual state."""
        names = ", ".join(f"{text} AS v{i}" for i, text in enumerate(self._texts(states)))
        keys = ", ".join(f"v{i}" for i in range(len(states)))
        is_first = f"lag(1) OVER ({self._order}) IS NULL" if self._order else "TRUE"
        rows = f"SELECT {names}, {is_first} AS is_first FROM {{rows}}"
        there = " AND ".join(f"v{i} <> ''" for i in range(len(states)))
        query = f"SELECT {keys}, count(*) AS n FROM ({rows}) WHERE is_first AND {there} GROUP BY {keys}"
        found = self._look.rows(f"{query} ORDER BY n DESC, {keys}")
        if not found:
            raise DataError(
                "no run begins in a state whose values are all there; say what makes up a state with ",
                Option("states", ...),
            )
        begin = [({k: self._typed(k, [v])[0] for k, v in zip(states, row, strict=False)}, row[-1]) for row in found]
        fitting = [each for each in begin if all(str(each[0].get(k)) == str(v) for k, v in given.items())]
        if not fitting or (self._order and len(fitting) > 1):
            shown = listing([f"{number_of(n, 'run')} in ({_named(values)})" for values, n in begin], most=6)
            raise DataError(
                f"not all of the first runs begin in one state: {shown}. Name that of the runs that you mean, all of "
                "its values, with ",
                Option("initial", fitting[0][0] if fitting else begin[0][0]),
                "; or, to mean all runs together, put a row before the first one of each run, with a state of its own "
                "such as new and any action, and ask for one step more",
            )
        values, n = fitting[0]
        share = (
            f" ({n:,} of the first runs; the value is that of these alone)" if len(begin) > 1 and self._order else ""
        )
        self._facts.append(("begins", f"{_named(values)}{share}"))
        return values

    def _typed(self, variable: str, values: Sequence[str]) -> list[Any]:
        """Return values of a variable as the table has them: whole numbers if all are, or else texts."""
        return [whole(value) if self._numeric[variable] else value for value in values]

    def _equation(self, variable: str, value: str) -> str:
        return f"{variable}={whole(value)}" if self._numeric[variable] else f'{variable}="{value}"'

    def _in_log(self, states: Mapping[str, str], values: Sequence[str]) -> str:
        """Return the expression over columns that some values of the state variables have."""
        parts = []
        for term, value in zip(states.values(), values, strict=True):
            is_truth = self._look.types.get(term) == "BOOLEAN"
            is_text = parse_mapping(term).kind == "text" or not re.fullmatch(r"-?\d+(\.0*)?", value)
            text = value.replace("'", "''")
            parts.append(f"({term}) = '{text}'" if is_text and not is_truth else f"({term}) = {value}")
        return " and ".join(parts)


def period_of(pace: str, step: str) -> str:
    """Return the first day of the period of the calendar that a date is in, as SQL."""
    return f"date_trunc('{_PERIODS[pace][0]}', {moment_of(step)})"


def _named(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {in_line(str(value))}" for name, value in values.items())


def _binned(term: str, edges: Sequence[float]) -> str:
    """Return the expression of bins with names, below the first edge, between two, and from the last one on.

    >>> _binned("age", [62.0, 70.5])
    "case when age < 62 then 'below 62' when age < 70.5 then '62 to 70.5' else '70.5 or more' end"
    """
    names = [f"below {edges[0]:g}", *(f"{a:g} to {b:g}" for a, b in pairwise(edges))]
    whens = " ".join(f"when {term} < {edge:g} then '{name}'" for edge, name in zip(edges, names, strict=True))
    return f"case {whens} else '{edges[-1]:g} or more' end"


def _joined(name: str, values: Mapping[str, int]) -> str:
    """Return the rule that makes one of values with the same meaning, with the most frequent as the example."""
    column, word = column_term(name), re.findall(r"\w+", next(iter(values)))[0].lower()
    term = f"{variable_of(name)}=case when contains(lower({column}), '{word}') then '{word}' else 'other' end"
    return "if some mean the same, join them, as in --state " + (shlex.quote(term) if '"' in term else f'"{term}"')


def _shown(values: Mapping[str, int]) -> str:
    """Return the most frequent values, and how many there are."""
    most = ", ".join(f"{in_line(value.removesuffix('.0'))} ({n:,})" for value, n in [*values.items()][:6])
    return most if len(values) <= 6 else f"{most} and {len(values) - 6:,} more"
