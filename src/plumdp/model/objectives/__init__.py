"""Objectives, each in a file of its own, and the protocol that they have in common."""
