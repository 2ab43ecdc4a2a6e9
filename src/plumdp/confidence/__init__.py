"""Confidence sets of probabilities and parameters, one file for each kind.

In: a model, its counts, and a share of the error.
Out: ``Evidence``: constraints that hold jointly, and what they rest on.
Begin with: ``sets.py``; the default is ``likelihood.py``, with bets in ``bets.py`` and ``staged_bets.py``.
Used by: region, fit, relaxation, tables, learning, certifying, verifying, explaining, watching.
"""
