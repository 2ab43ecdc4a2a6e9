"""Reductions: problems turned into simpler ones, each with the way back from its solution."""
