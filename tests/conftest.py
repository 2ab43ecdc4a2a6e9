"""Settings of all tests: shared strategies are importable, and slow machines fail no Hypothesis deadline."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("plumdp", deadline=None)
settings.load_profile("plumdp")
