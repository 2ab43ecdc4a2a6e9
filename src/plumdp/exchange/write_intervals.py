"""The table of writers of interval models: which function writes a file, by the end of the file's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from plumdp.base.errors import ModelError
from plumdp.exchange.write_drn import write_drn
from plumdp.exchange.write_tra import write_tra
from plumdp.exchange.write_umb import write_umb
from plumdp.relaxation.interval_model import IntervalModel, require_interval_model
from plumdp.relaxation.intervals import IntervalMDP


def _write_umb(model: IntervalModel, path: Path) -> None:
    write_umb(model.mdp, path, labels=model.labels, rewards=model.rewards)


INTERVAL_WRITERS: Mapping[str, Callable[[IntervalModel, Path], None]] = {
    ".umb": _write_umb,
    ".tra": write_tra,
    ".drn": write_drn,
}


def write_interval_model(model: IntervalModel | IntervalMDP, path: str | Path) -> None:
    """Write an interval model for Storm or PRISM, in the format that the file's name ends in; bounds stay bit by bit.

    ``.umb`` is a UMB archive, ``.drn`` Storm's text, and ``.tra`` PRISM's text, with ``.lab``, ``.sta``, ``.srew`` and
    ``.trew`` files of the same name beside it. Other tools know neither regions nor known supports: what they are
    written as, intervals that may be 0, allows nature more.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp.exchange import read_interval_model
    >>> mdp = IntervalMDP.from_arrays([0, 1, 2], [0, 2, 3], [0, 1, 1], [0.1, 0.5, 1], [0.5, 0.9, 1])
    >>> with TemporaryDirectory() as folder:
    ...     write_interval_model(mdp, Path(folder) / "model.drn")
    ...     read_interval_model(Path(folder) / "model.drn").mdp.upper
    array([0.5, 0.9, 1. ])
    """
    model = require_interval_model("write_interval_model", model)
    unknown = [name for name, reward in model.rewards.items() if reward.learned is not None]
    if unknown:
        raise ModelError(f"rewards {', '.join(map(repr, unknown))} depend on parameters, which no such file can say")
    writer_for(path)(model, Path(path))


def writer_for(path: str | Path) -> Callable[[IntervalModel, Path], None]:
    """Return the function that writes a file with this name."""
    writer = INTERVAL_WRITERS.get(Path(path).suffix.lower())
    if writer is None:
        endings = ", ".join(INTERVAL_WRITERS)
        raise ModelError(f"{path}: interval models are written to files that end in {endings}")
    return writer
