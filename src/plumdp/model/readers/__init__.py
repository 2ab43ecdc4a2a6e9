"""Readers: models from files of other tools."""
