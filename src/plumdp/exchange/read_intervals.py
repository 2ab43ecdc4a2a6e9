"""The table of readers of interval models: which function reads a file, by the end of the file's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from plumdp.base.errors import ModelError
from plumdp.exchange.read_drn import read_drn
from plumdp.exchange.read_tra import read_tra
from plumdp.exchange.read_umb import read_prism_model, read_umb_model
from plumdp.model.expressions.polynomial import Number
from plumdp.relaxation.interval_model import IntervalModel as IntervalModel

INTERVAL_READERS: Mapping[str, Callable[[Path], IntervalModel]] = {
    ".umb": read_umb_model,
    ".tra": read_tra,
    ".drn": read_drn,
}
LANGUAGES = (".prism", ".nm", ".pm", ".sm")  # read by Storm, with constants


def read_interval_model(path: str | Path, *, constants: Mapping[str, Number] | None = None) -> IntervalModel:
    """Return the interval MDP of a file with its labels and rewards, read by what its name ends in.

    Parameters
    ----------
    path
        ``.umb`` (compressed or not), ``.tra`` (with ``.lab``, ``.sta``, ``.srew`` and ``.trew`` beside it), ``.drn``,
        or a PRISM file (``.prism``, ``.nm``, ``.pm``) with intervals such as ``[0.5,0.8] : (x'=1)``. Probabilities
        that are plain numbers are intervals of width 0.
    constants
        Values of constants that a PRISM file leaves undefined.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "coin.tra"
    ...     _ = file.write_text("2 2 3\\n0 0 0 [0.4,0.6] flip\\n0 0 1 [0.4,0.6] flip\\n1 0 1 1\\n")
    ...     model = read_interval_model(file)
    >>> model.graph.n_states, model.graph.action_names
    (2, ('flip', ''))
    """
    file = Path(path)
    if not file.is_file():
        raise ModelError(f"{file}: there is no such file")
    ending = file.suffix.lower()
    if ending in LANGUAGES:
        return read_prism_model(file, constants=constants)
    reader = INTERVAL_READERS.get(ending)
    if reader is None:
        endings = ", ".join((*INTERVAL_READERS, *LANGUAGES))
        shown = f"that ends in {file.suffix}" if file.suffix else "without an ending"
        raise ModelError(f"{file}: there is no reader of interval models for a file {shown}; the endings are {endings}")
    if constants:
        raise ModelError(f"{file}: constants are for PRISM files; a file that ends in {ending} has none")
    return reader(file)
