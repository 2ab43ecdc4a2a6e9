"""Stage 4, which builds the set of all points of the parameter space that the data allow."""
