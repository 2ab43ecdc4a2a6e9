"""Verifies the folder of a result with the checker, and writes the checker as one file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np

from plumdp.base.errors import DataError, ModelError
from plumdp.result.folder import DATA
from plumdp.verifying.checker import check
from plumdp.verifying.checker.check import Report
from plumdp.verifying.checker.reading import Rejected
from plumdp.verifying.second_look import (
    ModelAt,
    check_chain,
    check_data,
    check_directions,
    has_bets,
    is_all_announced_in_words,
)
from plumdp.verifying.second_trials import can_check_trials, check_trials
from plumdp.verifying.table_second_look import check_table_bets, check_table_chain, check_table_data

_MAIN = "import sys\n\nfrom checker.__main__ import main\n\nsys.exit(main(sys.argv[1:]))\n"


@dataclass(frozen=True)
class SecondLook:
    """The functions that look again at the counts, at the bets and at the chain of a result."""

    data: Callable[[Path], None]
    bets: Callable[[Path], None]
    chain: Callable[[Path, ModelAt], None]


SECOND_LOOKS = {  # by the kind of the witness
    "parameters": SecondLook(
        check_data, check_directions, lambda folder, model_at: check_chain(folder, model_at, np.random.default_rng())
    ),
    "table": SecondLook(
        check_table_data, check_table_bets, lambda folder, model_at: check_table_chain(folder, model_at({}))
    ),
}


def verify(path: str | Path) -> Report:
    """Return which layers of the proof in the folder of a result hold, from its files to its printed sentence.

    The result must have been saved with a witness. Nothing that made the result is used to check it.

    >>> print(verify("no-such-folder"))
    files      BROKEN  no-such-folder is not a folder with a result
    """
    return check.verify(Path(path))


def look_again(path: str | Path, report: Report, model_at: ModelAt | None = None) -> None:
    """Add layers to a report of a result that holds: bets against later data, trials and the chain against the model.

    The first two need the data in the folder of the result, and the last a function that reads the model again.
    """
    folder, looks = Path(path), SECOND_LOOKS[report.kind]
    layers: dict[str, Callable[[], None]] = {}
    if report.broken is None and (folder / DATA).exists():
        layers["data"] = lambda: looks.data(folder)
        if has_bets(folder) and (report.kind == "table" or is_all_announced_in_words(folder)):
            layers["directions"] = lambda: looks.bets(folder)
        elif has_bets(folder):
            report.unchecked.append("the directions of bets (what was announced has no text)")
    if report.broken is None and can_check_trials(folder):
        layers["trials"] = lambda: check_trials(folder)
    if report.broken is None and model_at is not None:
        layers["model"] = lambda: looks.chain(folder, model_at)
    for name, check_layer in layers.items():
        try:
            check_layer()
        except Rejected as error:
            error.layer = name
            report.broken = error
            return
        except (DataError, ModelError, LookupError, TypeError, ValueError, ArithmeticError) as error:
            report.broken = Rejected(f"what is in the folder cannot be compared: {error}", name)
            return
        report.hold(name)


def write_checker(path: str | Path) -> None:
    """Write the checker as one file, which runs without plumdp: ``python verify.pyz RESULT``; it needs python-flint."""
    source = Path(check.__file__).parent
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        files = {f"checker/{file.name}": file.read_text(encoding="utf-8") for file in sorted(source.glob("*.py"))}
        for name, content in {"__main__.py": _MAIN, **files}.items():
            archive.writestr(ZipInfo(name), content)  # without a date: the same source is the same file
