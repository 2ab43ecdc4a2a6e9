"""Settings of all tests: slow machines fail no Hypothesis deadline, and CI draws the same examples in every run."""

import os

from hypothesis import settings

from plumdp import compiled

compiled.compile_at_once()  # tests are about compiled kernels; test_compiled.py compares them with plain Python

settings.register_profile("plumdp", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)  # a red run is then due to the change
settings.register_profile("quick", deadline=None, max_examples=20)  # of ./check --quick
settings.load_profile("ci" if os.environ.get("CI") else "plumdp")
