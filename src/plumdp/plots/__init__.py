"""Pictures, one for each question; ``draw`` makes all of them.

In: a result and its findings.
Out: figures of matplotlib.
Begin with: ``draw.py``, with the table of kinds.
Used by: reporting, cli.
"""
