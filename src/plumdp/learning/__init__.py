"""Makes ``Learned``, the confidence set and the region of the parameters, from counts."""
