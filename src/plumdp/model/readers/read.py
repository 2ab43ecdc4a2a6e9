"""The table of readers, which gives the function that reads a model file by the end of the file's name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from plumdp.base.errors import ModelError, require_path
from plumdp.model.expressions.polynomial import Number
from plumdp.model.parametric import ParametricMDP
from plumdp.model.readers.storm import read_prism
from plumdp.model.readers.storm_messages import INTERVALS
from plumdp.model.space import ParameterSpace
from plumdp.model.stored_files import open_stored


class Reader(Protocol):
    """A function that reads a model file, given values of constants and perhaps the space of the parameters."""

    def __call__(
        self, path: str | Path, *, constants: Mapping[str, Number] | None = None, space: ParameterSpace | None = None
    ) -> ParametricMDP:
        """Return the model of a file."""


READERS: Mapping[str, Reader] = {
    ".prism": read_prism,
    ".nm": read_prism,  # PRISM's own endings: MDPs, discrete-time chains and continuous-time chains (refused by name)
    ".pm": read_prism,
    ".sm": read_prism,
    ".jani": read_prism,
}


_OF_INTERVALS = (".umb", ".drn", ".tra")  # without parameters: see exchange/read_intervals.py


def _read_stored(folder: Path, constants: Mapping[str, Number] | None, space: ParameterSpace | None) -> ParametricMDP:
    if constants or space is not None:
        raise ModelError(f"{folder}: constants and space of a stored model are those that it was built with")
    return open_stored(folder)


def read_model(
    path: str | Path, *, constants: Mapping[str, Number] | None = None, space: ParameterSpace | None = None
) -> ParametricMDP:
    """Return the model in a PRISM or JANI file, or in a folder that ``explore_batch`` stored one in.

    Parameters
    ----------
    path
        The file, which ends in ``.prism``, ``.nm``, ``.pm``, ``.sm`` or ``.jani``, or the folder.
    constants
        Values of constants that the file leaves undefined (sizes, for instance), or of parameters that are known.
    space
        The space of the parameters, by default the unit cube. It is always cut to the points at which every affine
        expression is a probability.

    Returns
    -------
    ParametricMDP
        The model.

    Raises
    ------
    ModelError
        If the file is not such a model, or a constant is undefined.
    MissingExtra
        If ``stormpy``, which reads such files, is not installed.

    Examples
    --------
    >>> from plumdp.case_studies import prism_file
    >>> model = read_model(prism_file("betting"), constants={"N": 25})
    >>> model.graph.n_states, model.space.names
    (3625, ('p',))
    """
    require_path("read_model", path)
    file = Path(path)
    if file.is_dir():
        return _read_stored(file, constants, space)
    if not file.is_file():
        raise ModelError(f"{file}: there is no such file")
    reader = READERS.get(file.suffix.lower())
    if file.suffix.lower() in _OF_INTERVALS:
        raise ModelError(f"{file}: this is an explicit model, without parameters to learn; {INTERVALS}")
    if reader is None:
        ending = f"that ends in {file.suffix}" if file.suffix else "without an ending"
        raise ModelError(f"{file}: there is no reader for a file {ending}; the endings are {', '.join(READERS)}")
    return reader(file, constants=constants, space=space)
