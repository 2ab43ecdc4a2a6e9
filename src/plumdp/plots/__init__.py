"""Pictures, one function per question.

``ladder``, ``region``, ``forest``, ``online``, ``policy``, ``advice``, ``model`` and ``residuals`` take live objects,
and return a ``Picture``. Each ``plot_…`` draws parts of ``Findings`` into axes of matplotlib and returns the axes; each
``…_figure`` makes a figure of them. Nothing imports matplotlib before something is drawn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
