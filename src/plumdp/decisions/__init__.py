"""Decides between policies: which one to follow in place of what is done today."""

from plumdp.certifying.improvement import improve as improve
from plumdp.certifying.improvement import improve_learned as improve_learned
