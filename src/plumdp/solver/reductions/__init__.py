"""Reductions: problems turned into simpler ones, each with the inverse for its solution."""
