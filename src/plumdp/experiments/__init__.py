"""The published experiments with one command: ``plumdp bench``. Studies are made of cells that run alone."""
