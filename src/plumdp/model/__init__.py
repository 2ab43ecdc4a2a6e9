"""Parametric models: exact expressions on the edges of a graph, readers, properties and questions.

In: PRISM and JANI files, step functions of Python, texts of properties.
Out: ``ParametricMDP``, ``Objective``, ``Question``.
Begin with: ``graph.py``, then ``parametric.py``; ``explore.py`` makes a model, ``question.py`` asks about it.
Used by: case_studies, data, confidence, region, fit, relaxation, solver, tables, stages, result, learning,
    certifying, verifying, exchange, explaining, online, watching, starting, plots, reporting, cli.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
