"""Tables of the core have the features of outer rings, whichever module is imported first, once they are needed."""

import subprocess
import sys

import pytest

from plumdp.base.kinds import Kinds

FIRST = {
    "a set": "from plumdp.learning.methods import SETS; assert [*SETS] == ['interval', 'likelihood', 'table']",
    "a prover": "from plumdp.certifying.valuation import PROVERS; assert {'pieces', 'bets'} < {*PROVERS}",
    "a text": "from plumdp.model.question import READERS; assert str in READERS",
    "nothing": "import sys, plumdp, plumdp.certifying.pipeline; assert 'plumdp.kinds' not in sys.modules",
    "an entry of one's own": "from plumdp.learning.methods import SETS; SETS['mine'] = SETS['table']; "
    "assert [*SETS] == ['interval', 'likelihood', 'table', 'mine']",
}


@pytest.mark.slow
@pytest.mark.parametrize("first", FIRST)
def test_tables_are_filled_when_they_are_first_looked_at(first):
    subprocess.run([sys.executable, "-c", FIRST[first]], check=True)


def test_a_table_has_what_it_was_given_and_what_was_added():
    table = Kinds({"a": 1})
    table["b"] = 2
    assert ([*table.items()], len(table), table.get("c")) == ([("a", 1), ("b", 2)], 2, None)
    del table["a"]
    assert dict(table) == {"b": 2}
