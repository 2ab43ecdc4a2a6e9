"""Certificates of tables miss at most as often as they say, against an adversary who knows the truth.

After the pilot, the adversary visits the rows whose temporal differences are furthest out, and stops at the worst of
several moments. By day a few games are played, at night 2,000; seeds are fixed. What an error of 0.1 allows is refuted
by bets on the frequency of misses, with a level of 10^-4 (``evidence``).
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from evidence import until_refuted
from table_cases import values_at
from tiers import size

import plumdp as pl
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.model.policy import check_policy
from plumdp.model.question import ask
from plumdp.tables import bracket
from plumdp.tables.values import chain_of_policy

ERROR = 0.1
_CHUNKS = 12  # in which the adversary chooses rows
GOAL = {"goal": lambda s: s.x == 6, "bad": lambda s: s.x == 0, "end": lambda s: s.x in (0, 6)}
REACH, TIME = 'Pmax=? [ F "goal" ]', 'R{"time"}max=? [ F "end" ]'


def walk(*, leak=False, row=None, actions=("go",), n=6):
    """Return a walk from 1 to n - 1 with unknown rows, which ends at 0 and n."""

    def step(s):
        if s.x in (0, n):
            return {"stay": [(1, s)]}
        at = [s._replace(x=x) for x in (s.x + 1, s.x - 1, *((0,) if leak and s.x > 1 else ()))]
        return {
            a: pl.unknown(*(at if a == "go" else [at[0], s, at[1]]), row=row and f"{row}{len(at)}") for a in actions
        }

    time = lambda s: 0 if s.x in (0, n) else 1  # noqa: E731
    return pl.explore(step, {"x": n // 2}, labels=GOAL, rewards={"time": time})


MODELS = {  # model, property, and the least and the largest number of steps
    "walk": (lambda: walk(), REACH, (2e3, 1e6)),
    "walk with leaks": (lambda: walk(leak=True), REACH, (2e3, 1e6)),
    "tied walk": (lambda: walk(row="w"), REACH, (500, 1e6)),
    "few visits": (lambda: walk(leak=True), REACH, (100, 600)),
    "time of a walk": (lambda: walk(leak=True), TIME, (2e3, 1e6)),
    "discounted time": (lambda: walk(leak=True), 'R{"time"}max=? [ Cdiscount=0.9 ]', (500, 1e6)),
    "drawn actions": (lambda: walk(leak=True, actions=("go", "wait")), REACH, (4e3, 1e6)),
    "two actions": (lambda: walk(leak=True, actions=("go", "wait")), 'Pmax=? [ F "goal" ]', (4e3, 1e6)),
}


@cache
def prepared(name):
    """Return the model and its question, which are the same in all games."""
    make, text, steps = MODELS[name]
    model = make()
    return model, ask(text, model), steps


def random_point(model, rng):
    """Return a random table: a probability for each transition."""
    graph, n_known = model.graph, len(model.expressions.polynomials)
    by_row = {}
    for choice in range(graph.n_choices):
        span = slice(graph.first_transition[choice], graph.first_transition[choice + 1])
        row = model.expression[span]
        by_row.setdefault(tuple(row.tolist()), np.maximum(rng.dirichlet(np.full(len(row), 2.0)), 0.02))
    value = np.ones(n_known + model.expressions.n_free)
    for row, chance in by_row.items():
        value[list(row)] = chance / chance.sum() if row[0] >= n_known else 1.0
    return value[model.expression]


def value_of(model, question, policy, point):
    """Return the values of all states that a policy reaches, at a table, and the chain that has them."""
    table = chain_of_policy(model, policy, question.objective).table
    truth = np.zeros(table.n_places)
    n_known = len(model.expressions.polynomials)
    is_free = model.expression >= n_known
    truth[model.expression[is_free] - n_known] = point[is_free]
    return table, values_at(table, np.where(table.place >= 0, truth[table.place], table.number))


class Game:
    """Data that an adversary draws, choice by choice."""

    def __init__(self, name, seed):
        """Draw a table, and nothing yet of the data."""
        self.model, self.question, steps = prepared(name)
        self.policy = "uniform" if name == "drawn actions" else None
        self.rng = np.random.default_rng(seed)
        self.point = random_point(self.model, self.rng)
        self.n_steps = np.exp(self.rng.uniform(*np.log(steps)))
        graph = self.model.graph
        self.spans = [
            slice(graph.first_transition[c], graph.first_transition[c + 1])
            for c in np.flatnonzero(np.diff(graph.first_transition) > 1)
        ]
        self.shares = self.rng.dirichlet(np.full(len(self.spans), 3.0))
        self.focus = self.rng.choice([0.02, 0.2, 0.7])  # the less, the narrower the bracket
        self.counts = np.zeros(graph.n_transitions, dtype=np.int64)

    def visit(self, span, n):
        """Add visits of one row."""
        self.counts[span] += self.rng.multinomial(int(n), self.point[span])

    def visit_all(self, n):
        """Add visits of all rows, in the same shares each time."""
        for span, share in zip(self.spans, self.shares, strict=True):
            self.visit(span, np.ceil(n * share))

    def visit_worst(self, n, values):
        """Add visits, most of them of the row that is furthest out by the true values of states."""
        for _ in range(_CHUNKS):
            out = []
            for span in self.spans:
                ahead, seen = values[self.model.graph.successor[span]], self.counts[span]
                out.append(abs(seen @ (ahead - self.point[span] @ ahead)) / np.sqrt(max(seen.sum(), 1)))
            self.visit(self.spans[int(np.argmax(out))], self.focus * n / _CHUNKS)
            self.visit_all((1 - self.focus) * n / _CHUNKS)

    def true_values(self):
        """Return the values of all states of the best policy at the truth, or of the only one."""
        graph = self.model.graph
        policy = np.asarray(graph.first_choice[:-1]) if self.policy is None else check_policy(graph, self.policy)
        table, values = value_of(self.model, self.question, policy, self.point)
        result = np.zeros(graph.n_states + graph.n_choices)  # choices are nodes if they are drawn
        result[table.chain.state] = np.concatenate([values, table.chain.known])
        return result[: graph.n_states]


def is_missed(name, seed, n_looks=2):
    """Play a game, and return whether the bracket misses the value of its policy at any look."""
    game = Game(name, seed)
    values, n, moments = game.true_values(), game.n_steps, []
    game.visit_all(0.1 * n)
    moments.append(game.counts.copy())
    game.visit_worst(0.7 * n, values)
    moments.append(game.counts.copy())
    lengths = tuple(float(each.sum()) for each in moments)
    pilot = Pilot(moments[0], ratio=9.0, moments=tuple(moments), lengths=lengths, expected=10 * lengths[0])
    missed = False
    for _ in range(n_looks):
        game.visit_worst(0.2 * n / n_looks, values)
        counts = TransitionCounts(game.model.graph, game.counts.copy(), "adaptive", pilot)
        options = {"policy": game.policy, "prespecified": game.policy is not None, "confidence": 1 - ERROR}
        found = pl.certify(game.model, counts, game.question, **options)
        table, at = value_of(game.model, game.question, np.asarray(found.policy), game.point)
        value = at[table.chain.initial]
        missed |= not found.lower - 1e-9 <= value <= found.upper + 1e-9
    return missed


@pytest.mark.night
@pytest.mark.parametrize("name", MODELS)
def test_an_opponent_makes_certificates_miss_no_more_often_than_they_say(name):
    games = (is_missed(name, seed) for seed in range(size(4, 290)))
    evidence = until_refuted(games, rate=ERROR)
    assert not evidence.is_refuted


@pytest.mark.slow
def test_bets_that_are_stopped_before_they_won_are_found_out(monkeypatch):
    """The end of a bracket is moved inward by what half of the error's logarithm is worth, and more."""
    end = bracket.bracket_end
    early = lambda plan, *args: end(replace(plan, log_error=-0.6 * plan.log_error), *args)  # noqa: E731
    monkeypatch.setattr(bracket, "bracket_end", early)
    assert until_refuted((is_missed("tied walk", seed) for seed in range(60)), rate=ERROR).is_refuted
