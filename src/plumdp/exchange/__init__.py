"""Interval models and policies in files of Storm, PRISM and other tools, both ways.

In: files of other tools.
Out: ``IntervalModel`` and policies, or files.
Begin with: ``read_intervals.py``, with the table of formats.
Used by: cli.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
