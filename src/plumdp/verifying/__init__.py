"""Writes the proof of a claim into its result, and checks it again from model and data.

In: a saved result, its model and its data.
Out: a witness, or the checker's verdict.
Begin with: ``witness.py`` makes, ``verify.py`` checks; the checker itself is ``src/plumdp_verify``.
Used by: decisions, cli.
"""
