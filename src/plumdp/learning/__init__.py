"""From counts to ``Learned``: the confidence set and the region of the parameters within it."""
