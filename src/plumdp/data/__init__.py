"""Data: counts of transitions from logs, simulators and environments.

In: a model; rows in files, frames, streams or warehouses.
Out: ``TransitionCounts`` and, of logs, a report on every row.
Begin with: ``counts.py``, the noun; ``logs.py`` reads, ``steps.py`` writes the one relation of steps that engines
    count.
Used by: confidence, fit, relaxation, tables, result, learning, certifying, verifying, explaining, online, watching,
    starting, reporting, cli.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
