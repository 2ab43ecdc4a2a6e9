"""The Game of agent and nature, made of an interval MDP and an objective, with the states that are decided."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, read_only
from plumdp.model.objectives import Nature, Objective
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.row_regions import RowPolytopes, RowRegion
from plumdp.solver import graph_kernels
from plumdp.solver.graph_kernels import GameRows, Predecessors

Masks = npt.NDArray[np.uint64]

_LONGEST = 63  # transitions that a mask has room for
_ZERO = 1e-8  # probabilities below count as zero at a vertex, which is safe: the set is then taken to vanish
_MARGIN = 1e-11  # how far vertices, and probabilities below zero, may be off: 63 times twice that is less than _ZERO
_MAX_WORK = 2 * 10**7  # rows times vertices that are examined, with one polytope for all rows


def zero_sets(imdp: IntervalMDP) -> tuple[IntArray, Masks]:
    """Return for each choice, as offsets and bit masks, the largest sets of transitions that vanish together.

    Intervals tell that of each transition by itself, and two of them that can vanish need not do so at once. The least
    probability of a set is attained at a vertex of nature's polytope, where it is zero only if each of them is.
    Each set that can vanish is part of one of them. Where there is no mask, nothing is known but the intervals. If
    there are none at all, there are no offsets either.
    """
    graph, region = imdp.graph, imdp.region
    nothing = np.zeros(1, dtype=np.int32), np.empty(0, dtype=np.uint64)
    if not isinstance(region, RowRegion | RowPolytopes) or imdp.has_fixed_support():
        return nothing
    can_vanish = ((imdp.lower == 0) & (imdp.upper > 0))[imdp.expression]
    length = np.diff(graph.first_transition)
    rows = np.flatnonzero((graph.sum_by_choice(can_vanish) > 1) & (length <= _LONGEST))
    if isinstance(region, RowRegion) and len(rows) * len(region.vertices) > _MAX_WORK:
        return nothing
    distinct: dict[bytes, Masks] = {}
    n_masks, masks = np.zeros(graph.n_choices, dtype=np.int32), []
    for row in rows.tolist():
        expressions = imdp.expression[graph.first_transition[row] : graph.first_transition[row + 1]]
        key = expressions.tobytes()
        if key not in distinct:
            distinct[key] = _masks(imdp, region, expressions)
        masks.append(distinct[key])
        n_masks[row] = len(distinct[key])
    first = np.concatenate([[0], np.cumsum(n_masks)]).astype(np.int32)
    return first, np.concatenate([nothing[1], *masks])


def _masks(imdp: IntervalMDP, region: RowRegion | RowPolytopes, expressions: IntArray) -> Masks:
    """Return the different sets of transitions of a row that vanish at vertices, as bit masks.

    There are none if a probability is negative at a vertex. (Around products of parameters the polytope has vertices
    that are not points of the region.)
    """
    at_vertices = region.at_vertices(expressions, _MARGIN)
    if at_vertices is None or at_vertices.min() < -_MARGIN:
        return np.empty(0, dtype=np.uint64)
    # a set too many is safe: nature is then taken to be able to drop more
    vanishes = (at_vertices <= _ZERO) & (imdp.lower[expressions] == 0) | (imdp.upper[expressions] == 0)
    bits = np.uint64(1) << np.arange(len(expressions), dtype=np.uint64)
    return np.unique((vanishes * bits).sum(axis=1, dtype=np.uint64))


@dataclass(frozen=True, eq=False)
class Backward:
    """The predecessors of the states of a graph, and an order of the states, found when asked for and kept."""

    graph: Graph
    is_undecided: BoolArray  # (n_states): by the objective alone; games on the graph leave these or fewer undecided
    wider: Backward | None = None  # of a graph with the same states undecided, and at least these edges

    @cached_property
    def _acyclic(self) -> tuple[IntArray | None, BoolArray]:
        if self.wider is not None and self.wider.scan is not None:
            return self.wider._acyclic
        graph, has_loop = self.graph, np.zeros(self.graph.n_states, dtype=np.bool_)
        order = np.empty(int(self.is_undecided.sum()), dtype=np.int32)
        edges = graph.first_choice, graph.first_transition, graph.successor
        n_order = graph_kernels.acyclic_order(*edges, self.is_undecided, order, has_loop)
        return (None if n_order < len(order) else read_only(order[::-1])), has_loop

    @property
    def scan(self) -> IntArray | None:
        """The undecided states, successors first, if they have no cycles but loops, otherwise None."""
        return self._acyclic[0]

    def scan_of(self, is_undecided: BoolArray) -> IntArray | None:
        """Return the states that a game leaves undecided, successors first, if they have no cycles, otherwise None."""
        scan, has_loop = self._acyclic
        if scan is None or (is_undecided & (has_loop | ~self.is_undecided)).any():
            return None
        return scan[is_undecided[scan]]

    @cached_property
    def predecessors(self) -> Predecessors:
        """The predecessors of all states."""
        graph = self.graph
        offset, source = np.zeros(graph.n_states + 1, dtype=np.int64), np.empty(graph.n_transitions, dtype=np.int32)
        graph_kernels.predecessors(graph.first_choice, graph.first_transition, graph.successor, offset, source)
        return Predecessors(offset, source)


@dataclass(frozen=True, eq=False)
class Game:
    """A game in which the values of the decided states are known, and those of the others follow from their rows."""

    imdp: IntervalMDP
    reward: FloatArray  # (n_choices)
    discount: float
    agent: float  # +1 wants large values, -1 small ones
    nature: float
    is_undecided: BoolArray  # (n_states)
    known: FloatArray  # (n_states): value of the decided states
    policy: IntArray  # (n_states): attains the value of decided states; keeps the target reachable for a helping agent
    backward: Backward = field(repr=False)
    rank: FloatArray | None = None  # (n_states): for rewards, steps until a chance of the target
    depends: bool = False  # whether rewards depend on the bounds of expressions, and on nature

    def with_all_undecided(self) -> Game:
        """Return the game with no state decided, as for a number of steps or a discount, where each is worth a step."""
        everywhere = np.ones(self.imdp.graph.n_states, dtype=np.bool_)
        return replace(self, is_undecided=everywhere, backward=Backward(self.imdp.graph, everywhere))

    def known_bounds(self, states: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the values of some of the decided states.

        Infinite values that nature attains by the intervals, but perhaps not within the region, bound one side only.
        """
        low, high = self.known[states], self.known[states]
        if self.nature > 0 and not self.may_drop:
            low[high == np.inf] = 0.0  # a lower bound that is too low is safe
        return low, high

    @property
    def may_drop(self) -> bool:
        """Whether nature may drop all that intervals let it drop, which is not so if it picks points of a region."""
        return self.imdp.region is None or self.imdp.has_fixed_support()

    @cached_property
    def rows(self) -> GameRows:
        """The rows of the model, as the kernels take them, with the sets of transitions that can vanish at once."""
        imdp, graph = self.imdp, self.imdp.graph
        bounds = imdp.expression, imdp.lower, imdp.upper
        return GameRows(graph.first_choice, graph.first_transition, graph.successor, *bounds, *zero_sets(imdp))


def plain_game(imdp: IntervalMDP, objective: Objective, nature: Nature, backward: Backward | None = None) -> Game:
    """Return the game in which only those states are decided that the objective names.

    ``backward`` is that of a game with the same objective on the same graph, or on a graph that has all its edges and
    more.
    """
    agent = 1.0 if objective.direction == "max" else -1.0
    wanted = wanted_by(nature, agent)
    terms = objective.terms(imdp.graph)
    # nature picks each reward that depends on parameters as it picks the probabilities of a row
    reward, is_end = terms.at(imdp.upper if wanted > 0 else imdp.lower, wanted), terms.is_end
    if backward is not None and (backward.is_undecided == is_end).any():
        backward = None  # other states are undecided
    if backward is None or backward.graph is not imdp.graph:
        backward = Backward(imdp.graph, ~is_end, backward)
    first = imdp.graph.first_choice[:-1].copy()
    known = ~is_end, terms.value, first, backward
    return Game(imdp, reward, terms.discount, agent, wanted, *known, depends=terms.reward is not reward)


def wanted_by(nature: Nature, agent: float) -> float:
    """Return +1 if nature wants large values and -1 if small ones, given the same of the agent."""
    return -agent if nature == "robust" else agent
