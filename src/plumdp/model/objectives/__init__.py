"""Objectives, each in its file, and the protocol that they have in common."""
