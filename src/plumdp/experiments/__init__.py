"""The published experiments, run by ``plumdp bench``: studies of cells that run independently."""
