"""Watches a process part by part: alarms when rows or a certified value change, and certificates about now.

In: a model or a certificate, and data that come in parts.
Out: ``Watch``: alarms, their promise, and what holds now.
Begin with: ``watch.py``; ``plan.py`` says what is promised.
Used by: reporting, cli.
"""
