"""Makes ``Learned``, the confidence set and the region of the parameters, from counts.

In: a model, its counts, and the questions that will be asked.
Out: ``Learned``, which every claim starts from.
Begin with: ``learn.py``; ``methods.py`` has the table ``SETS``, and ``model_tests.py`` the tests of the model.
Used by: certifying, verifying, exchange, explaining, online, watching, cli.
"""
