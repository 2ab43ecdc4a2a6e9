"""Functions that draw pictures, one for each question.

``ladder``, ``region``, ``forest``, ``online``, ``policy``, ``advice``, ``model`` and ``residuals`` take live objects,
and return a ``Picture``. Each ``plot_…`` draws parts of ``Findings`` into axes of matplotlib and returns the axes. Each
``…_figure`` makes a figure of them. Nothing imports matplotlib before something is drawn.

>>> from plumdp import case_study, compare, plots, simulate
>>> study = case_study("betting:5")
>>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
>>> picture = plots.ladder(compare(study.model, counts, study.objective))
>>> picture.svg[:4]
'<svg'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
