"""The exact value of a small interval MDP by enumeration, in rational numbers: slow, obvious, shared with nobody.

Forever (reach, reward until a target, total and discounted reward): every deterministic memoryless policy of the agent
meets every memoryless nature that picks, per choice, one vertex of {p : lower <= p <= upper, sum p = 1}. Each pair is a
Markov chain, solved exactly. Both players have such strategies that are optimal from all states at once, because the
model is a stochastic game with finitely many positions and moves (vertices) and nonnegative rewards. So the value of a
state is the agent's best over its policies of nature's best over its vertices, taken state by state.

Over finitely many steps: backward induction over the same vertices; agent and nature may change their mind every step.

Known support. Nature must keep every transition possible, and may not change its mind (probabilities that shrink from
step to step would avoid what every fixed one reaches). So lower bounds of 0 are open, and the value is an infimum or a
supremum that need not be attained: the limit of closed models in which those lower bounds are eps > 0. We solve one
such model, with an eps so small that the limit can be read off *exactly*; see ``limit`` and ``smallness``.
A row that leaves no room for a positive probability (its lower bounds sum to 1) keeps its zeros.
Over finitely many steps, and with a discount, values are continuous in the probabilities, so that support is no matter.
"""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product

from flint import fmpq, fmpq_mat

from plumdp.model.objectives import Reach

INFINITY = math.inf
BEST = {"max": max, "min": min}
OTHER = {"max": "min", "min": "max"}


def exact_values(imdp, objective, nature):
    """Return the value of each state: a Fraction, or the float infinity."""
    if objective.steps is not None:
        return first_step_values(imdp, objective, nature)[0]
    values = policy_values(imdp, objective, nature).values()
    return [BEST[objective.direction](of_state) for of_state in zip(*values, strict=True)]


def policy_values(imdp, objective, nature, outcomes=None):
    """Return policy → value of each state if the agent follows it and nature does its best (or worst).

    A policy is a tuple of the chosen choice per state; see ``policy_key``. ``outcomes`` saves computing them again.
    """
    outcomes = all_outcomes(imdp, objective) if outcomes is None else outcomes
    best = BEST[nature_direction(objective, nature)]
    return {
        policy: [limit(best(of_state), imdp, objective) for of_state in zip(*of_natures, strict=True)]
        for policy, of_natures in outcomes.items()
    }


def nature_direction(objective, nature):
    """Return which way nature moves the value: against the agent if robust, with it if optimistic."""
    return OTHER[objective.direction] if nature == "robust" else objective.direction


def all_outcomes(imdp, objective):
    """Return policy → one vector of state values per nature, of an objective without a bound on its steps.

    Neither the direction of the objective nor that of nature matters here. With known support these are the values
    of the model with the tiny eps, not yet the limit.
    """
    assert objective.steps is None
    rows = interval_rows(imdp, objective)
    corners = [vertices(row) for row in rows]
    settled = settled_states(imdp, objective)
    outcomes = {}
    for policy in product(*choices_that_matter(imdp, settled)):
        earned = step_rewards(objective, policy)
        natures = product(
            *(corners[choice][:1] if settled[state] else corners[choice] for state, choice in enumerate(policy))
        )
        outcomes[policy] = [chain_values(chain, objective, earned) for chain in natures]
    return outcomes


def policy_key(imdp, objective, policy):
    """Return the policy as ``all_outcomes`` names it: the first choice in the states where nothing is left to do."""
    settled = settled_states(imdp, objective)
    return tuple(
        int(imdp.graph.first_choice[state]) if settled[state] else int(choice) for state, choice in enumerate(policy)
    )


def settled_states(imdp, objective):
    """Return per state whether the run is over there: in targets and in states to avoid."""
    over = [False] * imdp.graph.n_states
    if objective.target is not None:
        over = [bool(there) for there in objective.target]
    if isinstance(objective, Reach):
        over = [there or bool(avoided) for there, avoided in zip(over, objective.avoid, strict=True)]
    return over


def choices_that_matter(imdp, settled):
    """Return per state its choices; only the first one where the run is over."""
    first = imdp.graph.first_choice.tolist()
    return [
        range(first[s], first[s] + 1) if settled[s] else range(first[s], first[s + 1])
        for s in range(imdp.graph.n_states)
    ]


# Rows and their vertices


def interval_rows(imdp, objective):
    """Return per choice its transitions as (successor, lower, upper), zeros raised to eps where the support counts."""
    graph = imdp.graph
    rows = []
    for choice in range(graph.n_choices):
        transitions = range(graph.first_transition[choice], graph.first_transition[choice + 1])
        rows.append(
            [
                (int(graph.successor[t]), Fraction(imdp.lower[e]), Fraction(imdp.upper[e]))
                for t, e in ((t, imdp.expression[t]) for t in transitions)
            ]
        )
    if not has_open_zeros(imdp, objective):
        return rows
    eps = smallness(imdp, objective)[1]
    return [raise_zeros(row, eps) for row in rows]


def has_open_zeros(imdp, objective):
    """Return whether it matters that transitions with lower bound 0 are possible."""
    discounted = not isinstance(objective, Reach) and objective.discount is not None
    return imdp.known_support and objective.steps is None and not discounted


