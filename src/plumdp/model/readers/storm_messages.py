"""Storm's errors about model files in words of our own, with the line, the cause where it is plain, and a remedy."""

from __future__ import annotations

import re

from plumdp.model.language.predicate import did_you_mean

INTERVALS = "read_interval_model reads an interval model, and plumdp solve solves it"
OVERLAP = "several commands of a dtmc are possible in one state; make their guards exclusive, or use an mdp"
OWN_PARAMETER = (
    "write its value as a number or, if it depends on parameters, "
    "give the whole a parameter of its own (const double r;) and write r"
)
WIDEN = "widen the range, or let a guard prevent it"

_KNOWN_TEXTS = {
    "Inconsistent action names for choice origin": OVERLAP,
    "contains interval updates": f"its probabilities are intervals, so there are no parameters to learn; {INTERVALS}",
    "does not have a single initial state": (
        "no state is initial: correct the values after init, or the condition between init and endinit, "
        "so that all variables are in their ranges"
    ),
    "Lower bound must not be above upper bound": "the range of a variable has its lower bound above its upper bound",
    "custom system compositions": "system … endsystem is not read; modules synchronise on the actions that they share",
}
_EXPECTED = {
    "<model type>": "mdp or dtmc",
    "<assignment list>": "an assignment such as (x'=1)",
    "<update list>": "a distribution such as 0.5 : (x'=1) + 0.5 : (x'=2)",
    "<integer expression>": "a whole number without parameters",
    "<boolean expression>": "a condition",
    "<numerical expression>": "a number",
    "<fresh label name>": "a new name of letters a to z, digits and _",
    "<eoi>": "the end of the file or a keyword such as module",
}
_FUNCTIONS = "min max floor ceil round pow mod log func"
_KEYWORDS = (
    "mdp dtmc module endmodule const int double bool formula label global init endinit rewards endrewards true false "
    f"system endsystem invariant endinvariant clock {_FUNCTIONS}"
)
_DECLARATIONS = (
    r"\bconst(?:\s+(?:int|double|bool))?\s+(\w+)",
    r"\b(?:formula|module)\s+(\w+)",
    r"(\w+)\s*:\s*(?:\[|bool\b|int\b|clock\b)",
)


def storm_message(message: str, text: str) -> str:
    """Return Storm's message about a file in our words, as far as it is understood."""
    if parsing := re.search(r"Parsing error at (\d+):(\d+):\s+expecting (.*), here:", message):
        return _syntax(text, int(parsing[1]), int(parsing[2]), parsing[3])
    if negative := re.search(r"negative probabilities in '(.*)' are", message):
        cause = f"the probability {negative[1]} is negative, at least for some values of the parameters"
        return f"{cause}; correct it, or give it a parameter of its own"
    if "std::exception" in message:  # an assignment to a name that is not declared, for which Storm gives no line
        return _first_undeclared(text) or "Storm cannot read this file, and does not say why"
    for part, words in _KNOWN_TEXTS.items():
        if part in message:
            return words
    return re.sub(r"^(\w+Exception: )?(Error (?:in|for) .*?(line \d+)\)?: )?", _place_first, message).strip()


def _place_first(match: re.Match[str]) -> str:
    return f"{match[3]}: " if match[3] else ""


def command_lines(text: str) -> dict[tuple[str, int], int]:
    """Return the line in which each command of a PRISM file begins, by its module and its number there."""
    code = _without_comments(text)
    lines = {}
    for module in re.finditer(r"\bmodule\s+(\w+)(.*?)\bendmodule\b", code, re.DOTALL):
        for number, command in enumerate(re.finditer(r"\[\w*\](?=[^;]*->)", module[2])):
            lines[module[1], number] = code.count("\n", 0, module.start(2) + command.start()) + 1
    return lines


def reward_lines(text: str) -> list[int]:
    """Return the line in which each block of rewards of a PRISM file begins."""
    code = _without_comments(text)
    return [code.count("\n", 0, block.start()) + 1 for block in re.finditer(r'(?<!")\brewards\b', code)]


def _syntax(text: str, line: int, column: int, expected: str) -> str:
    """Return the place at which a file breaks the rules of the language, with the cause if one is plain."""
    code = _without_comments(text)
    offset = sum(map(len, code.splitlines(keepends=True)[: line - 1])) + column - 1
    offset = len(code) - len(code[offset:].lstrip())  # Storm names the end of the word before
    first = code.rfind("\n", 0, offset) + 1
    shown = text[first:].partition("\n")[0]
    cause = _cause(code, first, offset) or f"{_EXPECTED.get(expected, expected)} is expected here"
    if expected == "<model type>" and re.match(r"(mdp|dtmc)\b", code):
        cause = "there is a byte order mark before this; save the file as UTF-8 without one"
    place = f"line {code.count(chr(10), 0, first) + 1}, column {offset - first + 1}"
    return f"{place}: {cause}\n  {shown}\n  {' ' * (offset - first)}^"


def _cause(code: str, first: int, offset: int) -> str | None:
    """Return the usual mistake, if there is one, in a line that begins there and cannot be parsed."""
    line = code[first:].partition("\n")[0]
    if re.match(r"\s*\w+\s*:\s*(double|real|float)\b", line):
        return "a state variable is a bool, an int, or a range such as [0..9]"
    if undeclared := _undeclared(code, line):
        return undeclared
    word = re.match(r"[A-Za-z_]\w*(?=\s*(:|\n))", code[offset:])
    if word and _declared(code).count(word[0]) > 1:
        return f"{word[0]} is declared twice; rename one of them"
    if line.lstrip().startswith("[") and not re.search(r"(;|\bmodule\s+\w+)\s*$", code[:first]):
        return "what comes before does not end in ;"
    return None


def _first_undeclared(text: str) -> str | None:
    code = _without_comments(text)
    for number, line in enumerate(code.splitlines()):
        if undeclared := _undeclared(code, line):
            return f"line {number + 1}: {undeclared}\n  {line}"
    return None


def _undeclared(code: str, line: str) -> str | None:
    """Return which name of a line is neither declared nor part of the language, in a sentence."""
    names = [*_KEYWORDS.split(), *_declared(code)]
    line = re.sub(r'"[^"]*"|\[\w*\]|\b(module|endmodule)\b.*', "", line)
    for name, after in re.findall(r"(?<![\w.])([A-Za-z_]\w*)(\s*[('])?", line):
        if name in names:
            continue
        if after.endswith("("):
            return f"there is no function {name} in the PRISM language; {OWN_PARAMETER}"
        example = f"{name} : [0..9] init 0;" if after else f"const double {name};"
        near = did_you_mean(name, [other for other in names if len(other) > 5 or other not in _KEYWORDS.split()])
        return f"{name} is not declared{near or f'; declare it, as in {example}'}"
    return None


def _declared(code: str) -> list[str]:
    """Return the names that a PRISM file declares, each as often as it does."""
    renamed = re.findall(r"\bmodule\s+\w+\s*=\s*\w+\s*\[(.*?)\]", code, re.DOTALL)
    names = [name for declaration in _DECLARATIONS for name in re.findall(declaration, code)]
    return names + [name for pairs in renamed for name in re.findall(r"=\s*(\w+)", pairs) if name not in names]


def _without_comments(text: str) -> str:
    """Return a PRISM text with blanks instead of comments, so that every place stays the same."""
    return re.sub(r"//.*", lambda comment: " " * len(comment[0]), text)
