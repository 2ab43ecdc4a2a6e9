"""From ``Learned`` to a ``Certificate``: a policy and bounds on its value. Start with ``pipeline.py``."""
