"""``LogFormat``: how the rows of a log are to be read, as Python, the command line and ``plumdp.toml`` all say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, get_args

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Censoring, LogForm, Steps
from plumdp.data.periods import require_steps

StateMaps: TypeAlias = Mapping[str, str | Sequence[float]]
"""For each variable an expression over columns of the log, or the edges of bins."""

Actions: TypeAlias = str | Mapping[str, str] | Sequence[str]
"""An expression that gives names of actions, a table from what the log calls them, or the actions 0, 1, 2, … ."""


@dataclass(frozen=True, kw_only=True)
class LogFormat:
    """How the rows of a log are read: say it once, and all functions that read this log take it.

    Parameters
    ----------
    columns
        What plumdp's columns are called in the log. "transitions" have the state variables, ``action``, and the next
        state, with ``next_`` before its variables; "trajectories" have ``episode`` and ``step`` instead of the next
        state, and a last row without an action; "counts" are transitions with their number ``n``. What is said of whole
        runs, ``arm``, ``chance`` and ``task``, is for ``read_whole_runs``.
    states
        State variables made of other columns, ``{"x": "floor(lon / 0.5)", "battery": [0, 20, 60, 100]}``: an
        expression, or bins. They are part of the model: decide on them before you look at the data. Names alone, such
        as ``["x", "y"]``, are columns; a table that is made from a log needs them.
    actions
        An expression that gives the names of actions, a table from what the log calls them, or a list of the actions 0,
        1, 2 and so on.
    form
        "transitions", "trajectories" or "counts"; by default, found from the columns.
    steps
        "consecutive" if steps grow by one, "ordered" if they only order rows and none is missing; "monthly", "weekly",
        "daily" or "every=30d" for dates with one step in each period.
    censoring
        "unrelated" vouches that runs were censored for reasons that have nothing to do with their last outcome;
        "independent", nor with anything else in them, so that whole runs make a life table.
    known
        Columns that are known before a run begins, as the site, the type or the arm are, and have at most 8 values: the
        model test looks whether outcomes depend on them. Not what is known in the end ("ever failed"), although it is
        the same in all rows of a run: that speaks against right models.

    Examples
    --------
    >>> import pandas as pd
    >>> from plumdp import case_study, read_log
    >>> bets = pd.DataFrame({"purse": [10, 9], "t": [0, 1], "action": "bet1", "next_purse": [9, 8], "next_t": [1, 2]})
    >>> columns = {"money": "purse", "state_step": "t", "next_money": "next_purse", "next_step": "next_t"}
    >>> print(read_log(case_study("betting:5").model, bets, LogFormat(columns=columns)))
    2 log rows: 2 matched, 0 rejected
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    states: StateMaps | Sequence[str] | str = ()
    actions: Actions | None = None
    form: LogForm | None = None
    steps: Steps | None = None
    censoring: Censoring | None = None
    known: Sequence[str] = ()

    def __post_init__(self) -> None:
        require_steps(self.steps)
        if self.censoring not in (None, *get_args(Censoring)):
            problem = ": choose 'unrelated' or 'independent', or leave it out"
            raise DataError(Option("censoring", self.censoring), problem)
        if self.form not in (None, *get_args(LogForm)):
            raise DataError(Option("form", self.form), f": choose one of {', '.join(map(repr, get_args(LogForm)))}")
        names = self.variables
        if not all(isinstance(name, str) and name for name in names) or len({*names}) < len(names):
            said = ": name the columns that make up a state, such as ['x', 'y'], or an expression for each of them"
            raise DataError(Option("states", self.states), said)

    @property
    def variables(self) -> list[str]:
        """The state variables that are said."""
        if isinstance(self.states, str):
            return [self.states]
        return [*self.states] if isinstance(self.states, Sequence | Mapping) else [""]

    @property
    def terms(self) -> StateMaps:
        """The state variables that are made of other columns."""
        return self.states if isinstance(self.states, Mapping) else {}


AS_NAMED = LogFormat()
"""A log whose columns have plumdp's names."""
