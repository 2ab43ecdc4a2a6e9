"""Tests whether one point of the parameter space explains all rows, and explanations if none does.

In: a model and its counts.
Out: one p-value that is valid at any time, and what may be wrong, in words.
Begin with: ``model_fit.py``; ``diagnosis.py`` explains.
Used by: tables, learning, certifying, explaining, starting, watching, plots.
"""
