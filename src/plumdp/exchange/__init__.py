"""Interval models and policies in files of Storm, PRISM and other tools, both ways."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
