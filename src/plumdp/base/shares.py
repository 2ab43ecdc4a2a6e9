"""How the error of a certificate is divided, before any data are seen: what is said is wrong with at most all of it.

A confidence set gets what is left: 92.5 %. For likelihood sets these are 80 % for half-spaces across what is asked,
10 % for the likelihood and 2.5 % for intervals (see ``confidence.likelihood``).
"""

from __future__ import annotations

FALLBACK = 0.05  # for bounds that rest on the graph alone, and for tests of the numbers that the model fixes
FIT = 0.025  # for tests whether one point explains all rows
CONFIDENCE_SET = 1 - FALLBACK - FIT
