"""Learns while acting, by sampling episodes and renewing certificates as these come in.

In: a model and an environment.
Out: records of certificates.
Begin with: ``loop.py``.
Used by: people alone.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
