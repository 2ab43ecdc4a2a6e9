"""The game and the layout of one question, kept for further questions about the same graph and objective.

To decide states and to lay rows out takes longer than to sweep over them once, and most of it depends on the graph and
the objective alone. Bounds matter in two ways. First, the decided states depend on them. If no transition can vanish
that is possible at all, they depend only on which are possible, and not on nature. Second, the layout depends on which
states are undecided. So a further question decides states again unless both questions are of that kind, with the same
transitions. It keeps the layout if the same states are left, and it always has its own bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plumdp.model.objectives import Nature, Objective, is_open_everywhere
from plumdp.model.text import number_of, one_line
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.game import Game, plain_game, wanted_by
from plumdp.solver.layout import SweepLayout, lay_out
from plumdp.solver.problem import Problem
from plumdp.solver.qualitative import make_game
from plumdp.solver.reduce import reduce


@dataclass(frozen=True, eq=False)
class Prepared:
    """A game and its layout, which is never swept, as ``facing`` returns a copy that is."""

    objective: Objective  # one that is not a complement
    game: Game
    layout: SweepLayout

    def __repr__(self) -> str:
        return one_line(self, number_of(self.layout.n_undecided, "undecided state"), f"{self.nbytes / 1e6:.1f} MB")

    def facing(self) -> SweepLayout:
        """Return a layout of the game that may be swept."""
        return self.layout.facing(self.game)

    @property
    def nbytes(self) -> int:
        """The memory of the arrays that are kept, without the model itself."""
        rows, layout, game = self.layout.rows, self.layout, self.game
        arrays = [rows.first_choice, rows.first, rows.successor, rows.expression, rows.reward, layout.known]
        arrays += [layout.first_row, layout.state, layout.choice, layout.ends]
        arrays += [game.reward, game.is_undecided, game.known, game.policy, game.backward.is_undecided]
        arrays += [] if game.rank is None or layout.rank is None else [game.rank, layout.rank]
        before = game.backward.__dict__.get("predecessors", ())
        return sum(array.nbytes for array in (*arrays, *before))


def prepare(
    imdp: IntervalMDP,
    objective: Objective,
    nature: Nature = "robust",
    *,
    like: Prepared | None = None,
    within: Prepared | None = None,
) -> Prepared:
    """Return the game of a model and an objective, and its layout.

    ``like`` was prepared for an earlier question. If that was about the same graph, expressions and objective, its
    parts are used where they are the same. Otherwise it is of no use, and does no harm. ``within`` was prepared for a
    model that has all rows of this one, and perhaps more: its order serves both.

    >>> from plumdp import case_study
    >>> from plumdp.stages import instantiate, solve
    >>> study = case_study("betting:25")
    >>> mdp = instantiate(study.model, study.true_point)
    >>> prepared = prepare(mdp, study.objective)
    >>> other = instantiate(study.model, {"p": 0.6})
    >>> prepare(other, study.objective, like=prepared).layout is prepared.layout
    True
    >>> again = solve(other, study.objective, prepared=prepared)
    >>> bool((again.lower == solve(other, study.objective).lower).all())
    True
    """
    objective = reduce(Problem(imdp, objective)).problem.objective
    if (
        like is None
        or like.objective is not objective
        or like.game.imdp.graph is not imdp.graph
        or like.game.imdp.expression is not imdp.expression
        or like.game.depends
    ):
        game = _decided(imdp, objective, nature, within)
        return Prepared(objective, game, lay_out(game))
    if is_decided_alike(like.game.imdp, imdp, objective):
        game = replace(like.game, imdp=imdp, nature=wanted_by(nature, like.game.agent))
    else:
        game = _decided(imdp, objective, nature, like)
    return Prepared(objective, game, like.layout if like.layout.is_of(like.game, game) else lay_out(game))


def is_decided_alike(one: IntervalMDP, other: IntervalMDP, objective: Objective) -> bool:
    """Return whether the same states of two models on one graph are decided, whatever nature does in either.

    So it is if nothing is decided, or if no transition can vanish that is possible at all, and the same ones are.
    """
    if is_open_everywhere(objective):
        return True
    is_fixed = one.has_fixed_support() and other.has_fixed_support()
    return is_fixed and bool(((one.upper == 0) == (other.upper == 0)).all())


def _decided(imdp: IntervalMDP, objective: Objective, nature: Nature, earlier: Prepared | None) -> Game:
    """Return the game with the states decided that graph and bounds decide.

    With a number of steps, a discount or an average none is decided.
    """
    if is_open_everywhere(objective):
        return plain_game(imdp, objective, nature).with_all_undecided()
    return make_game(imdp, objective, nature, None if earlier is None else earlier.game.backward)
