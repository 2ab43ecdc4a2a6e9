"""The features that the core does not name: each is added here to the table that the core looks it up in.

Nothing imports this module by name but ``plumdp/__init__.py``, which hands it to ``plumdp/base/kinds.py``.
"""

from __future__ import annotations

from plumdp.base.vocabulary import Trait
from plumdp.certifying.in_tables import by_bets, by_intervals
from plumdp.certifying.on_pieces import by_pieces
from plumdp.certifying.valuation import PROVERS
from plumdp.confidence.likelihood import LevelSet, LinearConstraints
from plumdp.confidence.likelihood_table import SUMS
from plumdp.confidence.observation_paths import sums_of_observations
from plumdp.learning.learn import BESIDE, OF_LOGS, TESTS
from plumdp.learning.methods import SETS, SetKind
from plumdp.learning.model_tests import check_fit, check_fixed_numbers
from plumdp.learning.run_control import with_control
from plumdp.learning.run_evidence import with_practised_runs, with_runs
from plumdp.model.language.property import parse_property
from plumdp.model.question import READERS
from plumdp.region.find import REGIONS
from plumdp.region.likelihood_region import build_likelihood_region
from plumdp.tables.fit import view_fit
from plumdp.tables.table_set import TableSet, prespecified_policies, region_of_table, table_evidence
from plumdp.tables.values import normal_values
from plumdp.tables.views import as_table, is_best_as_table

READERS[str] = parse_property

SETS["table"] = SetKind(
    table_evidence,
    frozenset({Trait.TABLE, Trait.RUNS}),
    view=as_table,
    is_best=is_best_as_table,
    test=view_fit,
    policies=prespecified_policies,
    normal_values=normal_values,
    has_bets=True,
)

REGIONS.update(
    {LevelSet: build_likelihood_region, LinearConstraints: build_likelihood_region, TableSet: region_of_table}
)

SUMS[Trait.GAPS] = sums_of_observations

OF_LOGS["runs of practice"] = with_practised_runs

BESIDE.update({Trait.RUNS: with_runs, Trait.TABLE: with_control})

TESTS.update({"fixed numbers": check_fixed_numbers, "model": check_fit})

PROVERS.update({"pieces": by_pieces, "intervals": by_intervals, "bets": by_bets})
