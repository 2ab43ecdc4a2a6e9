"""Decides between policies: which one to follow in place of what is done today, and how many runs would tell."""

from plumdp.certifying.improvement import improve as improve
from plumdp.certifying.improvement import improve_learned as improve_learned
from plumdp.explaining.deciding_runs import runs_to_tell as runs_to_tell