def raise_zeros(row, eps):
    """Return the row with lower bounds of 0 raised to eps, if a positive probability fits there at all."""
    if sum(lower for _, lower, _ in row) == 1:
        return row
    return [(successor, eps if lower == 0 < upper else lower, upper) for successor, lower, upper in row]


def vertices(row):
    """Return the vertices of {p : lower <= p <= upper, sum p = 1}, each as a dict successor → positive probability.

    At a vertex all transitions but one sit at a bound of theirs.
    """
    found = set()
    for free in range(len(row)):
        sides = [(lower,) if lower == upper else (lower, upper) for _, lower, upper in row]
        sides[free] = (Fraction(0),)
        for corner in product(*sides):
            rest = 1 - sum(corner)
            if row[free][1] <= rest <= row[free][2]:
                found.add((*corner[:free], rest, *corner[free + 1 :]))
    assert found, f"no distribution fits {row}"
    return [merge(row, corner) for corner in sorted(found)]


def merge(row, corner):
    """Return successor → probability, where several transitions may lead to one successor."""
    merged = {}
    for (successor, _, _), probability in zip(row, corner, strict=True):
        if probability:
            merged[successor] = merged.get(successor, Fraction(0)) + probability
    return merged


# Markov chains: one dict successor → probability per state


def chain_values(chain, objective, earned):
    """Return the value of each state of a Markov chain."""
    if isinstance(objective, Reach):
        reached = reach_probability(chain, objective.target, objective.avoid)
        return [1 - probability for probability in reached] if objective.complement else reached
    if objective.discount is not None:
        assert objective.target is None, "a discount with a target is not defined here"
        return solve_linear(chain, range(len(chain)), earned, objective.discount)
    assert min(earned) >= 0, "total rewards are defined for nonnegative rewards"
    if objective.target is not None:
        return reward_until(chain, objective.target, earned)
    return total_reward(chain, earned)


def reach_probability(chain, target, avoid):
    """Return the least solution of x = 1 on targets, 0 on other states to avoid, x = P x elsewhere."""
    over = [bool(t or a) for t, a in zip(target, avoid, strict=True)]
    hopeful = can_reach(chain, [s for s in range(len(chain)) if target[s]], through=over)
    inside = [s for s in range(len(chain)) if s in hopeful and not over[s]]
    entering = [sum((p for j, p in row.items() if target[j]), Fraction(0)) for row in chain]
    values = solve_linear(chain, inside, entering)
    return [Fraction(1) if target[s] else values[s] for s in range(len(chain))]


def reward_until(chain, target, earned):
    """Return the expected reward before a target; infinite where the target is missed with positive probability."""
    over = [bool(t) for t in target]
    states = range(len(chain))
    hopeful = can_reach(chain, [s for s in states if target[s]], through=over)
    missing = can_reach(chain, [s for s in states if s not in hopeful], through=over)
    values = solve_linear(chain, [s for s in states if not target[s] and s not in missing], earned)
    return [INFINITY if s in missing else values[s] for s in states]


def total_reward(chain, earned):
    """Return the expected sum of all rewards; infinite where a reward that recurs forever can be reached."""
    states = range(len(chain))
    nowhere = [False] * len(chain)
    reaching = [can_reach(chain, [s], through=nowhere) for s in states]  # reaching[s]: from where s can be reached
    recurrent = [all(j in reaching[s] for j in states if s in reaching[j]) for s in states]
    endless = can_reach(chain, [s for s in states if recurrent[s] and earned[s] > 0], through=nowhere)
    values = solve_linear(chain, [s for s in states if not recurrent[s] and s not in endless], earned)
    return [INFINITY if s in endless else values[s] for s in states]


def can_reach(chain, goals, through):
    """Return the states with a path to a goal that leaves no state of ``through``; goals included."""
    reaching = set(goals)
    while True:
        more = {
            s for s, row in enumerate(chain) if s not in reaching and not through[s] and not reaching.isdisjoint(row)
        }
        if not more:
            return reaching
        reaching |= more


def solve_linear(chain, inside, constant, discount=1):
    """Return x with x = constant + discount * P x on the states inside, and x = 0 outside. Exactly.

    The caller makes sure that the states inside are left for good with probability 1 (or that discount < 1).
    """
    inside = list(inside)
    values = [Fraction(0)] * len(chain)
    if inside:
        factor = rational(Fraction(discount))
        entries = [
            int(s == j) - factor * rational(chain[s][j]) if j in chain[s] else int(s == j)
            for s in inside
            for j in inside
        ]
        right = [rational(constant[s]) for s in inside]
        solution = fmpq_mat(len(inside), len(inside), entries).solve(fmpq_mat(len(inside), 1, right))
        for index, state in enumerate(inside):
            values[state] = Fraction(int(solution[index, 0].p), int(solution[index, 0].q))
    return values


def rational(number):
    """Return a Fraction as python-flint's rational number."""
    return fmpq(number.numerator, number.denominator)


