"""What is shown on standard error of a terminal while a command works; nothing if it is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float, float], None]]:
    """Yield a function that updates a progress bar on standard error, which is only shown on a terminal."""
    console = Console(stderr=True)
    with Progress(
        TextColumn(what),
        BarColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done, total: bar.update(task, completed=done / total if total else 1.0)
