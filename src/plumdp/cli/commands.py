"""The sub-commands: where each is defined, the arguments and options that it takes, and what its help says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Command(NamedTuple):
    """A sub-command in the table; its function has the same name."""

    module: str
    arguments: Mapping[str, str]  # names in help by the names in ``OPTIONS``; in brackets if they may be left out
    takes: str  # groups and options of ``OPTIONS``; with ! those that must be given
    summary: str
    example: str  # lines, at the end of its help
    more: str = ""
    words: Mapping[str, str] = {}  # where they differ from those of ``OPTIONS``
    shown: str = ""  # options that -h shows, though those of their group are in --help-all alone


_MODEL, _BOTH, _MAYBE = (
    {"model": "MODEL"},
    {"model": "MODEL", "data": "DATA..."},
    {"model": "MODEL", "data": "[DATA...]"},
)
_AT = "The true parameters; a case study knows its own."
_COUNTED = "A Parquet file for the counts. Without it, they are shown with all data they are of."

COMMANDS = {
    "start": Command(
        "data", {"model": "FILE"},
        "column state action remember known reward cost goal table against unit margin text order "
        "confidence output force",
        "Look at the rows of a log, say what its columns seem to be, and make a table of its first runs.",
        "plumdp start log.csv\nplumdp start log.csv --goal 'status=\"closed\"' --against practice -o result",
        "Writes plumdp.toml, after which the log is a model: plumdp certify log.csv -p … . With --goal, --cost or "
        "--reward, it is certified at once; with --output, report.html is written too. The first quarter of the runs "
        "makes the table, the others are evidence.",
        {
            "model": "A log: CSV, Parquet, JSON lines or XES.",
            "state": "A column that is part of the state, or NAME=EXPRESSION; repeat for more. Default: those that "
            "change in a run and say something about what comes next.",
            "action": "The column of actions, or an expression.",
            "cost": "What a step costs, a column or an expression such as 'work + parts': the least is certified.",
            "reward": "What a step earns, in the same way: the largest reward is certified.",
            "goal": "The states to reach, such as 'status=\"closed\"': with which probability is certified at once.",
            "column": "run=COLUMN names the run of a row (a case, a patient, a machine), step=COLUMN puts its rows in "
            "order; commas or repeats for more.",
            "table": "first=N: how many runs make the table, if you decided that before you looked (default: a "
            "quarter); end=FORMULA: where nothing happens any more.",
            "against": "Another policy to compare with, such as practice: what the data do.",
            "output": "A folder for the result and its report.",
        },
        shown="state action cost reward goal",
    ),
    "info": Command(
        "check", _MODEL, "model json column state action text keep_going",
        "Show a model's sizes, parameters and their space, expressions, structure, properties and issues.",
        "plumdp info betting:25",
    ),
    "simulate": Command(
        "data", _MODEL, "at runs max_steps policy seed form output! force json model",
        "Run a model at a point under uniform choices or a policy, and write the runs or their counts.",
        "plumdp simulate betting:25 -n 10000 -o runs.parquet",
        words={
            "at": _AT, "runs": "How many runs; default: 1000.",
            "policy": "The policy of the runs, as plumdp certify takes it. Default: uniform choices.",
            "form": "Rows with the next state (transitions, the default), one row per state (trajectories), or counts.",
            "output": "A file that ends in .parquet, .csv, .json or .jsonl; .parquet for counts.",
        },
    ),
    "count": Command(
        "data", _MAYBE, "carry sql output force json model log",
        "Count the transitions of logs of any size, and report what became of every row.",
        "plumdp count betting:25 runs.parquet -o counts.parquet\n"
        "plumdp count betting:25 counts.parquet tuesday.parquet -o counts.parquet --force\n"
        "plumdp count betting:25 tuesday.parquet --carry state.parquet\n"
        "plumdp count betting:25 runs --sql snowflake",
        "Files of counts are added, in the order in which their data were collected. Ends with 4 if there are no "
        "steps.",
        {"output": _COUNTED},
    ),
    "certify": Command(
        "certify", _MAYBE, "property question result model log set",
        "Find a policy and bounds on its value that hold with the given confidence.",
        "plumdp certify betting:25 runs.parquet -o result\n"
        "plumdp certify model.prism log.csv -p 'P>=0.9 [ F \"goal\" ]'\n"
        "plumdp certify model.prism log.csv --against practice\n"
        "plumdp certify pump.py pumps.parquet --by pump -o results.parquet",
        "A property with a threshold, such as P>=0.9 [ F \"goal\" ], is answered with yes, no or inconclusive. "
        "Ends with 0 if certified or yes, 1 if no, 3 if the "
        "data reject the model, 4 if nothing is certified or inconclusive. With --against, yes means that the "
        "policy is better than the other, or not worse by more than --margin, and no that it is worse.",
        {
            "since": "Certify what holds if nothing has changed since a run or row, such as 'run 545', which you may "
            "choose by looking, as after data that reject the model because it changed. The log needs an --order.",
        },
    ),
    "check-model": Command(
        "check", {"model": "MODEL", "data": "DATA..."},
        "property json model log confidence",
        "Test whether data reject a model, and say what is wrong.",
        "plumdp check-model betting:25 runs.parquet",
        "Ends with 0, and with 3 if the data reject the model.",
        {"property": "What the model is for: tests are sharp there. Repeat for more."},
    ),
    "advise": Command(
        "check", _MAYBE, "property runs width max_steps output force json model log confidence confidence_set",
        "Say where more data would help most, how wide the bounds will be, and how to sample.",
        "plumdp advise betting:25 runs.parquet --runs 5000 -o policy.csv",
        "Ends with 0, or with 3 if the data reject the model.",
        {
            "runs": "How many more runs are planned; by default as many as there are.",
            "width": "The width of the bounds that you want; by default half of the present one.",
            "max_steps": "Number of steps after which a new run ends; by default as in the data.",
            "output": "A CSV file for the sampling policy: a probability for each action.",
        },
    ),
    "report": Command(
        "report", {"model": "RESULT", "data": "[DATA...]"},
        "title system output force json property relaxation model log set",
        "Write a self-contained HTML report about a result, or about a model and data.",
        "plumdp report result --title 'Flight plan 7'\nplumdp report betting:25 runs.parquet -o report.html",
        "A result is a folder that plumdp certify -o wrote; each of several results gets its own report. For a model "
        "and data, the claim is printed as well, and the exit code is that of plumdp certify.",
        {
            "model": "The folder of a result; or a model, if data come after it.",
            "output": "Default: report.html, in the folder of the result or in this one.",
        },
    ),
    "solve": Command(
        "solve", _MODEL, "property at width output force json constant",
        "Solve an interval model: bounds on the value that are proved, and the best policy.",
        "plumdp solve robot.drn -p 'Pmaxmin=? [ F \"goal\" ]' -o policy.csv\nplumdp solve robot.prism -o robot.umb",
        "In Pmaxmin the first word is the policy's, the second nature's, as in PRISM.",
        {
            "model": "An interval model: .umb, .drn, or a PRISM file with intervals such as [0.5,0.8]. With "
            "--at, any other model or case study.",
            "width": "How close the bounds must be; default: 1e-6.",
            "output": "A file: the policy (.csv, .json, .txt, .py, .rules) or the model (.umb).",
        },
    ),
    "export": Command(
        "saved", {"result": "RESULT"}, "output! force",
        "Write the policy of a result for other tools.",
        "plumdp export result -o policy.py",
        "The policy is that of the certificate, in every state. No data are needed.",
        {"output": "A file for the policy: .csv, .txt (PRISM), .py (a function) or .rules (text)."},
    ),
    "watch": Command(
        "watch", {"model": "MODEL", "data": "FOLDER..."},
        "property against quiet checkpoint at acknowledge censoring since range output json "
        "model column state action known form text keep_going steps confidence",
        "Give an alarm when a process changes, part by part, and say what holds now.",
        "plumdp watch press.py:model days --checkpoint press.watch\n"
        "plumdp watch press.py:model days --against result --checkpoint press.watch -o press.html\n"
        "plumdp watch press.py:model days --checkpoint press.watch --acknowledge\n"
        "plumdp watch press.py:model presses --checkpoint states",
        "Each file is a part: a day, a week, or a file of counts. If FOLDER has folders instead, each is a unit, and "
        "those that have changed are named, such that on average at most 5 % of the names are wrong. Ends with 0 if "
        "all is quiet, 1 after an alarm until it is acknowledged, 3 if rows show what the model says cannot happen, "
        "and 4 if the watch stopped, as a part is missing or came late.",
        {
            "data": "Folders, patterns or files, one file for each part, in the order of their names.",
            "property": "What certificates about now are to answer. Default: the question of the certificate.",
            "checkpoint": "A file that keeps what is known so far, so that no part is read twice; of units, a folder "
            "with a file for each.",
            "at": "Values of all parameters that rows are compared with.",
            "against": "The result whose value and parameters are watched; certify -o wrote it, from earlier data.",
            "censoring": "Go on where parts are missing, and where runs end before an outcome. unrelated: that has "
            "nothing to do with these outcomes; every result repeats it.",
            "output": "The report on the result, .html, which says whether it was withdrawn, when and why; or a file "
            "for the numbers, in the text format of OpenMetrics.",
        },
    ),
    "verify": Command(
        "saved", {"result": "[RESULT]", "model": "[MODEL]", "data": "[DATA...]"}, "output force json model log",
        "Check a result from its counts to its sentence, without the code that made it.",
        "plumdp certify betting:25 runs.parquet -o result --witness\nplumdp verify result\n"
        "plumdp verify result betting:25 runs.parquet\nplumdp verify -o verify.pyz",
        "If the folder has the data, bets are compared with what the data before them lead to. With MODEL, the result "
        "is compared with your model, and with DATA also with your data, which are counted again; these use plumdp. "
        "Prints a line for each layer, and what is trusted. Ends with 0 if all layers hold, with 1 at the first that "
        "does not, and with 4 if something could not be compared.",
        {
            "result": "The folder of a result that certify -o --witness wrote.",
            "model": "Your model, as certify takes it: space, rows, chain and policy must be its own.",
            "data": "Your data, as certify takes them, with the options about them.",
            "output": "Write the checker as one file that runs without plumdp.",
        },
    ),
    "plot": Command(
        "report", {"kind": "KIND"} | _MAYBE, "output! at force json property model log set",
        "Draw bounds of relaxations, the region, expressions, the policy, advice, residuals or many units.",
        "plumdp plot ladder betting:25 runs.parquet -o ladder.png\n"
        "plumdp plot policy result -o policy.svg\n"
        "plumdp plot units results.parquet -o units.png",
        "MODEL may also be the folder of a saved result. Kinds: ladder (what each relaxation certifies), region (the "
        "parameters that explain the data), expressions (each unknown probability), policy (over two state "
        "variables), advice (where more data help), residuals (where data and model differ), units (of "
        "the table that certify --by wrote, with the value that at least 80 % of such units reach, at a confidence of "
        "95 %). Ends with 0, or with 3 if the data reject the model.",
        {"output": "The picture: .png, .svg or .pdf.", "at": "Of a region: the true parameters."},
    ),
    "warmup": Command(
        "warmup", {}, "",
        "Compile the kernels now, so that no later run has to: for images and CI.",
        "plumdp warmup",
    ),
}  # fmt: skip

REMOVED = {  # what to type instead of commands that there were
    "audit": "plumdp certify MODEL RUNS... --policy NAME --prespecified --column arm=COLUMN (bets on whole runs)",
    "certify-many": "plumdp certify MODEL DATA... -o FOLDER, once for each",
    "compare": "plumdp certify MODEL DATA... --relaxation all",
    "compare-models": "plumdp certify MODEL DATA... --confidence NUMBER, once for each, with the error divided",
    "counts-sql": "plumdp count MODEL TABLE --sql DIALECT",
    "improve": "plumdp certify MODEL DATA... --against practice",
    "online": "plumdp.learn_online(model, environment, objective) in Python",
    "policy": "plumdp certify MODEL DATA... --policy FILE",
}

REMOVED_OPTIONS = {  # the same for options
    "--author": "plumdp.write_report(…, author=…) in Python",
    "--axes": "plumdp.draw('policy', certificate, x=…, y=…) in Python",
    "--certificate": "--against RESULT",
    "--closed": "--table closed=true",
    "--config": "plumdp.toml in the folder where the command runs",
    "--date-format": "--text date_format=FORMAT",
    "--decimal": "--text decimal=,",
    "--encoding": "--text encoding=NAME",
    "--end": "--table end=FORMULA",
    "--first": "--table first=N",
    "--gaps": "--censoring unrelated",
    "--history": "check-model, which tests memory if the log has runs and steps",
    "--initial": "--table initial.NAME=VALUE",
    "--metrics": "-o FILE",
    "--nature": "Pmaxmin or Pmaxmax in the property, whose second word is nature's",
    "--no-memory": "plumdp.conclude(…, memory=False) in Python",
    "--plan": "--margin DEVIATION",
    "--run": "--column episode=COLUMN",
    "--step": "--column step=COLUMN",
    "--tie": "check-model, for memory; no other ties are tested",
    "--threads": "PLUMDP_THREADS=N before the command",
    "--values": "plumdp.stages.solve or plumdp.stages.evaluate in Python, which bound the value of each state",
    "--window": "--since 'last N'",
}
