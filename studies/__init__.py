"""Studies of plumdp: the paper's table and figures, what it leaves out, and measurements of speed and coverage.

``python -m studies --help`` lists them; nothing here is installed with the package.
"""

from studies import paper_sets as paper_sets  # makes "l1" and "ellipsoid" known to learn
