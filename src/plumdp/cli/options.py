"""All arguments and options of the command line: type, default, check, words, flag and group of each, in one table.

A command names the groups and options that it takes (``COMMANDS``). Its parameters, its help, what ``plumdp.toml`` may
say, and the checks of values come from here.
"""

from __future__ import annotations

# ruff: noqa: RUF009  an option is a field of the dataclass
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from plumdp.base import vocabulary
from plumdp.base.errors import DataError
from plumdp.cli.texts import BEFORE_NAME, TABLE, TEXT, action_map, gaps_of, pairs, state_maps, values_of, willingness_of

GROUPS = {  # with their titles in help; options of no group are named by the commands that take them
    "question": "policies", "result": "output", "model": "model", "log": "log", "set": "guarantee", "frame": "general",
}  # fmt: skip
_SHARED = ("model", "log", "set")  # what they say of model and data is true wherever it is said

Kind = Literal["ladder", "region", "expressions", "policy", "advice", "residuals", "units"]
Check = tuple[Callable[[Any], bool], str]
_PROBABILITY: Check = (lambda number: 0 < number < 1, "a number between 0 and 1, such as 0.999")
_WHOLE: Check = (lambda number: number >= 1, "a whole number, at least 1")
_POSITIVE: Check = (lambda number: number > 0, "a number above 0")


class Parameter(NamedTuple):
    """An option in the table, or an argument, which has no flags."""

    group: str
    flags: tuple[str, ...]
    metavar: str | None
    words: str
    default: Any
    is_common: bool  # of a group: shown by -h and not by --help-all alone
    check: Check | None
    parse: Callable[[Any], Any] | None  # of the text, or of the texts of an option that may be repeated
    kind: Any = str  # what Typer makes of the text

    @property
    def is_shown(self) -> bool:
        """Whether ``-h`` shows it."""
        return self.is_common or not self.group

    @property
    def is_shared(self) -> bool:
        """Whether a file of defaults may have it above all tables."""
        return self.group in _SHARED and "Path" not in str(self.kind)

    def value(self, typed: Any) -> Any:
        """Return the value of one text or several; refuse values that are not allowed."""
        value = typed if self.parse is None else self.parse(typed)
        if self.check is not None and not self.check[0](value):
            raise DataError(f"{self.flags[0]} {value:g}: give {self.check[1]}")
        return value


def option(
    group: str,
    usage: str,
    words: str,
    default: Any = None,
    *,
    common: bool = False,
    check: Check | None = None,
    parse: Callable[[Any], Any] | None = None,
) -> Any:
    """Return the entry of an option in the table, whose usage is its flags and the name of its value."""
    flags, named = ([each for each in usage.split() if each.startswith("-") == is_flag] for is_flag in (True, False))
    entry = Parameter(group, tuple(flags), " ".join(named) or None, words, default, common, check, parse)
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={"option": entry})
    return field(default=default, metadata={"option": entry})


