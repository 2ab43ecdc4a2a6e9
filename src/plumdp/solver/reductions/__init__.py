"""Reductions, which turn problems into simpler ones, each with the inverse for its solution."""
