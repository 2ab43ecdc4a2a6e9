"""Tests whether one point of the parameter space explains all rows, and what may be wrong if none does."""
