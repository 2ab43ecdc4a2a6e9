"""The set of all points of the parameter space that the data allow.

In: ``Evidence`` and the parameter space.
Out: ``Region``, which bounds linear functions from below, or ``Conflict``.
Begin with: ``find.py``; ``shapes.py`` has ``safe_minimum``, which alone decides what is a bound.
Used by: fit, relaxation, solver, tables, stages, learning, certifying, explaining.
"""
