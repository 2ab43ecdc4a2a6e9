"""The ground that every room stands on: errors, words of options, outward rounding, the error budget, kernels, threads.

In: numbers and texts.
Out: numbers that are rounded outward, errors in the words of the interface, compiled loops.
Begin with: ``errors.py`` and ``rounding.py``, where each constant has its proof.
Used by: every other room.
"""
