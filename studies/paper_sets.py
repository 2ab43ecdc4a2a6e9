"""Makes the sets of the paper that ``plumdp`` leaves to studies known to ``learn``: ``"l1"`` and ``"ellipsoid"``.

Their coverage is proved, unlike that of ``published_sets``, but likelihoods are narrower nearly everywhere.
"""

from __future__ import annotations

from typing import Any, cast

from plumdp.learning.methods import SETS, SetKind
from studies.l1_balls import l1_evidence
from studies.least_squares import ellipsoid_evidence

cast("dict[Any, SetKind]", SETS).update({"l1": SetKind(l1_evidence), "ellipsoid": SetKind(ellipsoid_evidence)})
