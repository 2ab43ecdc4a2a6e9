"""Bounds on the values of all policies, by one function that no action raises, or lowers.

The witness has in its part ``all_policies`` a chain with all states that some policy reaches, and in ``others`` every
other action that there is in them. If none of these steps raises u + m, at any point of the cube, then no policy has a
larger value, whatever it remembers or draws.
"""

from __future__ import annotations

from .bracket import Side
from .chain import Chain, read_chain
from .comparison import Ends, check_same_question
from .enclosure import Enclosure
from .reading import Exact, Part, require
from .values import check_functions, read_functions


def read_all(witness: Part, names: list[str]) -> Chain:
    """Return the chain with all other actions, which asks the same as that of the policy."""
    part = witness["all_policies"]
    chain = read_chain(part["chain"], names, part["others"])
    require(chain.kind != "average", f"{part.place}: verify does not know averages of all policies")
    check_same_question(witness["chain"], part["chain"])
    return chain


def check_all(part: Part, chain: Chain, enclosure: Enclosure, ends: Ends, misfit: Exact) -> Side:
    """Return functions that no action raises if there is an upper end, or that none lowers if there is a lower one."""
    functions = read_functions(part, chain, enclosure.dimension)
    is_upper = (ends[0] is None) != chain.complement
    check_functions(part, chain, enclosure, functions, misfit, (1,) if is_upper else (-1,))
    return Side(chain, functions)
