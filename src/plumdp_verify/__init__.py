"""Checks the proof in a result without plumdp: only the standard library and python-flint are imported here.

Start with ``check.py``, which goes through the layers in their order.
"""
