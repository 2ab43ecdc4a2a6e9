"""Explains certificates by what limits them, where more data help, and whether the model is right.

In: ``Learned`` and a certificate.
Out: ``Findings``, ``Advice``, ``ModelCheck``.
Begin with: ``explain.py``; ``advice.py`` plans data.
Used by: online, decisions, reporting, cli.
"""