# fmt: off
@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a command; those that it does not take have their defaults."""

    model: str = option(
        "", "MODEL", "A PRISM or JANI file, a case study such as betting:50, or model.py:NAME for a model (or a "
        "function that returns one) in a Python file, without :NAME if the file has one model; or a log, after plumdp "
        "start, whose first runs make a table.", "")
    data: Sequence[str] = option(
        "", "DATA", "Files of counts, which are added, or logs: Parquet, CSV or JSON, patterns and folders too.", ())
    result: Path | None = option("", "RESULT", "The folder of a result that certify -o wrote.")
    kind: Kind = option("", "KIND", "What to draw: ladder, region, expressions, …", "ladder")

    property: Sequence[str] = option(
        "", "--property --prop -p TEXT", "The question, as in PRISM, or the name of a property that comes with the "
        "model; its only one, if none is given. Repeat for more, or say all: the results of all hold jointly.", ())
    policy: str | None = option(
        "question", "--policy FILE", "Certify this policy: a file (.csv with a column for each state variable, one "
        "called action, and perhaps one called probability; .json of Storm, .txt of PRISM, .py with a function "
        "policy), the folder of a result, one action, uniform, or practice: each action as often as the data take it "
        "in the same state. States with one action may be left out.", common=True)
    against: str | None = option(
        "question", "--against FILE", "Another policy, given in the same way: bounds on the difference of both values "
        "say which is better. Without --policy, find one that is better than this.", common=True)
    unit: str = option(
        "question", "--unit TEXT", "What rewards and costs are counted in, such as '€ per month', for sentences and "
        "reports.", "")
    margin: float = option(
        "question", "--margin", "A difference that does not matter to you, such as 0.01: the result then also says "
        "whether both policies are the same within it, or the first is not worse by more than it.", 0.0)
    prespecified: bool = option(
        "question", "--prespecified", "State that you chose the policy before looking at these data: then bets are "
        "placed on its value, and bounds are narrower, those of a table by much.", False)
    relaxation: Literal[vocabulary.Relaxation, "all"] | None = option(
        "question", "--relaxation -r", "How the adversary may vary the parameters. Default: coupled, one point for the "
        "whole run. all: what each certifies from the same data.")
    subject_to: Sequence[str] = option(
        "question", "--subject-to THRESHOLD", "A threshold that the policy must be certified to respect, such as "
        "'P<=0.01 [ F \"failed\" ]'; repeat for more. Policies then count no steps.", ())
    willingness: tuple[float, float] | None = option(
        "question", "--willingness FROM:TO", "Of two properties, such as health and cost: which policy has the largest "
        "net benefit, from where to where in the willingness to pay for the first. Policies then count no steps.",
        parse=willingness_of)
    by: str = option(
        "question", "--by COLUMN", "Certify each unit by itself, by the column of the log that names it: -o is then a "
        "Parquet file with a row for each, which a later run goes on with. COLUMN=NAME: one unit alone, with all "
        "other options.", "")
    together: Literal["each", "all", "rate"] = option(
        "question", "--together", "With --by, what the confidence is of: each row by itself, all rows at once, or "
        "rate, the share of right ones among all verdicts, on average.", "each")
    at: Mapping[str, str] = option(
        "", "--at NAME=VALUE", "The values of the parameters; a case study has its own.",
        {}, parse=partial(pairs, "--at"))
    runs: int | None = option("", "--runs -n", "How many runs.", check=_WHOLE)
    max_steps: int | None = option("", "--max-steps", "Number of steps after which a run is truncated.", check=_WHOLE)
    seed: int = option("", "--seed", "The same seed gives the same runs.", 0)
    width: float | None = option("", "--width", "The width of the bounds that you want.", check=_POSITIVE)
    range: tuple[float, float] | None = option(
        "", "--range LO HI", "Bounds on the returns of all runs, chosen before looking at them. Default: "
        "what the model allows; sums of rewards without steps or discount need it.")
    sql: vocabulary.Dialect | None = option(
        "", "--sql", "Print the query that counts the log in a warehouse, whose result plumdp count reads; DATA is the "
        "name of the table.")
    carry: Path | None = option(
        "", "--carry FILE", "Count logs that arrive in files, such as one for each day, as if they were read at once: "
        "this Parquet file keeps the counts so far, which all commands take, and what runs need that go on in the next "
        "file. It is made if it is not there, and replaced at the end; files that were counted before are left out.")
    title: str = option("", "--title TEXT", "The heading. Default: the question, in words.", "")
    system: str = option("", "--system TEXT", 'What the model describes, as sentences call it: "the pump".', "")
    checkpoint: Path | None = option("", "--checkpoint FILE", "A file from which an interrupted run continues.")

    quiet: float = option(
        "", "--quiet N", "False alarms of all kinds together are at most one in N parts, on average.", 1000.0,
        check=_POSITIVE)
    acknowledge: bool = option(
        "", "--acknowledge", "Take note of open alarms: watching begins anew with the next part.", False)
    since: str = option(
        "question", "--since PART", "Certify what holds if nothing has changed since this part, or, with 'last N', "
        "what the last N parts say; N must not be chosen by looking.", "")

    output: Path | None = option(
        "result", "--output -o PATH", "A folder for certificate, policy and data, which plumdp report and read_result "
        "open; of several properties, folders 1, 2, … in it. Or a file for other tools: the policy (.csv, .json of "
        "Storm, .txt of PRISM, .py, .rules), or the learned intervals (.umb).", common=True)
    force: bool = option("result", "--force", "Replace what an earlier run has written there.", False)
    witness: bool = option(
        "result", "--witness", "Add to the folder what others need to check the result with plumdp verify.", False)
    json: bool = option("result", "--json", "Print JSON and nothing else.", False)

    constant: Mapping[str, str] = option(
        "model", "--constant --const -c NAME=VALUE", "Value of an undefined constant, or of an argument of a function "
        "in Python; commas or repeats for more. certify and info also take ranges: N=4:6, or N=4:2:10 in "
        "steps of 2.", {}, parse=partial(pairs, "--constant"), common=True)
    space: Sequence[str] = option(
        "model", "--space CONSTRAINT", "What you know of the parameters: a linear constraint, such as 'crash<=0.2' or "
        "'0.1<=p<=0.9'. Repeat for more.", ())
    observation_gaps: Sequence[int] = option(
        "model", "--observation-gaps GAPS", "The state is seen now and then: after how many steps, such as 1,2,3 or "
        "1:12. Logs have these gaps in a column, --column gap=COLUMN, or as differences of steps.",
        (), parse=gaps_of)
    exact: str | None = option(
        "model", "--exact FORMULA", "With --observation-gaps: ends whose step is known although nobody looked, such as "
        "'at=\"dead\"'. Logs then have the gap that was planned in the column gap.")

    table: Mapping[str, str] = option(
        "model", "--table NAME=VALUE", "If the model is a log, how its table is made: first=N, how many of its "
        "first runs make it, while the others are evidence; initial.NAME=VALUE, where runs begin; end=FORMULA, where "
        "nothing happens any more, such as 'end=status=\"closed\"'; closed=true if there are no other states. plumdp "
        "start writes them. Repeat for more.", {}, parse=partial(values_of, "--table", TABLE))
    remember: str = option(
        "model", "--remember WHAT", "If the model is a log: what of its run each state remembers, as one more "
        "variable: visits of it before, the previous action, the time since it was entered (called since), the step of "
        "the run, or a column that is known when a run begins.", "")
    goal: str = option(
        "model", "--goal FORMULA", "If the model is a log: the states with the label goal, as in "
        'Pmax=? [ F "goal" ].', "")
    cost: str = option(
        "model", "--cost COLUMN", "If the model is a log: what a step costs, the mean of the first runs in each state, "
        'by action, as in R{"cost"}min=? [ C<=12 ].', "")
    reward: str = option("model", "--reward COLUMN", 'The same for a reward, as in R{"reward"}max=? [ C<=12 ].', "")

    column: Mapping[str, str] = option(
        "log", "--column NAME=COLUMN", "What the log calls a column; commas or repeats for more. arm=COLUMN "
        "says whose policy a run follows, and chance=COLUMN with which chance that was drawn.",
        {}, parse=partial(pairs, "--column", comma=BEFORE_NAME), common=True)
    state: Mapping[str, str | list[float]] = option(
        "log", "--state NAME=EXPRESSION", "How a state variable follows from columns of the log: an expression, such "
        "as 'x=floor(lon/0.5)', or the edges of bins, such as 'battery=[0,20,60,100]'; repeat for more.",
        {}, parse=state_maps)
    action: str | dict[str, str] | list[str] | None = option(
        "log", "--action EXPRESSION", 'How the action follows from columns of the log, such as "case when thrust > '
        "0 then 'up' else 'down' end\"; what the log calls actions, '{FULL=full,HALF=half}'; or the actions 0, 1, 2, "
        "'[left,stay,right]'.", parse=action_map)
    form: vocabulary.LogForm | None = option(
        "log", "--form", "Rows with the next state (transitions), one row per state (trajectories), or ready-made "
        "counts. Default: what the columns show.")
    text: Mapping[str, str] = option(
        "log", "--text NAME=VALUE", "How texts are written: encoding=cp1252; decimal=, for numbers such as 4.180,50; "
        "date_format=%d.%m.%Y for dates such as 17.05.2021. Repeat for more.",
        {}, parse=partial(values_of, "--text", TEXT))
    keep_going: bool = option(
        "log", "--keep-going", "Count what fits the model even if some rows do not, and without lines of text files "
        "that have too many or too few values.", False)
    sampling: vocabulary.Sampling | None = option(
        "log", "--sampling", "How the log was sampled. adaptive (default): whoever chose the actions, and whenever the "
        "data ended; trajectories: the number of runs was fixed in advance, all under one policy; independent: the "
        "number of samples per choice was fixed in advance. A file of counts keeps what was stated when it was "
        "counted; you may weaken that, not strengthen it.")
    order: vocabulary.Order | None = option(
        "log", "--order", "What is known of the order of the log. time: its rows are in the order in which they "
        "happened; runs: its episodes are numbered in the order in which they were made, each after the one before had "
        "ended. Then the first data decide how bets are placed, which makes most bounds narrower. Files come in the "
        "order given; those of a folder or a quoted pattern by name, part-2 before part-10.", common=True)
    expected: float | None = option(
        "log", "--expected N", "How many runs (or rows, with --order time) you expected before there were any; with "
        "--order. A wrong guess costs width, never validity.")
    censoring: vocabulary.Censoring | None = option(
        "log", "--censoring", "Needed if most runs of the log end before the outcome of their last action. unrelated: "
        "they were censored, for reasons that have nothing to do with that outcome; independent: nor with anything "
        "else in the run, so that whole runs make a life table (with --expected). Every result repeats it.")
    run_cap: float | None = option(
        "log", "--run-cap AMOUNT", "What whole runs under practice cost or earn in all counts up to this amount, which "
        "was fixed before looking at them; sentences then say so. plumdp start proposes it from the first runs.",
        check=_POSITIVE)
    steps: vocabulary.Steps | None = option(
        "log", "--steps WORD", "What the steps of trajectories show. consecutive: numbers that grow by one in each "
        "row, so that a missing row is a gap; monthly, weekly, daily or every=30d: dates, one in each such period, so "
        "that a period without one is a gap; ordered: only the order of the rows of a run, of which none is missing; "
        "every result repeats it. Default: ordered, unless some numbers grow by one.")
    known: Sequence[str] = option(
        "log", "--known COLUMN", "A column that is known before a run begins, such as a site or a type, with at most 8 "
        "values: the model test looks whether outcomes depend on it. Not one that is known in the end, such as 'ever "
        "failed'. Repeat for more.", ())
    rejected: Path | None = option(
        "log", "--rejected FILE", "Write all rows that do not fit, with the reason, as .csv or .parquet.")

    confidence: float = option(
        "set", "--confidence", "Probability that all statements hold simultaneously, below 1.",
        0.999, check=_PROBABILITY, common=True)
    confidence_set: str | None = option(  # one of ``SETS``, to which others may have been added
        "set", f"--confidence-set [{'|'.join(get_args(vocabulary.Sets))}]", "The kind of set around the data. Default: "
        "likelihood; table, if rows are unknown.")
    model_tolerance: float = option(
        "set", "--model-tolerance", "Largest total-variation error of every row of the model that the bounds "
        "tolerate, such as 0.01.", 0.0)

    verbose: int = option(
        "frame", "--verbose -v", "Print assumptions and methods in full, and progress on standard error; -vv also "
        "prints times.", 0)
# fmt: on


def _kind(value: Any, entry: Parameter) -> Any:
    """Return the type that Typer converts texts to: that of the value, or text if it is parsed later."""
    if get_origin(value) is Sequence or isinstance(entry.default, dict):
        return list[str]
    return str | None if entry.parse is not None else value


OF_FORMAT = {"columns": "column", "states": "state", "actions": "action"}  # fields of ``LogFormat``, and their options
OF_FORMAT |= {name: name for name in ("form", "steps", "censoring", "known")}
_TYPES = get_type_hints(Options)
OPTIONS: Mapping[str, Parameter] = {
    each.name: each.metadata["option"]._replace(kind=_kind(_TYPES[each.name], each.metadata["option"]))
    for each in fields(Options)
}