def step_rewards(objective, policy):
    """Return what a step from each state earns under a policy: the state's reward plus that of its choice."""
    if isinstance(objective, Reach):
        return None
    return [state_reward(objective, s) + choice_reward(objective, choice) for s, choice in enumerate(policy)]


def state_reward(objective, state):
    """Return the reward of being in a state at a step; none in targets, which end the run."""
    if objective.reward.state is None or (objective.target is not None and objective.target[state]):
        return Fraction(0)
    return Fraction(objective.reward.state[state])


def choice_reward(objective, choice):
    """Return the reward of a choice."""
    return Fraction(0) if objective.reward.choice is None else Fraction(objective.reward.choice[choice])


# Known support: the limit of a rational function of eps, from its value at one tiny eps


@lru_cache(maxsize=8)
def smallness(imdp, objective):
    """Return (size, eps): eps is small enough to read limits off the value at eps, as ``limit`` does.

    A value of a chain is N(eps) / D(eps), a quotient of determinants (Cramer). Let d be a common denominator of all
    bounds and rewards, k the longest row, R the largest reward of a step. Multiplied by d, an entry of I - P is an
    integer polynomial in eps of degree 1; the absolute coefficients of one row of the system sum to at most
    d (4k + 3 + R), so the integer coefficients of N and D sum to at most size = 2 (d (4k + 3 + R)) ** n_states.
    """
    arrays = [imdp.lower, imdp.upper]
    most = Fraction(0)
    if not isinstance(objective, Reach):
        rewards = [part for part in (objective.reward.state, objective.reward.choice) if part is not None]
        arrays += rewards
        most = sum((Fraction(float(part.max())) for part in rewards), Fraction(0))
    denominator = math.lcm(*(Fraction(value).denominator for array in arrays for value in array.tolist()))
    longest = max(b - a for a, b in pairwise(imdp.graph.first_transition))
    size = 2 * (denominator * (4 * int(longest) + 3 + math.ceil(most))) ** imdp.graph.n_states
    return size, Fraction(1, 16 * size**5)


def limit(value, imdp, objective):
    """Return the limit for eps → 0 of a value at the eps of ``smallness``; other values as they are.

    Divide N and D by their common power of eps and let a, b be what is left of them at eps = 0: integers of at most
    ``size``, not both 0. If b = 0 the value at eps is at least 1 / (2 eps size) > size ** 2, and the limit is infinite.
    Otherwise the value differs from a / b by at most 4 eps size ** 2 < 1 / (2 size ** 2), and a / b is the only
    fraction so near whose denominator is at most ``size``.
    """
    if not has_open_zeros(imdp, objective):
        return value
    size, _ = smallness(imdp, objective)
    return INFINITY if value > size**2 else value.limit_denominator(size)


# Finitely many steps


def first_step_values(imdp, objective, nature):
    """Return the value of each state, and of each choice if it is taken first; best play of both afterwards.

    At step t of a step-bounded reach the run has succeeded in a target if t lies in the window, and otherwise failed in
    a state to avoid or if the window is over. A bounded reward counts the steps 0 … steps - 1.
    """
    if isinstance(objective, Reach):
        return bounded_reach(imdp, objective, nature)
    assert objective.target is None, "a bounded reward with a target is not defined here"
    corners = [vertices(row) for row in interval_rows(imdp, objective)]
    values = [Fraction(0)] * imdp.graph.n_states
    of_choice = [Fraction(0)] * imdp.graph.n_choices
    for _ in range(objective.steps):
        of_choice = backup(imdp, objective, nature, corners, values)
        values = best_choice(imdp, objective, of_choice)
    return values, of_choice


def bounded_reach(imdp, objective, nature):
    """Return the value of each state and of each choice taken first, for a reach within a window of steps."""
    success, failure = (Fraction(0), Fraction(1)) if objective.complement else (Fraction(1), Fraction(0))
    corners = [vertices(row) for row in interval_rows(imdp, objective)]
    first, last = objective.steps
    values = [failure] * imdp.graph.n_states
    for step in range(last, -1, -1):
        of_choice = backup(imdp, objective, nature, corners, values)
        going_on = best_choice(imdp, objective, of_choice)
        values = [
            success
            if objective.target[s] and step >= first
            else failure
            if objective.avoid[s] or step == last
            else going_on[s]
            for s in range(imdp.graph.n_states)
        ]
    return values, of_choice


def backup(imdp, objective, nature, corners, values):
    """Return per choice its reward plus the (discounted) value of the next state that nature leaves."""
    best = BEST[nature_direction(objective, nature)]
    expected = [best(sum(p * values[j] for j, p in corner.items()) for corner in of_choice) for of_choice in corners]
    if isinstance(objective, Reach):
        return expected
    discount = 1 if objective.discount is None else objective.discount
    of_state = imdp.graph.state_of_choice()
    return [
        state_reward(objective, of_state[c]) + choice_reward(objective, c) + discount * expected[c]
        for c in range(imdp.graph.n_choices)
    ]


def best_choice(imdp, objective, of_choice):
    """Return per state the agent's best value over its choices."""
    first = imdp.graph.first_choice
    return [BEST[objective.direction](of_choice[first[s] : first[s + 1]]) for s in range(imdp.graph.n_states)]
