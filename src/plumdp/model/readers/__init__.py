"""Readers of models from files of other tools."""
