"""Decides between policies, says how many runs would tell, and verifies results."""

from plumdp.certifying.constraints import certify_within as certify_within
from plumdp.certifying.improvement import improve as improve
from plumdp.certifying.net_benefit import net_benefit as net_benefit
from plumdp.explaining.predicted_width import runs_to_tell as runs_to_tell
from plumdp.verifying.verify import verify as verify
from plumdp.verifying.witness import make_witness as make_witness
