"""The exact value of a small interval MDP by enumeration, in rational numbers: slow, obvious, shared with nobody.

Forever (reach, reward until a target, total and discounted reward): every deterministic memoryless policy of the agent
meets every memoryless nature that picks, per choice, one vertex of {p : lower <= p <= upper, sum p = 1}. Each pair is a
Markov chain, solved exactly. Both players have such strategies that are optimal from all states at once, because the
model is a stochastic game with finitely many positions and moves (vertices) and nonnegative rewards. So the value of a
state is the agent's best over its policies of nature's best over its vertices, taken state by state.

Over finitely many steps: backward induction over the same vertices; agent and nature may change their mind every step.
"""

import math
from fractions import Fraction
from itertools import product

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
        policy: [best(of_state) for of_state in zip(*of_natures, strict=True)]
        for policy, of_natures in outcomes.items()
    }


def nature_direction(objective, nature):
    """Return which way nature moves the value: against the agent if robust, with it if optimistic."""
    return OTHER[objective.direction] if nature == "robust" else objective.direction


def all_outcomes(imdp, objective):
    """Return policy → one vector of state values per nature, of an objective without a bound on its steps.

    Neither the direction of the objective nor that of nature matters here.
    """
    assert objective.steps is None
    rows = interval_rows(imdp)
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


def interval_rows(imdp):
    """Return per choice its transitions as (successor, lower, upper)."""
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
    return rows


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


# Finitely many steps


def first_step_values(imdp, objective, nature):
    """Return the value of each state, and of each choice if it is taken first; best play of both afterwards.

    At step t of a step-bounded reach the run has succeeded in a target if t lies in the window, and otherwise failed in
    a state to avoid or if the window is over. A bounded reward counts the steps 0 … steps - 1.
    """
    if isinstance(objective, Reach):
        return bounded_reach(imdp, objective, nature)
    assert objective.target is None, "a bounded reward with a target is not defined here"
    corners = [vertices(row) for row in interval_rows(imdp)]
    values = [Fraction(0)] * imdp.graph.n_states
    of_choice = [Fraction(0)] * imdp.graph.n_choices
    for _ in range(objective.steps):
        of_choice = backup(imdp, objective, nature, corners, values)
        values = best_choice(imdp, objective, of_choice)
    return values, of_choice


def bounded_reach(imdp, objective, nature):
    """Return the value of each state and of each choice taken first, for a reach within a window of steps."""
    success, failure = (Fraction(0), Fraction(1)) if objective.complement else (Fraction(1), Fraction(0))
    corners = [vertices(row) for row in interval_rows(imdp)]
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
