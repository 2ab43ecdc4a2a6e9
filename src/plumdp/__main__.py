"""``python -m plumdp``: the command line."""

from plumdp.cli import main

main()
