"""From ``Learned`` to a ``Certificate``: a policy and bounds on its value.

In: ``Learned`` and a ``Question``.
Out: ``Certificate``, ``Difference`` and other claims.
Begin with: ``pipeline.py``, then ``valuation.py`` with the table ``PROVERS``.
Used by: verifying, exchange, explaining, online, watching, decisions, reporting, cli.
"""
