"""Bounds on values in tables of unknown rows, by bets on temporal differences.

In: a table, its counts and a policy.
Out: bounds on the value of this policy.
Begin with: ``table_set.py``, then ``values.py``; docs/proofs/tables.md has the proofs.
Used by: learning, certifying, explaining, starting.
"""
