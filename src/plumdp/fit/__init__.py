"""Tests whether one point of the parameter space explains all rows, and explanations if none does."""
