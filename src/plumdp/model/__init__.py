"""Parametric models: exact expressions, graphs, readers, properties and questions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
