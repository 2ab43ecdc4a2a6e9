"""The rows of a game as the compiled loops take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import FloatArray

Unsigned = npt.NDArray[np.uint32]


class Rows(NamedTuple):
    """The rows, which are choices, where row ``c`` has the transitions ``first[c]`` up to ``first[c + 1]``.

    Transition ``t`` leads to the position ``successor[t]`` with a probability between ``lower[expression[t]]`` and
    ``upper[expression[t]]``. Agent and nature are +1 if they want large values, -1 if they want small ones.
    """

    first_choice: Unsigned  # (n_positions + 1)
    first: Unsigned  # (n_rows + 1)
    successor: Unsigned  # (n_transitions)
    expression: Unsigned  # (n_transitions)
    lower: FloatArray  # (n_expressions)
    upper: FloatArray  # (n_expressions)
    reward: FloatArray  # (n_rows)
    discount: float
    agent: float
    nature: float
