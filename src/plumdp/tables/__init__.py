"""Bounds on values in tables of unknown rows, by bets on temporal differences."""
