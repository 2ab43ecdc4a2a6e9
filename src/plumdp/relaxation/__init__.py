"""What nature may do at each choice: interval MDPs with the region as rows see it.

In: a model and its region.
Out: ``IntervalMDP``.
Begin with: ``intervals.py``, the noun; ``relax.py`` has the table ``RELAXATIONS``.
Used by: solver, tables, stages, result, certifying, exchange, online, reporting, cli.
"""
