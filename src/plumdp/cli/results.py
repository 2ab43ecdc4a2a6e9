"""Prints certificates and answers: sentences, tables that become lines on narrow screens, and JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from plumdp.base.edge import controlled
from plumdp.base.errors import visible
from plumdp.base.vocabulary import EXIT_CODES, REJECTIONS, VERDICT_CODES, Standing, Status
from plumdp.cli.errors import command_line, in_command_line_words
from plumdp.result.show import Page, as_text, shown

if TYPE_CHECKING:
    from plumdp.certifying.constraints import Constrained
    from plumdp.certifying.difference import Difference
    from plumdp.certifying.improvement import Improvement
    from plumdp.certifying.net_benefit import NetBenefit
    from plumdp.certifying.thresholds import Decision
    from plumdp.explaining.predicted_width import DecidingRuns
    from plumdp.result.certificate import Certificate


_NO_BREAK = "\ue000"  # a blank at which no line ends, until it is written: Rich ends lines at no-break spaces


class _Trimmed:
    """Writes a stream without blanks at the ends of lines, which tables are padded with."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(re.sub(r" +(?=\n)", "", text).replace(_NO_BREAK, " "))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def standard_output() -> Console:
    """Return a console on standard output, on which numbers have no colours."""
    return Console(file=cast("TextIO", _Trimmed(controlled(sys.stdout))), highlight=False)


def prose(text: str, style: str = "") -> Text:
    """Return a text for standard output, with control characters as escapes; no line begins with a per cent sign."""
    return Text(visible(text).replace(" %", f"{_NO_BREAK}%"), style=style)


_STANDING_CODES = {Standing.WORSE: 1, Standing.INCONCLUSIVE: 4}
_WORST_FIRST = (3, 1, 4, 0)


@dataclass(frozen=True)
class Result:
    """A certificate, the answer that it gives if a threshold was asked, and the constants of its model."""

    certificate: Certificate
    answer: Decision | None = None
    constants: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """The exit code of this result alone."""
        if self.answer is None or self.certificate.status in REJECTIONS:
            return EXIT_CODES[self.certificate.status]
        return VERDICT_CODES[self.answer.verdict]

    @property
    def words(self) -> str:
        """The status, after the verdict if there is one."""
        status = str(self.certificate.status)
        return status if self.answer is None else f"{self.answer.verdict} ({status})"

    @property
    def saved(self) -> Certificate:
        """The certificate with the answer, as folders and reports keep it."""
        return self.certificate if self.answer is None else self.answer.answered

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        content = self.certificate.to_dict() if self.answer is None else self.answer.to_dict()
        return content | ({"constants": dict(self.constants)} if self.constants else {})


def exit_code(results: Sequence[Result]) -> int:
    """Return the exit code of several results: 3 if the data reject a model, 1 if one is no, else the weakest."""
    return worst_code({result.exit_code for result in results})


def code_of_difference(difference: Difference) -> int:
    """Return the exit code of a comparison: 0 if the first policy is better or not worse by more than the margin."""
    if not difference.is_claim:
        return EXIT_CODES[Status.REJECTED]
    if difference.is_same and not difference.margin:  # which is known, and not better
        return 1
    return min(_STANDING_CODES.get(each, 0) for each in difference.verdicts)


def worst_code(codes: set[int]) -> int:
    """Return the exit code that says most of several."""
    return next(code for code in _WORST_FIRST if code in codes)


def print_json(contents: list[dict[str, Any]], *, one: bool = False) -> None:
    """Print objects as a list, or one by itself."""
    print(json.dumps(contents[0] if one else contents, indent=2, ensure_ascii=False))


def with_command(certificate: Certificate) -> Certificate:
    """Return a certificate that says by which command it was made, in the words of the command line."""
    typed, narrower = command_line(), filter(None, [in_command_line_words(*certificate.how.narrower)])
    certificate = replace(certificate, how=replace(certificate.how, narrower=tuple(narrower)))
    if not typed:
        return certificate
    provenance = {**certificate.rests_on.provenance, "command": typed}
    return replace(certificate, rests_on=replace(certificate.rests_on, provenance=provenance))


