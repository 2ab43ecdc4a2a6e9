"""From rows to a first answer: what the columns of a log seem to be, and the table that its first runs make.

In: a log of which nothing is known.
Out: ``Start``: a proposal of columns, states and questions, as ``plumdp.toml``.
Begin with: ``start.py``; ``roles.py`` guesses columns, ``proposal.py`` writes.
Used by: cli.
"""
