"""Interval models and policies in files of Storm, PRISM and other tools, both ways."""