def print_decisions(
    decisions: Sequence[Difference | Improvement | Constrained | NetBenefit],
    more: Sequence[DecidingRuns | None],
    *,
    as_json: bool,
    in_full: bool = False,
) -> None:
    """Print what is known of the better of two policies, each with the number of runs that would tell more."""
    pairs = list(zip(decisions, more, strict=True))
    if as_json:
        contents = [
            {**each.to_dict(), "runs_to_tell": None if runs is None else runs.to_dict()} for each, runs in pairs
        ]
        print_json(contents, one=len(contents) == 1)
        return
    console = standard_output()
    for each, runs in pairs:
        for line in (*as_text(each, in_full=in_full).split("\n"), *([] if runs is None else [runs.sentence])):
            console.print(hanging(line))


def hanging(line: str) -> Text:
    """Return a line whose rest, if it is longer than the screen, is indented as far as what is after its label."""
    indent = 18 if line.startswith("  ") and line[16:18] == "  " else 2 * (len(line) - len(line.lstrip(" ")))
    width = standard_output().width
    return Text(fill(prose(line).plain, width, subsequent_indent=indent * " ", break_on_hyphens=False))


def print_results(results: Sequence[Result], *, in_full: bool = False) -> None:
    """Print each result; those of a range in a table."""
    console = standard_output()
    if len({tuple(result.constants.items()) for result in results}) > 1:
        _print_range(console, results, in_full=in_full)
        return
    for number, result in enumerate(results):
        if number:
            console.print()
        certificate = result.certificate
        style = "bold" if certificate.status == Status.CERTIFIED else "yellow"
        style = "bold red" if certificate.status in REJECTIONS else style
        said = certificate.headline if result.answer is None else result.answer.headline
        bracket = [] if result.answer is None else [("bracket", certificate.claim.bracket)]
        console.print(prose(said, style=style))
        console.print(grid([*bracket, *shown(certificate.page(), in_full=in_full)]))


def _print_range(console: Console, results: Sequence[Result], *, in_full: bool) -> None:
    from plumdp.result.certificate import premises_of
    from plumdp.result.printing import percent

    for text in dict.fromkeys(result.certificate.claim.objective for result in results):
        of_text = [result for result in results if result.certificate.claim.objective == text]
        names = list(of_text[0].constants)
        rows = [
            (*result.constants.values(), *result.certificate.claim.printed_bounds, result.words) for result in of_text
        ]
        print_table(console, text, (*names, "lower", "upper", "status"), rows)
    share = percent(results[0].certificate.confidence)
    console.print(prose(f"Each row by itself with confidence {share}."))
    facts = [fact for fact in premises_of(each.certificate for each in results) if fact[0] in ("data", "assuming")]
    console.print(grid(shown(Page("", facts=facts), in_full=in_full)))


def print_table(console: Console, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, or on a narrow screen each row as lines, so that nothing is cut."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    console.print(prose(title, style="bold"))
    if console.width < sum(widths) + 3 * len(widths) + 1:
        for row in rows:
            console.print(prose(f"{header[0]} {row[0]}"))
            rest = ", ".join(f"{name} {cell}" for name, cell in list(zip(header, row, strict=True))[1:])
            console.print(Padding(prose(rest), (0, 0, 0, 2)))
        return
    table = Table()
    for name, cells in zip(header, zip(*rows, strict=True), strict=True):
        is_number = all(cell[:1].isdigit() or cell[:1] in "-i" for cell in cells)
        table.add_column(prose(name), justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(prose, row))
    console.print(table)


def print_comparison(
    certificates: Sequence[Certificate], constants: Mapping[str, str], *, in_full: bool = False
) -> None:
    """Print what each relaxation certifies, and what all of them rest on."""
    console = standard_output()
    rows = [
        (each.how.relaxation, *each.claim.printed_bounds, f"{each.how.stage_seconds:.2f}", str(each.status))
        for each in certificates
    ]
    title = ", ".join([certificates[0].claim.objective, *(f"{name}={value}" for name, value in constants.items())])
    print_table(console, title, ("relaxation", "lower", "upper", "seconds", "status"), rows)
    facts = shown(certificates[0].page(), in_full=in_full)
    console.print(grid([fact for fact in facts if fact[0] not in ("query", "relaxation", "estimate", "width")]))


def grid(facts: Sequence[tuple[str, str]]) -> Table:
    """Return labels and texts as two columns."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for label, text in facts:
        table.add_row(prose(label, style="bold"), prose(text))
    return table
