"""Readers of interval models: one file each."""
