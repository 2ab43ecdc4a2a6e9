"""Decides between policies, says how many runs would tell, and audits a certified policy by new runs."""

from plumdp.certifying.improvement import improve as improve
from plumdp.certifying.improvement import improve_learned as improve_learned
from plumdp.explaining.audit import audit as audit
from plumdp.explaining.audit import runs_to_audit as runs_to_audit
from plumdp.explaining.deciding_runs import runs_to_tell as runs_to_tell
